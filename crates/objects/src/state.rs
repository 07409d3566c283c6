//! The state of MPI in one process: a lock with the engine and the tables of objects.

use crate::abi::Fortran;
use crate::attributes::Attributes;
use crate::buffered::Buffers;
use crate::codes::Codes;
use crate::comm::Comms;
use crate::datatype::Types;
use crate::errhandler::Errhandlers;
use crate::file::File;
use crate::group::Groups;
use crate::handle::CommH;
use crate::info::Infos;
use crate::life::Life;
use crate::message::Message;
use crate::op::Ops;
use crate::request::Requests;
use crate::session::Sessions;
use crate::tool::Tool;
use crate::window::Window;
use kw_base::Slab;
use kw_base::sync::atomic::{AtomicBool, Ordering};
use kw_engine::windows::Reachable;
use kw_engine::{Engine, Inner, ProgressLock};
use kw_sys::mem::Memory;
use kw_sys::published::Published;
use std::collections::HashMap;

/// Everything MPI keeps in one process. `kw-abi` holds the only one; a test may hold many.
#[derive(Debug)]
pub struct Mpi {
    /// The lock: engine and tables.
    pub lock: ProgressLock<Tables>,
    /// Memory of windows that calls access without the lock, by the handle of the window.
    pub reachable: Published<Reachable>,
    /// Whether calls that need MPI may be made; see [`Mpi::is_active`].
    active: AtomicBool,
    /// Whether this process is a child that a process of the job made with fork.
    forked: AtomicBool,
}

/// Tables of the objects that handles name. A table that needs no other is a type of its own,
/// beside its object (`objects/*.rs`); look-ups that need several are methods of this type, written
/// there as well.
#[derive(Debug, Default)]
pub struct Tables {
    /// Datatypes.
    pub types: Types,
    /// Communicators.
    pub comms: Comms,
    /// The communicator with the parent processes, if this process was spawned.
    pub parent: Option<CommH>,
    /// Open ports, by name.
    pub ports: HashMap<String, std::sync::Arc<kw_boot::port::Port>>,
    /// Spawned jobs that are connected with this one.
    pub spawned: crate::spawned::SpawnedJobs,
    /// KW_CHECK: whether the ranks compare their collective calls.
    pub checking: bool,
    /// Creators of objects that must be freed, if that is checked.
    pub makers: crate::left::Makers,
    /// Calls that access windows, for `KW_CHECK`.
    pub call_sites: crate::conflicts::CallSites,
    /// Lists of an earlier call, whose memory is reused.
    pub lists: crate::lists::Lists,
    /// Reduction operations.
    pub ops: Ops,
    /// Groups.
    pub groups: Groups,
    /// Windows.
    pub windows: Slab<Window>,
    /// Open files.
    pub files: Slab<File>,
    /// User-defined data representations; an item is the state of one in `kw-file`.
    pub representations: Vec<std::sync::Arc<dyn std::any::Any + Send + Sync>>,
    /// Info objects.
    pub infos: Infos,
    /// Error handlers.
    pub errhandlers: Errhandlers,
    /// Sessions.
    pub sessions: Sessions,
    /// Keyvals and attributes.
    pub attributes: Attributes,
    /// User-defined error codes.
    pub codes: Codes,
    /// Values reported by the Fortran bindings.
    pub fortran: Fortran,
    /// Requests.
    pub requests: Requests,
    /// Messages matched by a probe.
    pub messages: Slab<Message>,
    /// Buffers attached for buffered sends.
    pub buffers: Buffers,
    /// Initialisation, finalisation and threads.
    pub life: Life,
    /// The tool information interface.
    pub tool: Tool,
    /// Reports of long waits.
    pub teller: crate::hang::Teller,
    /// Memory given out by MPI_Alloc_mem, by address.
    pub allocated: HashMap<usize, Memory>,
}

/// Ownership of the lock, with `engine` and `above` (the tables).
pub type Guard<'a> = kw_engine::Guard<'a, Tables>;

/// The guarded state.
pub type State = Inner<Tables>;

impl Mpi {
    /// MPI before initialisation.
    pub fn new() -> Mpi {
        Mpi {
            lock: ProgressLock::new(Tables::default()),
            reachable: Published::default(),
            active: AtomicBool::new(false),
            forked: AtomicBool::new(false),
        }
    }

    /// MPI before initialisation, which will use this engine (tests: over the simulated network).
    pub fn over(engine: Engine) -> Mpi {
        let mpi = Mpi::new();
        mpi.lock.look().above.life.ready = Some(engine);
        mpi
    }

    /// Whether MPI (world or a session) is initialised and not finalised. Any thread, without the
    /// lock.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Sets this, as the last action of initialisation and the first of finalisation.
    pub fn set_active(&self, yes: bool) {
        self.active.store(yes, Ordering::Release);
    }

    /// Start of a forked child. It has its parent's memory and connections, but is not a process of
    /// the job: its messages would appear to come from its parent, and its parent would miss the
    /// messages it received. MPI is over for it. Takes no lock: a thread that no longer exists may
    /// hold it.
    pub fn over_in_child(&self) {
        if self.active.swap(false, Ordering::AcqRel) {
            self.forked.store(true, Ordering::Release);
        }
    }

    /// Whether MPI was initialised when this process was forked from another.
    pub fn is_forked(&self) -> bool {
        self.forked.load(Ordering::Acquire)
    }

    /// Wakes every thread that waits for something which no message brings (MPI_Grequest_complete).
    pub fn wake_all(&self) {
        self.lock.wake_all();
    }

    /// Takes the lock.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_> {
        self.lock.lock()
    }
}

impl Default for Mpi {
    fn default() -> Self {
        Mpi::new()
    }
}
