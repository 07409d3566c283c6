//! A place to sleep as [`Sleeper`](crate::sleeper::Sleeper) has it: the doorbell's word, a futex,
//! an epoll set with the doorbell's socket in it, and the progress thread's wake set above that.
//! The system calls are loom's locks; who sets what, and when, is as in `sys/doorbell.rs`,
//! `sys/epoll_set.rs` and `sleeper.rs`.

use crate::polled::{Nap, Sleep};
use kw_base::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use kw_base::sync::{Condvar, Mutex};
use std::time::Duration;

const AWAKE: u32 = 0;
/// A thread in MPI sleeps in the futex.
const FUTEX: u32 = 1;
/// Threads sleep in epoll.
const FD: u32 = 2;

/// `SOCKETS`: threads in MPI sleep in epoll, because sockets can bring something.
#[derive(Debug, Default)]
pub struct ModelSleeper<const SOCKETS: bool> {
    word: AtomicU32,
    futex: Mutex<()>,
    woken: Condvar,
    /// The wake set wakes for the epoll set.
    watching: AtomicBool,
    sets: Mutex<Sets>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Sets {
    /// Something in the epoll set can be read.
    ready: bool,
    /// The wake set wakes when the epoll set is ready, once.
    armed: bool,
    /// The wake set's own bell.
    rung: bool,
}

impl<const SOCKETS: bool> ModelSleeper<SOCKETS> {
    fn mode(nap: Nap) -> u32 {
        match nap {
            Nap::Short if !SOCKETS => FUTEX,
            _ => FD,
        }
    }

    /// A timer expires, if the model has timers: sleeps end, and nothing has arrived.
    pub fn alarm(&self) {
        if SOCKETS {
            self.change(|s| s.ready = true);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Sets)) {
        change(&mut self.sets.lock().unwrap());
        self.changed.notify_all();
    }

    fn arm_as(&self, mode: u32) {
        // `Acquire`: loom's fences pass on only what a thread has acquired, which is less than the
        // language promises.
        let _ = self
            .word
            .compare_exchange(AWAKE, mode, Ordering::SeqCst, Ordering::Acquire);
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
    }

    fn clear(&self) {
        self.disarm();
        self.change(|s| s.ready = false);
    }
}

impl<const SOCKETS: bool> Sleep for ModelSleeper<SOCKETS> {
    fn arm(&self, nap: Nap) {
        self.arm_as(Self::mode(nap));
    }

    fn arm_for_polling(&self) {
        self.arm_as(FD);
    }

    fn disarm(&self) {
        // `swap` for the code's `store`: what a ringer swapped away at the same time comes before
        // this, for it took the announcement that this takes back. loom knows that only of two
        // operations that both read and write.
        self.word.swap(AWAKE, Ordering::Release);
    }

    fn sleep(&self, nap: Nap, _: Duration) -> bool {
        if Self::mode(nap) == FD {
            let mut s = self.sets.lock().unwrap();
            while !s.ready {
                s = self.changed.wait(s).unwrap();
            }
            return true;
        }
        let mut futex = self.futex.lock().unwrap();
        while self.word.load(Ordering::Acquire) == FUTEX {
            futex = self.woken.wait(futex).unwrap();
        }
        true
    }

    fn wake_up(&self, nap: Nap) {
        match Self::mode(nap) {
            FD => self.clear(),
            _ => self.disarm(),
        }
    }

    fn wake_up_polling(&self) {
        self.clear();
    }

    fn hand_over(&self) {
        if !self.watching.swap(true, Ordering::AcqRel) {
            self.change(|s| s.armed = true);
        }
    }

    fn take_back(&self) {
        if self.watching.load(Ordering::Relaxed) && self.watching.swap(false, Ordering::AcqRel) {
            self.change(|s| s.armed = false);
        }
    }

    fn rest(&self, timeout: Option<Duration>) {
        let mut s = self.sets.lock().unwrap();
        while timeout.is_none() && !s.rung && !(s.armed && s.ready) {
            s = self.changed.wait(s).unwrap();
        }
        s.rung = false;
        if s.armed && s.ready {
            s.armed = false;
            drop(s);
            self.watching.swap(false, Ordering::AcqRel);
        }
    }

    fn doze(&self, _: Duration) -> bool {
        self.hand_over();
        self.rest(None);
        true
    }

    fn rouse(&self) {
        self.change(|s| s.rung = true);
    }

    fn ring(&self) {
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) == AWAKE {
            return;
        }
        match self.word.swap(AWAKE, Ordering::AcqRel) {
            AWAKE => {}
            FUTEX => {
                let _futex = self.futex.lock().unwrap();
                self.woken.notify_all();
            }
            _ => self.change(|s| s.ready = true),
        }
    }
}
