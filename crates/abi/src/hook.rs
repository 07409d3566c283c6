//! An additional function of this library, by which the Fortran layer is told of the operations of
//! a request.
//!
//! The layer (`crates/fortran`) has contiguous copies of array sections, and writes received data
//! back when an operation has ended. It looks for the function by its name, because it also runs on
//! other libraries of the standard ABI.
#![allow(non_snake_case)]

use crate::shell::mpi;
use kw_objects::Class;
use kw_objects::handle::RequestH;
use kw_objects::hook::{Hook, attach};
use kw_sys::callback::RequestHook;
use std::ffi::c_int;

/// Calls `hook(data, event)` for the operations of a request, to the end of the last one. Events:
/// 0, a persistent request is about to be started; 1, an operation has ended, which no call has
/// reported yet; 2, there will be no more, which is the last call, also if this function returns an
/// error.
///
/// `hook` is called by any thread, inside of MPI: it must not call MPI, nor throw.
///
/// # Safety
/// `hook` is such a function, and remains callable until it was called with event 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_MPI_Request_hook(request: RequestH, hook: usize, data: usize) -> c_int {
    // SAFETY: the caller's promise.
    let Some(function) = (unsafe { RequestHook::new(hook) }) else {
        return Class::Arg as c_int;
    };
    let hook = Hook::new(function, data);
    match attach(&mut mpi().lock(), request, hook) {
        Ok(()) => 0,
        Err(fault) => fault.code,
    }
}
