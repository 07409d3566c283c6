//! The machine's name, and the way out of the process.

/// The host name as the kernel knows it (no resolver is asked).
pub fn name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Ends the process at once, without running exit handlers (they may call MPI, or wait for threads that hold it).
pub fn leave(code: i32) -> ! {
    // SAFETY: `_exit` has no requirement.
    unsafe { libc::_exit(code) }
}
