//! A shm buffer cut into equal slots that take turns, so that data of any length flows through it
//! in pieces.

use super::{CallView, Schedule, ShmBuffer, Slice};

/// Slots start at multiples of this many units, if they are long enough.
const ALIGN: u64 = 64;
/// Most bytes that go through a short shm buffer, even if it holds more: it is reused soon, so its
/// lines are in the caches of the ranks that have read it, and cost more to write than those of a
/// long one (two ranks, 4 KB: 0.8 us, not 0.5). Ranks that share cores share caches too: for them
/// it holds what it can (4 ranks on 2 cores, 4 KB: 1.2 times as long through a long one). A
/// built-in value.
const RECENT: u64 = 2048;

/// The shm buffers of all ranks, cut alike.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    call: &'a CallView<'a>,
    whole: u64,
    each: u64,
    slots: u64,
    pieces: u64,
}

impl<'a> Cut<'a> {
    /// For data of `len` units: a short shm buffer as one slot, if it holds all, else as
    /// [`Cut::long`].
    pub fn new(call: &'a CallView, s: &mut Schedule, len: u64, least: u64) -> Cut<'a> {
        Cut::short(call, s, len).unwrap_or_else(|| Cut::long(call, s, len, least))
    }

    /// A long shm buffer for data of `len` units, in slots of about as many kilobytes as the
    /// table's row says; the pieces have equal lengths if possible. There are `least` slots (3 at
    /// most), unless the data needs fewer. If possible a long shm buffer is longer than the caches
    /// of a core, so that no cache holds the lines of a reused slot.
    pub fn long(call: &'a CallView, s: &mut Schedule, len: u64, least: u64) -> Cut<'a> {
        let most = most(call, least, 1);
        Cut::slots_of(call, s, len.div_ceil(most), len, 0, most)
    }

    /// For `blocks` blocks with `len` units together. Every piece has a share of each block:
    /// [`Cut::share`] units if blocks are equal; otherwise the block's part of all data, rounded
    /// up.
    pub fn blocks(
        call: &'a CallView,
        s: &mut Schedule,
        len: u64,
        least: u64,
        blocks: u64,
    ) -> Cut<'a> {
        if let Some(cut) = Cut::short(call, s, len) {
            return cut;
        }
        let most = most(call, least, 2 * blocks);
        // Room for rounding up.
        let room = if most < 4 * blocks * ALIGN {
            blocks
        } else {
            blocks * ALIGN
        };
        let pieces = if len <= self::most(call, 1, 2 * blocks) {
            1
        } else {
            len.div_ceil(most - room)
        };
        Cut::slots_of(call, s, pieces, len, room, most)
    }

    fn short(call: &'a CallView, s: &mut Schedule, len: u64) -> Option<Cut<'a>> {
        let shares_cores = call.chooser.is_some_and(|c| c.site.shared);
        if len > call.shm_buffer_units().0 || !shares_cores && len * unit(call) > RECENT {
            return None;
        }
        s.use_short(len);
        Some(Cut {
            call,
            whole: len,
            each: len,
            slots: 1,
            pieces: 1,
        })
    }

    fn slots_of(
        call: &'a CallView,
        s: &mut Schedule,
        pieces: u64,
        len: u64,
        room: u64,
        most: u64,
    ) -> Cut<'a> {
        let (_, whole) = call.shm_buffer_units();
        let each = match pieces {
            1 => len,
            _ => raised(len.div_ceil(pieces) + room).min(most),
        };
        let slots = (whole / each).min(pieces);
        s.shm_buffer = ShmBuffer::Long;
        s.long = s.long.max(slots * each);
        Cut {
            call,
            whole,
            each,
            slots,
            pieces,
        }
    }

    /// Units of a slot.
    pub fn each(&self) -> u64 {
        self.each
    }

    /// Units of each of `n` equal parts of a slot.
    pub fn share(&self, n: u64) -> u64 {
        match self.pieces {
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
        let shm_buffer = self.call.shm_buffer(r, self.whole);
        shm_buffer.part(i % self.slots * self.each, self.each)
    }

    /// Number of pieces.
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Piece `i` of the data.
    pub fn piece(&self, data: Slice, i: u64) -> Slice {
        let from = i * self.each;
        data.part(from, self.each.min(data.len - from))
    }
}

/// Number of pieces into which data is cut, and bytes of one of them.
pub type Pieces = (f64, f64);

/// The pieces of a reduction's or a broadcast's data, as [`Cut::new`] makes them.
pub fn pieces_of(call: &CallView, least: u64) -> Pieces {
    let cut = Cut::new(call, &mut Schedule::default(), call.count.max(1), least);
    even(cut.pieces(), call.bytes)
}

/// The cut that [`Cut::long`] would make.
pub fn long_pieces_of(call: &CallView, least: u64) -> Pieces {
    let cut = Cut::long(call, &mut Schedule::default(), call.count.max(1), least);
    even(cut.pieces(), call.bytes)
}

/// The pieces of a block, as [`Cut::new`] makes them.
pub fn block_pieces_of(call: &CallView, least: u64) -> Pieces {
    let cut = Cut::new(call, &mut Schedule::default(), call.bytes.max(1), least);
    even(cut.pieces(), call.bytes)
}

/// The pieces of all blocks of a reduce-scatter, as [`Cut::blocks`] makes them.
pub fn all_pieces_of(call: &CallView, least: u64) -> Pieces {
    let (n, count) = (u64::from(call.size), call.count.max(1));
    let cut = Cut::blocks(call, &mut Schedule::default(), count, least, n);
    even(cut.pieces(), call.bytes)
}

/// The pieces of each block of an alltoall, as [`Cut::blocks`] makes them.
pub fn share_pieces_of(call: &CallView, least: u64) -> Pieces {
    let (n, b) = (u64::from(call.size), call.bytes.max(1));
    let cut = Cut::blocks(call, &mut Schedule::default(), b * n, least, n);
    even(b.div_ceil(cut.share(n).max(1)), call.bytes)
}

fn even(pieces: u64, bytes: u64) -> Pieces {
    let pieces = pieces.max(1) as f64;
    (pieces, bytes as f64 / pieces)
}

/// Units of the longest slot: an eighth more than the table's row says, so that data that is a
/// little longer needs no further piece, but at least `room`.
fn most(call: &CallView, least: u64, room: u64) -> u64 {
    let wanted = ((call.param as u64) << 10) / unit(call);
    rounded(
        (wanted + wanted / 8)
            .max(room)
            .min(call.shm_buffer_units().1 / least),
    )
}

/// Bytes of a unit.
fn unit(call: &CallView) -> u64 {
    call.shm_region.map_or(1, |b| b.unit.max(1))
}

/// The next lower multiple of the alignment of memory.
fn rounded(units: u64) -> u64 {
    if units < ALIGN {
        units
    } else {
        units - units % ALIGN
    }
}

/// The next higher multiple of the alignment of memory.
fn raised(units: u64) -> u64 {
    if units < ALIGN {
        units
    } else {
        units.next_multiple_of(ALIGN)
    }
}
