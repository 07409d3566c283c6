//! `libkw_audit.so`: functions that the dynamic linker calls before it looks for a library
//! (rtld-audit(7)).
//!
//! mpiexec names it in LD_AUDIT for programs whose libraries search their MPI in a path of their
//! own before LD_LIBRARY_PATH: Python's and R's extensions, Julia, programs with a DT_RPATH. If
//! such a program asks for `libmpi.so.12`, `libmpi.so.40` or another library of which this
//! installation has its own, it gets ours. Everything else is found as usual.
//!
//! The linker gives such a library a C library of its own, and calls it with its lock held, so no
//! state of the program is touched here.

mod redirect;

use std::ffi::{CStr, CString, c_char, c_uint};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use kw_base::sync::{Mutex, OnceLock};
use redirect::Redirects;

/// The newest interface with the dynamic linker for which this file was written.
const LAV_CURRENT: c_uint = 2;
/// Flag: the name is the requested one, before any search.
const LA_SER_ORIG: c_uint = 1;

static REDIRECTS: OnceLock<Mutex<Redirects>> = OnceLock::new();

/// The first call: returns the version of the interface. 0: none, this library is unloaded.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(offered: c_uint) -> c_uint {
    let own = std::env::var_os("LD_AUDIT").unwrap_or_default();
    let own = std::env::split_paths(&own).find(|path| path.ends_with("libkw_audit.so"));
    let Some(lib) = own.as_deref().and_then(Path::parent) else {
        return 0;
    };
    let first = REDIRECTS.set(Mutex::new(Redirects::below(lib))).is_ok();
    if first { offered.min(LAV_CURRENT) } else { 0 }
}

/// Returns the file to search for instead of `name`.
///
/// # Safety
///
/// `name` is a text of the dynamic linker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    _cookie: *mut usize,
    flag: c_uint,
) -> *const c_char {
    if flag != LA_SER_ORIG || name.is_null() {
        return name;
    }
    // SAFETY: a text of the dynamic linker, which exists as long as this call lasts.
    let asked = unsafe { CStr::from_ptr(name) };
    let asked = Path::new(std::ffi::OsStr::from_bytes(asked.to_bytes()));
    let Some(Ok(mut redirects)) = REDIRECTS.get().map(Mutex::lock) else {
        return name;
    };
    let ours = redirects.instead_of(asked);
    match ours.and_then(|path| CString::new(path.into_os_string().into_vec()).ok()) {
        // the linker keeps it; a process asks for few libraries
        Some(path) => path.into_raw(),
        None => name,
    }
}
