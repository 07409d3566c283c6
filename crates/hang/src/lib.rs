//! Why a job hangs: what each rank waits for, as one line of text between rank and launcher; what
//! follows from that of all ranks; and the page that says so. Pure.
//!
//! ```text
//! rank:     what it waits for -> Report -> encode -> a line over the control connection
//! launcher: decode -> a State for each rank -> analyze -> Finding -> page
//! ```
//!
//! *Proof.* A wait can end only through another rank: through a certain rank, any of some, or
//! several, all of which it needs. A rank that is not known to wait may do anything. From these the
//! ranks that may still progress are found repeatedly, until nothing changes ([`analyze`]); the
//! remaining ranks can never progress, provided that all reports were true at one moment and that
//! no message was in flight then. The launcher asks twice for that: what all ranks report twice in
//! the same words, the second time after all had reported the first time, was true in between.
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

/// Whether messages of collectives, or those that make communicators, go by this context.
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
    /// A receive, for a message that was offered.
    Send,
    /// The receive of an earlier message.
    Held,
    /// An action of a rank in a collective.
    Collective,
    /// The missing partitions of a partitioned receive.
    PartReceive,
    /// The receive of a partitioned send.
    PartSend,
    /// The program marking partitions of a send as ready.
    Ready,
    /// The lock of a window, or that who holds it gives it back.
    Lock,
    /// MPI_Win_post.
    Post,
    /// MPI_Win_complete.
    Complete,
    /// MPI_Win_fence.
    Fence,
    /// Nothing, or something unknown.
    Other,
}

/// One thing that a rank waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The requirement.
    pub kind: Kind,
    /// The rank; `None`: any that sends in this context.
    pub peer: Option<Rank>,
    /// The rank of that one in the communicator, if it has one. Of a lock: the rank in the window of
    /// whose memory it is.
    pub source: Option<u32>,
    /// Tag; of a collective, which call of the communicator it is. `None`: any.
    pub tag: Option<i32>,
    /// Context.
    pub context: u32,
    /// Bytes of the message, or room for it.
    pub bytes: u64,
}

impl Kind {
    /// Whether it is of partitioned communication, of which nothing is proven.
    pub(crate) fn is_partitioned(self) -> bool {
        matches!(self, Kind::PartReceive | Kind::PartSend | Kind::Ready)
    }
}

impl Wait {
    /// One that ends by itself, or of which nothing is known.
    pub const OTHER: Wait = Wait {
        kind: Kind::Other,
        peer: None,
        source: None,
        tag: None,
        context: 0,
        bytes: 0,
    };
}

/// A collective that goes on in the background.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Context of the communicator's collectives.
    pub context: u32,
    /// Which call of the communicator.
    pub number: i32,
    /// All its waits.
    pub waits: Vec<Wait>,
}

/// A message that came before its receive.
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
    /// It is a partitioned send, of which some may be here.
    pub partitioned: bool,
}

/// A communicator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comm {
    /// Its id.
    pub context: u32,
    /// Collective calls that were made on it here.
    pub calls: i32,
    /// Its name, or what else tells it.
    pub name: String,
    /// Ranks that send in it to this rank; empty if that was left out.
    pub senders: Vec<Rank>,
    /// Ranks that take part in its collectives; empty if that was left out.
    pub members: Vec<Rank>,
}

/// A place in a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// Path of the program or library.
    pub file: String,
    /// Bytes from where it was loaded.
    pub offset: u64,
}

/// Report of a rank that waits inside MPI.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The question that it answers; 0: it was not asked.
    pub round: u32,
    /// How long it has waited, in milliseconds.
    pub waited: u64,
    /// Changes whenever something has come or another call was made.
    pub mark: u64,
    /// Nothing that it sends or receives is under way.
    pub quiet: bool,
    /// Another of its threads may call MPI.
    pub threads: bool,
    /// It looks again and again instead of waiting (MPI_Test).
    pub polls: bool,
    /// The MPI function that its program called.
    pub call: String,
    /// Its waits.
    pub waits: Vec<Wait>,
    /// Any of these ends the wait; else all are needed.
    pub any: bool,
    /// Collectives in the background.
    pub runs: Vec<Run>,
    /// Messages without a receive, some of them.
    pub early: Vec<Early>,
    /// Communicators.
    pub comms: Vec<Comm>,
    /// Locks of windows, as far as it knows of them.
    pub locks: Vec<Lock>,
    /// Where the program called it, innermost first.
    pub frames: Vec<Frame>,
    /// What it waits for that no message brings, as the beginning of a sentence that ends with how
    /// long; mostly empty.
    pub waits_for: String,
    /// Processes of other jobs that are named above.
    pub others: Vec<Other>,
}

/// A process of another job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Other {
    /// The number that the rank which tells of it gives it.
    pub number: Rank,
    /// Its rank in its job.
    pub rank: Rank,
    /// The name of its job.
    pub job: String,
}

impl Report {
    /// Whether nothing has changed since an earlier one.
    pub fn stands(&self, earlier: &Report) -> bool {
        let mut same = earlier.clone();
        (same.round, same.waited) = (self.round, self.waited);
        same == *self
    }

    /// What people call a process that it tells of.
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

    /// The collective that the rank's call waits in: context and number, if it has one.
    pub(crate) fn collective(&self) -> Option<(u32, Option<i32>)> {
        let mut inside = self.waits.iter().filter(|w| w.kind == Kind::Collective);
        inside.next().map(|w| (w.context, w.tag))
    }
}

/// Where a rank is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It waits inside MPI.
    Waits(Box<Report>),
    /// It did not answer: it does not wait in MPI, but computes, or makes short calls one after
    /// another. The system's information about its process.
    NotWaiting(String),
    /// It has not called MPI_Init yet, or its process was not started by this launcher.
    Silent,
    /// It has finished MPI, or ended.
    Finished,
}

/// A rank, where it is, and where in its program as people want to read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// Where it is.
    pub state: State,
    /// File and line of the call, or as much as is known of that; may be empty.
    pub site: String,
}

impl Told {
    /// Its wait, if it waits.
    pub fn report(&self) -> Option<&Report> {
        match &self.state {
            State::Waits(report) => Some(report),
            _ => None,
        }
    }
}
