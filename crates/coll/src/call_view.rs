//! Description of a collective call, in the terms used by algorithms.

use super::algorithms::Algorithm;
use super::table::{Site, fallback};
use super::{
    Chooser, Coll, FLAG_LINE_BYTES, Levels, Neighbors, Nodes, RECV, SEND, SHM_BUFFERS, Schedule,
    Slice, front,
};
use kw_base::shm_region::{SHORT, ring};

/// Location of the ranks' blocks.
#[derive(Clone, Copy, Debug)]
pub enum Blocks<'a> {
    /// Equal contiguous blocks: block `i` is units `i*each..(i+1)*each` of `buf`.
    Even {
        /// The buffer.
        buf: u32,
        /// Units in one block.
        each: u64,
    },
    /// Block `i` is `counts[i]` units from `at[i]` on.
    Listed {
        /// The buffer.
        buf: u32,
        /// Units in each block.
        counts: &'a [u64],
        /// First unit of each block.
        at: &'a [i64],
    },
    /// Block `i` is `counts[i]` units of the buffer `first + i` (each block has its own datatype).
    Apart {
        /// Buffer of the first block.
        first: u32,
        /// Units in each block.
        counts: &'a [u64],
    },
}

impl Blocks<'_> {
    /// No blocks.
    pub const NONE: Blocks<'static> = Blocks::Even { buf: SEND, each: 0 };

    /// Block `i`.
    #[inline]
    pub fn block(&self, i: u32) -> Slice {
        match *self {
            Blocks::Even { buf, each } => Slice {
                buf,
                at: (i as u64 * each) as i64,
                len: each,
            },
            Blocks::Listed { buf, counts, at } => Slice {
                buf,
                at: at[i as usize],
                len: counts[i as usize],
            },
            Blocks::Apart { first, counts } => Slice::whole(first + i, counts[i as usize]),
        }
    }

    /// Blocks `i..i+n` as one slice; only for equal blocks.
    #[inline]
    pub fn run(&self, i: u32, n: u32) -> Slice {
        match *self {
            Blocks::Even { buf, each } => Slice {
                buf,
                at: (i as u64 * each) as i64,
                len: n as u64 * each,
            },
            _ => {
                unreachable!("only equal blocks lie in a row; the table's `even` need guards this")
            }
        }
    }

    /// Whether blocks are equal and contiguous.
    pub fn is_even(&self) -> bool {
        matches!(self, Blocks::Even { .. })
    }
}

/// The shm region of this rank's node, as far as one collective is concerned. All ranks of the
/// communicator see the same sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShmSizes {
    /// Bytes of a short shm buffer.
    pub short: u64,
    /// Bytes of the longest shm buffer there is.
    pub long: u64,
    /// Bytes of one unit of a shm buffer: 1, or the size of an element where elements are combined.
    pub unit: u64,
}

impl ShmSizes {
    /// Default for a host with `ranks` ranks; `unit`: see [`ShmSizes`].
    pub fn usual(ranks: u64, unit: u64) -> ShmSizes {
        let ring = ring(ranks as usize) as u64;
        ShmSizes {
            short: SHORT as u64 + FLAG_LINE_BYTES,
            long: ring / 3 / 64 * 64 + FLAG_LINE_BYTES,
            unit,
        }
    }
}

/// One rank's view of one collective call. Every rank fills in its own; `size`, `root`, `count`,
/// `block_bytes` and `commutative` agree on all ranks (the standard demands it), the rest is local.
#[derive(Clone, Copy, Debug)]
pub struct CallView<'a> {
    /// This rank.
    pub rank: u32,
    /// Ranks of the communicator.
    pub size: u32,
    /// The root, if there is one.
    pub root: u32,
    /// Reductions and scans: elements of a rank's contribution. Broadcast: bytes (the unit of its
    /// buffer is a byte, since ranks may describe the same data by different datatypes).
    pub count: u64,
    /// Packed bytes as the table counts them.
    pub bytes: u64,
    /// Packed bytes of one of the equal blocks (gather, scatter, allgather, alltoall).
    pub block_bytes: u64,
    /// Packed bytes that this rank sends and receives, if blocks are not equal (the v and w forms
    /// of alltoall); every rank has its own.
    pub own_bytes: u64,
    /// The send data: block `i` to rank `i`; block 0 if all get the same. Reduce-scatter: the block
    /// of each result.
    pub send: Blocks<'a>,
    /// The receive data: block `i` from rank `i`; block 0 if there is only one.
    pub recv: Blocks<'a>,
    /// Whether the reduction's operation commutes.
    pub commutative: bool,
    /// MPI_IN_PLACE was given at this rank: its contribution is in its receive buffer (scatter: the
    /// root's own block stays in its send buffer).
    pub in_place: bool,
    /// The number behind the slash of the table's row. The algorithm defines its meaning: the
    /// fan-out of a tree, a number of pieces, or kilobytes.
    pub param: u32,
    /// The host of each rank, and the domains inside each host; `None` if all share one host, or if
    /// unknown.
    pub nodes: Option<&'a Nodes>,
    /// The ranks that are close to each other, if all are on one host and each is bound to a known
    /// location there; `None` if unknown, or with several nodes.
    pub levels: Option<&'a Levels>,
    /// Shared memory of this node for this collective. All ranks of the communicator have one, or
    /// none has. With one, the unit of equal blocks is a byte, as on the shm buffers.
    pub shm_region: Option<ShmSizes>,
    /// Ranks of a host that make a call like this one at the same time, and share its link.
    pub sharing: u32,
    /// The edges of this rank, for neighbourhood collectives.
    pub neighbors: Option<&'a Neighbors>,
    /// Basis of the choice of a composed algorithm's parts; the built-in order of `ALL` if there is
    /// none.
    pub chooser: Option<Chooser<'a>>,
}

/// Bytes of an element that [`CallView::ordinary`] calls combine.
pub const ELEMENT: u64 = 8;

impl CallView<'static> {
    /// A call as programs make it: equal blocks, elements of 8 bytes, an operation that commutes,
    /// root 0, buffers of one's own; `bytes` as `table.txt` counts them.
    pub fn ordinary(coll: Coll, rank: u32, size: u32, bytes: u64) -> CallView<'static> {
        let even = |buf, each| Blocks::Even { buf, each };
        let mut call = CallView {
            bytes,
            ..CallView::new(rank, size)
        };
        match coll {
            Coll::Barrier => call.bytes = 0,
            Coll::Bcast => call.count = bytes,
            Coll::Reduce | Coll::Allreduce | Coll::Scan | Coll::Exscan => {
                call.count = bytes / ELEMENT;
            }
            Coll::ReduceScatter => {
                let each = bytes / ELEMENT / u64::from(size);
                (call.count, call.send) = (each * u64::from(size), even(SEND, each));
            }
            _ => {
                call.block_bytes = bytes;
                (call.send, call.recv) = (even(SEND, bytes), even(RECV, bytes));
            }
        }
        call
    }
}

impl<'a> CallView<'a> {
    /// A call with no data.
    pub fn new(rank: u32, size: u32) -> CallView<'a> {
        CallView {
            rank,
            size,
            root: 0,
            count: 0,
            bytes: 0,
            block_bytes: 0,
            own_bytes: 0,
            send: Blocks::NONE,
            recv: Blocks::NONE,
            commutative: true,
            in_place: false,
            param: 2,
            nodes: None,
            levels: None,
            shm_region: None,
            sharing: 1,
            neighbors: None,
            chooser: None,
        }
    }

    /// Whether this rank is the root.
    #[inline]
    pub fn is_root(&self) -> bool {
        self.rank == self.root
    }

    /// The algorithm for a part of a composed one, and its number from the table; `network`: its
    /// messages leave the node.
    pub fn choose(&self, coll: Coll, bytes: u64, network: bool) -> (&'static Algorithm, u32) {
        match self.chooser {
            Some(Chooser { table, site }) => {
                let network = network || site.network;
                table.choose(coll, bytes, Site { network, ..site }, self)
            }
            None => fallback(coll, self),
        }
    }

    /// This rank counted from the root.
    #[inline]
    pub fn relative(&self) -> u32 {
        (self.rank + self.size - self.root) % self.size
    }

    /// The rank that is `v`th counted from the root.
    #[inline]
    pub fn absolute(&self, v: u32) -> u32 {
        (v + self.root) % self.size
    }

    /// The rank `by` places further round the ring.
    #[inline]
    pub fn after(&self, by: u32) -> u32 {
        (self.rank + by) % self.size
    }

    /// The rank `by` places back round the ring.
    #[inline]
    pub fn before(&self, by: u32) -> u32 {
        (self.rank + self.size - by) % self.size
    }

    /// The first `len` units of rank `r`'s data shm buffer. Short data is next to the owner's flag,
    /// in one cache line; anything longer starts at the next line.
    #[inline]
    pub fn shm_buffer(&self, r: u32, len: u64) -> Slice {
        let unit = self.shm_region.map_or(1, |b| b.unit.max(1));
        let at = if len * unit <= FLAG_LINE_BYTES {
            0
        } else {
            front(unit)
        };
        Slice {
            buf: SHM_BUFFERS + r,
            at: at as i64,
            len,
        }
    }

    /// Most units that [`CallView::shm_buffer`] can give of a short and of a long shm buffer; 0 without
    /// a shm region.
    #[inline]
    pub fn shm_buffer_units(&self) -> (u64, u64) {
        let fits = |b: ShmSizes, bytes: u64| {
            let unit = b.unit.max(1);
            (bytes / unit).saturating_sub(front(unit))
        };
        self.shm_region
            .map_or((0, 0), |b| (fits(b, b.short), fits(b, b.long)))
    }

    /// The ranks of this rank's node, when the communicator has several nodes.
    #[inline]
    pub fn node_ranks(&self) -> Option<&'a [u32]> {
        self.nodes.map(|n| n.ranks(n.of(self.rank)))
    }

    /// The domains by which all ranks price the call: those of the host, or inside a node.
    pub fn priced_levels(&self) -> Option<&'a Levels> {
        match self.nodes {
            Some(nodes) => nodes.priced_levels(),
            None => self.levels,
        }
    }

    /// Whether a tree of this fan-out is one level deep, so that the root serves all ranks itself.
    #[inline]
    pub fn is_flat(&self) -> bool {
        self.size <= self.param
    }

    /// Packed bytes of one unit of a reduction's or broadcast's data; 1 where blocks are moved, as
    /// packed bytes.
    pub fn unit_bytes(&self) -> u64 {
        self.bytes.checked_div(self.count).unwrap_or(1)
    }

    /// This rank's contribution to a reduction: `count` elements.
    #[inline]
    pub fn input(&self) -> Slice {
        Slice::whole(if self.in_place { RECV } else { SEND }, self.count)
    }

    /// Emits the copy that is all of a reduction of nothing, or by one rank. Returns whether this
    /// is one.
    pub fn only_copies(&self, s: &mut Schedule) -> bool {
        let idle = self.size < 2 || self.count == 0;
        if idle && self.count > 0 && self.input() != self.output() {
            s.copy(self.input(), self.output());
        }
        idle
    }

    /// Destination of the result of a reduction: `count` elements.
    #[inline]
    pub fn output(&self) -> Slice {
        Slice::whole(RECV, self.count)
    }
}

/// Part `i` of `n` nearly equal parts of a slice, the longer ones first.
pub fn part_of(all: Slice, i: u32, n: u32) -> Slice {
    let start = |i: u64| (all.len / n as u64) * i + (all.len % n as u64).min(i);
    let (from, to) = (start(i as u64), start(i as u64 + 1));
    all.part(from, to - from)
}

/// Parts `i..j` of `n` as [`part_of`] cuts them.
pub fn parts_of(all: Slice, i: u32, j: u32, n: u32) -> Slice {
    if i >= j {
        return all.part(0, 0);
    }
    let (first, last) = (part_of(all, i, n), part_of(all, j - 1, n));
    let from = (first.at - all.at) as u64;
    all.part(from, (last.at - first.at) as u64 + last.len)
}
