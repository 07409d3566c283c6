//! Data sent over a link that its peer's kernel has not acknowledged: kept, because it may have to
//! be resent.
//!
//! Short frames are copied. Long payload is lent to the connection ([`kw_proto::retransmit`]) until
//! it is acknowledged; when its sender cannot wait any longer, the rest is copied, too. A link that
//! ends with its connection (`KW_RELIABLE=no`) keeps nothing.

use super::Tuning;
use super::outbox::Went;
use super::socket::Socket;
use super::stripe::NOBODY;
use crate::contract::{Body, Sent};
use kw_proto::retransmit::{RetransmitBuffer, Run};
use kw_proto::wire::{HEADER_LEN, Header};
use kw_sys::buf::Buf;
use std::io;

/// The unacknowledged bytes of one link.
#[derive(Debug, Default)]
pub struct Unacked {
    /// `None`: a link ends with its connection.
    kept: Option<Box<RetransmitBuffer<Buf>>>,
    /// Bytes kept at which the system is asked what is acknowledged.
    look_at: u64,
    /// Polls since a sender waits for an acknowledgement.
    waited: u32,
}

impl Unacked {
    /// Nothing yet.
    pub fn new(reliable: bool) -> Unacked {
        Unacked {
            kept: reliable.then(Box::default),
            ..Unacked::default()
        }
    }

    /// There is a new connection.
    pub fn open(&mut self, tuning: &Tuning) {
        self.look_at = self.len() + tuning.keep;
        self.waited = 0;
    }

    /// Whether another connection can carry the link on.
    #[inline]
    pub fn is_reliable(&self) -> bool {
        self.kept.is_some()
    }

    /// Bytes that are kept.
    #[inline]
    pub fn len(&self) -> u64 {
        self.kept.as_ref().map_or(0, |k| k.len())
    }

    /// Whether bytes have to be sent again.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.kept.as_ref().is_some_and(|k| k.is_behind())
    }

    /// Whether a sender waits for an acknowledgement.
    #[inline]
    pub fn awaits_ack(&self) -> bool {
        self.kept.as_ref().is_some_and(|k| k.owes())
    }

    /// Lent bytes for which a sender waits.
    pub fn lent(&self) -> u64 {
        self.kept.as_ref().map_or(0, |k| k.owed())
    }

    /// Bytes of the stream that were handed over.
    pub fn sent(&self) -> u64 {
        self.kept.as_ref().map_or(0, |k| k.sent())
    }

    /// Whether a peer that has received this much can be sent the rest.
    pub fn covers(&self, received: u64) -> bool {
        self.kept.as_ref().is_none_or(|k| k.covers(received))
    }

    /// A new connection continues where the peer has this much of the stream; `done` is called for
    /// the owners that get their payload back. `false`: it cannot.
    pub fn resume(&mut self, received: u64, done: impl FnMut(u64)) -> bool {
        let kept = self.kept.as_mut();
        kept.is_none_or(|k| k.resume(received, done))
    }

    /// Keeps the first `n` bytes of a frame that went, except those that have been acknowledged
    /// already. Returns whether payload was lent instead of being copied.
    #[inline]
    pub fn keep<S: Socket>(
        &mut self,
        (head, body): (&Header, Body<'_>),
        n: u64,
        sock: &S,
        tuning: &Tuning,
    ) -> bool {
        let Some(kept) = &mut self.kept else {
            return false;
        };
        let mut known = 0;
        if n >= tuning.keep && !kept.owes() {
            // Within a machine, and often beyond it, the answer is there before the call returns.
            known = skip(kept, sock, n);
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
                forget(kept, sock, |_| {});
            }
            self.look_at = kept.len() + tuning.keep;
        }
        lend
    }

    /// The last frame has gone, and its payload was lent: returns whether its owner has it back.
    #[inline]
    pub fn finish(&mut self, cookie: u64) -> Sent {
        let kept = self.kept.as_mut().filter(|_| cookie != NOBODY);
        match kept.is_none_or(|k| k.finish(cookie)) {
            true => Sent::Done,
            false => Sent::Queued,
        }
    }

    /// Keeps the part of the queue that the socket took. A cookie: its owner has the payload back.
    #[inline]
    pub fn went(&mut self, went: Went<'_>, tuning: &Tuning) -> Option<u64> {
        match (went, self.kept.as_mut()) {
            (Went::Bytes(bytes), Some(kept)) => kept.copy(bytes),
            (Went::Payload(buf, at, len, total), Some(kept)) if total > tuning.copied => {
                kept.lend(buf.clone(), at, len);
            }
            (Went::Payload(buf, at, len, _), Some(kept)) => {
                kept.copy_with(len as usize, |to| read(buf, at, to));
            }
            (Went::All(NOBODY), _) => {}
            (Went::All(cookie), kept) => {
                return kept.is_none_or(|k| k.finish(cookie)).then_some(cookie);
            }
            (_, None) => {}
        }
        None
    }

    /// The peer has all of a payload whose last piece ended at byte `end` of our stream: `done` is
    /// called for its owner, at once or when it cannot be needed again.
    #[cold]
    pub fn give_back<S: Socket>(
        &mut self,
        (cookie, end): (u64, u64),
        sock: &S,
        mut done: impl FnMut(u64),
    ) {
        let Some(kept) = &mut self.kept else {
            return done(cookie);
        };
        forget(kept, sock, &mut done);
        if kept.finish_at(end, cookie) {
            done(cookie);
        }
    }

    /// Whether the peer's kernel has acknowledged everything, so that closing loses no data of this
    /// rank.
    pub fn is_acknowledged<S: Socket>(&mut self, sock: &S) -> bool {
        let Some(kept) = &mut self.kept else {
            return false;
        };
        forget(kept, sock, |_| {});
        kept.is_empty()
    }

    /// Calls `done` for the owners whose payload is acknowledged; the rest of it is copied if it is
    /// little, or has been waited for.
    pub fn reap_acks<S: Socket>(&mut self, sock: &S, tuning: &Tuning, mut done: impl FnMut(u64)) {
        let Some(kept) = &mut self.kept else {
            return;
        };
        forget(kept, sock, &mut done);
        self.waited += 1;
        let long = self.waited >= tuning.patient_polls;
        let little = || self.waited >= tuning.hasty_polls && kept.owed() <= tuning.little;
        if kept.owes() && (long || little()) {
            kept.own(read, done);
        }
        if !kept.owes() {
            self.waited = 0;
        }
    }

    /// Copies the bytes for which senders wait: no further query will be made. Returns these
    /// senders.
    pub fn copy_out<S: Socket>(&mut self, sock: &S) -> Vec<u64> {
        let mut all = Vec::new();
        if let Some(kept) = &mut self.kept {
            forget(kept, sock, |cookie| all.push(cookie));
            kept.own(read, |cookie| all.push(cookie));
        }
        all
    }

    /// Sends again data that the last connection may not have delivered. Returns how many bytes
    /// went.
    #[cold]
    pub fn repeat<S: Socket>(&mut self, sock: &S, tuning: &Tuning) -> io::Result<usize> {
        let Some(kept) = &mut self.kept else {
            return Ok(0);
        };
        let n = match kept.next() {
            Some(Run::Bytes(bytes)) => sock.send(bytes)?,
            Some(Run::Lent { from, at, len }) => {
                let len = len.min(tuning.send_chunk);
                sock.send_with(&[], from, at, len)?
            }
            None => 0,
        };
        kept.advance(n as u64);
        Ok(n)
    }
}

/// Forgets the bytes that the peer's kernel has acknowledged.
fn forget<S: Socket>(kept: &mut RetransmitBuffer<Buf>, sock: &S, done: impl FnMut(u64)) {
    // A system that does not tell leaves it to `copy_out`.
    if let Ok(acknowledged) = sock.acknowledged(kept.sent()) {
        kept.release(acknowledged, done);
    }
}

/// `n` more bytes went: returns how many of them the peer's kernel has acknowledged, with all
/// before.
fn skip<S: Socket>(kept: &mut RetransmitBuffer<Buf>, sock: &S, n: u64) -> u64 {
    match sock.acknowledged(kept.sent() + n) {
        Ok(acknowledged) => kept.skip(n, acknowledged, |_| {}),
        Err(_) => 0,
    }
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
        Body::Payload { buf, from, .. } => read(buf, from + at, rest),
    }
}

fn read(buf: &Buf, from: u64, to: &mut [u8]) {
    buf.read(from, to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::socket::fake::{Fake, Sealed, TAG};
    use kw_proto::wire::Kind;

    /// Handling of a payload of this many bytes that the socket accepted at once.
    fn send<S: Socket>(unacked: &mut Unacked, sock: &S, len: u64, tuning: &Tuning) -> Sent {
        let buf = Buf::alloc(len as usize);
        let head = Header {
            len,
            ..Header::bare(Kind::Eager)
        };
        let body = Body::Payload {
            buf: &buf,
            from: 0,
            len,
        };
        let n = sock.send_with(&head.encode(), &buf, 0, len).unwrap() as u64;
        match unacked.keep((&head, body), n, sock, tuning) {
            true => unacked.finish(7),
            false => Sent::Done,
        }
    }

    #[test]
    fn short_payload_is_copied_and_long_payload_lent_until_it_is_acknowledged() {
        let tuning = Tuning::default();
        let (mut unacked, sock) = (Unacked::new(true), Fake::with_room(usize::MAX));
        unacked.open(&tuning);
        assert_eq!(
            send(&mut unacked, &sock, tuning.copied, &tuning),
            Sent::Done
        );
        assert!(!unacked.awaits_ack());
        assert_eq!(
            send(&mut unacked, &sock, tuning.copied + 1, &tuning),
            Sent::Queued
        );
        assert!(unacked.awaits_ack() && unacked.lent() > tuning.copied);
        let mut completed: Vec<u64> = Vec::new();
        sock.acknowledged.set(sock.sent.borrow().len() - 1);
        // All but one byte is acknowledged: that one is copied, and its owner goes on.
        for _ in 0..tuning.hasty_polls {
            assert!(completed.is_empty());
            unacked.reap_acks(&sock, &tuning, |c| completed.push(c));
        }
        assert_eq!((completed, unacked.len()), (vec![7], 1));
        sock.acknowledged.set(sock.sent.borrow().len());
        assert!(unacked.is_acknowledged(&sock));
    }

    #[test]
    fn a_socket_that_sends_more_than_it_takes_acknowledges_what_it_took() {
        let tuning = Tuning {
            little: 0,
            ..Tuning::default()
        };
        let (mut unacked, sock) = (Unacked::new(true), Sealed::default());
        unacked.open(&tuning);
        let long = tuning.copied + 1;
        assert_eq!(send(&mut unacked, &sock, 100, &tuning), Sent::Done);
        assert_eq!(send(&mut unacked, &sock, long, &tuning), Sent::Queued);
        let wire = sock.kernel.sent.borrow().len();
        let first = HEADER_LEN + 100 + TAG;
        let (short, long) = (HEADER_LEN as u64 + 100, HEADER_LEN as u64 + long);
        assert_eq!(
            (wire, unacked.sent()),
            (first + long as usize + TAG, short + long)
        );
        // Some bytes of the wire, and those that are kept then.
        for (wire, kept) in [(first - 1, short + long), (first, long), (wire - 1, long)] {
            sock.kernel.acknowledged.set(wire);
            unacked.reap_acks(&sock, &tuning, |_| panic!("its tag is not there"));
            assert_eq!(unacked.len(), kept, "{wire} bytes");
            assert!(!sock.is_acknowledged().unwrap());
        }
        sock.kernel.acknowledged.set(wire);
        let mut completed: Vec<u64> = Vec::new();
        unacked.reap_acks(&sock, &tuning, |c| completed.push(c));
        assert_eq!((completed, unacked.len()), (vec![7], 0));
        assert!(sock.is_acknowledged().unwrap());
    }

    #[test]
    fn what_is_not_acknowledged_for_long_is_copied() {
        let tuning = Tuning {
            little: 0,
            ..Tuning::default()
        };
        let (mut unacked, sock) = (Unacked::new(true), Fake::with_room(usize::MAX));
        unacked.open(&tuning);
        assert_eq!(send(&mut unacked, &sock, 1 << 20, &tuning), Sent::Queued);
        let mut completed: Vec<u64> = Vec::new();
        for poll in 1..=tuning.patient_polls {
            assert!(completed.is_empty(), "before poll {poll}");
            unacked.reap_acks(&sock, &tuning, |c| completed.push(c));
        }
        assert_eq!(completed, [7]);
        assert!(unacked.copy_out(&sock).is_empty(), "no send waits any more");
    }

    #[test]
    fn what_the_last_connection_did_not_bring_goes_again() {
        let tuning = Tuning::default();
        let (mut unacked, sock) = (Unacked::new(true), Fake::with_room(usize::MAX));
        unacked.open(&tuning);
        for len in [100, 70_000, 3000] {
            send(&mut unacked, &sock, len, &tuning);
        }
        let all = sock.sent.borrow().clone();
        for received in [0, 31, 132, 140, 70_200, all.len()] {
            assert!(unacked.covers(received as u64));
            let next = Fake::with_room(usize::MAX);
            assert!(unacked.resume(received as u64, |_| {}));
            // Received data is forgotten, so each connection brings the rest only.
            while unacked.is_behind() {
                unacked.repeat(&next, &tuning).unwrap();
            }
            assert!(*next.sent.borrow() == all[received..]);
            assert!(!unacked.covers(received as u64 - u64::from(received > 0)) || received == 0);
        }
    }

    #[test]
    fn a_link_that_ends_with_its_connection_keeps_nothing() {
        let tuning = Tuning::default();
        let (mut unacked, sock) = (Unacked::new(false), Fake::with_room(usize::MAX));
        assert_eq!(send(&mut unacked, &sock, 1 << 20, &tuning), Sent::Done);
        assert_eq!((unacked.len(), unacked.awaits_ack()), (0, false));
        let mut completed = Vec::new();
        unacked.give_back((9, 0), &sock, |c| completed.push(c));
        assert_eq!(completed, [9]);
    }
}
