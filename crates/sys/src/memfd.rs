//! Memory shared between processes: a memfd that has no name anywhere, and its mapping.

use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

/// Most bytes that a file may have; `u64::MAX` if there is no limit.
pub fn most_of_file() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Most bytes of addresses that this process may have; `u64::MAX` if there is no limit.
pub fn most_of_addresses() -> u64 {
    getrlimit(Resource::As).current.unwrap_or(u64::MAX)
}

/// Makes `len` bytes of zeroed shared memory. Pages cost memory only once touched; the size is
/// sealed, so that no process can shrink it under another one. The kernel counts it as a file: a
/// limit of file sizes is an error here, for the kernel would kill.
pub fn create(len: usize) -> io::Result<OwnedFd> {
    let fd = create_empty()?;
    set_len(fd.as_fd(), len)?;
    Ok(fd)
}

/// Like [`create`], before the size is known: [`set_len`] follows.
pub fn create_empty() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(rustix::fs::memfd_create(c"kittiwake", flags)?)
}

/// Gives a memfd of [`create_empty`] its size, which is final.
pub fn set_len(fd: BorrowedFd<'_>, len: usize) -> io::Result<()> {
    let limit = most_of_file();
    if limit < len as u64 {
        return Err(io::Error::other(format!(
            "shared memory of {len} bytes is needed, but the file size limit is {limit} bytes: raise it (ulimit -f unlimited), or \
             do without shared memory (KW_PATHS=self,tcp)"
        )));
    }
    rustix::fs::ftruncate(fd, len as u64)?;
    rustix::fs::fcntl_add_seals(fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(())
}

/// The way by which other processes of the host open a memfd that this process has open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenedElsewhere {
    /// The process.
    pub pid: u32,
    /// Its descriptor.
    pub fd: i32,
    /// The number of the file, which no other memfd of the host has.
    pub inode: u64,
}

impl OpenedElsewhere {
    /// The place of a memfd of this process, which has to leave it open until others have opened
    /// it.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<OpenedElsewhere> {
        Ok(OpenedElsewhere {
            pid: std::process::id(),
            fd: fd.as_raw_fd(),
            inode: rustix::fs::fstat(fd)?.st_ino,
        })
    }

    /// Opens it in this process, through `/proc`. It is an error if the system does not permit
    /// that, or if the number means another process here (in a container).
    pub fn open(self) -> io::Result<OwnedFd> {
        let name = format!("/proc/{}/fd/{}", self.pid, self.fd);
        let other = || io::Error::other(format!("{name} is another file here"));
        // Another kind of file must not be opened.
        let target = rustix::fs::readlink(&name, Vec::new())?;
        if !target.as_bytes().starts_with(b"/memfd:kittiwake") {
            return Err(other());
        }
        let how = OFlags::RDWR | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&name, how, Mode::empty())?;
        match rustix::fs::fstat(&fd)?.st_ino == self.inode {
            true => Ok(fd),
            false => Err(other()),
        }
    }
}

/// Bytes of an ordinary page of this system: 4 KB, on ARM also 16 or 64 KB.
pub fn page() -> u64 {
    rustix::param::page_size() as u64
}

/// Bytes of a memfd.
pub fn len(fd: BorrowedFd<'_>) -> io::Result<usize> {
    Ok(rustix::fs::fstat(fd)?.st_size as usize)
}

/// A shared mapping of the front of a memfd; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    base: *mut u8,
    len: usize,
    /// Bytes at the front that may be touched.
    opened: AtomicUsize,
}

// SAFETY: a Mapping is an address range; code that reads or writes through it is responsible for
// the order of accesses.
unsafe impl Send for Mapping {}
// SAFETY: the same holds for shared access.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `fd`, which must have as many. They are left out of core dumps:
    /// a dump would give every page memory that was never touched.
    ///
    /// Only the first `opened` of them may be touched before [`Mapping::open_up_to`]: a program that
    /// locks all its memory (mlockall) locks those alone.
    pub fn of(fd: BorrowedFd<'_>, len: usize, opened: usize) -> io::Result<Mapping> {
        let has = self::len(fd)?;
        if has < len {
            return Err(io::Error::other(format!(
                "the shared segment has {has} bytes instead of {len}"
            )));
        }
        Mapping::of_future(fd, len, opened)
    }

    /// Like [`Mapping::of`], if `fd` may get its bytes later: they are not touched before.
    pub fn of_future(fd: BorrowedFd<'_>, len: usize, opened: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::empty(),
                MapFlags::SHARED | MapFlags::NORESERVE,
                fd,
                0,
            )?
        };
        let mapping = Mapping {
            base: base as *mut u8,
            len,
            opened: AtomicUsize::new(0),
        };
        // SAFETY: the range was just mapped, and the advice changes no contents. Without it
        // everything works, except for the dump.
        let _ = unsafe { rustix::mm::madvise(base, len, Advice::LinuxDontDump) };
        mapping.open_up_to(opened)?;
        Ok(mapping)
    }

    /// This many bytes at the front, whole pages, may be touched from now on.
    ///
    /// # Panics
    /// If there are fewer (a bug of the library).
    pub fn open_up_to(&self, end: usize) -> io::Result<()> {
        assert!(end <= self.len, "{end} bytes of {}", self.len);
        if end > self.opened.load(Ordering::Relaxed) {
            let all = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: our own mapping, of which more may be touched than before.
            unsafe { rustix::mm::mprotect(self.base.cast(), end, all)? };
            self.opened.fetch_max(end, Ordering::Relaxed);
        }
        Ok(())
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
    /// If it is outside (a fault of our own).
    #[inline(always)]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "offset {offset} of {}", self.len);
        self.base.wrapping_add(offset)
    }

    /// Returns the memory of whole pages to the system, for all processes: they read zeroes
    /// afterwards. If the system cannot, nothing changes. No process may use the pages meanwhile.
    ///
    /// # Panics
    /// When they are outside (a fault of our own).
    pub fn give_back(&self, offset: usize, len: usize) {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "{len} bytes from {offset} on of {}",
            self.len
        );
        let from = self.base.wrapping_add(offset);
        // SAFETY: inside the mapping, and its bytes are shared ones, which no code assumes to stay.
        let _ = unsafe { rustix::mm::madvise(from.cast(), len, Advice::LinuxRemove) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: we mapped exactly this range and no code can use it after the drop (users hold an
        // Arc).
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memfd_of_a_process_is_opened_by_its_number_and_nothing_else_is() {
        let fd = create_empty().unwrap();
        let there = OpenedElsewhere::of(fd.as_fd()).unwrap();
        let page = page() as usize;
        let again = there.open().unwrap();
        let map = Mapping::of_future(again.as_fd(), page, page).unwrap();
        assert!(Mapping::of(again.as_fd(), page, page).is_err(), "no bytes");
        set_len(fd.as_fd(), page).unwrap();
        // SAFETY: the page is there now, and this is the only thread that uses it.
        assert_eq!(unsafe { *map.at(5) }, 0);
        assert!(set_len(again.as_fd(), 2 * page).is_err(), "it is sealed");
        let inode = there.inode + 1;
        assert!(OpenedElsewhere { inode, ..there }.open().is_err());
        let other = std::fs::File::open("/proc/self/status").unwrap();
        let fd = other.as_raw_fd();
        assert!(OpenedElsewhere { fd, ..there }.open().is_err());
    }
}
