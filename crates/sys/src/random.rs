//! Unguessable bytes from the kernel.

use std::io;

/// Fills `out` with random bytes of the kernel's generator.
pub fn fill(out: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < out.len() {
        match rustix::rand::getrandom(&mut out[done..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => done += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// A fresh 256-bit key.
pub fn key() -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    fill(&mut key)?;
    Ok(key)
}
