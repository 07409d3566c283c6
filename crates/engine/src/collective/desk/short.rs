//! Short calls: a blocking collective of a few bytes that is like one before it, past all that only other calls need.
//!
//! Programs call the same collective again and again, and only its buffers differ. A [`Short`] is the schedule that such a call ran by,
//! step by step, with all worked out that stays the same: which byte of a line, of a short shelf or of the caller's buffers a step
//! touches. It is made from a run that has ended ([`Engine::shorten`]), found by what the caller says ([`Like`]), and takes its turn on the
//! board like any other run: other ranks cannot tell the two apart.
//!
//! It sends no message, calls no function of the user's, and its lengths were compared when it was made; so it fails only where another
//! rank is in another call. While a call runs it, the desk does not have it.

use super::{Berth, BoardId, Desk, LAST_STAGE, Part, Watch};
use crate::collective::run::{Combining, Run};
use crate::engine::{Engine, Failure};
use kw_base::counters::Counter;
use kw_coll::{Coll, SHELVES, Shelf, Slice, Step, TEMPS, Table};
use kw_sys::buf::Addr;
use kw_sys::reduce::Kernel;
use std::sync::Arc;

/// Calls that a desk keeps.
const PLACES: usize = 64;
/// Most steps of one: a longer one takes longer to run than to find.
const STEPS: usize = 64;
/// Of so many calls that find another one in their place one takes it.
const PATIENCE: u32 = 8;

/// All that two calls on a communicator must have in common, but lists of counts. Only handles of predefined objects may stand in
/// it, which always mean the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Like {
    /// What is called.
    pub coll: Coll,
    /// MPI_IN_PLACE was given.
    pub in_place: bool,
    /// The root's rank; 0 where there is none.
    pub root: u32,
    /// Elements as the caller counts them.
    pub count: i64,
    /// Handle of the datatype, and of the operation.
    pub handles: (usize, usize),
}

impl Like {
    #[inline]
    fn place(&self) -> usize {
        let count = (self.count as usize).wrapping_mul(5);
        (self.coll as usize * 17 + self.root as usize).wrapping_add(count) % PLACES
    }
}

/// See the module.
#[derive(Debug)]
pub struct Short {
    like: Like,
    counts: Box<[u64]>,
    /// Rows of the communicator by which it was chosen.
    rows: Option<Arc<Table>>,
    moves: Box<[Move]>,
    kernel: Option<Kernel>,
    /// What the table was asked with.
    bytes: u64,
    lines_only: bool,
    raises: bool,
    /// This process's rank.
    rank: u32,
    /// Whether the present call marks itself on the board.
    raised: bool,
    /// The present call's buffers.
    buffers: [Addr; 2],
    berth: Berth,
    /// Its next move.
    pc: usize,
    /// Members that a move which watches all has found.
    come: u32,
}

/// A step with its bytes.
#[derive(Clone, Copy, Debug)]
enum Move {
    Copy {
        from: Spot,
        to: Spot,
        len: u32,
    },
    Reduce {
        left: Spot,
        right: Spot,
        n: u32,
    },
    Combine {
        left: Spot,
        right: Spot,
        into: Spot,
        n: u32,
    },
    Raise(u32),
    Watch {
        member: u32,
        stage: u32,
    },
    WatchAll(u32),
}

/// So many bytes from the beginning of one of four areas: the caller's two buffers, all lines, all short shelves.
#[derive(Clone, Copy, Debug)]
struct Spot {
    area: u32,
    by: u32,
}

const LINES: u32 = 2;
const AREAS: u32 = 3;

/// Makes moves of steps.
struct Maker<'a> {
    run: &'a Run,
    desk: &'a Desk,
    berth: &'a Berth,
    /// Copies of this length and longer are not for here.
    long: u64,
}

impl Maker<'_> {
    /// The moves of all steps, unless one cannot be one.
    fn moves(&self) -> Option<Box<[Move]>> {
        let mut moves = Vec::new();
        let mut rest = &self.run.schedule.steps[..];
        while let [step, more @ ..] = rest {
            rest = more;
            moves.push(match (*step, more) {
                (Step::Copy { from, to }, [Step::Reduce { left, right }, after @ ..])
                    if *right == to && to.buf < SHELVES =>
                {
                    rest = after;
                    self.combine(*left, from, to)?
                }
                (step, _) => self.one(step)?,
            });
        }
        (moves.len() <= STEPS).then(|| moves.into())
    }

    fn one(&self, step: Step) -> Option<Move> {
        Some(match step {
            Step::Copy { from, to } => {
                let ((from, len), (to, room)) = (self.spot(from)?, self.spot(to)?);
                let fits = len == room && len < self.long;
                Move::Copy {
                    from,
                    to,
                    len: fits.then_some(len as u32)?,
                }
            }
            Step::Reduce { left, right } => {
                let n = left.len as u32;
                let (left, right) = (self.spot(left)?.0, self.spot(right)?.0);
                Move::Reduce { left, right, n }
            }
            Step::Raise(stage) => Move::Raise(stage),
            Step::Watch { rank, stage } => {
                let member = *self.desk.members.get(rank as usize)?;
                Move::Watch { member, stage }
            }
            Step::WatchAll(stage) => Move::WatchAll(stage),
            Step::Send { .. } | Step::Recv { .. } | Step::Await(_) | Step::Fence => return None,
        })
    }

    /// `into = left op right`.
    fn combine(&self, left: Slice, right: Slice, into: Slice) -> Option<Move> {
        let n = left.len as u32;
        let (left, right, into) = (self.spot(left)?, self.spot(right)?, self.spot(into)?);
        let fits = right.1 == into.1 && left.1 == into.1;
        fits.then_some(Move::Combine {
            left: left.0,
            right: right.0,
            into: into.0,
            n,
        })
    }

    /// Where a slice begins, and its bytes, if it has some and they lie in a row.
    fn spot(&self, slice: Slice) -> Option<(Spot, u64)> {
        if slice.is_empty() || slice.buf >= TEMPS {
            return None;
        }
        if slice.buf >= SHELVES {
            return self.shelf(slice);
        }
        let (area, buffers) = (slice.buf, &self.run.memory.user);
        let (_, size) = buffers.get(area as usize)?.plain(0, 1)?;
        let by = u64::try_from(slice.at).ok()?.checked_mul(size)?;
        let by = u32::try_from(by).ok()?;
        (area < LINES).then_some((Spot { area, by }, slice.len * size))
    }

    fn shelf(&self, slice: Slice) -> Option<(Spot, u64)> {
        let place = self.desk.place_of(slice.buf - SHELVES);
        let (area, by) = match self.berth.part(slice) {
            Part::Line(at) => (LINES, self.desk.board.to_line(place) + at),
            Part::Area(at) => (AREAS, self.desk.board.to(self.berth.areas, place) + at),
        };
        let by = u32::try_from(by).ok()?;
        Some((Spot { area, by }, slice.len * self.berth.unit))
    }
}

impl Short {
    fn of(run: &Run, like: Like, desk: &Desk, long: u64) -> Option<Short> {
        let (berth, circle) = (run.berth.as_ref()?, run.circle.as_ref()?);
        let plain = berth.shelf == Shelf::Short && run.schedule.steps.len() <= STEPS;
        let kernel = match run.combining {
            None => None,
            Some(Combining::Kernel(kernel)) => Some(kernel),
            Some(_) => return None,
        };
        if !plain || run.failure.is_some() || circle.board != Some(berth.desk) {
            return None;
        }
        let moves = Maker {
            run,
            desk,
            berth,
            long,
        }
        .moves()?;
        Some(Short {
            like,
            counts: run.counts.as_slice().into(),
            rows: circle.rows.clone(),
            kernel,
            bytes: run.bytes,
            lines_only: run.lines_only,
            raises: moves.iter().any(|m| matches!(m, Move::Raise(_))),
            moves,
            rank: circle.rank,
            raised: false,
            buffers: [Addr::NULL; 2],
            berth: *berth,
            pc: 0,
            come: 0,
        })
    }

    #[inline]
    fn suits(&self, like: &Like, rows: Option<&Arc<Table>>) -> bool {
        self.like == *like && self.rows.as_ref().map(Arc::as_ptr) == rows.map(Arc::as_ptr)
    }
}

impl Desk {
    /// Gives out the call that is like this one, with the next turn.
    #[inline]
    fn take_short(
        &mut self,
        like: &Like,
        rows: Option<&Arc<Table>>,
        buffers: [Addr; 2],
        counts: impl FnOnce(&[u64]) -> bool,
    ) -> Option<Box<Short>> {
        let place = self.shorts.get_mut(like.place())?;
        let found = place.as_ref()?;
        if !found.suits(like, rows) || !counts(&found.counts) {
            return None;
        }
        let mut short = place.take()?;
        (short.buffers, short.pc, short.raised) = (buffers, 0, short.raises);
        self.moor(&mut short.berth, short.lines_only);
        Some(short)
    }

    /// Keeps a call in its place.
    #[inline]
    fn give_short(&mut self, short: Box<Short>) {
        let place = short.like.place();
        if let Some(place) = self.shorts.get_mut(place) {
            *place = Some(short);
        }
    }

    /// Whether a new call may have the place.
    #[cold]
    fn is_free(&mut self, like: &Like) -> bool {
        if self.shorts.is_empty() {
            self.shorts = (0..PLACES).map(|_| None).collect();
        }
        let taken = self.shorts[like.place()].is_some();
        self.crossed += taken as u32;
        !taken || self.crossed.is_multiple_of(PATIENCE)
    }

    /// Goes on as far as it can without waiting; what it waits for.
    #[inline]
    fn go_on(&mut self, short: &mut Short) -> Option<Watch> {
        if let Some(watch) = self.open(&mut short.berth) {
            return Some(watch);
        }
        let number = short.berth.number;
        let [a, b] = short.buffers;
        let lines = self.board.all_lines(number).addr();
        let areas = [
            a,
            b,
            lines,
            self.board.all(short.berth.areas, number).addr(),
        ];
        let at = |spot: Spot| areas[(spot.area & 3) as usize].offset(spot.by as i64);
        while let Some(step) = short.moves.get(short.pc) {
            let waits = match *step {
                Move::Copy { from, to, len } => {
                    at(from).copy_to(at(to), len as u64);
                    None
                }
                Move::Reduce { left, right, n } => {
                    let run = |k: Kernel| k.run(at(left), at(right), n as u64);
                    short.kernel.into_iter().for_each(run);
                    None
                }
                Move::Combine {
                    left,
                    right,
                    into,
                    n,
                } => {
                    let run = |k: Kernel| k.run_into(at(left), at(right), at(into), n as u64);
                    short.kernel.into_iter().for_each(run);
                    None
                }
                Move::Raise(stage) => {
                    self.raise(&short.berth, stage);
                    None
                }
                Move::Watch { member, stage } => self.watch_member(&short.berth, member, stage),
                Move::WatchAll(stage) => self.watch_all(&short.berth, &mut short.come, stage),
            };
            if waits.is_some() {
                return waits;
            }
            if self.odd.is_some() {
                self.break_off(short);
            }
            short.pc += 1;
        }
        None
    }

    /// Another rank is in another call: nobody who watches this rank shall wait for stages that it does not come to.
    #[cold]
    fn break_off(&mut self, short: &mut Short) {
        self.raise(&short.berth, LAST_STAGE);
        (short.raised, short.pc) = (true, short.moves.len());
    }

    #[cold]
    fn contradicted(&mut self, short: &Short) -> Option<Failure> {
        let (other, theirs) = self.odd.take()?;
        Some(short.berth.said.failure(short.rank, other, theirs))
    }
}

impl Engine {
    /// The call on this board that is like this one and may begin, with the caller's buffers. `counts` says whether a list of
    /// counts is the caller's.
    #[inline]
    pub fn take_short(
        &mut self,
        board: BoardId,
        rows: Option<&Arc<Table>>,
        like: &Like,
        buffers: [Addr; 2],
        counts: impl FnOnce(&[u64]) -> bool,
    ) -> Option<Box<Short>> {
        let desk = self.collectives.desks.get(board)?;
        desk.take_short(like, rows, buffers, counts)
    }

    /// Goes on with it as far as it can without waiting; what it waits for, or nothing at the end.
    #[inline]
    pub fn go_on(&mut self, short: &mut Short) -> Option<Watch> {
        let desk = self.collectives.desks.get(short.berth.desk)?;
        desk.go_on(short)
    }

    /// It has come to its end; says what went wrong, if anything did.
    #[inline]
    pub fn end_short(&mut self, short: Box<Short>) -> Option<Failure> {
        self.spread_now_and_then(0);
        let desks = &mut self.collectives.desks;
        desks.end(&short.berth, short.raised);
        self.counters.hit(Counter::BoardCollectives);
        self.counters.add(Counter::BoardBytes, short.bytes);
        let mut failure = None;
        if let Some(desk) = desks.get(short.berth.desk) {
            if desk.odd.is_some() {
                failure = desk.contradicted(&short);
            }
            desk.give_short(short);
        }
        if desks.turned {
            self.advance_collectives();
        }
        failure
    }

    /// Calls like the one that this run was, which has ended, shall be short, if they can be.
    #[cold]
    pub fn shorten(&mut self, run: &Run, like: Like) {
        let long = self.collectives.publisher.long();
        let Some(berth) = &run.berth else { return };
        let Some(desk) = self.collectives.desks.get(berth.desk) else {
            return;
        };
        if desk.is_free(&like)
            && let Some(short) = Short::of(run, like, desk, long)
        {
            desk.give_short(Box::new(short));
        }
    }
}
