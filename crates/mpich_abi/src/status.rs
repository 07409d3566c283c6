//! Statuses: five integers. The count's high part has 31 bits, above a bit that says whether the
//! operation was cancelled.

use crate::Here;
use kw_abi_shim::status;
use std::ffi::c_int;

/// A status of this ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Status {
    count_lo: c_int,
    count_hi_and_cancelled: c_int,
    source: c_int,
    tag: c_int,
    error: c_int,
}

impl status::Status for Status {
    type Abi = Here;
    const IGNORE: usize = 1;

    #[inline(always)]
    fn of([source, tag, error]: [c_int; 3], [low, high, cancelled]: [c_int; 3]) -> Status {
        Status {
            count_lo: low,
            count_hi_and_cancelled: high << 1 | cancelled,
            source,
            tag,
            error,
        }
    }

    #[inline(always)]
    fn parts(&self) -> ([c_int; 3], [c_int; 3]) {
        let high = self.count_hi_and_cancelled;
        (
            [self.source, self.tag, self.error],
            [self.count_lo, (high as u32 >> 1) as c_int, high & 1],
        )
    }

    #[inline(always)]
    fn error(at: *mut Status) -> *mut c_int {
        at.wrapping_byte_add(std::mem::offset_of!(Status, error))
            .cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_abi_shim::status::{Status as _, Statuses};

    #[test]
    fn a_status_comes_back_as_it_was() {
        for (low, high) in [(0, 0), (8, 0), (-1, 0x7fff_fffe), (5, 3)] {
            let status = Status {
                count_lo: low,
                count_hi_and_cancelled: high,
                source: -2,
                tag: -1,
                error: 14,
            };
            let standard = status.standard();
            assert_eq!(
                (standard.source, standard.tag, standard.error),
                (-1, -2, 15)
            );
            assert_eq!(standard.other::<Status>(14), status);
        }
    }

    #[test]
    fn what_is_not_written_stays() {
        let mut theirs = [Status {
            error: 7,
            ..Status::default()
        }; 10];
        // SAFETY: there is room for ten.
        let mut all = unsafe { Statuses::new(theirs.as_mut_ptr(), 10) };
        // SAFETY: as above.
        unsafe {
            let third = all.place().add(2);
            (*third).source = 3;
            (*third).tag = 4;
            (*third).internal = [8, 0, 0, 0, 0];
            all.give();
        }
        assert_eq!(
            (theirs[2].source, theirs[2].count_lo, theirs[2].error),
            (3, 8, 7)
        );
        assert_eq!(theirs[1], theirs[9]);
        // SAFETY: none is accessed.
        let mut none =
            unsafe { Statuses::<Status>::new(std::ptr::without_provenance_mut(1), 1000) };
        assert!(none.place().is_null());
    }
}
