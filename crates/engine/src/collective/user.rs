//! How elements are combined, and the user's own functions.

use kw_sys::buf::Addr;
use kw_sys::callback::{UserOp, UserOpCount};
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
    /// Nothing is.
    Nothing,
    /// By a loop of ours.
    Kernel(Kernel),
    /// By a function of the user, who wants this datatype handle.
    User(UserFunction, usize),
}

/// A call of the user's function that a schedule waits for; made with the lane released.
#[derive(Clone, Copy, Debug)]
pub struct UserStep {
    function: UserFunction,
    datatype: usize,
    left: Addr,
    right: Addr,
    count: u64,
    extent: i64,
}

impl UserStep {
    /// A call on `count` elements that lie `extent` bytes apart.
    pub fn new(
        function: UserFunction,
        datatype: usize,
        left: Addr,
        right: Addr,
        count: u64,
        extent: i64,
    ) -> UserStep {
        UserStep {
            function,
            datatype,
            left,
            right,
            count,
            extent,
        }
    }

    /// Calls the user's function: `right[i] = left[i] op right[i]`.
    pub fn call(self) {
        match self.function {
            UserFunction::Count(f) => {
                f.call(self.left, self.right, self.count as i64, self.datatype)
            }
            UserFunction::Int(f) => {
                let mut done = 0;
                while done < self.count {
                    let n = (self.count - done).min(i32::MAX as u64);
                    let by = done as i64 * self.extent;
                    f.call(
                        self.left.offset(by),
                        self.right.offset(by),
                        n as i32,
                        self.datatype,
                    );
                    done += n;
                }
            }
        }
    }
}
