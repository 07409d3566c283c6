//! Options of sockets whose value is an int, for those that the libraries in use do not define.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Sets one.
pub fn set(socket: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and size are those of an int, the type of the options that this is called
    // with.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
