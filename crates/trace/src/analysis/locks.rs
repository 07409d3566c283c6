//! Waits for locks of windows: which rank held a lock of the same rank's memory meanwhile. A trace
//! does not contain the window of a lock, so the two may be unrelated.

use super::losses::Site;
use crate::model::{Call, Trace};

/// Whether a call ends when a target has answered, which the target does only after it has granted
/// the lock.
pub fn waits_for_lock(function: &str) -> bool {
    const CALLS: [&str; 8] = [
        "MPI_Win_lock",
        "MPI_Win_lock_all",
        "MPI_Win_unlock",
        "MPI_Win_unlock_all",
        "MPI_Win_flush",
        "MPI_Win_flush_all",
        "MPI_Win_flush_local",
        "MPI_Win_flush_local_all",
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
}
