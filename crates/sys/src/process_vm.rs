//! Copies between this process's memory and another's with one system call (process_vm_readv, process_vm_writev).

use crate::buf::Buf;

/// Runs of memory given to the kernel in one call (it takes at most 1024).
const RUNS: usize = 256;

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the other process into ours.
    Fetch,
    /// From ours into the other one.
    Put,
}

/// This process's number.
pub fn pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Copies `len` bytes between `buf` (from packed byte `at` on) and `address` in process `pid`. The error is an errno.
pub fn copy(way: Way, pid: i32, address: u64, buf: &Buf, at: u64, len: u64) -> Result<(), i32> {
    let mut iov = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; RUNS];
    let mut done = 0;
    while done < len {
        let (count, bytes) = gather(buf, at + done, len - done, &mut iov);
        if count == 0 {
            return Err(libc::EFAULT);
        }
        done += once(way, pid, address + done, &iov[..count], bytes)?;
    }
    Ok(())
}

fn gather(buf: &Buf, from: u64, len: u64, iov: &mut [libc::iovec; RUNS]) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    // Bounds how many runs are visited beyond those that fit: the shortest run is a byte, so ask for a window first.
    let window = if buf.contiguous().is_some() {
        len
    } else {
        len.min(1 << 20)
    };
    buf.runs(from, window, &mut |p, n| {
        if count < RUNS {
            iov[count] = libc::iovec {
                iov_base: p as *mut libc::c_void,
                iov_len: n,
            };
            count += 1;
            bytes += n;
        }
    });
    (count, bytes)
}

fn once(way: Way, pid: i32, address: u64, iov: &[libc::iovec], bytes: usize) -> Result<u64, i32> {
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes,
    };
    let call = match way {
        Way::Fetch => libc::process_vm_readv,
        Way::Put => libc::process_vm_writev,
    };
    // SAFETY: the local runs lie in memory the buffer promises; the kernel checks the remote range.
    let n = unsafe { call(pid, iov.as_ptr(), iov.len() as _, &remote, 1, 0) };
    match n {
        1.. => Ok(n as u64),
        0 => Err(libc::EFAULT),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

/// Reads a word of another process, to see whether we may. The error is an errno.
pub fn read_word(pid: i32, address: u64) -> Result<u64, i32> {
    let into = Buf::alloc(8);
    copy(Way::Fetch, pid, address, &into, 0, 8)?;
    let mut bytes = [0; 8];
    into.read(0, &mut bytes);
    Ok(u64::from_ne_bytes(bytes))
}
