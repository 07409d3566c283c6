//! Sleeping on a few descriptors at once, from any thread: an epoll set that never changes, and a
//! second place to sleep above it.

use crate::poller::{NO_EVENT, happened};
use kw_base::sync::atomic::{AtomicBool, Ordering};
use rustix::event::{EventfdFlags, epoll, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// An epoll set made of other descriptors (sockets, or epoll sets themselves), level-triggered.
#[derive(Debug)]
pub struct EpollSet {
    epoll: OwnedFd,
}

impl EpollSet {
    /// Watches these for reading.
    pub fn new<F: AsFd>(fds: &[F]) -> io::Result<EpollSet> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (i, fd) in fds.iter().enumerate() {
            epoll::add(
                &epoll,
                fd,
                epoll::EventData::new_u64(i as u64),
                epoll::EventFlags::IN,
            )?;
        }
        Ok(EpollSet { epoll })
    }

    /// Sleeps until one of them is ready, a signal comes, or `timeout`; returns whether one is
    /// ready then.
    pub fn sleep(&self, timeout: Duration) -> bool {
        // After any end of the sleep, the caller checks everything next.
        !ended_by(&self.epoll, &mut [NO_EVENT; 4], Some(timeout)).is_empty()
    }
}

/// Sleep of a thread that an event in an [`EpollSet`] ends on request: `watch` requests, from any
/// thread, that the next event in the set ends its sleep. A thread that sleeps in the set itself
/// meanwhile is woken as usual.
#[derive(Debug)]
pub struct WakeSet {
    epoll: OwnedFd,
    bell: OwnedFd,
    /// The set would end the sleep.
    watching: AtomicBool,
}

/// Numbers of the two in a wake set's epoll set.
const SET: u64 = 0;
const BELL: u64 = 1;

impl WakeSet {
    /// A wake set above this set, which it does not watch yet.
    pub fn new(set: &EpollSet) -> io::Result<WakeSet> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let never = epoll::EventFlags::ONESHOT;
        epoll::add(&epoll, &set.epoll, epoll::EventData::new_u64(SET), never)?;
        let always = epoll::EventFlags::IN;
        epoll::add(&epoll, &bell, epoll::EventData::new_u64(BELL), always)?;
        Ok(WakeSet {
            epoll,
            bell,
            watching: AtomicBool::new(false),
        })
    }

    /// The next event in the set, or one that has happened and was not handled, ends the sleep. A
    /// caller that finds it watched already may find the sleeper about to wake up, so the sleeper
    /// looks for work before it sleeps again. `false`: the system refuses.
    pub fn watch(&self, set: &EpollSet) -> bool {
        self.watching.swap(true, Ordering::AcqRel) || self.ask(set, epoll::EventFlags::IN)
    }

    /// No event in the set ends the sleep any more. Not at the same time as another `unwatch` or a
    /// `watch` that counts.
    pub fn unwatch(&self, set: &EpollSet) {
        if self.watching.load(Ordering::Relaxed) && self.watching.swap(false, Ordering::AcqRel) {
            self.ask(set, epoll::EventFlags::empty());
        }
    }

    fn ask(&self, set: &EpollSet, what: epoll::EventFlags) -> bool {
        let what = what | epoll::EventFlags::ONESHOT;
        let number = epoll::EventData::new_u64(SET);
        let done = epoll::modify(&self.epoll, &set.epoll, number, what).is_ok();
        if !done {
            self.watching.store(false, Ordering::Release);
        }
        done
    }

    /// Sleeps until there is an event in the watched set, until rung, or until `timeout`; returns
    /// whether anything but `timeout` ended it.
    pub fn sleep(&self, timeout: Option<Duration>) -> bool {
        let mut list = [NO_EVENT; 2];
        let events = ended_by(&self.epoll, &mut list, timeout);
        for event in events {
            match event.data.u64() {
                SET => drop(self.watching.swap(false, Ordering::AcqRel)),
                // Remaining events would only end the next sleep.
                _ => drop(rustix::io::read(&self.bell, &mut [0; 8])),
            }
        }
        !events.is_empty()
    }

    /// Ends the sleep, or the next one.
    pub fn ring(&self) {
        // It cannot be full, and a bell that rings already need not ring again.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

/// Sleeps, and returns what ended that, including events that came after the time was up. Nothing
/// after a failure.
fn ended_by<'a>(
    epoll: &OwnedFd,
    list: &'a mut [epoll::Event],
    timeout: Option<Duration>,
) -> &'a [epoll::Event] {
    let mut look = |timeout| happened(epoll, list, timeout).map_or(0, <[_]>::len);
    let count = match look(timeout) {
        0 => look(Some(Duration::ZERO)),
        some => some,
    };
    &list[..count]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_bed_is_woken_by_its_nest_once_and_only_when_asked() {
        let (r, w) = rustix::pipe::pipe().unwrap();
        let set = EpollSet::new(&[&r]).unwrap();
        let wake_set = WakeSet::new(&set).unwrap();
        let slept_through = |wake_set: &WakeSet| {
            let now = Some(Duration::ZERO);
            happened(&wake_set.epoll, &mut [NO_EVENT; 2], now)
                .unwrap()
                .is_empty()
        };
        assert!(!set.sleep(Duration::ZERO));
        rustix::io::write(&w, b"x").unwrap();
        assert!(set.sleep(Duration::ZERO) && !wake_set.sleep(Some(Duration::ZERO)));
        assert!(slept_through(&wake_set), "no thread asked");
        assert!(wake_set.watch(&set), "what lies there already counts");
        assert!(wake_set.sleep(None));
        assert!(slept_through(&wake_set), "once");
        assert!(wake_set.watch(&set));
        wake_set.unwatch(&set);
        assert!(slept_through(&wake_set), "not any more");
        wake_set.ring();
        wake_set.sleep(None);
        assert!(slept_through(&wake_set), "a ring is heard once");
    }
}
