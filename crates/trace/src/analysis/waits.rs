//! Waits, by the classes of Scalasca's documentation.
//!
//! A wait begins when the call is entered, and ends at the awaited event: the send was begun, the
//! receive was posted, the last member entered the collective. The rest of the call moved data. Two
//! waits of a call count as one, the longer.

mod probes;

use std::collections::HashMap;

use super::{epochs, locks};
use crate::functions::{Pattern, immediate, pattern};
use crate::model::{Call, Message, Name, Trace};

/// Class of a wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Class {
    /// The receiver came before the sender.
    LateSender = 1,
    /// Late sender, while another message that was sent earlier was queued and received later.
    WrongOrder,
    /// The sender could not continue before the receive was posted.
    LateReceiver,
    /// The root of a collective came before the ranks that send to it.
    EarlyReduce,
    /// A rank came to a scan before a lower rank.
    EarlyScan,
    /// Ranks that receive from the root of a collective came before it.
    LateBroadcast,
    /// Members of a collective in which all wait for all.
    AllToAll,
    /// A rank came to a neighbourhood collective before one that it receives from there.
    LateNeighbor,
    /// Members of a barrier.
    Barrier,
    /// Another rank held a lock of the same rank's memory.
    Lock,
    /// Ranks that came to MPI_Win_fence before the last one.
    LateFence,
    /// A target called MPI_Win_post only when an origin waited for it.
    LatePost,
    /// An origin called MPI_Win_complete only when the target waited for it in MPI_Win_wait.
    LateComplete,
}

/// All classes, in their order.
pub const CLASSES: [Class; 13] = [
    Class::LateSender,
    Class::WrongOrder,
    Class::LateReceiver,
    Class::EarlyReduce,
    Class::EarlyScan,
    Class::LateBroadcast,
    Class::AllToAll,
    Class::LateNeighbor,
    Class::Barrier,
    Class::Lock,
    Class::LateFence,
    Class::LatePost,
    Class::LateComplete,
];

impl Class {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Class::LateSender => "late sender",
            Class::WrongOrder => "late sender, messages in wrong order",
            Class::LateReceiver => "late receiver",
            Class::EarlyReduce => "early reduce",
            Class::EarlyScan => "early scan",
            Class::LateBroadcast => "late broadcast",
            Class::AllToAll => "wait at n-to-n",
            Class::LateNeighbor => "late neighbour",
            Class::Barrier => "wait at barrier",
            Class::Lock => "wait for lock",
            Class::LateFence => "late fence",
            Class::LatePost => "late post",
            Class::LateComplete => "late complete",
        }
    }
}

/// One wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Class.
    pub class: Class,
    /// The waiting call, in `Trace::calls`.
    pub call: u32,
    /// Start of the wait: the time when the call was entered.
    pub begin: u64,
    /// Time at which the awaited rank came.
    pub end: u64,
    /// The awaited call, in `Trace::calls`.
    pub cause: u32,
    /// Its message, in `Trace::messages`.
    pub message: Option<u32>,
}

impl Wait {
    /// Duration in nanoseconds.
    pub fn time(&self) -> u64 {
        self.end - self.begin
    }
}

/// All waits, by thread and time; at most one for each call.
pub fn waits(trace: &Trace) -> Vec<Wait> {
    let mut longest: HashMap<u32, Wait> = HashMap::new();
    let mut take = |wait: Wait| {
        if wait.end > wait.begin {
            let known = longest.entry(wait.call).or_insert(wait);
            if known.time() < wait.time() {
                *known = wait;
            }
        }
    };
    late_senders(trace).into_iter().for_each(&mut take);
    late_receivers(trace).into_iter().for_each(&mut take);
    probes::waits(trace).into_iter().for_each(&mut take);
    locks::waits(trace).into_iter().for_each(&mut take);
    epochs::waits(trace).into_iter().for_each(&mut take);
    collectives(trace, &mut take);
    let mut all: Vec<Wait> = longest.into_values().collect();
    // calls are sorted by thread and beginning
    all.sort_unstable_by_key(|w| w.call);
    all
}

/// The wait of `call` until `time`, at most as long as the call.
pub(super) fn until(trace: &Trace, class: Class, call: u32, time: u64, cause: u32) -> Wait {
    let waiting = &trace.calls[call as usize];
    Wait {
        class,
        call,
        begin: waiting.begin,
        end: time.clamp(waiting.begin, waiting.end),
        cause,
        message: None,
    }
}

fn late_senders(trace: &Trace) -> Vec<Wait> {
    let ahead = passed_over(trace);
    let one = |(i, m): (usize, &Message)| {
        let class = if ahead[i] {
            Class::WrongOrder
        } else {
            Class::LateSender
        };
        Wait {
            message: Some(i as u32),
            ..until(trace, class, m.receive, m.sent, m.send)
        }
    };
    let others = |(_, m): &(usize, &Message)| m.from != m.to;
    trace
        .messages
        .iter()
        .enumerate()
        .filter(others)
        .map(one)
        .collect()
}

/// For each message: whether another one to the same rank was sent before it, and its receive
/// posted only after this one's was complete.
fn passed_over(trace: &Trace) -> Vec<bool> {
    let mut by_receiver: HashMap<u32, Vec<u32>> = HashMap::new();
    for (i, m) in trace.messages.iter().enumerate() {
        by_receiver.entry(m.to).or_default().push(i as u32);
    }
    let mut passed = vec![false; trace.messages.len()];
    let posted = |m: &Message| m.posted.unwrap_or(trace.calls[m.receive as usize].begin);
    for list in by_receiver.values_mut() {
        list.sort_by_key(|i| std::cmp::Reverse(posted(&trace.messages[*i as usize])));
        // from the last posted to the first: the earliest send of those posted later
        let mut by_end: Vec<u32> = list.clone();
        by_end.sort_by_key(|i| std::cmp::Reverse(trace.messages[*i as usize].received));
        let (mut at, mut earliest) = (0, u64::MAX);
        for i in by_end {
            let m = &trace.messages[i as usize];
            while let Some(later) = list.get(at).map(|l| &trace.messages[*l as usize]) {
                if posted(later) < m.received {
                    break;
                }
                earliest = earliest.min(later.sent);
                at += 1;
            }
            // it must be there while this one is waited for
            passed[i as usize] = earliest < m.sent;
        }
    }
    passed
}

fn late_receivers(trace: &Trace) -> Vec<Wait> {
    let mut all = Vec::new();
    for (i, m) in trace.messages.iter().enumerate() {
        let Some(posted) = m.posted.filter(|p| *p > m.sent && m.from != m.to) else {
            continue;
        };
        let waiting = if !immediate(trace.function(m.send)) {
            Some(m.send).filter(|c| trace.calls[*c as usize].end > posted)
        } else if m.rendezvous {
            completion(trace, m, posted)
        } else {
            None
        };
        if let Some(call) = waiting {
            all.push(Wait {
                message: Some(i as u32),
                ..until(
                    trace,
                    Class::LateReceiver,
                    call,
                    posted,
                    posted_by(trace, m, posted),
                )
            });
        }
    }
    all
}

/// The call of the sender that waited for a nonblocking send: the one during which the receive was
/// finally posted, and which does not merely test.
fn completion(trace: &Trace, m: &Message, posted: u64) -> Option<u32> {
    let thread = trace.calls[m.send as usize].thread;
    let call = trace.before(thread, posted)?;
    let waits = trace
        .function(call)
        .to_ascii_lowercase()
        .starts_with("mpi_wait");
    Some(call).filter(|c| waits && trace.calls[*c as usize].end > posted)
}

/// The call that has posted the receive of a message.
fn posted_by(trace: &Trace, m: &Message, posted: u64) -> u32 {
    let thread = trace.calls[m.receive as usize].thread;
    trace
        .before(thread, posted.saturating_add(1))
        .unwrap_or(m.receive)
}

fn collectives(trace: &Trace, take: &mut impl FnMut(Wait)) {
    for collective in &trace.collectives {
        let entered = |m: &u32| trace.calls[*m as usize].begin;
        let Some(last) = collective.members.iter().copied().max_by_key(entered) else {
            continue;
        };
        match pattern(trace.function(last)) {
            Pattern::Scan => {
                scans(trace, &collective.members, take);
                continue;
            }
            Pattern::Neighbors => {
                neighborhoods(trace, &collective.members, take);
                continue;
            }
            _ => {}
        }
        let root = collective
            .members
            .iter()
            .copied()
            .find(|m| is_root(trace, *m));
        for member in collective.members.iter().copied() {
            let (class, cause) = match (pattern(trace.function(member)), root) {
                (Pattern::Barrier, _) => (Class::Barrier, last),
                // with MPI_MODE_NOPRECEDE it may have left before the last one came
                (Pattern::Fence, _) if entered(&last) < trace.calls[member as usize].end => {
                    (Class::LateFence, last)
                }
                (Pattern::AllToAll, _) => (Class::AllToAll, last),
                (Pattern::ToRoot, Some(root)) if root == member => (Class::EarlyReduce, last),
                (Pattern::FromRoot, Some(root)) if root != member => (Class::LateBroadcast, root),
                _ => continue,
            };
            if cause != member {
                take(until(trace, class, member, entered(&cause), cause));
            }
        }
    }
}

/// Each member of a scan waits for those whose ranks in the communicator are lower.
fn scans(trace: &Trace, members: &[u32], take: &mut impl FnMut(Wait)) {
    let place = |m: &u32| trace.calls[*m as usize].args.place;
    let mut order: Vec<u32> = members.to_vec();
    order.retain(|m| place(m).is_some());
    order.sort_by_key(place);
    let mut last: Option<u32> = None;
    for member in order {
        let entered = trace.calls[member as usize].begin;
        let before = last.map(|l| trace.calls[l as usize].begin);
        if let (Some(cause), Some(before)) = (last, before) {
            take(until(trace, Class::EarlyScan, member, before, cause));
        }
        if before.is_none_or(|b| b < entered) {
            last = Some(member);
        }
    }
}

/// Each member of a neighbourhood collective waits for those that it receives from.
fn neighborhoods(trace: &Trace, members: &[u32], take: &mut impl FnMut(Wait)) {
    let entered = |m: &u32| trace.calls[*m as usize].begin;
    let number = |m: u32| trace.ranks[trace.rank_of(m) as usize].number;
    let by_rank: HashMap<u32, u32> = members.iter().map(|m| (number(*m), *m)).collect();
    for member in members.iter().copied() {
        let comm = trace.calls[member as usize].args.comm_id;
        let of = comm.and_then(|id| trace.neighbors.get(&(number(member), id)));
        let calls = of.into_iter().flatten().filter_map(|r| by_rank.get(r));
        if let Some(cause) = calls.copied().max_by_key(entered) {
            let class = Class::LateNeighbor;
            take(until(trace, class, member, entered(&cause), cause));
        }
    }
}

fn is_root(trace: &Trace, member: u32) -> bool {
    let call: &Call = &trace.calls[member as usize];
    let number = trace.ranks[trace.rank_of(member) as usize].number;
    call.args
        .root
        .is_some_and(|r| i64::from(r) == i64::from(number))
}

/// Waits of one class, of one rank, in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// Class.
    pub class: Class,
    /// The waiting rank, in `Trace::ranks`.
    pub rank: u32,
    /// Function.
    pub function: Name,
    /// Place.
    pub at: Name,
    /// Number of waits.
    pub count: u64,
    /// Duration in nanoseconds.
    pub time: u64,
    /// The longest, in `Trace::calls`.
    pub longest: u32,
}

/// Waits by class, rank and place, the longest first.
pub fn sums(trace: &Trace, waits: &[Wait]) -> Vec<Sum> {
    let mut sums: HashMap<(Class, u32, Name, Name), (Sum, u64)> = HashMap::new();
    for wait in waits {
        let call = &trace.calls[wait.call as usize];
        let rank = trace.rank_of(wait.call);
        let key = (wait.class, rank, call.function, call.at);
        let new = Sum {
            class: wait.class,
            rank,
            function: call.function,
            at: call.at,
            count: 0,
            time: 0,
            longest: wait.call,
        };
        let (sum, longest) = sums.entry(key).or_insert((new, 0));
        sum.count += 1;
        sum.time = sum.time.saturating_add(wait.time());
        if wait.time() > *longest {
            (sum.longest, *longest) = (wait.call, wait.time());
        }
    }
    let mut all: Vec<Sum> = sums.into_values().map(|s| s.0).collect();
    all.sort_by_key(|s| (std::cmp::Reverse(s.time), s.rank, s.longest));
    all
}

#[cfg(test)]
mod tests;
