//! Datatypes: constructors -> committed flat program. Pure arithmetic on displacements; no memory
//! is touched here.
//!
//! A [`Layout`] is immutable and describes three properties of a datatype (MPI 5.0, 5.1): where its
//! bytes are (a normalised program of nested strided loops, `node`), what they are (`signature`),
//! and how elements follow each other (`bounds`: data, lower and upper bound markers, alignment).
//! Displacements are `i64`; constructors refuse values beyond that ([`Mismatch`]).

mod array;
pub mod basic;
mod bounds;
mod construct;
pub mod external;
mod node;
mod signature;
#[cfg(test)]
mod tests;
mod wire;

pub use array::{Distribution, Order};
pub use basic::Basic;
pub use construct::Mismatch;
pub use node::{Block, Grid, Visit};
pub use signature::{Element, Signature, message};

use basic::Named;
use bounds::Bounds;
use node::Node;

/// A datatype's memory layout, immutable.
#[derive(Clone, Debug)]
pub struct Layout {
    size: u64,
    lb: i64,
    extent: i64,
    bounds: Bounds,
    node: Node,
    signature: Signature,
    basic: Option<Basic>,
}

impl Layout {
    /// A predefined datatype.
    pub fn named(named: &Named) -> Layout {
        let basic = named.basic;
        let node = match basic.pair() {
            None => Node::block(0, basic.size()),
            Some((value, index, at)) => {
                Node::sequence([Node::block(0, value.size()), Node::block(at, index.size())])
            }
        };
        let end = basic.pair().map_or(basic.size() as i64, |(_, index, at)| {
            at + index.size() as i64
        });
        let bounds = Bounds::of_data(end, basic.extent() as i64, basic.align());
        Layout {
            size: basic.size(),
            lb: 0,
            extent: basic.extent() as i64,
            bounds,
            node,
            signature: Signature::named(named),
            basic: Some(basic),
        }
    }

    /// Bytes of data in one element.
    #[inline]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Distance between consecutive elements, in bytes.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Lower bound, markers and padding included.
    pub fn lb(&self) -> i64 {
        self.lb
    }

    /// Displacement of the first byte of data (0 when there is none).
    pub fn true_lb(&self) -> i64 {
        self.bounds.data.map_or(0, |(low, _)| low)
    }

    /// Distance from the first byte of data to the end of the last.
    pub fn true_extent(&self) -> i64 {
        self.bounds.data.map_or(0, |(low, high)| high - low)
    }

    /// The basic element, when the datatype is a predefined one or a duplicate of one.
    #[inline]
    pub fn basic(&self) -> Option<Basic> {
        self.basic
    }

    /// The basic elements of one element, in order.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Number of basic elements in the first `bytes` bytes of a stream of these; `None` when they
    /// end inside one.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        if self.size == 0 {
            return (bytes == 0).then_some(0);
        }
        let rest = self.signature.elements_in(bytes % self.size)?;
        (bytes / self.size)
            .checked_mul(self.signature.elements)?
            .checked_add(rest)
    }

    /// Bytes of the first `elements` basic elements of a stream of these; `None` when there cannot
    /// be that many.
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        let per = self.signature.elements;
        if per == 0 {
            return (elements == 0).then_some(0);
        }
        (elements / per)
            .checked_mul(self.size)?
            .checked_add(self.signature.bytes_of(elements % per))
    }

    /// When `count` elements are one unbroken run of bytes: the displacement of its first byte.
    #[inline]
    pub fn contiguous(&self, count: u64) -> Option<i64> {
        if count == 0 || self.size == 0 {
            return Some(0);
        }
        let dense = self.node.is_block() && (self.size as i64 == self.extent || count == 1);
        dense.then_some(self.node.at)
    }

    /// Visits bytes `from..to` of the packed stream of `count` elements, in stream order. Bytes
    /// past the end are ignored.
    #[inline]
    pub fn walk<V: Visit>(&self, count: u64, from: u64, to: u64, v: &mut V) {
        let to = to.min(self.size.saturating_mul(count));
        if from < to {
            self.node.walk_loop(0, self.extent, from, to, v);
        }
    }

    /// Calls `run(displacement, length)` for each run of memory that holds bytes `from..to` of the
    /// packed stream of `count` elements, in the order of the stream; neighbours come as one run.
    pub fn for_each_run(&self, count: u64, from: u64, to: u64, run: &mut dyn FnMut(i64, u64)) {
        let mut merge = Merge { at: 0, len: 0, run };
        self.walk(count, from, to, &mut merge);
        if merge.len > 0 {
            (merge.run)(merge.at, merge.len);
        }
    }
}

/// Joins runs that touch.
struct Merge<'a> {
    at: i64,
    len: u64,
    run: &'a mut dyn FnMut(i64, u64),
}

impl Visit for Merge<'_> {
    fn strided(&mut self, at: i64, len: u64, stride: i64, n: u64) {
        let mut at = at;
        for _ in 0..n {
            if self.at.wrapping_add(self.len as i64) == at {
                self.len += len;
            } else {
                if self.len > 0 {
                    (self.run)(self.at, self.len);
                }
                (self.at, self.len) = (at, len);
            }
            at = at.wrapping_add(stride);
        }
    }
}
