//! Operations of a file system on one open file, real or simulated. A call may move less than
//! requested, and may be interrupted; [`crate::transfer`] continues.

use kw_sys::buf::Buf;
use kw_sys::file::File;
use std::fmt::Debug;
use std::io;

/// An open file.
pub trait Storage: Debug + Send + Sync {
    /// Reads from position `at` of the file into bytes `from..from+len` of a buffer; returns the
    /// number of bytes read, 0 at the end of the file.
    fn read_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64>;
    /// Writes bytes `from..from+len` of a buffer to position `at`; returns the number of bytes
    /// written.
    fn write_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64>;
    /// Bytes of the file.
    fn size(&self) -> io::Result<u64>;
    /// Cuts or extends the file.
    fn set_size(&self, len: u64) -> io::Result<()>;
    /// Makes the next read find what other hosts have stored.
    fn refresh(&self) -> io::Result<()>;
    /// Reserves storage for the first `len` bytes.
    fn reserve(&self, len: u64) -> io::Result<()>;
    /// Waits until all written data is on the storage device.
    fn sync(&self) -> io::Result<()>;
    /// Closes the file and returns the file system's delayed error of earlier writes: on NFS and
    /// FUSE, that the device was full.
    fn flush(&self) -> io::Result<()>;
}

impl Storage for File {
    fn read_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64> {
        File::read_at(self, at, buf, from, len)
    }

    fn write_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64> {
        File::write_at(self, at, buf, from, len)
    }

    fn size(&self) -> io::Result<u64> {
        self.len()
    }

    fn set_size(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn refresh(&self) -> io::Result<()> {
        File::refresh(self)
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        File::reserve(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        File::sync(self)
    }

    fn flush(&self) -> io::Result<()> {
        File::flush(self)
    }
}

#[cfg(test)]
pub(crate) mod simulated {
    //! A file in memory whose calls are short, interrupted, and fail on demand.

    use super::*;
    use kw_base::sync::Mutex;

    /// A file system with faults.
    #[derive(Debug, Default)]
    pub(crate) struct Simulated {
        /// The file's bytes.
        pub(crate) bytes: Mutex<Vec<u8>>,
        /// Position from which on the device is full.
        pub(crate) capacity: Option<u64>,
        /// Its error for that, if it is not ENOSPC: a quota.
        pub(crate) full: Option<io::ErrorKind>,
        /// Position from which on the device has faults (EIO).
        pub(crate) broken: Option<u64>,
        /// Length to which another program cuts the file once it was read for the first time.
        pub(crate) shrinks: Option<u64>,
        /// Source of random lengths of calls.
        pub(crate) calls: Mutex<u64>,
    }

    impl Simulated {
        pub(crate) fn new(bytes: Vec<u8>) -> Simulated {
            Simulated {
                bytes: Mutex::new(bytes),
                ..Simulated::default()
            }
        }

        /// Number of these bytes before the first fault of the device.
        fn whole(&self, at: u64, len: u64) -> io::Result<u64> {
            match self.broken {
                Some(from) if at >= from => Err(io::Error::from_raw_os_error(5)),
                Some(from) => Ok(len.min(from - at)),
                None => Ok(len),
            }
        }

        /// Number of bytes that a call may move, or that it is interrupted.
        fn allowed(&self, len: u64) -> io::Result<u64> {
            let mut calls = self.calls.lock().expect("the count");
            *calls = calls
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            match *calls >> 60 {
                0 => Err(io::ErrorKind::Interrupted.into()),
                1..4 => Ok(len.div_ceil(3).max(1).min(len)),
                _ => Ok(len),
            }
        }
    }

    impl Storage for Simulated {
        fn read_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64> {
            let len = self.whole(at, self.allowed(len)?)?;
            let mut bytes = self.bytes.lock().expect("the bytes");
            let start = (at as usize).min(bytes.len());
            let end = (at.saturating_add(len) as usize).min(bytes.len());
            buf.write(from, &bytes[start..end]);
            if let Some(left) = self.shrinks {
                bytes.truncate(left as usize);
            }
            Ok((end - start) as u64)
        }

        fn write_at(&self, at: u64, buf: &Buf, from: u64, len: u64) -> io::Result<u64> {
            let mut len = self.whole(at, self.allowed(len)?)?;
            if let Some(capacity) = self.capacity {
                len = len.min(capacity.saturating_sub(at));
                if len == 0 {
                    let full = self.full.unwrap_or(io::ErrorKind::StorageFull);
                    return Err(io::Error::from(full));
                }
            }
            let mut bytes = self.bytes.lock().expect("the bytes");
            let end = (at + len) as usize;
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            buf.read(from, &mut bytes[at as usize..end]);
            Ok(len)
        }

        fn size(&self) -> io::Result<u64> {
            Ok(self.bytes.lock().expect("the bytes").len() as u64)
        }

        fn set_size(&self, len: u64) -> io::Result<()> {
            self.bytes
                .lock()
                .expect("the bytes")
                .resize(len as usize, 0);
            Ok(())
        }

        fn refresh(&self) -> io::Result<()> {
            Ok(())
        }

        fn reserve(&self, _len: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }
}
