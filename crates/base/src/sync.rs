//! The only place atomics, locks and threads come from: `std`, or loom under `--cfg loom`.

#[cfg(loom)]
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};

/// For a value that a process sets once; no model depends on it.
pub use std::sync::OnceLock;

/// Models have no time: a thread that sleeps by the clock lets others run.
#[cfg(loom)]
pub mod thread {
    pub use loom::thread::*;
    use std::time::Duration;

    /// Yields once.
    pub fn sleep(_: Duration) {
        yield_now();
    }

    /// Yields once.
    pub fn park_timeout(_: Duration) {
        yield_now();
    }
}
#[cfg(not(loom))]
pub use std::thread;

/// Sleeping until another thread wakes this one.
#[cfg(not(loom))]
pub mod parking {
    pub use std::thread::{Thread, current, park};
}

/// Written like that of `std`: loom's own `unpark` forgets itself, and frees a thread that waits
/// for something else.
#[cfg(loom)]
pub mod parking {
    use super::{Arc, Condvar, Mutex};

    loom::thread_local! {
        static OWN: Thread = Thread::default();
    }

    /// A thread that may be parked.
    #[derive(Clone, Debug, Default)]
    pub struct Thread(Arc<(Mutex<bool>, Condvar)>);

    /// The calling thread.
    pub fn current() -> Thread {
        OWN.with(Thread::clone)
    }

    /// Sleeps until this thread was unparked since it was parked last.
    pub fn park() {
        let Thread(token) = current();
        let mut unparked = token.0.lock().unwrap_or_else(|e| e.into_inner());
        while !*unparked {
            unparked = token.1.wait(unparked).unwrap_or_else(|e| e.into_inner());
        }
        *unparked = false;
    }

    impl Thread {
        /// Ends its sleep, or the next one.
        pub fn unpark(&self) {
            *self.0.0.lock().unwrap_or_else(|e| e.into_inner()) = true;
            self.0.1.notify_one();
        }
    }
}

/// Hint to the CPU that this is a spin loop.
#[inline]
pub fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

/// Keeps the compiler from moving memory accesses across. The CPU may still do so.
#[inline]
pub fn compiler_fence() {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}
