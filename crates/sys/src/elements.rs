//! Elements of a datatype as functions of the user take them: by the address of the first one's
//! displacement 0, which need not be one of their bytes.

use crate::buf::{Addr, Block, Buf};
use kw_types::layout::Layout;
use std::ffi::c_void;
use std::sync::Arc;

/// `count` elements, `extent` bytes apart.
#[derive(Clone, Debug)]
pub struct Elements {
    origin: usize,
    extent: i64,
    count: u64,
    _keep: Option<Arc<Block>>,
}

impl Elements {
    /// Elements that the caller of MPI lent: they are valid by the promise of the [`Addr`].
    pub fn assume_lent(addr: Addr, extent: i64, count: u64) -> Elements {
        Elements {
            origin: addr.bits(),
            extent,
            count,
            _keep: None,
        }
    }

    /// Elements of `layout` in a buffer whose bytes are contiguous and live as long as these;
    /// displacement 0 of the first is byte `at`.
    ///
    /// # Panics
    /// If one of their bytes is outside (a fault of our own).
    pub fn within(buf: &Buf, at: i64, layout: &Layout, count: u64) -> Elements {
        Elements {
            origin: buf.origin(at, count, layout),
            extent: layout.extent(),
            count,
            _keep: buf.keep.clone(),
        }
    }

    /// Elements of `size` bytes without gaps, as many as fit a buffer whose bytes are contiguous
    /// and live as long as these.
    ///
    /// # Panics
    /// When the buffer is in pieces (a fault of our own).
    pub fn in_a_row(buf: &Buf, size: u64) -> Elements {
        Elements {
            origin: buf
                .contiguous()
                .expect("elements without gaps lie in a row"),
            extent: size as i64,
            count: buf.len() / size.max(1),
            _keep: buf.keep.clone(),
        }
    }

    /// Number of elements.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// `count` of them from element `at` on.
    ///
    /// # Panics
    /// If there are fewer (a bug of the library).
    pub fn part(&self, from: u64, count: u64) -> Elements {
        let inside = from <= self.count && count <= self.count - from;
        assert!(inside, "{count} elements at {from} of {}", self.count);
        let by = self.extent.wrapping_mul(from as i64);
        Elements {
            origin: self.origin.wrapping_add(by as usize),
            count,
            ..self.clone()
        }
    }

    /// Arguments of a user function.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.origin as *mut c_void
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_types::layout::Layout;

    /// Two bytes at displacement 5, one element after the other backwards.
    fn backwards() -> Layout {
        let byte = Layout::named(&kw_types::layout::basic::NAMED[0]);
        let two = byte.contiguous_of(2).and_then(|two| two.shifted(5));
        two.and_then(|two| two.resized(0, -8)).unwrap()
    }

    #[test]
    fn elements_lie_inside_of_their_memory() {
        let (memory, layout) = (Buf::alloc(100), backwards());
        let size = layout.size() as i64;
        // The last of three begins 16 bytes before the first; only their own bytes must be there.
        let good = [(11, 3), (95 - size, 3), (-5, 1), (1000, 0)];
        let bad = [
            (10, 3),
            (96 - size, 3),
            (-6, 1),
            (i64::MAX, 1),
            (i64::MIN, 2),
        ];
        let try_it = |of: &dyn Fn() -> Elements| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(of)).ok()
        };
        let made = |(at, count)| try_it(&|| Elements::within(&memory, at, &layout, count));
        assert!(good.iter().all(|&case| made(case).is_some()));
        assert!(bad.iter().all(|&case| made(case).is_none()));
        let three = made((11, 3)).unwrap();
        let part = three.part(2, 1);
        let base = memory.region().unwrap().bits();
        assert_eq!((part.origin, part.count()), (base - 5, 1));
        assert!(try_it(&|| three.part(2, 2)).is_none());
    }
}
