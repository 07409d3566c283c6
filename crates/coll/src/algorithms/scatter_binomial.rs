//! Scatter by a binomial tree: inner ranks get their subtree packed and pass it on; for short equal
//! blocks.

use super::gather_binomial::{children, span};
use crate::cost::{StepCosts, binomial_scatter};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (v, n, each) = (call.relative(), call.size, call.block_bytes);
    if each == 0 {
        return;
    }
    if v == 0 {
        return at_root(call, s);
    }
    let parent = call.absolute(v & (v - 1));
    let mine = call.recv.block(0);
    let width = span(v, n);
    if width == 1 {
        s.recv(parent, mine);
        return;
    }
    let all = s.bytes(width as u64 * each);
    s.receive(parent, all);
    for child in children(v, n).rev() {
        let count = span(child, n) as u64;
        s.send(
            call.absolute(child),
            all.part((child - v) as u64 * each, count * each),
        );
    }
    s.copy(all.part(0, each), mine);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let each = call.bytes as f64;
    let own = match at.is_long(each) {
        true => at.memory.copy(each),
        false => 0.0,
    };
    binomial_scatter(at, call.size, each, own)
}

fn at_root(call: &CallView, s: &mut Schedule) {
    let (n, each) = (call.size, call.block_bytes);
    for child in children(0, n).rev() {
        let (first, width) = (call.absolute(child), span(child, n));
        if first + width <= n {
            s.send(first, call.send.run(first, width));
            continue;
        }
        let (high, low) = (n - first, first + width - n);
        let aside = s.bytes(width as u64 * each);
        s.copy(
            call.send.run(first, high),
            aside.part(0, high as u64 * each),
        );
        s.copy(
            call.send.run(0, low),
            aside.part(high as u64 * each, low as u64 * each),
        );
        s.send(first, aside);
    }
    if !call.in_place {
        s.copy(call.send.block(call.rank), call.recv.block(0));
    }
}
