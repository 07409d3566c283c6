//! What plans do on a board: where their slices lie to the byte, and the bytes and flags that the
//! executor acts on.

use super::desk::{Berth, BoardId, Desk, Desks, Part, Watch};
use super::memory::Memory;
use super::run::Run;
use super::signature::Signature;
use super::user::Combining;
use kw_coll::executor::{self, Flags, Need, Next, Places, Spot, Wait, bind};
use kw_coll::{SHELVES, Shelf, Slice, TEMPS};
use kw_path::shm::board::Board;
use kw_sys::reduce::Kernel;
use kw_sys::region::Region;
use std::cell::Cell;

/// Areas 0 and 1 are the caller's buffers.
const BUFFERS: u32 = 2;
/// The lines of all ranks.
const LINE_AREA: u32 = 2;
/// All short shelves, or the rings.
const SHELF_AREA: u32 = 3;

/// Where the slices of one plan lie.
struct Rows<'a> {
    desk: &'a Desk,
    berth: &'a Berth,
    buffers: &'a [Memory],
    combines: bool,
    long: u64,
    /// How many bytes of the first two buffers the schedule names.
    reach: Cell<[u64; 2]>,
}

impl Rows<'_> {
    /// A slice of a shelf.
    fn shelf(&self, slice: Slice) -> Option<(Spot, u64)> {
        let (berth, board) = (self.berth, &self.desk.board);
        let rank = slice.buf - SHELVES;
        self.desk.member(rank)?;
        let (place, bytes) = (self.desk.place_of(rank), slice.len * berth.unit);
        let (area, by) = match berth.part(slice) {
            Part::Line(at) => (LINE_AREA, board.to_line(place) + at),
            Part::Area(at) if at as u64 + bytes > berth.room() => return None,
            Part::Area(at) if berth.shelf == Shelf::Long => (SHELF_AREA, board.to_long(place) + at),
            Part::Area(at) => (SHELF_AREA, board.to(berth.areas, place) + at),
        };
        let by = u32::try_from(by).ok()?;
        Some((Spot { area, by }, bytes))
    }
}

impl Places for Rows<'_> {
    fn row(&self, slice: Slice) -> Option<(Spot, u64)> {
        match slice.buf {
            TEMPS.. => None,
            SHELVES.. => self.shelf(slice),
            BUFFERS.. => None,
            area => {
                let (_, size) = self.buffers.get(area as usize)?.plain()?;
                let from = u64::try_from(slice.at).ok()?.checked_mul(size)?;
                let (by, bytes) = (u32::try_from(from).ok()?, slice.len * size);
                let mut reach = self.reach.get();
                reach[area as usize] = reach[area as usize].max(from + bytes);
                self.reach.set(reach);
                Some((Spot { area, by }, bytes))
            }
        }
    }

    fn combines(&self) -> bool {
        self.combines
    }

    fn long(&self) -> u64 {
        self.long
    }

    fn member(&self, rank: u32) -> Option<u32> {
        self.desk.member(rank)
    }
}

/// Works a plan's ops out. `long`: copies of this length and more are not for the executor.
pub(super) fn bind_on(desks: &mut Desks, run: &mut Run, long: u64) {
    let desk = run.berth.as_ref().and_then(|b| desks.get(b.desk));
    let Some(work) = run.work.as_deref() else {
        return;
    };
    run.only_here = work.schedule.slots == 0;
    let (Some(desk), Some(berth)) = (desk, &run.berth) else {
        return;
    };
    let rows = Rows {
        desk,
        berth,
        buffers: &work.memory.user,
        combines: matches!(run.combining, Some(Combining::Kernel(_))),
        long,
        reach: Cell::default(),
    };
    bind(&work.schedule, &rows, &mut run.ops);
    run.reach = rows.reach.get();
}

/// The flags of a board.
struct BoardFlags<'a> {
    board: &'a Board,
    places: &'a [u32],
}

impl Flags for BoardFlags<'_> {
    #[inline(always)]
    fn word(&mut self, member: u32, number: u64) -> u64 {
        self.board.word(self.places[member as usize], number)
    }

    #[inline(always)]
    fn signature(&mut self, member: u32, number: u64) -> u64 {
        self.board.signature(self.places[member as usize], number)
    }

    #[inline(always)]
    fn raise(&mut self, number: u64, stage: u32, signature: u64) {
        self.board.raise(number, stage, signature);
    }
}

/// The flags, and the areas that a plan's ops touch.
struct BoardGround<'a> {
    flags: BoardFlags<'a>,
    areas: [Region<'a>; 4],
    combining: &'a Option<Combining>,
}

impl<'a> BoardGround<'a> {
    #[inline(always)]
    fn at(&self, spot: Spot, len: u32) -> Region<'a> {
        self.areas[(spot.area & 3) as usize].part(spot.by as u64, len as u64)
    }
}

impl Flags for BoardGround<'_> {
    #[inline(always)]
    fn word(&mut self, member: u32, number: u64) -> u64 {
        self.flags.word(member, number)
    }

    #[inline(always)]
    fn signature(&mut self, member: u32, number: u64) -> u64 {
        self.flags.signature(member, number)
    }

    #[inline(always)]
    fn raise(&mut self, number: u64, stage: u32, signature: u64) {
        self.flags.raise(number, stage, signature);
    }
}

impl executor::Ground for BoardGround<'_> {
    #[inline(always)]
    fn copy(&mut self, from: Spot, to: Spot, len: u32) {
        self.at(from, len).copy_to(self.at(to, len));
    }

    #[inline(always)]
    fn reduce(&mut self, left: Spot, right: Spot, len: u32) {
        if let Some(Combining::Kernel(kernel)) = self.combining {
            kernel.run(self.at(left, len), self.at(right, len));
        }
    }

    #[inline(always)]
    fn combine(&mut self, left: Spot, right: Spot, into: Spot, len: u32) {
        if let Some(Combining::Kernel(kernel)) = self.combining {
            kernel.run_into(self.at(left, len), self.at(right, len), self.at(into, len));
        }
    }
}

impl Desks {
    /// Goes on with a run as far as the executor can.
    #[inline(always)]
    pub(super) fn go_on(&mut self, run: &mut Run) -> Next {
        let desk = run.berth.as_ref().and_then(|b| self.get(b.desk));
        let Some(desk) = desk else {
            return run.progress.next_step(run.steps().len() as u32);
        };
        desk.go_on(run)
    }

    /// Goes on with a run all of whose ops are the executor's, to its end if it can; what it waits
    /// for.
    #[inline(always)]
    pub(super) fn run(&mut self, run: &mut Run) -> Option<Watch> {
        let id = run.berth.as_ref()?.desk;
        let desk = self.get(id)?;
        let next = desk.go_on(run);
        if let Next::Wait(wait) = next {
            return Some(Watch { desk: id, wait });
        }
        let ended = (desk.end(run), desk.leaving);
        self.ended(id, ended);
        None
    }

    /// A run has ended, well or not; the next one's turn has come.
    pub(super) fn end(&mut self, run: &mut Run) {
        let Some(id) = run.berth.as_ref().map(|b| b.desk) else {
            return;
        };
        let Some(desk) = self.get(id) else { return };
        let ended = (desk.end(run), desk.leaving);
        self.ended(id, ended);
    }

    /// A run has ended. `more`: another one waits for its turn. `leaving`: its communicator is
    /// gone.
    #[inline(always)]
    fn ended(&mut self, id: BoardId, (more, leaving): (bool, bool)) {
        self.turned |= more;
        if leaving && !more {
            self.drop(id);
        }
    }
}

impl Desk {
    /// Another rank of the board is in another call than this one.
    #[cold]
    fn contradicted(&self, run: &mut Run) {
        let me = run.circle.as_ref().map_or(0, |c| c.rank);
        if let Some((member, theirs)) = run.progress.odd.take() {
            let mine = Signature(run.progress.signature);
            run.fail(mine.failure(me, self.rank_of(member), Signature(theirs)));
        }
    }

    #[inline(always)]
    fn go_on(&mut self, run: &mut Run) -> Next {
        let Some(berth) = &run.berth else {
            return Next::End;
        };
        let (board, at_work) = (&self.board, &run.progress.place);
        let [send, recv] = run.lent();
        let shelves = match berth.shelf {
            Shelf::Long => board.all_long(at_work.at, berth.long),
            _ if berth.need == Need::Lines => Region::EMPTY,
            _ => board.all(berth.areas, at_work.number),
        };
        let flags = BoardFlags {
            board,
            places: &self.places,
        };
        let mut ground = BoardGround {
            flags,
            areas: [send, recv, board.all_lines(at_work.number), shelves],
            combining: &run.combining,
        };
        let (ops, flow) = (&run.ops, &mut self.flow);
        let next = run.progress.go_on(ops, run.only_here, flow, &mut ground);
        if run.progress.odd.is_some() {
            self.contradicted(run);
        }
        next
    }

    /// Whether what a run waits for has come.
    #[inline]
    pub(super) fn has_come(&self, wait: Wait) -> bool {
        let mut flags = BoardFlags {
            board: &self.board,
            places: &self.places,
        };
        self.flow.has_come(wait, &mut flags)
    }

    /// Says whether another run waits for its turn.
    #[inline]
    fn end(&mut self, run: &mut Run) -> bool {
        let mut flags = BoardFlags {
            board: &self.board,
            places: &self.places,
        };
        run.progress.end(&mut self.flow, &mut flags)
    }
}

impl Run {
    /// The loop of ours that combines its elements.
    #[inline]
    pub(super) fn kernel(&self) -> Option<Kernel> {
        match self.combining {
            Some(Combining::Kernel(kernel)) => Some(kernel),
            _ => None,
        }
    }
}
