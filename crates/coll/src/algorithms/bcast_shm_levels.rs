//! Broadcast on a shm region of a host with several domains: as `shm_tree` from the root to a
//! head of every domain, and from there within it; the number is the fan-out of both. Long data
//! goes the same way in pieces: it enters each domain once, and is read in all of them at the same
//! time.

use super::bcast_shm_tree::{down, short};
use crate::cost::{StepCosts, children};
use crate::cut::{self, Cut};
use crate::tree::Tree;
use crate::{CallView, Schedule};

/// Kilobytes of a piece of long data for each rank that reads it.
const KILOBYTES_A_READER: u32 = 4;

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let tree = Tree::rooted(call).by_levels(call);
    match call.count {
        0 => {}
        _ if call.size < 2 => {}
        n if n > call.shm_buffer_units().0 => in_pieces(&tree, call, s),
        _ => short(&tree, call, s),
    }
}

/// The call with the pieces into which its data is cut.
fn cut_as<'a>(call: &CallView<'a>) -> CallView<'a> {
    CallView {
        param: call.param.saturating_mul(KILOBYTES_A_READER),
        ..*call
    }
}

/// While others read one half of a rank's shm buffer, it fills the other.
fn in_pieces(tree: &Tree, call: &CallView, s: &mut Schedule) {
    let data = call.output();
    let (parent, readers) = (tree.parent(call.rank), tree.children(call.rank));
    let cut_as = &cut_as(call);
    let cut = Cut::long(cut_as, s, data.len, 2);
    let half = (cut.slots() / 2).max(1);
    for i in 0..cut.pieces() {
        let (piece, stage) = (cut.piece(data, i), i as u32 + 1);
        let slot = |r| cut.slot(r, i).part(0, piece.len);
        if let Some(parent) = parent {
            s.watch(parent, stage);
            s.copy(slot(parent), piece);
        }
        if !readers.is_empty() {
            // The pieces that the next half of the shm buffer held before.
            if i % half == 0 && i + half > cut.slots() {
                let before = (i + half - cut.slots()) as u32;
                readers.iter().for_each(|r| s.watch(*r, before));
            }
            s.copy(piece, slot(call.rank));
        }
        let ends_half = (i + 1) % half == 0 && i + 1 < cut.pieces();
        if !readers.is_empty() || ends_half {
            s.raise(stage);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let fan = call.param;
    if call.count <= call.shm_buffer_units().0 {
        let b = call.bytes as f64;
        let readers = |k| children(fan, k).map(f64::from).sum();
        return at.release(b, readers, |k, at| down(k, fan, b, |_| *at));
    }
    // The first piece goes down, and then one after the other as quickly as the busiest rank
    // handles one.
    let (pieces, b) = cut::long_pieces_of(&cut_as(call), 2);
    let (mut first, mut each) = (0.0, 0.0f64);
    for (k, at) in at.levels() {
        first += down(k, fan, b, |_| at);
        let here: f64 = children(fan, k).map(f64::from).sum();
        let passes_on = at.memory.look() + at.memory.pass_on(f64::from(fan), b) + at.p.step;
        each = each.max(passes_on).max(at.memory.keep_reading(here, b));
    }
    first + (pieces - 1.0) * each
}
