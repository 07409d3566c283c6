//! Memory for data on their way between the file and the user's buffer, or another rank: reused
//! from step to step and from call to call, since new memory costs more than the data in it.

use kw_base::sync::Mutex;
use kw_sys::buf::Buf;
use std::sync::PoisonError;

/// Buffers that are kept.
const KEPT: usize = 8;

/// Reusable memory.
#[derive(Debug, Default)]
pub struct Scratch {
    free: Mutex<Vec<Buf>>,
}

impl Scratch {
    /// A buffer of at least this many bytes, with undefined contents.
    pub fn take(&self, len: u64) -> Buf {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = free.iter().position(|b| b.len() >= len);
        match fits {
            Some(i) => free.swap_remove(i),
            None => Buf::alloc(len.next_multiple_of(1 << 16) as usize),
        }
    }

    /// Takes back a buffer that is no longer used.
    pub fn give(&self, buf: Buf) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(buf);
        }
    }
}
