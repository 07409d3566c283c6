//! Functions that MPI does not define, for bindings of languages whose code is in no file, such as
//! Java's. The bindings register two functions that tell which line of the program has called MPI,
//! and the recorder of `mpiexec --profile` asks them. For arrays that the language moves they use
//! datatypes of their own.
#![allow(non_snake_case)]

use crate::shell::mpi;
use kw_objects::Class;
use kw_objects::handle::TypeH;
use kw_sys::callback::{SourceLine, SourceLineName};
use kw_sys::source_line;
use std::ffi::c_int;

/// Registers `place()`, which returns where the program called the function of MPI that the thread
/// is in (`kw_base::source_line`; 0: unknown), and `name(place, to, room)`, which writes the name of that
/// place's module and returns its length.
///
/// Both are called by any thread, inside of MPI: they must not call MPI, nor throw.
///
/// # Safety
/// They are such functions, and remain callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_MPI_Language(place: usize, name: usize) -> c_int {
    // SAFETY: the caller's promise.
    let both = unsafe { (SourceLine::new(place), SourceLineName::new(name)) };
    let (Some(place), Some(name)) = both else {
        return Class::Arg as c_int;
    };
    source_line::register(place, name);
    0
}

/// Where the program called the function of MPI that this thread is in; 0 if no language knows.
#[unsafe(no_mangle)]
pub extern "C" fn kw_MPI_Place() -> u64 {
    source_line::place()
}

/// Writes the name of a place's module; returns its length.
///
/// # Safety
/// `to` may be written for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_MPI_Place_name(place: u64, to: *mut u8, room: usize) -> usize {
    // SAFETY: the caller's promise.
    source_line::write_name(place, unsafe { std::slice::from_raw_parts_mut(to, room) })
}

/// Makes a datatype for messages of contiguous elements of a predefined one, in memory that moves;
/// it may be used in calls that send or receive, and is never freed. The address of such a buffer
/// is that of two functions, which follow each other:
///
/// - `void *hold(void *buffer)` returns the address of the first byte, which is then valid until
/// - `void release(void *buffer, void *first)`.
///
/// `buffer` is the address that the call got. Any thread calls them, inside of MPI, until the
/// operation is complete; they must not call MPI, nor throw. The library does not wait between
/// them.
///
/// An error if the library needs the memory itself (with `KW_CHECK`).
///
/// # Safety
/// `moving` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kw_MPI_Type_moving(datatype: TypeH, moving: *mut TypeH) -> c_int {
    match mpi().lock().above.moving_twin(datatype) {
        Ok(Some(twin)) => {
            // SAFETY: the caller's promise.
            unsafe { *moving = twin };
            0
        }
        Ok(None) => Class::UnsupportedOperation as c_int,
        Err(fault) => fault.code,
    }
}
