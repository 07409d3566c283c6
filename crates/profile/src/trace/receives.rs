//! Receives that are posted and not complete, and the numbers of their messages.
//!
//! Messages of a kind (source, tag, communicator) go to matching receives in the order in which
//! these were posted (MPI 5.0, 3.5). So the number of a message is known once the messages of all
//! earlier receives are known that would have accepted it, too. A receive that completes earlier
//! than one of these waits here for it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::comms::Comm;
use super::counts::Quintuple;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use kw_base::sync::{Mutex, MutexGuard, OnceLock};
use kw_start::trace::{ANY, NONE, Record};

/// Number of earlier receives that are examined; messages after more of them have no number.
const FAR: usize = 4096;
/// No entry.
const NOBODY: u32 = u32::MAX;

/// Number of entries, persistent requests and matched messages, and whether numbers have become
/// uncertain: no lookup while it is 0.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Whether a lookup is needed.
#[inline(always)]
pub(super) fn any() -> bool {
    // SYNC: a thread that waits for a request has been synchronised by other means.
    OPEN.load(Ordering::Relaxed) != 0
}

/// Envelope that a receive accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub comm: &'static Comm,
    /// Rank in MPI_COMM_WORLD, or [`ANY`].
    pub source: i32,
    pub tag: i32,
}

impl Wanted {
    #[inline(always)]
    fn takes(&self, comm: &Comm, source: i32, tag: i32) -> bool {
        std::ptr::eq(self.comm, comm)
            && (self.source == ANY || self.source == source)
            && (self.tag == ANY || self.tag == tag)
    }
}

/// A persistent request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Persistent {
    Send {
        comm: &'static Comm,
        dest: i32,
        tag: i32,
        bytes: u64,
    },
    Receive(Wanted),
}

/// A posted receive.
#[derive(Debug)]
struct Entry {
    wanted: Wanted,
    /// Time when it was posted.
    posted: u64,
    /// Number of its message, if a probe has determined it.
    matched: Option<u64>,
    /// Its message, once it has completed.
    got: Option<Record>,
    before: u32,
    behind: u32,
}

/// Handles are numbers or addresses of this process: they are not chosen by an attacker.
#[derive(Clone, Copy, Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_usize(usize::from(*b)));
    }

    #[inline(always)]
    fn write_usize(&mut self, n: usize) {
        let n = (self.0 ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = n ^ n >> 32;
    }
}

type Handles<T> = HashMap<usize, T, BuildHasherDefault<Mix>>;

/// All entries of the process.
#[derive(Debug)]
pub(super) struct Receives {
    entries: Vec<Entry>,
    free: Vec<u32>,
    first: u32,
    last: u32,
    requests: Handles<u32>,
    persistent: Handles<Persistent>,
    messages: Handles<(Wanted, u64)>,
    /// Entries that have completed and wait for others.
    waiting: usize,
    /// Whether a receive has ended with an unknown message.
    broken: bool,
}

pub(super) fn all() -> MutexGuard<'static, Receives> {
    static ALL: OnceLock<Mutex<Receives>> = OnceLock::new();
    let all = ALL.get_or_init(|| Mutex::new(Receives::new()));
    all.lock().unwrap_or_else(|e| e.into_inner())
}

/// The number of a message of a receive that no earlier receive precedes.
#[inline(always)]
pub(super) fn number(comm: &Comm, source: i32, tag: i32) -> u64 {
    Quintuple::new(false, comm.number, source, tag).next()
}

impl Receives {
    fn new() -> Receives {
        Receives {
            entries: Vec::new(),
            free: Vec::new(),
            first: NOBODY,
            last: NOBODY,
            requests: Handles::default(),
            persistent: Handles::default(),
            messages: Handles::default(),
            waiting: 0,
            broken: false,
        }
    }

    fn count(&self) {
        let open = self.entries.len() - self.free.len();
        let all = open + self.persistent.len() + self.messages.len() + usize::from(self.broken);
        OPEN.store(all, Ordering::Relaxed);
    }

    /// Adds a posted receive; returns its entry.
    pub fn post(&mut self, wanted: Wanted, posted: u64, matched: Option<u64>) -> u32 {
        let entry = Entry {
            wanted,
            posted,
            matched,
            got: None,
            before: self.last,
            behind: NOBODY,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        match self.last {
            NOBODY => self.first = at,
            last => self.entries[last as usize].behind = at,
        }
        self.last = at;
        self.count();
        at
    }

    /// Adds a receive with its request.
    pub fn post_request(
        &mut self,
        request: usize,
        wanted: Wanted,
        posted: u64,
        matched: Option<u64>,
    ) {
        let at = self.post(wanted, posted, matched);
        if let Some(old) = self.requests.insert(request, at) {
            self.lose(old); // it was completed unobserved
        }
    }

    /// The receive of a request.
    pub fn take(&mut self, request: usize) -> Option<u32> {
        self.requests.remove(&request)
    }

    /// Whether a request has a receive.
    pub fn has(&self, request: usize) -> bool {
        self.requests.contains_key(&request)
    }

    /// Completes a receive. Messages that are now known go to `out`.
    pub fn complete(&mut self, at: u32, mut got: Record, out: &mut Vec<Record>) {
        let entry = &mut self.entries[at as usize];
        got.end = entry.posted.max(1);
        if self.is_held(at, &got) {
            self.entries[at as usize].got = Some(got);
            self.waiting += 1;
            return;
        }
        self.tell(at, got, out);
        if self.waiting > 0 {
            self.tell_others(out);
        }
    }

    /// Handles a cancelled receive.
    pub fn cancelled(&mut self, at: u32, out: &mut Vec<Record>) {
        self.remove(at);
        self.tell_others(out);
    }

    /// Handles a receive whose message will remain unknown: numbers are no longer certain.
    pub fn lose(&mut self, at: u32) {
        self.broken = true;
        self.remove(at);
    }

    /// Handles the end: waiting entries get no number.
    pub fn end(&mut self, out: &mut Vec<Record>) {
        let mut at = self.first;
        while at != NOBODY {
            let behind = self.entries[at as usize].behind;
            if let Some(got) = self.entries[at as usize].got {
                out.push(got);
                self.waiting -= 1;
                self.remove(at);
            }
            at = behind;
        }
    }

    /// Completed entries that the last one has delayed, in their order.
    fn tell_others(&mut self, out: &mut Vec<Record>) {
        let mut at = self.first;
        while self.waiting > 0 && at != NOBODY {
            let behind = self.entries[at as usize].behind;
            if let Some(got) = self.entries[at as usize].got {
                if !self.is_held(at, &got) {
                    self.waiting -= 1;
                    self.tell(at, got, out);
                }
            }
            at = behind;
        }
    }

    /// Whether an earlier receive may have taken an earlier message of the kind.
    fn is_held(&self, at: u32, got: &Record) -> bool {
        let this = &self.entries[at as usize];
        if this.matched.is_some() {
            return false;
        }
        let mut other = this.before;
        for _ in 0..FAR {
            if other == NOBODY {
                return false;
            }
            let entry = &self.entries[other as usize];
            let wanted = match &entry.got {
                None => entry.wanted,
                Some(got) => Wanted {
                    source: got.source,
                    tag: got.tag,
                    ..entry.wanted
                },
            };
            if entry.matched.is_none() && wanted.takes(this.wanted.comm, got.source, got.tag) {
                return true;
            }
            other = entry.before;
        }
        Quintuple::new(false, this.wanted.comm.number, got.source, got.tag).give_up();
        false
    }

    fn tell(&mut self, at: u32, mut got: Record, out: &mut Vec<Record>) {
        let entry = &self.entries[at as usize];
        got.n = match entry.matched {
            Some(n) => n,
            None => number(entry.wanted.comm, got.source, got.tag),
        };
        if self.broken {
            got.n = NONE;
        }
        out.push(got);
        self.remove(at);
    }

    fn remove(&mut self, at: u32) {
        let Entry { before, behind, .. } = self.entries[at as usize];
        match before {
            NOBODY => self.first = behind,
            b => self.entries[b as usize].behind = behind,
        }
        match behind {
            NOBODY => self.last = before,
            b => self.entries[b as usize].before = before,
        }
        self.entries[at as usize].got = None;
        self.free.push(at);
        self.count();
    }

    /// The communicator of a receive.
    pub fn comm(&self, at: u32) -> &'static Comm {
        self.entries[at as usize].wanted.comm
    }

    /// Sets the time when a receive was posted, which was not known before.
    pub fn set_posted(&mut self, at: u32, posted: u64) {
        self.entries[at as usize].posted = posted;
    }

    /// The number of a message that was found and not received yet; [`NONE`] if it depends on
    /// earlier receives.
    pub fn number_of(&mut self, at: u32, got: Record, out: &mut Vec<Record>) -> u64 {
        let comm = self.comm(at);
        let kind = Quintuple::new(false, comm.number, got.source, got.tag);
        let n = match self.is_held(at, &got) {
            true => {
                kind.give_up();
                NONE
            }
            false => kind.next(),
        };
        self.remove(at);
        self.tell_others(out);
        n
    }

    /// Notes that no number is certain any more.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn add_persistent(&mut self, request: usize, what: Persistent) {
        self.persistent.insert(request, what);
        self.count();
    }

    pub fn persistent(&self, request: usize) -> Option<Persistent> {
        self.persistent.get(&request).copied()
    }

    /// Handles a freed request: returns whether a receive was in flight for it.
    pub fn free_request(&mut self, request: usize) {
        if let Some(at) = self.requests.remove(&request) {
            self.lose(at);
        }
        self.persistent.remove(&request);
        self.count();
    }

    /// Notes a found message that MPI_Mrecv will receive.
    pub fn add_message(&mut self, message: usize, wanted: Wanted, n: u64) {
        self.messages.insert(message, (wanted, n));
        self.count();
    }

    pub fn take_message(&mut self, message: usize) -> Option<(Wanted, u64)> {
        let found = self.messages.remove(&message);
        self.count();
        found
    }
}

#[cfg(test)]
mod tests;
