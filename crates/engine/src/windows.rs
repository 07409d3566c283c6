//! Windows (MPI 5.0, chapter 12): memory that other ranks read, write and combine with without this
//! rank's program taking part.
//!
//! ```text
//! access    operations of this rank: frames for their target, long data, buffers for replies
//! sync      epochs: fences, post-start-complete-wait, locks, flushes
//! direct    memory that this rank reads and writes itself
//! memory    what operations of others do to this rank's memory
//! locks     which ranks hold the lock of this rank's memory
//! check     conflicting accesses (KW_CHECK)
//! flights   what is under way to each target, and has to end before a flush does
//! posts     post, start, complete and wait
//! reach     memory in reach, for calls that take no lock of the library
//! tally     counts of operations and epochs
//! view      what calls wait for, and which ranks hold locks, for people
//! ```
//!
//! Frames ([`kw_proto::rma`]) are messages in a context that belongs to the window. So they are
//! reliable and in order, over every path and whatever link fails, and an accumulate is applied
//! once. The thread that makes progress takes them: the progress thread does while the program
//! computes.
//!
//! Everything here but [`Reachable`] is called by the owner of the lock.

mod access;
mod check;
mod direct;
mod flights;
mod locks;
mod memory;
mod posts;
mod reach;
mod sync;
mod tally;
mod view;

pub use access::{At, Span};
pub use check::{FoundConflict, Site};
pub use kw_path::shm::ShmError;
pub use kw_path::shm::window::{
    SharedMemory, SharedMemoryFile, SharedMemoryJoin, SharedMemoryLead,
};
pub use kw_proto::rma::LockMode;
pub use memory::Memory;
pub use reach::Reachable;

use crate::messages::{MessageId, Messages, ReqId, SendMode, Started, Want};
use crate::part::Part;
use check::{Checks, MOST_ANSWER, Whose};
use direct::Shared;
use flights::Flights;
use kw_base::{ContextId, Key, Slab};
use kw_boot::Job;
use kw_proto::p2p::TakenMessage;
use kw_proto::rma::{self, Epochs, Frame, Misuse, Origin, Tags, Target};
use kw_sys::buf::{Addr, Buf};
use kw_types::comm::Group;
use kw_types::layout::Layout;
use locks::Locks;
use memory::{Area, ExposedMemory, Going};
use posts::Awaited;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use sync::Waiter;
use tally::Tally;

/// Messages that are taken before other paths are polled. Built-in.
const AT_ONCE: usize = 8;

/// Names a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WinId(Key);

/// How much memory a rank exposes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Bytes.
    pub size: u64,
    /// Bytes of a displacement unit.
    pub unit: u64,
}

impl Extent {
    /// The extent of a dynamic window: displacements are addresses.
    pub const DYNAMIC: Extent = Extent {
        size: u64::MAX,
        unit: 1,
    };
}

/// A window to be made.
#[derive(Debug)]
pub struct NewWindow {
    /// A context for the messages of this window only.
    pub context: ContextId,
    /// Its ranks.
    pub group: Arc<Group>,
    /// This rank.
    pub me: u32,
    /// The memory that this rank exposes.
    pub memory: Memory,
    /// The extent of the memory of each rank.
    pub targets: Vec<Extent>,
    /// Conflicting accesses are searched for: the same on all ranks.
    pub checks: bool,
}

/// Why a call on a window is refused. Each sentence names neither call nor window.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WindowError {
    /// It is not allowed in this epoch (MPI_ERR_RMA_SYNC).
    #[error("{0}")]
    Sync(String),
    /// It names memory outside the window (MPI_ERR_RMA_RANGE).
    #[error("{0}")]
    Range(String),
    /// Memory cannot be attached or detached (MPI_ERR_RMA_ATTACH).
    #[error("{0}")]
    Attach(String),
    /// It uses memory that another operation uses ([`Windows::take_conflicts`]; MPI_ERR_RMA_CONFLICT).
    #[error("it uses memory that another operation uses")]
    Conflict,
    /// The window has been freed (MPI_ERR_WIN).
    #[error("the window has been freed")]
    Gone,
}

impl From<Misuse> for WindowError {
    fn from(misuse: Misuse) -> WindowError {
        WindowError::Sync(misuse.to_string())
    }
}

/// Frames that arrive.
#[derive(Debug)]
struct Incoming {
    origin: u32,
    /// The receive of the frames; `None` if they are here.
    req: Option<ReqId>,
    buf: Buf,
}

/// Target datatypes that have been sent to a target.
#[derive(Default, Debug)]
struct SentTypes {
    known: Vec<(Arc<Layout>, u32)>,
    next: u32,
}

#[derive(Debug)]
struct Window {
    context: ContextId,
    group: Arc<Group>,
    me: u32,
    targets: Vec<Extent>,
    area: Area,
    epochs: Epochs,
    origin: Origin,
    target: Target,
    locks: Locks,
    /// Ranks that have been granted the lock and have not been told yet.
    granted: Vec<u32>,
    shared: Option<Arc<Shared>>,
    /// The part of the window that calls use without the library's lock.
    reachable: Option<Arc<Reachable>>,
    /// Ranks that are marked in it.
    marked: Vec<u32>,
    /// Posts and completes of ranks that share memory.
    awaited: Awaited,
    /// Ranks whose lock this rank has taken itself.
    held: Vec<u32>,
    tags: Tags,
    incoming: VecDeque<Incoming>,
    going: Vec<Going>,
    flights: Flights,
    waiters: Vec<Waiter>,
    types: HashMap<u32, SentTypes>,
    /// Targets whose frames wait until they may be sent.
    kept_back: Vec<u32>,
    /// Other ranks access this one's memory by messages.
    serves: bool,
    /// Memory for operands.
    scratch: Vec<u8>,
    checks: Option<Checks>,
    tally: Tally,
}

impl Window {
    fn new(new: NewWindow) -> Window {
        let shared = match &new.memory {
            // A check sees only accesses that come as messages.
            Memory::Shared { memory, ranks } if !new.checks => {
                let size = new.group.size();
                Some(Arc::new(Shared::new(memory.clone(), ranks, size)))
            }
            _ => None,
        };
        let reachable = shared.as_ref().map(|shared| {
            let place = |rank| shared.place(rank);
            let targets = &new.targets;
            Arc::new(Reachable::new(&shared.memory, place, new.me, targets))
        });
        let near = shared.as_ref().map_or(1, |s| s.memory.ranks());
        Window {
            serves: near < new.group.size() as usize,
            context: new.context,
            group: new.group,
            me: new.me,
            targets: new.targets,
            area: Area::new(new.memory),
            epochs: Epochs::default(),
            origin: Origin::default(),
            target: Target::default(),
            locks: Locks::new(shared.clone()),
            granted: Vec::new(),
            awaited: Awaited::new(shared.as_ref().map_or(0, |s| s.memory.ranks())),
            shared,
            reachable,
            marked: Vec::new(),
            held: Vec::new(),
            tags: Tags::default(),
            incoming: VecDeque::new(),
            going: Vec::new(),
            flights: Flights::default(),
            waiters: Vec::new(),
            types: HashMap::new(),
            kept_back: Vec::new(),
            scratch: Vec::new(),
            checks: new.checks.then(Checks::default),
            tally: Tally::default(),
        }
    }

    /// The state of other ranks' accesses, and the means to carry them out.
    fn exposed<'a>(
        &'a mut self,
        messages: &'a mut Messages,
    ) -> (&'a mut Target, ExposedMemory<'a>) {
        let (base, rank) = (self.area.base(), self.me);
        let side = ExposedMemory {
            checks: self.checks.as_mut(),
            tally: &mut self.tally,
            whose: Whose { base, rank },
            area: &self.area,
            locks: &mut self.locks,
            granted: &mut self.granted,
            going: &mut self.going,
            messages,
            context: self.context,
            group: &self.group,
            me: self.me,
        };
        (&mut self.target, side)
    }

    fn send(&mut self, messages: &mut Messages, rank: u32, tag: i32, data: &Buf) -> Started {
        let from = (self.context, self.me, tag);
        messages.send(self.group.peer(rank), from, SendMode::Standard, data)
    }

    /// Sends frames.
    fn say(&mut self, messages: &mut Messages, rank: u32, frames: &[u8]) {
        let to = self.group.peer(rank);
        let from = (self.context, self.me, rma::FRAMES_TAG);
        if messages.send_at_once(to, from, frames.len(), |out| out.copy_from_slice(frames)) {
            return;
        }
        let buf = Buf::alloc(frames.len());
        buf.write(0, frames);
        if let Started::Request(req) = self.send(messages, rank, rma::FRAMES_TAG, &buf) {
            messages.release(req);
        }
    }

    /// Receives the data that a target will send with this tag.
    fn expect(&mut self, messages: &mut Messages, rank: u32, tag: i32, into: Buf) -> ReqId {
        let want = Want {
            context: self.context,
            source: Some((rank, self.group.peer(rank))),
            tag: Some(tag),
        };
        messages.recv(want, into)
    }

    /// Continues with the arrived data, until there is none left; returns whether there was any.
    fn advance(&mut self, messages: &mut Messages) -> bool {
        let mut any = false;
        loop {
            let mut moved = self.take_in(messages);
            moved |= self.end_going(messages);
            moved |= self.free_lock_of_dead(messages);
            let origin = &mut self.origin;
            moved |= self.flights.look(messages, |rank| origin.on_answer(rank));
            if let Some(checks) = &mut self.checks {
                self.flights
                    .notices
                    .drain(..)
                    .for_each(|t| checks.on_answer(&t));
            }
            moved |= self.send_held(messages);
            if !moved {
                break;
            }
            any = true;
        }
        self.end_waits(messages);
        any
    }

    /// Takes frames that have come.
    fn take_in(&mut self, messages: &mut Messages) -> bool {
        let want = Want {
            context: self.context,
            source: None,
            tag: Some(rma::FRAMES_TAG),
        };
        let mut moved = false;
        while let Some((message, found)) = messages.take_data(want) {
            moved = true;
            let waits = self.incoming.iter().any(|b| b.origin == found.source);
            match message {
                TakenMessage::Whole(data) if !waits => self.apply(messages, found.source, &data),
                TakenMessage::Whole(buf) => self.incoming.push_back(Incoming {
                    origin: found.source,
                    req: None,
                    buf,
                }),
                TakenMessage::Partial(key) => {
                    self.receive(messages, MessageId(key), found.len, found.source);
                }
            }
        }
        let mut i = 0;
        while i < self.incoming.len() {
            let origin = self.incoming[i].origin;
            let held = self.incoming.iter().take(i).any(|b| b.origin == origin);
            let req = self.incoming[i].req;
            match held || req.is_some_and(|req| !messages.is_done(req)) {
                true => i += 1,
                false => {
                    moved = true;
                    self.apply_incoming(messages, i);
                }
            }
        }
        moved
    }

    fn receive(&mut self, messages: &mut Messages, message: MessageId, len: u64, origin: u32) {
        let buf = usize::try_from(len).ok().and_then(Buf::try_alloc);
        let buf = buf.unwrap_or(Buf::EMPTY);
        if let Some(req) = messages.recv_message(message, &buf) {
            let req = Some(req);
            self.incoming.push_back(Incoming { origin, req, buf });
        }
    }

    /// Applies frames that have waited, for their data or behind earlier ones.
    fn apply_incoming(&mut self, messages: &mut Messages, i: usize) {
        let Some(Incoming { origin, req, buf }) = self.incoming.remove(i) else {
            return;
        };
        let failed = |req| messages.take(req).is_none_or(|o| o.failure.is_some());
        if !req.is_some_and(failed) {
            self.apply(messages, origin, &buf);
        }
    }

    /// Applies frames that are here.
    fn apply(&mut self, messages: &mut Messages, origin: u32, data: &Buf) {
        if origin >= self.group.size() {
            return;
        }
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.resize(data.len() as usize, 0);
        data.read(0, &mut bytes);
        self.apply_bytes(messages, origin, &bytes);
        self.scratch = bytes;
    }

    fn apply_bytes(&mut self, messages: &mut Messages, origin: u32, bytes: &[u8]) {
        let (mut posts, mut woken) = (0, false);
        let (target, mut side) = self.exposed(messages);
        target.on_frames(origin, bytes, &mut side, |notice| {
            posts += (notice == Frame::Post) as u32;
            woken |= notice == Frame::Wake;
        });
        if woken {
            let granted = self.locks.grant();
            self.granted.extend(granted);
        }
        self.pass_on(messages);
        if self.target.take_broken() {
            tracing::error!("rank {origin} of a window sent an invalid operation");
        }
        (0..posts).for_each(|_| self.origin.on_post(origin));
    }
}

/// The windows of a rank.
#[derive(Debug, Default)]
pub struct Windows {
    all: Slab<Window>,
    /// How many of them others access by messages.
    serving: usize,
    /// The counters of windows that were freed.
    freed: Tally,
    /// Memory for frames.
    bytes: Vec<u8>,
}

impl Windows {
    fn get_mut(&mut self, id: WinId) -> Result<&mut Window, WindowError> {
        let window = self.all.get_mut(id.0).ok_or(WindowError::Gone)?;
        window.adopt();
        Ok(window)
    }

    /// The memory that calls access without the lock, if ranks share any.
    pub fn reachable(&mut self, id: WinId) -> Option<Arc<Reachable>> {
        self.get_mut(id).ok()?.reachable.clone()
    }

    /// Whether other ranks access memory of this one by messages: they wait until it polls for
    /// these.
    #[inline]
    pub fn serve(&self) -> bool {
        self.serving != 0
    }

    /// Takes the next frames that have come over shared memory, past the queues of messages; returns
    /// whether there were any. [`Part::advance`] must follow.
    #[inline]
    pub(crate) fn take_at_once(&mut self, messages: &mut Messages) -> bool {
        let taken = (0..AT_ONCE).take_while(|_| self.take_next(messages));
        taken.count() != 0
    }

    #[inline]
    fn take_next(&mut self, messages: &mut Messages) -> bool {
        let (all, bytes) = (&self.all, &mut self.bytes);
        let mut of = None;
        let took = messages.take_unasked(|head, body| {
            let context = ContextId(head.context);
            let mut windows = all.iter().filter(|(_, w)| w.context == context);
            let takes = |w: &Window| w.incoming.is_empty() && head.source < w.group.size();
            of = match head.tag == rma::FRAMES_TAG {
                true => windows.next().filter(|(_, w)| takes(w)),
                false => None,
            }
            .map(|(key, _)| (key, head.source));
            if of.is_some() {
                bytes.clear();
                bytes.extend_from_slice(body);
            }
            of.is_some()
        });
        let Some((key, origin)) = of.filter(|_| took) else {
            return false;
        };
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(window) = self.all.get_mut(key) {
            window.apply_bytes(messages, origin, &bytes);
        }
        self.bytes = bytes;
        true
    }

    /// Makes a window: all ranks of the group do, each with the memory that it exposes. Others may
    /// use it before this rank has made it.
    pub fn create(&mut self, messages: &mut Messages, new: NewWindow) -> WinId {
        let mut window = Window::new(new);
        window.advance(messages);
        self.serving += window.serves as usize;
        WinId(self.all.insert(window))
    }

    /// Whether a window may be freed: no epoch is open.
    pub fn may_free(&mut self, id: WinId) -> Result<(), WindowError> {
        Ok(self.get_mut(id)?.epochs.check_free()?)
    }

    /// Frees a window that no rank uses any more.
    pub fn free(&mut self, messages: &mut Messages, id: WinId) -> Result<(), WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.check_free()?;
        window.advance(messages);
        if let Some(window) = self.all.remove(id.0) {
            self.serving -= window.serves as usize;
            self.keep_tally(&window);
        }
        Ok(())
    }

    /// The extent of a rank's memory.
    pub fn extent(&mut self, id: WinId, rank: u32) -> Option<Extent> {
        self.get_mut(id).ok()?.targets.get(rank as usize).copied()
    }

    /// Attaches memory to a dynamic window.
    pub fn attach(&mut self, id: WinId, base: Addr, size: u64) -> Result<(), WindowError> {
        let window = self.get_mut(id)?;
        if !window.area.is_dynamic() {
            return Err(WindowError::Attach(
                "memory is attached to windows of MPI_Win_create_dynamic only".into(),
            ));
        }
        match window.area.attach(base, size) {
            true => Ok(()),
            false => Err(WindowError::Attach(
                "the memory overlaps memory that is attached already".into(),
            )),
        }
    }

    /// Detaches the memory that was attached at an address.
    pub fn detach(&mut self, id: WinId, base: Addr) -> Result<(), WindowError> {
        match self.get_mut(id)?.area.detach(base) {
            true => Ok(()),
            false => Err(WindowError::Attach(
                "no memory is attached that begins at this address".into(),
            )),
        }
    }
}

impl Part for Windows {
    fn new(_: &Job) -> Windows {
        Windows::default()
    }

    #[inline(always)]
    fn is_busy(&self) -> bool {
        !self.all.is_empty()
    }

    fn advance(&mut self, messages: &mut Messages) {
        for (_, window) in self.all.iter_mut() {
            window.advance(messages);
        }
    }

    #[inline(always)]
    fn may_hold_up_others(&self) -> bool {
        !self.all.is_empty()
    }
}
