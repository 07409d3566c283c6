//! The memory of a running schedule: the caller's buffers, and temporaries from a small store.

use kw_coll::{Schedule, Slice, TEMPS, Temp};
use kw_sys::buf::{Addr, Buf};
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

/// A buffer in units.
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
        /// Where displacements count from.
        addr: Addr,
        /// The datatype.
        layout: Arc<Layout>,
    },
    /// The unit is so many bytes of the buffer's packed data.
    Stream {
        /// The buffer.
        buf: Buf,
        /// Bytes in a unit.
        unit: u64,
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
            Memory::Plain { addr, size } => Buf::bytes(addr.offset(at * *size as i64), len * size),
            Memory::Typed { addr, layout } => {
                Buf::typed(addr.offset(at * layout.extent()), len, layout)
            }
            Memory::Stream { buf, unit } => buf.slice(at as u64 * unit, len * unit),
        }
    }

    /// First byte and bytes of units `at..at+len`, where they lie in a row as they are.
    #[inline]
    pub(super) fn plain(&self, at: i64, len: u64) -> Option<(Addr, u64)> {
        match self {
            Memory::Plain { addr, size } => Some((addr.offset(at * *size as i64), len * size)),
            _ => None,
        }
    }

    /// First byte, and bytes of a unit, where units lie in a row as they are.
    #[inline]
    pub(super) fn row(&self) -> Option<(Addr, u64)> {
        match *self {
            Memory::Plain { addr, size } => Some((addr, size)),
            _ => None,
        }
    }

    /// Address of element `at`, for reductions.
    #[inline]
    pub(super) fn addr(&self, at: i64) -> Addr {
        match self {
            Memory::Plain { addr, size } => addr.offset(at * *size as i64),
            Memory::Typed { addr, layout } => addr.offset(at * layout.extent()),
            Memory::Stream { buf, unit } => buf.addr().offset(at * *unit as i64),
        }
    }

    /// Distance of two elements.
    pub(super) fn extent(&self) -> i64 {
        match self {
            Memory::Plain { size, .. } => *size as i64,
            Memory::Typed { layout, .. } => layout.extent(),
            Memory::Stream { unit, .. } => *unit as i64,
        }
    }

    /// The same units at `addr`.
    fn at(&self, addr: Addr) -> Memory {
        match self {
            Memory::Typed { layout, .. } => Memory::Typed {
                addr,
                layout: layout.clone(),
            },
            Memory::Plain { size, .. } => Memory::Plain { addr, size: *size },
            Memory::Stream { unit, .. } => Memory::Plain { addr, size: *unit },
        }
    }

    /// Bytes that `len` elements span, and where displacement 0 of the first lies in them.
    fn span(&self, len: u64) -> (u64, i64) {
        if len == 0 {
            return (0, 0);
        }
        match self {
            Memory::Typed { layout, .. } => {
                let reach = layout.extent().unsigned_abs() * (len - 1);
                let back = if layout.extent() < 0 { reach as i64 } else { 0 };
                (reach + layout.true_extent() as u64, back - layout.true_lb())
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
            let addr = block.addr().offset(from as i64 + shift);
            temps.push(match t {
                Temp::Elements(_) => element.at(addr),
                Temp::Bytes(_) => Memory::Plain { addr, size: 1 },
                Temp::Packed(_) => Memory::Plain { addr, size: bytes },
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

    /// First byte and bytes of a slice, where they lie in a row as they are.
    #[inline]
    pub fn plain(&self, slice: Slice) -> Option<(Addr, u64)> {
        self.memory(slice.buf).plain(slice.at, slice.len)
    }

    /// The message buffer of a slice.
    #[inline]
    pub fn buf(&self, slice: Slice) -> Buf {
        if slice.is_empty() {
            return Buf::EMPTY;
        }
        self.memory(slice.buf).buf(slice.at, slice.len)
    }

    /// Address of a slice's first element.
    #[inline]
    pub fn addr(&self, slice: Slice) -> Addr {
        self.memory(slice.buf).addr(slice.at)
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
