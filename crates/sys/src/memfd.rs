//! Memory shared between processes: a memfd that has no name anywhere, and its mapping.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// Makes `len` bytes of zeroed shared memory. Pages cost memory only once touched; the size is
/// sealed, so that no process can shrink it under another one. The kernel counts it as a file: a
/// limit of file sizes is an error here, for the kernel would kill.
pub fn create(len: usize) -> io::Result<OwnedFd> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if let Some(limit) = limit.filter(|l| *l < len as u64) {
        return Err(io::Error::other(format!(
            "shared memory of {len} bytes is wanted, but the limit of file sizes is {limit} bytes: raise it (ulimit -f unlimited), or \
             do without shared memory (KW_PATHS=self,tcp)"
        )));
    }
    let fd = rustix::fs::memfd_create(
        c"kittiwake",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?;
    rustix::fs::ftruncate(&fd, len as u64)?;
    rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

/// A shared mapping of a whole memfd; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: a Mapping is an address range; whoever reads or writes through it answers for the order
// of accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all of `fd`, which must be `len` bytes long.
    pub fn of(fd: BorrowedFd<'_>, len: usize) -> io::Result<Mapping> {
        let stat = rustix::fs::fstat(fd.as_fd())?;
        if stat.st_size as u64 != len as u64 {
            return Err(io::Error::other(format!(
                "the shared segment has {} bytes instead of {len}",
                stat.st_size
            )));
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                fd,
                0,
            )?
        };
        Ok(Mapping {
            base: base as *mut u8,
            len,
        })
    }

    /// First byte.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none (never).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the byte at `offset`.
    ///
    /// # Panics
    /// When it lies outside (a fault of our own).
    #[inline(always)]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "offset {offset} of {}", self.len);
        self.base.wrapping_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: we mapped exactly this range and nobody can use it after the drop (users hold an
        // Arc).
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.len) };
    }
}
