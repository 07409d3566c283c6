//! The sending half of a connection: frames, what was queued, and what the last connection may not have brought.

use super::Tuning;
use super::link::Link;
use super::outbox::{COPIED, Went};
use super::stream::Stream;
use super::stripe::NOBODY;
use super::unacked::forget;
use crate::contract::{Body, Inbound, Sent};
use kw_base::Peer;
use kw_proto::retransmit::{RetransmitBuffer, Run};
use kw_proto::wire::{HEADER_LEN, Header};
use kw_sys::buf::Buf;
use kw_sys::tcp::Sock;
use std::io;

/// Largest payload that may be joined to its header (see [`Tuning::send_joined`]).
const JOIN_ROOM: usize = 4 << 10;
/// Most frames are this small; clearing more of the stack for them would cost time.
const SMALL_JOIN: usize = 224;

impl Link {
    /// Sends one frame, or as much of it as goes, and queues the rest. An error ends the connection; of a link that can have another
    /// one the reading side finds out, after all that came before the end.
    #[inline]
    pub fn send(
        &mut self,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
        tuning: &Tuning,
    ) -> io::Result<Sent> {
        if !self.stream.is_flushed() {
            self.note_mix(head, &body, tuning);
            return Ok(self.stream.outbox.push(head, body, 0, cookie));
        }
        if self.may_wait(&body, tuning) {
            self.note_mix(head, &body, tuning);
        }
        if self.stream.outbox.first_segment(head.kind, body.len()) < body.len() {
            return self.send_segments(head, body, cookie, tuning);
        }
        let n = match self.send_now(head, body, tuning) {
            Ok(n) => n as u64,
            Err(_) if self.stream.kept.is_some() => 0,
            Err(e) => return Err(e),
        };
        let lent = self.keep(head, body, n, tuning);
        let sent = match n == HEADER_LEN as u64 + body.len() {
            true => Sent::Done,
            false => self.stream.outbox.push(head, body, n, cookie),
        };
        match (&mut self.stream.kept, sent) {
            (Some(kept), Sent::Done) if lent && cookie != NOBODY => match kept.finish(cookie) {
                true => Ok(Sent::Done),
                false => Ok(Sent::Queued),
            },
            _ => Ok(sent),
        }
    }

    /// Sends a frame in segments: as many in one system call as it takes.
    fn send_segments(
        &mut self,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
        tuning: &Tuning,
    ) -> io::Result<Sent> {
        self.note_mix(head, &body, tuning);
        let mut sent = self.stream.outbox.push(head, body, 0, cookie);
        match self.send_queued(tuning, |_| sent = Sent::Done) {
            Err(e) if self.stream.kept.is_none() => {
                self.stream.outbox.clear();
                Err(e)
            }
            _ => Ok(sent),
        }
    }

    /// Whether the kernel may hold so much of a long payload that a short frame has to wait.
    #[inline]
    fn may_wait(&self, body: &Body<'_>, tuning: &Tuning) -> bool {
        let kept = self.stream.kept.as_ref().map_or(0, |k| k.len());
        !self.near && kept > tuning.part as u64 && body.len() <= COPIED
    }

    /// Notes what is to be sent, behind what is queued or in the kernel, and says what the kernel may hold from now on.
    #[cold]
    fn note_mix(&mut self, head: &Header, body: &Body<'_>, tuning: &Tuning) {
        if self.near {
            return;
        }
        let before = self.leaves.part(tuning);
        if self.stream.outbox.first_segment(head.kind, body.len()) < body.len() {
            self.leaves.payload();
        } else if body.len() <= COPIED {
            let many = |n: u32| n >= tuning.part / 2;
            let waits = self.may_wait(body, tuning) && self.sock.unsent().is_ok_and(many);
            if waits || self.stream.outbox.has_payload() {
                self.leaves.short_frame();
            }
        }
        let most = self.leaves.part(tuning);
        if most != before {
            // As in `new`.
            let _ = self.sock.limit_unsent(most);
        }
    }

    /// One system call; how many bytes went.
    #[inline]
    fn send_now(&self, head: &Header, body: Body<'_>, tuning: &Tuning) -> io::Result<usize> {
        match body {
            Body::None => self.sock.send(&self.lead(head)),
            Body::Bytes(bytes) => self.send_joined(head, bytes.len(), |to| {
                to.copy_from_slice(bytes);
            }),
            Body::Payload { buf, from, len } if len <= tuning.send_joined.min(JOIN_ROOM) as u64 => {
                self.send_joined(head, len as usize, |to| {
                    buf.read(from, to);
                })
            }
            Body::Payload { buf, from, len } => {
                let first = len.min(tuning.send_chunk);
                self.sock.send_with(&head.encode(), buf, from, first)
            }
        }
    }

    /// Keeps the first `n` bytes of a frame that went, but for those that have been acknowledged already. Whether payload was lent
    /// instead of being copied.
    #[inline]
    fn keep(&mut self, head: &Header, body: Body<'_>, n: u64, tuning: &Tuning) -> bool {
        let Some(kept) = &mut self.stream.kept else {
            return false;
        };
        let mut known = 0;
        if n >= tuning.keep && !kept.owes() {
            // Within a machine, and often beyond it, the answer is there before the call returns.
            known = skip(kept, &self.sock, n);
        }
        let lend = matches!(body, Body::Payload { len, .. } if len > tuning.copied);
        match body {
            Body::Payload { buf, from, .. } if lend => {
                let lead = HEADER_LEN as u64;
                if known < lead {
                    kept.copy(&head.encode()[known as usize..n.min(lead) as usize]);
                }
                let first = known.max(lead);
                if n > first {
                    kept.lend(buf.clone(), from + first - lead, n - first);
                }
            }
            body if n > known => {
                kept.copy_with((n - known) as usize, |to| fill(head, body, known, to));
            }
            _ => {}
        }
        if kept.len() >= self.look_at && !kept.owes() {
            if n < tuning.keep {
                forget(kept, &self.sock, |_| {});
            }
            self.look_at = kept.len() + tuning.keep;
        }
        lend
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
                joined[..HEADER_LEN].copy_from_slice(&self.lead(head));
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
        joined[..HEADER_LEN].copy_from_slice(&self.lead(head));
        fill(&mut joined[HEADER_LEN..HEADER_LEN + len]);
        self.sock.send(&joined[..HEADER_LEN + len])
    }

    /// Sends what is to be sent again, then from the queue, for as many turns as it gets.
    pub fn push<I: Inbound>(
        &mut self,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut I,
    ) -> io::Result<bool> {
        let mut moved = false;
        for _ in 0..tuning.turns {
            let n = match self.stream.is_behind() {
                true => self.repeat(tuning)?,
                false => self.send_queued(tuning, |cookie| inbound.on_sent(peer, cookie))?,
            };
            if n == 0 {
                break;
            }
            moved = true;
            if self.stream.is_flushed() {
                break;
            }
        }
        Ok(moved)
    }

    /// One system call from the queue. `done` hears whose payload is needed no more.
    fn send_queued(&mut self, tuning: &Tuning, mut done: impl FnMut(u64)) -> io::Result<usize> {
        let Stream { outbox, kept, .. } = &mut self.stream;
        outbox.send_some(&self.sock, tuning.send_chunk, |went| {
            match (went, kept.as_mut()) {
                (Went::Bytes(bytes), Some(kept)) => kept.copy(bytes),
                (Went::Payload(buf, at, len, total), Some(kept)) if total > tuning.copied => {
                    kept.lend(buf.clone(), at, len);
                }
                (Went::Payload(buf, at, len, _), Some(kept)) => {
                    kept.copy_with(len as usize, |to| {
                        buf.read(at, to);
                    });
                }
                (Went::All(NOBODY), _) => {}
                (Went::All(cookie), kept) => {
                    if kept.is_none_or(|k| k.finish(cookie)) {
                        done(cookie);
                    }
                }
                (_, None) => {}
            }
        })
    }

    /// Sends again what the last connection may not have brought.
    #[cold]
    fn repeat(&mut self, tuning: &Tuning) -> io::Result<usize> {
        let Some(kept) = &mut self.stream.kept else {
            return Ok(0);
        };
        let n = match kept.next() {
            Some(Run::Bytes(bytes)) => self.sock.send(bytes)?,
            Some(Run::Lent { from, at, len }) => {
                let len = len.min(tuning.send_chunk);
                self.sock.send_with(&[], from, at, len)?
            }
            None => 0,
        };
        kept.advance(n as u64);
        Ok(n)
    }
}

/// `n` more bytes went: how many of them the peer's kernel has acknowledged, with all before them.
fn skip(kept: &mut RetransmitBuffer<Buf>, sock: &Sock, n: u64) -> u64 {
    let Ok(unacknowledged) = sock.unacknowledged() else {
        return 0;
    };
    let acknowledged = (kept.sent() + n).saturating_sub(unacknowledged as u64);
    kept.skip(n, acknowledged, |_| {})
}

/// Writes bytes of a frame from `skip` on.
fn fill(head: &Header, body: Body<'_>, skip: u64, to: &mut [u8]) {
    let lead = HEADER_LEN.saturating_sub(skip as usize).min(to.len());
    let (to_head, rest) = to.split_at_mut(lead);
    if lead > 0 {
        to_head.copy_from_slice(&head.encode()[skip as usize..skip as usize + lead]);
    }
    let at = skip.saturating_sub(HEADER_LEN as u64);
    match body {
        Body::None => {}
        Body::Bytes(bytes) => rest.copy_from_slice(&bytes[at as usize..at as usize + rest.len()]),
        Body::Payload { buf, from, .. } => {
            buf.read(from + at, rest);
        }
    }
}
