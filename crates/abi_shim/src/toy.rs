//! An ABI for tests: handles are the negative of the standard ones.

use crate::handle::Kind;

/// A kind of handle.
#[derive(Clone, Copy, Debug)]
pub struct Toy;

impl Kind for Toy {
    type Value = i32;
    const NULL: usize = 5;

    fn to_standard(value: i32) -> usize {
        value.unsigned_abs() as usize
    }

    fn of_standard(handle: usize) -> i32 {
        -(handle as i32)
    }
}
