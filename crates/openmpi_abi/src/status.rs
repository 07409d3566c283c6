//! Statuses: source, tag, error code, whether the operation was cancelled, and the bytes received.

use crate::Here;
use kw_abi_shim::status;
use std::ffi::c_int;

/// A status of this ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Status {
    public: [c_int; 3],
    cancelled: c_int,
    bytes: [c_int; 2],
}

impl status::Status for Status {
    type Abi = Here;
    const IGNORE: usize = 0;

    #[inline(always)]
    fn of(public: [c_int; 3], [low, high, cancelled]: [c_int; 3]) -> Status {
        Status {
            public,
            cancelled,
            bytes: [low, high],
        }
    }

    #[inline(always)]
    fn parts(&self) -> ([c_int; 3], [c_int; 3]) {
        let [low, high] = self.bytes;
        (self.public, [low, high, self.cancelled])
    }

    #[inline(always)]
    fn error(at: *mut Status) -> *mut c_int {
        at.cast::<c_int>().wrapping_add(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_abi_shim::status::Status as _;

    #[test]
    fn a_status_comes_back_as_it_was() {
        assert_eq!(size_of::<Status>(), 24);
        for bytes in [[0, 0], [8, 0], [-1, 0x7fff_fffe], [5, 3]] {
            let status = Status {
                public: [-2, -1, 15],
                cancelled: 1,
                bytes,
            };
            let standard = status.standard();
            assert_eq!(
                (standard.source, standard.tag, standard.error),
                (-3, -2, 15)
            );
            assert_eq!(standard.other::<Status>(15), status);
        }
    }
}
