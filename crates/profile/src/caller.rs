//! Place in the program from which MPI was called: for a call through the Fortran layer, further up
//! the stack; for one in Java, as Java reports it.
//!
//! Each function of the layer has a frame of fixed size, so a return address inside it is always at
//! the same distance below that of its own caller. The unwinder determines that distance once.

use std::ffi::{CStr, c_int, c_void};

use crate::{next, source_line};

/// Kind of a return address.
pub(crate) enum Found {
    /// In the program, or in code that cannot be followed.
    Program,
    /// In the Fortran layer: its caller's return address is this far above.
    Through(usize),
    /// In code outside all files, whose language reports the place of each call.
    Language,
}

/// The return address at a place on the stack.
pub(crate) fn at(stack: usize) -> usize {
    // SAFETY: a place inside this thread's stack, where the unwinder has found a return address in
    // a call with the same frames.
    unsafe { (stack as *const usize).read() }
}

/// Examines a return address at a place on the stack.
pub(crate) fn find(site: usize, stack: usize) -> Found {
    if source_line::knows(site) {
        return Found::Language;
    }
    if !is_ours(site) || !cfg!(target_arch = "x86_64") {
        return Found::Program;
    }
    let mut walk = Walk {
        stack,
        found: false,
        above: 0,
    };
    // SAFETY: the callback gets this walk, which lives until the call returns.
    unsafe {
        _Unwind_Backtrace(on_frame, (&raw mut walk).cast());
    }
    match walk.above.checked_sub(stack) {
        // the unwinder reports where the return address is
        Some(distance @ 1..) if distance < 1 << 20 => Found::Through(distance),
        _ => Found::Program,
    }
}

/// Whether an address is in a Fortran layer of this library.
fn is_ours(address: usize) -> bool {
    let Some(info) = next::info(address).filter(|i| !i.dli_fname.is_null()) else {
        return false;
    };
    // SAFETY: the dynamic linker's own name of a loaded file.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes();
    let name = name.rsplit(|b| *b == b'/').next().unwrap_or(name);
    let layers: [&[u8]; 4] = [
        b"libmpifort",
        b"libmpi_mpifh",
        b"libmpi_usempi",
        b"libmpichfort",
    ];
    layers.iter().any(|layer| name.starts_with(layer))
}

/// Walks from the frame whose return address is at `stack` to the one above.
struct Walk {
    stack: usize,
    found: bool,
    above: usize,
}

#[repr(C)]
struct Context {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        callback: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        state: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
}

/// A frame's address is the return address of its callee, which is below the address that the
/// unwinder calls the frame's CFA.
extern "C" fn on_frame(context: *mut Context, state: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes its context, and the walk that `find` gave it.
    let (address, place, walk) = unsafe {
        let place = _Unwind_GetCFA(context).wrapping_sub(size_of::<usize>());
        (_Unwind_GetIP(context), place, &mut *state.cast::<Walk>())
    };
    if !walk.found {
        walk.found = place == walk.stack;
        return 0;
    }
    if at(place) == address {
        walk.above = place;
    }
    4 // _URC_NORMAL_STOP
}
