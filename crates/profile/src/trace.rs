//! What is written down of each call over time (`mpiexec --trace`): a record with its arguments, and
//! one for each message that it sent or received, in the thread's ring ([`ring`]).
//!
//! Before the call its arguments are looked at ([`Tracer::prepare`]), a moment before it begins the
//! record is shown ([`Tracer::open`]), and after it what is known only then is added
//! ([`Tracer::close`]). A program that wants no status gets none, but the library writes one for us.
//! What cannot be known is left out: never asked of a handle that the call has not found good.

pub(crate) mod abi;
pub(crate) mod act;
mod comms;
mod counts;
mod receives;
pub(crate) mod ring;

use std::ffi::c_int;

use crate::next;
use abi::{Abi, STATUS, Said};
use act::{Act, What};
use comms::{Comm, Seen};
use counts::Quintuple;
use kw_base::sync::OnceLock;
use kw_start::trace::*;
use receives::{Persistent, Wanted};
use ring::{Memory, Ring};

/// A thread's trace.
#[derive(Debug)]
pub(crate) struct Tracer {
    memory: Memory,
    ring: Ring,
    number: u16,
    abi: Option<&'static Abi>,
    seen: Seen,
    /// The record of the call under way.
    record: Record,
    /// Whether more of it than its end and bytes is another one than was shown.
    changed: bool,
    comm: Option<&'static Comm>,
    /// Where the receive of the call under way stands, if others are posted.
    posted: Option<u32>,
    /// A message that the call receives: what it is, and its number.
    message: Option<(Wanted, u64)>,
    /// The requests of the call under way, as they were before.
    handles: Vec<usize>,
    /// Whether they are looked up afterwards.
    looked: bool,
    /// Where the library writes statuses.
    status: usize,
    /// Statuses for a program that wants none.
    own: Vec<[u64; STATUS / 8]>,
    /// Records that follow that of the call.
    more: Vec<Record>,
}

/// The ABI of the library that answers.
#[cold]
fn library() -> &'static Abi {
    static ABI: OnceLock<Abi> = OnceLock::new();
    ABI.get_or_init(|| {
        let module = next::module_of(next::find(c"PMPI_Type_size_c"));
        Abi::of(&module.unwrap_or_default())
    })
}

impl Tracer {
    pub fn new(memory: Memory, number: usize) -> Tracer {
        let pid = u64::from(std::process::id());
        let word = memory.word(PID);
        word.store(pid, kw_base::sync::atomic::Ordering::Relaxed);
        Tracer {
            memory,
            ring: Ring::new(memory, number),
            number: number as u16,
            abi: None,
            seen: Seen::new(),
            record: Record::EMPTY,
            changed: false,
            comm: None,
            posted: None,
            message: None,
            handles: Vec::new(),
            looked: false,
            status: 0,
            own: Vec::new(),
            more: Vec::new(),
        }
    }

    #[inline(always)]
    fn abi(&mut self) -> &'static Abi {
        match self.abi {
            Some(abi) => abi,
            None => self.abi.insert(library()),
        }
    }

    /// Looks at the arguments. `status` is where the program wants statuses; the answer, where the
    /// library is to write them.
    #[inline(never)]
    pub fn prepare(&mut self, act: &Act, function: u32, row: usize, status: usize) -> usize {
        let abi = self.abi();
        self.posted = None;
        self.looked = false;
        self.changed = false;
        self.status = status;
        self.comm = match act.comm {
            0 => None,
            word => self.seen.find(abi.handle(word)),
        };
        self.record = Record {
            end: 0,
            function: function as u16,
            row: row as u16,
            thread: self.number,
            requests: act.requests as u32,
            ..Record::EMPTY
        };
        if let Some(comm) = self.comm {
            self.name(abi, act, comm);
        }
        match act.what {
            What::Plain | What::Send => status,
            What::Recv | What::Sendrecv => self.receives(abi, act, status),
            What::Wait | What::Waitany | What::Waitsome => self.waits(abi, act, status),
            _ => self.seldom(abi, act, status),
        }
    }

    /// What the arguments mean in a communicator that is known.
    #[inline(always)]
    fn name(&mut self, abi: &Abi, act: &Act, comm: &'static Comm) {
        let r = &mut self.record;
        r.comm = comm.number;
        if act.dest != ABSENT {
            r.peer = match abi.is_nobody(act.dest) {
                true => ABSENT,
                false => comm.world(act.dest),
            };
            r.tag = act.tag;
            if r.peer != ABSENT && matches!(act.what, What::Send | What::Sendrecv | What::Isendrecv)
            {
                r.n = Quintuple::new(true, comm.number, r.peer, act.tag).next();
            }
        }
        if act.source != ABSENT {
            r.source = Self::source(abi, comm, act.source);
            if act.dest == ABSENT {
                r.tag = abi.tag(act.tag);
            }
        }
        if act.collective {
            r.flags |= COLLECTIVE;
            r.n = comm.next_collective();
            if act.root >= 0 {
                r.flags |= ROOT;
                r.peer = comm.world(act.root);
            }
        }
    }

    #[inline(always)]
    fn source(abi: &Abi, comm: &Comm, rank: c_int) -> i32 {
        if abi.is_any_source(rank) {
            return ANY;
        }
        match abi.is_nobody(rank) {
            true => ABSENT,
            false => comm.world(rank),
        }
    }

    /// What the receiving half of a call takes.
    #[inline(always)]
    fn wanted(&self, abi: &Abi, act: &Act) -> Option<Wanted> {
        let comm = self.comm.filter(|c| c.number != 0)?;
        let tag = match act.what {
            What::Sendrecv | What::Isendrecv => act.recvtag,
            _ => act.tag,
        };
        let source = self.record.source;
        (source != ABSENT).then(|| Wanted {
            comm,
            source,
            tag: abi.tag(tag),
        })
    }

    #[inline(always)]
    fn receives(&mut self, abi: &Abi, act: &Act, status: usize) -> usize {
        if receives::any() {
            if let Some(wanted) = self.wanted(abi, act) {
                self.posted = Some(receives::all().post(wanted, 0, None));
            }
        }
        self.room(abi, status, 1)
    }

    /// Where the library writes statuses: at ours, where the program wants none.
    #[inline(always)]
    fn room(&mut self, abi: &Abi, status: usize, count: usize) -> usize {
        self.status = status;
        if status == abi.ignore {
            let words = (count * abi.status.bytes).div_ceil(STATUS).max(1);
            if self.own.len() < words {
                self.own.resize(words, [0; STATUS / 8]);
            }
            self.status = self.own.as_mut_ptr() as usize;
        }
        self.status
    }

    #[inline(always)]
    fn waits(&mut self, abi: &Abi, act: &Act, status: usize) -> usize {
        if !receives::any() {
            return status;
        }
        let (count, array) = (act.words[0] as u32 as i32, act.words[1]);
        self.handles.clear();
        if array == 0 || count <= 0 {
            return status;
        }
        // SAFETY: the program says that the array has so many; MPI reads them, too.
        let each = (0..count as usize).map(|n| unsafe { abi.handle_at(array, n) });
        self.handles.extend(each);
        let all = receives::all();
        self.looked = self.handles.iter().any(|h| all.has(*h));
        drop(all);
        match self.looked {
            true => self.room(abi, status, count as usize),
            false => status,
        }
    }

    #[cold]
    #[inline(never)]
    fn seldom(&mut self, abi: &Abi, act: &Act, status: usize) -> usize {
        match act.what {
            What::Mrecv | What::Imrecv => {
                // SAFETY: a pointer that MPI reads, too.
                let handle = unsafe { abi.handle_at(act.words[0], 0) };
                self.message = receives::all().take_message(handle);
                match act.what {
                    What::Mrecv => self.room(abi, status, 1),
                    _ => status,
                }
            }
            What::Mprobe => self.receives(abi, act, status),
            What::RequestFree | What::FreesComm => {
                // SAFETY: a pointer that MPI reads, too.
                let handle = unsafe { abi.handle_at(act.words[0], 0) };
                self.handles.clear();
                self.handles.push(handle);
                status
            }
            What::Start => {
                let count = (act.words[0] as u32 as i32).max(0) as usize;
                self.handles.clear();
                // SAFETY: an array that MPI reads, too.
                let each = (0..count).map(|n| unsafe { abi.handle_at(act.words[1], n) });
                self.handles.extend(each);
                status
            }
            _ => status,
        }
    }

    /// The call begins.
    #[inline(always)]
    pub fn open(&mut self, begin: u64) {
        self.record.begin = begin;
        self.ring.show(&self.record);
    }

    /// The call has ended; `good`: well.
    #[inline(never)]
    pub fn close(&mut self, act: &Act, good: bool, end: u64, bytes: Option<u64>) {
        let abi = self.abi();
        self.record.end = end;
        self.record.bytes = bytes.unwrap_or(NONE);
        if good {
            if act.comm != 0 && self.comm.is_none() {
                self.learn(abi, act);
            }
            match act.what {
                What::Plain | What::Send => {}
                What::Recv | What::Sendrecv => self.received(abi, act, end),
                What::Wait | What::Waitany | What::Waitsome => self.waited(abi, act, end),
                _ => self.afterwards(abi, act, end),
            }
        } else {
            self.failed(act);
        }
        self.ring.finish(&self.record, self.changed);
        if !self.more.is_empty() {
            self.more.iter().for_each(|r| self.ring.push(r));
            self.more.clear();
        }
        self.ring.publish();
    }

    /// A communicator that nobody has seen before was good enough for the call.
    #[cold]
    fn learn(&mut self, abi: &Abi, act: &Act) {
        self.changed = true;
        self.comm = comms::made(self.memory, abi, abi.handle(act.comm));
        if let Some(comm) = self.comm {
            self.name(abi, act, comm);
        }
    }

    /// A message, of which a status tells.
    #[inline(always)]
    fn got(&self, comm: &Comm, said: Said, end: u64) -> Record {
        Record {
            begin: end,
            end: self.record.begin.max(1),
            kind: Kind::Received.number(),
            thread: self.number,
            source: comm.world(said.source),
            tag: said.tag,
            comm: comm.number,
            bytes: said.bytes,
            ..Record::EMPTY
        }
    }

    #[inline(always)]
    fn received(&mut self, abi: &Abi, act: &Act, end: u64) {
        let Some(wanted) = self.wanted(abi, act) else {
            return;
        };
        // SAFETY: the call has done well, and this is where it has written.
        let said = unsafe { abi.said(self.status) };
        let mut got = self.got(wanted.comm, said, end);
        match self.posted {
            None => {
                got.n = receives::number(wanted.comm, got.source, got.tag);
                self.more.push(got);
            }
            Some(at) => {
                let mut all = receives::all();
                all.set_posted(at, self.record.begin);
                all.complete(at, got, &mut self.more);
            }
        }
    }

    #[inline(always)]
    fn waited(&mut self, abi: &Abi, act: &Act, end: u64) {
        if !self.looked {
            return;
        }
        let int = |at: usize| {
            // SAFETY: null, or what the call has written.
            (at != 0).then(|| unsafe { (at as *const c_int).read() })
        };
        let [_, _, _, fourth, fifth] = act.words;
        match act.what {
            What::Wait if int(act.words[3]) != Some(0) => {
                for n in 0..self.handles.len() {
                    self.completed(abi, self.handles[n], n, end);
                }
            }
            What::Waitany if int(fourth) != Some(0) => {
                if let Some(handle) = self.handles.get(int(fifth).unwrap_or(-1) as usize) {
                    self.completed(abi, *handle, 0, end);
                }
            }
            What::Waitsome => {
                for n in 0..int(fourth).unwrap_or(0).max(0) as usize {
                    let which = int(fifth + 4 * n).unwrap_or(-1) as usize;
                    if let Some(handle) = self.handles.get(which) {
                        self.completed(abi, *handle, n, end);
                    }
                }
            }
            _ => {}
        }
    }

    /// A request is complete, and this its status.
    fn completed(&mut self, abi: &Abi, handle: usize, nth: usize, end: u64) {
        let mut all = receives::all();
        let Some(at) = all.take(handle) else { return };
        // SAFETY: the call has done well, and this is where it has written.
        let said = unsafe { abi.said(self.status + nth * abi.status.bytes) };
        if said.cancelled {
            return all.cancelled(at, &mut self.more);
        }
        let got = self.got(all.comm(at), said, end);
        all.complete(at, got, &mut self.more);
    }

    #[cold]
    #[inline(never)]
    fn afterwards(&mut self, abi: &Abi, act: &Act, end: u64) {
        let begin = self.record.begin;
        // SAFETY: what the call has written; it has done well.
        let written = |word: usize| unsafe { abi.handle_at(word, 0) };
        match act.what {
            What::Irecv | What::Isendrecv => {
                if let Some(wanted) = self.wanted(abi, act) {
                    let request = written(act.words[0]);
                    receives::all().post_request(request, wanted, begin, None);
                }
            }
            What::SendInit | What::RecvInit => self.made_persistent(abi, act),
            What::Start => self.started(begin),
            What::RequestFree => {
                let handle = self.handles[0];
                receives::all().free_request(handle);
            }
            What::Mprobe => self.probed(abi, act, end),
            What::Mrecv => {
                if let Some((wanted, n)) = self.message.take() {
                    // SAFETY: as above.
                    let said = unsafe { abi.said(self.status) };
                    let mut got = self.got(wanted.comm, said, end);
                    got.n = n;
                    self.more.push(got);
                }
            }
            What::Imrecv => {
                if let Some((wanted, n)) = self.message.take() {
                    let request = written(act.words[1]);
                    receives::all().post_request(request, wanted, begin, Some(n));
                }
            }
            What::MakesComm => {
                comms::made(self.memory, abi, written(act.words[0]));
            }
            What::CopiesComm => {
                if let Some(comm) = self.comm {
                    comms::copied(self.memory, abi, written(act.words[0]), comm);
                }
            }
            What::FreesComm => comms::freed(self.handles[0]),
            What::NamesComm => comms::named(self.memory, abi.handle(act.comm)),
            What::Begins => comms::begin(self.memory, abi),
            What::Ends => receives::all().end(&mut self.more),
            _ => {}
        }
    }

    /// MPI_Send_init and MPI_Recv_init, and kin.
    fn made_persistent(&mut self, abi: &Abi, act: &Act) {
        let Some(comm) = self.comm.filter(|c| c.number != 0) else {
            return;
        };
        // SAFETY: the call has done well.
        let request = unsafe { abi.handle_at(act.words[0], 0) };
        let what = match act.what {
            What::RecvInit => self.wanted(abi, act).map(Persistent::Receive),
            _ => Some(Persistent::Send {
                comm,
                dest: self.record.peer,
                tag: act.tag,
                bytes: crate::amount::of(act.words[1] as i64, act.words[2]),
            })
            .filter(|_| self.record.peer != ABSENT),
        };
        if let Some(what) = what {
            receives::all().add_persistent(request, what);
        }
    }

    /// MPI_Start and MPI_Startall.
    fn started(&mut self, begin: u64) {
        let mut all = receives::all();
        for request in &self.handles {
            match all.persistent(*request) {
                Some(Persistent::Receive(wanted)) => {
                    all.post_request(*request, wanted, begin, None);
                }
                Some(Persistent::Send {
                    comm,
                    dest,
                    tag,
                    bytes,
                }) => self.more.push(Record {
                    begin,
                    kind: Kind::Sent.number(),
                    thread: self.number,
                    peer: dest,
                    tag,
                    comm: comm.number,
                    bytes,
                    n: Quintuple::new(true, comm.number, dest, tag).next(),
                    ..Record::EMPTY
                }),
                None => {}
            }
        }
    }

    /// MPI_Mprobe and MPI_Improbe: what was found has its number now.
    fn probed(&mut self, abi: &Abi, act: &Act, end: u64) {
        let [message, _, flag, ..] = act.words;
        let mut all = receives::all();
        let posted = self.posted.take();
        // SAFETY: null, or what the call has written.
        let found = flag == 0 || unsafe { (flag as *const c_int).read() } != 0;
        let wanted = self.wanted(abi, act).filter(|_| found);
        let Some(wanted) = wanted else {
            if let Some(at) = posted {
                all.cancelled(at, &mut self.more);
            }
            return;
        };
        // SAFETY: the call has done well, and this is where it has written.
        let (said, message) = unsafe { (abi.said(self.status), abi.handle_at(message, 0)) };
        if abi.is_nobody(said.source) {
            return;
        }
        let got = self.got(wanted.comm, said, end);
        let n = match posted {
            None => receives::number(wanted.comm, got.source, got.tag),
            Some(at) => all.number_of(at, got, &mut self.more),
        };
        let n = if all.is_broken() { NONE } else { n };
        all.add_message(message, wanted, n);
    }

    /// The call has failed: what it did before is not known.
    #[cold]
    fn failed(&mut self, act: &Act) {
        self.changed = true;
        let r = &mut self.record;
        if act.dest != ABSENT && r.peer != ABSENT && r.n != NONE && r.flags & COLLECTIVE == 0 {
            Quintuple::new(true, r.comm, r.peer, r.tag).give_up();
            r.n = NONE;
        }
        if let Some(at) = self.posted.take() {
            receives::all().lose(at);
        }
        if self.looked {
            let mut all = receives::all();
            for handle in &self.handles {
                if let Some(at) = all.take(*handle) {
                    all.lose(at);
                }
            }
        }
    }

    /// A phase of the program.
    pub fn phase(&mut self, level: c_int, now: u64) {
        self.changed = true; // it stands where a call under way was shown
        self.ring.push(&Record {
            begin: now,
            kind: Kind::Phase.number(),
            thread: self.number,
            level,
            ..Record::EMPTY
        });
        self.ring.publish();
    }
}
