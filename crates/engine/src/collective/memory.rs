//! The memory of a running schedule: the caller's buffers, and temporaries from a small store.

use kw_coll::{Schedule, Slice, TEMPS, Temp};
use kw_sys::buf::{Addr, Buf};
use kw_sys::elements::Elements;
use kw_sys::region::Region;
use kw_types::layout::Layout;
use std::sync::Arc;

/// Bytes of temporary memory that the store keeps for the next collectives.
const KEPT: u64 = 8 << 20;
/// Blocks that the store keeps.
const BLOCKS: usize = 8;
/// Smallest block.
const SMALLEST: u64 = 4096;
/// Alignment of temporaries.
const ALIGN: u64 = 64;

/// A buffer in units. The first two are in the caller's memory, which is valid by the promise of
/// the [`Addr`].
#[derive(Clone, Debug)]
pub enum Memory {
    /// The unit is an element of `size` bytes without gaps.
    Plain {
        /// First element.
        addr: Addr,
        /// Bytes of one.
        size: u64,
    },
    /// The unit is an element of this datatype.
    Typed {
        /// Base of displacements.
        addr: Addr,
        /// The datatype.
        layout: Arc<Layout>,
    },
    /// The unit is this many bytes of the buffer's packed data.
    Stream {
        /// The buffer.
        buf: Buf,
        /// Bytes in a unit.
        unit: u64,
    },
    /// The unit is an element of this datatype, in memory of the schedule.
    Own {
        /// The memory, contiguous.
        buf: Buf,
        /// Base of displacements, in bytes from the start of the memory.
        at: i64,
        /// The datatype.
        layout: Arc<Layout>,
    },
}

impl Memory {
    /// Nothing.
    pub const NONE: Memory = Memory::Plain {
        addr: Addr::NULL,
        size: 0,
    };

    /// Elements of a datatype.
    #[inline]
    pub fn elements(addr: Addr, layout: &Arc<Layout>) -> Memory {
        let size = layout.size();
        if layout.extent() == size as i64 && layout.contiguous(2) == Some(0) {
            return Memory::Plain { addr, size };
        }
        Memory::Typed {
            addr,
            layout: layout.clone(),
        }
    }

    /// Bytes of a buffer's packed data.
    pub fn stream(buf: Buf) -> Memory {
        Memory::Stream { buf, unit: 1 }
    }

    /// The message buffer of units `at..at+len`.
    #[inline]
    pub(super) fn buf(&self, at: i64, len: u64) -> Buf {
        match self {
            Memory::Plain { addr, size } => {
                Buf::bytes(addr.assume_offset(at * *size as i64), len * size)
            }
            Memory::Typed { addr, layout } => {
                Buf::typed(addr.assume_offset(at * layout.extent()), len, layout)
            }
            Memory::Stream { buf, unit } => buf.slice(at as u64 * unit, len * unit),
            Memory::Own {
                buf,
                at: from,
                layout,
            } => buf.typed_at(from + at * layout.extent(), len, layout),
        }
    }

    /// First byte, and bytes of a unit, if units are contiguous in memory of the caller.
    #[inline]
    pub(super) fn plain(&self) -> Option<(Addr, u64)> {
        match *self {
            Memory::Plain { addr, size } => Some((addr, size)),
            _ => None,
        }
    }

    /// The bytes of units `at..at+len`, if they are contiguous.
    #[inline]
    pub(super) fn row(&self, at: i64, len: u64) -> Option<Region<'_>> {
        match self {
            Memory::Plain { addr, size } => Some(Region::assume_lent(
                addr.assume_offset(at * *size as i64),
                len * size,
            )),
            Memory::Stream { buf, unit } => Some(buf.region()?.part(at as u64 * unit, len * unit)),
            Memory::Typed { .. } | Memory::Own { .. } => None,
        }
    }

    /// Elements `at..at+len` with the gaps between them, as the library's loops combine them: an
    /// element begins at its displacement 0.
    #[inline]
    pub(super) fn stretch(&self, at: i64, len: u64) -> Option<Region<'_>> {
        let bytes = u64::try_from(self.extent()).ok()? * len;
        let by = at * self.extent();
        match self {
            Memory::Typed { addr, .. } => Some(Region::assume_lent(addr.assume_offset(by), bytes)),
            Memory::Own { buf, at: from, .. } => {
                Some(buf.region()?.part(u64::try_from(from + by).ok()?, bytes))
            }
            _ => self.row(at, len),
        }
    }

    /// Elements `at..at+len`, as functions of the user combine them.
    pub(super) fn operand(&self, at: i64, len: u64) -> Elements {
        let by = at * self.extent();
        match self {
            Memory::Plain { addr, .. } | Memory::Typed { addr, .. } => {
                Elements::assume_lent(addr.assume_offset(by), self.extent(), len)
            }
            Memory::Stream { unit, .. } => Elements::in_a_row(&self.buf(at, len), *unit),
            Memory::Own {
                buf,
                at: from,
                layout,
            } => Elements::within(buf, from + by, layout, len),
        }
    }

    /// Distance of two elements.
    fn extent(&self) -> i64 {
        match self {
            Memory::Plain { size: unit, .. } | Memory::Stream { unit, .. } => *unit as i64,
            Memory::Typed { layout, .. } | Memory::Own { layout, .. } => layout.extent(),
        }
    }

    /// The units in temporary memory whose displacement 0 is at this address.
    fn own(&self, buf: Buf, at: i64) -> Memory {
        match self {
            Memory::Plain { size: unit, .. } | Memory::Stream { unit, .. } => {
                Memory::Stream { buf, unit: *unit }
            }
            Memory::Typed { layout, .. } | Memory::Own { layout, .. } => Memory::Own {
                buf,
                at,
                layout: layout.clone(),
            },
        }
    }

    /// Bytes that `len` elements span, with the gap after the last, and the offset in them of
    /// displacement 0 of the first.
    fn span(&self, len: u64) -> (u64, i64) {
        match self {
            Memory::Typed { layout, .. } | Memory::Own { layout, .. } if len > 0 => {
                let extent = layout.extent();
                let reach = extent.unsigned_abs() * (len - 1);
                let back = if extent < 0 { reach as i64 } else { 0 };
                let last = layout.true_extent().max(extent) as u64;
                (reach + last, back - layout.true_lb())
            }
            _ => (self.extent() as u64 * len, 0),
        }
    }
}

/// All memory of one running schedule.
#[derive(Debug, Default)]
pub(super) struct Memories {
    /// The caller's buffers.
    pub user: Vec<Memory>,
    pub(super) temps: Vec<Memory>,
    pub(super) block: Option<Buf>,
}

impl Memories {
    /// Makes room for the schedule's temporaries. `element` is one element of the reduction.
    pub fn lay_out(&mut self, schedule: &Schedule, element: &Memory, store: &mut Store) {
        if schedule.temps.is_empty() || !self.temps.is_empty() {
            return;
        }
        let size = |t: &Temp| self.measure(t, element).0.next_multiple_of(ALIGN);
        let block = store.take(schedule.temps.iter().map(size).sum());
        let mut from = 0;
        let mut temps = std::mem::take(&mut self.temps);
        temps.reserve_exact(schedule.temps.len());
        for t in &schedule.temps {
            let (bytes, shift) = self.measure(t, element);
            let buf = block.slice(from, bytes);
            temps.push(match t {
                Temp::Elements(_) => element.own(buf, shift),
                Temp::Bytes(_) => Memory::stream(buf),
                Temp::Packed(_) => Memory::Stream { buf, unit: bytes },
            });
            from += bytes.next_multiple_of(ALIGN);
        }
        self.temps = temps;
        self.block = Some(block);
    }

    fn measure(&self, t: &Temp, element: &Memory) -> (u64, i64) {
        match *t {
            Temp::Bytes(n) => (n, 0),
            Temp::Elements(n) => element.span(n),
            Temp::Packed(like) => (self.buf(like).len(), 0),
        }
    }

    #[inline]
    fn memory(&self, buf: u32) -> &Memory {
        if buf >= TEMPS {
            &self.temps[(buf - TEMPS) as usize]
        } else {
            &self.user[buf as usize]
        }
    }

    /// The bytes of a slice, if they are contiguous.
    #[inline]
    pub fn row(&self, slice: Slice) -> Option<Region<'_>> {
        self.memory(slice.buf).row(slice.at, slice.len)
    }

    /// The elements of a slice with the gaps between them, for the library's loops.
    #[inline]
    pub fn stretch(&self, slice: Slice) -> Option<Region<'_>> {
        self.memory(slice.buf).stretch(slice.at, slice.len)
    }

    /// The elements of a slice, for functions of the user.
    pub fn operand(&self, slice: Slice) -> Elements {
        self.memory(slice.buf).operand(slice.at, slice.len)
    }

    /// The message buffer of a slice.
    #[inline]
    pub fn buf(&self, slice: Slice) -> Buf {
        if slice.is_empty() {
            return Buf::EMPTY;
        }
        self.memory(slice.buf).buf(slice.at, slice.len)
    }

    /// Forgets the temporaries; nothing is in flight any more.
    #[inline]
    pub fn clear(&mut self, store: &mut Store) {
        if !self.temps.is_empty() {
            self.temps.clear();
            self.block.take().into_iter().for_each(|b| store.give(b));
        }
    }
}

/// Blocks that are not in use.
#[derive(Debug, Default)]
pub(super) struct Store {
    blocks: Vec<Buf>,
    bytes: u64,
}

impl Store {
    /// A block of at least `len` bytes.
    fn take(&mut self, len: u64) -> Buf {
        let fits = self
            .blocks
            .iter()
            .position(|b| b.len() >= len && b.len() / 4 <= len.max(SMALLEST));
        match fits {
            Some(i) => {
                let block = self.blocks.swap_remove(i);
                self.bytes -= block.len();
                block
            }
            None => Buf::alloc(len.max(SMALLEST).next_power_of_two() as usize),
        }
    }

    pub fn give(&mut self, block: Buf) {
        if self.blocks.len() < BLOCKS && self.bytes + block.len() <= KEPT {
            self.bytes += block.len();
            self.blocks.push(block);
        }
    }
}
