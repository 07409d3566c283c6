//! One connection in use: frames out, frames in.

use super::outbox::{COPIED, Outbox};
use super::{Tuning, segmented};
use crate::contract::{Body, Down, Inbound, Landing, Sent};
use kw_base::Peer;
use kw_core::wire::{HEADER_LEN, Header, Kind, WireError};
use kw_sys::tcp::{Got, Sock};
use std::io;

/// Why a connection is over.
#[derive(Debug)]
pub enum End {
    /// The other side closed it.
    Closed,
    /// The system says so.
    Failed(io::Error),
    /// What came is not a frame.
    Nonsense(WireError),
}

impl End {
    /// One clause for people.
    pub fn sentence(&self, peer: Peer) -> String {
        match self {
            End::Closed => format!(
                "it closed the connection without a goodbye; rank {peer} has probably died, see its own messages"
            ),
            End::Failed(e) => format!(
                "the connection broke ({e}); rank {peer} or its host has probably died, see its own messages"
            ),
            End::Nonsense(e) => format!(
                "it sent what is not a frame ({e}); check that all ranks load the same library"
            ),
        }
    }
}

impl From<io::Error> for End {
    fn from(e: io::Error) -> End {
        End::Failed(e)
    }
}

/// A payload on its way to where it belongs.
#[derive(Debug)]
struct Inflow {
    landing: Landing,
    len: u64,
    done: u64,
    /// End of the segment that is being received; frames follow it.
    stop: u64,
}

impl Inflow {
    /// Bytes of the payload up to the segment's end that have a place.
    fn fits(&self) -> u64 {
        self.stop
            .min(self.landing.buf.len().saturating_sub(self.landing.at))
    }

    /// Takes what `bytes` has of the payload; returns how much that is.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let n = (bytes.len() as u64).min(self.stop - self.done) as usize;
        let placed = self.fits().saturating_sub(self.done).min(n as u64) as usize;
        if placed > 0 {
            let at = self.landing.at + self.done;
            self.landing.buf.write(at, &bytes[..placed]);
        }
        self.done += n as u64;
        n
    }
}

/// A welcomed connection.
#[derive(Debug)]
pub struct Link {
    pub sock: Sock,
    pub outbox: Outbox,
    /// The peer said goodbye, and that was told.
    pub bye: bool,
    /// The poller watches for room to send.
    pub armed: bool,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    ask: usize,
    inflow: Option<Inflow>,
    /// A payload of which more segments are to come, while frames between them are received.
    paused: Option<Inflow>,
    segment: u64,
    /// Bytes that must have come for a sleep on the socket to end.
    wake_at: u32,
}

/// Kinds whose body is payload and may be received in place.
fn carries_payload(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write
    )
}

/// Largest payload that may be joined to its header (see [`Tuning::send_joined`]).
const JOIN_ROOM: usize = 4 << 10;
/// Most frames are this small; clearing more of the stack for them would cost time.
const SMALL_JOIN: usize = 224;
/// Payload remainders up to this size are received together with what follows them.
const TAIL: u64 = 16 << 10;

impl Link {
    pub fn new(sock: Sock, mut outbox: Outbox, tuning: &Tuning) -> Link {
        let segment = if sock.is_loopback() {
            tuning.segment_loopback
        } else {
            // Where the kernel does not know this option, answers wait behind what it holds.
            let _ = sock.limit_unsent(tuning.unsent);
            tuning.segment
        };
        let segment = segment.max(COPIED);
        outbox.set_segment(segment);
        Link {
            sock,
            outbox,
            bye: false,
            armed: false,
            buffer: vec![0; tuning.read_buffer].into_boxed_slice(),
            start: 0,
            end: 0,
            ask: tuning.read_first,
            inflow: None,
            paused: None,
            segment,
            wake_at: 1,
        }
    }

    /// Has a sleep on the socket end when `most` bytes of the segment that is being received have come, or its end; with zero, as
    /// soon as anything has come. More than the segment's rest is never waited for: nothing else is certain to come.
    pub fn wake_for(&mut self, most: u32) {
        let rest = self.inflow.as_ref().map_or(0, |f| f.stop - f.done);
        self.set_wake_at(rest.min(most as u64) as u32);
    }

    fn set_wake_at(&mut self, bytes: u32) {
        let bytes = bytes.max(1);
        // A system that refuses goes on as before; what it goes on with is what we keep.
        if bytes != self.wake_at && self.sock.wake_at(bytes).is_ok() {
            self.wake_at = bytes;
        }
    }

    /// Sends one frame, or as much of it as goes, and queues the rest.
    #[inline]
    pub fn send(
        &mut self,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
        tuning: &Tuning,
    ) -> io::Result<Sent> {
        if !self.outbox.is_empty() {
            return Ok(self.outbox.push(head, body, 0, cookie));
        }
        let total = HEADER_LEN as u64 + body.len();
        let n = match body {
            Body::None => self.sock.send(&head.encode())?,
            Body::Bytes(bytes) => self.send_joined(head, bytes.len(), |to| {
                to.copy_from_slice(bytes);
            })?,
            Body::Payload { buf, from, len } if len <= tuning.send_joined.min(JOIN_ROOM) as u64 => {
                self.send_joined(head, len as usize, |to| {
                    buf.read(from, to);
                })?
            }
            Body::Payload { buf, from, len } => {
                let first = self
                    .outbox
                    .first_segment(head.kind, len)
                    .min(tuning.send_chunk);
                self.sock.send_with(&head.encode(), buf, from, first)?
            }
        };
        if n as u64 == total {
            return Ok(Sent::Done);
        }
        Ok(self.outbox.push(head, body, n as u64, cookie))
    }

    #[inline]
    fn send_joined(
        &self,
        head: &Header,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> io::Result<usize> {
        match len {
            len if len <= SMALL_JOIN => self.join::<{ HEADER_LEN + SMALL_JOIN }>(head, len, fill),
            len if len <= JOIN_ROOM => self.join::<{ HEADER_LEN + JOIN_ROOM }>(head, len, fill),
            _ => {
                // Protocol bodies are a few bytes; a long one is rare enough for a piece of memory of its own.
                let mut joined = vec![0; HEADER_LEN + len];
                joined[..HEADER_LEN].copy_from_slice(&head.encode());
                fill(&mut joined[HEADER_LEN..]);
                self.sock.send(&joined)
            }
        }
    }

    /// Header and body in `N` bytes of the stack.
    #[inline]
    fn join<const N: usize>(
        &self,
        head: &Header,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> io::Result<usize> {
        let mut joined = [0; N];
        joined[..HEADER_LEN].copy_from_slice(&head.encode());
        fill(&mut joined[HEADER_LEN..HEADER_LEN + len]);
        self.sock.send(&joined[..HEADER_LEN + len])
    }

    /// Sends from the queue, for as many turns as it gets.
    pub fn push<I: Inbound>(
        &mut self,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut I,
    ) -> io::Result<bool> {
        let mut moved = false;
        for _ in 0..tuning.turns {
            let told = |cookie| inbound.on_sent(peer, cookie);
            if self.outbox.send_some(&self.sock, tuning.send_chunk, told)? == 0 {
                break;
            }
            moved = true;
            if self.outbox.is_empty() {
                break;
            }
        }
        Ok(moved)
    }

    /// Receives, for as many turns as it gets, and hands frames over.
    #[inline]
    pub fn pull<I: Inbound>(
        &mut self,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut I,
    ) -> Result<bool, End> {
        let mut moved = false;
        for _ in 0..tuning.turns {
            let Received { got, asked, direct } = self.receive();
            let n = match got? {
                Got::Bytes(n) => n,
                Got::Nothing => break,
                Got::End => return Err(End::Closed),
            };
            moved = true;
            self.place(n, direct);
            let frames = self.parse(peer, inbound)?;
            self.adapt(n == asked, frames, tuning);
            // Less than asked: the socket is empty. After a payload that is complete one more look is worth its price: the
            // sender may have announced where the answer goes.
            if n < asked {
                break;
            }
        }
        if self.wake_at > 1 {
            self.wake_for(self.wake_at);
        }
        Ok(moved)
    }

    /// One system call: into the payload's place when one is awaited, else into the buffer.
    #[inline]
    fn receive(&mut self) -> Received {
        let mut ask = self.ask.min(self.buffer.len());
        if let Some(f) = &self.inflow {
            let want = f.fits().saturating_sub(f.done);
            let whole = f.fits() == f.stop && want <= TAIL;
            let tail = if whole { ask } else { 0 };
            if want > 0 {
                let at = f.landing.at + f.done;
                let rest = &mut self.buffer[..tail];
                if let Some(got) = self.sock.recv_into(&f.landing.buf, at, want, rest) {
                    let asked = want as usize + tail;
                    return Received {
                        got,
                        asked,
                        direct: want,
                    };
                }
            }
            ask = self.buffer.len();
        }
        let to = self.buffer.len().min(self.end + ask);
        let place = &mut self.buffer[self.end..to];
        Received {
            asked: place.len(),
            got: self.sock.recv(place),
            direct: 0,
        }
    }

    /// Notes where `n` bytes went: `direct` at most to the payload's place, the rest to the (then empty) buffer.
    #[inline]
    fn place(&mut self, n: usize, direct: u64) {
        let placed = (n as u64).min(direct);
        if let Some(f) = &mut self.inflow {
            f.done += placed;
        }
        self.end += n - placed as usize;
    }

    /// Hands over what is complete; returns how many frames began.
    #[inline]
    fn parse<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> Result<u32, End> {
        let mut frames = 0;
        loop {
            if let Some(f) = &mut self.inflow {
                self.start += f.take(&self.buffer[self.start..self.end]);
                if f.done < f.stop {
                    break;
                }
                self.segment_done(peer, inbound);
            }
            let ready = &self.buffer[self.start..self.end];
            let Some((bytes, body)) = ready.split_first_chunk::<HEADER_LEN>() else {
                break;
            };
            let head = Header::decode(bytes).map_err(End::Nonsense)?;
            let len = head.body_len();
            let whole = !segmented(head.kind) || len <= self.segment;
            if whole && len <= body.len() as u64 {
                self.start += HEADER_LEN + len as usize;
                match head.kind {
                    Kind::Bye | Kind::More => self.own_frame(peer, head.kind, inbound)?,
                    _ => {
                        let body = &self.buffer[self.start - len as usize..self.start];
                        inbound.on_frame(peer, &head, body);
                    }
                }
            } else if carries_payload(head.kind) && self.paused.is_none() {
                self.start += HEADER_LEN;
                let landing = inbound.on_head(peer, &head);
                let stop = if whole { len } else { self.segment };
                self.inflow = Some(Inflow {
                    landing,
                    len,
                    done: 0,
                    stop,
                });
            } else if whole && len <= (self.buffer.len() - HEADER_LEN) as u64 {
                break;
            } else {
                return Err(End::Nonsense(WireError::Misplaced(head.kind)));
            }
            frames += 1;
        }
        self.compact();
        Ok(frames)
    }

    /// The segment of the payload is complete: so is the payload, or frames follow that may pass it.
    fn segment_done<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) {
        match self.inflow.take() {
            Some(f) if f.done == f.len => inbound.on_landed(peer, f.landing.cookie),
            part => self.paused = part,
        }
    }

    /// A frame that is the path's own.
    fn own_frame<I: Inbound>(
        &mut self,
        peer: Peer,
        kind: Kind,
        inbound: &mut I,
    ) -> Result<(), End> {
        match (kind, self.paused.take()) {
            (Kind::Bye, None) => self.goodbye(peer, inbound),
            (Kind::More, Some(mut f)) => {
                f.stop = f.len.min(f.stop.saturating_add(self.segment));
                self.inflow = Some(f);
            }
            _ => return Err(End::Nonsense(WireError::Misplaced(kind))),
        }
        Ok(())
    }

    #[cold]
    fn goodbye<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) {
        self.bye = true;
        let down = Down {
            path: "tcp",
            peer,
            reason: "it said goodbye (MPI_Finalize)".to_string(),
        };
        inbound.on_down(down, true);
    }

    /// Moves the beginning of an incomplete frame to the front of the buffer.
    #[inline]
    fn compact(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// What comes next is probably like what came last. Many frames a call: ask for more at once. A large payload: ask for
    /// little more than its header, so that little of it is copied.
    #[inline]
    fn adapt(&mut self, full: bool, frames: u32, tuning: &Tuning) {
        match self.inflow.as_ref().or(self.paused.as_ref()) {
            Some(f) if f.len >= tuning.large => self.ask = tuning.read_head,
            _ if frames == 0 => {}
            _ if full && frames > 1 => self.ask = (self.ask * 2).min(self.buffer.len()),
            _ => self.ask = self.ask.max(tuning.read_first),
        }
    }
}

/// What one receive brought.
struct Received {
    got: io::Result<Got>,
    asked: usize,
    /// Bytes of these that were asked for in the payload's place.
    direct: u64,
}
