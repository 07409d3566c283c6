//! Analysis of hangs: each rank's waits, as one line of text between rank and launcher; conclusions
//! from the waits of all ranks; and the page that reports them. Pure.
//!
//! ```text
//! rank:     its waits -> Report -> encode -> a line over the control connection
//! launcher: decode -> a State for each rank -> analyze -> Finding -> page
//! ```
//!
//! *Proof.* A wait can end only through another rank: through a certain rank, any of some, or
//! several, all of which it needs. A rank that is not known to wait may do anything. From these the
//! ranks that may still progress are found repeatedly, until nothing changes ([`analyze`]); the
//! remaining ranks can never progress, provided that all reports were true at one moment and that
//! no message was in flight then. For that the launcher asks twice: a report that all ranks repeat
//! in the same words, the second time after all had reported the first time, was true in between.
#![forbid(unsafe_code)]

mod conflict;
mod graph;
mod left;
mod locks;
mod page;
mod ranges;
mod sentence;
mod text;

#[cfg(test)]
mod cases;

pub use conflict::{CallSite, Conflict};
pub use graph::{Finding, Why, analyze};
pub use left::{Left, times};
pub use locks::{Lock, name_holders};
pub use page::page;
pub use ranges::Ranges;
pub use sentence::line;
pub use text::{MARK, MOST_BYTES, Malformed};

/// A process of the job, by its rank in the job.
pub type Rank = u32;

/// Contexts of a communicator, the first of which is its id: `STRIDE` of `kw_types`.
pub const CONTEXTS: u32 = 4;

/// The communicator's id of a context.
pub fn communicator(context: u32) -> u32 {
    context - context % CONTEXTS
}

/// Whether messages of collectives, or of the creation of communicators, use this context.
pub fn is_collective(context: u32) -> bool {
    context % CONTEXTS != 0
}

/// Requirement of a wait on others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A message, for a receive that is posted.
    Receive,
    /// A message, for a probe.
    Probe,
    /// A receive, for an RTS that was sent.
    Send,
    /// The receive of an earlier message.
    KeptBack,
    /// An action of a rank in a collective.
    Collective,
    /// The missing partitions of a partitioned receive.
    PartReceive,
    /// The receive of a partitioned send.
    PartSend,
    /// The program, which must mark partitions of a send as ready.
    Ready,
    /// The lock of a window, or its release by the holder.
    Lock,
    /// MPI_Win_post.
    Post,
    /// MPI_Win_complete.
    Complete,
    /// MPI_Win_fence.
    Fence,
    /// None, or an unknown one.
    Other,
}

/// One wait of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The requirement.
    pub kind: Kind,
    /// The awaited rank; `None`: any that sends in this context.
    pub peer: Option<Rank>,
    /// Its rank in the communicator, if it has one. For a lock: the rank in the window whose memory
    /// it protects.
    pub source: Option<u32>,
    /// Tag; for a collective, the number of the communicator's call. `None`: any.
    pub tag: Option<i32>,
    /// Context.
    pub context: u32,
    /// Bytes of the message, or of the receive buffer.
    pub bytes: u64,
}

impl Kind {
    /// Whether it belongs to partitioned communication, about which nothing is proven.
    pub(crate) fn is_partitioned(self) -> bool {
        matches!(self, Kind::PartReceive | Kind::PartSend | Kind::Ready)
    }
}

impl Wait {
    /// A wait that ends by itself, or is unknown.
    pub const OTHER: Wait = Wait {
        kind: Kind::Other,
        peer: None,
        source: None,
        tag: None,
        context: 0,
        bytes: 0,
    };
}

/// A collective that runs in the background.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Context of the communicator's collectives.
    pub context: u32,
    /// Number of the communicator's call.
    pub number: i32,
    /// All its waits.
    pub waits: Vec<Wait>,
}

/// An unexpected message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Early {
    /// The sender.
    pub from: Rank,
    /// Its rank in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Context.
    pub context: u32,
    /// Bytes.
    pub bytes: u64,
    /// Whether it is a partitioned send, of which some partitions may have arrived.
    pub partitioned: bool,
}

/// A communicator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comm {
    /// Its id.
    pub context: u32,
    /// Number of collective calls on it here.
    pub calls: i32,
    /// Its name, or another description.
    pub name: String,
    /// Ranks that send in it to this rank; empty if they are omitted.
    pub senders: Vec<Rank>,
    /// Ranks that take part in its collectives; empty if they are omitted.
    pub members: Vec<Rank>,
}

/// A place in a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// Path of the program or library.
    pub file: String,
    /// Offset from its load address in bytes.
    pub offset: u64,
}

/// Report of a rank that waits inside MPI.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The number of the question that it answers; 0: unsolicited.
    pub round: u32,
    /// Duration of the wait, in milliseconds.
    pub waited: u64,
    /// Value that changes whenever data has arrived or another call was made.
    pub mark: u64,
    /// Whether none of its messages is in flight.
    pub quiet: bool,
    /// Whether another of its threads may call MPI.
    pub threads: bool,
    /// Whether it polls repeatedly instead of waiting (MPI_Test).
    pub polls: bool,
    /// The MPI function that its program called.
    pub call: String,
    /// Its waits.
    pub waits: Vec<Wait>,
    /// Whether any of these ends the wait; otherwise all are needed.
    pub any: bool,
    /// Collectives in the background.
    pub runs: Vec<Run>,
    /// Messages without a receive, some of them.
    pub early: Vec<Early>,
    /// Communicators.
    pub comms: Vec<Comm>,
    /// Locks of windows, as far as it knows about them.
    pub locks: Vec<Lock>,
    /// Where the program called the function, innermost frame first.
    pub frames: Vec<Frame>,
    /// A wait that no message ends, as the beginning of a sentence that ends with its duration;
    /// usually empty.
    pub waits_for: String,
    /// Processes of other jobs that are named above.
    pub others: Vec<Other>,
}

/// A process of another job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Other {
    /// The number that the reporting rank gives it.
    pub number: Rank,
    /// Its rank in its job.
    pub rank: Rank,
    /// The name of its job.
    pub job: String,
}

impl Report {
    /// Whether nothing has changed since an earlier report.
    pub fn stands(&self, earlier: &Report) -> bool {
        let mut same = earlier.clone();
        (same.round, same.waited) = (self.round, self.waited);
        same == *self
    }

    /// The name for people of a process in the report.
    pub(crate) fn named(&self, rank: Rank) -> String {
        match self.others.iter().find(|o| o.number == rank) {
            Some(other) => format!("rank {} of job {}", other.rank, other.job),
            None => format!("rank {rank}"),
        }
    }

    /// The rank of a process in its own job.
    pub(crate) fn own_rank(&self, rank: Rank) -> Rank {
        let other = self.others.iter().find(|o| o.number == rank);
        other.map_or(rank, |o| o.rank)
    }

    pub(crate) fn comm(&self, context: u32) -> Option<&Comm> {
        self.comms
            .iter()
            .find(|c| c.context == communicator(context))
    }

    /// The collective in which the rank's call waits: context and number, if there is one.
    pub(crate) fn collective(&self) -> Option<(u32, Option<i32>)> {
        let mut inside = self.waits.iter().filter(|w| w.kind == Kind::Collective);
        inside.next().map(|w| (w.context, w.tag))
    }
}

/// State of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It waits inside MPI.
    Waits(Box<Report>),
    /// It did not answer: it does not wait in MPI, but computes, or makes short calls one after
    /// another. Contains the system's information about its process.
    NotWaiting(String),
    /// It has not called MPI_Init yet, or its process was not started by this launcher.
    Silent,
    /// It has finished MPI, or ended.
    Finished,
}

/// A rank with its state, and its place in the program for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankState {
    /// Its state.
    pub state: State,
    /// File and line of the call, as far as they are known; may be empty.
    pub site: String,
}

impl RankState {
    /// Its wait, if it waits.
    pub fn report(&self) -> Option<&Report> {
        match &self.state {
            State::Waits(report) => Some(report),
            _ => None,
        }
    }
}
