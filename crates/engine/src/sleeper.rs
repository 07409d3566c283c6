//! How a rank sleeps until something comes: in a futex when only shared memory can bring it, in epoll when sockets can.
//!
//! Used without the lane; the state is all atomics and file descriptors. One thread at a time is armed. The event thread sleeps by itself: off duty
//! until it is roused, on duty until something comes. Where there are sockets it does both in one place (a [`Bed`]), so that whoever gives it the duty
//! need not wake it for that.

use crate::polled::Sleep;
use kw_base::sync::thread::{self, Thread};
use kw_core::duty::Duty;
use kw_path::shm;
use kw_sys::doorbell::{Doorbell, Mode, Own, Post};
use kw_sys::nest::{Bed, Nest};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The doorbell of this rank.
#[derive(Debug)]
pub(crate) enum Bell {
    /// Nobody else can ring: the rank shares memory with no other.
    Own(Box<Doorbell<Own>>),
    /// In the segment that the ranks of this host share.
    Shared(Arc<shm::Doorbell>),
}

/// What a thread of this rank sleeps on.
#[derive(Debug)]
pub struct Sleeper {
    bell: Bell,
    /// Doorbell and sockets, when there are sockets, and the event thread's place above them.
    nest: Option<(Nest, Bed)>,
}

impl Sleeper {
    /// Sleeps on a doorbell, and on sockets if there are any.
    pub(crate) fn new(bell: Bell, sockets: Option<OwnedFd>) -> io::Result<Sleeper> {
        let nest = match sockets {
            None => None,
            Some(sockets) => {
                let nest = bell.nest(sockets)?;
                let bed = Bed::new(&nest)?;
                Some((nest, bed))
            }
        };
        Ok(Sleeper { bell, nest })
    }
}

impl Sleep for Sleeper {
    /// Announces that we are about to sleep; look once more for work afterwards. Somebody may be armed already.
    fn arm(&self) {
        let mode = if self.nest.is_some() {
            Mode::Fd
        } else {
            Mode::Futex
        };
        match &self.bell {
            Bell::Own(b) => b.arm(mode),
            Bell::Shared(b) => b.arm(mode),
        };
    }

    /// Takes the announcement back.
    fn disarm(&self) {
        match &self.bell {
            Bell::Own(b) => b.disarm(),
            Bell::Shared(b) => b.disarm(),
        }
    }

    /// Sleeps until rung, until a socket is ready, or until `timeout`; whether it was not the last. Then, with the lane: `wake_up`.
    fn sleep(&self, timeout: Duration) -> bool {
        match (&self.nest, &self.bell) {
            (None, Bell::Own(b)) => b.sleep(Some(timeout)),
            (None, Bell::Shared(b)) => b.sleep(Some(timeout)),
            (Some((nest, _)), _) => nest.sleep(timeout),
        }
    }

    /// Whoever is armed has woken: takes the announcement back, and what rang.
    fn wake_up(&self) {
        match &self.nest {
            Some(_) => self.bell.clear(),
            None => self.disarm(),
        }
    }

    /// Whether the event thread sleeps where anybody can hand it what comes.
    fn is_shared(&self) -> bool {
        self.nest.is_some()
    }

    /// Hands what comes to the event thread, which sleeps, after `arm`. For those that are shared.
    fn hand_over(&self) {
        if let Some((nest, bed)) = &self.nest
            && !bed.watch(nest)
        {
            bed.ring();
        }
    }

    /// What comes is no longer the event thread's. With the lane held.
    fn take_back(&self) {
        if let Some((nest, bed)) = &self.nest {
            bed.unwatch(nest);
        }
    }

    /// The event thread's sleep off duty: until it is roused, or `timeout`.
    fn rest(&self, timeout: Option<Duration>) {
        match (&self.nest, timeout) {
            (Some((_, bed)), timeout) => _ = bed.sleep(timeout),
            (None, None) => thread::park(),
            (None, Some(timeout)) => thread::park_timeout(timeout),
        }
    }

    /// Its sleep on duty, after `arm`; as [`Sleeper::sleep`]. Then, with the lane and if it is still on duty: `wake_up`.
    fn doze(&self, timeout: Duration) -> bool {
        match &self.nest {
            Some((nest, bed)) if bed.watch(nest) => bed.sleep(Some(timeout)),
            _ => self.sleep(timeout),
        }
    }

    /// Wakes the event thread, which has this duty.
    fn rouse(&self, event_thread: &Thread, duty: Duty) {
        if let Some((_, bed)) = &self.nest {
            return bed.ring();
        }
        if !matches!(duty, Duty::Serving | Duty::Displaced) {
            event_thread.unpark();
        }
        if duty != Duty::Idle {
            self.arm();
            self.ring();
        }
    }

    /// Wakes the thread that sleeps, if one does.
    fn ring(&self) {
        match &self.bell {
            Bell::Own(b) => b.ring_self(),
            Bell::Shared(b) => b.ring_self(),
        };
    }
}

impl Bell {
    /// A bell that only threads of this rank can ring.
    pub(crate) fn own() -> Bell {
        Bell::Own(Box::new(Doorbell::alone()))
    }

    fn nest(&self, sockets: OwnedFd) -> io::Result<Nest> {
        match self {
            Bell::Own(b) => nest(b, sockets),
            Bell::Shared(b) => nest(b, sockets),
        }
    }

    fn clear(&self) {
        match self {
            Bell::Own(b) => b.clear(),
            Bell::Shared(b) => b.clear(),
        }
    }
}

fn nest<K: AsRef<Post>>(bell: &Doorbell<K>, sockets: OwnedFd) -> io::Result<Nest> {
    let own: BorrowedFd<'_> = bell.fd()?;
    Nest::new(&[own, std::os::fd::AsFd::as_fd(&sockets)])
}
