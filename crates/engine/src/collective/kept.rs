//! Schedules that are kept for the next call: programs call the same collective again and again, and only its buffers differ.
//!
//! A run that has ended stays with its schedule. A call on the same communicator that asks for the same takes it, and gives it its
//! own buffers, tag and place on the board. What a communicator is made of (members, rows) is compared by the very objects, which
//! a kept run holds, so nothing has to be forgotten when one is freed or changed.

use super::desk::BoardId;
use super::run::{Circle, Run};
use super::said::Said;
use kw_base::ContextId;
use kw_coll::{Ask, Blocks, Coll, Table};
use kw_types::comm::Group;
use std::sync::Arc;

/// Who calls: what a [`Circle`] is made of.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The processes, by rank.
    pub members: &'a Arc<Group>,
    /// Context of the communicator's collectives.
    pub context: ContextId,
    /// This process's rank.
    pub rank: u32,
    /// Tells this collective from others on the communicator.
    pub tag: i32,
    /// The communicator's board.
    pub board: Option<BoardId>,
    /// Rows that choose algorithms before those of the engine's table.
    pub rows: Option<&'a Arc<Table>>,
}

impl Caller<'_> {
    /// Keeps the communicator's parts.
    pub fn circle(&self) -> Circle {
        Circle {
            members: self.members.clone(),
            context: self.context,
            rank: self.rank,
            tag: self.tag,
            board: self.board,
            rows: self.rows.cloned(),
        }
    }

    #[inline]
    fn is(&self, circle: &Circle) -> bool {
        let rows = circle.rows.as_ref();
        self.context == circle.context
            && self.board == circle.board
            && Arc::ptr_eq(self.members, &circle.members)
            && self.rows.map(Arc::as_ptr) == rows.map(Arc::as_ptr)
    }
}

/// All that a schedule depends on but the communicator and the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    coll: Coll,
    bytes: u64,
    root: u32,
    count: u64,
    block_bytes: u64,
    send: (u32, u64),
    recv: (u32, u64),
    commutative: bool,
    in_place: bool,
    unit: Option<u64>,
}

impl Call {
    /// The call, and the counts of its blocks where they are not equal. `None` for calls with other lists.
    #[inline]
    pub fn of<'a>(
        coll: Coll,
        bytes: u64,
        unit: Option<u64>,
        ask: &Ask<'a>,
    ) -> Option<(Call, &'a [u64])> {
        let (send, counts) = match ask.send {
            Blocks::Even { buf, each } => ((buf, each), &[][..]),
            // Its blocks lie in a row.
            Blocks::Listed { buf, counts, .. } if coll == Coll::ReduceScatter => ((buf, 0), counts),
            _ => return None,
        };
        let Blocks::Even { buf, each } = ask.recv else {
            return None;
        };
        if ask.neighbors.is_some() {
            return None;
        }
        let call = Call {
            coll,
            bytes,
            root: ask.root,
            count: ask.count,
            block_bytes: ask.block_bytes,
            send,
            recv: (buf, each),
            commutative: ask.commutative,
            in_place: ask.in_place,
            unit,
        };
        Some((call, counts))
    }

    /// In one word what all ranks say alike.
    #[inline]
    pub fn said(&self) -> Said {
        Said::new(self.coll, self.root, self.bytes)
    }
}

impl Run {
    /// Whether its schedule is that of a call.
    #[inline]
    pub(super) fn suits(&self, caller: &Caller, call: &Call, counts: &[u64]) -> bool {
        self.call.as_ref() == Some(call)
            && same(&self.counts, counts)
            && self.circle.as_ref().is_some_and(|c| caller.is(c))
    }
}

/// Whether two lists are the same. Most are empty, and an empty list points nowhere: glibc's `memcmp` for AVX-512 reads there under an empty
/// mask, which the processor takes 80 ns for (a third of a barrier of 2 ranks).
#[inline]
fn same(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}
