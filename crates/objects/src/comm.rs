//! Communicators: their contents, how they are created and freed.
//!
//! An operation that is in flight names contexts and peers, never a [`Comm`]; so MPI_Comm_free
//! removes the object at once, and pending operations complete (MPI 5.0, 7.4.3).

use crate::error::{Class, Fault, Res, fail};
use crate::handle::{CommH, ErrhandlerH};
use crate::info::{Info, ROWS_HINT};
use crate::left::Made;
use crate::state::Tables;
use crate::{Group, Topology};
use kw_base::{ContextId, Peer, Slab};
use kw_boot::Agreed;
use kw_coll::{Levels, Nodes, Table};
use kw_engine::{ChannelId, PlansId};
use kw_types::comm::{ContextPool, SELF, SpanningPool, WORLD};
use std::sync::Arc;

/// MPI_ANY_SOURCE
pub const ANY_SOURCE: i32 = -1;
/// MPI_PROC_NULL
pub const PROC_NULL: i32 = -3;
/// MPI_UNDEFINED
pub const UNDEFINED: i32 = -32766;

/// One communicator, intra or inter.
#[derive(Debug)]
pub struct Comm {
    /// Its handle (for error scopes).
    pub handle: CommH,
    /// Context id, a multiple of four: its collectives use the odd one above, and communicators are
    /// created from it over the next two.
    pub context: ContextId,
    /// The group this process is in.
    pub local: Arc<Group>,
    /// The other group of an intercommunicator.
    pub remote: Option<Arc<Group>>,
    /// In an intercommunicator: whether the local group comes first, if one must; both groups agree
    /// on it.
    pub first: bool,
    /// Both groups in one row, once a collective of an intercommunicator has needed them.
    pub both: Option<Arc<Group>>,
    /// This process's rank in `local`.
    pub rank: u32,
    /// Error handler.
    pub errhandler: ErrhandlerH,
    /// Name given by MPI_Comm_set_name.
    pub name: String,
    /// The user's hints that we know.
    pub info: Option<Box<Info>>,
    /// The hint `kw_coll`, decoded: rows that choose algorithms for this communicator.
    pub rows: Option<Arc<Table>>,
    /// Virtual topology.
    pub topology: Option<Arc<Topology>>,
    /// Number of collective calls made on it, which is the tag of the last one.
    pub collectives: i32,
    /// The session from which it was made, if any.
    pub session: Option<crate::handle::SessionH>,
    /// Its shm region.
    pub shm_region: CommRegion,
    /// The engine's plans of its collectives, once one was called.
    pub plans: Option<PlansId>,
    /// Hosts of its ranks, once they were needed; `Some(None)`: all on one.
    pub nodes: Option<Option<Arc<Nodes>>>,
    /// Domains of its ranks on their hosts, once they were needed.
    pub levels: Option<Option<Arc<Levels>>>,
}

/// The memory that a communicator's ranks on one node share for collectives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CommRegion {
    /// Not agreed upon yet; the first blocking collective does that.
    #[default]
    Unknown,
    /// There is none, on any rank.
    None,
    /// All ranks have one; the engine has this name for this rank's.
    Some(ChannelId),
}

impl CommRegion {
    /// The engine's name of it.
    #[inline]
    pub fn id(self) -> Option<ChannelId> {
        match self {
            CommRegion::Some(id) => Some(id),
            _ => None,
        }
    }
}

impl Comm {
    /// A communicator with the default error handler; [`Tables::add_comm`] gives it its handle.
    pub fn new(
        context: ContextId,
        local: Arc<Group>,
        remote: Option<Arc<Group>>,
        rank: u32,
    ) -> Comm {
        let shm_region = match &remote {
            None => CommRegion::Unknown,
            Some(_) => CommRegion::None,
        };
        let first = remote
            .as_ref()
            .is_none_or(|r| local.iter().next() < r.iter().next());
        Comm {
            handle: CommH::NULL,
            context,
            first,
            local,
            remote,
            both: None,
            shm_region,
            plans: None,
            nodes: None,
            levels: None,
            rank,
            errhandler: ErrhandlerH::FATAL,
            name: String::new(),
            info: None,
            rows: None,
            topology: None,
            collectives: 0,
            session: None,
        }
    }

    /// The group in which point-to-point calls count ranks.
    #[inline]
    pub fn target(&self) -> &Arc<Group> {
        self.remote.as_ref().unwrap_or(&self.local)
    }

    /// Updates the values that depend on the hints.
    pub fn read_hints(&mut self) {
        let text = self.info.as_deref().and_then(|i| i.get(ROWS_HINT));
        // Invalid hints are not taken over (`Info::take_comm_hints`).
        self.rows = text.and_then(|t| Table::only(t).ok()).map(Arc::new);
    }

    /// Counts a collective call; returns its tag.
    #[inline]
    pub fn next_collective(&mut self) -> i32 {
        self.collectives = self.collectives.wrapping_add(1) & i32::MAX;
        self.collectives
    }

    /// Whether it is an intercommunicator.
    #[inline]
    pub fn is_inter(&self) -> bool {
        self.remote.is_some()
    }

    /// Which of its ranks share a machine; `None` if all do.
    #[inline]
    pub fn nodes(&mut self, agreed: &Agreed) -> Option<&Arc<Nodes>> {
        let local = &self.local;
        let nodes = || agreed.nodes(|r| local.peer(r), local.size()).map(Arc::new);
        self.nodes.get_or_insert_with(nodes).as_ref()
    }

    /// Which of its ranks are close to each other, if all share a machine and are bound.
    #[inline]
    pub fn levels(&mut self, agreed: &Agreed) -> Option<&Arc<Levels>> {
        let many = self.nodes(agreed).is_some();
        let local = &self.local;
        let levels = || match many {
            true => None,
            false => agreed.levels(local.iter()).map(Arc::new),
        };
        self.levels.get_or_insert_with(levels).as_ref()
    }

    /// Context of the messages that create communicators from this one.
    pub fn making(&self) -> ContextId {
        ContextId(self.context.0 | 2)
    }

    /// The peer of a destination rank; `None` for MPI_PROC_NULL.
    #[inline]
    pub fn peer(&self, rank: i32) -> Res<Option<Peer>> {
        if rank == PROC_NULL {
            return Ok(None);
        }
        let group = self.target();
        if rank < 0 || rank as u32 >= group.size() {
            return no_such_rank(rank, group.size());
        }
        Ok(Some(group.peer(rank as u32)))
    }
}

#[cold]
fn no_such_rank(rank: i32, size: u32) -> Res<Option<Peer>> {
    fail!(Rank: "rank is {rank}, but the communicator has ranks 0 to {}", size as i64 - 1)
}

/// The communicators of the process, and its share of the context ids.
#[derive(Debug, Default)]
pub struct Comms {
    /// User-created communicators.
    pub made: Slab<Comm>,
    /// MPI_COMM_WORLD, between MPI_Init and MPI_Finalize.
    pub world: Option<Comm>,
    /// MPI_COMM_SELF.
    pub itself: Option<Comm>,
    /// This process's share of the context ids; present once the world is open.
    pub contexts: Option<ContextPool>,
    /// Context ids of communicators with processes of several jobs.
    pub spanning: SpanningPool,
}

impl Comms {
    /// The communicator of a handle, if it names one.
    #[inline(always)]
    pub fn find(&self, handle: CommH) -> Option<&Comm> {
        match handle {
            CommH::WORLD => self.world.as_ref(),
            CommH::SELF => self.itself.as_ref(),
            _ => handle.key().and_then(|k| self.made.get(k)),
        }
    }

    /// The communicator of a handle.
    #[inline]
    pub fn get(&self, handle: CommH) -> Res<&Comm> {
        self.find(handle).ok_or_else(|| unknown_comm(handle))
    }

    /// The communicator of a handle, for changes.
    #[inline(always)]
    pub fn find_mut(&mut self, handle: CommH) -> Option<&mut Comm> {
        match handle {
            CommH::WORLD => self.world.as_mut(),
            CommH::SELF => self.itself.as_mut(),
            _ => handle.key().and_then(|k| self.made.get_mut(k)),
        }
    }

    /// The communicator of a handle, for changes.
    pub fn get_mut(&mut self, handle: CommH) -> Res<&mut Comm> {
        let found = self.find_mut(handle);
        found.ok_or_else(|| unknown_comm(handle))
    }

    /// Creates MPI_COMM_WORLD and MPI_COMM_SELF for process `me` of `size`, and the state that
    /// communicators need. Called once, by initialisation.
    pub fn open_world(&mut self, me: Peer, size: u32) {
        self.open_contexts(me, size);
        let world = Arc::new(Group::range(Peer(0), size));
        let mut comm = Comm::new(WORLD, world, None, me.0);
        comm.handle = CommH::WORLD;
        comm.name = "MPI_COMM_WORLD".to_string();
        self.world = Some(comm);
        let mut comm = Comm::new(SELF, Arc::new(Group::range(me, 1)), None, 0);
        comm.handle = CommH::SELF;
        comm.name = "MPI_COMM_SELF".to_string();
        self.itself = Some(comm);
    }

    /// Creates this process's share of the context ids, unless a session has done so before.
    pub fn open_contexts(&mut self, me: Peer, size: u32) {
        self.contexts
            .get_or_insert_with(|| ContextPool::new(me, size));
    }

    /// Removes MPI_COMM_WORLD and MPI_COMM_SELF. Their attributes must be deleted before
    /// (`calls::attr::close_world`).
    pub fn shut_world(&mut self) {
        self.world = None;
        self.itself = None;
    }

    /// Whether a communicator connects this process with one of another job.
    pub fn is_connected(&self, peer: Peer) -> bool {
        let has = |group: &Group| group.rank_of(peer).is_some();
        let remote = |c: &Comm| c.remote.as_deref().is_some_and(has);
        self.made.iter().any(|(_, c)| has(&c.local) || remote(c))
    }

    /// Whether no live communicator has this context id.
    pub fn context_is_free(&self, id: ContextId) -> bool {
        self.made.iter().all(|(_, c)| c.context != id)
    }

    /// Whether a communicator was derived from a session.
    pub fn is_of_session(&self, comm: CommH) -> bool {
        self.find(comm).is_some_and(|c| c.session.is_some())
    }

    fn insert(&mut self, comm: Comm) -> CommH {
        let key = self.made.insert(comm);
        let handle = CommH::from_key(key);
        if let Some(comm) = self.made.get_mut(key) {
            comm.handle = handle;
        }
        handle
    }

    /// Removes a communicator that the user made, and releases its context id.
    fn remove(&mut self, handle: CommH) -> Res<Comm> {
        self.get(handle)?;
        let gone = handle.key().and_then(|k| self.made.remove(k));
        let Some(comm) = gone else {
            return fail!(Comm: "comm is {}, which cannot be freed", self.get(handle)?.name);
        };
        match &mut self.contexts {
            _ if SpanningPool::has(comm.context) => self.spanning.release(comm.context),
            Some(pool) => pool.release(comm.context),
            None => {}
        }
        Ok(comm)
    }
}

#[cold]
fn unknown_comm(handle: CommH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_COMM_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no communicator {}",
            handle.0,
            crate::handle::amiss(handle.0, "freed")
        )
    };
    Fault::new(Class::Comm, format!("comm is {what}"))
}

impl Tables {
    /// Whether any object here names this process of another job.
    pub fn is_in_use(&self, peer: Peer) -> bool {
        let has = |group: &Group| group.rank_of(peer).is_some();
        self.comms.is_connected(peer)
            || self.groups.made.iter().any(|(_, held)| has(&held.group))
            || self.windows.iter().any(|(_, window)| has(&window.group))
            || self
                .messages
                .iter()
                .any(|(_, message)| message.from == peer)
            || self
                .requests
                .has_orphans(|comm| self.comms.find(comm).is_some())
    }

    /// Releases the jobs that this process has spawned and that no communicator connects with it
    /// any more.
    pub fn part_from_spawned(&mut self) {
        let mut jobs = std::mem::take(&mut self.spawned);
        jobs.part_unless(|peer| self.comms.is_connected(peer));
        self.spawned = jobs;
    }

    /// Gives a communicator its handle.
    pub fn add_comm(&mut self, mut comm: Comm) -> CommH {
        comm.read_hints();
        let errhandler = comm.errhandler;
        self.errhandlers.hold(errhandler);
        let handle = self.comms.insert(comm);
        self.note_made(Made::Comm(handle));
        handle
    }

    /// Removes a communicator that the user made, and releases its context id. Returns it.
    pub fn remove_comm(&mut self, handle: CommH) -> Res<Comm> {
        let comm = self.comms.remove(handle)?;
        self.errhandlers.release(comm.errhandler);
        Ok(comm)
    }
}
