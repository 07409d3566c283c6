//! Sleeping on a few descriptors at once, from any thread: an epoll set that never changes.

use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// An epoll set made of other descriptors (sockets, or epoll sets themselves), level-triggered.
#[derive(Debug)]
pub struct Nest {
    epoll: OwnedFd,
}

impl Nest {
    /// Watches these for reading.
    pub fn new<F: AsFd>(fds: &[F]) -> io::Result<Nest> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (i, fd) in fds.iter().enumerate() {
            epoll::add(
                &epoll,
                fd,
                epoll::EventData::new_u64(i as u64),
                epoll::EventFlags::IN,
            )?;
        }
        Ok(Nest { epoll })
    }

    /// Sleeps until one of them is ready, a signal comes, or `timeout`.
    pub fn sleep(&self, timeout: Duration) {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 4];
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos() as _,
        };
        // Whatever ended the sleep, the caller looks at everything next.
        let _ = epoll::wait(&self.epoll, &mut events[..], Some(&timeout));
    }
}
