//! Windows (MPI 5.0, chapter 12): memory that other ranks read, write and combine with without this
//! rank's program taking part.
//!
//! ```text
//! access    operations of this rank: what each does, and where
//! outgoing  their frames for each target, long data, buffers for replies
//! flights   what is under way to each target, and has to end before a flush does
//! sync      epochs: fences, post-start-complete-wait, locks, flushes
//! posts     post, start, complete and wait
//! direct    memory that this rank reads and writes itself
//! reach     memory in reach, for calls that take no lock of the library
//! taking    frames of others over shared memory, past the queues of messages
//! arrivals  frames of others that have come as messages
//! exposure  what operations of others do to this rank's memory
//! combine   accumulates and compare-and-swap, by others or by this rank itself
//! memory    where that memory is
//! locks     which ranks hold its lock
//! channel   the messages of a window
//! check     conflicting accesses (KW_CHECK)
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
mod arrivals;
mod channel;
mod check;
mod combine;
mod direct;
mod exposure;
mod flights;
mod locks;
mod memory;
mod outgoing;
mod posts;
mod reach;
mod sync;
mod taking;
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
pub(crate) use taking::Taken;

use crate::messages::Messages;
use crate::part::Part;
use arrivals::Arrivals;
use channel::Channel;
use check::Checks;
use direct::{Near, Shared};
use exposure::Exposure;
use kw_base::{ContextId, Key, Slab};
use kw_boot::Job;
use kw_proto::rma::{Epochs, Frame, Misuse};
use kw_sys::buf::Addr;
use kw_types::comm::Group;
use locks::Locks;
use memory::Area;
use outgoing::Outgoing;
use posts::Posts;
use reach::Published;
use std::sync::Arc;
use sync::Waiter;
use tally::Tally;

/// Unsuccessful polls that are worthwhile for the next short operation of a rank: about half as
/// long as it takes between the answer to one and the next. Built-in.
const LOOKS_FOR_MORE: u32 = 32;

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

/// A window of this rank.
#[derive(Debug)]
struct Window {
    channel: Channel,
    /// The extent of the memory of each rank.
    targets: Vec<Extent>,
    epochs: Epochs,
    /// Operations of this rank on others.
    out: Outgoing,
    /// Those of others on this rank.
    exposure: Exposure,
    /// Memory in reach, and what calls do with it that take no lock of the library.
    near: Near,
    published: Published,
    /// Posts and completes of ranks that share memory.
    posts: Posts,
    arrivals: Arrivals,
    waiters: Vec<Waiter>,
    /// Other ranks access this one's memory by messages.
    serves: bool,
    /// Memory for operands.
    scratch: Vec<u8>,
    /// Counts of operations of this rank.
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
        let channel = Channel {
            context: new.context,
            group: new.group,
            me: new.me,
        };
        let locks = Locks::new(shared.clone());
        let checks = new.checks.then(Checks::default);
        Window {
            serves: near < channel.size() as usize,
            targets: new.targets,
            epochs: Epochs::default(),
            out: Outgoing::new(channel.clone(), new.checks),
            exposure: Exposure::new(channel.clone(), Area::new(new.memory), locks, checks),
            posts: Posts::new(shared.clone()),
            near: Near::new(new.me, shared),
            published: Published::new(reachable),
            arrivals: Arrivals::new(channel.clone()),
            channel,
            waiters: Vec::new(),
            scratch: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Learns the effects of calls without the library's lock.
    #[inline]
    fn adopt(&mut self) {
        self.published.adopt(&mut self.epochs, &mut self.near.held);
    }

    /// Publishes the current epoch to calls without the lock.
    fn publish_epoch(&mut self) {
        let held = &mut self.near.held;
        self.published.publish_epoch(&mut self.epochs, held);
    }

    /// Continues with the arrived data, until there is none left; returns whether there was any.
    fn advance(&mut self, messages: &mut Messages) -> bool {
        let mut any = false;
        loop {
            let mut moved = self.take_in(messages);
            moved |= self.exposure.end_going(messages);
            moved |= self.exposure.free_lock_of_dead(messages);
            moved |= self.out.advance(messages);
            if let Some(checks) = &mut self.exposure.memory.checks {
                let notices = self.out.flights.notices.drain(..);
                notices.for_each(|t| checks.on_answer(&t));
            }
            moved |= self.out.send_held(messages);
            if !moved {
                break;
            }
            any = true;
        }
        self.end_waits(messages);
        any
    }

    /// Whether applied frames have no consequence here: nothing waits for them.
    #[inline]
    fn is_settled(&self) -> bool {
        self.waiters.is_empty()
            && self.arrivals.is_empty()
            && self.out.holds_nothing_back()
            && self.exposure.is_settled()
    }

    /// Takes frames that have come; returns whether there were any.
    fn take_in(&mut self, messages: &mut Messages) -> bool {
        let mut moved = false;
        while let Some((origin, data)) = self.arrivals.next(messages) {
            moved = true;
            if origin >= self.channel.size() {
                continue;
            }
            let mut bytes = std::mem::take(&mut self.scratch);
            bytes.resize(data.len() as usize, 0);
            data.read(0, &mut bytes);
            self.apply(messages, origin, &bytes);
            self.scratch = bytes;
        }
        moved
    }

    /// Applies frames that are here.
    fn apply(&mut self, messages: &mut Messages, origin: u32, bytes: &[u8]) {
        let posts = self.exposure.apply(messages, origin, bytes);
        if posts != 0 {
            (0..posts).for_each(|_| self.out.origin.on_post(origin));
            self.out.send_held(messages);
        }
    }

    /// Sends a frame that is not about an operation of this rank.
    fn send_frame(&mut self, messages: &mut Messages, rank: u32, frame: Frame<'_>) {
        self.scratch.clear();
        frame.encode(&mut self.scratch);
        self.channel.send_frames(messages, rank, &self.scratch);
    }

    /// Gives back locks that a thread has taken without need.
    fn give_strays_back(&mut self, messages: &mut Messages) {
        for rank in self.published.take_strays() {
            self.near.held.push(rank);
            self.unlock_direct(messages, rank);
        }
    }

    /// Gives back the lock of memory in reach, if this rank holds it.
    fn unlock_direct(&mut self, messages: &mut Messages, rank: u32) {
        if !self.near.forget_lock(rank) {
            return;
        }
        if rank == self.channel.me {
            self.exposure.release(messages, rank);
        } else if self.near.unlock(rank) {
            self.pass_on(messages, rank);
        }
    }

    /// The lock of memory in reach was given back, and a rank waits for it.
    fn pass_on(&mut self, messages: &mut Messages, rank: u32) {
        match rank == self.channel.me {
            true => self.exposure.grant(messages),
            false => self.send_frame(messages, rank, Frame::Wake),
        }
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
        self.get_mut(id).ok()?.published.reachable.clone()
    }

    /// Whether other ranks access memory of this one by messages: they wait until it polls for
    /// these.
    #[inline]
    pub fn serve(&self) -> bool {
        self.serving != 0
    }

    /// Takes frames that have come over shared memory, past the queues of messages. After some have
    /// come it looks for more for a moment: short operations of a rank follow each other, and it
    /// waits for the answer of each.
    #[inline]
    pub(crate) fn take_frames(&mut self, messages: &mut Messages) -> Taken {
        let looks = match messages.at_once.is_zero() {
            true => 0,
            false => LOOKS_FOR_MORE,
        };
        taking::take(&mut self.all, &mut self.bytes, messages, looks)
    }

    /// Takes the frames that have come over shared memory, and continues with what waits for them;
    /// returns whether there were any.
    fn take_at_once(&mut self, messages: &mut Messages) -> bool {
        let taken = taking::take(&mut self.all, &mut self.bytes, messages, 0);
        if taken == Taken::Unsettled {
            self.advance(messages);
        }
        taken != Taken::None
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
            self.freed.add(&window.counted());
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
        if !window.exposure.memory.area.is_dynamic() {
            return Err(WindowError::Attach(
                "memory is attached to windows of MPI_Win_create_dynamic only".into(),
            ));
        }
        match window.exposure.memory.area.attach(base, size) {
            true => Ok(()),
            false => Err(WindowError::Attach(
                "the memory overlaps memory that is attached already".into(),
            )),
        }
    }

    /// Detaches the memory that was attached at an address.
    pub fn detach(&mut self, id: WinId, base: Addr) -> Result<(), WindowError> {
        match self.get_mut(id)?.exposure.memory.area.detach(base) {
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
