//! Boards as schedules use them: whose turn it is, which slot and area a collective has, and when it may touch them.
//!
//! A *desk* is this rank's side of one communicator's board. Collectives are numbered in the order in which they are called;
//! at each rank they take turns. Collective `k` has line `k % LINES`, which `k - LINES` had before. A rank *marks* `k` when it
//! stores a word of that number: with its first raise, or at its end at the latest. So a mark of `k` says that the rank has
//! ended `k - 1` and all before it, and the line is free once all ranks have marked `k - LINES + 1`. Who also touches short areas,
//! its own or others', waits likewise for `k - SLOTS + 1`; a part of the rings that `u` had before ([`Ring`]) is free once all
//! have marked `u + 1`. What is known of the others' marks is kept, so that ranks that watch each other anyway seldom look twice.

mod short;

pub use short::{Like, Short};

use super::memory::Memory;
use super::ring::Ring;
use super::said::Said;
use kw_coll::{Board as View, SHELF_LINE, SHELVES, Schedule, Shelf, Slice};
use kw_path::shm::board::{Areas, Board, LINE, LINES, SHORT, SLOTS, STAGE_BITS};
use kw_sys::buf::Addr;

const _: () = assert!(LINE as u64 == SHELF_LINE);

/// Names a board that this rank's engine holds for a communicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoardId(u32);

/// What a schedule waits for on a board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    pub(super) desk: BoardId,
    for_: For,
}

impl Watch {
    /// Whether it is a turn, which comes when another collective of this rank ends.
    #[inline]
    pub(crate) fn is_turn(self) -> bool {
        matches!(self.for_, For::Turn(_))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum For {
    /// Its turn.
    Turn(u64),
    /// A member's word of that collective to be that large.
    Word { member: u32, number: u64, word: u64 },
}

/// One collective's place on a board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Berth {
    pub(super) desk: BoardId,
    pub(super) number: u64,
    /// Every rank must have marked this one before memory is touched.
    needs: u64,
    /// Whether the turn has come and the memory is free.
    open: bool,
    /// Where its part of the rings begins, and its bytes.
    at: u64,
    long: u64,
    shelf: Shelf,
    /// Where its short shelves lie.
    areas: Areas,
    /// Bytes of a unit.
    unit: u64,
    /// What this rank says of its call.
    pub(super) said: Said,
}

/// No schedule has a later stage.
pub(super) const LAST_STAGE: u32 = (1 << STAGE_BITS) - 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct Desk {
    board: Board,
    /// By rank of the communicator: which member of this node it is; `STRANGER` for ranks of other nodes.
    members: Box<[u32]>,
    /// By member: its place on the host.
    places: Box<[u32]>,
    /// Which member this rank is.
    own: usize,
    /// By member: the last collective it is known to have marked.
    marked: Box<[u64]>,
    /// All members are known to have marked this one.
    all_marked: u64,
    /// Number of the last collective that was laid out.
    last: u64,
    /// Number of the collective whose turn it is.
    turn: u64,
    /// Who has which part of the rings.
    ring: Ring,
    /// A rank that says something else of a collective than this one, and what it says.
    pub(super) odd: Option<(u32, Said)>,
    /// Calls that may come again, by [`Like::place`].
    shorts: Box<[Option<Box<Short>>]>,
    /// Calls that found their place taken.
    crossed: u32,
    /// This rank sleeps because of the board.
    watching: bool,
    /// The communicator is gone; the board goes with its last collective.
    leaving: bool,
}

const STRANGER: u32 = u32::MAX;

impl Desk {
    /// `places`: for every rank of the communicator its place on this host, if it is of this host.
    pub(crate) fn new(board: Board, places: impl Iterator<Item = Option<u32>>) -> Desk {
        let mut here = Vec::new();
        let members = places
            .map(|place| {
                place.map_or(STRANGER, |p| {
                    here.push(p);
                    here.len() as u32 - 1
                })
            })
            .collect();
        let own = here.iter().position(|&p| p == board.me());
        Desk {
            own: own.expect("a rank has a desk only where it is a member"),
            ring: Ring::new(board.reach(), board.lap()),
            shorts: Box::default(),
            crossed: 0,
            board,
            members,
            marked: vec![0; here.len()].into(),
            places: here.into(),
            all_marked: 0,
            last: 0,
            turn: 1,
            odd: None,
            watching: false,
            leaving: false,
        }
    }

    /// The next collective's place.
    #[inline]
    fn berth(&mut self, desk: BoardId, schedule: &Schedule, lines_only: bool, unit: u64) -> Berth {
        let mut berth = Berth {
            desk,
            number: 0,
            needs: 0,
            open: false,
            at: 0,
            long: 0,
            shelf: schedule.shelf,
            areas: self.board.areas(schedule.short * unit),
            unit,
            said: Said::default(),
        };
        self.moor(&mut berth, lines_only);
        if berth.shelf == Shelf::Long {
            berth.long = schedule.long * unit;
            let (from, before) = self.ring.take(berth.number, berth.long);
            berth.at = from;
            berth.needs = berth.needs.max(before.map_or(0, |u| u + 1));
        }
        berth
    }

    /// Makes it the next one.
    #[inline]
    fn moor(&mut self, berth: &mut Berth, lines_only: bool) {
        self.last += 1;
        let ahead = if lines_only { LINES } else { SLOTS };
        berth.number = self.last;
        berth.needs = (self.last + 1).saturating_sub(ahead);
        berth.open = false;
    }

    /// Whether a collective may begin; otherwise what it waits for.
    #[inline]
    fn open(&mut self, berth: &mut Berth) -> Option<Watch> {
        if berth.open {
            return None;
        }
        let wait = |for_| {
            Some(Watch {
                desk: berth.desk,
                for_,
            })
        };
        if self.turn != berth.number {
            return wait(For::Turn(berth.number));
        }
        if self.all_marked < berth.needs
            && let Some(member) = self.unmarked(berth.number, berth.needs)
        {
            return wait(For::Word {
                member,
                number: berth.needs,
                word: berth.needs << STAGE_BITS,
            });
        }
        berth.open = true;
        None
    }

    /// Some member that has not marked `needs`, as far as can be seen. A look that must be taken is taken at a later
    /// collective first, so that it is not needed again soon.
    fn unmarked(&mut self, now: u64, needs: u64) -> Option<u32> {
        let later = (needs + now) / 2;
        for member in 0..self.places.len() {
            if self.marked[member] < needs {
                let mark = |number: u64| self.board.word(self.places[member], number) >> STAGE_BITS;
                let mut seen = mark(later);
                if seen < later {
                    seen = mark(needs);
                }
                if seen < needs {
                    return Some(member as u32);
                }
                self.marked[member] = seen;
            }
        }
        self.all_marked = self.marked.iter().copied().min().unwrap_or(now);
        None
    }

    /// Whether a member has come to a stage of this collective, or never will because it is in another one.
    #[inline]
    fn has_come(&mut self, berth: &Berth, member: u32, stage: u32) -> bool {
        let place = self.places[member as usize];
        let (word, begun) = (
            self.board.word(place, berth.number),
            berth.number << STAGE_BITS,
        );
        if word < begun {
            return false;
        }
        self.marked[member as usize] = berth.number;
        let said = Said(self.board.said(place, berth.number));
        if said != berth.said && said.contradicts(berth.said) {
            self.note_odd(member, said);
            return true;
        }
        word >= begun | stage as u64
    }

    #[cold]
    fn note_odd(&mut self, member: u32, said: Said) {
        let rank = self.members.iter().position(|&m| m == member);
        self.odd = rank.map(|r| (r as u32, said));
    }

    /// Whether that rank has come to a stage; otherwise what to wait for.
    #[inline]
    pub(super) fn watch(&mut self, berth: &Berth, rank: u32, stage: u32) -> Option<Watch> {
        self.watch_member(berth, self.members[rank as usize], stage)
    }

    /// Whether all have come to a stage; `from` says how many are known to.
    #[inline]
    pub(super) fn watch_all(&mut self, berth: &Berth, from: &mut u32, stage: u32) -> Option<Watch> {
        while (*from as usize) < self.places.len() {
            if let Some(watch) = self.watch_member(berth, *from, stage) {
                return Some(watch);
            }
            *from += 1;
        }
        *from = 0;
        None
    }

    #[inline]
    fn watch_member(&mut self, berth: &Berth, member: u32, stage: u32) -> Option<Watch> {
        if self.has_come(berth, member, stage) {
            return None;
        }
        Some(Watch {
            desk: berth.desk,
            for_: For::Word {
                member,
                number: berth.number,
                word: berth.number << STAGE_BITS | stage as u64,
            },
        })
    }

    /// This rank has come to a stage.
    #[inline]
    pub(super) fn raise(&mut self, berth: &Berth, stage: u32) {
        self.marked[self.own] = berth.number;
        self.board.raise(berth.number, stage, berth.said.0);
    }

    #[inline]
    fn reached(&self, for_: For) -> bool {
        match for_ {
            For::Turn(number) => self.turn >= number,
            For::Word {
                member,
                number,
                word,
            } => self.board.word(self.places[member as usize], number) >= word,
        }
    }

    /// Place of a rank of this node.
    #[inline]
    fn place_of(&self, rank: u32) -> u32 {
        self.places[self.members[rank as usize] as usize]
    }

    /// Address of a slice of a shelf.
    #[inline]
    fn shelf(&self, berth: &Berth, slice: Slice) -> Addr {
        let place = self.place_of(slice.buf - SHELVES);
        let (region, at) = match (berth.part(slice), berth.shelf) {
            (Part::Line(at), _) => (self.board.beside(place, berth.number), at),
            (Part::Area(at), Shelf::Long) => (self.board.long(place, berth.at, berth.long), at),
            (Part::Area(at), _) => (self.board.area(berth.areas, place, berth.number), at),
        };
        region.part(at as u64, slice.len * berth.unit).addr()
    }
}

/// The two parts of a shelf, with so many bytes from the beginning.
enum Part {
    /// The bytes beside the word.
    Line(i64),
    /// The short area, or the part of the ring.
    Area(i64),
}

impl Berth {
    /// Where a slice of a shelf lies.
    #[inline]
    fn part(&self, slice: Slice) -> Part {
        let unit = self.unit;
        let (at, front) = (slice.at as u64 * unit, SHELF_LINE.div_ceil(unit) * unit);
        if at >= front {
            return Part::Area((at - front) as i64);
        }
        debug_assert!(
            at + slice.len * unit <= SHELF_LINE,
            "{slice:?} begins in a line and ends outside"
        );
        Part::Line(at as i64)
    }
}

/// All desks of one engine.
#[derive(Debug, Default)]
pub(crate) struct Desks {
    desks: Vec<Option<Box<Desk>>>,
    /// Some collective has ended, so the next one's turn has come.
    pub(super) turned: bool,
}

impl Desks {
    /// Adds one.
    pub(crate) fn add(&mut self, desk: Desk) -> BoardId {
        let free = self.desks.iter().position(|d| d.is_none());
        let at = free.unwrap_or_else(|| {
            self.desks.push(None);
            self.desks.len() - 1
        });
        self.desks[at] = Some(Box::new(desk));
        BoardId(at as u32)
    }

    /// The communicator is gone.
    pub(crate) fn leave(&mut self, id: BoardId) {
        let Some(desk) = self.get(id) else { return };
        desk.leaving = true;
        if desk.turn > desk.last {
            self.drop(id);
        }
    }

    fn drop(&mut self, id: BoardId) {
        if let Some(desk) = self.desks[id.0 as usize].take() {
            let Desk {
                board,
                places,
                last,
                ..
            } = *desk;
            board.leave(&places, last);
        }
    }

    #[inline]
    pub(super) fn get(&mut self, id: BoardId) -> Option<&mut Desk> {
        self.desks.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// What algorithms are told of a board. They may use so much of the rings that the next
    /// collective need not wait.
    #[inline]
    pub(super) fn view(&mut self, id: BoardId, unit: u64) -> Option<View> {
        Some(View {
            short: SHORT as u64 + SHELF_LINE,
            long: self.get(id)?.ring.most() + SHELF_LINE,
            unit,
        })
    }

    #[inline]
    pub(super) fn berth(
        &mut self,
        id: BoardId,
        schedule: &Schedule,
        lines_only: bool,
        unit: u64,
    ) -> Option<Berth> {
        Some(self.get(id)?.berth(id, schedule, lines_only, unit))
    }

    /// The next place of a schedule on the board on which it has had one.
    pub(super) fn another(
        &mut self,
        like: &Berth,
        schedule: &Schedule,
        lines_only: bool,
    ) -> Option<Berth> {
        let berth = self.berth(like.desk, schedule, lines_only, like.unit)?;
        Some(Berth {
            said: like.said,
            ..berth
        })
    }

    /// The first collective of a board, and so far its only one, is not run.
    pub(super) fn take_back(&mut self, berth: &Berth) {
        if let Some(desk) = self.get(berth.desk) {
            debug_assert_eq!((berth.number, desk.last, desk.turn), (1, 1, 1));
            desk.last = 0;
            desk.ring = Ring::new(desk.board.reach(), desk.board.lap());
        }
    }

    #[inline]
    pub(super) fn open(&mut self, berth: &mut Berth) -> Option<Watch> {
        self.get(berth.desk)?.open(berth)
    }

    /// The collective has ended here: marks it, and lets the next one begin.
    #[inline]
    pub(super) fn end(&mut self, berth: &Berth, raised: bool) {
        let Some(desk) = self.get(berth.desk) else {
            return;
        };
        if !raised {
            desk.raise(berth, 0);
        }
        desk.turn = berth.number + 1;
        let (more, leaving) = (desk.turn <= desk.last, desk.leaving);
        self.turned |= more;
        if !more && leaving {
            self.drop(berth.desk);
        }
    }

    /// Memory of a slice of a shelf.
    #[inline]
    pub(super) fn memory(&self, berth: &Berth, slice: Slice) -> Memory {
        let desk = self.desks[berth.desk.0 as usize].as_deref();
        Memory::Plain {
            addr: desk.map_or(Addr::NULL, |d| d.shelf(berth, slice)),
            size: berth.unit,
        }
    }

    /// Whether what a schedule waits for has come.
    #[inline]
    pub(crate) fn reached(&self, watch: Watch) -> bool {
        let desk = self.desks.get(watch.desk.0 as usize);
        desk.and_then(|d| d.as_deref())
            .is_none_or(|d| d.reached(watch.for_))
    }

    /// Place on the host of the rank that a schedule waits for.
    #[cold]
    pub(crate) fn place_of(&self, watch: Watch) -> Option<u32> {
        let For::Word { member, .. } = watch.for_ else {
            return None;
        };
        let desk = self.desks.get(watch.desk.0 as usize)?.as_deref()?;
        desk.places.get(member as usize).copied()
    }

    /// This rank is about to sleep until then, among other things.
    pub(crate) fn sleep_for(&mut self, watch: Watch) {
        let For::Word { member, .. } = watch.for_ else {
            return;
        };
        if let Some(desk) = self.get(watch.desk)
            && !desk.watching
        {
            desk.watching = true;
            desk.board.watch(desk.places[member as usize]);
        }
    }

    /// This rank is awake.
    pub(crate) fn awake(&mut self) {
        for desk in self.desks.iter_mut().flatten() {
            if std::mem::take(&mut desk.watching) {
                desk.board.watch_nobody();
            }
        }
    }
}
