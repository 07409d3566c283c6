//! The only place atomics, locks and threads come from: `std`, or loom under `--cfg loom`.

#[cfg(loom)]
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, atomic};

#[cfg(loom)]
pub use loom::thread;
#[cfg(not(loom))]
pub use std::thread;

/// Hint to the processor that this is a spin loop.
#[inline]
pub fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

/// Keeps the compiler from moving memory accesses across. The processor may still do so.
#[inline]
pub fn compiler_fence() {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}
