//! Copies between another process's memory and this one's with one system call (process_vm_readv,
//! process_vm_writev).

use crate::buf::Buf;

/// Runs of memory given to the kernel in one call (it takes at most 1024).
const RUNS: usize = 256;
/// Bytes of a scattered buffer that one call moves. Its runs go to the kernel as they are if they
/// fit into one call, that is if they have 1 KB on average. Shorter ones go through a contiguous
/// piece: the kernel takes tens of nanoseconds for each run, even of a byte, and our own kernels
/// copy 1 KB in that time. A starting value.
const PIECE: u64 = RUNS as u64 * 1024;

/// This process's number.
pub fn pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Copies `len` bytes at `address` in process `pid` to `buf`, from packed byte `at` on. The error
/// is an errno.
pub fn fetch(pid: i32, address: u64, buf: &Buf, at: u64, len: u64) -> Result<(), i32> {
    fetch_by(&mut |a, iov, n| once(pid, a, iov, n), address, buf, at, len)
}

/// Moves bytes from the other process's address to the runs; returns how many it moved, or an
/// errno.
type Call<'a> = &'a mut dyn FnMut(u64, &[libc::iovec], usize) -> Result<u64, i32>;

/// Like [`fetch`], by any call that moves bytes.
fn fetch_by(call: Call, address: u64, buf: &Buf, at: u64, len: u64) -> Result<(), i32> {
    let mut iov = [EMPTY; RUNS];
    let mut piece = None;
    let mut done = 0;
    while done < len {
        let window = match buf.contiguous() {
            Some(_) => len - done,
            None => PIECE.min(len - done),
        };
        let (from, there) = (at + done, address + done);
        let buf = &*buf.fixed();
        done += match gather(buf, from, window, &mut iov) {
            0 => return Err(libc::EFAULT),
            count if count <= RUNS => call(there, &iov[..count], window as usize)?,
            _ => {
                if piece.is_none() {
                    piece = Some(Buf::try_alloc(window as usize).ok_or(libc::ENOMEM)?);
                }
                let Some(piece) = &piece else { continue };
                through(piece, call, there, buf, from, window)?
            }
        };
    }
    Ok(())
}

const EMPTY: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Moves `len` bytes through a contiguous piece.
fn through(
    piece: &Buf,
    call: Call,
    address: u64,
    buf: &Buf,
    from: u64,
    len: u64,
) -> Result<u64, i32> {
    let row = piece.region().ok_or(libc::EFAULT)?.part(0, len);
    let row = [libc::iovec {
        iov_base: row.bytes_mut().cast(),
        iov_len: len as usize,
    }];
    let moved = call(address, &row, len as usize)?;
    piece.copy_to(0, buf, from, moved);
    Ok(moved)
}

/// Lists the runs of `len` bytes as far as there is room; returns how many there are.
fn gather(buf: &Buf, from: u64, len: u64, iov: &mut [libc::iovec; RUNS]) -> usize {
    let mut count = 0;
    buf.runs(from, len, &mut |p, n| {
        if let Some(entry) = iov.get_mut(count) {
            entry.iov_base = p as *mut libc::c_void;
            entry.iov_len = n;
        }
        count += 1;
    });
    count
}

fn once(pid: i32, address: u64, iov: &[libc::iovec], bytes: usize) -> Result<u64, i32> {
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes,
    };
    // SAFETY: the local runs lie in memory the buffer promises; the kernel checks the remote range.
    let n = unsafe { libc::process_vm_readv(pid, iov.as_ptr(), iov.len() as _, &remote, 1, 0) };
    match n {
        1.. => Ok(n as u64),
        0 => Err(libc::EFAULT),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

/// Copies `len` bytes at address `from` of this process to address `into` of process `pid`. The
/// error is an errno: the kernel checks both ranges.
///
/// # Safety
/// If `pid` is this process, the bytes at `into` belong to a [`Buf`] or to other memory that no
/// reference covers.
pub unsafe fn store(pid: i32, from: u64, into: u64, len: u64) -> Result<(), i32> {
    let mut done = 0;
    while done < len {
        let runs = [from, into].map(|address| libc::iovec {
            iov_base: (address + done) as *mut libc::c_void,
            iov_len: (len - done) as usize,
        });
        // SAFETY: the kernel checks both ranges; the call changes memory of `pid` only, and by the
        // caller's promise none that a reference covers.
        let n = unsafe { libc::process_vm_writev(pid, &runs[0], 1, &runs[1], 1, 0) };
        match n {
            1.. => done += n as u64,
            0 => return Err(libc::EFAULT),
            _ => return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        }
    }
    Ok(())
}

/// Reads a word of another process, to see whether we may. The error is an errno.
pub fn read_word(pid: i32, address: u64) -> Result<u64, i32> {
    let into = Buf::alloc(8);
    fetch(pid, address, &into, 0, 8)?;
    let mut bytes = [0; 8];
    into.read(0, &mut bytes);
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests;
