//! Costs and shapes of message trees.

use super::StepCosts;

/// The logarithm to base 2, rounded up; of 1 it is 0.
pub fn log2_up(n: u32) -> u32 {
    n.max(1).next_power_of_two().trailing_zeros()
}

/// Time from the root of a binomial tree of `n` ranks to all; a message is `b` bytes.
pub fn binomial_down(at: &StepCosts, n: u32, b: f64) -> f64 {
    let hop = |level: u32| at.down(1 << level).one_way(b);
    let levels = |k: u32| (0..k).map(hop).sum::<f64>();
    let (mut rest, mut before, mut most) = (n, 0.0, 0.0f64);
    // The largest subtree comes first and is the only one that may be incomplete.
    while rest > 1 {
        let depth = log2_up(rest);
        if depth > 1 {
            most = most.max(before + at.down(1 << (depth - 1)).gap(b) + levels(depth - 1));
        }
        before += hop(depth - 1);
        rest -= 1 << (depth - 1);
    }
    most.max(before)
}

/// Time from all to the root of a binomial tree of `n` ranks, which combine on the way (`each`).
pub fn binomial_up(at: &StepCosts, n: u32, b: f64, each: f64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let depth = log2_up(n);
    let top = at.down(1 << (depth - 1));
    let hop = |level: u32| at.down(1 << level).one_way(b) + each;
    let full = (0..depth - 1).map(hop).sum::<f64>();
    let rest = if depth > 1 {
        full + top.take(b) + each
    } else {
        0.0
    };
    let last = n - (1 << (depth - 1));
    rest.max(binomial_up(at, last, b, each) + top.one_way(b) + each)
}

/// Exchanges of recursive halving (or doubling): of a half, a quarter ... of `b` bytes, with extra
/// work `each(bytes)`; `n` is a power of two.
pub fn halves(at: &StepCosts, n: u32, b: f64, each: impl Fn(f64) -> f64) -> f64 {
    let step = |k: u32| {
        let part = b / f64::from(1u32 << k);
        at.across(n >> k).exchange(part) + each(part)
    };
    (1..=n.ilog2()).map(step).sum()
}

/// A scatter by a binomial tree of `n` ranks: every hop has half of the bytes of the one before.
/// `own`: the root's work on its own block before it sends long ones.
pub fn binomial_scatter(at: &StepCosts, n: u32, each: f64, own: f64) -> f64 {
    let least = least_level(at, n, each);
    binomial_parts(at, n, each, &|at, b| at.gap(b), &|(half, blocks)| {
        let (part, there) = (f64::from(blocks) * each, at.down(half));
        let long = there.is_long(part) && !at.net;
        (there.one_way(part) + late(at, half, each, own, long)).max(least)
    })
}

/// The cost of a gather.
pub fn binomial_gather(at: &StepCosts, n: u32, each: f64) -> f64 {
    let least = least_level(at, n, each);
    binomial_parts(at, n, each, &|at, b| at.take(b), &|(half, blocks)| {
        at.down(half).one_way(f64::from(blocks) * each).max(least)
    })
}

/// Time of a package's memory for one level of such a tree, if all blocks together exceed the
/// caches: half of the ranks send what the other half receives.
fn least_level(at: &StepCosts, n: u32, each: f64) -> f64 {
    let ranks = f64::from(at.of_package(n));
    match 2.0 * each * ranks > at.p.cache && !at.net {
        true => ranks * each * at.p.memory,
        false => 0.0,
    }
}

/// Work of a sender before the longest message of a scatter leaves (`level` blocks, to the rank at
/// that distance), if that one is announced first: its shorter eager ones, and its own block; the
/// answer to the next message comes from a near rank before.
fn late(at: &StepCosts, level: u32, each: f64, own: f64, long: bool) -> f64 {
    if !long {
        return 0.0;
    }
    let blocks = |k: u32| f64::from(1u32 << k) * each;
    let short = (0..log2_up(level)).map(blocks).filter(|b| !at.is_long(*b));
    let before: f64 = short.map(|b| at.near().gap(b)).sum();
    let overtaken = match at.is_far(level) && at.is_long(f64::from(level / 2) * each) {
        true => at.near().gap(f64::from(level / 2) * each),
        false => 0.0,
    };
    before + own + overtaken
}

/// `more`: extra time of the root for a subtree while it handles the others; `hop`: time of a
/// message of that many blocks to the rank at that distance.
fn binomial_parts(
    at: &StepCosts,
    n: u32,
    each: f64,
    more: &dyn Fn(&StepCosts, f64) -> f64,
    hop: &dyn Fn((u32, u32)) -> f64,
) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let half = 1 << (log2_up(n) - 1);
    let (part, there) = (f64::from(n - half) * each, at.down(half));
    let hops = hop((half, n - half)) + binomial_parts(at, n - half, each, more, hop);
    match half {
        1 => hops,
        // Complete trees are one path.
        _ if n == 2 * half => hops,
        _ => hops.max(more(&there, part) + binomial_parts(at, half, each, more, hop)),
    }
}

/// A [`crate::tree::Tree`] of `n` ranks: the children of its root, level by level.
pub fn children(fan: u32, n: u32) -> impl Iterator<Item = u32> {
    let (fan, n) = (u64::from(fan.max(2)), u64::from(n));
    let steps = std::iter::successors(Some(1u64), move |s| Some(s * fan));
    let steps = steps.take_while(move |&s| s < n);
    steps.map(move |s| (n.div_ceil(s) - 1).min(fan - 1) as u32)
}

/// Ranks that each of the last children of such a tree's root leads, including themselves, except
/// the very last child; and the ranks that the very last one leads.
pub fn subtrees(fan: u32, n: u32) -> (u32, u32) {
    let (fan, mut step) = (fan.max(2), 1u32);
    while step.saturating_mul(fan) < n {
        step *= fan;
    }
    (step, (n - 1) % step + 1)
}
