//! A function under the name of each of MPI's (generated).
#![allow(
    missing_docs,
    non_snake_case,
    unused_variables,
    clippy::missing_safety_doc
)]

use crate::amount;
use crate::entry::begins;
use crate::next::Next;
use crate::record::{Event, call, phase};
use crate::trace::act::{Act, What};
use std::ffi::c_int;

/// The type of one parameter: a word.
macro_rules! word {
    ($p:ident) => {
        usize
    };
}

/// `record! { number, symbol, what is behind it, (parameters), [where statuses go], event, bytes, act }`
macro_rules! record {
    ($number:literal, $symbol:ident, $inner:ident, ($($p:ident),*), [$($status:ident)?], $event:ident, $bytes:expr, $act:expr) => {
        // SAFETY (of all below): the program calls it with the parameters of MPI's function of this
        // name, which are integers and pointers, a word each; they are passed on unchanged.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol() {
            begins!($inner)
        }

        unsafe extern "C-unwind" fn $inner($($p: usize),*) -> c_int {
            static NEXT: Next = Next::new(concat!(stringify!($symbol), "\0"));
            // SAFETY: the next function of this name has these parameters, too.
            let run = |next: usize, written: usize| unsafe {
                $(let $status = written;)?
                let next: unsafe extern "C-unwind" fn($(word!($p)),*) -> c_int =
                    std::mem::transmute(next);
                next($($p),*)
            };
            // SAFETY: it was entered by the symbol; bytes are asked for after a successful call, so
            // the arguments are valid.
            unsafe {
                let status = 0 $(+ $status)?;
                call($number, Event::$event, &NEXT, status, run, || $bytes, || $act)
            }
        }
    };
}

/// MPI_Pcontrol: accepts all arguments that a tool wants after the level; six words of them are
/// passed on.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Pcontrol(
    level: c_int,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
) -> c_int {
    static NEXT: Next = Next::new("MPI_Pcontrol\0");
    phase(level);
    // SAFETY: the next function of this name takes any words after the first.
    unsafe {
        let next: unsafe extern "C-unwind" fn(c_int, usize, usize, usize, usize, usize) -> c_int =
            std::mem::transmute(NEXT.get());
        next(level, a, b, c, d, e)
    }
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
