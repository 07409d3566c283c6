//! Calls with several effects on messages: receives while others are posted, completions,
//! persistent and probed messages, creation and end of communicators.

use std::ffi::c_int;

use super::abi::{Abi, Received};
use super::act::{Act, What};
use super::comms::{self, Comm};
use super::counts::Quintuple;
use super::receives::{self, Persistent, Receives, Wanted};
use super::{Tracer, library};
use kw_start::trace::*;

impl Tracer {
    /// Examines the arguments; returns where the library must write statuses.
    #[inline(never)]
    pub(super) fn general(&mut self, act: &Act, what: u64, status: usize) -> usize {
        let abi = self.abi;
        (self.looked, self.posted) = (false, None);
        self.statuses.at = status;
        self.comm = match act.what {
            What::WindowGroup | What::FreesWindow | What::NamesWindow => self.window_of(act),
            _ => self.see(act.comm),
        };
        let requests = act.requests as u32;
        self.ring.open(
            what | self.thread,
            two(ABSENT as u32, ABSENT as u32),
            two(ABSENT as u32, 0),
            NONE,
            two(requests, 0),
        );
        self.slow = true;
        self.source = ABSENT;
        if let Some(comm) = self.comm {
            self.name(abi, act, comm);
        }
        match act.what {
            What::Recv | What::Sendrecv => self.receives(abi, act, status),
            What::Probe => self.statuses.one(abi, status),
            What::Wait | What::Waitany | What::Waitsome => self.waits(abi, act, status),
            _ => self.seldom(abi, act, status),
        }
    }

    /// The window of a call that frees or names it, or names a group.
    #[cold]
    #[inline(never)]
    fn window_of(&mut self, act: &Act) -> Option<&'static Comm> {
        let window = match act.what {
            // SAFETY: a pointer that MPI reads, too.
            What::FreesWindow => unsafe { self.abi.handle_at(act.words[0], 0) },
            _ => act.win,
        };
        self.see_window(window)
    }

    /// Meaning of the arguments in a known communicator.
    fn name(&mut self, abi: &Abi, act: &Act, comm: &'static Comm) {
        let (mut peer, mut tag, mut n) = (ABSENT, ABSENT, NONE);
        self.source = ABSENT;
        if act.dest != ABSENT {
            peer = comm.world_of(abi, act.dest);
            tag = act.tag;
            if peer != ABSENT && matches!(act.what, What::Send | What::Sendrecv | What::Isendrecv) {
                n = Quintuple::new(true, comm.number, peer, act.tag).next();
            }
        }
        if act.source != ABSENT {
            self.source = comm.source(abi, act.source);
            if act.dest == ABSENT {
                tag = abi.tag(act.tag);
            }
        }
        if act.collective {
            let mut flags = COLLECTIVE;
            n = comm.next_collective();
            if act.root >= 0 {
                flags |= ROOT;
                peer = comm.world(act.root);
            }
            if act.what == What::Scan {
                flags |= PLACED;
                self.ring.set(Record::MORE, two(0, comm.place as u32));
            }
            self.ring.flag(flags);
        }
        self.ring
            .set(Record::RANKS, two(peer as u32, self.source as u32));
        self.ring.set(Record::TAG, two(tag as u32, comm.number));
        self.ring.set(Record::N, n);
    }

    /// Envelope of the receiving half of a call.
    #[inline(always)]
    fn wanted(&self, abi: &Abi, act: &Act) -> Option<Wanted> {
        let comm = self.comm.filter(|c| c.number != 0)?;
        let tag = match act.what {
            What::Sendrecv | What::Isendrecv => act.recvtag,
            _ => act.tag,
        };
        let source = self.source;
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
        self.statuses.one(abi, status)
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
        // SAFETY: the program passes the array with this length; MPI reads it, too.
        let each = (0..count as usize).map(|n| unsafe { abi.handle_at(array, n) });
        self.handles.extend(each);
        let mut all = receives::all();
        self.places.clear();
        self.looked = match act.what == What::Wait && act.words[3] == 0 {
            // all of them will have ended
            true => {
                let each = self.handles.iter().map(|h| all.take(*h));
                self.places.extend(each);
                self.places.iter().any(Option::is_some)
            }
            false => self.handles.iter().any(|h| all.has(*h)),
        };
        drop(all);
        match self.looked {
            true => self.statuses.several(abi, status, count as usize),
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
                    What::Mrecv => self.statuses.one(abi, status),
                    _ => status,
                }
            }
            What::Mprobe => self.receives(abi, act, status),
            What::RequestFree | What::FreesComm | What::FreesWindow => {
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

    /// Notes the end of the call; `good`: it succeeded.
    #[cold]
    #[inline(never)]
    pub(super) fn close_general(&mut self, act: &Act, good: bool, end: u64, bytes: u64) {
        let abi = self.abi;
        match good {
            false => self.failed(),
            true => {
                if act.comm != 0 && self.comm.is_none() {
                    self.learn(abi, act, end);
                }
                match act.what {
                    What::Plain | What::Named | What::Window | What::Send => {}
                    What::Recv | What::Sendrecv => self.received(abi, act, end),
                    What::Wait | What::Waitany | What::Waitsome => self.waited(act, end),
                    _ => self.afterwards(abi, act, end),
                }
            }
        }
        self.finish(end, bytes);
    }

    /// A communicator seen for the first time that the call has accepted.
    #[cold]
    fn learn(&mut self, abi: &Abi, act: &Act, end: u64) {
        self.comm = comms::made(self.memory, abi, abi.handle(act.comm));
        self.neighbors(self.comm, end);
        if let Some(comm) = self.comm {
            self.name(abi, act, comm);
        }
    }

    /// A message that a status describes.
    #[inline(always)]
    pub(super) fn got(&self, comm: &Comm, received: Received, end: u64) -> Record {
        Record {
            begin: end,
            end: self.ring.begin().max(1),
            kind: Kind::Received.number(),
            thread: self.number(),
            source: comm.world(received.source),
            tag: received.tag,
            comm: comm.number,
            bytes: received.bytes,
            ..Record::EMPTY
        }
    }

    #[inline(always)]
    fn received(&mut self, abi: &Abi, act: &Act, end: u64) {
        let Some(wanted) = self.wanted(abi, act) else {
            return;
        };
        // SAFETY: the call has succeeded, and has written here.
        let received = unsafe { abi.received(self.statuses.at) };
        let mut got = self.got(wanted.comm, received, end);
        match self.posted {
            None => {
                got.n = receives::number(wanted.comm, got.source, got.tag);
                self.more.push(got);
            }
            Some(at) => {
                self.posted = None;
                let mut all = receives::all();
                all.set_posted(at, self.ring.begin());
                all.complete(at, got, &mut self.more);
            }
        }
    }

    #[inline(always)]
    fn waited(&mut self, act: &Act, end: u64) {
        if !self.looked {
            return;
        }
        let int = |at: usize| {
            // SAFETY: null, or written by the call.
            (at != 0).then(|| unsafe { (at as *const c_int).read() })
        };
        let [_, _, _, fourth, fifth] = act.words;
        let all = &mut receives::all();
        match act.what {
            What::Wait if act.words[3] == 0 => {
                for n in 0..self.places.len() {
                    if let Some(at) = self.places[n].take() {
                        self.ended(all, at, n, end);
                    }
                }
            }
            What::Wait if int(act.words[3]) != Some(0) => {
                for n in 0..self.handles.len() {
                    self.completed(all, self.handles[n], n, end);
                }
            }
            What::Waitany if int(fourth) != Some(0) => {
                if let Some(handle) = self.handles.get(int(fifth).unwrap_or(-1) as usize) {
                    self.completed(all, *handle, 0, end);
                }
            }
            What::Waitsome => {
                for n in 0..int(fourth).unwrap_or(0).max(0) as usize {
                    let which = int(fifth + 4 * n).unwrap_or(-1) as usize;
                    if let Some(handle) = self.handles.get(which) {
                        self.completed(all, *handle, n, end);
                    }
                }
            }
            _ => {}
        }
    }

    /// Handles a complete request with its status.
    fn completed(&mut self, all: &mut Receives, handle: usize, nth: usize, end: u64) {
        if let Some(at) = all.take(handle) {
            self.ended(all, at, nth, end);
        }
    }

    fn ended(&mut self, all: &mut Receives, at: u32, nth: usize, end: u64) {
        let abi = self.abi;
        // SAFETY: the call has succeeded, and has written here.
        let received = unsafe { abi.received(self.statuses.at + nth * abi.status.bytes) };
        if received.cancelled {
            return all.cancelled(at, &mut self.more);
        }
        let got = self.got(all.comm(at), received, end);
        all.complete(at, got, &mut self.more);
    }

    #[cold]
    #[inline(never)]
    fn afterwards(&mut self, abi: &Abi, act: &Act, end: u64) {
        let begin = self.ring.begin();
        // SAFETY: written by the call, which has succeeded.
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
            What::Probe => self.saw(abi, act),
            What::Mrecv => {
                if let Some((wanted, n)) = self.message.take() {
                    // SAFETY: as above.
                    let received = unsafe { abi.received(self.statuses.at) };
                    let mut got = self.got(wanted.comm, received, end);
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
                let new = comms::made(self.memory, abi, written(act.words[0]));
                self.neighbors(new, end);
            }
            What::CopiesComm => {
                let copy = |of| comms::copied(self.memory, abi, written(act.words[0]), of);
                self.neighbors(self.comm.and_then(copy), end);
            }
            What::FreesComm => comms::freed(self.handles[0]),
            What::NamesComm => comms::named(self.memory, abi.handle(act.comm)),
            What::MakesWindow => {
                if let Some(comm) = self.comm {
                    comms::made_window(self.memory, written(act.words[0]), comm);
                }
            }
            What::FreesWindow => comms::freed(comms::of_window(self.handles[0])),
            What::NamesWindow => {
                comms::named(self.memory, comms::of_window(abi.handle(act.win)));
            }
            What::WindowGroup => self.group(abi.handle(act.words[0])),
            What::Begins => {
                comms::begin(self.memory, abi);
                self.sums = library::begin(end);
                self.look(end, true);
            }
            What::Ends => {
                receives::all().end(&mut self.more);
                self.look(end, true);
            }
            _ => {}
        }
    }

    /// Ranks from which this process receives in the topology of a new communicator.
    fn neighbors(&mut self, comm: Option<&'static Comm>, at: u64) {
        let thread = self.number();
        let all = comm
            .into_iter()
            .flat_map(|c| c.neighbors.iter().map(move |n| (c, *n)));
        self.more.extend(all.map(|(comm, source)| Record {
            begin: at,
            kind: Kind::Neighbor.number(),
            thread,
            source,
            comm: comm.number,
            ..Record::EMPTY
        }));
    }

    /// The group of a call on a window.
    fn group(&mut self, group: usize) {
        let (begin, thread) = (self.ring.begin(), self.number());
        let known = comms::of_group(group).into_iter().filter(|r| *r != ABSENT);
        self.more.extend(known.map(|peer| Record {
            begin,
            kind: Kind::Member.number(),
            thread,
            peer,
            ..Record::EMPTY
        }));
    }

    /// MPI_Send_init and MPI_Recv_init, and kin.
    fn made_persistent(&mut self, abi: &Abi, act: &Act) {
        let Some(comm) = self.comm.filter(|c| c.number != 0) else {
            return;
        };
        // SAFETY: the call has succeeded.
        let request = unsafe { abi.handle_at(act.words[0], 0) };
        let what = match act.what {
            What::RecvInit => self.wanted(abi, act).map(Persistent::Receive),
            _ => Some(Persistent::Send {
                comm,
                dest: self.ring.peer(),
                tag: act.tag,
                bytes: crate::amount::of(act.words[1] as i64, act.words[2]),
            })
            .filter(|_| self.ring.peer() != ABSENT),
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
                    thread: self.number(),
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

    /// MPI_Probe and MPI_Iprobe.
    fn saw(&mut self, abi: &Abi, act: &Act) {
        let flag = act.words[2];
        // SAFETY: null, or written by the call.
        let found = flag == 0 || unsafe { (flag as *const c_int).read() } != 0;
        let Some(wanted) = self.wanted(abi, act).filter(|_| found) else {
            return;
        };
        // SAFETY: the call has succeeded, and has written here.
        let received = unsafe { abi.received(self.statuses.at) };
        self.sees(wanted.comm, received);
    }

    /// The message that a call has found, without receiving it.
    fn sees(&self, comm: &Comm, received: Received) {
        let from = comm.world(received.source) as u32;
        self.ring.set(Record::RANKS, two(from, self.source as u32));
        self.ring.set(Record::MORE, two(0, received.tag as u32));
        self.ring.flag(SEES);
    }

    /// MPI_Mprobe and MPI_Improbe: the message that was found gets its number now.
    fn probed(&mut self, abi: &Abi, act: &Act, end: u64) {
        let [message, _, flag, ..] = act.words;
        let mut all = receives::all();
        let posted = self.posted.take();
        // SAFETY: null, or written by the call.
        let found = flag == 0 || unsafe { (flag as *const c_int).read() } != 0;
        let wanted = self.wanted(abi, act).filter(|_| found);
        let Some(wanted) = wanted else {
            if let Some(at) = posted {
                all.cancelled(at, &mut self.more);
            }
            return;
        };
        // SAFETY: the call has succeeded, and has written here.
        let (received, message) =
            unsafe { (abi.received(self.statuses.at), abi.handle_at(message, 0)) };
        if abi.is_nobody(received.source) {
            return;
        }
        self.sees(wanted.comm, received);
        let got = self.got(wanted.comm, received, end);
        let n = match posted {
            None => receives::number(wanted.comm, got.source, got.tag),
            Some(at) => all.number_of(at, got, &mut self.more),
        };
        let n = if all.is_broken() { NONE } else { n };
        all.add_message(message, wanted, n);
    }

    /// Handles a failed call: its effects before the error are not known.
    #[cold]
    pub(super) fn failed(&mut self) {
        let what = self.ring.get(Record::WHAT) & !(u64::from(TAKES) << 24);
        self.ring.set(Record::WHAT, what);
        let sent = self.ring.get(Record::N) != NONE && self.ring.peer() != ABSENT;
        if sent && what & u64::from(COLLECTIVE) << 24 == 0 {
            let tag = self.ring.get(Record::TAG);
            Quintuple::new(true, (tag >> 32) as u32, self.ring.peer(), tag as i32).give_up();
            self.ring.set(Record::N, NONE);
        }
        if let Some(at) = self.posted.take() {
            receives::all().lose(at);
        }
        if self.looked {
            self.looked = false;
            let mut all = receives::all();
            let known = self.places.drain(..).flatten();
            known.for_each(|at| all.lose(at));
            for handle in &self.handles {
                if let Some(at) = all.take(*handle) {
                    all.lose(at);
                }
            }
        }
    }
}
