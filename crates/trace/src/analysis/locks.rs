//! Waits for locks of windows: which rank held a lock of the same rank's memory meanwhile. Traces
//! of earlier versions do not contain the window of a lock, nor whether MPI_Win_lock shares it:
//! there the two may be unrelated.

use super::waits::{Class, Wait, until};
use crate::model::{Call, Trace};
use std::collections::HashMap;

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
    shared: bool,
}

/// Whose memory a lock is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    /// That of one rank.
    One(i32),
    /// That of all, by MPI_Win_lock_all.
    All,
    /// Either.
    Any,
}

impl Of {
    fn target(call: &Call) -> Of {
        call.args.target.map_or(Of::All, Of::One)
    }
}

/// A window: the number that all its ranks have for it.
type Window = Option<u64>;

/// A call that may wait for a lock.
struct Waiting {
    /// In `Trace::calls`.
    call: u32,
    /// Its rank, in `Trace::ranks`.
    rank: u32,
    /// All locks for which it may wait are shared.
    shares: bool,
}

/// The ends of all locks, by time, and the calls that may wait for them.
#[derive(Default)]
struct Locks {
    released: HashMap<(Window, Of), Vec<Released>>,
    waiting: Vec<Waiting>,
}

impl Locks {
    fn new(trace: &Trace) -> Locks {
        let mut all = Locks::default();
        for thread in &trace.threads {
            all.add_thread(trace, thread.calls.clone(), thread.rank);
        }
        let lists = all.released.values_mut();
        lists.for_each(|list| list.sort_by_key(|r| r.time));
        all
    }

    fn add_thread(&mut self, trace: &Trace, calls: std::ops::Range<usize>, rank: u32) {
        // when each was acquired, and whether it is shared
        let mut taken: HashMap<(Window, Of), (u64, bool)> = HashMap::new();
        for i in calls.filter(|i| trace.calls[*i].depth == 0) {
            let call = &trace.calls[i];
            let function = trace.names.text(call.function);
            if !waits_for_lock(function) {
                continue;
            }
            let (window, of) = (call.args.comm_id, Of::target(call));
            if matches!(function, "MPI_Win_lock" | "MPI_Win_lock_all") {
                let shared = of == Of::All || trace.names.text(call.args.mode) == "shared";
                taken.insert((window, of), (call.end, shared));
            }
            let concerned = |other: Of| other == of || other == Of::All || of == Of::All;
            let mut own = taken
                .iter()
                .filter(|(key, _)| key.0 == window && concerned(key.1))
                .map(|(_, (_, shared))| *shared)
                .peekable();
            self.waiting.push(Waiting {
                call: i as u32,
                rank,
                shares: own.peek().is_some() && own.all(|shared| shared),
            });
            if !matches!(function, "MPI_Win_unlock" | "MPI_Win_unlock_all") {
                continue;
            }
            if let Some((taken, shared)) = taken.remove(&(window, of)) {
                let released = Released {
                    taken,
                    time: call.begin,
                    call: i as u32,
                    rank,
                    shared,
                };
                for of in [of, Of::Any] {
                    let list = self.released.entry((window, of)).or_default();
                    list.push(released);
                }
            }
        }
    }

    /// The last lock of another rank that ended during a call, excluded its own, and was held for
    /// at least half of the time until then.
    fn last(&self, trace: &Trace, waiting: &Waiting, of: Of) -> Option<Released> {
        let call = &trace.calls[waiting.call as usize];
        let list = self.released.get(&(call.args.comm_id, of))?;
        let before = &list[..list.partition_point(|r| r.time <= call.end)];
        let during = before.iter().rev().take_while(|r| r.time > call.begin);
        let excludes = |r: &&Released| r.rank != waiting.rank && !(waiting.shares && r.shared);
        let last = during.copied().find(|r| excludes(&r))?;
        let held = last.time - last.taken.max(call.begin).min(last.time);
        (held >= (last.time - call.begin) / 2).then_some(last)
    }

    fn awaited(&self, trace: &Trace, waiting: &Waiting) -> Option<Released> {
        let of = Of::target(&trace.calls[waiting.call as usize]);
        let lists = match of {
            Of::One(_) => [Some(of), Some(Of::All)],
            _ => [Some(Of::Any), None],
        };
        let found = lists.into_iter().flatten();
        let found = found.filter_map(|of| self.last(trace, waiting, of));
        found.max_by_key(|r| r.time)
    }
}

/// The waits for locks of windows: until the rank that held a lock of the same rank's memory gave
/// it back.
pub fn waits(trace: &Trace) -> Vec<Wait> {
    let locks = Locks::new(trace);
    let wait = |waiting: &Waiting| {
        let released = locks.awaited(trace, waiting)?;
        let (time, cause) = (released.time, released.call);
        Some(until(trace, Class::Lock, waiting.call, time, cause))
    };
    locks.waiting.iter().filter_map(wait).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Made, Maker};

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

    /// Whether rank 1 waits in MPI_Win_unlock until rank 0's; of each: window, target, kind of
    /// lock.
    fn waited(holds: (i64, i64, &str), waits: (i64, i64, &str)) -> bool {
        let mut maker = Maker::new(2);
        for (rank, (window, target, mode), times) in [
            (0, holds, [(0, 10), (90, 95)]),
            (1, waits, [(20, 22), (30, 100)]),
        ] {
            for (function, (begin, end)) in
                ["MPI_Win_lock", "MPI_Win_unlock"].into_iter().zip(times)
            {
                let made = Made::new(function, begin, end, "").int("comm_id", window);
                maker.call(rank, made.int("target", target).text("mode", mode));
            }
        }
        let found = super::waits(&maker.trace());
        assert!(
            found.iter().all(|w| (w.begin, w.end) == (30, 90)),
            "{found:?}"
        );
        !found.is_empty()
    }

    #[test]
    fn only_a_lock_of_the_same_memory_that_excludes_ones_own_is_waited_for() {
        let own = (7, 0, "exclusive");
        assert!(waited((7, 0, "exclusive"), own) && waited((7, 0, "shared"), own));
        assert!(waited((7, 0, "exclusive"), (7, 0, "shared")));
        assert!(!waited((7, 0, "shared"), (7, 0, "shared")), "both share it");
        assert!(!waited((7, 1, "exclusive"), own), "another rank's memory");
        assert!(!waited((8, 0, "exclusive"), own), "another window");
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
