//! Reduction operations: the predefined ones, which are constants of the ABI, and user-defined
//! ones.
//!
//! A collective in flight keeps the function itself, so MPI_Op_free only removes the handle (MPI
//! 5.0, 6.9.5).

use crate::error::{Class, Fault, Res, fail};
use crate::handle::{OpH, TypeH};
use kw_base::Slab;
use kw_engine::{Combining, UserFunction};
use kw_sys::reduce::{Kernel, Op};
use kw_types::layout::{Basic, Layout, basic};

/// A user-defined operation.
#[derive(Clone, Copy, Debug)]
pub struct UserMade {
    /// Kind of operation.
    pub function: UserFunction,
    /// Whether it commutes according to the user.
    pub commutes: bool,
}

/// The operation of a handle.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A predefined operation.
    Predefined(Op),
    /// A user-defined operation.
    User(UserMade),
}

impl Operation {
    /// Whether contributions may be combined in any order.
    pub fn commutes(&self) -> bool {
        match self {
            Operation::Predefined(op) => !matches!(op, Op::Replace | Op::NoOp),
            Operation::User(u) => u.commutes,
        }
    }
}

/// All operations.
#[derive(Debug, Default)]
pub struct Ops {
    /// User-defined operations.
    pub made: Slab<UserMade>,
    /// Whether operations on MPI_CHAR are refused, which the standard does not define (KW_CHECK).
    pub strict: bool,
}

impl Ops {
    /// The operation of a handle.
    #[inline]
    pub fn get(&self, handle: OpH) -> Res<Operation> {
        if let Some(op) = Op::by_handle(handle.0) {
            return Ok(Operation::Predefined(op));
        }
        match handle.key().and_then(|k| self.made.get(k)) {
            Some(user) => Ok(Operation::User(*user)),
            None => Err(unknown(handle)),
        }
    }

    /// How an operation combines elements of a datatype, and whether it commutes.
    #[inline]
    pub fn combining(&self, op: OpH, datatype: TypeH, layout: &Layout) -> Res<(Combining, bool)> {
        match self.get(op)? {
            Operation::User(u) => Ok((Combining::User(u.function, datatype.0), u.commutes)),
            Operation::Predefined(op) => {
                let basic = layout
                    .basic()
                    .filter(|&b| !(self.strict && b == Basic::Char));
                let kernel = basic.and_then(|b| Kernel::find(op, b));
                match kernel {
                    Some(k) => Ok((Combining::Kernel(k), true)),
                    None => Err(undefined(op, datatype)),
                }
            }
        }
    }

    /// How it combines them in a collective reduction, for which MPI_REPLACE and MPI_NO_OP are
    /// invalid (MPI 5.0, 12.3.4).
    #[inline]
    pub fn collective_combining(
        &self,
        op: OpH,
        datatype: TypeH,
        layout: &Layout,
    ) -> Res<(Combining, bool)> {
        if let Some(op @ (Op::Replace | Op::NoOp)) = Op::by_handle(op.0) {
            return fail!(Op: "op is {}, which is for one-sided communication only", op.name());
        }
        self.combining(op, datatype, layout)
    }

    /// A handle for a user-defined operation.
    pub fn add(&mut self, op: UserMade) -> OpH {
        OpH::from_key(self.made.insert(op))
    }

    /// Removes a user-defined operation.
    pub fn free(&mut self, handle: OpH) -> Res {
        if let Some(op) = Op::by_handle(handle.0) {
            return fail!(Op: "op is {}, which is predefined and cannot be freed", op.name());
        }
        match handle.key().and_then(|k| self.made.remove(k)) {
            Some(_) => Ok(()),
            None => Err(unknown(handle)),
        }
    }
}

#[cold]
fn unknown(handle: OpH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_OP_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no operation {}",
            handle.0,
            crate::handle::amiss(handle.0, "freed")
        )
    };
    Fault::new(Class::Op, format!("op is {what}"))
}

#[cold]
fn undefined(op: Op, datatype: TypeH) -> Box<Fault> {
    let name = basic::by_handle(datatype.0).map_or("a derived datatype", |n| n.name);
    Fault::new(
        Class::Op,
        format!("op is {}, which is not defined for {name}", op.name()),
    )
}
