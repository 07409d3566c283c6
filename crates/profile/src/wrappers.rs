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
use crate::record::{Event, call};
use std::ffi::c_int;

/// The type of one parameter: a word.
macro_rules! word {
    ($p:ident) => {
        usize
    };
}

/// `record! { number, symbol, what is behind it, (parameters), event, bytes }`
macro_rules! record {
    ($number:literal, $symbol:ident, $inner:ident, ($($p:ident),*), $event:ident, $bytes:expr) => {
        // SAFETY (of all below): the program calls it with the parameters of MPI's function of this
        // name, which are integers and pointers, a word each; they are passed on as they are.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol() {
            begins!($inner)
        }

        unsafe extern "C-unwind" fn $inner($($p: usize),*) -> c_int {
            static NEXT: Next = Next::new(concat!(stringify!($symbol), "\0"));
            // SAFETY: the next function of this name has these parameters, too.
            let run = |next: usize| unsafe {
                let next: unsafe extern "C-unwind" fn($(word!($p)),*) -> c_int =
                    std::mem::transmute(next);
                next($($p),*)
            };
            // SAFETY: it was entered by the symbol; bytes are asked for where the call did well, so
            // that the arguments are what they should be.
            unsafe { call($number, Event::$event, &NEXT, run, || $bytes) }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
