//! What happens while a job runs.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::{BACKLOG, Job, Phase, UNFINISHED};
use crate::verdict::Verdict;
use kw_base::Tick;
use kw_core::pmi::Effect;
use kw_sys::clock;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Signals,
    Input,
    Wire(u32),
    Output(u32, usize),
}

impl Source {
    fn number(self) -> u64 {
        match self {
            Source::Signals => 0,
            Source::Input => 1,
            Source::Wire(r) => 2 | u64::from(r) << 8,
            Source::Output(r, which) => (3 + which as u64) | u64::from(r) << 8,
        }
    }

    fn of(number: u64) -> Source {
        let rank = (number >> 8) as u32;
        match number & 255 {
            0 => Source::Signals,
            1 => Source::Input,
            2 => Source::Wire(rank),
            n => Source::Output(rank, n as usize - 3),
        }
    }
}

/// Watches a descriptor for input.
pub(super) fn watch(epoll: &OwnedFd, fd: impl AsFd, source: Source) -> rustix::io::Result<()> {
    let data = epoll::EventData::new_u64(source.number());
    epoll::add(epoll, fd, data, epoll::EventFlags::IN)
}

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
                Source::Output(r, which) => self.on_output(r, which),
            }
        }
        self.on_time(clock::now());
        Ok(())
    }

    /// How long there is nothing to do without an event.
    fn patience(&self, now: Tick) -> Timespec {
        let phase = match self.phase {
            Phase::Running => Tick::NEVER,
            Phase::Failing { until } | Phase::Ending { until } | Phase::Killing { until } => until,
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
        self.move_phase(now);
    }

    fn watch_input(&mut self) {
        let wants = self.relay.as_ref().is_some_and(|r| r.wants_input());
        if wants != self.relay_watched {
            let stdin = rustix::stdio::stdin();
            let done = match wants {
                true => watch(&self.epoll, stdin, Source::Input),
                false => epoll::delete(&self.epoll, stdin),
            };
            self.relay_watched = wants && done.is_ok();
        }
    }

    fn on_input(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.on_input();
        }
    }

    /// A rank said something to the PMI server, or can be told more.
    pub(super) fn on_wire(&mut self, rank: u32) {
        let mut some = [0u8; 16384];
        loop {
            let Some(wire) = &self.ranks[rank as usize].wire else {
                return;
            };
            match rustix::io::read(wire, &mut some) {
                Ok(n @ 1..) => {
                    self.server.handle(rank, &some[..n], &mut self.effects);
                    self.carry_out();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Ok(0) | Err(_) => {
                    self.ranks[rank as usize].wire = None;
                    return;
                }
            }
        }
        self.send(rank);
    }

    /// Does what the PMI server wants.
    pub(super) fn carry_out(&mut self) {
        let mut touched = Vec::new();
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Send { rank, line } => {
                    self.ranks[rank as usize]
                        .unsent
                        .extend_from_slice(line.as_bytes());
                    touched.push(rank);
                }
                Effect::Abort {
                    rank,
                    status,
                    message,
                } => self.on_abort(rank, status, &message),
                Effect::Stuck { waiting, missing } => self.on_stuck(waiting, missing),
                Effect::Garbage { rank, error } => self.on_garbage(rank, &error.0),
            }
        }
        touched.dedup();
        for rank in touched {
            self.send(rank);
        }
    }

    /// Sends what is due to a rank; watches for room when it has none.
    fn send(&mut self, rank: u32) {
        let r = &mut self.ranks[rank as usize];
        let Some(wire) = &r.wire else { return };
        if r.unsent.is_empty() {
            return;
        }
        let before = r.unsent.len();
        while !r.unsent.is_empty() {
            match rustix::net::send(wire, &r.unsent, rustix::net::SendFlags::NOSIGNAL) {
                Ok(n) => drop(r.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return r.unsent.clear(),
            }
        }
        let mut flags = epoll::EventFlags::IN;
        if !r.unsent.is_empty() {
            flags |= epoll::EventFlags::OUT;
        } else if before < 4096 {
            return;
        }
        let data = epoll::EventData::new_u64(Source::Wire(rank).number());
        let _ = epoll::modify(&self.epoll, wire, data, flags);
    }

    /// A rank printed something.
    pub(super) fn on_output(&mut self, rank: u32, which: usize) {
        let mut some = [0u8; 65536];
        let Some(pipe) = &mut self.ranks[rank as usize].pipes[which] else {
            return;
        };
        match rustix::io::read(&pipe.fd, &mut some) {
            Ok(n @ 1..) => {
                let mut out = Vec::with_capacity(n + 64);
                pipe.splitter.feed(&some[..n], &mut out);
                if pipe.splitter.is_pending() && self.flush_at.is_none() {
                    self.flush_at = Some(clock::now() + UNFINISHED);
                }
                self.sinks[which].push(out);
                self.block_if_full();
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(0) | Err(_) => {
                let mut out = Vec::new();
                pipe.splitter.flush(&mut out);
                self.sinks[which].push(out);
                self.ranks[rank as usize].pipes[which] = None;
            }
        }
    }

    /// Passes on lines that have no end yet.
    pub(super) fn flush_unfinished(&mut self) {
        self.flush_at = None;
        for rank in &mut self.ranks {
            for (which, pipe) in rank.pipes.iter_mut().enumerate() {
                let mut out = Vec::new();
                if let Some(pipe) = pipe {
                    pipe.splitter.flush(&mut out);
                }
                self.sinks[which].push(out);
            }
        }
    }

    fn block_if_full(&mut self) {
        if !self.out_blocked && self.sinks.iter().any(|s| s.backlog() > BACKLOG) {
            self.out_blocked = true;
            self.watch_outputs(epoll::EventFlags::empty());
        }
    }

    fn unblock(&mut self) {
        if self.out_blocked && self.sinks.iter().all(|s| s.backlog() < BACKLOG / 2) {
            self.out_blocked = false;
            self.watch_outputs(epoll::EventFlags::IN);
        }
    }

    fn watch_outputs(&self, flags: epoll::EventFlags) {
        for (r, rank) in (0u32..).zip(&self.ranks) {
            for (which, pipe) in rank.pipes.iter().enumerate() {
                if let Some(pipe) = pipe {
                    let data = epoll::EventData::new_u64(Source::Output(r, which).number());
                    let _ = epoll::modify(&self.epoll, &pipe.fd, data, flags);
                }
            }
        }
    }
}
