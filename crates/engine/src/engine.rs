//! The engine: what the owner of the lane may do. Joins the protocol machine to the paths.

use crate::boot::{Agreed, BootError, Job, Joined, Launcher};
use crate::collective::Collectives;
use crate::events::Noticed;
use crate::partitioned::Partitioned;
use crate::paths::{Paths, Port};
use kw_base::counters::{self, Class, Counter, Counters};
use kw_base::events::{Event, MOST_ELEMENTS};
use kw_base::knobs::{self, Id, Knobs};
use kw_base::rooms::Room;
use kw_base::{ContextId, Key, Peer, Tick};
use kw_path::tcp::Asleep;
use kw_path::{Body, Sent};
use kw_proto::matching::{Envelope, Pattern};
use kw_proto::p2p::{self, Action, FrameBody, Machine, Mode};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_types::comm::Group;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use kw_proto::p2p::{Failure, Found, Outcome};

/// The payload of a message that was offered: its place among other frames is of no account.
fn is_data(action: &Action<Buf>) -> bool {
    matches!(action, Action::Frame { head, .. } if head.kind == Kind::Data)
}

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

/// Longest time that a rank which leaves waits for its goodbyes to arrive, where a path is told so: who hears none of them
/// takes the rank for dead, which is no harm at the end.
const LINGER: Duration = Duration::from_secs(1);

/// How long a program waits for something, and nothing comes, before peers that were told to hold may send more.
const PATIENCE: Duration = Duration::from_millis(10);

/// A thread that waits for a message to be fetched polls so long at most; what takes longer is worth a wake-up.
const LONGEST_FETCH: Duration = Duration::from_millis(1);

/// How often a blocking receive looks for its message before it becomes a request, where each rank has a processor: a microsecond or two
/// (a look is ten instructions). With 128 the answer of a ping-pong came just too late, and the request cost as much again as the
/// message (docs/benchmarks.md, "What a short message costs").
const LOOKS: u32 = 2048;

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
    job: Job,
    launcher: Box<dyn Launcher>,
    pub(crate) knobs: Knobs,
    /// Events that no tool has heard of yet.
    pub(crate) noticed: Noticed,
    /// Frames handled since the start.
    pub(crate) arrivals: u64,
    /// Counters of the lane (waits, take-overs), beside the machine's own.
    pub(crate) counters: Counters,
    /// This machine's cores, once somebody asked where ranks sit.
    pub(crate) tree: Option<kw_sys::topology::Tree>,
    actions: Vec<Action<Buf>>,
    /// How often [`Engine::recv_at_once`] looks.
    looks: u32,
    /// Frames have come whose consequences for collectives were not looked at.
    unsettled: bool,
    /// `arrivals` when the program last asked in vain, and since when it has been so.
    quiet: (u64, Tick),
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
            .field("active", &self.machine.active())
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
        let Joined { job, memory } = joined;
        let paths = Paths::open(launcher.as_mut(), &job, memory, &knobs)?;
        let engine = Engine::over(paths, launcher, job, knobs);
        engine.log(Say::Info, || {
            let hosts = engine.hosts().iter().max().map_or(1, |h| h + 1);
            let (size, shared) = (engine.size(), engine.job().crowded());
            let each = if shared {
                "fewer processors than ranks"
            } else {
                "a processor for each rank"
            };
            format!("joined a job of {size} on {hosts} host(s), here with {each}")
        });
        Ok(engine)
    }

    /// An engine over paths that are there already (tests: over the simulated network).
    pub fn over(paths: Paths, launcher: Box<dyn Launcher>, job: Job, knobs: Knobs) -> Engine {
        let mut machine = Machine::new(job.size() as usize, crate::paths::UNROUTED);
        machine.set_mark(mark(&knobs));
        let looks = if job.crowded() { 1 } else { LOOKS };
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
            looks,
            unsettled: false,
            quiet: (0, kw_sys::clock::now()),
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
        if mode == SendMode::Standard && self.machine.is_plain_eager(to, env, len) {
            let head = eager(context, source, tag, len);
            let cookie = self.machine.cookie_of_next();
            let body = Body::Payload { buf, from: 0, len };
            let started = match self.paths.send(to, &head, body, cookie) {
                Ok(Sent::Done) => self.machine.sent_eager(to, env, len, None),
                Ok(Sent::Queued) => self.machine.sent_eager(to, env, len, Some(buf)),
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
        if !self.machine.is_plain_eager(to, env, len as u64) {
            return false;
        }
        let Some(memory) = self.paths.memory_to(to) else {
            return false;
        };
        let head = eager(context, source, tag, len as u64);
        if !memory.put_at_once(to, &head, len, fill) {
            return false;
        }
        self.machine.sent_eager(to, env, len as u64, None);
        self.look_after_sending();
        true
    }

    #[cold]
    fn send_gone(&mut self, to: Peer, env: Envelope, buf: &Buf, why: &str) -> p2p::Started {
        self.machine.on_gone(to, why);
        let started = self.machine.send(to, env, Mode::Standard, buf);
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
        if mode == Mode::Standard && self.machine.may_be_asked(to, env, buf.len()) {
            self.look_for_announcement(to);
        }
        let started = self.machine.send(to, env, mode, buf);
        self.flush();
        match started {
            p2p::Started::Request(key) if self.machine.is_done(key) && self.clean(key) => {
                self.machine.take(key);
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
                self.machine.set_choice(to, way, choice);
                self.log(Say::Debug, || format!("rank {to} by {way:?}: {choice:?}"));
            }
            Err(down) => self.machine.on_gone(to, &down.to_string()),
        }
    }

    /// Starts a receive.
    #[inline]
    pub fn recv(&mut self, want: Want, buf: &Buf) -> ReqId {
        let from = want.source.map(|s| s.1);
        let key = self.machine.recv(want.pattern(), from, buf);
        self.flush_some();
        ReqId(key)
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
        if !self.machine.may_take(from, room) {
            return None;
        }
        let memory = self.paths.memory_to(from)?;
        let (head, body) = memory.next_from(from, self.looks)?;
        let found = self
            .machine
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
        let key = self.machine.recv_fetched(want.pattern(), from, buf);
        self.flush();
        ReqId(key)
    }

    /// Looks for a message that a receive would match now. Does not progress.
    pub fn probe(&mut self, want: Want) -> Option<Found> {
        let from = want.source.map(|s| s.1);
        let found = self.machine.probe(want.pattern(), from);
        self.flush_some();
        found
    }

    /// Takes such a message off the queue (MPI_Improbe).
    pub fn take_message(&mut self, want: Want) -> Option<(MessageId, Found)> {
        let from = want.source.map(|s| s.1);
        let taken = self.machine.take_message(want.pattern(), from);
        self.flush_some();
        taken.map(|(k, f)| (MessageId(k), f))
    }

    /// Receives a message taken off the queue (MPI_Mrecv).
    pub fn recv_message(&mut self, message: MessageId, buf: &Buf) -> Option<ReqId> {
        let key = self.machine.recv_message(message.0, buf);
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
        self.machine.is_done(req.0)
    }

    /// The outcome of a request that has ended, left in place (MPI_Request_get_status).
    pub fn peek(&self, req: ReqId) -> Option<&Outcome> {
        self.machine.peek(req.0)
    }

    /// Takes the outcome of a request that has ended; the id is dead from then on.
    #[inline]
    pub fn take(&mut self, req: ReqId) -> Option<Outcome> {
        self.machine.take(req.0)
    }

    /// Forgets a request; it goes on and is dropped when it ends (MPI_Request_free).
    pub fn release(&mut self, req: ReqId) {
        self.machine.release(req.0);
    }

    /// Whether anything goes on that needs progress.
    #[inline]
    pub fn busy(&self) -> bool {
        self.machine.active() != 0 || self.collectives.active() != 0 || self.paths.pending()
    }

    /// Whether something is left to send, in a path or because its receiver wants no more of it yet.
    pub fn pending(&self) -> bool {
        self.paths.pending() || self.machine.keeps_back()
    }

    /// Moves what can be moved, on all paths; never blocks. Returns whether anything moved.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll(&mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    /// Like [`Engine::progress`], but looks only where frames of this peer come from.
    #[inline]
    pub fn progress_from(&mut self, peer: Peer) -> bool {
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll_from(peer, &mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    /// This rank is about to sleep, in one thread: what its runs wait for on boards shall wake it. Before the doorbell is
    /// armed.
    pub(crate) fn make_ready_to_sleep(&mut self) {
        self.collectives.make_ready_to_sleep();
    }

    /// It is awake, or does not sleep after all.
    pub(crate) fn awake(&mut self) {
        self.collectives.desks.awake();
    }

    /// The second drain of the contract of sleeping: looks at everything, and has every path wake us from now on.
    pub(crate) fn progress_before_sleep(&mut self) -> bool {
        self.paths.arm(Asleep::Waiting);
        self.progress()
    }

    /// As [`Engine::progress`], for the event thread after a sleep.
    pub(crate) fn progress_ready(&mut self) -> bool {
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll_ready(&mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    /// The event thread is about to sleep: every path wakes it from now on. Whether one of those moved that had to be looked at once more.
    pub(crate) fn progress_before_serving_asleep(&mut self) -> bool {
        self.paths.arm(match self.collectives.is_held_by_send() {
            false => Asleep::Serving,
            true => Asleep::Stepping,
        });
        let mut port = Port::new(&mut self.machine);
        let moved = self.paths.poll_unwatched(&mut port);
        let frames = port.frames;
        self.after_poll(frames, moved)
    }

    #[inline]
    fn after_poll(&mut self, frames: u64, mut moved: bool) -> bool {
        self.arrivals += frames;
        self.flush_some();
        if self.machine.is_stalled() {
            moved |= self.release_held();
        }
        moved |= std::mem::take(&mut self.unsettled);
        if moved && self.partitioned.is_busy() {
            self.advance_partitioned();
        }
        if self.collectives.active() == 0 {
            return moved;
        }
        if moved {
            self.advance_collectives();
        }
        moved |= self.look_at_boards();
        self.settle();
        moved
    }

    /// What waits goes on with what has come while something was sent, until nothing more comes. Not while a collective is
    /// driven.
    #[inline]
    pub(crate) fn settle(&mut self) {
        while std::mem::take(&mut self.unsettled) {
            self.advance_partitioned();
            self.advance_collectives();
        }
    }

    /// After a send: looks at what comes, where much was sent without a look, or a look is to be gone on with. Not for
    /// use inside progress.
    #[inline(always)]
    pub fn look_after_sending(&mut self) {
        if self.machine.owes_a_look() || self.unsettled {
            self.look();
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) {
        self.progress();
    }

    /// Sends of what was kept back what may go.
    #[cold]
    fn release_held(&mut self) -> bool {
        let any = self.machine.release_held();
        self.flush_some();
        any
    }

    /// The program waits, or has asked in vain whether something has ended. Where nothing has come for [`PATIENCE`],
    /// peers that were told to hold may send more: the program may be waiting for what depends on it.
    #[inline]
    pub fn asked_in_vain(&mut self) {
        self.take_rows_apart();
        if self.machine.is_holding() {
            self.lose_patience();
        }
    }

    #[cold]
    fn lose_patience(&mut self) {
        let now = kw_sys::clock::now();
        if self.quiet.0 != self.arrivals {
            self.quiet = (self.arrivals, now);
        } else if now.since(self.quiet.1) >= PATIENCE {
            self.quiet.1 = now;
            self.machine.let_through();
            self.flush();
        }
    }

    /// How long a waiting thread may sleep before it says again that it waits.
    pub(crate) fn patience(&self) -> Duration {
        match self.machine.is_holding() {
            true => PATIENCE,
            false => Duration::MAX,
        }
    }

    /// How long the peer that was offered a message last may take to fetch it: nobody sleeps for that, a wake-up would cost as much.
    pub(crate) fn fetch_time(&self) -> Duration {
        let fetch = self.machine.being_fetched();
        fetch.map_or(Duration::ZERO, |(peer, len)| {
            // Twice what its line says: to fall asleep just before the end is the worst.
            (self.paths.fetch_time(peer, len) * 2).min(LONGEST_FETCH)
        })
    }

    #[inline]
    fn flush_some(&mut self) {
        if !self.machine.actions.is_empty() {
            self.flush();
        }
    }

    /// Carries out what the machine wants done, until it wants nothing more.
    pub(crate) fn flush(&mut self) {
        while !self.machine.actions.is_empty() {
            std::mem::swap(&mut self.machine.actions, &mut self.actions);
            let mut batch = std::mem::take(&mut self.actions);
            if batch.len() > 1 {
                // What is short goes first: an answer would else wait until the connection has taken a whole message.
                batch.sort_by_key(is_data);
            }
            for action in batch.drain(..) {
                self.act(action);
            }
            self.actions = batch;
        }
    }

    #[inline]
    fn act(&mut self, action: Action<Buf>) {
        match action {
            Action::Frame {
                to,
                head,
                body,
                cookie,
            } => {
                self.route(to);
                let body = match &body {
                    FrameBody::None => Body::None,
                    FrameBody::Extension(b) => Body::Bytes(b),
                    FrameBody::Payload { buf, len } => Body::Payload {
                        buf,
                        from: 0,
                        len: *len,
                    },
                };
                match self.paths.send(to, &head, body, cookie) {
                    Ok(Sent::Done) => self.machine.on_sent(cookie),
                    Ok(Sent::Queued) => {}
                    Err(down) => self.machine.on_gone(to, &down.to_string()),
                }
            }
            Action::Get {
                from,
                address,
                into,
                len,
                req,
            } => {
                self.route(from);
                let ok = self.paths.get(from, address, &into, len);
                self.machine.on_got(req, ok);
            }
            Action::Reprice(peer) => self.reprice(peer),
            Action::Notice(notice) => self.noticed.push(kw_sys::clock::now(), notice),
            Action::Locate(peer) => {
                if let Err(down) = self.paths.locate(peer, self.launcher.as_mut()) {
                    self.machine.on_gone(peer, &down.to_string());
                }
            }
        }
    }

    /// The value of a counter. What the lane alone knows ([`Counter::EventDuty`]) is zero here.
    pub fn counter(&self, c: Counter) -> u64 {
        match c {
            Counter::Refused => self.paths.strangers_refused(),
            Counter::StripedSent => self.paths.striped()[0],
            Counter::StripedBytes => self.paths.striped()[1],
            Counter::StripedAgain => self.paths.striped()[2],
            Counter::SilentLeft => self.paths.silent_left(),
            Counter::UdpPackets => self.paths.udp_tally().packets,
            Counter::UdpRepeated => self.paths.udp_tally().again,
            Counter::Doorbells => self.paths.doorbells_rung(),
            Counter::UnexpectedWaiting => self.machine.waiting(),
            Counter::UnexpectedHeld => self.machine.held(),
            Counter::ReceivesPosted => self.machine.posted(),
            Counter::RequestsActive => self.machine.active() as u64,
            Counter::CollectivesActive => self.collectives.active() as u64,
            _ => self.machine.counters.get(c) + self.counters.get(c),
        }
    }

    /// The largest value of a level since the last time this was asked, for a row of [`Class::Peak`].
    pub fn take_peak(&mut self, c: Counter) -> u64 {
        let Class::Peak(level) = c.row().class else {
            return self.counter(c);
        };
        let now = self.counter(level);
        self.machine.counters.take_peak(c, now)
    }

    /// All counters of this rank, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let all = (0..counters::ALL.len()).filter_map(Counter::at);
        all.map(|c| (c.row().name, self.counter(c))).collect()
    }

    /// Sets a knob that may be changed at any time; what it decides is decided anew.
    pub(crate) fn set_knob(&mut self, position: usize, text: &str) -> Result<(), String> {
        let mut knobs = self.knobs.clone();
        knobs.set_at(position, text).map_err(|e| e.to_string())?;
        self.knobs = knobs;
        self.machine.set_mark(mark(&self.knobs));
        if knobs::ALL[position].room == Room::Protocols {
            self.move_choices();
        }
        Ok(())
    }

    /// Where the protocols cross is decided anew for every peer whose path is known.
    fn move_choices(&mut self) {
        for peer in (0..self.job.size()).map(Peer) {
            if self.paths.is_routed(peer) {
                self.reprice(peer);
            }
        }
    }

    /// Where the protocols cross is decided anew for this peer.
    #[cold]
    fn reprice(&mut self, peer: Peer) {
        let choice = self.paths.choice(peer, &self.knobs);
        self.machine.move_choice(peer, choice);
    }

    /// Tells the tools of an event, if they want to hear of its kind.
    pub(crate) fn notice(&mut self, event: Event, data: [i64; MOST_ELEMENTS]) {
        self.machine.notice(event, data);
        self.flush();
    }

    /// Says something on standard error, if `KW_LOG` wants to hear so much.
    pub(crate) fn log(&self, say: Say, text: impl FnOnce() -> String) {
        if self.knobs.choice(Id::Log) >= say as usize {
            eprintln!("rank {}: {}", self.job.me, text());
        }
    }

    /// Says goodbye to every peer, and stays until all have heard it, but not longer than [`LINGER`].
    pub fn close(&mut self) {
        for line in self.paths.network() {
            self.log(Say::Info, || line);
        }
        self.paths.close();
        let end = kw_sys::clock::now() + LINGER;
        while self.paths.pending() && kw_sys::clock::now() < end {
            self.progress();
            std::thread::yield_now();
        }
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

/// How much is said, as `knobs::LOG_LEVELS` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Say {
    Info = 2,
    Debug = 3,
}

/// Whether an engine could start with these knobs, as far as one process can tell.
pub fn check_knobs(knobs: &Knobs) -> Result<(), String> {
    crate::boot::check_knobs(knobs)?;
    crate::paths::check_knobs(knobs)
}

/// How much is kept of messages that nobody has asked for, bytes.
fn mark(knobs: &Knobs) -> u64 {
    knobs.number(Id::Unexpected).unwrap_or(0)
}

/// Whether the event thread is wanted.
pub(crate) fn wants_event_thread(knobs: &Knobs) -> bool {
    knobs.flag(Id::EventThread)
}
