//! epoll with a timer: a rank sleeps on it.
//!
//! A `Poller`'s own descriptor can be put into another `Poller` (level-triggered), which is how the
//! engine sleeps on several paths at once.

use kw_base::Tick;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::time::Duration;

/// Something happened to the descriptor that was added with this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The number.
    pub data: u64,
    /// It can be read, or has an error or an end to report.
    pub read: bool,
    /// It can be written.
    pub write: bool,
}

/// Interest in a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Readable.
    Read,
    /// Writable.
    Write,
    /// Either.
    Both,
    /// Only the other side's end, or a failure.
    End,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Interest::Read => epoll::EventFlags::IN | epoll::EventFlags::RDHUP,
            Interest::Write => epoll::EventFlags::OUT,
            Interest::End => epoll::EventFlags::RDHUP,
            Interest::Both => {
                epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::OUT
            }
        }
    }
}

/// Number of the poller's own timer; [`Poller::wait`] swallows its events.
const TIMER: u64 = u64::MAX;

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    alarm: Tick,
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Poller {
    /// An empty set.
    pub fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        epoll::add(
            &epoll,
            &timer,
            epoll::EventData::new_u64(TIMER),
            epoll::EventFlags::IN,
        )?;
        Ok(Poller {
            epoll,
            timer,
            alarm: Tick::NEVER,
        })
    }

    /// Adds a descriptor under a number below `u64::MAX`.
    pub fn add(&self, fd: impl AsFd, data: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(data);
        Ok(epoll::add(&self.epoll, fd, data, interest.flags())?)
    }

    /// Changes the number and the interest of a descriptor.
    pub fn change(&self, fd: impl AsFd, data: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(data);
        Ok(epoll::modify(&self.epoll, fd, data, interest.flags())?)
    }

    /// Like `change`, until an event: after it the poller ignores the descriptor until it is
    /// changed again, and its traffic does not make the kernel look for a sleeper here.
    pub fn change_once(&self, fd: impl AsFd, data: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(data);
        let flags = interest.flags() | epoll::EventFlags::ONESHOT;
        Ok(epoll::modify(&self.epoll, fd, data, flags)?)
    }

    /// Takes a descriptor out. (Closing it does the same.)
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Makes a sleep on this set end at `at` (monotonic clock); [`Tick::NEVER`] removes the alarm.
    /// Cheap if nothing changes.
    pub fn set_alarm(&mut self, at: Tick) -> io::Result<()> {
        if at == self.alarm {
            return Ok(());
        }
        let at_or_off = if at == Tick::NEVER { 0 } else { at.0.max(1) };
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spec = Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: (at_or_off / 1_000_000_000) as _,
                tv_nsec: (at_or_off % 1_000_000_000) as _,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
        self.alarm = at;
        Ok(())
    }

    /// Whether the alarm has gone off by `now`, and no thread has waited since.
    pub fn is_due(&self, now: Tick) -> bool {
        self.alarm <= now
    }

    /// Events, at most 64; waits up to `timeout` (`None`: until an event). An alarm ends the wait
    /// and gives no event. A signal ends it too.
    pub fn wait(&mut self, timeout: Option<Duration>, out: &mut Vec<Event>) -> io::Result<()> {
        out.clear();
        let mut list = [NO_EVENT; 64];
        for e in happened(&self.epoll, &mut list, timeout)? {
            if e.data.u64() == TIMER {
                self.ring()?;
                continue;
            }
            let hurt = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
            let (flags, data) = (e.flags, e.data.u64());
            out.push(Event {
                data,
                read: flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::RDHUP | hurt),
                write: flags.intersects(epoll::EventFlags::OUT | hurt),
            });
        }
        Ok(())
    }

    /// The alarm went off: clears it.
    fn ring(&mut self) -> io::Result<()> {
        let mut count = [0; 8];
        // The expiry of a timer that was reset meanwhile is ignored.
        let _ = rustix::io::read(&self.timer, &mut count);
        self.alarm = Tick::NEVER;
        Ok(())
    }
}

/// A place for an event.
pub(crate) const NO_EVENT: epoll::Event = epoll::Event {
    flags: epoll::EventFlags::empty(),
    data: epoll::EventData::new_u64(0),
};

/// `epoll_wait` without a limit, by the C library: rustix's call leaves the sixth argument of the
/// system call, which has no meaning without a fifth one, uninitialised, and valgrind complains of
/// that in every program that sleeps.
fn wait_forever(epoll: &OwnedFd, list: &mut [epoll::Event]) -> rustix::io::Result<usize> {
    let most = list.len().min(i32::MAX as usize) as i32;
    // SAFETY: the list's places are the kernel's `epoll_event`, and it has `most` of them.
    let n = unsafe { libc::epoll_wait(epoll.as_raw_fd(), list.as_mut_ptr().cast(), most, -1) };
    match usize::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => Err(
            rustix::io::Errno::from_io_error(&io::Error::last_os_error())
                .unwrap_or(rustix::io::Errno::INVAL),
        ),
    }
}

/// Longest single wait; callers wait again. Longer ones need epoll_pwait2, which Linux before 5.11
/// lacks.
const LONGEST: Duration = Duration::from_secs(1 << 20);

/// Events of an epoll set, as many as `list` has room for; waits up to `timeout`, or until a signal
/// arrives.
pub(crate) fn happened<'a>(
    epoll: &OwnedFd,
    list: &'a mut [epoll::Event],
    timeout: Option<Duration>,
) -> io::Result<&'a [epoll::Event]> {
    let n = match timeout {
        None => wait_forever(epoll, list),
        Some(d) => {
            let d = d.min(LONGEST);
            let limit = Timespec {
                tv_sec: d.as_secs() as _,
                tv_nsec: d.subsec_nanos() as _,
            };
            epoll::wait(epoll, &mut *list, Some(&limit))
        }
    };
    match n {
        Ok(n) => Ok(&list[..n]),
        Err(rustix::io::Errno::INTR) => Ok(&[]),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_one_that_every_kernel_knows() {
        assert!(i32::try_from(LONGEST.as_millis()).is_ok());
    }

    #[test]
    fn a_nested_poller_wakes_the_outer_one() {
        let (r, w) = rustix::pipe::pipe().unwrap();
        let mut inner = Poller::new().unwrap();
        inner.add(&r, 5, Interest::Read).unwrap();
        let mut outer = Poller::new().unwrap();
        outer.add(&inner, 9, Interest::Read).unwrap();
        let mut events = Vec::new();
        outer.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert!(events.is_empty());
        rustix::io::write(&w, b"x").unwrap();
        outer.wait(None, &mut events).unwrap();
        assert_eq!((events.len(), events[0].data), (1, 9));
        inner.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert_eq!((events[0].data, events[0].read), (5, true));
    }

    #[test]
    fn a_descriptor_that_is_watched_once_is_reported_once() {
        let (r, w) = rustix::pipe::pipe().unwrap();
        let mut p = Poller::new().unwrap();
        p.add(&r, 5, Interest::Read).unwrap();
        rustix::io::write(&w, b"x").unwrap();
        let mut events = Vec::new();
        for _ in 0..2 {
            p.change_once(&r, 5, Interest::Read).unwrap();
            p.wait(None, &mut events).unwrap();
            assert_eq!((events.len(), events[0].data), (1, 5));
            p.wait(Some(Duration::ZERO), &mut events).unwrap();
            assert!(events.is_empty());
        }
    }

    #[test]
    fn an_alarm_ends_a_wait_without_an_event() {
        let mut p = Poller::new().unwrap();
        p.set_alarm(crate::clock::now()).unwrap();
        let mut events = Vec::new();
        p.wait(None, &mut events).unwrap();
        assert!(events.is_empty());
        p.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert!(events.is_empty());
    }
}
