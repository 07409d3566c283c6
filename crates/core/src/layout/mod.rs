//! Datatypes: constructors -> committed flat program. Pure arithmetic on displacements; no memory is touched here.

pub mod basic;
pub use basic::Basic;

/// A datatype's memory layout, immutable.
#[derive(Debug)]
pub struct Layout {
    size: u64,
    extent: i64,
}

impl Layout {
    /// Bytes of data in one element.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Distance between consecutive elements, in bytes.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// When `count` elements are one unbroken run of bytes: the displacement of its first byte.
    pub fn contiguous(&self, count: u64) -> Option<i64> {
        let _ = count;
        None
    }

    /// Calls `run(displacement, length)` for each run of memory that holds bytes `from..to` of the packed stream of
    /// `count` elements, in the order of the stream.
    pub fn for_each_run(&self, count: u64, from: u64, to: u64, run: &mut dyn FnMut(i64, u64)) {
        let _ = (count, from, to, run);
    }
}
