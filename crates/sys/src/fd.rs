//! Descriptors that a parent left open for us.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Takes over a descriptor that was inherited under a known number, and closes it on exec from now on. Fails when nothing
/// is open under the number. The caller must be the only one who takes this number.
pub fn adopt(number: RawFd) -> io::Result<File> {
    if number < 3 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: F_SETFD on any number is harmless; it fails with EBADF when nothing is open there.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the number is open (checked above) and was inherited, so no object of this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) }.into())
}
