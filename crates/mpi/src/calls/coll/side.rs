//! The two sides of a collective that moves blocks: what a rank sends and what it receives. Calls
//! with equal blocks, with lists of counts and with lists of datatypes differ only in these.

use super::arguments::{Data, apart, read_lists, refuse_same};
use kw_coll::Blocks;
use kw_engine::Memory;
use kw_objects::error::Res;
use kw_objects::handle::TypeH;
use kw_objects::lists::Lists;
use kw_objects::state::Tables;
use kw_sys::args::{Array, Ints};
use kw_sys::buf::Addr;

/// Buffer, count and datatype.
pub(super) type Args = (Addr, i64, TypeH);
/// Buffer, counts, displacements and datatype.
pub(super) type ListArgs = (Addr, Ints, Ints, TypeH);
/// Buffer, counts, displacements and datatypes.
pub(super) type ApartArgs = (Addr, Ints, Ints, Array<TypeH>);

/// Number of elements and datatype of a block.
pub(super) type Block = (i64, TypeH);

/// Arguments of one side.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// Equal blocks.
    Even(Args),
    /// Blocks of one datatype.
    Listed(ListArgs),
    /// Blocks that differ in datatype.
    Apart(ApartArgs),
}

/// Names of a side's buffer and of its displacements.
pub(super) type Names = (&'static str, &'static str);

/// Names of the sides in calls of which only one side has displacements, and in others.
pub(super) const ONE_LISTED: [Names; 2] = [("sendbuf", "displs"), ("recvbuf", "displs")];
pub(super) const BOTH_LISTED: [Names; 2] = [("sendbuf", "sdispls"), ("recvbuf", "rdispls")];

/// A side that was read.
pub(super) struct Part {
    /// Its buffer, unless each block has its own.
    pub memory: Option<Memory>,
    pub counts: Counts,
    /// Packed bytes of all blocks, of one if they are equal.
    pub bytes: u64,
}

/// Elements in the blocks.
pub(super) enum Counts {
    Even(u64),
    Listed(Lists),
    /// The number of the first block's buffer, and the elements.
    Apart(u32, Vec<u64>),
}

impl Counts {
    /// The blocks as a plan takes them, in this buffer unless each has its own.
    pub fn blocks(&self, buf: u32) -> Blocks<'_> {
        match self {
            &Counts::Even(each) => Blocks::Even { buf, each },
            Counts::Listed(lists) => listed(buf, lists),
            &Counts::Apart(first, ref counts) => Blocks::Apart { first, counts },
        }
    }

    fn len(&self) -> usize {
        match self {
            Counts::Even(_) => usize::MAX,
            Counts::Listed(lists) => lists.counts.len(),
            Counts::Apart(_, counts) => counts.len(),
        }
    }
}

pub(super) fn listed(buf: u32, lists: &Lists) -> Blocks<'_> {
    Blocks::Listed {
        buf,
        counts: &lists.counts,
        at: &lists.at,
    }
}

impl Side {
    pub fn addr(self) -> Addr {
        let (Side::Even((addr, ..)) | Side::Listed((addr, ..)) | Side::Apart((addr, ..))) = self;
        addr
    }

    /// Block `i`.
    pub fn block(self, i: usize) -> Block {
        match self {
            Side::Even((_, count, datatype)) => (count, datatype),
            Side::Listed((_, counts, _, datatype)) => (counts.get(i), datatype),
            Side::Apart((_, counts, _, types)) => (counts.get(i), types.get(i)),
        }
    }

    /// Displacement of block `i`.
    fn displacement(self, i: usize) -> i64 {
        match self {
            Side::Even(_) => 0,
            Side::Listed((_, _, displs, _)) | Side::Apart((_, _, displs, _)) => displs.get(i),
        }
    }

    /// Last letter of the name of a call with such a side.
    pub fn letter(self) -> &'static str {
        match self {
            Side::Even(_) => "",
            Side::Listed(_) => "v",
            Side::Apart(_) => "w",
        }
    }

    /// This side where it is not significant.
    pub fn insignificant(self) -> Part {
        let (memory, counts) = match self {
            Side::Even(_) => (Some(Memory::NONE), Counts::Even(0)),
            Side::Listed(_) => (Some(Memory::NONE), Counts::Listed(Lists::default())),
            Side::Apart(_) => (None, Counts::Apart(0, Vec::new())),
        };
        Part {
            memory,
            counts,
            bytes: 0,
        }
    }

    /// Reads `n` blocks; adds their buffers to `buffers` if each has its own. Equal ones are not
    /// examined if there are none, but a negative count is still wrong.
    pub fn read(
        self,
        tables: &Tables,
        (name, displs): Names,
        n: u32,
        buffers: &mut Vec<Memory>,
    ) -> Res<Part> {
        let (memory, counts, bytes) = match self {
            Side::Even((addr, count, datatype)) => {
                let count = if n == 0 { count.min(0) } else { count };
                let data = Data::of(tables, name, addr, count, datatype)?;
                (Some(data.memory), Counts::Even(data.count), data.bytes)
            }
            Side::Listed(args) => {
                let (memory, lists) = read_lists(tables, (name, displs), args, n)?;
                let bytes = lists.bytes;
                (Some(memory), Counts::Listed(lists), bytes)
            }
            Side::Apart(args) => {
                let first = buffers.len() as u32;
                if first == 0 {
                    buffers.reserve_exact(2 * n as usize); // the other side's come next
                }
                let (counts, bytes) = apart(tables, name, args, n, buffers)?;
                (None, Counts::Apart(first, counts), bytes)
            }
        };
        Ok(Part {
            memory,
            counts,
            bytes,
        })
    }
}

/// Checks that no block is sent from where it is received. If one side is equal blocks, none of the
/// other may begin where these do. Otherwise disjoint blocks may be counted from the same address;
/// but if block `i` of both has the same elements, the call is certainly wrong.
pub(super) fn refuse_same_sides((s, sent): (Side, &Part), (r, received): (Side, &Part)) -> Res {
    if s.addr() != r.addr() {
        return Ok(());
    }
    let mut blocks = 0..sent.counts.len().min(received.counts.len());
    let filled = |side: Side, i| side.block(i).0 > 0;
    let bytes = match (s, r) {
        (Side::Even(_), Side::Even(_)) => sent.bytes.min(received.bytes),
        (Side::Even(_), list) | (list, Side::Even(_)) => {
            let same = blocks.any(|i| filled(list, i) && list.displacement(i) == 0);
            let whole = if matches!(s, Side::Even(_)) {
                sent
            } else {
                received
            };
            if same { whole.bytes } else { 0 }
        }
        _ => blocks.any(|i| {
            let same = s.displacement(i) == r.displacement(i) && s.block(i).1 == r.block(i).1;
            same && filled(s, i) && filled(r, i)
        }) as u64,
    };
    refuse_same(s.addr(), r.addr(), bytes)
}
