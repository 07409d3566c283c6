//! The last things: what is left is removed, then written out, and the verdict is said.
//!
//! Neither the verdict nor a signal waits for a reader of our output. The sentence goes to standard
//! error at once. After it we stay, without ranks, for as long as somebody may still read what they
//! printed, like any program in a pipe. A signal ends that, and so does a standard error that
//! nobody reads: then the status has to say it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::phases::Phases;
use super::printing::Printing;
use super::{Job, PARTING, READING};
use crate::ask::QUESTION;
use crate::verdict::{self, Verdict};
use kw_base::Tick;
use kw_base::sync::Arc;
use kw_sys::signals::Signals;
use kw_sys::{clock, signals};

/// How long the verdict lets what ranks printed go first.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait without a look at the time.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Waiting for the readers of our output, when all ranks are gone.
struct Last {
    printing: Printing,
    phases: Phases,
    signals: Signals,
    /// Rings when an output is written out.
    written: Arc<OwnedFd>,
    begin: Tick,
    /// When something was last seen to be read, or a signal came.
    since: Tick,
    /// What was left to write then.
    left: usize,
    /// Whether the verdict has been said.
    said: bool,
}

impl Job {
    /// Removes what is left, says the verdict, and writes out what is left; the status to exit
    /// with.
    pub(super) fn finish(mut self) -> u8 {
        let failed = self.phases.has_failed();
        self.part(failed);
        let stay = match failed {
            true => {
                self.hosts.sweep();
                Vec::new()
            }
            false => self.hosts.left_behind(&self.guard),
        };
        self.drain();
        if !stay.is_empty() {
            let sentence = verdict::who_stays(&kw_sys::host::name(), &stay);
            self.printing.say(sentence);
        }
        self.tell_profile();
        self.tell_conflicts();
        self.tell_left();
        if let Some((rank, crash)) = self.crash.take() {
            self.printing.say(crash.text(rank));
        }
        let now = clock::now();
        let last = Last {
            printing: self.printing,
            phases: self.phases,
            signals: self.signals,
            written: self.written,
            begin: now,
            since: now,
            left: 0,
            said: false,
        };
        let status = last.write_out();
        self.guard.dismiss();
        status
    }

    /// Ends the helpers (`kill`: and all that is left of the job on their hosts), and waits for
    /// them to go.
    pub(super) fn part(&mut self, kill: bool) {
        self.hosts.part(kill);
        let until = clock::now() + PARTING;
        self.phases.part(until);
        while !self.hosts.have_parted() && clock::now() < until {
            // an error here is the end of the job's end
            if self.turn().is_err() {
                return;
            }
        }
    }

    /// Reads what ended ranks have left in their pipes.
    fn drain(&mut self) {
        for rank in self.plan.here() {
            for which in 0..2 {
                let rank = rank as u32;
                while self.hosts.here.has_output(rank, which) && self.on_output(rank, which) {}
            }
        }
        self.printing.flush_all();
    }
}

impl Last {
    /// Has all be written that was printed, the verdict among it; the status to exit with.
    fn write_out(mut self) -> u8 {
        self.printing.close(0);
        let all = self.await_sink(0);
        if let (false, None, Some(signal)) = (all, self.phases.verdict(), self.phases.asked()) {
            let (name, left) = (signals::name(signal), self.printing.backlog(0));
            self.phases.remember(Verdict::new(
                128 + signal as u8,
                format!("{name} came before {left} bytes of the job's output were read"),
            ));
        }
        self.say_verdict();
        self.printing.close(1);
        self.since = clock::now();
        self.await_sink(1);
        // standard error itself may have failed: then only the status says so
        self.take_failures();
        self.phases.verdict().map_or(0, |v| v.status)
    }

    /// Waits until a sink is written out, or nobody should wait any longer; whether it is.
    fn await_sink(&mut self, which: usize) -> bool {
        loop {
            let done = self.printing.is_done(which);
            self.take_failures();
            let now = clock::now();
            if done || now.since(self.begin) >= FIRST {
                self.say_verdict();
            }
            let left = self.printing.backlog(0) + self.printing.backlog(1);
            if left != self.left {
                (self.left, self.since) = (left, now);
            }
            if done || self.is_hurried() && now.since(self.since) >= READING {
                return done;
            }
            self.await_bell();
            if self.take_signals() {
                self.since = clock::now();
            }
        }
    }

    /// Whether a reader who reads nothing is not waited for: we were asked to end, or cannot say
    /// the verdict.
    fn is_hurried(&self) -> bool {
        let unsaid = self.phases.verdict().is_some() && self.printing.backlog(1) > 0;
        self.phases.asked().is_some() || unsaid
    }

    fn say_verdict(&mut self) {
        if let (false, Some(verdict)) = (self.said, self.phases.verdict()) {
            self.said = true;
            verdict.tell_parent();
            self.printing
                .say(format!("mpiexec: {}\n", verdict.sentence));
        }
    }

    fn take_failures(&mut self) {
        for verdict in self.printing.failures() {
            self.phases.remember(verdict);
        }
    }

    /// Until a sink is written out or a signal comes, but not for long.
    fn await_bell(&self) {
        let mut fds = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.written, PollFlags::IN),
        ];
        let most = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK_EVERY.subsec_nanos() as _,
        };
        let _ = poll(&mut fds, Some(&most));
        // does not block: the bell is there to be taken
        let _ = rustix::io::read(&*self.written, &mut [0u8; 8]);
    }

    /// Handles signals now that there is nobody to pass them on to; whether one asks us to end.
    fn take_signals(&mut self) -> bool {
        let mut asks = false;
        while let Some(came) = self.signals.poll_signal() {
            match came.number {
                signals::TSTP => signals::stop_self(),
                signals::CHLD | signals::CONT | signals::USR1 | signals::USR2 | QUESTION => {}
                number => {
                    self.phases.on_last_signal(number, clock::now());
                    asks = true;
                }
            }
        }
        asks
    }
}
