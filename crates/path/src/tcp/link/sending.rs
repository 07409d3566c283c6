//! The sending half of a connection: frames, queued data, and data that the last connection may not
//! have delivered.

use super::Link;
use crate::contract::{Body, Inbound, Sent};
use crate::tcp::Tuning;
use crate::tcp::outbox::COPIED;
use crate::tcp::socket::Socket;
use kw_base::Peer;
use kw_proto::wire::{HEADER_LEN, Header};
use std::io;

/// Largest payload that may be joined to its header (see [`Tuning::send_joined`]).
const JOIN_ROOM: usize = 4 << 10;
/// Most frames are this small; clearing more of the stack for them would cost time.
const SMALL_JOIN: usize = 224;

impl Link {
    /// Sends one frame, or as much of it as goes, and queues the rest. An error ends the
    /// connection; for a link that can have another one the reading side finds out, after all data
    /// that came before the end.
    #[inline]
    pub fn send(
        &mut self,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
        tuning: &Tuning,
    ) -> io::Result<Sent> {
        if !self.stream.is_flushed() {
            self.note_traffic(head, &body, tuning);
            return Ok(self.stream.queue(head, body, 0, cookie));
        }
        if self.may_wait(&body, tuning) {
            self.note_traffic(head, &body, tuning);
        }
        if self.stream.outbox().first_segment(head.kind, body.len()) < body.len() {
            return self.send_segments(head, body, cookie, tuning);
        }
        let n = match self.send_now(head, body, tuning) {
            Ok(n) => n as u64,
            Err(_) if self.stream.is_reliable() => 0,
            Err(e) => return Err(e),
        };
        let unacked = self.stream.unacked_mut();
        let lent = unacked.keep((head, body), n, &self.sock, tuning);
        let sent = match n == HEADER_LEN as u64 + body.len() {
            true => Sent::Done,
            false => self.stream.queue(head, body, n, cookie),
        };
        Ok(match (lent, sent) {
            (true, Sent::Done) => self.stream.unacked_mut().finish(cookie),
            _ => sent,
        })
    }

    /// Sends a frame in segments: as many in one system call as it takes.
    fn send_segments(
        &mut self,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
        tuning: &Tuning,
    ) -> io::Result<Sent> {
        self.note_traffic(head, &body, tuning);
        let mut sent = self.stream.queue(head, body, 0, cookie);
        let went = self
            .stream
            .send_queued(&self.sock, tuning, |_| sent = Sent::Done);
        match went {
            Err(e) if !self.stream.is_reliable() => {
                self.stream.drop_queue();
                Err(e)
            }
            _ => Ok(sent),
        }
    }

    /// Whether the kernel may hold so much of a long payload that a short frame has to wait.
    #[inline]
    fn may_wait(&self, body: &Body<'_>, tuning: &Tuning) -> bool {
        let kept = self.stream.unacked().len();
        !self.near && kept > tuning.part as u64 && body.len() <= COPIED
    }

    /// Notes the frame to be sent, behind data that is queued or in the kernel, and sets how much
    /// the kernel may hold from now on.
    #[cold]
    fn note_traffic(&mut self, head: &Header, body: &Body<'_>, tuning: &Tuning) {
        if self.near {
            return;
        }
        let before = self.outgoing.part(tuning);
        if self.stream.outbox().first_segment(head.kind, body.len()) < body.len() {
            self.outgoing.payload();
        } else if body.len() <= COPIED {
            let many = |n: u32| n >= tuning.part / 2;
            let waits = self.may_wait(body, tuning) && self.sock.unsent().is_ok_and(many);
            if waits || self.stream.outbox().has_payload() {
                self.outgoing.short_frame();
            }
        }
        let most = self.outgoing.part(tuning);
        if most != before {
            // As in `new`.
            let _ = self.sock.limit_unsent(most);
        }
    }

    /// One system call; returns how many bytes went.
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
                // Protocol bodies are a few bytes; a long one is rare enough for a piece of memory
                // of its own.
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

    /// Sends data again that has to be, then from the queue, for as many turns as it gets.
    pub fn push(
        &mut self,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut dyn Inbound,
    ) -> io::Result<bool> {
        let mut moved = false;
        for _ in 0..tuning.turns {
            let done = |cookie| inbound.on_sent(peer, cookie);
            if self.stream.send_some(&self.sock, tuning, done)? == 0 {
                break;
            }
            moved = true;
            if self.stream.is_flushed() {
                break;
            }
        }
        Ok(moved)
    }
}
