//! Procedures of the program that MPI calls without a state argument: operators and error handlers.
//!
//! C's function cannot tell which Fortran procedure is meant, so each procedure has a C function of
//! its own ([`kw_base::slots`]).

use crate::constants::MPI_ERR_INTERN;
use crate::convert::fault;
use crate::handle::{Comm, Datatype, File, Handle, Session, Win, to_fortran};
use kw_base::each_slot;
use kw_base::slots::{SLOTS, Slots};
use std::ffi::{CStr, c_int, c_void};

const FULL: &CStr = c"this program has registered 128 different procedures as operators or error handlers of one kind, which is the limit: reuse them";

static OPERATORS: [Slots; 2] = [const { Slots::new() }; 2];
static HANDLERS: [Slots; 4] = [const { Slots::new() }; 4];

/// The slot of a procedure.
fn slot(slots: &Slots, procedure: usize) -> Result<usize, c_int> {
    let slot = slots.slot(procedure);
    slot.ok_or_else(|| fault(MPI_ERR_INTERN, FULL))
}

type Operator<N> = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut N, *mut Datatype);

/// C's function of an operator's slot; `N` is the width of its count.
unsafe extern "C-unwind" fn operator<N, const K: usize, const I: usize>(
    invec: *mut c_void,
    inoutvec: *mut c_void,
    n: *mut N,
    datatype: *mut Datatype,
) {
    let procedure = OPERATORS[K].function(I);
    // SAFETY: the program registered it as an operator, which takes these.
    unsafe {
        let call: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut N, *mut c_int) =
            std::mem::transmute(procedure);
        let mut number = to_fortran(*datatype);
        call(invec, inoutvec, n, &raw mut number);
    }
}

type Handler<H> = unsafe extern "C-unwind" fn(*mut H, *mut c_int);

/// C function of an error handler's slot. C passes further arguments, which are not defined (MPI
/// 5.0, 9.3.1).
unsafe extern "C-unwind" fn handler<H: Handle, const K: usize, const I: usize>(
    of: *mut H,
    code: *mut c_int,
) {
    let procedure = HANDLERS[K].function(I);
    // SAFETY: the program registered it as an error handler, which takes these.
    unsafe {
        let call: unsafe extern "C-unwind" fn(*mut c_int, *mut c_int) =
            std::mem::transmute(procedure);
        let mut number = to_fortran(*of);
        call(&raw mut number, code);
    }
}

/// C's function for a Fortran operator.
pub fn user_function(procedure: usize) -> Result<usize, c_int> {
    let functions: [Operator<c_int>; SLOTS] = each_slot!(operator, c_int, 0);
    Ok(functions[slot(&OPERATORS[0], procedure)?] as usize)
}

/// C's function for a Fortran operator with large counts.
#[allow(dead_code)] // not every ABI has large counts in Fortran
pub fn user_function_c(procedure: usize) -> Result<usize, c_int> {
    let functions: [Operator<i64>; SLOTS] = each_slot!(operator, i64, 1);
    Ok(functions[slot(&OPERATORS[1], procedure)?] as usize)
}

macro_rules! handlers {
    ($($name:ident $ty:ident $kind:literal;)*) => {$(
        #[doc = concat!("C's function for a Fortran error handler: ", stringify!($ty), ".")]
        pub fn $name(procedure: usize) -> Result<usize, c_int> {
            let functions: [Handler<$ty>; SLOTS] = each_slot!(handler, $ty, $kind);
            Ok(functions[slot(&HANDLERS[$kind], procedure)?] as usize)
        }
    )*};
}

handlers! {
    comm_errhandler_function Comm 0;
    win_errhandler_function Win 1;
    file_errhandler_function File 2;
    session_errhandler_function Session 3;
}
