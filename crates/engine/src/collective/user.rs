//! How elements are combined, and the user's own functions.

use super::memory::Memory;
use kw_sys::callback::{UserOp, UserOpCount};
use kw_sys::elements::Elements;
use kw_sys::reduce::Kernel;

/// A user's function, with either width of its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserFunction {
    /// `int` length.
    Int(UserOp),
    /// `MPI_Count` length.
    Count(UserOpCount),
}

/// How two contributions are combined.
#[derive(Clone, Copy, Debug)]
pub enum Combining {
    /// They are not.
    Nothing,
    /// One of the library's loops combines them.
    Kernel(Kernel),
    /// A function of the user combines them; it gets this datatype handle.
    User(UserFunction, usize),
}

impl Combining {
    /// Combines the first `count` elements of two buffers into the second, without the lock.
    pub fn combine(self, left: &Memory, right: &Memory, count: u64) {
        match self {
            Combining::Nothing => {}
            Combining::Kernel(kernel) => {
                if let (Some(a), Some(b)) = (left.stretch(0, count), right.stretch(0, count)) {
                    kernel.run(a, b);
                }
            }
            Combining::User(f, datatype) => {
                UserStep::new(f, datatype, left.operand(0, count), right.operand(0, count)).call()
            }
        }
    }
}

/// A call of the user's function that a schedule waits for; made with the lock released.
#[derive(Clone, Debug)]
pub struct UserStep {
    function: UserFunction,
    datatype: usize,
    left: Elements,
    right: Elements,
}

impl UserStep {
    /// A call on this many elements of either side.
    pub(super) fn new(
        function: UserFunction,
        datatype: usize,
        left: Elements,
        right: Elements,
    ) -> UserStep {
        UserStep {
            function,
            datatype,
            left,
            right,
        }
    }

    /// Calls the user's function: `right[i] = left[i] op right[i]`.
    pub fn call(self) {
        match self.function {
            UserFunction::Count(f) => f.call(&self.left, &self.right, self.datatype),
            UserFunction::Int(f) => f.call(&self.left, &self.right, self.datatype),
        }
    }
}
