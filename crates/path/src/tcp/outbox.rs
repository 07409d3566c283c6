//! Frames that the socket did not take yet, in order.
//!
//! A long payload is sent in segments. Between two of them the small frames that were queued behind
//! it pass, then a `More` frame announces that the payload goes on. An answer (`Cts`) thus waits
//! for a segment at most, not for a whole message: otherwise two ranks that send each other large
//! messages would take turns on a link that carries both ways at once. Frames still begin in the
//! order they were sent; the goodbye never passes.
//!
//! A short payload is copied and its sender is done with it; if more than [`WINDOW`] bytes of
//! copies wait it goes on when half of that waits ([`Slowed`]).

use super::segmented;
use super::socket::Socket;
use crate::contract::{Body, Sent};
use crate::slowed::Slowed;
use kw_base::overheads::WINDOW;
use kw_proto::wire::{HEADER_LEN, Header, Kind};
use kw_sys::buf::Buf;
use kw_sys::tcp::Cuts;
use std::collections::VecDeque;
use std::io;

/// The rest of a payload up to this size is copied, and its sender is done with it. No segment is
/// smaller.
pub const COPIED: u64 = 4 << 10;
/// Copies share a piece of memory up to this size.
const SHARED: usize = 64 << 10;

/// One piece of the data to be sent.
#[derive(Debug)]
enum Item {
    /// Bytes of the queue's own; the first `done` are sent.
    Bytes { data: Vec<u8>, done: usize },
    /// Payload of a sender, read when it is sent.
    Payload(Payload),
}

/// A long payload on its way out.
#[derive(Debug)]
struct Payload {
    /// Data before the next byte: at first the frame's header, between segments small frames and a
    /// `More`.
    lead: Vec<u8>,
    /// Bytes of it that are sent.
    led: usize,
    buf: Buf,
    /// The next byte.
    at: u64,
    /// End of the segment that is being sent.
    stop: u64,
    end: u64,
    /// Bytes of the whole payload.
    total: u64,
    cookie: u64,
    segmented: bool,
}

impl Payload {
    /// A segment is sent, and more are to come.
    fn between_segments(&self) -> bool {
        self.led == self.lead.len() && self.at == self.stop && self.at < self.end
    }

    /// Begins the next segment, which a `More` announces.
    fn next_segment(&mut self, bytes: u64) {
        self.lead.clear();
        self.lead
            .extend_from_slice(&Header::bare(Kind::More).encode());
        self.led = 0;
        self.stop = self.end.min(self.stop.saturating_add(bytes));
    }
}

/// A piece that the socket took.
#[derive(Debug)]
pub enum Went<'a> {
    Bytes(&'a [u8]),
    /// A number of bytes of a payload, from an offset on, and its total size.
    Payload(&'a Buf, u64, u64, u64),
    /// The payload with this cookie is through.
    All(u64),
}

/// The queue of one connection.
#[derive(Debug)]
pub struct Outbox {
    items: VecDeque<Item>,
    /// Bytes of copies that wait.
    copies: u64,
    slowed: Slowed,
    /// Bytes of a segment; both sides know it.
    segment: u64,
    /// Nothing passes any more: the last frame is a goodbye.
    sealed: bool,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            items: VecDeque::new(),
            copies: 0,
            slowed: Slowed::default(),
            segment: u64::MAX,
            sealed: false,
        }
    }
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether a payload waits.
    pub fn has_payload(&self) -> bool {
        let payload = |item: &Item| matches!(item, Item::Payload(_));
        self.items.front().is_some_and(payload) || self.items.back().is_some_and(payload)
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.copies = 0;
        self.slowed.clear();
    }

    /// From now on payloads are sent in segments of this many bytes; nothing has been sent yet.
    pub fn set_segment(&mut self, bytes: u64) {
        self.segment = bytes;
        for item in &mut self.items {
            if let Item::Payload(p) = item
                && p.segmented
            {
                p.stop = p.end.min(p.at.saturating_add(bytes));
            }
        }
    }

    /// How much of a frame's payload may be sent at once at first.
    pub fn first_segment(&self, kind: Kind, len: u64) -> u64 {
        if segmented(kind) {
            len.min(self.segment)
        } else {
            len
        }
    }

    /// The frame that is pushed next is the last one.
    pub fn seal(&mut self) {
        self.sealed = true;
    }

    /// Queues the rest of a frame after its first `skip` bytes.
    pub fn push(&mut self, head: &Header, body: Body<'_>, skip: u64, cookie: u64) -> Sent {
        let head_left = &head.encode()[(skip as usize).min(HEADER_LEN)..];
        let skip = skip.saturating_sub(HEADER_LEN as u64);
        match body {
            Body::None => {
                self.copy(head_left);
                Sent::Done
            }
            Body::Bytes(bytes) => {
                self.copy(head_left);
                self.copy(&bytes[skip as usize..]);
                Sent::Done
            }
            Body::Payload { buf, from, len } => {
                let one_segment = self.first_segment(head.kind, len) == len;
                if len - skip <= COPIED && one_segment {
                    self.copy(head_left);
                    let place = self.room((len - skip) as usize);
                    buf.read(from + skip, place);
                    return self.slowed.copied(cookie, self.copies, WINDOW);
                }
                self.items.push_back(Item::Payload(Payload {
                    lead: head_left.to_vec(),
                    led: 0,
                    buf: buf.clone(),
                    at: from + skip,
                    stop: from + self.first_segment(head.kind, len),
                    end: from + len,
                    total: len,
                    cookie,
                    segmented: segmented(head.kind),
                }));
                Sent::Queued
            }
        }
    }

    fn copy(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.room(bytes.len()).copy_from_slice(bytes);
        }
    }

    /// Room for `n` more bytes of the queue's own at its end.
    fn room(&mut self, n: usize) -> &mut [u8] {
        let fits =
            matches!(self.items.back(), Some(Item::Bytes { data, .. }) if data.len() + n <= SHARED);
        if !fits {
            self.items.push_back(Item::Bytes {
                data: Vec::new(),
                done: 0,
            });
        }
        match self.items.back_mut() {
            Some(Item::Bytes { data, .. }) => {
                let at = data.len();
                data.resize(at + n, 0);
                self.copies += n as u64;
                &mut data[at..]
            }
            // The last item is bytes: either it was, or it has just been made so.
            _ => unreachable!("the last item of the outbox is bytes"),
        }
    }

    /// Sends once from the front. Returns how many bytes went, zero if the socket is full, and
    /// calls `went` for each piece, in order.
    pub fn send_some<S: Socket>(
        &mut self,
        sock: &S,
        chunk: u64,
        mut went: impl FnMut(Went<'_>),
    ) -> io::Result<usize> {
        self.let_pass();
        let n = match self.items.front() {
            Some(Item::Bytes { data, done }) => sock.send(&data[*done..])?,
            Some(Item::Payload(p)) => {
                let more = Header::bare(Kind::More).encode();
                let first = (p.stop - p.at).min(chunk);
                // Nothing waits to pass: one call for as many segments as the system takes.
                let alone = p.segmented && !matches!(self.items.get(1), Some(Item::Bytes { .. }));
                let cuts = Cuts {
                    mark: &more,
                    every: self.segment,
                    end: p.end.min(p.at.saturating_add(chunk)),
                };
                let cuts = if alone { &cuts } else { &Cuts::NONE };
                sock.send_cut(&p.lead[p.led..], &p.buf, p.at, first, cuts)?
            }
            None => return Ok(0),
        };
        self.advance(n as u64, &mut went);
        self.slowed
            .go_on(self.copies, WINDOW / 2, |c| went(Went::All(c)));
        Ok(n)
    }

    /// Between two segments: the small frames that wait behind go first.
    fn let_pass(&mut self) {
        let Some(Item::Payload(p)) = self.items.front_mut() else {
            return;
        };
        if !p.between_segments() {
            return;
        }
        p.next_segment(self.segment);
        let small = matches!(self.items.get(1), Some(Item::Bytes { .. })) && !self.sealed;
        let passing = small.then(|| self.items.remove(1)).flatten();
        if let Some(Item::Payload(p)) = self.items.front_mut() {
            if let Some(Item::Bytes { data, .. }) = passing {
                self.copies -= data.len() as u64;
                p.lead.splice(0..0, data);
            }
        }
    }

    fn advance(&mut self, mut n: u64, went: &mut impl FnMut(Went<'_>)) {
        while n > 0 {
            match self.items.front_mut() {
                Some(Item::Bytes { data, done }) => {
                    let step = n.min((data.len() - *done) as u64);
                    went(Went::Bytes(&data[*done..*done + step as usize]));
                    *done += step as usize;
                    self.copies -= step;
                    n -= step;
                    if *done < data.len() {
                        return;
                    }
                }
                Some(Item::Payload(p)) => {
                    let lead = n.min((p.lead.len() - p.led) as u64);
                    if lead > 0 {
                        went(Went::Bytes(&p.lead[p.led..p.led + lead as usize]));
                    }
                    p.led += lead as usize;
                    n -= lead;
                    let step = n.min(p.stop - p.at);
                    if step > 0 {
                        went(Went::Payload(&p.buf, p.at, step, p.total));
                    }
                    p.at += step;
                    n -= step;
                    if p.at < p.end && n > 0 {
                        p.next_segment(self.segment);
                        continue;
                    }
                    if p.at < p.end {
                        return;
                    }
                    went(Went::All(p.cookie));
                }
                None => return,
            }
            self.items.pop_front();
        }
    }
}
