//! The doorbell: how a rank sleeps until another rank (or another thread of its own) has something
//! for it.
//!
//! One word in shared memory says whether the rank is awake (0), sleeps in a futex (1) or sleeps in
//! epoll with the doorbell's socket in the set (2). The contract of the sleeper: drain everything,
//! [`Doorbell::arm`], drain again, sleep (or [`Doorbell::disarm`] when the second drain found
//! something). A ringer publishes its data, fences ([`FenceGroup::fence`]) and calls
//! [`Ringer::ring`], which costs a load while the other side is awake. Between arm and ring one of
//! the two always sees the other: that is the pair `// SYNC: doorbell`. The sleeper pays for both
//! ([`membarrier`]), unless ringers fence by themselves ([`Doorbell::ringers_fence`]).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

use kw_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use kw_base::sync::compiler_fence;

use crate::{futex, membarrier, unix};

/// How the owner is going to sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In [`Doorbell::sleep`].
    Futex = 1,
    /// In epoll or poll on [`Doorbell::fd`].
    Fd = 2,
}

const AWAKE: u32 = 0;
const NAME: usize = 32;

/// The shared part: two cache lines of the rank's block in the segment.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct DoorbellSlot {
    word: AtomicU32,
    _line: [u32; 15],
    name: [AtomicU64; NAME / 8],
    _rest: [u64; 4],
}

impl Default for DoorbellSlot {
    fn default() -> DoorbellSlot {
        DoorbellSlot {
            word: AtomicU32::new(AWAKE),
            _line: [0; 15],
            name: Default::default(),
            _rest: [0; 4],
        }
    }
}

impl DoorbellSlot {
    fn set_name(&self, name: &[u8]) {
        let mut bytes = [0; NAME];
        bytes[..name.len()].copy_from_slice(name);
        for (word, b) in self.name.iter().zip(bytes.chunks_exact(8)) {
            // Published by the store of the word in `arm`.
            word.store(
                u64::from_le_bytes(b.try_into().unwrap_or_default()),
                Ordering::Relaxed,
            );
        }
    }

    fn name(&self) -> ([u8; NAME], usize) {
        let mut bytes = [0; NAME];
        for (word, b) in self.name.iter().zip(bytes.chunks_exact_mut(8)) {
            b.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        let len = bytes.iter().position(|&b| b == 0).unwrap_or(NAME);
        (bytes, len)
    }
}

/// Members that may wake each other, in memory that all of them share; all zeroes is an empty
/// group.
#[derive(Debug, Default)]
pub struct FenceGroup {
    /// Members that a sleeper can make execute a fence.
    light: AtomicU32,
}

impl FenceGroup {
    /// Joins; once for each member.
    pub fn join(&self) {
        if membarrier::register() {
            self.light.fetch_add(1, Ordering::Release);
        }
    }

    /// Orders earlier stores before the loads that follow, as seen by a sleeper that arms its
    /// doorbell. `members`: how many there will be.
    #[inline(always)]
    pub fn fence(&self, members: u32) {
        // SYNC: doorbell.
        if self.light.load(Ordering::Relaxed) == members {
            compiler_fence();
        } else {
            fence(Ordering::SeqCst);
        }
    }
}

/// The side of the ringers: one per process.
#[derive(Debug)]
pub struct Ringer {
    socket: OnceLock<Option<OwnedFd>>,
}

impl Default for Ringer {
    fn default() -> Ringer {
        Ringer::new()
    }
}

impl Ringer {
    /// Opens nothing until a member has to be woken through a socket.
    pub const fn new() -> Ringer {
        Ringer {
            socket: OnceLock::new(),
        }
    }

    /// Wakes the owner of `post` if it sleeps. Everything stored before the last fence is seen by
    /// it. Returns whether it slept.
    #[inline(always)]
    pub fn ring(&self, post: &DoorbellSlot) -> bool {
        if post.word.load(Ordering::Relaxed) == AWAKE {
            return false;
        }
        self.wake(post)
    }

    #[cold]
    fn wake(&self, post: &DoorbellSlot) -> bool {
        match post.word.swap(AWAKE, Ordering::AcqRel) {
            AWAKE => return false,
            1 => futex::wake(&post.word),
            _ => {
                let (name, len) = post.name();
                let socket = self.socket.get_or_init(|| unix::datagram().ok());
                if let Some(socket) = socket {
                    unix::poke(socket.as_fd(), &name[..len]);
                }
            }
        }
        true
    }
}

/// The side of the sleeper. Threads of one rank share it; only one may be armed at a time.
#[derive(Debug)]
pub struct Doorbell<K: AsRef<DoorbellSlot>> {
    post: K,
    /// Ringers have executed a fence.
    ringers_fence: AtomicBool,
    socket: OnceLock<OwnedFd>,
    ringer: Ringer,
}

impl Doorbell<Own> {
    /// A doorbell for threads of this process.
    pub fn alone() -> Doorbell<Own> {
        let bell = Doorbell::new(Own::default());
        bell.ringers_fence();
        bell
    }
}

impl<K: AsRef<DoorbellSlot>> Doorbell<K> {
    /// The doorbell whose shared part `post` refers to.
    pub fn new(post: K) -> Doorbell<K> {
        Doorbell {
            post,
            ringers_fence: AtomicBool::new(false),
            socket: OnceLock::new(),
            ringer: Ringer::new(),
        }
    }

    fn doorbell_slot(&self) -> &DoorbellSlot {
        self.post.as_ref()
    }

    /// All who ring execute a fence by themselves: this rank has not joined their [`FenceGroup`],
    /// or they are threads of its process.
    pub fn ringers_fence(&self) {
        self.ringers_fence.store(true, Ordering::Relaxed);
    }

    /// Announces that this rank is about to sleep. `false`: another thread of this rank is armed
    /// already. For [`Mode::Fd`], call [`Doorbell::fd`] first.
    pub fn arm(&self, mode: Mode) -> bool {
        let armed = self
            .doorbell_slot()
            .word
            .compare_exchange(AWAKE, mode as u32, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok();
        // SYNC: doorbell. Keeps the second drain's loads behind the word's store, and does the same
        // for all ringers, unless they do it.
        match self.ringers_fence.load(Ordering::Relaxed) {
            true => fence(Ordering::SeqCst),
            false => membarrier::fence_all(),
        }
        armed
    }

    /// Takes the announcement back.
    pub fn disarm(&self) {
        self.doorbell_slot().word.store(AWAKE, Ordering::Release);
    }

    /// Whether a member is armed and has not been rung.
    pub fn is_armed(&self) -> bool {
        self.doorbell_slot().word.load(Ordering::Relaxed) != AWAKE
    }

    /// Sleeps until rung or until `timeout` (after `arm(Mode::Futex)` and a second drain); returns
    /// whether it was rung. A thread that is still the sleeper disarms afterwards: another thread
    /// may have armed meanwhile.
    pub fn sleep(&self, timeout: Option<Duration>) -> bool {
        let word = &self.doorbell_slot().word;
        while word.load(Ordering::Acquire) == Mode::Futex as u32 {
            // After a signal or the time-out the caller checks everything and comes back.
            if !futex::wait(word, Mode::Futex as u32, timeout) {
                return false;
            }
        }
        true
    }

    /// The socket to watch for reading; made on the first call. After waking, call
    /// [`Doorbell::clear`].
    pub fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(fd) = self.socket.get() {
            return Ok(fd.as_fd());
        }
        let (fd, name) = unix::datagram_bound()?;
        let kept = self.socket.get_or_init(|| {
            self.doorbell_slot().set_name(&name);
            fd
        });
        Ok(kept.as_fd())
    }

    /// Awake again after epoll: takes the announcement back and throws away the datagrams.
    pub fn clear(&self) {
        self.disarm();
        if let Some(fd) = self.socket.get() {
            unix::drain(fd.as_fd());
        }
    }

    /// Wakes the sleeping thread of this rank, if there is one.
    pub fn ring_self(&self) -> bool {
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
        self.ringer.ring(self.doorbell_slot())
    }
}

/// A doorbell slot in private memory, for a rank that shares no segment.
#[derive(Debug, Default)]
pub struct Own(Box<DoorbellSlot>);

impl AsRef<DoorbellSlot> for Own {
    fn as_ref(&self) -> &DoorbellSlot {
        &self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_armed_sleeper_is_woken_by_either_means() {
        let bell = Arc::new(Doorbell::alone());
        assert!(!bell.ring_self(), "no thread sleeps");
        assert!(bell.arm(Mode::Futex));
        assert!(!bell.arm(Mode::Futex), "one sleeper at a time");
        let other = bell.clone();
        let thread = std::thread::spawn(move || other.sleep(None));
        assert!(bell.ring_self());
        thread.join().unwrap();

        let fd = bell.fd().unwrap();
        assert!(bell.arm(Mode::Fd));
        assert!(bell.ring_self());
        let mut set = [rustix::event::PollFd::new(
            &fd,
            rustix::event::PollFlags::IN,
        )];
        assert_eq!(rustix::event::poll(&mut set, None), Ok(1));
        bell.clear();
        assert!(!bell.is_armed());
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use kw_base::sync::{Arc, thread};

    /// A sleeper that misses the data in its second drain has been rung once the ringer is done.
    #[test]
    fn a_sleeper_that_saw_nothing_is_rung() {
        loom::model(|| {
            let bell = Arc::new(Doorbell::new(Own::default()));
            let data = Arc::new(AtomicU32::new(0));
            let (to, sent) = (bell.clone(), data.clone());
            let ringer = thread::spawn(move || {
                sent.store(1, Ordering::Release);
                FenceGroup::default().fence(1);
                Ringer::new().ring(to.doorbell_slot());
            });
            bell.arm(Mode::Futex);
            let saw = data.load(Ordering::Acquire) == 1;
            ringer.join().unwrap();
            assert!(saw || !bell.is_armed(), "asleep with data under its pillow");
        });
    }
}
