//! Waits of epochs that MPI_Win_start and MPI_Win_post begin: an origin waits for the
//! MPI_Win_post of its targets, a target in MPI_Win_wait for the MPI_Win_complete of its origins.
//!
//! Both ends of a pair of ranks count alike: the first MPI_Win_start of an origin for a target
//! belongs to the first MPI_Win_post of that target for the origin, the second to the second, and
//! so on (MPI 5.0, 12.5.2).

use super::waits::{Class, Wait, until};
use crate::functions::{self, class};
use crate::model::{Call, Trace};
use std::collections::HashMap;

/// A window, the origin and the target; ranks in MPI_COMM_WORLD.
type Pair = (u64, i32, i32);

/// The calls of a pair, in `Trace::calls`, in their order.
#[derive(Default)]
struct Calls {
    posts: Vec<u32>,
    completes: Vec<u32>,
}

/// An open epoch: the ranks at its other end, with its number among the epochs of the pair.
type Epoch = Vec<(i32, usize)>;

/// The calls of each rank on windows that take part in such epochs: the window, the rank, the call.
fn calls(trace: &Trace) -> Vec<(u64, i32, u32)> {
    let mut all = Vec::new();
    for (i, call) in (0..).zip(&trace.calls) {
        let number = trace.ranks[trace.rank_of(i) as usize].number as i32;
        let window = call.args.comm_id.filter(|_| call.depth == 0);
        let Some(window) = window else { continue };
        if class(trace.names.text(call.function), false) == functions::Class::OneSided {
            all.push((window, number, i));
        }
    }
    // threads of a rank may take turns
    all.sort_by_key(|(_, _, i)| trace.calls[*i as usize].begin);
    all
}

fn pairs(trace: &Trace, calls: &[(u64, i32, u32)]) -> HashMap<Pair, Calls> {
    let mut pairs: HashMap<Pair, Calls> = HashMap::new();
    let mut started: HashMap<(u64, i32), &[i32]> = HashMap::new();
    for (window, me, i) in calls.iter().copied() {
        let group = &trace.calls[i as usize].args.group;
        match trace.function(i) {
            "MPI_Win_post" => {
                for origin in group {
                    let pair = pairs.entry((window, *origin, me)).or_default();
                    pair.posts.push(i);
                }
            }
            "MPI_Win_start" => {
                started.insert((window, me), group);
            }
            "MPI_Win_complete" => {
                for target in started.remove(&(window, me)).unwrap_or_default() {
                    let pair = pairs.entry((window, me, *target)).or_default();
                    pair.completes.push(i);
                }
            }
            _ => {}
        }
    }
    pairs
}

/// The waits of such epochs.
pub(super) fn waits(trace: &Trace) -> Vec<Wait> {
    let calls = calls(trace);
    let pairs = pairs(trace, &calls);
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut waits = Vec::new();
    let mut begun: HashMap<Pair, [usize; 2]> = HashMap::new();
    let mut next = |pair: Pair, end: usize| {
        let count = &mut begun.entry(pair).or_default()[end];
        *count += 1;
        *count - 1
    };
    let (mut access, mut exposure) = (HashMap::new(), HashMap::new());
    for (window, me, i) in calls.iter().copied() {
        let call = &trace.calls[i as usize];
        let group = call.args.group.iter().copied();
        let here = (window, me);
        // the last of these calls that came while this one waited
        let mut last = |class: Class, awaited: &mut dyn Iterator<Item = Option<u32>>| {
            let inside = |c: &u32| came_during(&trace.calls[*c as usize], call);
            let last = awaited.flatten().filter(inside);
            if let Some(cause) = last.max_by_key(|c| trace.calls[*c as usize].begin) {
                let time = trace.calls[cause as usize].begin;
                waits.push(until(trace, class, i, time, cause));
            }
        };
        let function = trace.function(i);
        match function {
            "MPI_Win_post" => {
                let each = group.map(|origin| (origin, next((window, origin, me), 1)));
                exposure.insert(here, each.collect::<Epoch>());
                continue;
            }
            "MPI_Win_wait" => {
                let epoch = exposure.remove(&here).unwrap_or_default();
                let complete = |(origin, n): &(i32, usize)| {
                    let pair = pairs.get(&(window, *origin, me))?;
                    pair.completes.get(*n).copied()
                };
                last(Class::LateComplete, &mut epoch.iter().map(complete));
                continue;
            }
            "MPI_Win_start" => {
                let each = group.map(|target| (target, next((window, me, target), 0)));
                access.insert(here, each.collect::<Epoch>());
            }
            _ => {}
        }
        let Some(epoch) = access.get(&here) else {
            continue;
        };
        let post = |(target, n): &(i32, usize)| {
            let pair = pairs.get(&(window, me, *target))?;
            let is_it = call.args.target.is_none_or(|t| t == *target);
            pair.posts.get(*n).copied().filter(|_| is_it)
        };
        last(Class::LatePost, &mut epoch.iter().map(post));
        if function == "MPI_Win_complete" {
            access.remove(&here);
        }
    }
    waits
}

/// Whether a call began while the other one was in MPI.
fn came_during(awaited: &Call, waiting: &Call) -> bool {
    awaited.begin > waiting.begin && awaited.begin < waiting.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Made, Maker};

    fn on(window: i64, function: &'static str, begin: u64, end: u64) -> Made {
        Made::new(function, begin, end, "").int("comm_id", window)
    }

    fn found(maker: &Maker) -> Vec<(Class, u32, u64, u64, u64)> {
        let trace = maker.trace();
        let begin = |call: u32| trace.calls[call as usize].begin;
        let all = waits(&trace).into_iter();
        all.map(|w| {
            (
                w.class,
                trace.rank_of(w.call),
                w.begin,
                w.end,
                begin(w.cause),
            )
        })
        .collect()
    }

    #[test]
    fn an_origin_waits_for_the_post_of_its_target_and_that_for_complete() {
        let mut maker = Maker::new(3);
        // rank 0 lets in ranks 1 and 2, rank 2 is late; rank 1's accesses take longest
        maker.call(
            0,
            on(5, "MPI_Win_post", 40, 42)
                .int("member", 1)
                .int("member", 2),
        );
        maker.call(0, on(5, "MPI_Win_wait", 50, 100));
        maker.call(1, on(5, "MPI_Win_start", 10, 45).int("member", 0));
        maker.call(1, on(5, "MPI_Put", 46, 47).int("target", 0));
        maker.call(1, on(5, "MPI_Win_complete", 90, 95));
        maker.call(2, on(5, "MPI_Win_start", 60, 61).int("member", 0));
        maker.call(2, on(5, "MPI_Win_complete", 70, 71));
        assert_eq!(
            found(&maker),
            [
                (Class::LatePost, 1, 10, 40, 40),
                (Class::LateComplete, 0, 50, 90, 90)
            ]
        );
    }

    #[test]
    fn the_call_that_needs_the_target_waits_for_it() {
        for (function, target) in [("MPI_Put", Some(2)), ("MPI_Win_complete", None)] {
            let mut maker = Maker::new(3);
            let group = |made: Made| made.int("member", 1).int("member", 2);
            maker.call(0, group(on(5, "MPI_Win_start", 10, 11)));
            let call = on(5, function, 20, 60);
            maker.call(0, target.map_or(call.clone(), |t| call.int("target", t)));
            maker.call(1, on(5, "MPI_Win_post", 50, 51).int("member", 0));
            maker.call(2, on(5, "MPI_Win_post", 40, 41).int("member", 0));
            let post = if target.is_some() { 40 } else { 50 };
            assert_eq!(found(&maker), [(Class::LatePost, 0, 20, post, post)]);
        }
    }

    #[test]
    fn epochs_of_other_windows_and_later_ones_are_told_apart() {
        let mut maker = Maker::new(2);
        maker.call(0, on(5, "MPI_Win_start", 0, 10).int("member", 1));
        maker.call(0, on(5, "MPI_Win_complete", 11, 12));
        maker.call(0, on(5, "MPI_Win_start", 20, 60).int("member", 1));
        maker.call(1, on(6, "MPI_Win_post", 5, 6).int("member", 0));
        maker.call(1, on(5, "MPI_Win_post", 7, 8).int("member", 0));
        maker.call(1, on(6, "MPI_Win_post", 30, 31).int("member", 0));
        maker.call(1, on(5, "MPI_Win_post", 50, 51).int("member", 0));
        assert_eq!(
            found(&maker),
            [
                (Class::LatePost, 0, 0, 7, 7),
                (Class::LatePost, 0, 20, 50, 50)
            ]
        );
    }
}
