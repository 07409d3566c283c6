//! Libraries that are found at run time, and their calls. They stay open until the process ends.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// An open library.
#[derive(Clone, Copy, Debug)]
pub struct Library(NonNull<c_void>);

/// Opens a library by its name or path and runs its initialisers; the error is that of the loader.
/// No library is opened in a program with elevated privileges ([`crate::environment`]).
pub fn open(path: &CStr) -> Result<Library, String> {
    if crate::environment::is_untrusted() {
        return Err("this program runs with elevated privileges and loads no library".into());
    }
    // SAFETY: the path ends with NUL. Initialisers are the library's own responsibility, as for one
    // that is linked.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if let Some(library) = NonNull::new(library) {
        return Ok(Library(library));
    }
    // SAFETY: after a failure dlerror returns a text that lives until the next call of this thread,
    // or null.
    let text = unsafe { libc::dlerror().as_ref().map(|t| CStr::from_ptr(t)) };
    Err(text.map_or_else(
        || "it cannot be opened".into(),
        |t| t.to_string_lossy().into(),
    ))
}

impl Library {
    /// A call of the library.
    ///
    /// # Safety
    /// `F` is a function pointer type and the symbol's true type.
    pub unsafe fn symbol<F: Copy>(self, name: &CStr) -> Option<F> {
        // SAFETY: the library is open and the name ends with NUL; a function pointer is as large as
        // a data pointer here, and the caller promises the type.
        unsafe {
            let at = libc::dlsym(self.0.as_ptr(), name.as_ptr());
            (!at.is_null() && size_of::<F>() == size_of::<*mut c_void>())
                .then(|| std::mem::transmute_copy::<*mut c_void, F>(&at))
        }
    }
}
