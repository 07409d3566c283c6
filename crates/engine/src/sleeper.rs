//! How a rank sleeps until something comes: in a futex when only shared memory can bring it, in epoll when sockets can.
//!
//! Used without the lane; the state is all atomics and file descriptors. One thread at a time is armed.

use kw_path::shm;
use kw_sys::doorbell::{Doorbell, Mode, Own, Post};
use kw_sys::nest::Nest;
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
    /// Doorbell and sockets, when there are sockets.
    nest: Option<Nest>,
}

impl Sleeper {
    /// Sleeps on a doorbell, and on sockets if there are any.
    pub(crate) fn new(bell: Bell, sockets: Option<OwnedFd>) -> io::Result<Sleeper> {
        let nest = match sockets {
            None => None,
            Some(sockets) => Some(bell.nest(sockets)?),
        };
        Ok(Sleeper { bell, nest })
    }

    /// Announces that we are about to sleep; look once more for work afterwards. `false`: somebody is armed already.
    pub fn arm(&self) -> bool {
        let mode = if self.nest.is_some() {
            Mode::Fd
        } else {
            Mode::Futex
        };
        match &self.bell {
            Bell::Own(b) => b.arm(mode),
            Bell::Shared(b) => b.arm(mode),
        }
    }

    /// Takes the announcement back.
    pub fn disarm(&self) {
        match &self.bell {
            Bell::Own(b) => b.disarm(),
            Bell::Shared(b) => b.disarm(),
        }
    }

    /// Sleeps until rung, until a socket is ready, or until `timeout`.
    pub fn sleep(&self, timeout: Duration) {
        match (&self.nest, &self.bell) {
            (None, Bell::Own(b)) => b.sleep(Some(timeout)),
            (None, Bell::Shared(b)) => b.sleep(Some(timeout)),
            (Some(n), bell) => {
                n.sleep(timeout);
                bell.clear();
            }
        }
    }

    /// Wakes the thread that sleeps, if one does.
    pub fn ring(&self) {
        match &self.bell {
            Bell::Own(b) => b.ring_self(),
            Bell::Shared(b) => b.ring_self(),
        };
    }
}

impl Bell {
    /// A bell that only threads of this rank can ring.
    pub(crate) fn own() -> Bell {
        Bell::Own(Box::new(Doorbell::new(Own::default())))
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
