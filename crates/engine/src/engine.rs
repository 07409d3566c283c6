//! The engine: what the owner of the lane may do. Joins the protocol machine to the paths.

use crate::collective::Collectives;
use crate::collective::{Failure, Outcome};
use crate::events::Noticed;
use crate::partitioned::Partitioned;
use crate::paths::{Joined, Paths, Port};
use crate::settings::mark;
use crate::spin::Spin;
use kw_base::counters::{Counter, Counters};
use kw_base::knobs::Knobs;
use kw_base::{ContextId, Key, Peer, Tick};
use kw_boot::{Agreed, BootError, Job, Launcher};
use kw_path::{Body, Sent};
use kw_proto::matching::{Envelope, Pattern};
use kw_proto::p2p::{self, Action, Machine, Mode};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_types::comm::Group;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use kw_proto::p2p::Found;

/// Names a request of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReqId(pub Key);

/// Names a message taken off the unexpected queue by a matched probe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageId(pub Key);

/// How a send completes (MPI 5.0, 3.4). Buffered sends are copied above the engine and sent as `Standard`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendMode {
    /// Standard and ready.
    Standard,
    /// Completes only when the receive has been matched.
    Synchronous,
    /// Standard; the receiver is asked to fetch the message, see [`Engine::recv_fetched`].
    Fetched,
}

/// What a receive or a probe matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want {
    /// Context of the communicator (for intracommunicators and intercommunicators: the one we receive in).
    pub context: ContextId,
    /// Source as rank in the communicator together with its peer; `None` is MPI_ANY_SOURCE.
    pub source: Option<(u32, Peer)>,
    /// Tag; `None` is MPI_ANY_TAG.
    pub tag: Option<i32>,
}

impl Want {
    #[inline]
    fn pattern(&self) -> Pattern {
        Pattern {
            context: self.context.0,
            source: self.source.map(|s| s.0),
            tag: self.tag,
        }
    }
}

/// A send that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// Already complete; there is no request.
    Done,
    /// Goes on.
    Request(ReqId),
}

/// How long a blocking receive looks for its message before it becomes a request, where each rank has a processor. When the answer of a
/// ping-pong comes just too late, the request costs as much again as the message (docs/measurements).
const AT_ONCE: Duration = Duration::from_micros(2);

/// The header of a plain eager message of `len` bytes.
#[inline(always)]
fn eager(context: ContextId, source: u32, tag: i32, len: u64) -> Header {
    Header {
        kind: Kind::Eager,
        context: context.0,
        source,
        tag,
        len,
        token: 0,
    }
}

/// One rank's engine.
pub struct Engine {
    pub(crate) machine: Machine<Buf>,
    pub(crate) paths: Paths,
    pub(crate) collectives: Collectives,
    pub(crate) partitioned: Partitioned,
    pub(crate) job: Job,
    pub(crate) launcher: Box<dyn Launcher>,
    pub(crate) knobs: Knobs,
    /// Events that no tool has heard of yet.
    pub(crate) noticed: Noticed,
    /// Frames handled since the start.
    pub(crate) arrivals: u64,
    /// Counters of the lane (waits, take-overs), beside the machine's own.
    pub(crate) counters: Counters,
    /// This machine's cores, once somebody asked where ranks sit.
    pub(crate) tree: Option<kw_sys::topology::Tree>,
    pub(crate) actions: Vec<Action<Buf>>,
    /// How long [`Engine::recv_at_once`] looks.
    at_once: Duration,
    /// Frames have come whose consequences for collectives were not looked at.
    pub(crate) unsettled: bool,
    /// `arrivals` when the program last asked in vain, and since when it has been so.
    pub(crate) quiet: (u64, Tick),
    /// Other threads of this rank may send to it while one waits.
    pub(crate) has_threads: bool,
    /// Who sends in a context, where that is not the whole job.
    pub(crate) senders: HashMap<ContextId, Arc<Group>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("me", &self.job.me)
            .field("size", &self.job.size())
            .field("active", &self.machine.requests.active())
            .finish()
    }
}

impl Engine {
    /// Joins the job: makes the paths that the knobs allow and lets the other ranks know how to reach this one. Returns
    /// when every rank has come here.
    pub fn start(
        mut launcher: Box<dyn Launcher>,
        joined: Joined,
        knobs: Knobs,
    ) -> Result<Engine, BootError> {
        let (paths, job) = Paths::open(launcher.as_mut(), joined, &knobs)?;
        let engine = Engine::over(paths, launcher, job, knobs);
        engine.introduce_itself();
        Ok(engine)
    }

    fn introduce_itself(&self) {
        let hosts = self.hosts().iter().max().map_or(1, |h| h + 1);
        let each = match self.job.crowded() {
            true => "fewer processors than ranks",
            false => "a processor for each rank",
        };
        let size = self.size();
        tracing::info!("joined a job of {size} on {hosts} host(s), here with {each}");
    }

    /// An engine over paths that are there already (tests: over the simulated network).
    pub fn over(paths: Paths, launcher: Box<dyn Launcher>, job: Job, knobs: Knobs) -> Engine {
        let mut machine = Machine::new(job.size() as usize, crate::paths::UNROUTED);
        machine.set_mark(mark(&knobs));
        let at_once = match job.crowded() {
            true => Duration::ZERO,
            false => AT_ONCE,
        };
        let now = paths.clock();
        Engine {
            machine,
            paths,
            collectives: Collectives::default(),
            partitioned: Partitioned::default(),
            job,
            launcher,
            knobs,
            noticed: Noticed::default(),
            arrivals: 0,
            counters: Counters::default(),
            tree: None,
            actions: Vec::new(),
            at_once,
            unsettled: false,
            quiet: (0, now),
            has_threads: true,
            senders: HashMap::new(),
        }
    }

    /// Says whether other threads of this rank may be in MPI while one is.
    pub fn set_threads(&mut self, has: bool) {
        self.has_threads = has;
    }

    /// Moves this thread, one of the program's, to another processor of the host if that spreads its ranks, when it is time to look.
    #[inline]
    pub(crate) fn spread(&mut self, now: Tick) {
        if self.paths.spread(now) {
            self.counters.hit(Counter::Spread);
        }
    }

    /// The time: the machine's, or that of a simulated network.
    #[inline]
    pub(crate) fn clock(&self) -> Tick {
        self.paths.clock()
    }

    /// This rank in the job.
    pub fn me(&self) -> Peer {
        self.job.me
    }

    /// Ranks in the job.
    pub fn size(&self) -> u32 {
        self.job.size()
    }

    /// Host number of every rank of the job (ranks with the same number share a machine).
    pub fn hosts(&self) -> &[u32] {
        self.job.hosts()
    }

    /// What all ranks know alike: whatever chooses looks at nothing else.
    pub fn agreed(&self) -> &Agreed {
        &self.job.agreed
    }

    /// The whole job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The knobs this rank was started with.
    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// Whoever started us.
    pub fn launcher(&mut self) -> &mut dyn Launcher {
        self.launcher.as_mut()
    }

    /// The conversation with the launcher, when all else is over.
    pub fn into_launcher(self) -> Box<dyn Launcher> {
        self.launcher
    }

    /// Starts a send. `source` is this rank's number in the communicator (or in its local group).
    #[inline]
    pub fn send(
        &mut self,
        to: Peer,
        context: ContextId,
        source: u32,
        tag: i32,
        mode: SendMode,
        buf: &Buf,
    ) -> Started {
        let env = Envelope {
            context: context.0,
            source,
            tag,
        };
        let len = buf.len();
        if mode == SendMode::Standard && self.machine.peers[to].is_plain_eager(env, len) {
            let head = eager(context, source, tag, len);
            let cookie = self.machine.requests.cookie_of_next();
            let body = Body::Payload { buf, from: 0, len };
            let started = match self.paths.send(to, &head, body, cookie) {
                Ok(Sent::Done) => self.machine.sender().sent_eager(to, env, len, None),
                Ok(Sent::Queued) => self.machine.sender().sent_eager(to, env, len, Some(buf)),
                Err(down) => self.send_gone(to, env, buf, &down.to_string()),
            };
            return Started::from(started);
        }
        self.send_slow(to, env, mode, buf)
    }

    /// Sends a short message of `len` bytes, which `fill` writes, over shared memory and without a request, where that is all there is to a
    /// standard send; otherwise nothing has happened, and the message is one for [`Engine::send`].
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
        if !self.machine.peers[to].is_plain_eager(env, len as u64) {
            return false;
        }
        let Some(memory) = self.paths.memory_to(to) else {
            return false;
        };
        let head = eager(context, source, tag, len as u64);
        if !memory.put_at_once(to, &head, len, fill) {
            return false;
        }
        self.machine.sender().sent_eager(to, env, len as u64, None);
        self.look_after_sending();
        true
    }

    #[cold]
    fn send_gone(&mut self, to: Peer, env: Envelope, buf: &Buf, why: &str) -> p2p::Started {
        self.machine.on_gone(to, why);
        let started = self.machine.sender().send(to, env, Mode::Standard, buf);
        self.flush();
        started
    }

    fn send_slow(&mut self, to: Peer, env: Envelope, mode: SendMode, buf: &Buf) -> Started {
        self.route(to);
        let mode = match mode {
            SendMode::Standard => Mode::Standard,
            SendMode::Synchronous => Mode::Synchronous,
            SendMode::Fetched => Mode::Fetched,
        };
        if mode == Mode::Standard && self.machine.peers[to].may_be_asked(env, buf.len()) {
            self.look_for_announcement(to);
        }
        let started = self.machine.sender().send(to, env, mode, buf);
        self.flush();
        match started {
            p2p::Started::Request(key) if self.machine.requests.is_done(key) && self.clean(key) => {
                self.machine.requests.take(key);
                Started::Done
            }
            other => Started::from(other),
        }
    }

    /// Reads what a peer has sent before a long message goes there: an announcement of its receive saves the handshake.
    /// What else comes by it is gone on with at the next look, because a collective may be what sends.
    fn look_for_announcement(&mut self, to: Peer) {
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll_from(to, &mut port);
        self.arrivals += port.frames;
        self.unsettled |= moved && (self.collectives.active() != 0 || self.partitioned.is_busy());
    }

    fn clean(&self, key: Key) -> bool {
        self.machine
            .requests
            .peek(key)
            .is_some_and(|o| o.failure.is_none() && !o.cancelled)
    }

    /// Chooses the path of a peer before the first message to it.
    pub(crate) fn route(&mut self, to: Peer) {
        if self.paths.is_routed(to) {
            return;
        }
        match self
            .paths
            .route(to, self.launcher.as_mut(), &self.job, &self.knobs)
        {
            Ok((way, choice)) => {
                self.machine.peers.set_choice(to, way, choice);
                tracing::debug!("rank {to} by {way:?}: {}", self.paths.why(to, &self.knobs));
            }
            Err(down) => self.machine.on_gone(to, &down.to_string()),
        }
    }

    /// Starts a receive.
    #[inline]
    pub fn recv(&mut self, want: Want, buf: &Buf) -> ReqId {
        let from = want.source.map(|s| s.1);
        if let Some(from) = from.filter(|&p| !self.paths.is_routed(p)) {
            self.route_by_memory(from);
        }
        let key = self.machine.receiver().recv(want.pattern(), from, buf);
        self.flush_some();
        ReqId(key)
    }

    /// Chooses the path of a peer with whom memory is shared, which takes no address: receives from a rank that nothing is sent to are
    /// short from then on ([`Engine::recv_at_once`]), too.
    #[cold]
    fn route_by_memory(&mut self, from: Peer) {
        if self.paths.shares_memory_with(from) {
            self.route(from);
        }
    }

    /// Receives a message of up to `room` bytes that is there, or comes within a moment, without a request, where that is as good as
    /// [`Engine::recv`]; `put` puts its bytes into place. Otherwise nothing has happened.
    #[inline(always)]
    pub fn recv_at_once(
        &mut self,
        want: Want,
        room: u64,
        put: impl FnOnce(&[u8]),
    ) -> Option<Found> {
        let (_, from) = want.source?;
        if !self.machine.receiver().may_take(from, room) {
            return None;
        }
        let memory = self.paths.memory_to(from)?;
        let mut spin = Spin::new(self.at_once);
        let (head, body) = memory.next_from(from, || spin.goes_on())?;
        let found = self
            .machine
            .receiver()
            .take_direct(from, want.pattern(), room, &head)?;
        put(body);
        let len = body.len();
        memory.accept_from(from, len);
        self.arrivals += 1;
        self.counters.hit(Counter::WaitsSpun);
        Some(found)
    }

    /// Starts a receive of what `from` sends as [`SendMode::Fetched`].
    pub(crate) fn recv_fetched(&mut self, want: Want, from: Peer, buf: &Buf) -> ReqId {
        let key = self
            .machine
            .receiver()
            .recv_fetched(want.pattern(), from, buf);
        self.flush();
        ReqId(key)
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

    /// Receives a message taken off the queue (MPI_Mrecv).
    pub fn recv_message(&mut self, message: MessageId, buf: &Buf) -> Option<ReqId> {
        let key = self.machine.receiver().recv_message(message.0, buf);
        self.flush();
        key.map(ReqId)
    }

    /// Asks to cancel; the request completes either way (MPI 5.0, 3.8.4).
    pub fn cancel(&mut self, req: ReqId) {
        self.machine.cancel(req.0);
        self.flush();
    }

    /// Whether the request has ended.
    #[inline]
    pub fn is_done(&self, req: ReqId) -> bool {
        self.machine.requests.is_done(req.0)
    }

    /// What came with a request that has ended, whose outcome is left in place (MPI_Request_get_status).
    pub fn peek(&self, req: ReqId) -> Option<Outcome> {
        let outcome = self.machine.requests.peek(req.0)?.clone();
        Some(outcome.map(|failure| failure.map(Failure::Message)))
    }

    /// Takes the outcome of a request that has ended; the id is dead from then on.
    #[inline]
    pub fn take(&mut self, req: ReqId) -> Option<Outcome> {
        let outcome = self.machine.requests.take(req.0)?;
        Some(outcome.map(|failure| match failure {
            Some(failure) => Some(Failure::Message(failure)),
            None => self.failure_of(req),
        }))
    }

    /// Forgets a request; it goes on and is dropped when it ends (MPI_Request_free).
    pub fn release(&mut self, req: ReqId) {
        self.failure_of(req);
        self.machine.requests.release(req.0);
    }
}

impl From<p2p::Started> for Started {
    #[inline]
    fn from(s: p2p::Started) -> Started {
        match s {
            p2p::Started::Done => Started::Done,
            p2p::Started::Request(k) => Started::Request(ReqId(k)),
        }
    }
}
