//! Noticing that other processes of this machine have ended (pidfd_open(2)).
//!
//! A process is named by its number and by when it started, because numbers are used again; and the
//! number means something only to processes of the same pid namespace.

use crate::poller::{NO_EVENT, happened};
use rustix::event::epoll;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// A process, as others may recognise it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot.
    pub started: u64,
    /// The pid namespace in which that is its number.
    pub namespace: u64,
}

impl Identity {
    /// This process; `None` if /proc is not mounted, or shows another namespace than ours.
    pub fn own() -> Option<Identity> {
        let pid = std::process::id();
        let started =
            started("self", pid).filter(|s| started(&pid.to_string(), pid) == Some(*s))?;
        let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
        Some(Identity {
            pid,
            started,
            namespace,
        })
    }
}

/// When the process `pid` started: its first thread (proc_pid_stat(5), field 22), in the directory
/// `process`. The file of the whole process has the same value, except in an emulator: qemu-user
/// makes up /proc/self/stat with a later time, and others saw a process that had ended.
fn started(process: &str, pid: u32) -> Option<u64> {
    let file = format!("/proc/{process}/task/{pid}/stat");
    let stat = crate::process::read_at_once(&file).ok()?;
    // The name of the program is in brackets, and may hold anything.
    let end = stat.iter().rposition(|&b| b == b')')?;
    let fields = std::str::from_utf8(&stat[end + 1..]).ok()?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Result of [`Ends::watch`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watched {
    /// [`Ends::take_ended`] will report when it has ended.
    Yes,
    /// It has ended already.
    Ended,
    /// Unknown: the kernel refuses, or the process is in another pid namespace.
    No,
}

/// Processes whose end is noticed. Ready for reading, in another epoll set, when one of them has
/// ended.
#[derive(Debug)]
pub struct Ends {
    epoll: OwnedFd,
    own: Option<Identity>,
    watched: Vec<(u64, OwnedFd)>,
}

impl AsFd for Ends {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Ends {
    /// An empty set.
    pub fn new() -> io::Result<Ends> {
        Ok(Ends {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            own: Identity::own(),
            watched: Vec::new(),
        })
    }

    /// This process, for others that watch it.
    pub fn own(&self) -> Option<Identity> {
        self.own
    }

    /// Whether no process is watched.
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Watches a process under a number of the caller's. Takes one descriptor.
    pub fn watch(&mut self, number: u64, who: Identity) -> Watched {
        let pid = Pid::from_raw(who.pid as i32);
        let (Some(own), Some(pid)) = (self.own, pid) else {
            return Watched::No;
        };
        if own.namespace != who.namespace {
            return Watched::No;
        }
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::SRCH) => return Watched::Ended,
            Err(_) => return Watched::No,
        };
        // The descriptor refers to the process that had the number when it was opened. If the
        // process with that number is now the intended one, it was so then.
        match started(&who.pid.to_string(), who.pid) {
            Some(started) if started == who.started => self.add(number, fd),
            Some(_) => Watched::Ended,
            None if crate::fd::is_readable(&fd) => Watched::Ended,
            None => Watched::No,
        }
    }

    fn add(&mut self, number: u64, fd: OwnedFd) -> Watched {
        let data = epoll::EventData::new_u64(number);
        match epoll::add(&self.epoll, &fd, data, epoll::EventFlags::IN) {
            Ok(()) => self.watched.push((number, fd)),
            Err(_) => return Watched::No,
        }
        Watched::Yes
    }

    /// A process that has ended; it is watched no more.
    pub fn take_ended(&mut self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let mut list = [NO_EVENT; 1];
        let ended = happened(&self.epoll, &mut list, Some(Duration::ZERO)).ok()?;
        let number = ended.first()?.data.u64();
        // Closing a descriptor takes it out of the set, unless a child of a fork holds it too.
        if let Some(i) = self.watched.iter().position(|w| w.0 == number) {
            let (_, fd) = self.watched.swap_remove(i);
            let _ = epoll::delete(&self.epoll, &fd);
        }
        Some(number)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A process that ends when its input is closed.
    fn process() -> (Child, Identity) {
        let mut cat = Command::new("cat");
        let child = cat.stdin(Stdio::piped()).spawn().unwrap();
        let started = started(&child.id().to_string(), child.id()).unwrap();
        let own = Identity::own().unwrap();
        let who = Identity {
            pid: child.id(),
            started,
            ..own
        };
        (child, who)
    }

    /// Under an emulator a rank's own start time was later than the one that others saw, and live
    /// ranks were taken for ended.
    #[test]
    fn others_see_this_process_start_when_it_says() {
        let own = Identity::own().unwrap();
        let stat = format!("/proc/{}/stat", own.pid);
        let seen = Command::new("cat").arg(stat).output().unwrap().stdout;
        let seen = String::from_utf8(seen).unwrap();
        let (_, fields) = seen.rsplit_once(')').unwrap();
        let started = fields.split_whitespace().nth(19).unwrap();
        assert_eq!(started, own.started.to_string());
    }

    #[test]
    fn the_end_of_a_process_is_noticed_once() {
        let mut ends = Ends::new().unwrap();
        let (mut child, who) = process();
        assert_eq!(ends.watch(7, who), Watched::Yes);
        assert!(ends.take_ended().is_none() && !crate::fd::is_readable(&ends));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(crate::fd::is_readable(&ends));
        assert_eq!(ends.take_ended(), Some(7));
        assert!(ends.take_ended().is_none() && ends.is_empty());
        assert!(!crate::fd::is_readable(&ends));
    }

    #[test]
    fn a_process_that_has_ended_before_and_one_that_got_its_number_are_distinguished_from_living_ones()
     {
        let mut ends = Ends::new().unwrap();
        let (mut child, who) = process();
        let later = Identity {
            started: who.started + 1,
            ..who
        };
        assert_eq!(
            ends.watch(0, later),
            Watched::Ended,
            "its number is used again"
        );
        let elsewhere = Identity {
            namespace: who.namespace + 1,
            ..who
        };
        assert_eq!(ends.watch(0, elsewhere), Watched::No);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(ends.watch(0, who), Watched::Ended);
        assert!(ends.is_empty());
    }
}
