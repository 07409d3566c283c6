//! Trace records of each call (`mpiexec --trace`): a record with its arguments, and one for each
//! further message that it sent or received, in the thread's ring ([`ring`]).
//!
//! Before the call its arguments are examined ([`Tracer::prepare`]) and its record is started; just
//! before it begins the record gets its time, which makes it visible ([`Tracer::open`]); after it
//! the results are added ([`Tracer::close`]). Most calls of most programs are of few kinds, for
//! which this is quick; all others are [`general`]. If a program ignores a status, the library
//! still writes one for the recorder. Unknown values are left out: a handle is never queried unless
//! the call has accepted it.

pub(crate) mod abi;
pub(crate) mod act;
mod comms;
mod counts;
mod general;
pub(crate) mod library;
mod receives;
pub(crate) mod ring;
mod topology;

use std::ffi::c_int;

use crate::next;
use abi::{Abi, STATUS};
use act::{Act, What};
use comms::{Comm, Seen};
use counts::Quintuple;
use kw_base::sync::OnceLock;
use kw_start::trace::*;
use library::Sums;
use receives::Wanted;
use ring::{Memory, Ring};

/// A thread's trace.
#[derive(Debug)]
pub(crate) struct Tracer {
    memory: Memory,
    ring: Ring,
    /// The number of the thread, at its position in a record.
    thread: u64,
    abi: &'static Abi,
    seen: Seen,
    /// Whether the call in flight needs more work at its end than other calls of its kind.
    slow: bool,
    comm: Option<&'static Comm>,
    /// Source of its receive: a rank in MPI_COMM_WORLD, or [`ANY`].
    source: i32,
    /// Entry of its receive, if others are posted.
    posted: Option<u32>,
    /// A message that it receives: its envelope and its number.
    message: Option<(Wanted, u64)>,
    /// Its requests as they were before the call.
    handles: Vec<usize>,
    /// Entries of their receives, if all of them will have ended.
    places: Vec<Option<u32>>,
    /// Whether they are looked up after the call.
    looked: bool,
    statuses: Statuses,
    /// Records that follow that of the call.
    more: Vec<Record>,
    /// Sums of the library, in the thread that has initialised MPI.
    sums: Option<Box<Sums>>,
    /// Ticks when they are next read.
    look_at: u64,
}

/// Memory to which the library writes the statuses of the call in flight.
#[derive(Debug)]
struct Statuses {
    /// Its address.
    at: usize,
    /// Memory for a program that ignores them.
    own: Vec<[u64; STATUS / 8]>,
}

impl Statuses {
    fn new() -> Statuses {
        Statuses {
            at: 0,
            own: vec![[0; STATUS / 8]],
        }
    }

    /// The address for one status; `given`: what the program passes.
    #[inline(always)]
    fn one(&mut self, abi: &Abi, given: usize) -> usize {
        self.at = match given == abi.ignore {
            true => self.own.as_mut_ptr() as usize,
            false => given,
        };
        self.at
    }

    /// The address for an array of them.
    #[inline(always)]
    fn several(&mut self, abi: &Abi, given: usize, count: usize) -> usize {
        let words = (count * abi.status.bytes).div_ceil(STATUS);
        if given == abi.ignore && self.own.len() < words {
            self.own.resize(words, [0; STATUS / 8]);
        }
        self.one(abi, given)
    }
}

/// The ABI of the library in use.
#[cold]
fn library() -> &'static Abi {
    static ABI: OnceLock<Abi> = OnceLock::new();
    ABI.get_or_init(|| {
        let module = next::module_of(next::find(c"PMPI_Type_size_c"));
        Abi::of(&module.unwrap_or_default())
    })
}

/// The word [`Record::WHAT`] of a call of this function from this row.
#[inline(always)]
pub(crate) fn what(function: u32, row: usize) -> u64 {
    const CALL: u64 = Kind::Call.number() as u64;
    u64::from(function) | CALL << 16 | (row as u64) << 32
}

const NOBODY: u32 = ABSENT as u32;

impl Tracer {
    pub fn new(memory: Memory, number: usize) -> Tracer {
        let pid = u64::from(std::process::id());
        let word = memory.word(PID);
        word.store(pid, kw_base::sync::atomic::Ordering::Relaxed);
        let empty = Record {
            function: 0,
            kind: 0,
            thread: number as u16,
            ..Record::EMPTY
        };
        Tracer {
            memory,
            ring: Ring::new(memory, number),
            thread: empty.what(),
            abi: library(),
            seen: Seen::new(),
            slow: false,
            comm: None,
            source: ABSENT,
            posted: None,
            message: None,
            handles: Vec::new(),
            places: Vec::new(),
            looked: false,
            statuses: Statuses::new(),
            more: Vec::new(),
            sums: None,
            look_at: u64::MAX,
        }
    }

    /// Examines the arguments and begins the record; `what`: its word of this name. `status` is
    /// where the program wants statuses; returns where the library must write them.
    #[inline(always)]
    pub fn prepare(&mut self, act: impl Fn() -> Act, what: u64, status: usize) -> usize {
        let a = act();
        match a.what {
            What::Plain if a.collective => self.collective(a.comm, a.root, what),
            What::Plain => self.plain(a.comm, what),
            What::Window => self.window(&a, what),
            What::Send => self.send(a.comm, a.dest, a.tag, what),
            // if no receive is posted, a receive has its message in its own record
            What::Recv if !receives::any() => {
                return self.recv(a.comm, a.source, a.tag, what, status);
            }
            _ => return self.general(&act(), what, status),
        }
        status
    }

    /// The communicator of a call, if it has one and it is known.
    #[inline(always)]
    fn see(&mut self, comm: usize) -> Option<&'static Comm> {
        if comm == 0 {
            self.slow = false;
            return None;
        }
        let found = self.seen.find(self.abi.handle(comm));
        self.slow = found.is_none();
        found
    }

    #[inline(never)]
    fn plain(&mut self, comm: usize, what: u64) {
        let comm = self.see(comm);
        let number = comm.map_or(0, |c| c.number);
        let tag = two(NOBODY, number);
        let what = what | self.thread;
        self.ring.open(what, two(NOBODY, NOBODY), tag, NONE, 0);
        self.comm = comm;
    }

    /// The window of a handle, if it is known.
    #[inline(always)]
    fn see_window(&mut self, win: usize) -> Option<&'static Comm> {
        self.seen.find(comms::of_window(self.abi.handle(win)))
    }

    /// A call on a window.
    #[inline(never)]
    fn window(&mut self, act: &Act, mut what: u64) {
        let (mut peer, mut number, mut n) = (act.dest, 0, NONE);
        self.comm = self.see_window(act.win);
        self.slow = false;
        if let Some(win) = self.comm.filter(|w| w.number != 0) {
            number = win.number;
            peer = win.world_of(self.abi, act.dest);
            if act.collective {
                n = win.next_collective();
                what |= u64::from(COLLECTIVE) << 24;
            }
        }
        if peer != ABSENT {
            what |= u64::from(TARGET) << 24;
        }
        let what = what | self.thread;
        let (ranks, tag) = (two(peer as u32, NOBODY), two(NOBODY, number));
        let lock = self.abi.lock(act.tag);
        self.ring.open(what, ranks, tag, n, two(0, lock as u32));
    }

    #[inline(never)]
    fn collective(&mut self, comm: usize, root: c_int, mut what: u64) {
        let (mut peer, mut number, mut n) = (ABSENT, 0, NONE);
        self.comm = self.see(comm);
        if let Some(comm) = self.comm {
            number = comm.number;
            n = comm.next_collective();
            what |= u64::from(COLLECTIVE) << 24;
            if root >= 0 {
                what |= u64::from(ROOT) << 24;
                peer = comm.world(root);
            }
        }
        let what = what | self.thread;
        let (ranks, tag) = (two(peer as u32, NOBODY), two(NOBODY, number));
        self.ring.open(what, ranks, tag, n, 0);
    }

    #[inline(never)]
    fn send(&mut self, comm: usize, dest: c_int, tag: c_int, what: u64) {
        let (mut peer, mut known_tag, mut number, mut n) = (ABSENT, ABSENT, 0, NONE);
        self.comm = self.see(comm);
        if let Some(comm) = self.comm {
            number = comm.number;
            known_tag = tag;
            peer = comm.world_of(self.abi, dest);
            if peer != ABSENT {
                n = Quintuple::new(true, number, peer, tag).next();
            }
        }
        let what = what | self.thread;
        let (ranks, tag) = (two(peer as u32, NOBODY), two(known_tag as u32, number));
        self.ring.open(what, ranks, tag, n, 0);
    }

    #[inline(never)]
    fn recv(
        &mut self,
        comm: usize,
        source: c_int,
        tag: c_int,
        mut what: u64,
        status: usize,
    ) -> usize {
        let (mut from, mut known_tag, mut number) = (ABSENT, ABSENT, 0);
        let comm = self.see(comm);
        if let Some(comm) = comm {
            number = comm.number;
            from = comm.source(self.abi, source);
            known_tag = self.abi.tag(tag);
            if from != ABSENT && number != 0 {
                what |= u64::from(TAKES) << 24;
            }
        }
        self.comm = comm;
        self.source = from;
        self.posted = None;
        let what = what | self.thread;
        let (ranks, tag) = (two(NOBODY, from as u32), two(known_tag as u32, number));
        self.ring.open(what, ranks, tag, NONE, 0);
        self.statuses.one(self.abi, status)
    }

    /// Notes the start of the call.
    #[inline(always)]
    pub fn open(&mut self, begin: u64) {
        self.ring.set(Record::BEGIN, begin);
    }

    /// Notes the end of the call; `good`: it succeeded, so `bytes` can be asked.
    #[inline(always)]
    pub fn close(&mut self, act: impl Fn() -> Act, good: bool, end: u64, bytes: Option<u64>) {
        let bytes = bytes.unwrap_or(NONE);
        match act().what {
            What::Plain | What::Send | What::Window if good && !self.slow => {
                self.finish(end, bytes)
            }
            What::Recv if good && !self.slow => self.took(end, bytes),
            _ => self.close_general(&act(), good, end, bytes),
        }
    }

    /// Notes that an exception of the program has ended the call.
    #[cold]
    pub fn leave(&mut self, end: u64) {
        self.failed();
        self.finish(end, NONE);
    }

    /// Publishes the complete record.
    #[inline(never)]
    fn finish(&mut self, end: u64, bytes: u64) {
        self.ring.close(end, bytes);
        if !self.more.is_empty() || library::is_pending() || end >= self.look_at {
            self.push_more(end);
        }
        self.ring.publish();
    }

    /// Data after the record of the call: messages, and notes of the library.
    #[cold]
    #[inline(never)]
    fn push_more(&mut self, end: u64) {
        if library::is_pending() {
            library::take(self.number(), &mut self.more);
        }
        if end >= self.look_at {
            self.look(end, false);
        }
        self.more.iter().for_each(|r| self.ring.push(r));
        self.more.clear();
    }

    /// Reads the sums.
    fn look(&mut self, ticks: u64, always: bool) {
        let thread = self.number();
        if let Some(sums) = &mut self.sums {
            let records = sums.look(ticks, always).into_iter().flatten();
            self.more.extend(records.map(|r| Record { thread, ..r }));
            self.look_at = sums.next;
        }
    }

    /// Handles the end of a receive that no earlier receive precedes.
    #[inline(never)]
    fn took(&mut self, end: u64, bytes: u64) {
        let what = self.ring.get(Record::WHAT);
        let (true, Some(comm)) = (what & u64::from(TAKES) << 24 != 0, self.comm) else {
            return self.finish(end, bytes);
        };
        // SAFETY: the call has succeeded, and has written here.
        let received = unsafe { self.abi.received(self.statuses.at) };
        let from = comm.world(received.source);
        let n = receives::number(comm, from, received.tag);
        match u32::try_from(received.bytes) {
            Ok(bytes) => {
                let ranks = two(from as u32, self.source as u32);
                self.ring.set(Record::RANKS, ranks);
                self.ring.set(Record::N, n);
                self.ring.set(Record::MORE, two(bytes, received.tag as u32));
            }
            Err(_) => self.took_much(
                comm,
                Record {
                    n,
                    ..self.got(comm, received, end)
                },
            ),
        }
        self.finish(end, bytes);
    }

    /// A message whose size does not fit into the record of the call.
    #[cold]
    fn took_much(&mut self, _: &Comm, got: Record) {
        let what = self.ring.get(Record::WHAT);
        self.ring
            .set(Record::WHAT, what & !(u64::from(TAKES) << 24));
        self.more.push(got);
    }

    fn number(&self) -> u16 {
        (self.thread >> 48) as u16
    }

    /// Records a phase of the program.
    pub fn phase(&mut self, level: c_int, now: u64) {
        let phase = Record {
            begin: now,
            kind: Kind::Phase.number(),
            thread: self.number(),
            level,
            ..Record::EMPTY
        };
        if self.ring.is_open() {
            return self.more.push(phase); // inside a function that MPI has called
        }
        self.ring.push(&phase);
        self.ring.publish();
    }
}
