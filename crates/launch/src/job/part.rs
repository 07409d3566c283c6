//! The last things: what is left is removed, then written out, and the verdict is said.
//!
//! Neither the verdict nor a signal waits for a reader of our output. The sentence goes to standard
//! error at once. After it we stay, without ranks, for as long as somebody may still read what they
//! printed, like any program in a pipe. A signal ends that, and so does a standard error that
//! nobody reads: then the status has to say it.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::end::unwritable;
use super::{Job, PARTING, Phase, READING};
use crate::remote::Remote;
use crate::verdict::{self, Verdict};
use kw_base::Tick;
use kw_sys::{clock, process, signals};

/// How long the verdict lets what ranks printed go first.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait without a look at the time.
const LOOK: Duration = Duration::from_millis(100);

/// Waiting for the readers of our output.
struct Wait {
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
        let failed = self.phase != Phase::Running;
        self.part(failed);
        let stay = match failed {
            true => {
                process::sweep(&self.tag);
                Vec::new()
            }
            false => process::left_behind(&self.tag),
        };
        self.drain();
        if !stay.is_empty() {
            let sentence = verdict::who_stays(&kw_sys::host::name(), &stay);
            self.sinks[1].push(sentence.into_bytes());
        }
        if let Some((rank, crash)) = self.crash.take() {
            self.sinks[1].push(crash.text(rank).into_bytes());
        }
        self.write_out();
        self.guard.dismiss();
        self.verdict.map_or(0, |v| v.status)
    }

    /// Has both sinks write what they hold, the verdict among it.
    fn write_out(&mut self) {
        let now = clock::now();
        let mut wait = Wait {
            begin: now,
            since: now,
            left: 0,
            said: false,
        };
        self.sinks[0].close();
        let all = self.await_sink(0, &mut wait);
        if let (false, None, Some((signal, _))) = (all, &self.verdict, self.asked) {
            let (name, left) = (signals::name(signal), self.sinks[0].backlog());
            self.remember(Verdict::new(
                128 + signal as u8,
                format!("{name} came before {left} bytes of the job's output were read"),
            ));
        }
        self.say_verdict(&mut wait);
        self.sinks[1].close();
        wait.since = clock::now();
        self.await_sink(1, &mut wait);
        // standard error itself may have failed: then only the status says so
        self.take_failures();
    }

    /// Waits until a sink is written out, or nobody should wait any longer; whether it is.
    fn await_sink(&mut self, which: usize, wait: &mut Wait) -> bool {
        loop {
            let done = self.sinks[which].is_done();
            self.take_failures();
            let now = clock::now();
            if done || now.since(wait.begin) >= FIRST {
                self.say_verdict(wait);
            }
            let left = self.sinks.iter().map(|s| s.backlog()).sum();
            if left != wait.left {
                (wait.left, wait.since) = (left, now);
            }
            if done || self.is_hurried() && now.since(wait.since) >= READING {
                return done;
            }
            self.await_bell();
            if self.take_last_signals() {
                wait.since = clock::now();
            }
        }
    }

    /// Whether a reader who reads nothing is not waited for: we were asked to end, or cannot say
    /// the verdict.
    fn is_hurried(&self) -> bool {
        self.asked.is_some() || self.verdict.is_some() && self.sinks[1].backlog() > 0
    }

    fn say_verdict(&mut self, wait: &mut Wait) {
        let Some(verdict) = &self.verdict else { return };
        if !wait.said {
            wait.said = true;
            self.sinks[1].push(format!("mpiexec: {}\n", verdict.sentence).into_bytes());
        }
    }

    fn take_failures(&mut self) {
        for (sink, name) in [(0, "output"), (1, "error")] {
            if let Some(e) = self.sinks[sink].failure() {
                self.remember(unwritable(name, &e));
            }
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
            tv_nsec: LOOK.subsec_nanos() as _,
        };
        let _ = poll(&mut fds, Some(&most));
        // does not block: the bell is there to be taken
        let _ = rustix::io::read(&*self.written, &mut [0u8; 8]);
    }

    /// Handles signals now that there is nobody to pass them on to; whether one asks us to end.
    fn take_last_signals(&mut self) -> bool {
        let mut asks = false;
        while let Some(came) = self.signals.poll_signal() {
            match came.number {
                signals::TSTP => signals::stop_self(),
                signals::CHLD | signals::CONT | signals::USR1 | signals::USR2 => {}
                number => {
                    self.asked = Some((number, clock::now()));
                    asks = true;
                }
            }
        }
        asks
    }

    /// Ends the helpers (`kill`: and all that is left of the job on their hosts), and waits for
    /// them to go.
    pub(super) fn part(&mut self, kill: bool) {
        for remote in &mut self.away {
            remote.part(kill, &self.epoll);
        }
        let until = clock::now() + PARTING;
        self.phase = Phase::Killing { until };
        while !self.away.iter().all(Remote::is_gone) && clock::now() < until {
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
                while self.here.has_output(rank as u32, which) && self.on_output(rank as u32, which)
                {
                }
            }
        }
        self.flush_unfinished();
    }
}
