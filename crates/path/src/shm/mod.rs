//! Shared memory between the ranks of one host.
//!
//! One memfd is mapped by all of them ([`segment`]); each ordered pair has a ring of cache lines
//! ([`ring`]) and, for long payload, slots of the receiver's pool ([`bulk`]); a rank that sleeps is
//! woken through its [`Doorbell`]. Nothing has a name in a file system, so nothing is left behind
//! by a job that is killed.
//!
//! # Use
//! ```text
//! let local = Local { me, peers };                       // peers: all ranks of the job on this host, ascending
//! // on the first of them:
//! let lead = ShmPath::lead(&local)?;                     // puts lead.address() into the key-value space; fence
//! let path = lead.serve(&key, patience)?;                // blocks until all others have joined
//! // on the others, after the fence:
//! let path = ShmPath::join(&local, &key, &address)?;
//!
//! let bell: Arc<Doorbell> = path.doorbell();             // kw_sys::doorbell::Doorbell<MappedSlot>
//! // to sleep:  poll until nothing moves; bell.arm(Mode::Futex); poll again; if nothing moved bell.sleep(timeout)
//! //            else bell.disarm().
//! // in epoll:  let fd = bell.fd()?; ...; bell.arm(Mode::Fd); poll again; epoll_wait; bell.clear().
//! // a thread of the same process that wants the sleeper's attention: bell.ring_self().
//! ```
//! A sleeper is woken by every frame that comes for it and by space for frames it could not send.
//! `arm` returns `false` if another thread of this rank is armed already.
//!
//! Called by the owner of the lock only; the doorbell by any thread.

mod bulk;
mod ended;
mod fetch;
mod handout;
mod join;
mod link;
mod ranks;
mod rebalance;
pub mod region;
pub mod ring;
mod segment;
mod shared_copy;
pub mod window;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kw_base::{Calibration, Peer, Tick};
use kw_proto::p2p::prices;
use kw_proto::p2p::table::SHARED_FROM;
use kw_proto::wire::{Header, RemoteRegion};
use kw_sys::buf::Buf;
use kw_sys::doorbell::{self, DoorbellSlot, Ringer};
use kw_sys::process_vm;
use kw_waiting::placement::Comparisons;

use crate::{Body, Down, Inbound, Lines, Path, Refused, Sent};
use bulk::Emptied;
use ended::Ended;
pub use handout::ShmError;
pub use join::{Lead, Local};
use link::Link;
pub use ranks::Ranks;
use segment::Segment;
use shared_copy::{Copied, Outcome};

/// Keeps the segment mapped for a doorbell.
#[derive(Debug)]
pub struct MappedSlot {
    segment: Arc<Segment>,
    me: usize,
}

impl AsRef<DoorbellSlot> for MappedSlot {
    #[inline]
    fn as_ref(&self) -> &DoorbellSlot {
        self.segment.doorbell_slot(self.me)
    }
}

/// This rank's doorbell.
pub type Doorbell = doorbell::Doorbell<MappedSlot>;

/// Shared memory between the ranks of one host; see the module.
#[derive(Debug)]
pub struct ShmPath {
    segment: Arc<Segment>,
    me: usize,
    /// The ranks of this host.
    pub ranks: Ranks,
    links: Box<[Link]>,
    /// Links whose peer ever sent to this rank.
    active: Vec<u32>,
    /// Position there of the link whose frame is taken first ([`ShmPath::take_whole`]).
    turn: usize,
    /// Bitmap of senders as last seen.
    seen: Box<[u64]>,
    /// Links with waiting frames.
    waiting: Vec<u32>,
    emptied: Emptied,
    ringer: Arc<Ringer>,
    rings: u64,
    bell: Arc<Doorbell>,
    closed: bool,
    comparisons: Comparisons,
    /// Ranks whose process has ended.
    ended: Ended,
    /// Number of the last message that this rank copied together with its sender.
    copies: u64,
}

impl ShmPath {
    fn new(local: &Local, segment: Segment) -> std::io::Result<ShmPath> {
        let segment = Arc::new(segment);
        let me = local.index();
        let links = (0..local.peers.len())
            .map(|i| {
                let lanes = (segment.lane(me, i), segment.lane(i, me));
                Link::new(local.peers[i], lanes)
            })
            .collect();
        let bell = MappedSlot {
            segment: segment.clone(),
            me,
        };
        let ended = Ended::new(local.peers.len(), me)?;
        let own = ended.own();
        Ok(ShmPath {
            me,
            links,
            active: Vec::new(),
            turn: 0,
            seen: vec![0; local.peers.len().div_ceil(64)].into_boxed_slice(),
            waiting: Vec::new(),
            emptied: Emptied::default(),
            ringer: Arc::new(Ringer::new()),
            rings: 0,
            bell: Arc::new(doorbell::Doorbell::new(bell)),
            closed: false,
            comparisons: Comparisons::default(),
            ended,
            copies: 0,
            // Last: from here on the others may write to this rank, and fetch.
            ranks: Ranks::new(local, segment.clone(), own)?,
            segment,
        })
    }

    /// This rank's doorbell.
    pub fn doorbell(&self) -> Arc<Doorbell> {
        self.bell.clone()
    }

    /// The shm regions of this host.
    pub fn shm_regions(&self) -> region::ShmRegions {
        region::ShmRegions::new(self.segment.clone(), self.me, self.ringer.clone())
    }

    /// How often this rank woke a sleeping one.
    pub fn rings(&self) -> u64 {
        self.rings
    }

    #[inline(always)]
    fn ring(&mut self, i: usize) {
        self.segment.fence();
        if self.ringer.ring(self.links[i].doorbell_slot()) {
            self.rings += 1;
        }
    }

    /// Sets our bit in the peer's bitmap, before the first frame is published.
    #[cold]
    fn announce(&mut self, i: usize) {
        let senders = self.segment.senders(i, self.me / 64);
        // SYNC: senders.
        senders.fetch_or(1 << (self.me % 64), Ordering::AcqRel);
        self.links[i].announced = true;
    }

    /// Learns which ranks have begun to send since the last poll.
    #[inline]
    fn look(&mut self) {
        for w in 0..self.seen.len() {
            // SYNC: senders.
            let now = self.segment.senders(self.me, w).load(Ordering::Acquire);
            if now != self.seen[w] {
                self.welcome(w, now);
            }
        }
    }

    #[cold]
    fn welcome(&mut self, w: usize, now: u64) {
        let mut fresh = now & !self.seen[w];
        self.seen[w] = now;
        while fresh != 0 {
            let i = w * 64 + fresh.trailing_zeros() as usize;
            fresh &= fresh - 1;
            if i < self.links.len() {
                self.links[i].active = true;
                self.active.push(i as u32);
            }
        }
    }

    #[inline]
    fn receive<I: Inbound + ?Sized>(&mut self, i: usize, inbound: &mut I) -> bool {
        let moved = self.links[i].receive(inbound, &mut self.emptied);
        if moved.ring {
            self.ring(i);
        }
        if moved.feed {
            self.feed();
        }
        moved.any
    }

    /// After a poll that found something: sends waiting frames, or uses the idle moment. Returns
    /// whether anything moved.
    #[inline(always)]
    fn end_look<I: Inbound + ?Sized>(&mut self, mut any: bool, inbound: &mut I) -> bool {
        if !self.waiting.is_empty() {
            any |= self.flush(inbound);
        }
        if !any && self.emptied.any() {
            self.give_back();
        }
        any
    }

    /// Nothing has come: time to give back the empty slots of this rank's pool.
    #[cold]
    fn give_back(&mut self) {
        if self.emptied.give_back(self.segment.pool_use(self.me)) {
            self.feed();
        }
    }

    /// Wakes senders waiting for a slot in this rank's pool.
    #[cold]
    fn feed(&mut self) {
        // SYNC: slot-free. A sender that asks from here on is seen the next time.
        let pool = self.segment.pool_use(self.me);
        pool.starved.store(0, Ordering::SeqCst);
        for w in 0..self.seen.len() {
            let mut who = self.segment.starving(self.me, w).swap(0, Ordering::SeqCst);
            while who != 0 {
                let i = w * 64 + who.trailing_zeros() as usize;
                who &= who - 1;
                if i < self.links.len() {
                    self.ring(i);
                }
            }
        }
    }

    /// Sets which side executes the fence between a message and the look whether its receiver
    /// sleeps. Ranks with a core each leave it to the sleeper, which makes all of them execute one.
    /// Ranks that share cores sleep often: each executes its own.
    pub fn share_fences(&mut self, oversubscribed: bool) {
        match oversubscribed {
            true => self.bell.ringers_fence(),
            false => self.segment.enter(),
        }
    }

    /// If each rank has a core of its own, long payload may go round more memory than two of a
    /// core's own caches hold; but no more than [`bulk::POOLS`] for all ranks.
    pub fn spread_out(&mut self, oversubscribed: bool) {
        let working_set = match oversubscribed {
            true => bulk::SHORT_WORKING_SET,
            false => bulk::long_working_set(self.links.len(), self.segment.working_set()),
        };
        for link in &mut self.links {
            link.spread_out(working_set, oversubscribed);
        }
    }

    /// Sends a frame with a body of `len` bytes that `fill` writes, if it is short and can go at
    /// once; otherwise nothing has happened, and the frame is one for [`Path::send`].
    #[inline(always)]
    pub fn put_at_once(
        &mut self,
        to: Peer,
        head: &Header,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let i = self.ranks.local(to) as usize;
        let link = self.links.get_mut(i).filter(|l| l.announced);
        if self.closed || !link.is_some_and(|l| l.put_at_once(head, len, fill)) {
            return false;
        }
        self.ring(i);
        true
    }

    /// The next frame of a peer, if it is a whole one, polling for it as long as `goes_on` returns
    /// true after each unsuccessful poll; [`ShmPath::accept_from`] consumes it. Everything else
    /// that may arrive is left to [`Path::poll_from`].
    #[inline(always)]
    pub fn next_from(
        &mut self,
        peer: Peer,
        goes_on: impl FnMut() -> bool,
    ) -> Option<(Header, &[u8])> {
        let i = self.ranks.local(peer) as usize;
        if !self.waiting.is_empty() {
            return None;
        }
        if self.emptied.any() {
            self.give_back();
        }
        let link = self.links.get_mut(i).filter(|l| l.active)?;
        link.next(goes_on)
    }

    /// The frame that [`ShmPath::next_from`] has shown, with a body of `len` bytes, was read.
    #[inline(always)]
    pub fn accept_from(&mut self, peer: Peer, len: usize) {
        let i = self.ranks.local(peer) as usize;
        if self.links.get_mut(i).is_some_and(|l| l.accept(len)) {
            self.ring(i);
        }
    }

    /// Takes a whole frame that is the next of its peer: `take` is offered those of all peers in
    /// turn, and returns whether it has taken one, which was the last. Returns its peer. Everything
    /// else that may arrive is left to [`Path::poll`].
    #[inline]
    pub fn take_whole(&mut self, mut take: impl FnMut(&Header, &[u8]) -> bool) -> Option<Peer> {
        if !self.waiting.is_empty() {
            return None;
        }
        let mut next = self.turn;
        for _ in 0..self.active.len() {
            let k = if next < self.active.len() { next } else { 0 };
            next = k + 1;
            let i = self.active[k] as usize;
            let Some((head, body)) = self.links[i].next(|| false) else {
                continue;
            };
            if take(&head, body) {
                let len = body.len();
                self.turn = next;
                if self.links[i].accept(len) {
                    self.ring(i);
                }
                return Some(self.links[i].peer);
            }
        }
        None
    }

    /// [`Path::poll`], compiled for callers that know both types.
    pub fn poll<I: Inbound + ?Sized>(&mut self, _now: Tick, inbound: &mut I) -> bool {
        self.look();
        let mut any = false;
        for k in 0..self.active.len() {
            any |= self.receive(self.active[k] as usize, inbound);
        }
        self.end_look(any, inbound)
    }

    /// [`Path::poll_from`], compiled for callers that know both types.
    #[inline]
    pub fn poll_from<I: Inbound + ?Sized>(
        &mut self,
        peer: Peer,
        _now: Tick,
        inbound: &mut I,
    ) -> bool {
        let i = self.ranks.local(peer) as usize;
        if i >= self.links.len() {
            return false;
        }
        if !self.links[i].active {
            self.look();
        }
        let any = self.links[i].active && self.receive(i, inbound);
        self.end_look(any, inbound)
    }

    fn flush<I: Inbound + ?Sized>(&mut self, inbound: &mut I) -> bool {
        let mut any = false;
        let mut k = 0;
        while k < self.waiting.len() {
            let i = self.waiting[k] as usize;
            if self.links[i].flush(inbound) {
                any = true;
                self.ring(i);
            }
            if self.links[i].is_waiting() {
                k += 1;
            } else {
                self.waiting.swap_remove(k);
            }
        }
        any
    }

    /// Copies a message to contiguous memory together with its sender ([`shared_copy`]). Returns
    /// whether it is there.
    fn copy_together(
        &mut self,
        i: usize,
        address: u64,
        (into, at): (&Buf, u64),
        len: u64,
    ) -> Result<bool, Refused> {
        let Some(base) = into.contiguous() else {
            return Ok(false);
        };
        let (link, peer) = (&mut self.links[i], self.ranks.info(i));
        let job = self.segment.copy_job(self.me);
        self.copies += 1;
        let copied = Copied {
            from: address,
            into: base as u64 + at,
            len,
        };
        job.open(self.copies, copied);
        // A sender that sleeps is not woken: its part would have been copied before it runs.
        link.ask_for_copy(self.copies);
        let pid = peer.pid.load(Ordering::Relaxed) as i32;
        let read = |from, len| process_vm::fetch(pid, address + from, into, at + from, len);
        let alive = || ended::still_runs(&self.segment, i);
        match job.receive(self.copies, read, alive) {
            Outcome::Complete => Ok(true),
            Outcome::Incomplete => {
                link.shares_copies = false;
                Ok(false)
            }
            Outcome::Failed(errno) => Err(link.fetcher.refused(errno)),
            Outcome::SenderEnded => Err(Refused::Denied(0)),
        }
    }

    fn down(&self, peer: Peer, reason: &str) -> Down {
        Down {
            path: "shm",
            peer,
            reason: reason.to_string(),
        }
    }
}

impl Path for ShmPath {
    fn lines(&self, peer: Peer, host: &Calibration) -> Lines {
        let link = self.links.get(self.ranks.local(peer) as usize);
        let direct = link.is_some_and(|l| l.fetcher.may_work());
        let both = link.is_some_and(|l| l.shares_copies);
        prices::shared_memory(host, direct, both)
    }

    fn address(&self) -> String {
        String::new()
    }

    fn wants_address(&self, _peer: Peer) -> bool {
        false
    }

    fn introduce(&mut self, _peer: Peer, _address: &str) -> Result<(), Down> {
        Ok(())
    }

    #[inline]
    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down> {
        let i = self.ranks.local(to) as usize;
        if i >= self.links.len() || self.closed {
            return Err(self.down(to, "not on this host, or this rank has finished"));
        }
        if !self.links[i].announced {
            self.announce(i);
        }
        let link = &mut self.links[i];
        let waited = link.is_waiting();
        let sent = link.send(head, body, cookie);
        if link.is_waiting() && !waited {
            self.waiting.push(i as u32);
        }
        self.ring(i);
        Ok(sent)
    }

    fn poll(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        ShmPath::poll(self, now, inbound)
    }

    fn poll_from(&mut self, peer: Peer, now: Tick, inbound: &mut dyn Inbound) -> bool {
        ShmPath::poll_from(self, peer, now, inbound)
    }

    fn get(
        &mut self,
        from: Peer,
        region: RemoteRegion,
        into: &Buf,
        at: u64,
        len: u64,
    ) -> Result<(), Refused> {
        let i = self.ranks.local(from) as usize;
        let link = self.links.get_mut(i).ok_or(Refused::Unsupported)?;
        let peer = self.ranks.info(i);
        link.fetcher.check(peer)?;
        if len >= SHARED_FROM && link.shares_copies {
            if !link.announced {
                self.announce(i);
            }
            if self.copy_together(i, region.address, (into, at), len)? {
                return Ok(());
            }
        }
        let (link, peer) = (&mut self.links[i], self.ranks.info(i));
        link.fetcher.fetch(peer, region.address, (into, at), len)
    }

    fn pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Says goodbye to the peers that this rank ever exchanged data with; the others never knew it.
    fn close(&mut self) {
        if self.closed {
            return;
        }
        self.look();
        for i in 0..self.links.len() {
            let known = self.links[i].announced || self.links[i].active;
            if i == self.me || !known || self.links[i].gone {
                continue;
            }
            if !self.links[i].announced {
                self.announce(i);
            }
            let waited = self.links[i].is_waiting();
            self.links[i].bye();
            if self.links[i].is_waiting() && !waited {
                self.waiting.push(i as u32);
            }
            self.ring(i);
        }
        self.give_back();
        self.ranks.leave();
        self.closed = true;
    }
}
