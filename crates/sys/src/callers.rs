//! The calls that led here: which function of MPI the program has called, and from where.
//!
//! For a thread that has waited for long, which has the time: it unwinds its stack and asks the
//! dynamic linker about every address. A signal handler may do neither, because that takes memory
//! and locks of other code, so [`crate::crash`] reads the list of mappings instead.
//!
//! The unwinder ends at code that is in no file. If that belongs to a language that has told
//! [`crate::source_line`] how to ask it, the language's place is the last of the addresses.

use crate::crash::{_Unwind_Backtrace, UnwindContext};
use crate::source_line;
use kw_base::source_line::{base, is_source_line};
use std::ffi::{CStr, c_int, c_void};

/// Most frames that are examined.
const FRAMES: usize = 96;

/// A call, innermost first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    /// The exported function, if the address is in one.
    pub function: Option<String>,
    /// Path of the program or library.
    pub file: String,
    /// Offset of the call from the address where that was loaded.
    pub offset: u64,
}

unsafe extern "C" {
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
}

extern "C" fn on_frame(context: *mut UnwindContext, state: *mut c_void) -> c_int {
    // SAFETY: the unwinder hands over its context, and the list that `addresses` gave it.
    let (address, (all, most)) = unsafe {
        (
            _Unwind_GetIP(context),
            &mut *state.cast::<(Vec<usize>, usize)>(),
        )
    };
    if address == 0 || all.len() == *most {
        // _URC_END_OF_STACK
        return 5;
    }
    // A return address may be that of the next function.
    all.push(address - 1);
    0
}

/// The calls that led here, including this function's own.
#[inline(never)]
pub fn callers() -> Vec<Caller> {
    named(&addresses(FRAMES))
}

/// The addresses of the calls that led here, innermost first, `most` at most, and a language's
/// place: the input of [`named`].
#[inline(never)]
pub fn addresses(most: usize) -> Box<[usize]> {
    let mut all: (Vec<usize>, usize) = (Vec::with_capacity(most), most);
    // SAFETY: the callback gets this list, which lives until the call returns.
    unsafe {
        _Unwind_Backtrace(on_frame, (&raw mut all).cast());
    }
    let place = source_line::place();
    if place != 0 {
        all.0.push(place as usize);
    }
    all.0.into_boxed_slice()
}

/// The calls at these addresses. Code in no file is left out unless a language tells what it is.
pub fn named(addresses: &[usize]) -> Vec<Caller> {
    let mut all: Vec<Caller> = addresses.iter().map(|&address| caller(address)).collect();
    if addresses.last().is_some_and(|&a| is_source_line(a as u64)) {
        all.retain(|c| !c.file.is_empty());
    }
    all
}

/// The file of the library that this function is in.
pub fn own_file() -> String {
    caller(own_file as fn() -> String as usize).file
}

fn caller(address: usize) -> Caller {
    let place = address as u64;
    if is_source_line(place) {
        return Caller {
            function: None,
            file: source_line::name(place),
            offset: place - base(place) - 1,
        };
    }
    // SAFETY: the structure is plain data, and dladdr fills it in or reports that it has not.
    let (found, info) = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address as *const c_void, &mut info), info)
    };
    if found == 0 {
        return Caller {
            offset: address as u64,
            ..Caller::default()
        };
    }
    Caller {
        function: text(info.dli_sname),
        file: text(info.dli_fname).map_or_else(String::new, in_full),
        offset: (address - info.dli_fbase as usize) as u64,
    }
}

/// Text of the dynamic linker.
fn text(name: *const libc::c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: a pointer that is not null is a string that lives as long as its module is loaded.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_string_lossy().into_owned())
}

/// The linker knows the program by the name that it was called by.
fn in_full(name: String) -> String {
    let path = std::fs::canonicalize(&name);
    let path = path.or_else(|_| std::env::current_exe());
    path.map_or(name, |p| p.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_among_the_callers() {
        let own = std::env::current_exe().unwrap();
        let own = own.canonicalize().unwrap();
        let all = callers();
        let here = all.iter().filter(|c| c.file == own.to_str().unwrap());
        assert!(here.count() > 1, "{all:?}");
    }
}
