//! Layout of a status (MPI 5.0, 3.2.5): public source, tag and error; in `internal`: `[0..2]` bytes
//! received (low, high), `[2]` bit 0: cancelled.

use crate::comm::{ANY_SOURCE, PROC_NULL};
use kw_sys::args::Status;

/// MPI_ANY_TAG
pub const ANY_TAG: i32 = -2;

/// The empty status: of a null or inactive request, and of every send.
pub const EMPTY: Status = Status {
    source: ANY_SOURCE,
    tag: ANY_TAG,
    error: 0,
    internal: [0; 5],
};

/// The status of a receive from MPI_PROC_NULL.
pub const FROM_PROC_NULL: Status = Status {
    source: PROC_NULL,
    ..EMPTY
};

/// The status of a message of `len` bytes.
#[inline]
pub fn received(source: u32, tag: i32, len: u64) -> Status {
    let mut status = Status {
        source: source as i32,
        tag,
        ..EMPTY
    };
    status.internal[0] = len as u32 as i32;
    status.internal[1] = (len >> 32) as u32 as i32;
    status
}

/// Whether the operation was cancelled.
#[inline]
pub fn is_cancelled(status: &Status) -> bool {
    status.internal[2] & 1 != 0
}

/// Sets whether the operation was cancelled.
#[inline]
pub fn set_cancelled(status: &mut Status, cancelled: bool) {
    status.internal[2] = status.internal[2] & !1 | cancelled as i32;
}
