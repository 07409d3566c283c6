//! Files that ranks read and write at positions of their own: one system call for each function.
//!
//! A call may move less than requested, and may be interrupted: the caller continues.

use crate::buf::Buf;
use rustix::fs::{Advice, AtFlags, FallocateFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Creates the file if it does not exist.
    pub create: bool,
    /// Fails if the file exists.
    pub exclusive: bool,
    /// Permissions of a new file, without those that the process's umask takes.
    pub permissions: u32,
}

/// An open file.
#[derive(Debug)]
pub struct File {
    fd: OwnedFd,
    identity: (u64, u64),
}

/// Bytes that are packed at once if data is not contiguous.
const PACKED: u64 = 1 << 20;

/// Types of file systems whose hosts see each other's data at once (statfs(2), linux/magic.h).
const COHERENT: [u32; 12] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0x0102_1994, // tmpfs
    0x794c_7630, // overlayfs
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x00c3_6400, // Ceph
    0x0116_1970, // GFS2
    0x7461_636f, // OCFS2
];

impl File {
    /// Opens a file.
    pub fn open(path: &Path, access: Access) -> io::Result<File> {
        let mut flags = OFlags::CLOEXEC;
        flags |= match (access.read, access.write) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        if access.create {
            flags |= OFlags::CREATE;
        }
        if access.exclusive {
            flags |= OFlags::EXCL;
        }
        let path = CString::new(path.as_os_str().as_bytes())?;
        let fd = rustix::fs::open(path, flags, Mode::from_bits_truncate(access.permissions))?;
        let found = rustix::fs::fstat(&fd)?;
        if rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let identity = (found.st_dev, found.st_ino);
        Ok(File { fd, identity })
    }

    /// Removes a file.
    pub fn remove(path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlink(path)?)
    }

    /// Device and number of the file, as this host knows them.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Bytes of the file. A file system with a cache on each host (NFS, FUSE) asks its server.
    pub fn len(&self) -> io::Result<u64> {
        let now = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
        match rustix::fs::statx(&self.fd, c"", now, StatxFlags::SIZE) {
            // A kernel before 4.11, or a container that forbids the call.
            Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::fstat(&self.fd)?.st_size as u64),
            found => Ok(found?.stx_size),
        }
    }

    /// Discards the cache of the file on this host, so that the next read finds what other hosts
    /// have stored. Written data that is not stored yet stays.
    pub fn refresh(&self) -> io::Result<()> {
        self.len()?;
        Ok(rustix::fs::fadvise(&self.fd, 0, None, Advice::DontNeed)?)
    }

    /// Whether all hosts see at once what one of them has written: the file system has one host, or
    /// its hosts tell each other. For a file system that is not known here it is not assumed.
    pub fn is_coherent(&self) -> io::Result<bool> {
        Ok(COHERENT.contains(&(rustix::fs::fstatfs(&self.fd)?.f_type as u32)))
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends the file; new bytes are zero.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.fd, len)?)
    }

    /// Reserves storage for the first `len` bytes; extends a shorter file. If the file system
    /// cannot reserve (NFS before 4.2, FUSE), zeros are written behind the end.
    pub fn reserve(&self, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), 0, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.extend_with_zeros(len),
            other => Ok(other?),
        }
    }

    fn extend_with_zeros(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0; PACKED as usize];
        let mut at = self.len()?;
        while at < len {
            let part = &zeros[..(len - at).min(PACKED) as usize];
            match self.write_bytes(at, part) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => at += n as u64,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Waits until all that was written is on the storage device.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    /// Closes a duplicate of the descriptor: that reports the file system's errors for written data
    /// (NFS, FUSE), which it otherwise reports only once more, when the file is closed.
    pub fn flush(&self) -> io::Result<()> {
        let copy = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?.into_raw_fd();
        // SAFETY: no other code has this descriptor. It is gone even if the call fails (close(2)).
        match unsafe { libc::close(copy) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reads from position `at` of the file into bytes `from..from+len` of a buffer. Returns how
    /// many came: fewer if a call moves fewer, 0 at the end of the file.
    pub fn read_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64> {
        let len = buf.within(from, len);
        let Some(base) = buf.contiguous() else {
            let mut packed = vec![0; len.min(PACKED) as usize];
            let came = self.read_bytes(at, &mut packed)?;
            buf.write(from, &packed[..came]);
            return Ok(came as u64);
        };
        let address = base.wrapping_add(from as usize) as *mut u8;
        // SAFETY: `len` bytes of the buffer, whose memory its maker promised or which it keeps
        // alive; the operation that it is read for has the only right to write there.
        let came = unsafe { libc::pread(self.raw(), address.cast(), len as usize, at as i64) };
        moved(came)
    }

    /// Writes bytes `from..from+len` of a buffer to position `at` of the file. Returns how many
    /// were written.
    pub fn write_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64> {
        let len = buf.within(from, len);
        let Some(base) = buf.contiguous() else {
            let mut packed = vec![0; len.min(PACKED) as usize];
            buf.read(from, &mut packed);
            return Ok(self.write_bytes(at, &packed)? as u64);
        };
        let address = base.wrapping_add(from as usize) as *const u8;
        // SAFETY: `len` bytes of the buffer, promised by its maker or kept alive, for reading.
        let went = unsafe { libc::pwrite(self.raw(), address.cast(), len as usize, at as i64) };
        moved(went)
    }

    fn raw(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Reads into bytes of the library; like [`File::read_at`].
    pub fn read_bytes(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::pread(&self.fd, into, at)?)
    }

    /// Writes bytes of the library; like [`File::write_at`].
    pub fn write_bytes(&self, at: u64, data: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::pwrite(&self.fd, data, at)?)
    }
}

/// How many bytes a call has moved, or why it has not.
fn moved(result: isize) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("kittiwake-file-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_file_keeps_what_was_written_at_its_positions() {
        let path = scratch("positions");
        let access = Access {
            read: true,
            write: true,
            create: true,
            exclusive: true,
            permissions: 0o600,
        };
        let file = File::open(&path, access).expect("a file");
        assert!(File::open(&path, access).is_err(), "it is there already");
        let out = Buf::alloc(4);
        out.write(0, b"abcd");
        assert_eq!(file.write_at(10, &out, 1, 2).expect("written"), 2);
        assert_eq!(file.len().expect("a length"), 12);
        let into = Buf::alloc(8);
        assert_eq!(file.read_at(9, &into, 0, 8).expect("read"), 3);
        let mut have = [9; 8];
        into.read(0, &mut have);
        assert_eq!(&have[..3], b"\0bc");
        file.flush().expect("flushed");
        file.refresh().expect("refreshed");
        assert_eq!(file.read_bytes(9, &mut have).expect("read"), 3);
        assert_eq!(&have[..3], b"\0bc");
        file.set_len(5).expect("cut");
        assert_eq!(file.read_bytes(5, &mut have).expect("read"), 0);
        file.reserve(4096).expect("reserved");
        assert_eq!(file.len().expect("a length"), 4096);
        File::remove(&path).expect("removed");
        let gone = File::open(
            &path,
            Access {
                create: false,
                exclusive: false,
                ..access
            },
        );
        assert_eq!(gone.expect_err("gone").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn zeros_reserve_what_lies_behind_the_end_and_change_nothing_before() {
        let path = scratch("zeros");
        let access = Access {
            read: true,
            write: true,
            create: true,
            exclusive: true,
            permissions: 0o600,
        };
        let file = File::open(&path, access).expect("a file");
        file.write_bytes(0, b"abc").expect("written");
        file.extend_with_zeros(2).expect("nothing to do");
        assert_eq!(file.len().expect("a length"), 3);
        file.extend_with_zeros(PACKED + 10).expect("extended");
        assert_eq!(file.len().expect("a length"), PACKED + 10);
        let mut have = [9; 5];
        file.read_bytes(0, &mut have).expect("read");
        assert_eq!(&have, b"abc\0\0");
        File::remove(&path).expect("removed");
    }

    #[test]
    fn a_directory_is_no_file() {
        let read = Access {
            read: true,
            ..Access::default()
        };
        let error = File::open(Path::new("/"), read).expect_err("a directory");
        assert_eq!(error.raw_os_error(), Some(libc::EISDIR));
    }
}
