//! A shelf cut into equal slots that take turns, so that data of any length flows through it in pieces.

use super::{Ask, Schedule, Shelf, Slice};

/// Slots begin at multiples of so many units, if they are long enough.
const ALIGN: u64 = 64;

/// The shelves of all ranks, cut alike.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    ask: &'a Ask<'a>,
    whole: u64,
    each: u64,
    slots: u64,
}

impl<'a> Cut<'a> {
    /// For data of `len` units: a short shelf as one slot, if it holds all, else as [`Cut::long`].
    pub fn new(ask: &'a Ask, s: &mut Schedule, len: u64, least: u64, room: u64) -> Cut<'a> {
        if len > ask.shelf_units().0 {
            return Cut::long(ask, s, len, least, room);
        }
        s.shelf = Shelf::Short;
        Cut {
            ask,
            whole: len,
            each: len,
            slots: 1,
        }
    }

    /// A long shelf for data of `len` units, in slots of as many kilobytes as the table's row says, but with `room` units at
    /// least (twice the ranks at most). There are `least` slots (3 at most), unless the data needs fewer; a long shelf is
    /// longer than the caches of a core, if it can be, and a slot that comes again finds its lines in nobody's.
    pub fn long(ask: &'a Ask, s: &mut Schedule, len: u64, least: u64, room: u64) -> Cut<'a> {
        s.shelf = Shelf::Long;
        let (_, whole) = ask.shelf_units();
        let wanted = ((ask.fan as u64) << 10) / ask.board.map_or(1, |b| b.unit.max(1));
        let each = rounded(wanted.max(room).min(whole / least));
        let slots = (whole / each).min(len.div_ceil(each));
        let each = if slots == 1 { len } else { each };
        s.long = s.long.max(slots * each);
        Cut {
            ask,
            whole,
            each,
            slots,
        }
    }

    /// Units of a slot.
    pub fn each(&self) -> u64 {
        self.each
    }

    /// Units of each of `n` equal parts of a slot.
    pub fn share(&self, n: u64) -> u64 {
        match self.slots {
            1 => self.each / n,
            _ => rounded(self.each / n),
        }
    }

    /// Number of slots.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Rank `r`'s slot for piece `i`.
    pub fn slot(&self, r: u32, i: u64) -> Slice {
        let shelf = self.ask.shelf(r, self.whole);
        shelf.part(i % self.slots * self.each, self.each)
    }

    /// Number of pieces that data of `len` units makes.
    pub fn pieces(&self, len: u64) -> u64 {
        len.div_ceil(self.each)
    }

    /// Piece `i` of the data.
    pub fn piece(&self, data: Slice, i: u64) -> Slice {
        let from = i * self.each;
        data.part(from, self.each.min(data.len - from))
    }
}

/// The next lower multiple of what memory is aligned to.
fn rounded(units: u64) -> u64 {
    if units < ALIGN {
        units
    } else {
        units - units % ALIGN
    }
}
