//! Memory and flags on which the executor acts in the checker: symbols instead of bytes, and flags
//! that reveal to a rank no more than they must.

use super::rank::Rank;
use super::{Region, World};
use crate::executor::{self, AreaOffset, Flags, LAST_STAGE, Resolver, STAGE_BITS};
use crate::{Slice, is_shm_buffer};

/// Locations of a rank's slices: the area is the buffer, and a symbol is a byte. Memory with longer
/// units is not contiguous, so that the executor leaves it to its owner.
pub struct Rows<'a>(pub &'a Rank);

impl Resolver for Rows<'_> {
    fn row(&self, slice: Slice) -> Option<(AreaOffset, u64)> {
        if !is_shm_buffer(slice.buf) && self.0.unit(slice.buf) != 1 {
            return None;
        }
        let (area, by) = (slice.buf, u32::try_from(slice.at).ok()?);
        Some((AreaOffset { area, by }, slice.len))
    }

    fn combines(&self) -> bool {
        true
    }

    fn long(&self) -> u64 {
        u64::MAX
    }

    fn member(&self, rank: u32) -> Option<u32> {
        let at = self.0.members.iter().position(|&r| r == rank as usize)?;
        Some(at as u32)
    }
}

/// Context of one rank.
pub struct CheckedContext<'a> {
    world: &'a mut World,
    me: usize,
    /// It has seen a word that it had not seen before.
    pub moved: bool,
}

impl<'a> CheckedContext<'a> {
    pub fn new(world: &'a mut World, me: usize) -> CheckedContext<'a> {
        CheckedContext {
            world,
            me,
            moved: false,
        }
    }

    fn region(&mut self, offset: AreaOffset, len: u32) -> Region {
        let slice = Slice {
            buf: offset.area,
            at: offset.by as i64,
            len: len as u64,
        };
        self.world.region(self.me, slice)
    }
}

impl Flags for CheckedContext<'_> {
    /// The marks of a member that this rank knows of came before; of the others in that line it
    /// sees the next one, or the newest.
    fn word(&mut self, member: u32, number: u64) -> u64 {
        let World { ranks, reuse, .. } = &mut *self.world;
        let lines = reuse.lines as u64;
        let whose = ranks[self.me].members[member as usize];
        let (mine, marks) = (&ranks[self.me].clock, &ranks[whose].marks);
        let known = marks.partition_point(|m| mine.knows(m.clock.now(whose)));
        let here = |i: &usize| marks[*i].number % lines == number % lines;
        let next = match reuse.newest {
            true => (known..marks.len()).rev().find(here),
            false => (known..marks.len()).find(here),
        };
        let Some(seen) = next.or_else(|| (0..known).rev().find(here)) else {
            return 0;
        };
        let mark = marks[seen];
        self.moved |= next.is_some();
        ranks[self.me].clock.join(&mark.clock);
        mark.number << STAGE_BITS | mark.stage as u64
    }

    fn raise(&mut self, number: u64, stage: u32, _: u64) {
        let rank = &mut self.world.ranks[self.me];
        let before = rank.marks.last().filter(|m| m.number == number);
        if let Some(before) = before.map(|m| m.stage) {
            let me = self.me;
            assert!(before < stage, "rank {me} raises {stage} after {before}");
        }
        assert!(stage <= LAST_STAGE, "rank {} raises {stage}", self.me);
        rank.announce(self.me, number, stage);
    }
}

impl executor::ExecContext for CheckedContext<'_> {
    type Flags = Self;

    fn flags(&mut self) -> &mut Self {
        self
    }

    fn copy(&mut self, from: AreaOffset, to: AreaOffset, len: u32) {
        let (a, b) = (self.region(from, len), self.region(to, len));
        self.world.copy_region(self.me, a, b);
    }

    fn reduce(&mut self, left: AreaOffset, right: AreaOffset, len: u32) {
        let (a, b) = (self.region(left, len), self.region(right, len));
        self.world.reduce_region(self.me, a, b);
    }

    fn combine(&mut self, left: AreaOffset, right: AreaOffset, into: AreaOffset, len: u32) {
        self.copy(right, into, len);
        self.reduce(left, into, len);
    }
}
