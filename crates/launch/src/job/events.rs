//! What happens while a job runs.

use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::{BACKLOG, Job, Phase, UNFINISHED};
use crate::ranks::{Heard, Source, watch};
use crate::verdict::{Ended, Verdict};
use kw_base::Tick;
use kw_start::helper::{Order, Report};
use kw_start::pmi::Effect;
use kw_sys::clock;

impl Job {
    /// Waits for events and handles them; signals (and so deaths) before what ranks say.
    pub(super) fn turn(&mut self) -> Result<(), Verdict> {
        self.watch_input();
        let mut events = Vec::with_capacity(64);
        let wait = self.patience(clock::now());
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&wait),
        ) {
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
                Source::ToHelper(m) => self.push_helper(m),
                Source::Complaint(m) => self.on_complaint(m),
            }
        }
        self.on_time(clock::now());
        Ok(())
    }

    /// How long there is nothing to do without an event.
    fn patience(&self, now: Tick) -> Timespec {
        let phase = match self.phase {
            Phase::Running => Tick::NEVER,
            Phase::Gathering { until }
            | Phase::Failing { until }
            | Phase::Ending { until }
            | Phase::Killing { until } => until,
        };
        let soon = now + Duration::from_millis(5);
        let slow = self.out_blocked || self.relay.as_ref().is_some_and(|r| r.is_pending());
        let next = phase
            .min(self.flush_at.unwrap_or(Tick::NEVER))
            .min(if slow {
                soon
            } else {
                now + Duration::from_secs(1)
            });
        let left = next.since(now);
        Timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        }
    }

    fn on_time(&mut self, now: Tick) {
        if self.flush_at.is_some_and(|t| t <= now) {
            self.flush_unfinished();
        }
        if let Some(relay) = &mut self.relay {
            relay.push();
        }
        self.unblock();
        self.check_sinks();
        self.ask_helpers(now);
        if let Some(sentence) = self.late.due(now, &self.server) {
            self.sinks[1].push(format!("mpiexec: {sentence}\n").into_bytes());
        }
        self.move_phase(now);
    }

    fn watch_input(&mut self) {
        let wants = self.relay.as_ref().is_some_and(|r| r.wants_input());
        if wants == self.relay_watched {
            return;
        }
        let stdin = rustix::stdio::stdin();
        let done = match wants {
            true => watch(&self.epoll, stdin, Source::Input),
            false => epoll::delete(&self.epoll, stdin),
        };
        self.relay_watched = wants && done.is_ok();
        // a file cannot be watched, it can always be read; a closed input is at its end
        if done.is_err() && wants {
            self.on_input();
        }
    }

    fn on_input(&mut self) {
        let piece = self.relay.as_mut().and_then(|r| r.on_input());
        let Some(piece) = piece else { return };
        let machine = self.plan.ranks[0].machine as u32;
        if let Some(remote) = self.away.iter_mut().find(|r| r.machine == machine) {
            remote.say(&self.epoll, &Order::Input(piece));
        }
    }

    /// A rank here said something to the PMI server, or can be told more.
    pub(super) fn on_wire(&mut self, rank: u32) {
        while let Heard::Bytes(bytes) = self.here.hear_wire(rank) {
            self.on_pmi(rank, &bytes);
        }
        self.here.say(&self.epoll, rank, &[]);
    }

    fn on_pmi(&mut self, rank: u32, bytes: &[u8]) {
        self.joined = true;
        self.server.handle(rank, bytes, &mut self.effects);
        self.carry_out();
    }

    /// Does what the PMI server wants.
    pub(super) fn carry_out(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Send { rank, line } => self.tell(rank, line.into_bytes()),
                Effect::Abort {
                    rank,
                    status,
                    message,
                } => self.on_abort(rank, status, &message),
                Effect::Stuck { waiting, missing } => self.on_stuck(waiting, missing),
                Effect::Garbage { rank, error } => self.on_garbage(rank, &error.0),
            }
        }
    }

    /// Sends a rank bytes of PMI.
    fn tell(&mut self, rank: u32, bytes: Vec<u8>) {
        let machine = self.plan.ranks[rank as usize].machine as u32;
        match self.away.iter_mut().find(|r| r.machine == machine) {
            Some(remote) => remote.say(&self.epoll, &Order::Wire(rank, bytes)),
            None => self.here.say(&self.epoll, rank, &bytes),
        }
    }

    /// A rank here printed something; whether there was anything to read.
    pub(super) fn on_output(&mut self, rank: u32, which: usize) -> bool {
        match self.here.hear_output(rank, which) {
            Heard::Bytes(bytes) => self.on_printed(rank, which, &bytes),
            Heard::Nothing => {}
            Heard::End => {
                self.flush_one(rank as usize, which);
                return false;
            }
        }
        true
    }

    /// A rank printed this.
    fn on_printed(&mut self, rank: u32, which: usize, bytes: &[u8]) {
        let Some(r) = self.ranks.get_mut(rank as usize) else {
            return;
        };
        let mut out = Vec::with_capacity(bytes.len() + 64);
        r.splitters[which].feed(bytes, &mut out);
        if r.splitters[which].is_pending() && self.flush_at.is_none() {
            self.flush_at = Some(clock::now() + UNFINISHED);
        }
        self.sinks[which].push(out);
        self.block_if_full();
    }

    fn flush_one(&mut self, rank: usize, which: usize) {
        let mut out = Vec::new();
        self.ranks[rank].splitters[which].flush(&mut out);
        self.sinks[which].push(out);
    }

    /// Passes on lines that have no end yet.
    pub(super) fn flush_unfinished(&mut self) {
        self.flush_at = None;
        for rank in 0..self.ranks.len() {
            self.flush_one(rank, 0);
            self.flush_one(rank, 1);
        }
    }

    fn block_if_full(&mut self) {
        if !self.out_blocked && self.sinks.iter().any(|s| s.backlog() > BACKLOG) {
            self.want_output(false);
        }
    }

    fn unblock(&mut self) {
        if self.out_blocked && self.sinks.iter().all(|s| s.backlog() < BACKLOG / 2) {
            self.want_output(true);
        }
    }

    fn want_output(&mut self, on: bool) {
        self.out_blocked = !on;
        self.here.want_output(&self.epoll, on);
        for remote in &mut self.away {
            remote.say(&self.epoll, &Order::Flow(on));
        }
    }

    fn helper(&mut self, machine: u32) -> Option<usize> {
        self.away.iter().position(|r| r.machine == machine)
    }

    fn push_helper(&mut self, machine: u32) {
        if let Some(at) = self.helper(machine) {
            self.away[at].push(&self.epoll);
        }
    }

    fn on_complaint(&mut self, machine: u32) {
        if let Some(at) = self.helper(machine) {
            let text = self.away[at].hear_complaint();
            self.sinks[1].push(text);
        }
    }

    /// Something came from another host.
    pub(super) fn on_helper(&mut self, machine: u32) {
        let Some(at) = self.helper(machine) else {
            return;
        };
        match self.away[at].hear(clock::now()) {
            Ok(reports) => {
                for report in reports {
                    self.on_report(at, report);
                }
            }
            Err(why) => self.on_lost(at, &why),
        }
    }

    fn on_report(&mut self, at: usize, report: Report) {
        let known = |rank: u32| (rank as usize) < self.ranks.len();
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
            Report::Taken => {
                if let Some(relay) = &mut self.relay {
                    relay.on_taken();
                }
            }
            Report::Say(line) => self.sinks[1].push(line.into_bytes()),
            // what this version never says
            _ => {}
        }
    }

    fn ask_helpers(&mut self, now: Tick) {
        for at in 0..self.away.len() {
            if let Err(why) = self.away[at].on_time(now, &self.epoll) {
                self.on_lost(at, &why);
            }
        }
    }
}
