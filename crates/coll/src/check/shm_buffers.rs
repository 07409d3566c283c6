//! The shm buffers of the checker's shm regions. Two accesses of one place, of which one writes,
//! must be ordered by announcements (vector clocks), else the checker faults: so a schedule that
//! passes is right under every interleaving.

use super::Region;
use super::clock::{Clock, Moment};
use super::symbol::Symbol;
use std::collections::HashMap;

/// The areas of a rank; each sort is counted separately.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Area {
    /// Beside a stage.
    Line,
    /// A slot for short data.
    Slot,
    /// The ring for long data.
    Ring,
}

/// One of the areas that a rank owns.
pub type BufferId = (usize, Area, usize);

#[derive(Clone, Copy, Debug)]
struct Access {
    from: usize,
    to: usize,
    moment: Moment,
}

/// One shm buffer: its data, the collective that wrote each unit, and the ranks that touched it.
#[derive(Debug, Default)]
struct ShmBuffer {
    cells: Vec<(Symbol, usize)>,
    writes: Vec<Access>,
    reads: Vec<Access>,
}

/// All shm buffers of all shm regions.
#[derive(Debug, Default)]
pub struct ShmBuffers(HashMap<BufferId, ShmBuffer>);

impl ShmBuffers {
    /// The data that collective number `op` has written there.
    pub fn read(&mut self, place: BufferId, region: Region, op: usize) -> Vec<Symbol> {
        let cells = &self.shm_buffer(place, region.to).cells[region.from..region.to];
        assert!(
            cells.iter().all(|c| c.0.is_data() && c.1 == op),
            "reads {region:?} of shm buffer {place:?}, never written"
        );
        cells.iter().map(|c| c.0).collect()
    }

    /// Writes.
    pub fn write(&mut self, place: BufferId, region: Region, op: usize, data: &[Symbol]) {
        let cells = &mut self.shm_buffer(place, region.to).cells[region.from..region.to];
        for (cell, &symbol) in cells.iter_mut().zip(data) {
            *cell = (symbol, op);
        }
    }

    /// A rank that knows what `clock` says reads or writes there at a moment.
    pub fn touch(
        &mut self,
        place: BufferId,
        region: Region,
        write: bool,
        moment: Moment,
        clock: &Clock,
    ) {
        let shm_buffer = self.shm_buffer(place, region.to);
        let Region { from, to, .. } = region;
        let meets = |a: &&Access| a.from < to && from < a.to;
        let others = if write { &shm_buffer.reads[..] } else { &[] };
        for old in shm_buffer.writes.iter().chain(others).filter(meets) {
            assert!(
                clock.knows(old.moment),
                "a {} of {from}..{to} of shm buffer {place:?} at {moment:?} in no order with {old:?}",
                if write { "write" } else { "read" },
            );
        }
        let access = Access { from, to, moment };
        if write {
            // Everything that comes after this write also comes after the accesses that precede
            // this write.
            let stays = |a: &Access| a.from < from || to < a.to;
            shm_buffer.reads.retain(stays);
            shm_buffer.writes.retain(stays);
            shm_buffer.writes.push(access);
        } else {
            shm_buffer.reads.push(access);
        }
    }

    fn shm_buffer(&mut self, place: BufferId, len: usize) -> &mut ShmBuffer {
        let shm_buffer = self.0.entry(place).or_default();
        if shm_buffer.cells.len() < len {
            shm_buffer.cells.resize(len, (Symbol::NEVER, 0));
        }
        shm_buffer
    }
}
