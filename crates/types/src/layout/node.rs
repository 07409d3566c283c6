//! The committed program of a datatype: nested strided loops and lists of blocks, and the walk over
//! part of it.
//!
//! Invariants, kept by the builders `repeat` and `sequence`: `size` is the packed bytes of the
//! node; neighbours that touch in memory and in the stream are one block; equal blocks at a
//! constant stride are a loop; a loop of a loop whose strides continue each other is one loop.
//! Children are shared (`Arc`), so that deriving is cheap. A short list in a list becomes part of
//! it, a long one is shared; lists are never nested deeper than [`DEEP`], so that a chain of any
//! number of structures neither takes the square of its length nor more stack than there is.

use std::sync::Arc;

/// One block of a list of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Displacement.
    pub at: i64,
    /// Bytes.
    pub len: u64,
    /// Packed offset in the list.
    pub start: u64,
}

/// Strided blocks, several times: `outer.1` times, `outer.0` bytes apart, `inner.1` blocks,
/// `inner.0` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Displacement of the first block.
    pub at: i64,
    /// Bytes of a block.
    pub len: u64,
    /// Stride and number, the faster in the stream.
    pub inner: (i64, u64),
    /// Stride and number, the slower in the stream.
    pub outer: (i64, u64),
}

/// Visitor of a layout's pieces, in the order of the packed stream.
pub trait Visit {
    /// `n` blocks of `len` bytes, the first at displacement `at`, each `stride` after the one
    /// before.
    fn strided(&mut self, at: i64, len: u64, stride: i64, n: u64);

    /// Blocks of `len` bytes at `base` plus each displacement.
    #[inline]
    fn scattered(&mut self, base: i64, len: u64, ats: &[i64]) {
        for at in ats {
            self.strided(base.wrapping_add(*at), len, 0, 1);
        }
    }

    /// A grid of blocks.
    #[inline]
    fn grid(&mut self, grid: &Grid) {
        let mut at = grid.at;
        for _ in 0..grid.outer.1 {
            self.strided(at, grid.len, grid.inner.0, grid.inner.1);
            at = at.wrapping_add(grid.outer.0);
        }
    }

    /// `n` times the blocks, displaced by `base` and then by `stride` more each time; each time has
    /// `size` packed bytes.
    #[inline]
    fn records(&mut self, base: i64, blocks: &[Block], size: u64, stride: i64, n: u64) {
        let _ = size;
        let mut base = base;
        for _ in 0..n {
            for block in blocks {
                self.strided(base.wrapping_add(block.at), block.len, 0, 1);
            }
            base = base.wrapping_add(stride);
        }
    }
}

/// At most this many blocks of one length are walked as members of a record, more as a list of
/// displacements.
const FEW: usize = 8;

/// A list of at most this many items is inlined into the list that contains it. (Small in tests, so
/// that random datatypes exercise this.)
pub(super) const SHORT: usize = if cfg!(test) { 3 } else { 16 };
/// Lists nested so deep are unfolded: a chain of structures is copied once in `SHORT * DEEP` links.
pub(super) const DEEP: u32 = if cfg!(test) { 3 } else { 256 };

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Displacement of the whole node.
    pub at: i64,
    /// Packed bytes.
    pub size: u64,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `size` contiguous bytes (nothing when size is 0).
    Block,
    /// `size / body.size` times the body, `stride` apart.
    Loop { stride: i64, body: Arc<Node> },
    /// Blocks of `len` bytes.
    Even { len: u64, ats: Arc<[i64]> },
    /// Blocks of any length.
    Blocks(Arc<[Block]>),
    /// Any nodes: the packed offset where each item starts, the items, and how deep lists are
    /// nested in lists.
    List {
        starts: Arc<[u64]>,
        items: Arc<[Node]>,
        depth: u32,
    },
}

impl Node {
    pub const EMPTY: Node = Node {
        at: 0,
        size: 0,
        kind: Kind::Block,
    };

    pub fn block(at: i64, len: u64) -> Node {
        Node {
            at,
            size: len,
            kind: Kind::Block,
        }
    }

    pub fn shifted(&self, by: i64) -> Node {
        Node {
            at: self.at.wrapping_add(by),
            ..self.clone()
        }
    }

    pub fn is_block(&self) -> bool {
        matches!(self.kind, Kind::Block)
    }

    /// `n` copies, `stride` apart. The caller has checked that sizes and displacements fit 63 bits.
    pub fn repeat(&self, n: u64, stride: i64) -> Node {
        if n == 0 || self.size == 0 {
            return Node::EMPTY;
        }
        if n == 1 {
            return self.clone();
        }
        let size = self.size * n;
        match &self.kind {
            Kind::Block if stride == self.size as i64 => Node::block(self.at, size),
            Kind::Loop {
                stride: inner,
                body,
            } if (self.size / body.size) as i64 as i128 * *inner as i128 == stride as i128 => {
                Node {
                    at: self.at,
                    size,
                    kind: Kind::Loop {
                        stride: *inner,
                        body: body.clone(),
                    },
                }
            }
            _ => Node {
                at: self.at,
                size,
                kind: Kind::Loop {
                    stride,
                    body: Arc::new(Node {
                        at: 0,
                        ..self.clone()
                    }),
                },
            },
        }
    }

    /// The nodes one after the other.
    pub fn sequence(nodes: impl IntoIterator<Item = Node>) -> Node {
        let mut items: Vec<Node> = Vec::new();
        for node in nodes {
            push(&mut items, node, false);
        }
        match items.len() {
            0 => Node::EMPTY,
            1 => items.remove(0),
            _ => as_loop(&items)
                .or_else(|| as_blocks(&items))
                .unwrap_or_else(|| as_list(items)),
        }
    }

    /// Visits bytes `from..to` of the node's stream (`from < to <= size`), displaced by `base`.
    pub fn walk<V: Visit>(&self, base: i64, from: u64, to: u64, v: &mut V) {
        let at = base.wrapping_add(self.at);
        match &self.kind {
            Kind::Block => v.strided(at.wrapping_add(from as i64), to - from, 0, 1),
            Kind::Loop { stride, body } => body.walk_loop(at, *stride, from, to, v),
            Kind::Even { len, ats } => walk_even(at, *len, ats, from, to, v),
            Kind::Blocks(blocks) => walk_blocks(at, blocks, from, to, v),
            Kind::List { starts, items, .. } => walk_list(at, starts, items, from, to, v),
        }
    }

    /// Visits the whole node, displaced by `base`.
    #[inline]
    pub fn walk_all<V: Visit>(&self, base: i64, v: &mut V) {
        let at = base.wrapping_add(self.at);
        match &self.kind {
            Kind::Block => v.strided(at, self.size, 0, 1),
            Kind::Loop { stride, body } => {
                body.walk_loop_all(at, *stride, self.size / body.size, v)
            }
            Kind::Even { len, ats } => v.scattered(at, *len, ats),
            Kind::Blocks(blocks) => v.records(at, blocks, self.size, 0, 1),
            Kind::List { items, .. } => {
                for item in items.iter() {
                    item.walk_all(at, v);
                }
            }
        }
    }

    /// Visits `n` copies of the node, `stride` apart, the first displaced by `base`.
    pub fn walk_loop_all<V: Visit>(&self, base: i64, stride: i64, n: u64, v: &mut V) {
        let start = base.wrapping_add(self.at);
        match &self.kind {
            Kind::Block => return v.strided(start, self.size, stride, n),
            Kind::Blocks(blocks) => return v.records(start, blocks, self.size, stride, n),
            Kind::Loop {
                stride: inner,
                body,
            } if body.is_block() => {
                return v.grid(&Grid {
                    at: start.wrapping_add(body.at),
                    len: body.size,
                    inner: (*inner, self.size / body.size),
                    outer: (stride, n),
                });
            }
            _ => {}
        }
        let mut at = base;
        for _ in 0..n {
            self.walk_all(at, v);
            at = at.wrapping_add(stride);
        }
    }

    /// Visits bytes `from..to` of the stream of copies of the node, `stride` apart.
    pub fn walk_loop<V: Visit>(&self, base: i64, stride: i64, from: u64, to: u64, v: &mut V) {
        let place = |i: u64| base.wrapping_add((i as i64).wrapping_mul(stride));
        let (mut i, head) = (from / self.size, from % self.size);
        let (last, tail) = (to / self.size, to % self.size);
        if head > 0 {
            let end = if last == i { tail } else { self.size };
            self.walk(place(i), head, end, v);
            if last == i {
                return;
            }
            i += 1;
        }
        if last > i {
            self.walk_loop_all(place(i), stride, last - i, v);
        }
        if tail > 0 {
            self.walk(place(last), 0, tail, v);
        }
    }
}

/// Adds a node to a list; `unfold`: whatever the length of its own list.
fn push(items: &mut Vec<Node>, node: Node, unfold: bool) {
    if node.size == 0 {
        return;
    }
    match &node.kind {
        Kind::List {
            items: inner,
            depth,
            ..
        } if unfold || inner.len() <= SHORT || *depth >= DEEP => {
            for item in inner.iter() {
                push(items, item.shifted(node.at), unfold || *depth >= DEEP);
            }
            return;
        }
        Kind::Blocks(blocks) if unfold || blocks.len() <= SHORT => {
            for block in blocks.iter() {
                let block = Node::block(node.at.wrapping_add(block.at), block.len);
                push(items, block, unfold);
            }
            return;
        }
        _ => {}
    }
    if let Some(last) = items.last_mut() {
        if last.is_block() && node.is_block() && last.at.wrapping_add(last.size as i64) == node.at {
            last.size += node.size;
            return;
        }
    }
    items.push(node);
}

/// Equal items at a constant stride.
fn as_loop(items: &[Node]) -> Option<Node> {
    let stride = items[1].at.checked_sub(items[0].at)?;
    let regular = items.windows(2).all(|w| {
        w[1].at.checked_sub(w[0].at) == Some(stride)
            && w[0].size == w[1].size
            && w[0].kind == w[1].kind
    });
    regular.then(|| items[0].repeat(items.len() as u64, stride))
}

/// Blocks only, of one length or not.
fn as_blocks(items: &[Node]) -> Option<Node> {
    let len = items[0].size;
    if !items.iter().all(|i| i.is_block()) {
        return None;
    }
    if items.len() > FEW && items.iter().all(|i| i.size == len) {
        let ats = items.iter().map(|i| i.at).collect();
        return Some(Node {
            at: 0,
            size: len * items.len() as u64,
            kind: Kind::Even { len, ats },
        });
    }
    let mut size = 0;
    let blocks = items.iter().map(|i| {
        size += i.size;
        Block {
            at: i.at,
            len: i.size,
            start: size - i.size,
        }
    });
    let kind = Kind::Blocks(blocks.collect());
    Some(Node { at: 0, size, kind })
}

fn as_list(items: Vec<Node>) -> Node {
    let mut size = 0;
    let depth = |n: &Node| match n.kind {
        Kind::List { depth, .. } => depth,
        _ => 0,
    };
    let depth = 1 + items.iter().map(depth).max().unwrap_or(0);
    let starts = items
        .iter()
        .map(|i| {
            size += i.size;
            size - i.size
        })
        .collect();
    Node {
        at: 0,
        size,
        kind: Kind::List {
            starts,
            items: items.into(),
            depth,
        },
    }
}

fn walk_even<V: Visit>(base: i64, len: u64, ats: &[i64], from: u64, to: u64, v: &mut V) {
    let (mut i, head) = (from / len, from % len);
    let (last, tail) = (to / len, to % len);
    let place = |i: u64| base.wrapping_add(ats[i as usize]);
    if head > 0 {
        let end = if last == i { tail } else { len };
        v.strided(place(i).wrapping_add(head as i64), end - head, 0, 1);
        if last == i {
            return;
        }
        i += 1;
    }
    if last > i {
        v.scattered(base, len, &ats[i as usize..last as usize]);
    }
    if tail > 0 {
        v.strided(place(last), tail, 0, 1);
    }
}

fn walk_blocks<V: Visit>(base: i64, blocks: &[Block], from: u64, to: u64, v: &mut V) {
    let first = blocks.partition_point(|b| b.start <= from) - 1;
    for block in &blocks[first..] {
        if block.start >= to {
            return;
        }
        let (low, high) = (
            from.saturating_sub(block.start),
            (to - block.start).min(block.len),
        );
        let at = base.wrapping_add(block.at).wrapping_add(low as i64);
        v.strided(at, high - low, 0, 1);
    }
}

fn walk_list<V: Visit>(base: i64, starts: &[u64], items: &[Node], from: u64, to: u64, v: &mut V) {
    let first = starts.partition_point(|&s| s <= from) - 1;
    for (start, item) in starts[first..].iter().zip(&items[first..]) {
        if *start >= to {
            return;
        }
        let (low, high) = (from.saturating_sub(*start), (to - start).min(item.size));
        if low == 0 && high == item.size {
            item.walk_all(base, v);
        } else {
            item.walk(base, low, high, v);
        }
    }
}
