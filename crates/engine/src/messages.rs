//! The messages of one rank: the protocol machine joined to the paths.
//!
//! ```text
//! send_at_once --> short, plain eager, over memory: the cell of the ring is filled in place
//! send ----------> plain eager: one frame to its path, and no request where that takes it whole
//!            \---> anything else: the machine says what to do, the outlet does it (`outlet`)
//! ```
//!
//! [`Messages::poll`] takes incoming data; its effect on collectives and partitioned transfers is
//! handled by the engine ([`crate::Engine::progress`]).

mod outlet;
mod progress;
mod types;

pub use types::{MessageId, ReqId, SendMode, Started, Want};

use crate::paths::Paths;
use kw_base::calibration::Figure;
use kw_base::counters::Counter;
use kw_base::overheads::RING;
use kw_base::settings::Settings;
use kw_base::{Calibration, ContextId, Peer, Tick};
use kw_boot::{Job, Launcher};
use kw_path::shm::region::ShmRegions;
use kw_path::{Body, Sent};
use kw_proto::endpoint::{Found, Requests};
use kw_proto::machine::Machine;
use kw_proto::matching::Envelope;
use kw_proto::p2p::TakenMessage;
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_waiting::Spin;
use kw_waiting::constants::wait::FRAMES_AT_ONCE;
use outlet::Outlet;
use progress::Patience;
use std::ops::Range;
use std::time::Duration;

/// How long a blocking receive polls for its message before it becomes a request.
fn at_once(figures: &Calibration) -> Duration {
    let frame = figures.line_between() + RING;
    let most = FRAMES_AT_ONCE * frame;
    Duration::from_nanos(most.min(figures.get_or_start(Figure::Wake)) as u64)
}

/// The header of a plain eager message of `len` bytes.
#[inline(always)]
fn eager(env: Envelope, len: u64) -> Header {
    Header {
        kind: Kind::Eager,
        context: env.context,
        source: env.source,
        tag: env.tag,
        len,
        token: 0,
    }
}

/// See the module.
pub struct Messages {
    pub(crate) machine: Machine<Buf>,
    pub(crate) paths: Paths,
    /// Carries out what the machine wants done.
    pub(crate) outlet: Outlet,
    /// Frames handled since the start.
    pub(crate) arrivals: u64,
    /// Frames have come during a send, and their consequences were not handled.
    pub(crate) unsettled: bool,
    /// How long to poll for data that is likely to come at once, before a proper wait; zero if
    /// others may need the CPU.
    pub(crate) at_once: Duration,
    patience: Patience,
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages")
            .field("active", &self.machine.endpoint.requests.active())
            .field("arrivals", &self.arrivals)
            .finish_non_exhaustive()
    }
}

impl Messages {
    pub(crate) fn new(
        paths: Paths,
        launcher: Box<dyn Launcher>,
        job: &Job,
        settings: &Settings,
    ) -> Messages {
        let mut machine = Machine::new(job.size() as usize, crate::paths::UNROUTED);
        machine.set_mark(crate::settings::mark(settings));
        if job.agreed().checks() {
            machine.check_types();
        }
        let at_once = match job.oversubscribed() {
            true => Duration::ZERO,
            false => at_once(job.agreed().calibration()),
        };
        let patience = Patience::new(paths.clock());
        Messages {
            machine,
            paths,
            outlet: Outlet::new(launcher),
            arrivals: 0,
            unsettled: false,
            at_once,
            patience,
        }
    }

    /// There are `size` peers from now on: existing peers keep their numbers, and active transfers
    /// continue.
    pub(crate) fn grow(&mut self, size: u32, settings: &Settings) {
        self.machine.grow(size as usize, crate::paths::UNROUTED);
        self.paths.grow(size, settings);
    }

    /// Forgets peers that are gone, so that others may get their numbers; returns whether no trace
    /// of them is left here.
    pub(crate) fn forget(&mut self, peers: Range<u32>) -> bool {
        if self.machine.has_any_of(&peers) || !self.paths.forget(peers.clone()) {
            return false;
        }
        self.machine.forget(peers, crate::paths::UNROUTED);
        true
    }

    /// Starts a send. `source` is this rank's number in the communicator (or in its local group).
    /// Call [`crate::Engine::look_after_sending`] afterwards if many may follow each other.
    #[inline]
    pub fn send(
        &mut self,
        to: Peer,
        (context, source, tag): (ContextId, u32, i32),
        mode: SendMode,
        buf: &Buf,
    ) -> Started {
        let env = Envelope {
            context: context.0,
            source,
            tag,
        };
        let len = buf.len();
        if mode == SendMode::Standard && self.machine.endpoint.peers[to].is_plain_eager(env, len) {
            let head = eager(env, len);
            let cookie = self.machine.endpoint.requests.cookie_of_next();
            let body = Body::Payload { buf, from: 0, len };
            let sent = self.paths.send(to, &head, body, cookie);
            let queued = match sent {
                Ok(Sent::Done) => None,
                Ok(Sent::Queued) => Some(buf),
                Err(down) => {
                    self.machine.on_gone(to, &down.to_string());
                    return self.send_slow(to, env, mode, buf);
                }
            };
            return self.machine.sender().sent_eager(to, env, len, queued);
        }
        self.send_slow(to, env, mode, buf)
    }

    /// Sends a short message of `len` bytes, which `fill` writes, over shared memory and without a
    /// request, if a standard send needs no more; otherwise nothing has happened, and the message
    /// is one for [`Messages::send`].
    #[inline(always)]
    pub fn send_at_once(
        &mut self,
        to: Peer,
        (context, source, tag): (ContextId, u32, i32),
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let env = Envelope {
            context: context.0,
            source,
            tag,
        };
        if !self.machine.endpoint.peers[to].is_plain_eager(env, len as u64) {
            return false;
        }
        let Some(memory) = self.paths.memory_to(to) else {
            return false;
        };
        if !memory.put_at_once(to, &eager(env, len as u64), len, fill) {
            return false;
        }
        self.machine.sender().sent_eager(to, env, len as u64, None);
        true
    }

    /// A send for which the machine has to decide.
    fn send_slow(&mut self, to: Peer, env: Envelope, mode: SendMode, buf: &Buf) -> Started {
        self.route(to);
        if mode == SendMode::Standard
            && self.machine.endpoint.peers[to].may_be_asked(env, buf.len())
        {
            self.look_for_announcement(to);
        }
        let started = self.machine.sender().send(to, env, mode.into(), buf);
        self.flush();
        match started {
            Started::Request(req) if self.requests_mut().take_clean(req).is_some() => Started::Done,
            started => started,
        }
    }

    /// Reads a peer's data before a long message is sent there: an announcement of its receive
    /// saves the handshake. Other data is handled at the next poll, because the sender may be a
    /// collective.
    fn look_for_announcement(&mut self, to: Peer) {
        self.unsettled |= self.poll(|paths, port| paths.poll_from(to, port));
    }

    /// Starts a receive.
    #[inline]
    pub fn recv(&mut self, want: Want, buf: Buf) -> ReqId {
        let from = want.source.map(|s| s.1);
        if let Some(from) = from.filter(|&p| !self.paths.is_routed(p)) {
            self.route_by_memory(from);
        }
        let req = self.machine.receiver().recv(want.pattern(), from, buf);
        self.flush_some();
        req
    }

    /// Receives a message of up to `room` bytes that is there, or comes within a moment, without a
    /// request, if that is as good as [`Messages::recv`]; `put` puts its bytes into place.
    /// Otherwise nothing has happened.
    #[inline(always)]
    pub fn recv_at_once(
        &mut self,
        want: Want,
        room: u64,
        put: impl FnOnce(&[u8]),
    ) -> Option<Found> {
        self.recv_within(self.at_once, want, room, put)
    }

    /// The same for a message that comes within `most`.
    #[inline(always)]
    pub(crate) fn recv_within(
        &mut self,
        most: Duration,
        want: Want,
        room: u64,
        put: impl FnOnce(&[u8]),
    ) -> Option<Found> {
        let (_, from) = want.source?;
        if !self.machine.receiver().may_take(from, room) {
            return None;
        }
        let memory = self.paths.memory_to(from)?;
        let mut spin = Spin::new(most);
        let (head, body) = memory.next_from(from, || spin.goes_on(kw_sys::clock::now))?;
        let found = self
            .machine
            .receiver()
            .take_direct(from, want.pattern(), room, &head)?;
        put(body);
        let len = body.len();
        memory.accept_from(from, len);
        self.arrivals += 1;
        self.count(Counter::WaitsSpun, 1);
        Some(found)
    }

    /// Takes a short message over shared memory past the queues, if it is the next of its sender
    /// and no message waits: `take` is offered those of all senders in turn, and returns whether it
    /// has taken one. No receive may ever be posted that matches it.
    #[inline]
    pub(crate) fn take_unasked(&mut self, mut take: impl FnMut(&Header, &[u8]) -> bool) -> bool {
        if !self.machine.p2p.receiving.may_take_unasked() {
            return false;
        }
        let Some(memory) = self.paths.memory() else {
            return false;
        };
        let plain = |head: &Header| head.kind == Kind::Eager && head.token == 0;
        let Some(from) = memory.take_whole(|head, body| plain(head) && take(head, body)) else {
            return false;
        };
        self.machine.receiver().took_unasked(from);
        self.arrivals += 1;
        true
    }

    /// Starts a receive of a message that `from` sends as [`SendMode::Fetched`].
    pub(crate) fn recv_fetched(&mut self, want: Want, from: Peer, buf: Buf) -> ReqId {
        let req = self
            .machine
            .receiver()
            .recv_fetched(want.pattern(), from, buf);
        self.flush();
        req
    }

    /// A receive of the program that has not ended and writes memory of this buffer: its envelope.
    #[cold]
    pub fn writes(&self, buf: &Buf) -> Option<(Option<u32>, Option<i32>)> {
        self.machine.writes(buf).map(|want| (want.source, want.tag))
    }

    /// Looks for a message that a receive would match now. Does not progress.
    pub fn probe(&mut self, want: Want) -> Option<Found> {
        let from = want.source.map(|s| s.1);
        let found = self.machine.receiver().probe(want.pattern(), from);
        self.flush_some();
        found
    }

    /// Takes such a message off the queue (MPI_Improbe).
    pub fn take_message(&mut self, want: Want) -> Option<(MessageId, Found)> {
        let from = want.source.map(|s| s.1);
        let taken = self.machine.receiver().take_message(want.pattern(), from);
        self.flush_some();
        taken.map(|(k, f)| (MessageId(k), f))
    }

    /// Takes a message like [`Messages::take_message`], and its data if all of it is here.
    pub(crate) fn take_data(&mut self, want: Want) -> Option<(TakenMessage<Buf>, Found)> {
        let taken = self.machine.receiver().take_data(want.pattern());
        self.flush_some();
        taken
    }

    /// Receives a message taken off the queue (MPI_Mrecv).
    pub fn recv_message(&mut self, message: MessageId, buf: &Buf) -> Option<ReqId> {
        let req = self.machine.receiver().recv_message(message.0, buf);
        self.flush();
        req
    }

    /// Asks to cancel; the request completes either way (MPI 5.0, 3.8.4).
    pub fn cancel(&mut self, req: ReqId) {
        self.machine.cancel(req);
        self.flush();
    }

    /// The requests of messages, and those that parts of the engine open for their own operations.
    #[inline(always)]
    pub fn requests(&self) -> &Requests<Buf> {
        &self.machine.endpoint.requests
    }

    /// The same, for changes.
    #[inline(always)]
    pub fn requests_mut(&mut self) -> &mut Requests<Buf> {
        &mut self.machine.endpoint.requests
    }

    /// Adds to a counter of this rank.
    #[inline(always)]
    pub fn count(&mut self, c: Counter, more: u64) {
        self.machine.endpoint.out.counters.add(c, more);
    }

    /// The shm regions of this host; `None` if its ranks share no memory.
    pub fn shm_regions(&mut self) -> Option<&ShmRegions> {
        self.paths.shm_regions()
    }

    /// Moves this thread, one of the program's, to another CPU of the host if that spreads its
    /// ranks, when a comparison is due.
    #[inline]
    pub(crate) fn spread(&mut self, now: Tick) {
        if self.paths.spread(now) {
            self.count(Counter::Spread, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receive_looks_for_as_long_as_frames_take_here() {
        let with_line = |picos: u64| {
            let value = move |f: Figure| match f {
                Figure::LinePackage => picos,
                Figure::Wake => 7_000_000,
                _ => 0,
            };
            at_once(&Calibration::measured(value))
        };
        assert_eq!(at_once(&Calibration::START).as_nanos(), 1960);
        assert_eq!(with_line(175_000).as_nanos(), 5600);
        assert_eq!(with_line(5_000_000).as_nanos(), 7_000);
    }
}
