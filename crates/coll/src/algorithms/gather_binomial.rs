//! Gather by a binomial tree: inner ranks collect their subtree packed; for short equal blocks.

use crate::cost::{StepCosts, binomial_gather};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (v, n, each) = (call.relative(), call.size, call.block_bytes);
    if each == 0 {
        return;
    }
    let span = span(v, n);
    let parent = if v == 0 {
        0
    } else {
        call.absolute(v & (v - 1))
    };
    if v == 0 {
        return at_root(call, s);
    }
    if span == 1 {
        s.send(parent, call.send.block(0));
        return;
    }
    let all = s.bytes(span as u64 * each);
    for child in children(v, n) {
        let width = self::span(child, n) as u64;
        s.recv(
            call.absolute(child),
            all.part((child - v) as u64 * each, width * each),
        );
    }
    s.copy(call.send.block(0), all.part(0, each));
    s.fence();
    s.send(parent, all);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    binomial_gather(at, call.size, call.bytes as f64)
}

fn at_root(call: &CallView, s: &mut Schedule) {
    let (n, each) = (call.size, call.block_bytes);
    for child in children(0, n) {
        let (first, width) = (call.absolute(child), span(child, n));
        if first + width <= n {
            s.recv(first, call.recv.run(first, width));
            continue;
        }
        // The subtree runs past the last rank: receive it aside and put its two pieces where they
        // belong.
        let (high, low) = (n - first, first + width - n);
        let aside = s.bytes(width as u64 * each);
        s.receive(first, aside);
        s.copy(
            aside.part(0, high as u64 * each),
            call.recv.run(first, high),
        );
        s.copy(
            aside.part(high as u64 * each, low as u64 * each),
            call.recv.run(0, low),
        );
    }
    if !call.in_place {
        s.copy(call.send.block(0), call.recv.block(call.rank));
    }
}

/// Ranks in the subtree of relative rank `v` of `n`.
pub(super) fn span(v: u32, n: u32) -> u32 {
    if v == 0 {
        n
    } else {
        (1 << v.trailing_zeros()).min(n - v)
    }
}

/// Children of relative rank `v`, the smallest subtree first.
pub(super) fn children(v: u32, n: u32) -> impl DoubleEndedIterator<Item = u32> {
    let below = if v == 0 {
        n
    } else {
        (1 << v.trailing_zeros()).min(n - v)
    };
    (0..below.next_power_of_two().trailing_zeros()).map(move |k| v + (1 << k))
}
