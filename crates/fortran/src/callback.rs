//! Procedures of the program that MPI calls without a state of ours: operators and error handlers.
//!
//! C's function has no place to say which Fortran procedure is meant. So there are as many C
//! functions as there may be Fortran procedures, each with a slot that holds its procedure's
//! address. A procedure that is given again keeps its slot.

use crate::convert::ERR_INTERN;
use crate::handle::{Comm, Datatype, File, Handle, Session, Win, to_fortran};
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::{c_int, c_void};

/// How many procedures of each kind there may be.
const SLOTS: usize = 128;

type Slots = [AtomicUsize; SLOTS];

const fn none() -> Slots {
    [const { AtomicUsize::new(0) }; SLOTS]
}

static OPERATORS: [Slots; 2] = [const { none() }; 2];
static HANDLERS: [Slots; 4] = [const { none() }; 4];

/// The slot of a procedure.
fn slot(slots: &Slots, procedure: usize) -> Result<usize, c_int> {
    for (i, slot) in slots.iter().enumerate() {
        match slot.compare_exchange(0, procedure, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(i),
            Err(taken) if taken == procedure => return Ok(i),
            Err(_) => {}
        }
    }
    Err(ERR_INTERN)
}

type Operator<N> = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut N, *mut Datatype);

/// C's function of an operator's slot; `N` is the width of its count.
unsafe extern "C-unwind" fn operator<N, const K: usize, const I: usize>(
    invec: *mut c_void,
    inoutvec: *mut c_void,
    n: *mut N,
    datatype: *mut Datatype,
) {
    let procedure = OPERATORS[K][I].load(Ordering::Acquire);
    // SAFETY: the program gave it as an operator, which takes these.
    unsafe {
        let call: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut N, *mut c_int) =
            std::mem::transmute(procedure);
        let mut number = to_fortran(*datatype);
        call(invec, inoutvec, n, &raw mut number);
    }
}

type Handler<H> = unsafe extern "C-unwind" fn(*mut H, *mut c_int);

/// C's function of an error handler's slot. C passes more, which nobody defines (MPI 5.0, 9.3.1).
unsafe extern "C-unwind" fn handler<H: Handle, const K: usize, const I: usize>(
    of: *mut H,
    code: *mut c_int,
) {
    let procedure = HANDLERS[K][I].load(Ordering::Acquire);
    // SAFETY: the program gave it as an error handler, which takes these.
    unsafe {
        let call: unsafe extern "C-unwind" fn(*mut c_int, *mut c_int) =
            std::mem::transmute(procedure);
        let mut number = to_fortran(*of);
        call(&raw mut number, code);
    }
}

/// A function for each slot.
macro_rules! each {
    ($name:ident $ty:ty, $kind:literal) => {
        each!(@ $name $ty, $kind,
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
            64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
            96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
        )
    };
    (@ $name:ident $ty:ty, $kind:literal, $($i:literal)*) => {
        [$($name::<$ty, $kind, $i>),*]
    };
}

/// C's function for a Fortran operator.
pub fn user_function(procedure: usize) -> Result<usize, c_int> {
    let functions: [Operator<c_int>; SLOTS] = each!(operator c_int, 0);
    Ok(functions[slot(&OPERATORS[0], procedure)?] as usize)
}

/// C's function for a Fortran operator with large counts.
pub fn user_function_c(procedure: usize) -> Result<usize, c_int> {
    let functions: [Operator<i64>; SLOTS] = each!(operator i64, 1);
    Ok(functions[slot(&OPERATORS[1], procedure)?] as usize)
}

macro_rules! handlers {
    ($($name:ident $ty:ident $kind:literal;)*) => {$(
        #[doc = concat!("C's function for a Fortran error handler: ", stringify!($ty), ".")]
        pub fn $name(procedure: usize) -> Result<usize, c_int> {
            let functions: [Handler<$ty>; SLOTS] = each!(handler $ty, $kind);
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
