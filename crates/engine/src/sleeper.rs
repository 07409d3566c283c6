//! How a rank sleeps until something comes: in a futex when only shared memory can bring it, in
//! epoll when sockets can.
//!
//! Used without the lock; the state is all atomics and file descriptors. One thread at a time is
//! armed. The progress thread sleeps by itself: idle until it is woken, and while it polls until
//! data arrives. It does both in one place (a [`WakeSet`] in epoll), so that a thread that leaves
//! polling to it need not wake it for that.

use crate::polled::{Nap, Sleep};
use kw_path::shm;
use kw_sys::doorbell::{Doorbell, DoorbellSlot, Mode, Own};
use kw_sys::epoll_set::{EpollSet, WakeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The doorbell of this rank.
#[derive(Debug)]
pub(crate) enum Bell {
    /// No other process can ring: the rank shares memory with none.
    Own(Box<Doorbell<Own>>),
    /// In the segment that the ranks of this host share.
    Shared(Arc<shm::Doorbell>),
}

/// Object on which a thread of this rank sleeps.
#[derive(Debug)]
pub struct Sleeper {
    bell: Bell,
    /// Doorbell, sockets if there are any, and processes of this host that may end.
    epoll_set: EpollSet,
    /// The progress thread's place above the epoll set.
    wake_set: WakeSet,
    /// Where a thread in MPI sleeps for a short nap: in the epoll set when there are sockets,
    /// otherwise in the doorbell's futex.
    short: Mode,
}

impl Sleeper {
    /// Sleeps on a doorbell, on sockets if there are any, and on the ends of processes if they
    /// share memory.
    pub(crate) fn new(
        bell: Bell,
        sockets: Option<OwnedFd>,
        ends: Option<OwnedFd>,
    ) -> io::Result<Sleeper> {
        let short = match sockets {
            Some(_) => Mode::Fd,
            None => Mode::Futex,
        };
        let others: Vec<OwnedFd> = sockets.into_iter().chain(ends).collect();
        let epoll_set = bell.epoll_set(&others)?;
        let wake_set = WakeSet::new(&epoll_set)?;
        Ok(Sleeper {
            bell,
            epoll_set,
            wake_set,
            short,
        })
    }

    /// A futex is woken at less cost, but cannot be slept in together with descriptors.
    fn mode(&self, nap: Nap) -> Mode {
        match nap {
            Nap::Short => self.short,
            Nap::Long => Mode::Fd,
        }
    }
}

impl Sleep for Sleeper {
    /// A thread in MPI announces that it is about to sleep; it must poll once more afterwards.
    /// Another thread may be armed already.
    fn arm(&self, nap: Nap) {
        self.bell.arm(self.mode(nap));
    }

    /// The announcement for the progress thread's sleep while it polls, by itself or by the thread
    /// that hands over to it.
    fn arm_for_polling(&self) {
        self.bell.arm(Mode::Fd);
    }

    /// Takes the announcement back.
    fn disarm(&self) {
        match &self.bell {
            Bell::Own(b) => b.disarm(),
            Bell::Shared(b) => b.disarm(),
        }
    }

    /// Sleeps until rung, until a socket is ready, or until `timeout`; returns whether anything but
    /// `timeout` ended it. Then call `wake_up` with the lock.
    fn sleep(&self, nap: Nap, timeout: Duration) -> bool {
        match (self.mode(nap), &self.bell) {
            (Mode::Futex, Bell::Own(b)) => b.sleep(Some(timeout)),
            (Mode::Futex, Bell::Shared(b)) => b.sleep(Some(timeout)),
            (Mode::Fd, _) => self.epoll_set.sleep(timeout),
        }
    }

    /// The thread in MPI that was armed has woken: takes the announcement back, and clears the
    /// bells that rang.
    fn wake_up(&self, nap: Nap) {
        match self.mode(nap) {
            Mode::Fd => self.bell.clear(),
            Mode::Futex => self.disarm(),
        }
    }

    /// The end of the progress thread's sleep while it polls.
    fn wake_up_polling(&self) {
        self.bell.clear();
    }

    /// Lets incoming data wake the sleeping progress thread, after `arm_for_polling`.
    fn hand_over(&self) {
        if !self.wake_set.watch(&self.epoll_set) {
            self.wake_set.ring();
        }
    }

    /// Incoming data no longer wakes the progress thread. With the lock held.
    fn take_back(&self) {
        self.wake_set.unwatch(&self.epoll_set);
    }

    /// The progress thread's sleep, idle or watching: until it is roused, or `timeout`.
    fn rest(&self, timeout: Option<Duration>) {
        self.wake_set.sleep(timeout);
    }

    /// Its sleep while it polls, after `arm_for_polling`: until something comes, it is roused, or
    /// `timeout`; returns whether anything but `timeout` ended it. Then call `wake_up_polling`,
    /// with the lock and if it still polls.
    fn doze(&self, timeout: Duration) -> bool {
        match self.wake_set.watch(&self.epoll_set) {
            true => self.wake_set.sleep(Some(timeout)),
            false => self.epoll_set.sleep(timeout),
        }
    }

    /// Wakes the progress thread, wherever it sleeps.
    fn rouse(&self) {
        self.wake_set.ring();
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

    fn arm(&self, mode: Mode) -> bool {
        match self {
            Bell::Own(b) => b.arm(mode),
            Bell::Shared(b) => b.arm(mode),
        }
    }

    fn epoll_set(&self, others: &[OwnedFd]) -> io::Result<EpollSet> {
        match self {
            Bell::Own(b) => epoll_set(b, others),
            Bell::Shared(b) => epoll_set(b, others),
        }
    }

    fn clear(&self) {
        match self {
            Bell::Own(b) => b.clear(),
            Bell::Shared(b) => b.clear(),
        }
    }
}

fn epoll_set<K: AsRef<DoorbellSlot>>(
    bell: &Doorbell<K>,
    others: &[OwnedFd],
) -> io::Result<EpollSet> {
    let mut all = vec![bell.fd()?];
    all.extend(others.iter().map(AsFd::as_fd));
    EpollSet::new(&all)
}
