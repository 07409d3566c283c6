//! One peer: the lane to it, the lane from it, and the frames that wait for space.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use kw_base::Peer;
use kw_proto::wire::{HEADER_LEN, Header};
use kw_sys::buf::Buf;
use kw_sys::doorbell::DoorbellSlot;

use super::bulk::{Drainer, Emptied, Filler};
use super::fetch::Fetcher;
use super::ring::{Consumer, Found, Producer, longest};
use super::segment::{CELL, CELLS, Lane};
use crate::{Body, Destination, Inbound, Sent};

/// Bytes of a cell before the body: publication word and header.
const FRONT: usize = 8 + HEADER_LEN;

/// The longest body that travels in the ring; longer ones flow through the receiver's pool. A
/// built-in value.
pub const INLINE: usize = 2048;

const _: () = assert!(cells(INLINE) <= longest(CELLS));

/// Header and body in the cells.
const WHOLE: u8 = 1;
/// Header and the body's length in the cell, the body in the receiver's pool.
const LONG: u8 = 2;
/// The peer will send nothing more.
const BYE: u8 = 3;
/// The peer copies a message from this rank's memory, and wants help; the number of its job.
const COPY: u8 = 4;

/// Bytes of frames handled from one peer before other peers get their turn, and before a waiting
/// call checks whether its message has arrived: unexpected messages stay in shared memory, where
/// they limit how far their sender is ahead, and are not copied twice. A built-in value.
const TURN: u64 = 4 << 10;

#[inline]
const fn cells(body: usize) -> usize {
    (FRONT + body).div_ceil(CELL)
}

#[derive(Debug)]
enum Waiting {
    /// A frame that has not begun.
    Frame {
        head: Header,
        body: Kept,
        cookie: u64,
    },
    /// The rest of a long payload whose header is in the ring.
    Rest {
        buf: Buf,
        from: u64,
        len: u64,
        cookie: u64,
        owed: bool,
    },
    Bye,
}

#[derive(Debug)]
enum Kept {
    Bytes(Box<[u8]>),
    Payload { buf: Buf, from: u64, len: u64 },
}

#[derive(Debug)]
struct Arriving {
    destination: Destination,
    done: u64,
    len: u64,
}

/// Action for the owner of a link after it has moved data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Anything moved.
    pub any: bool,
    /// The other side may be waiting for our action: check its doorbell.
    pub ring: bool,
    /// Slots of our pool fell free, and a sender had found none.
    pub feed: bool,
}

/// One peer; see the module.
#[derive(Debug)]
pub struct Link {
    pub peer: Peer,
    out: Producer<Lane, CELLS>,
    inn: Consumer<Lane, CELLS>,
    filler: Filler,
    drainer: Drainer,
    queue: VecDeque<Waiting>,
    arriving: Option<Arriving>,
    /// This rank's bit in the peer's bitmap of senders is set.
    pub announced: bool,
    /// The peer's bit in this rank's bitmap is set.
    pub active: bool,
    /// The peer said goodbye.
    pub gone: bool,
    /// Copies straight from the peer's memory.
    pub fetcher: Fetcher,
    /// The peer, too, may copy long messages that this rank receives from it (`shared_copy`).
    pub shares_copies: bool,
}

impl Link {
    pub fn new(peer: Peer, (out, inn): (Lane, Lane)) -> Link {
        Link {
            peer,
            out: Producer::new(out),
            inn: Consumer::new(inn),
            filler: Filler::default(),
            drainer: Drainer::default(),
            queue: VecDeque::new(),
            arriving: None,
            announced: false,
            active: false,
            gone: false,
            fetcher: Fetcher::default(),
            shares_copies: false,
        }
    }

    /// The peer's doorbell.
    #[inline(always)]
    pub fn doorbell_slot(&self) -> &DoorbellSlot {
        self.out.memory().doorbell_slot()
    }

    /// Whether frames wait.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Sends or queues a frame.
    #[inline]
    pub fn send(&mut self, head: &Header, body: Body<'_>, cookie: u64) -> Sent {
        if self.queue.is_empty() {
            if body.len() <= INLINE as u64 {
                if self.put_whole(head, &body) {
                    return Sent::Done;
                }
            } else if let Body::Payload { buf, from, len } = body {
                self.filler.prefetch_pool_use(self.out.memory());
                if self.put_head(head, len) {
                    return self.begin(buf, from, len, cookie);
                }
            }
        }
        self.keep(head, body, cookie)
    }

    #[inline]
    fn put_whole(&mut self, head: &Header, body: &Body<'_>) -> bool {
        let len = body.len() as usize;
        self.put(head, len, |out| match body {
            Body::None => {}
            Body::Bytes(b) => out.copy_from_slice(b),
            Body::Payload { buf, from, .. } => {
                buf.read(*from, out);
            }
        })
    }

    /// Sends a frame whose body of up to [`INLINE`] bytes `fill` writes, unless others wait or
    /// there is no space; nothing has happened then.
    #[inline(always)]
    pub fn put_at_once(&mut self, head: &Header, len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
        self.queue.is_empty() && len <= INLINE && self.put(head, len, fill)
    }

    #[inline(always)]
    fn put(&mut self, head: &Header, len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
        let Some(slot) = self.out.reserve(cells(len)) else {
            return false;
        };
        let cell = self.out.memory().cell(slot.cell);
        // SAFETY: the slot's cells lie in a row inside the ring, belong to us until published, and
        // hold FRONT + len bytes.
        let out = unsafe {
            cell.add(8).cast::<[u8; HEADER_LEN]>().write(head.encode());
            std::slice::from_raw_parts_mut(cell.add(FRONT), len)
        };
        fill(out);
        self.out.publish(slot, len, WHOLE);
        true
    }

    fn put_head(&mut self, head: &Header, len: u64) -> bool {
        let Some(slot) = self.out.reserve(1) else {
            return false;
        };
        let cell = self.out.memory().cell(slot.cell);
        // SAFETY: as in `put_whole`.
        unsafe {
            cell.add(8).cast::<[u8; HEADER_LEN]>().write(head.encode());
            cell.add(FRONT).cast::<u64>().write(len);
        }
        self.out.publish(slot, 8, LONG);
        true
    }

    fn put_bye(&mut self) -> bool {
        let Some(slot) = self.out.reserve(1) else {
            return false;
        };
        self.out.publish(slot, 0, BYE);
        true
    }

    /// Asks the peer to help with a copy, if that can be said at once.
    pub fn ask_for_copy(&mut self, number: u64) {
        let slot = match self.queue.is_empty() {
            true => self.out.reserve(1),
            false => None,
        };
        let Some(slot) = slot else { return };
        let cell = self.out.memory().cell(slot.cell);
        // SAFETY: as in `put_whole`.
        unsafe { cell.add(FRONT).cast::<u64>().write(number) };
        self.out.publish(slot, 8, COPY);
    }

    /// Fills the part of a long payload that fits and queues the rest.
    fn begin(&mut self, buf: &Buf, from: u64, len: u64, cookie: u64) -> Sent {
        let done = self.fill(buf, from, len);
        if done == len {
            return Sent::Done;
        }
        self.queue.push_back(Waiting::Rest {
            buf: buf.clone(),
            from: from + done,
            len: len - done,
            cookie,
            owed: true,
        });
        Sent::Queued
    }

    fn fill(&mut self, buf: &Buf, from: u64, len: u64) -> u64 {
        let (mut done, mut buf) = (0, buf.pieces());
        while done < len {
            let (lane, rest) = (self.out.memory(), (done, len - done));
            let n = self.filler.fill(lane, &mut buf, from + done, rest);
            if n == 0 {
                break;
            }
            done += n;
        }
        done
    }

    #[cold]
    fn keep(&mut self, head: &Header, body: Body<'_>, cookie: u64) -> Sent {
        let (body, sent) = match body {
            Body::None => (Kept::Bytes(Box::default()), Sent::Done),
            Body::Bytes(b) => (Kept::Bytes(b.into()), Sent::Done),
            Body::Payload { buf, from, len } => (
                Kept::Payload {
                    buf: buf.clone(),
                    from,
                    len,
                },
                Sent::Queued,
            ),
        };
        self.queue.push_back(Waiting::Frame {
            head: *head,
            body,
            cookie,
        });
        sent
    }

    /// Sets how many slots long payload to this peer goes round, and whether ranks share cores.
    pub fn spread_out(&mut self, slots: usize, oversubscribed: bool) {
        self.filler.spread_out(slots, oversubscribed);
        self.shares_copies = !oversubscribed;
    }

    /// The peer's process has ended: nothing waits for it any more, and nothing more comes.
    pub fn end_with_process(&mut self) {
        self.gone = true;
        self.queue.clear();
        self.arriving = None;
    }

    /// Queues the goodbye.
    pub fn bye(&mut self) {
        if !self.queue.is_empty() || !self.put_bye() {
            self.queue.push_back(Waiting::Bye);
        }
    }

    /// Sends waiting frames, as far as there is space. Returns whether anything moved.
    pub fn flush<I: Inbound + ?Sized>(&mut self, inbound: &mut I) -> bool {
        let mut moved = false;
        while let Some(first) = self.queue.pop_front() {
            let (progress, left) = self.flush_one(first, inbound);
            moved |= progress;
            if let Some(left) = left {
                self.queue.push_front(left);
                break;
            }
        }
        moved
    }

    fn flush_one<I: Inbound + ?Sized>(
        &mut self,
        item: Waiting,
        inbound: &mut I,
    ) -> (bool, Option<Waiting>) {
        match item {
            Waiting::Bye => match self.put_bye() {
                true => (true, None),
                false => (false, Some(Waiting::Bye)),
            },
            Waiting::Rest {
                buf,
                from,
                len,
                cookie,
                owed,
            } => {
                let done = self.fill(&buf, from, len);
                if done == len {
                    if owed {
                        inbound.on_sent(self.peer, cookie);
                    }
                    return (true, None);
                }
                let rest = Waiting::Rest {
                    buf,
                    from: from + done,
                    len: len - done,
                    cookie,
                    owed,
                };
                (done > 0, Some(rest))
            }
            Waiting::Frame { head, body, cookie } => self.flush_frame(head, body, cookie, inbound),
        }
    }

    fn flush_frame<I: Inbound + ?Sized>(
        &mut self,
        head: Header,
        body: Kept,
        cookie: u64,
        inbound: &mut I,
    ) -> (bool, Option<Waiting>) {
        let went = match &body {
            Kept::Bytes(b) => self.put_whole(&head, &Body::Bytes(b)),
            Kept::Payload { buf, from, len } if *len <= INLINE as u64 => {
                let (from, len) = (*from, *len);
                self.put_whole(&head, &Body::Payload { buf, from, len })
            }
            Kept::Payload { len, .. } => self.put_head(&head, *len),
        };
        match (went, body) {
            (false, body) => (false, Some(Waiting::Frame { head, body, cookie })),
            (true, Kept::Bytes(_)) => (true, None),
            (true, Kept::Payload { len, .. }) if len <= INLINE as u64 => {
                inbound.on_sent(self.peer, cookie);
                (true, None)
            }
            (true, Kept::Payload { buf, from, len }) => {
                let rest = Waiting::Rest {
                    buf,
                    from,
                    len,
                    cookie,
                    owed: true,
                };
                let (_, left) = self.flush_one(rest, inbound);
                (true, left)
            }
        }
    }

    /// Takes arrived frames, at most a turn's worth; emptied slots of our pool are kept.
    #[inline]
    pub fn receive<I: Inbound + ?Sized>(
        &mut self,
        inbound: &mut I,
        emptied: &mut Emptied,
    ) -> Moved {
        let mut moved = Moved {
            any: false,
            ring: false,
            feed: false,
        };
        let mut taken = 0;
        loop {
            if let Some(a) = &self.arriving {
                taken += a.len;
                if !self.land(inbound, emptied, &mut moved) {
                    break;
                }
            }
            if taken >= TURN {
                break;
            }
            let Some(found) = self.inn.peek() else {
                break;
            };
            moved.any = true;
            taken += (cells(found.len) * CELL) as u64;
            moved.ring |= self.take(found, inbound);
        }
        moved
    }

    /// The next frame, polling for it as long as `goes_on` returns true, if it is a whole one and
    /// nothing must be done before. It stays where it is until [`Link::accept`].
    #[inline(always)]
    pub fn next(&mut self, mut goes_on: impl FnMut() -> bool) -> Option<(Header, &[u8])> {
        if self.arriving.is_some() {
            return None;
        }
        let found = loop {
            if let Some(found) = self.inn.peek() {
                break found;
            }
            if !goes_on() {
                return None;
            }
        };
        let (head, body) = self.frame(&found);
        let head = Header::decode(&head).ok()?;
        (found.mark == WHOLE).then_some((head, body))
    }

    /// The frame that [`Link::next`] has shown, with a body of `len` bytes, was read. Returns
    /// whether space was given back.
    #[inline(always)]
    pub fn accept(&mut self, len: usize) -> bool {
        self.inn.release(cells(len))
    }

    /// Header and body of a frame in the ring.
    #[inline(always)]
    fn frame(&self, found: &Found) -> ([u8; HEADER_LEN], &[u8]) {
        let cell = self.inn.memory().cell(found.cell);
        // SAFETY: published cells lie in a row inside the ring and are ours until released, which
        // takes the link for itself; the sender, a rank of our own job, keeps `len` within what a
        // frame may have.
        unsafe {
            (
                cell.add(8).cast::<[u8; HEADER_LEN]>().read(),
                std::slice::from_raw_parts(cell.add(FRONT), found.len.min(INLINE)),
            )
        }
    }

    /// Handles one frame of the ring. Returns whether space was given back.
    #[inline]
    fn take<I: Inbound + ?Sized>(&mut self, found: Found, inbound: &mut I) -> bool {
        let (head, body) = self.frame(&found);
        match (found.mark, Header::decode(&head)) {
            (WHOLE, Ok(head)) => {
                let cells = cells(body.len());
                inbound.on_frame(self.peer, &head, body);
                self.inn.release(cells)
            }
            (LONG, Ok(head)) => {
                let len = body.first_chunk().copied().map_or(0, u64::from_ne_bytes);
                self.arrive(&head, len, inbound)
            }
            (COPY, _) => {
                let number = body.first_chunk().copied().map_or(0, u64::from_ne_bytes);
                self.help_to_copy(number)
            }
            _ => self.end(found.mark, inbound),
        }
    }

    fn arrive<I: Inbound + ?Sized>(&mut self, head: &Header, len: u64, inbound: &mut I) -> bool {
        self.arriving = Some(Arriving {
            destination: inbound.on_head(self.peer, head),
            done: 0,
            len,
        });
        self.inn.release(1)
    }

    /// Writes pieces of a message that the peer receives.
    #[cold]
    fn help_to_copy(&mut self, number: u64) -> bool {
        let peer = self.out.memory().receiver();
        if self.fetcher.check(peer).is_ok() {
            let pid = peer.pid.load(Ordering::Relaxed) as i32;
            self.out.memory().copy_job().send(number, pid);
        }
        self.inn.release(1)
    }

    #[cold]
    fn end<I: Inbound + ?Sized>(&mut self, mark: u8, inbound: &mut I) -> bool {
        self.gone = true;
        let reason = match mark {
            BYE => "it called MPI_Finalize".to_string(),
            _ => format!("its ring holds a frame this library does not know (mark {mark})"),
        };
        let down = crate::Down {
            path: "shm",
            peer: self.peer,
            reason,
        };
        inbound.on_down(down, mark == BYE);
        self.inn.release(1)
    }

    /// Moves the payload that is arriving; returns whether all of it is in place.
    fn land<I: Inbound + ?Sized>(
        &mut self,
        inbound: &mut I,
        emptied: &mut Emptied,
        moved: &mut Moved,
    ) -> bool {
        let Some(a) = &mut self.arriving else {
            return true;
        };
        let mut buf = a.destination.buf.pieces();
        while a.done < a.len {
            let at = a.destination.at + a.done;
            let pool = (self.inn.memory(), &mut *emptied);
            let (n, feed) = self.drainer.drain(pool, &mut buf, at, a.len - a.done);
            if n == 0 {
                return false;
            }
            a.done += n;
            moved.any = true;
            moved.ring = true;
            moved.feed |= feed;
        }
        drop(buf);
        let cookie = a.destination.cookie;
        self.arriving = None;
        inbound.on_body(self.peer, cookie);
        true
    }
}
