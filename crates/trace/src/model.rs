//! The contents of a trace as values: ranks, threads, calls, messages, collectives, counters,
//! phases.
//!
//! Times are nanoseconds of the trace's clock. Objects refer to each other by their indices in the
//! lists of [`Trace`]; texts are kept once, as a [`Name`]. `calls` is sorted by thread and start.

mod arguments;
mod build;
mod names;

use std::collections::BTreeMap;
use std::ops::Range;

pub use build::Builder;
pub use names::{Name, Names};

/// A whole trace.
#[derive(Debug, Default)]
pub struct Trace {
    /// Its texts.
    pub names: Names,
    /// Ranks, by their numbers in MPI_COMM_WORLD.
    pub ranks: Vec<Rank>,
    /// Threads that called MPI, by rank.
    pub threads: Vec<Thread>,
    /// All calls, by thread and start.
    pub calls: Vec<Call>,
    /// Arguments of a call that have no field in [`Args`].
    pub others: BTreeMap<u32, Vec<(Name, Name)>>,
    /// Messages of which both ends are known, by the time of sending.
    pub messages: Vec<Message>,
    /// Collectives, by the start of their first member.
    pub collectives: Vec<Collective>,
    /// The ranks from which a rank receives in the topology of a communicator, by the rank's number
    /// and the communicator's `comm_id`.
    pub neighbors: BTreeMap<(u32, u64), Vec<u32>>,
    /// Values over time.
    pub counters: Vec<Counter>,
    /// Other events: phases of the program, actions of the library.
    pub marks: Vec<Mark>,
    /// The first and the last time in it.
    pub span: Range<u64>,
    /// Sends whose receive is not in the trace.
    pub unreceived: u64,
    /// Receives whose send is not in the trace.
    pub unsent: u64,
    /// Warnings about the trace, one sentence each.
    pub notes: Vec<String>,
}

/// A process of the job.
#[derive(Debug, Clone, Default)]
pub struct Rank {
    /// Its number in MPI_COMM_WORLD.
    pub number: u32,
    /// The recorder's description of it: rank and host.
    pub name: String,
    /// Program, process id.
    pub labels: Vec<String>,
    /// Its threads, in `Trace::threads`.
    pub threads: Vec<u32>,
    /// From the start of its first call to the end of its last.
    pub span: Range<u64>,
    /// Events without room.
    pub lost: u64,
    /// Largest error of its clock, in nanoseconds.
    pub clock_error: u64,
}

/// A thread that called MPI.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// Index in `Trace::ranks`.
    pub rank: u32,
    /// Its name.
    pub name: String,
    /// Its calls in `Trace::calls`.
    pub calls: Range<usize>,
}

/// A call of MPI.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Index in `Trace::threads`.
    pub thread: u32,
    /// Number of calls of this thread in which it is nested.
    pub depth: u16,
    /// Whether it had not ended when the recording did; `end` is the end of its thread's recording
    /// then.
    pub open: bool,
    /// Time of entry.
    pub begin: u64,
    /// Time of return.
    pub end: u64,
    /// `MPI_Send`.
    pub function: Name,
    /// `file.c:160 (function)`.
    pub at: Name,
    /// Its arguments.
    pub args: Args,
}

impl Call {
    /// Its duration in nanoseconds.
    pub fn time(&self) -> u64 {
        self.end - self.begin
    }
}

/// Arguments of a call; those without a meaning in it are missing.
#[derive(Debug, Clone, Default)]
pub struct Args {
    /// Destination in MPI_COMM_WORLD.
    pub dest: Option<i32>,
    /// Source in MPI_COMM_WORLD; -1 is any.
    pub source: Option<i32>,
    /// Tag; -1 is any.
    pub tag: Option<i32>,
    /// Root in MPI_COMM_WORLD.
    pub root: Option<i32>,
    /// Rank whose memory is accessed, locked or completed: in MPI_COMM_WORLD, or in a window that the
    /// trace does not name (`comm_id`).
    pub target: Option<i32>,
    /// The name of the communicator or the window.
    pub comm: Name,
    /// A number that is the same on all its members.
    pub comm_id: Option<u64>,
    /// Number of this collective in that communicator or window.
    pub coll: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// The caller's rank in the communicator, if it matters.
    pub place: Option<i32>,
    /// Number of requests.
    pub requests: Option<u64>,
    /// The operation.
    pub op: Name,
    /// The mode of a send; `shared` or `exclusive` for MPI_Win_lock.
    pub mode: Name,
    /// When the receive of a received message was posted.
    pub posted: Option<u64>,
    /// The place of the call.
    pub at: Name,
    /// Level of MPI_Pcontrol.
    pub level: Option<i64>,
    /// At the end of a recording.
    pub lost: Option<u64>,
    /// At the end of a recording.
    pub clock_error: Option<u64>,
    /// Ranks of the group of MPI_Win_start or MPI_Win_post, in MPI_COMM_WORLD.
    pub group: Vec<i32>,
    /// Arguments without a field above.
    pub others: Vec<(Name, Name)>,
}

/// A message, from the call that sent it to the one that completed its receive.
#[derive(Debug, Clone)]
pub struct Message {
    /// The call that began it, in `Trace::calls`.
    pub send: u32,
    /// The call that completed its receive.
    pub receive: u32,
    /// Sender, in `Trace::ranks`.
    pub from: u32,
    /// Receiver, in `Trace::ranks`.
    pub to: u32,
    /// Its tag.
    pub tag: i32,
    /// Its communicator's name.
    pub comm: Name,
    /// Its length.
    pub bytes: u64,
    /// Time of entry of the call that began it.
    pub sent: u64,
    /// Time when its receive was complete.
    pub received: u64,
    /// Time when its receive was posted, if known.
    pub posted: Option<u64>,
    /// Whether its sender could not continue before the receive was posted.
    pub rendezvous: bool,
}

/// A collective: the calls of its members, by rank.
#[derive(Debug, Clone, Default)]
pub struct Collective {
    /// Indices in `Trace::calls`.
    pub members: Vec<u32>,
}

/// A counter of a rank.
#[derive(Debug, Clone)]
pub struct Counter {
    /// Index in `Trace::ranks`.
    pub rank: u32,
    /// Its name.
    pub name: String,
    /// Times and values.
    pub values: Vec<(u64, f64)>,
}

/// An event without duration.
#[derive(Debug, Clone)]
pub struct Mark {
    /// Index in `Trace::ranks`.
    pub rank: u32,
    /// Time.
    pub time: u64,
    /// `user` or `library`.
    pub category: Name,
    /// Its kind.
    pub name: Name,
    /// Its arguments.
    pub args: Args,
}

impl Trace {
    /// From the first call to the last end, in nanoseconds.
    pub fn time(&self) -> u64 {
        self.span.end - self.span.start
    }

    /// The total time of all ranks, in nanoseconds: the reference for losses.
    pub fn rank_time(&self) -> u64 {
        self.time().saturating_mul(self.ranks.len() as u64)
    }

    /// The rank of a call, in `ranks`.
    pub fn rank_of(&self, call: u32) -> u32 {
        self.threads[self.calls[call as usize].thread as usize].rank
    }

    /// The name of a call's function.
    pub fn function(&self, call: u32) -> &str {
        self.names.text(self.calls[call as usize].function)
    }

    /// The place of a call in the program; empty if unknown.
    pub fn place(&self, call: u32) -> &str {
        self.names.text(self.calls[call as usize].at)
    }

    /// The last outermost call of a thread that begins before this time.
    pub fn before(&self, thread: u32, time: u64) -> Option<u32> {
        let range = self.threads[thread as usize].calls.clone();
        let calls = &self.calls[range.clone()];
        let at = calls.partition_point(|c| c.begin < time);
        let found = calls[..at].iter().rposition(|c| c.depth == 0)?;
        Some((range.start + found) as u32)
    }

    /// Outermost calls of a thread that overlap an interval.
    pub fn calls_in(&self, thread: u32, begin: u64, end: u64) -> impl Iterator<Item = u32> {
        let range = self.threads[thread as usize].calls.clone();
        let first = self.before(thread, begin.saturating_add(1));
        let from = first.map_or(range.start, |c| c as usize);
        let calls = &self.calls;
        let inside = move |c: &usize| calls[*c].depth == 0 && calls[*c].end > begin;
        let before = move |c: &usize| calls[*c].begin < end;
        let found = (from..range.end).take_while(before).filter(inside);
        found.map(|c| c as u32)
    }
}
