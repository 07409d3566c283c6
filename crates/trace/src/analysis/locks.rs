//! Waits for locks of windows: which rank held a lock of the same rank's memory meanwhile. A trace
//! does not contain the window of a lock, nor whether MPI_Win_lock shares it, so the two may be
//! unrelated.

use super::losses::Site;
use super::waits::{Class, Wait, until};
use crate::model::{Call, Trace};
use std::collections::{HashMap, HashSet};

/// Whether a call ends when a target has answered, which the target does only after it has granted
/// the lock.
pub fn waits_for_lock(function: &str) -> bool {
    const CALLS: [&str; 6] = [
        "MPI_Win_lock",
        "MPI_Win_lock_all",
        "MPI_Win_unlock",
        "MPI_Win_unlock_all",
        "MPI_Win_flush",
        "MPI_Win_flush_all",
    ];
    CALLS.contains(&function)
}

/// A lock that a rank held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The rank, in `Trace::ranks`.
    pub rank: u32,
    /// Place where it was acquired.
    pub from: Site,
    /// Place where it was released.
    pub to: Site,
    /// Nanoseconds of the wait.
    pub time: u64,
}

/// The lock of another rank that was held for the longest part of a call, if that is at least half
/// of it.
pub fn held_meanwhile(trace: &Trace, call: u32) -> Option<Held> {
    let waits = &trace.calls[call as usize];
    let own = trace.rank_of(call);
    let others = trace.threads.iter().filter(|thread| thread.rank != own);
    let all = others.flat_map(|thread| held(trace, &trace.calls[thread.calls.clone()], waits));
    let most = all.max_by_key(|held| held.time)?;
    (most.time > 0 && most.time >= waits.time() / 2).then_some(most)
}

/// The locks of a thread, with the time that each overlaps a call.
fn held(trace: &Trace, calls: &[Call], waits: &Call) -> Vec<Held> {
    let (mut all, mut taken) = (Vec::new(), None);
    // MPI_Win_lock_all has no target.
    let other = |call: &Call| {
        let (theirs, ours) = (call.args.target, waits.args.target);
        theirs.is_some() && ours.is_some() && theirs != ours
    };
    for call in calls.iter().filter(|call| call.depth == 0 && !other(call)) {
        match (trace.names.text(call.function), taken) {
            ("MPI_Win_lock" | "MPI_Win_lock_all", None) => taken = Some(call),
            ("MPI_Win_unlock" | "MPI_Win_unlock_all", Some(from)) => {
                let (begin, end) = (from.end.max(waits.begin), call.end.min(waits.end));
                all.push(Held {
                    rank: trace.threads[call.thread as usize].rank,
                    from: (from.function, from.at),
                    to: (call.function, call.at),
                    time: end.saturating_sub(begin),
                });
                taken = None;
            }
            _ => {}
        }
    }
    all
}

/// The end of a lock.
#[derive(Clone, Copy)]
struct Released {
    /// When it was acquired, and when MPI_Win_unlock was called.
    taken: u64,
    time: u64,
    /// That call, in `Trace::calls`.
    call: u32,
    /// The rank that held it, in `Trace::ranks`.
    rank: u32,
    /// It was of the memory of all, by MPI_Win_lock_all, which shares it.
    all: bool,
}

/// The ends of all locks, by time.
#[derive(Default)]
struct Releases {
    /// Of the memory of one rank of a window.
    of: HashMap<i32, Vec<Released>>,
    /// Of the memory of all, by MPI_Win_unlock_all.
    of_all: Vec<Released>,
    /// Both.
    any: Vec<Released>,
    /// Calls, in `Trace::calls`, of a rank that shares the memory of all: it does not wait for others
    /// that do.
    sharing: HashSet<u32>,
}

impl Releases {
    fn new(trace: &Trace) -> Releases {
        let mut all = Releases::default();
        for thread in &trace.threads {
            all.add_thread(trace, thread.calls.clone(), thread.rank);
        }
        let lists = all.of.values_mut().chain([&mut all.of_all, &mut all.any]);
        lists.for_each(|list| list.sort_by_key(|r| r.time));
        all
    }

    fn add_thread(&mut self, trace: &Trace, calls: std::ops::Range<usize>, rank: u32) {
        let mut taken: HashMap<Option<i32>, u64> = HashMap::new();
        for i in calls {
            let call = &trace.calls[i];
            let target = call.args.target;
            let function = trace.names.text(call.function);
            if function == "MPI_Win_lock_all" || taken.contains_key(&None) {
                self.sharing.insert(i as u32);
            }
            match function {
                "MPI_Win_lock" | "MPI_Win_lock_all" => {
                    taken.insert(target, call.end);
                }
                "MPI_Win_unlock" | "MPI_Win_unlock_all" => {
                    let Some(taken) = taken.remove(&target) else {
                        continue;
                    };
                    let released = Released {
                        taken,
                        time: call.begin,
                        call: i as u32,
                        rank,
                        all: target.is_none(),
                    };
                    self.any.push(released);
                    match target {
                        Some(target) => self.of.entry(target).or_default().push(released),
                        None => self.of_all.push(released),
                    }
                }
                _ => {}
            }
        }
    }

    /// The last lock of another rank that ended during a call, excluded it, and was held for at
    /// least half of the time until then.
    fn last(&self, list: &[Released], (i, waits): (u32, &Call), rank: u32) -> Option<Released> {
        let shares = self.sharing.contains(&i);
        let before = &list[..list.partition_point(|r| r.time <= waits.end)];
        let during = before.iter().rev().take_while(|r| r.time > waits.begin);
        let mut others = during.filter(|r| r.rank != rank && !(shares && r.all));
        let last = others.next().copied()?;
        let held = last.time - last.taken.max(waits.begin).min(last.time);
        (held >= (last.time - waits.begin) / 2).then_some(last)
    }

    fn awaited(&self, i: u32, waits: &Call, rank: u32) -> Option<Released> {
        let waits = (i, waits);
        let Some(target) = waits.1.args.target else {
            return self.last(&self.any, waits, rank);
        };
        let one = self.of.get(&target).map_or(&[][..], |list| list);
        let found = [one, &self.of_all].map(|list| self.last(list, waits, rank));
        found.into_iter().flatten().max_by_key(|r| r.time)
    }
}

/// The waits for locks of windows: until the rank that held a lock of the same rank's memory gave
/// it back.
pub fn waits(trace: &Trace) -> Vec<Wait> {
    let releases = Releases::new(trace);
    if releases.any.is_empty() {
        return Vec::new();
    }
    let wait = |(i, call): (usize, &Call)| {
        if call.depth != 0 || !waits_for_lock(trace.names.text(call.function)) {
            return None;
        }
        let rank = trace.threads[call.thread as usize].rank;
        let released = releases.awaited(i as u32, call, rank)?;
        Some(until(
            trace,
            Class::Lock,
            i as u32,
            released.time,
            released.call,
        ))
    };
    trace.calls.iter().enumerate().filter_map(wait).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Made, Maker};

    #[test]
    fn the_rank_that_held_a_lock_for_most_of_a_wait_is_found() {
        let mut maker = Maker::new(3);
        maker.call(0, Made::new("MPI_Win_lock", 0, 10, "a.c:5"));
        maker.call(0, Made::new("MPI_Win_unlock", 90, 95, "a.c:6"));
        maker.call(1, Made::new("MPI_Win_lock", 20, 100, "a.c:8"));
        maker.call(1, Made::new("MPI_Win_unlock", 110, 115, "a.c:9"));
        maker.call(2, Made::new("MPI_Win_lock", 200, 210, "a.c:8"));
        let trace = maker.trace();
        let call = |begin| {
            let mut all = trace.calls.iter();
            all.position(|c| c.begin == begin).expect("a call") as u32
        };
        let held = held_meanwhile(&trace, call(20)).expect("rank 0's");
        let at = |site: Site| trace.names.text(site.1);
        assert_eq!(
            (held.rank, at(held.from), at(held.to), held.time),
            (0, "a.c:5", "a.c:6", 75)
        );
        assert_eq!(held_meanwhile(&trace, call(200)), None);
        assert_eq!(held_meanwhile(&trace, call(0)), None, "before anybody's");
    }

    #[test]
    fn a_lock_of_another_ranks_memory_is_not_waited_for() {
        for (target, found) in [(1, None), (0, Some(0))] {
            let mut maker = Maker::new(2);
            let made = |name, begin, end, at| Made::new(name, begin, end, at);
            maker.call(
                0,
                made("MPI_Win_lock", 0, 10, "a.c:5").int("target", target),
            );
            maker.call(
                0,
                made("MPI_Win_unlock", 90, 95, "a.c:6").int("target", target),
            );
            maker.call(1, made("MPI_Win_lock", 20, 100, "a.c:8").int("target", 0));
            let trace = maker.trace();
            let waits = trace.calls.iter().position(|c| c.begin == 20);
            let held = held_meanwhile(&trace, waits.expect("a call") as u32);
            assert_eq!(held.map(|held| held.rank), found, "{target}");
        }
    }

    #[test]
    fn a_wait_for_a_lock_ends_when_its_holder_gives_it_back() {
        let mut maker = Maker::new(3);
        let of = |name, begin, end| Made::new(name, begin, end, "").int("target", 0);
        // Rank 2's epoch on other memory ends later.
        let other = |name, begin, end| Made::new(name, begin, end, "").int("target", 1);
        maker.call(0, of("MPI_Win_lock", 0, 10));
        maker.call(0, of("MPI_Win_unlock", 90, 95));
        maker.call(1, of("MPI_Win_lock", 20, 22));
        maker.call(1, of("MPI_Win_unlock", 30, 100));
        maker.call(2, other("MPI_Win_lock", 0, 10));
        maker.call(2, other("MPI_Win_unlock", 96, 99));
        let trace = maker.trace();
        let found: Vec<(u32, u64, u64)> = waits(&trace)
            .iter()
            .map(|w| (trace.rank_of(w.call), w.begin, w.end))
            .collect();
        assert_eq!(found, [(1, 30, 90)]);
        assert!(
            super::super::waits::waits(&trace)
                .iter()
                .all(|w| w.class == Class::Lock)
        );
    }

    #[test]
    fn ranks_that_share_the_memory_of_all_do_not_wait_for_each_other() {
        for (exclusive, found) in [(false, 0), (true, 1)] {
            let mut maker = Maker::new(2);
            let (take, give) = match exclusive {
                false => ("MPI_Win_lock_all", "MPI_Win_unlock_all"),
                true => ("MPI_Win_lock", "MPI_Win_unlock"),
            };
            let of = |name, begin, end| match exclusive {
                false => Made::new(name, begin, end, ""),
                true => Made::new(name, begin, end, "").int("target", 0),
            };
            maker.call(0, of(take, 0, 10));
            maker.call(0, of(give, 90, 95));
            maker.call(1, Made::new("MPI_Win_lock_all", 20, 22, ""));
            maker.call(1, Made::new("MPI_Win_flush", 30, 100, "").int("target", 0));
            assert_eq!(waits(&maker.trace()).len(), found, "{take}");
        }
    }
}
