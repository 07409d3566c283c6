//! Functions of the program that MPI calls with handles or codes, and that have no state argument:
//! operators, error handlers, callbacks of tools. Each gets a wrapper function
//! ([`kw_base::slots`]).

use crate::Abi;
use crate::constants::MPI_ERR_INTERN;
use crate::convert::{error_in, error_out};
use crate::handle::{Kind, V};
use kw_base::each_slot;
use kw_base::slots::{SLOTS, Slots};
use std::ffi::{c_int, c_void};

/// Addresses below this are constants of the ABI.
const FIRST_ADDRESS: usize = 4096;

static OPERATORS: [Slots; 2] = [const { Slots::new() }; 2];
static HANDLERS: [Slots; 4] = [const { Slots::new() }; 4];
static LISTENERS: [Slots; 3] = [const { Slots::new() }; 3];

/// The wrapper of one of the program's functions.
fn in_front<A: Abi, F: Copy>(
    slots: &Slots,
    all: [F; SLOTS],
    function: usize,
    address: fn(F) -> usize,
) -> Result<usize, c_int> {
    if function < FIRST_ADDRESS {
        return Ok(function);
    }
    let slot = slots.slot(function).ok_or_else(no_slot::<A>)?;
    Ok(address(all[slot]))
}

#[cold]
fn no_slot<A: Abi>() -> c_int {
    eprintln!(
        "process {}: {SLOTS} functions of this program are registered as operators, error handlers or callbacks of one kind, which is the limit: reuse them",
        std::process::id()
    );
    error_out::<A>(MPI_ERR_INTERN)
}

type Operator<N> = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut N, *mut usize);

/// `N` is the width of the count.
unsafe extern "C-unwind" fn operator<A: Abi, N, const WIDTH: usize, const SLOT: usize>(
    invec: *mut c_void,
    inoutvec: *mut c_void,
    len: *mut N,
    datatype: *mut usize,
) {
    // SAFETY: the program registered this function as an operator, which takes these.
    unsafe {
        let call: unsafe extern "C-unwind" fn(
            *mut c_void,
            *mut c_void,
            *mut N,
            *mut V<A::Datatype>,
        ) = std::mem::transmute(OPERATORS[WIDTH].function(SLOT));
        let mut datatype = A::Datatype::of_standard(*datatype);
        call(invec, inoutvec, len, &raw mut datatype);
    }
}

/// Wraps an operator.
pub fn user_function<A: Abi>(function: usize) -> Result<usize, c_int> {
    let all: [Operator<c_int>; SLOTS] = each_slot!(operator, A, c_int, 0);
    in_front::<A, _>(&OPERATORS[0], all, function, |f| f as usize)
}

/// Wraps an operator with a large count.
pub fn user_function_c<A: Abi>(function: usize) -> Result<usize, c_int> {
    let all: [Operator<i64>; SLOTS] = each_slot!(operator, A, i64, 1);
    in_front::<A, _>(&OPERATORS[1], all, function, |f| f as usize)
}

type Handler = unsafe extern "C-unwind" fn(*mut usize, *mut c_int);

unsafe extern "C-unwind" fn handler<A: Abi, K: Kind, const OF: usize, const SLOT: usize>(
    of: *mut usize,
    code: *mut c_int,
) {
    // SAFETY: the program registered this function as an error handler, which takes these.
    unsafe {
        let call: unsafe extern "C-unwind" fn(*mut V<K>, *mut c_int, ...) =
            std::mem::transmute(HANDLERS[OF].function(SLOT));
        let mut of = K::of_standard(*of);
        let mut theirs = error_out::<A>(*code);
        call(&raw mut of, &raw mut theirs);
        *code = error_in::<A>(theirs);
    }
}

fn handlers<A: Abi, K: Kind, const OF: usize>() -> [Handler; SLOTS] {
    each_slot!(handler, A, K, OF)
}

macro_rules! handlers {
    ($($name:ident $kind:ident $of:literal;)*) => {$(
        #[doc = concat!("In front of an error handler: ", stringify!($kind), ".")]
        pub fn $name<A: Abi>(function: usize) -> Result<usize, c_int> {
            let all: [Handler; SLOTS] = handlers::<A, A::$kind, $of>();
            in_front::<A, _>(&HANDLERS[$of], all, function, |f| f as usize)
        }
    )*};
}

handlers! {
    comm_errhandler_function Comm 0;
    win_errhandler_function Win 1;
    file_errhandler_function File 2;
    session_errhandler_function Session 3;
}

/// Wraps an error handler of MPI-1.
pub fn handler_function<A: Abi>(function: usize) -> Result<usize, c_int> {
    comm_errhandler_function::<A>(function)
}

type Event = unsafe extern "C-unwind" fn(usize, usize, c_int, *mut c_void);
type EventFree = unsafe extern "C-unwind" fn(usize, c_int, *mut c_void);
type EventDropped = unsafe extern "C-unwind" fn(i64, usize, c_int, c_int, *mut c_void);

unsafe extern "C-unwind" fn event<A: Abi, const SLOT: usize>(
    instance: usize,
    registration: usize,
    safety: c_int,
    data: *mut c_void,
) {
    // SAFETY: the program registered this function for events, which takes these.
    unsafe {
        let call: Event = std::mem::transmute(LISTENERS[0].function(SLOT));
        call(instance, registration, A::callback_safety_out(safety), data);
    }
}

unsafe extern "C-unwind" fn event_free<A: Abi, const SLOT: usize>(
    registration: usize,
    safety: c_int,
    data: *mut c_void,
) {
    // SAFETY: as above.
    unsafe {
        let call: EventFree = std::mem::transmute(LISTENERS[1].function(SLOT));
        call(registration, A::callback_safety_out(safety), data);
    }
}

unsafe extern "C-unwind" fn event_dropped<A: Abi, const SLOT: usize>(
    count: i64,
    registration: usize,
    source: c_int,
    safety: c_int,
    data: *mut c_void,
) {
    // SAFETY: as above.
    unsafe {
        let call: EventDropped = std::mem::transmute(LISTENERS[2].function(SLOT));
        call(
            count,
            registration,
            source,
            A::callback_safety_out(safety),
            data,
        );
    }
}

/// Wraps a tool's function for events.
pub fn t_event_cb_function<A: Abi>(function: usize) -> Result<usize, c_int> {
    let all: [Event; SLOTS] = each_slot!(event, A);
    in_front::<A, _>(&LISTENERS[0], all, function, |f| f as usize)
}

/// Wraps a tool's function for the end of a registration.
pub fn t_event_free_cb_function<A: Abi>(function: usize) -> Result<usize, c_int> {
    let all: [EventFree; SLOTS] = each_slot!(event_free, A);
    in_front::<A, _>(&LISTENERS[1], all, function, |f| f as usize)
}

/// Wraps a tool's function for dropped events.
pub fn t_event_dropped_cb_function<A: Abi>(function: usize) -> Result<usize, c_int> {
    let all: [EventDropped; SLOTS] = each_slot!(event_dropped, A);
    in_front::<A, _>(&LISTENERS[2], all, function, |f| f as usize)
}
