//! Events of a running job, among them signals and deaths of processes.

use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::{Job, choices};
use crate::ask::{QUESTION, Question};
use crate::inquiry::Cause;
use crate::ranks::{Heard, Source};
use crate::verdict::{Ended, Verdict};
use kw_base::Tick;
use kw_start::helper::Report;
use kw_start::pmi::{Effect, Stage};
use kw_sys::{clock, signals};

/// The longest wait, and the longest one while a reader is slow.
const MAX_WAIT: Duration = Duration::from_secs(1);
const SLOW_READER_WAIT: Duration = Duration::from_millis(5);

impl Job {
    /// Waits for events and handles them; signals (and so deaths) before messages of the ranks.
    pub(super) fn turn(&mut self) -> Result<(), Verdict> {
        let common = &mut self.common;
        if common.streams.relay.watch(&common.hosts.epoll) {
            self.on_input();
        }
        let mut events = Vec::with_capacity(64);
        let wait = self.patience(clock::now());
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.common.hosts.epoll, room, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(Verdict::system("wait for events", e)),
        }
        let sources: Vec<Source> = events.iter().map(|e| Source::of(e.data.u64())).collect();
        self.take_signals();
        for source in sources {
            self.on_source(source);
        }
        self.on_time(clock::now());
        Ok(())
    }

    fn on_source(&mut self, source: Source) {
        let common = &mut self.common;
        match source {
            Source::Signals => {}
            Source::Input => self.on_input(),
            Source::Wire(r) => self.on_wire(r),
            Source::Output(r, which) => {
                common.streams.on_output(&mut common.hosts, r, which);
            }
            Source::Helper(m) => self.on_helper(m),
            Source::ToHelper(m) => common.hosts.push(m),
            Source::Complaint(m) => common.streams.on_complaint(&mut common.hosts, m),
            Source::Parent => {
                let verdict = common.identity.on_parent(&common.hosts.epoll);
                if let Some(verdict) = verdict {
                    common.fail(verdict, clock::now());
                }
            }
        }
    }

    /// How long the loop may sleep without an event.
    fn patience(&self, now: Tick) -> Timespec {
        let (streams, phases) = (&self.common.streams, &self.common.ending.phases);
        let slow = streams.printing.is_blocked() || streams.relay.is_pending();
        let look = now + if slow { SLOW_READER_WAIT } else { MAX_WAIT };
        let next = phases.next().min(streams.printing.next()).min(look);
        let next = next
            .min(self.hang.next(&self.common))
            .min(self.profile.next())
            .min(self.trace.next());
        let left = next.since(now);
        Timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        }
    }

    fn on_time(&mut self, now: Tick) {
        let common = &mut self.common;
        for verdict in common.streams.on_time(&mut common.hosts, now) {
            common.fail(verdict, now);
        }
        for (at, why) in common.hosts.ask(now) {
            common.on_lost(at, &why);
        }
        if let Some(sentence) = self.late.due(now, &common.server) {
            common.say(format!("mpiexec: {sentence}\n"));
        }
        self.hang.inquire(common, now);
        self.profile.show(common, now);
        self.trace.take(common, now);
        if let Some(action) = common.ending.phases.on_time(now) {
            common.hosts.carry_out(action);
        }
    }

    fn on_input(&mut self) {
        let common = &mut self.common;
        let machine = common.machine(0);
        common.streams.on_input(&mut common.hosts, machine);
    }

    /// Handles all signals that have arrived, and all deaths.
    pub(super) fn take_signals(&mut self) {
        while let Some(came) = self.signals.poll_signal() {
            match came.number {
                signals::CHLD => {}
                signals::TSTP => self.common.hosts.pause(),
                signals::CONT | signals::USR1 | signals::USR2 => {
                    self.common.hosts.signal_all(came.number)
                }
                QUESTION if came.value == Question::Choices as i32 => choices::print(&self.common),
                number if self.is_question(number, clock::now()) => {}
                number => {
                    if let Some(action) = self.common.ending.phases.on_signal(number, clock::now())
                    {
                        self.common.hosts.carry_out(action);
                    }
                }
            }
        }
        self.reap();
    }

    fn reap(&mut self) {
        while let Some((pid, rank, ended)) = self.common.hosts.here.reap() {
            if let Some(rank) = rank {
                self.on_wire(rank);
                self.on_ended(rank, ended);
            } else if let Some(at) = self.common.hosts.helper_of(pid) {
                // its last messages are still in its pipes
                let machine = self.common.hosts.away[at].machine;
                while self.common.hosts.away[at].has_words() {
                    self.on_helper(machine);
                }
                let why = self.common.hosts.away[at].why_ended();
                self.common.on_lost(at, &why);
            }
        }
    }

    /// Handles the end of a rank, when all its messages are known.
    pub(super) fn on_ended(&mut self, rank: u32, ended: Ended) {
        let common = &mut self.common;
        if common.ending.has_ended(rank) {
            return;
        }
        common.ending.note_end(rank, ended, &common.hosts);
        if common.plan.debug && rank as usize == common.plan.reader {
            kw_sys::process::take_foreground();
        }
        self.profile.keep(&common.hosts, rank);
        self.trace.keep(&mut common.hosts, rank);
        let stage = common.server.stage(rank);
        let open = matches!(stage, Stage::Speaking | Stage::Waiting);
        let action = common.ending.on_ended(&common.plan, rank, ended, open);
        if let Some(action) = action {
            common.hosts.carry_out(action);
        }
        common.server.left(rank, &mut self.effects);
        self.carry_out();
    }

    /// Handles PMI input from a rank here, or room for more output to it.
    pub(super) fn on_wire(&mut self, rank: u32) {
        while let Heard::Bytes(bytes) = self.common.hosts.here.hear_wire(rank) {
            self.on_pmi(rank, &bytes);
        }
        let hosts = &mut self.common.hosts;
        hosts.here.say(&hosts.epoll, rank, &[]);
    }

    fn on_pmi(&mut self, rank: u32, bytes: &[u8]) {
        self.common.server.handle(rank, bytes, &mut self.effects);
        self.carry_out();
    }

    /// Carries out the effects that the PMI server requests.
    pub(super) fn carry_out(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            let common = &mut self.common;
            let (ending, plan) = (&mut common.ending, &common.plan);
            match effect {
                Effect::Send { rank, line } => common.tell(rank, line.into_bytes()),
                Effect::Abort {
                    rank,
                    status,
                    message,
                } => ending.on_abort(plan, rank, status, &message),
                Effect::BrokenFence { waiting, missing } => {
                    ending.on_broken_fence(plan, waiting, missing);
                }
                Effect::Waits { rank, line } => self.hang.on_waits(common, rank, &line),
                Effect::Garbage { rank, error } => ending.on_garbage(plan, rank, &error),
            }
        }
    }

    /// Handles a message from another host.
    pub(super) fn on_helper(&mut self, machine: u32) {
        let Some(at) = self.common.hosts.helper(machine) else {
            return;
        };
        match self.common.hosts.away[at].hear(clock::now()) {
            Ok(reports) => {
                for report in reports {
                    self.on_report(at, report);
                }
            }
            Err(why) => self.common.on_lost(at, &why),
        }
    }

    fn on_report(&mut self, at: usize, report: Report) {
        let common = &mut self.common;
        let machine = common.hosts.away[at].machine;
        match report {
            Report::Wire(rank, _)
            | Report::Ended { rank, .. }
            | Report::Calls { rank, .. }
            | Report::Trace(rank, _)
                if !common.ending.is_known(rank) => {}
            Report::Wire(rank, bytes) => self.on_pmi(rank, &bytes),
            Report::Output(rank, which @ 0..=1, bytes) => {
                common
                    .streams
                    .on_printed(&mut common.hosts, rank, which as usize, &bytes);
            }
            Report::Ended {
                rank,
                status,
                signal,
                core,
            } => self.on_ended(
                rank,
                match signal {
                    0 => Ended::Exit(status as i32),
                    s => Ended::Signal(s as i32, core),
                },
            ),
            Report::Failed(status, sentence) => {
                common
                    .ending
                    .on_failed(&common.plan, machine, status, sentence);
            }
            Report::Taken => common.streams.relay.on_taken(),
            Report::Say(line) => common.say(line),
            Report::Calls { rank, over, calls } => self.profile.on_calls(rank, over, &calls),
            Report::AllCalls => self.profile.on_all_calls(machine),
            Report::Trace(rank, batch) => self.trace.on_batch(machine, rank, &batch),
            Report::Clock(asked, theirs) => {
                self.trace
                    .on_clock(common, machine, asked, theirs, clock::now());
            }
            // messages that this version never sends
            _ => {}
        }
    }

    /// Whether a signal is a question, which is asked then.
    fn is_question(&mut self, number: i32, now: Tick) -> bool {
        if !self.hang.is_question(number, now) {
            return false;
        }
        self.hang.ask(&mut self.common, Cause::Asked, now);
        self.profile.ask(&mut self.common, now);
        true
    }
}
