//! The end of mpiexec: remaining processes are removed, remaining output is written out, and the
//! verdict is printed.
//!
//! Neither the verdict nor a signal waits for a reader of our output. The sentence goes to standard
//! error at once. After it mpiexec stays, without ranks, for as long as a reader may still take
//! what they printed, like any program in a pipe. A signal ends that, and so does a blocked
//! standard error: then only the exit status reports the verdict.

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

/// How long the verdict waits for earlier output of ranks.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait without a check of the time.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// State of the wait for the readers of our output, when all ranks are gone.
struct Last {
    printing: Printing,
    phases: Phases,
    signals: Signals,
    /// Signals that an output is written out.
    written: Arc<OwnedFd>,
    begin: Tick,
    /// Time of the last progress of a reader, or of the last signal.
    since: Tick,
    /// Number of unwritten bytes then.
    left: usize,
    /// Whether the verdict has been printed.
    printed: bool,
}

impl Job {
    /// Removes remaining processes, prints the verdict, and writes out the remaining output;
    /// returns the status to exit with.
    pub(super) fn finish(mut self) -> u8 {
        let failed = self.common.ending.phases.has_failed();
        self.part(failed);
        let Job {
            mut common, guard, ..
        } = self;
        let stay = match failed {
            true => {
                common.hosts.sweep();
                Vec::new()
            }
            false => common.hosts.left_behind(&guard),
        };
        let here = common.plan.here();
        common.streams.drain(&mut common.hosts, here);
        if !stay.is_empty() {
            let sentence = verdict::who_stays(&kw_sys::host::name(), &stay);
            common.say(sentence);
        }
        self.profile.tell(&mut common);
        self.hang.tell_conflicts(&common);
        self.hang.tell_left(&common);
        if let Some(text) = common.ending.take_crash() {
            common.say(text);
        }
        let now = clock::now();
        let last = Last {
            printing: common.streams.printing,
            phases: common.ending.phases,
            signals: self.signals,
            written: common.streams.written,
            begin: now,
            since: now,
            left: 0,
            printed: false,
        };
        let status = last.write_out();
        guard.dismiss();
        status
    }

    /// Ends the helpers (with `kill` also all remaining processes of the job on their hosts), and
    /// waits until they are gone.
    pub(super) fn part(&mut self, kill: bool) {
        self.common.hosts.part(kill);
        let until = clock::now() + PARTING;
        self.common.ending.phases.part(until);
        while !self.common.hosts.have_parted() && clock::now() < until {
            // an error here ends the shutdown of the job
            if self.turn().is_err() {
                return;
            }
        }
    }
}

impl Last {
    /// Waits until all output is written, the verdict included; returns the status to exit with.
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

    /// Waits until a sink is written out, or the wait is given up; returns whether it is written
    /// out.
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

    /// Whether a blocked reader is given up: we were asked to end, or cannot print the verdict.
    fn is_hurried(&self) -> bool {
        let unprinted = self.phases.verdict().is_some() && self.printing.backlog(1) > 0;
        self.phases.asked().is_some() || unprinted
    }

    fn say_verdict(&mut self) {
        if let (false, Some(verdict)) = (self.printed, self.phases.verdict()) {
            self.printed = true;
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

    /// Waits until a sink is written out or a signal comes, but not for long.
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
        // does not block: the eventfd is readable
        let _ = rustix::io::read(&*self.written, &mut [0u8; 8]);
    }

    /// Handles signals now that no rank can receive them; returns whether one asks us to end.
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
