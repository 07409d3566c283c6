//! Places to sleep as [`Sleeper`](crate::sleeper::Sleeper) has them: a futex and a parking place where only memory is shared,
//! a nest with a bed above it where there are sockets. The system calls are loom's locks; the doorbell's word and who sets
//! it when are as in `sys/doorbell.rs`, `sys/nest.rs` and `sleeper.rs`.

use crate::polled::Sleep;
use kw_base::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use kw_base::sync::thread::Thread;
use kw_base::sync::{Condvar, Mutex};
use kw_core::duty::Duty;
use std::time::Duration;

/// A place to sleep, and what may end a sleep there for nothing.
pub trait Place: Sleep + Default {
    /// A timer of ours goes off: sleeps end, and nothing has come.
    fn alarm(&self) {}
}

/// The doorbell's word.
#[derive(Debug, Default)]
struct Word(AtomicU32);

impl Word {
    fn arm(&self) {
        // `Acquire`: loom's fences pass on only what a thread has acquired, less than the language promises.
        let _ = self
            .0
            .compare_exchange(0, 1, Ordering::SeqCst, Ordering::Acquire);
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
    }

    fn disarm(&self) {
        self.0.store(0, Ordering::Release);
    }

    fn is_armed(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    /// Whether a sleeper must be woken.
    fn ring(&self) -> bool {
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::AcqRel) != 0
    }
}

/// A futex, and a parking place for the event thread.
#[derive(Debug, Default)]
pub struct Futex {
    word: Word,
    place: Mutex<()>,
    woken: Condvar,
    /// As `thread::park`.
    token: Mutex<bool>,
    unparked: Condvar,
}

impl Place for Futex {}

impl Sleep for Futex {
    fn arm(&self) {
        self.word.arm();
    }

    fn disarm(&self) {
        self.word.disarm();
    }

    /// Sleeps only while the word is set, and wakes only when somebody wakes it.
    fn sleep(&self, _: Duration) -> bool {
        let place = self.place.lock().unwrap();
        if self.word.is_armed() {
            drop(self.woken.wait(place).unwrap());
        }
        true
    }

    fn wake_up(&self) {
        self.word.disarm();
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn hand_over(&self) {}

    fn take_back(&self) {}

    fn rest(&self, timeout: Option<Duration>) {
        let mut token = self.token.lock().unwrap();
        while !*token && timeout.is_none() {
            token = self.unparked.wait(token).unwrap();
        }
        *token = false;
    }

    fn doze(&self, timeout: Duration) -> bool {
        self.sleep(timeout)
    }

    fn rouse(&self, _: &Thread, duty: Duty) {
        if !matches!(duty, Duty::Serving | Duty::Displaced) {
            *self.token.lock().unwrap() = true;
            self.unparked.notify_all();
        }
        if duty != Duty::Idle {
            self.word.arm();
            self.ring();
        }
    }

    fn ring(&self) {
        if self.word.ring() {
            let _place = self.place.lock().unwrap();
            self.woken.notify_all();
        }
    }
}

/// An epoll set with the doorbell in it, and one above it.
#[derive(Debug, Default)]
pub struct Nested {
    word: Word,
    watching: AtomicBool,
    sets: Mutex<Sets>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Sets {
    /// Something in the nest can be read.
    ready: bool,
    /// The bed wakes when the nest is ready, once.
    armed: bool,
    /// The bed's own bell.
    rung: bool,
}

impl Nested {
    fn change(&self, change: impl FnOnce(&mut Sets)) {
        change(&mut self.sets.lock().unwrap());
        self.woken.notify_all();
    }
}

impl Place for Nested {
    fn alarm(&self) {
        self.change(|s| s.ready = true);
    }
}

impl Sleep for Nested {
    fn arm(&self) {
        self.word.arm();
    }

    fn disarm(&self) {
        self.word.disarm();
    }

    fn sleep(&self, _: Duration) -> bool {
        let mut s = self.sets.lock().unwrap();
        while !s.ready {
            s = self.woken.wait(s).unwrap();
        }
        true
    }

    fn wake_up(&self) {
        self.word.disarm();
        self.change(|s| s.ready = false);
    }

    fn is_shared(&self) -> bool {
        true
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
            s = self.woken.wait(s).unwrap();
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

    fn rouse(&self, _: &Thread, _: Duty) {
        self.change(|s| s.rung = true);
    }

    fn ring(&self) {
        if self.word.ring() {
            self.change(|s| s.ready = true);
        }
    }
}
