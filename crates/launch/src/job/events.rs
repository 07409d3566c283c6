//! Events of a running job.

use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::Job;
use crate::ranks::{Heard, Source};
use crate::verdict::{Ended, Verdict};
use kw_base::Tick;
use kw_start::helper::Report;
use kw_start::pmi::Effect;
use kw_sys::clock;

/// The longest wait, and the longest one while a reader is slow.
const MAX_WAIT: Duration = Duration::from_secs(1);
const SLOW_READER_WAIT: Duration = Duration::from_millis(5);

impl Job {
    /// Waits for events and handles them; signals (and so deaths) before messages of the ranks.
    pub(super) fn turn(&mut self) -> Result<(), Verdict> {
        if self.relay.watch(&self.hosts.epoll) {
            self.on_input();
        }
        let mut events = Vec::with_capacity(64);
        let wait = self.patience(clock::now());
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.hosts.epoll, room, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(Verdict::system("wait for events", e)),
        }
        let sources: Vec<Source> = events.iter().map(|e| Source::of(e.data.u64())).collect();
        self.take_signals();
        for source in sources {
            match source {
                Source::Signals => {}
                Source::Input => self.on_input(),
                Source::Wire(r) => self.on_wire(r),
                Source::Output(r, which) => drop(self.on_output(r, which)),
                Source::Helper(m) => self.on_helper(m),
                Source::ToHelper(m) => self.hosts.push(m),
                Source::Complaint(m) => self.on_complaint(m),
                Source::Parent => self.on_parent(clock::now()),
            }
        }
        self.on_time(clock::now());
        Ok(())
    }

    /// How long the loop may sleep without an event.
    fn patience(&self, now: Tick) -> Timespec {
        let slow = self.printing.is_blocked() || self.relay.is_pending();
        let look = now + if slow { SLOW_READER_WAIT } else { MAX_WAIT };
        let next = self.phases.next().min(self.printing.next()).min(look);
        let next = next
            .min(self.next_inquiry())
            .min(self.profile.next())
            .min(self.trace.next());
        let left = next.since(now);
        Timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        }
    }

    fn on_time(&mut self, now: Tick) {
        self.printing.on_time(now);
        self.relay.push();
        self.note_output();
        for verdict in self.printing.failures() {
            self.phases.fail(verdict, now);
        }
        for (at, why) in self.hosts.ask(now) {
            self.on_lost(at, &why);
        }
        if let Some(sentence) = self.late.due(now, &self.server) {
            self.printing.say(format!("mpiexec: {sentence}\n"));
        }
        self.inquire(now);
        self.show_profile(now);
        self.take_traces(now);
        if let Some(action) = self.phases.on_time(now) {
            self.hosts.carry_out(action);
        }
    }

    fn on_input(&mut self) {
        if let Some(piece) = self.relay.on_input() {
            self.hosts.pass_input(self.machine(0), piece);
        }
    }

    /// The machine of a rank.
    pub(super) fn machine(&self, rank: u32) -> u32 {
        self.plan.ranks[rank as usize].machine as u32
    }

    /// Handles PMI input from a rank here, or room for more output to it.
    pub(super) fn on_wire(&mut self, rank: u32) {
        while let Heard::Bytes(bytes) = self.hosts.here.hear_wire(rank) {
            self.on_pmi(rank, &bytes);
        }
        self.hosts.here.say(&self.hosts.epoll, rank, &[]);
    }

    fn on_pmi(&mut self, rank: u32, bytes: &[u8]) {
        self.server.handle(rank, bytes, &mut self.effects);
        self.carry_out();
    }

    /// Carries out the effects that the PMI server requests.
    pub(super) fn carry_out(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Send { rank, line } => {
                    let machine = self.machine(rank);
                    self.hosts.tell(machine, rank, line.into_bytes());
                }
                Effect::Abort {
                    rank,
                    status,
                    message,
                } => self.on_abort(rank, status, &message),
                Effect::BrokenFence { waiting, missing } => self.on_broken_fence(waiting, missing),
                Effect::Waits { rank, line } => self.on_waits(rank, &line),
                Effect::Garbage { rank, error } => self.on_garbage(rank, &error),
            }
        }
    }

    /// Handles output of a rank here; returns whether there was anything to read.
    pub(super) fn on_output(&mut self, rank: u32, which: usize) -> bool {
        match self.hosts.here.hear_output(rank, which) {
            Heard::Bytes(bytes) => self.on_printed(rank, which, &bytes),
            Heard::Nothing => {}
            Heard::End => {
                self.printing.flush(rank, which);
                return false;
            }
        }
        true
    }

    /// Handles this output of a rank.
    fn on_printed(&mut self, rank: u32, which: usize, bytes: &[u8]) {
        self.printing.feed(rank, which, bytes, clock::now());
        self.note_output();
    }

    /// Pauses the output of ranks while the reader of our output is blocked.
    fn note_output(&mut self) {
        if let Some(wanted) = self.printing.changed() {
            self.hosts.want_output(wanted);
        }
    }

    fn on_complaint(&mut self, machine: u32) {
        if let Some(text) = self.hosts.hear_complaint(machine) {
            self.printing.say(text);
        }
    }

    /// Handles a message from another host.
    pub(super) fn on_helper(&mut self, machine: u32) {
        let Some(at) = self.hosts.helper(machine) else {
            return;
        };
        match self.hosts.away[at].hear(clock::now()) {
            Ok(reports) => {
                for report in reports {
                    self.on_report(at, report);
                }
            }
            Err(why) => self.on_lost(at, &why),
        }
    }

    fn on_report(&mut self, at: usize, report: Report) {
        let known = |rank: u32| (rank as usize) < self.ended.len();
        match report {
            Report::Wire(rank, bytes) if known(rank) => self.on_pmi(rank, &bytes),
            Report::Output(rank, which @ 0..=1, bytes) => {
                self.on_printed(rank, which as usize, &bytes)
            }
            Report::Ended {
                rank,
                status,
                signal,
                core,
            } if known(rank) => self.on_ended(
                rank,
                match signal {
                    0 => Ended::Exit(status as i32),
                    s => Ended::Signal(s as i32, core),
                },
            ),
            Report::Failed(status, sentence) => self.on_failed(at, status, sentence),
            Report::Taken => self.relay.on_taken(),
            Report::Say(line) => self.printing.say(line),
            Report::Calls { rank, over, calls } if known(rank) => self.on_calls(rank, over, &calls),
            Report::AllCalls => self.on_all_calls(at),
            Report::Trace(rank, batch) if known(rank) => self.on_batch(at, rank, &batch),
            Report::Clock(asked, theirs) => self.on_clock(at, asked, theirs, clock::now()),
            // messages that this version never sends
            _ => {}
        }
    }
}
