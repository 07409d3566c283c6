//! Shared memory between the ranks of one host.
//!
//! One memfd is mapped by all of them ([`segment`]); each ordered pair has a ring of cache lines ([`ring`]) and, for
//! long payload, slots of the receiver's pool ([`bulk`]); a rank that sleeps is woken through its [`Doorbell`].
//! Nothing has a name in a file system, so nothing is left behind by a job that is killed.
//!
//! # Use
//! ```text
//! let local = Local { me, peers, clock };                // peers: all ranks of the job on this host, ascending
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
//! A sleeper is woken by every frame that comes for it and by space for frames it could not send. `arm` says `false`
//! when another thread of this rank is armed already.
//!
//! Called by the owner of the lane only; the doorbell by any thread.

pub mod board;
mod bulk;
mod copy_rate;
mod ended;
mod join;
mod link;
mod rebalance;
pub mod ring;
mod segment;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kw_base::{Calibration, Peer, Tick};
use kw_proto::p2p::prices;
use kw_proto::wire::Header;
use kw_sys::buf::Buf;
use kw_sys::doorbell::{self, DoorbellSlot, Ringer};
use kw_sys::process_vm;

use crate::{Body, Down, Inbound, Lines, Path, Refused, Sent};
use ended::Ended;
pub use join::{Lead, Local, ShmError};
use link::Link;
use segment::Segment;

/// Bytes of a core's own cache where the system does not say.
const OWN_CACHE: usize = 1 << 20;
/// A lap is so many times as long as that.
const LAP: usize = 2;
/// Bytes that the laps of all ranks of a host have together at most.
const POOLS: usize = 64 << 20;

const STRANGER: u32 = u32::MAX;

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
    /// Local index of every peer, [`STRANGER`] for ranks of other hosts.
    index: Box<[u32]>,
    links: Box<[Link]>,
    /// Links whose peer ever sent to us.
    active: Vec<u32>,
    /// Bitmap of senders as last seen.
    seen: Box<[u64]>,
    /// Links with frames that wait.
    waiting: Vec<u32>,
    ringer: Arc<Ringer>,
    rings: u64,
    bell: Arc<Doorbell>,
    /// The word other ranks fetch to see whether they may.
    secret: Box<u64>,
    closed: bool,
    clock: fn() -> Tick,
    /// When this rank next looks how ranks lie on processors.
    next_look: Tick,
    /// Whose process has ended.
    ended: Ended,
}

impl ShmPath {
    fn new(local: &Local, segment: Segment) -> std::io::Result<ShmPath> {
        let segment = Arc::new(segment);
        let me = local.index();
        let last = local.peers.last().map_or(0, |p| p.idx());
        let mut index = vec![STRANGER; last + 1].into_boxed_slice();
        for (i, p) in local.peers.iter().enumerate() {
            index[p.idx()] = i as u32;
        }
        let links = (0..local.peers.len())
            .map(|i| {
                let lanes = (segment.lane(me, i), segment.lane(i, me));
                Link::new(local.peers[i], lanes, local.clock)
            })
            .collect();
        let bell = MappedSlot {
            segment: segment.clone(),
            me,
        };
        let secret = Box::new(u64::from_ne_bytes(kw_sys::unix::random()?));
        let path = ShmPath {
            me,
            index,
            links,
            active: Vec::new(),
            seen: vec![0; local.peers.len().div_ceil(64)].into_boxed_slice(),
            waiting: Vec::new(),
            ringer: Arc::new(Ringer::new()),
            rings: 0,
            bell: Arc::new(doorbell::Doorbell::new(bell)),
            secret,
            closed: false,
            clock: local.clock,
            next_look: Tick::default(),
            ended: Ended::new(local.peers.len(), me)?,
            segment,
        };
        path.segment.enter();
        path.publish_rank_info();
        Ok(path)
    }

    fn publish_rank_info(&self) {
        let rank_info = self.segment.rank_info(self.me);
        rank_info.secret.store(*self.secret, Ordering::Relaxed);
        let cpu = kw_sys::cpus::allowed().first().map_or(0, |c| c + 1);
        rank_info.cpu.store(cpu as u32, Ordering::Relaxed);
        if let Some(own) = self.ended.own() {
            rank_info.started.store(own.started, Ordering::Relaxed);
            rank_info.namespace.store(own.namespace, Ordering::Relaxed);
        }
        rank_info
            .probe
            .store(&*self.secret as *const u64 as u64, Ordering::Relaxed);
        // SYNC: rank_info.
        rank_info
            .pid
            .store(process_vm::pid() as u32, Ordering::Release);
    }

    /// This rank's doorbell.
    pub fn doorbell(&self) -> Arc<Doorbell> {
        self.bell.clone()
    }

    /// The boards of this host.
    pub fn boards(&self) -> board::Boards {
        board::Boards::new(self.segment.clone(), self.me, self.ringer.clone())
    }

    /// This host's number of a rank, where it is one of this host.
    pub fn place(&self, peer: Peer) -> Option<u32> {
        Some(self.local(peer)).filter(|&i| i != STRANGER)
    }

    /// Whether this path leads to that rank.
    #[inline]
    pub fn reaches(&self, peer: Peer) -> bool {
        self.local(peer) != STRANGER
    }

    /// Whether a rank of this host has not joined yet, and its card says nothing.
    pub fn has_yet_to_join(&self, peer: Peer) -> bool {
        let i = self.local(peer);
        // SYNC: rank_info.
        i != STRANGER
            && self
                .segment
                .rank_info(i as usize)
                .pid
                .load(Ordering::Acquire)
                == 0
    }

    /// The first processor that a rank of this host may use; `None` before that rank has joined.
    pub fn cpu(&self, peer: Peer) -> Option<usize> {
        let i = self.local(peer);
        if i == STRANGER {
            return None;
        }
        let rank_info = self.segment.rank_info(i as usize);
        // SYNC: rank_info.
        if rank_info.pid.load(Ordering::Acquire) == 0 {
            return None;
        }
        (rank_info.cpu.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// How often this rank woke a sleeping one.
    pub fn rings(&self) -> u64 {
        self.rings
    }

    #[inline]
    fn local(&self, peer: Peer) -> u32 {
        self.index.get(peer.idx()).copied().unwrap_or(STRANGER)
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

    /// Learns who has begun to send since the last look.
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
    fn receive<I: Inbound>(&mut self, i: usize, inbound: &mut I) -> bool {
        let moved = self.links[i].receive(inbound);
        if moved.ring {
            self.ring(i);
        }
        if moved.feed {
            self.feed();
        }
        moved.any
    }

    /// Rings whoever found no slot in this rank's pool.
    #[cold]
    fn feed(&mut self) {
        // SYNC: slot-free. Whoever asks from here on is seen the next time.
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

    /// Slots of a lap that is longer than two of a core's own caches, as far as all ranks have room.
    fn long_lap(&self) -> usize {
        let cache = kw_sys::cpus::own_cache().unwrap_or(OWN_CACHE);
        let all = POOLS / self.links.len().max(1) / segment::SLOT;
        (LAP * cache / segment::SLOT).min(all).max(bulk::SHORT_LAP)
    }

    /// Where each rank has a core of its own, long payload goes round more memory than two of a core's
    /// own caches hold; but no more than [`POOLS`] for all ranks. Copies are judged by the figures of
    /// the host.
    pub fn spread_out(&mut self, crowded: bool, host: &Calibration) {
        let lap = match crowded {
            true => bulk::SHORT_LAP,
            false => self.long_lap(),
        };
        for link in &mut self.links {
            link.copy_rate.set_host(host);
            link.spread_out(lap, crowded);
        }
    }

    /// Sends a frame with a body of `len` bytes that `fill` writes, where it is short and can go at once; otherwise nothing has happened, and
    /// the frame is one for [`Path::send`].
    #[inline(always)]
    pub fn put_at_once(
        &mut self,
        to: Peer,
        head: &Header,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let i = self.local(to) as usize;
        let link = self.links.get_mut(i).filter(|l| l.announced);
        if self.closed || !link.is_some_and(|l| l.put_at_once(head, len, fill)) {
            return false;
        }
        self.ring(i);
        true
    }

    /// The next frame of a peer, looking for it as long as `goes_on` says so after each look in vain, where it is a whole one; [`ShmPath::accept_from`] takes it away.
    /// Everything else that may come is left to [`Path::poll_from`].
    #[inline(always)]
    pub fn next_from(
        &mut self,
        peer: Peer,
        goes_on: impl FnMut() -> bool,
    ) -> Option<(Header, &[u8])> {
        let i = self.local(peer) as usize;
        if !self.waiting.is_empty() {
            return None;
        }
        let link = self.links.get_mut(i).filter(|l| l.active)?;
        link.next(goes_on)
    }

    /// The frame that [`ShmPath::next_from`] has shown, with a body of `len` bytes, was read.
    #[inline(always)]
    pub fn accept_from(&mut self, peer: Peer, len: usize) {
        let i = self.local(peer) as usize;
        if self.links.get_mut(i).is_some_and(|l| l.accept(len)) {
            self.ring(i);
        }
    }

    fn flush<I: Inbound>(&mut self, inbound: &mut I) -> bool {
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

    fn down(&self, peer: Peer, reason: &str) -> Down {
        Down {
            path: "shm",
            peer,
            reason: reason.to_string(),
        }
    }

    /// Tries once whether we may copy straight from the peer's memory.
    #[cold]
    fn try_direct(&mut self, i: usize) -> Result<(), Refused> {
        let rank_info = self.segment.rank_info(i);
        // SYNC: rank_info.
        let pid = rank_info.pid.load(Ordering::Acquire);
        if pid == 0 {
            return Err(Refused::Denied(0));
        }
        let word = process_vm::read_word(pid as i32, rank_info.probe.load(Ordering::Relaxed));
        // In a container of its own, a number may name quite another process: the word tells.
        let right = word == Ok(rank_info.secret.load(Ordering::Relaxed));
        self.links[i].direct = Some(right);
        match word {
            Err(errno) => Err(Refused::Denied(errno)),
            Ok(_) if !right => Err(Refused::Denied(0)),
            Ok(_) => Ok(()),
        }
    }

    /// Copies `len` bytes at `address` of the memory of the peer at `i` to `buf`.
    fn fetch(
        &mut self,
        i: usize,
        address: u64,
        (buf, at): (&Buf, u64),
        len: u64,
    ) -> Result<(), Refused> {
        if i >= self.links.len() {
            return Err(Refused::Unsupported);
        }
        match self.links[i].direct {
            Some(true) => {}
            Some(false) => return Err(Refused::Unsupported),
            None => self.try_direct(i)?,
        }
        let pid = self.segment.rank_info(i).pid.load(Ordering::Relaxed) as i32;
        process_vm::fetch(pid, address, buf, at, len).map_err(|errno| {
            self.links[i].direct = Some(false);
            Refused::Denied(errno)
        })
    }
}

impl Path for ShmPath {
    fn lines(&self, peer: Peer, host: &Calibration) -> Lines {
        let link = self.links.get(self.local(peer) as usize);
        let direct = link.is_some_and(|l| l.direct != Some(false));
        let mut lines = prices::shared_memory(host, direct);
        if let Some(slow) = link.and_then(|l| l.copy_rate.slow()) {
            lines.stream.tb = slow;
        }
        lines
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
        let i = self.local(to) as usize;
        if i >= self.links.len() || self.closed {
            return Err(self.down(to, "not on this host, or this rank has said goodbye"));
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

    fn poll<I: Inbound>(&mut self, _now: Tick, inbound: &mut I) -> bool {
        self.look();
        let mut any = false;
        for k in 0..self.active.len() {
            any |= self.receive(self.active[k] as usize, inbound);
        }
        if !self.waiting.is_empty() {
            any |= self.flush(inbound);
        }
        any
    }

    #[inline]
    fn poll_from<I: Inbound>(&mut self, peer: Peer, _now: Tick, inbound: &mut I) -> bool {
        let i = self.local(peer) as usize;
        if i >= self.links.len() {
            return false;
        }
        if !self.links[i].active {
            self.look();
        }
        let mut any = self.links[i].active && self.receive(i, inbound);
        if !self.waiting.is_empty() {
            any |= self.flush(inbound);
        }
        any
    }

    fn get(
        &mut self,
        from: Peer,
        address: u64,
        into: &Buf,
        at: u64,
        len: u64,
    ) -> Result<(), Refused> {
        let begin = (self.clock)();
        let i = self.local(from) as usize;
        self.fetch(i, address, (into, at), len)?;
        self.links[i].copy_rate.fetched(begin, len);
        Ok(())
    }

    fn pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Says goodbye to those we ever talked with; the others never knew us.
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
        let own = self.segment.rank_info(self.me);
        // SYNC: left.
        own.left.store(1, Ordering::Release);
        self.closed = true;
    }
}
