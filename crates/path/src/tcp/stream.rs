//! What of a link outlives its connections: what is to be sent, what was sent and not acknowledged, and how far frames have come in.
//!
//! See [`kw_proto::retransmit`] for why nothing is lost, repeated or reordered when a connection breaks.

use super::disconnect::End;
use super::outbox::{COPIED, Outbox};
use super::stripe::{Stripes, nowhere, piece_of};
use super::traffic::TrafficMix;
use super::{Tuning, segmented};
use crate::contract::{Down, Inbound, Landing};
use kw_base::Peer;
use kw_proto::handshake::Claim;
use kw_proto::retransmit::RetransmitBuffer;
use kw_proto::stripe::Piece;
use kw_proto::wire::{AHEAD, HEADER_LEN, Header, Kind, WireError};
use kw_sys::buf::Buf;

/// A payload on its way to where it belongs.
#[derive(Debug)]
pub struct Inflow {
    pub landing: Landing,
    pub len: u64,
    pub done: u64,
    /// End of the segment that is being received; frames follow it.
    pub stop: u64,
}

impl Inflow {
    /// Bytes of the payload up to the segment's end that have a place.
    pub fn fits(&self) -> u64 {
        self.stop
            .min(self.landing.buf.len().saturating_sub(self.landing.at))
    }

    /// Takes what `bytes` has of the payload; returns how much that is.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
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

/// Token of a goodbye that is the connection's, not the rank's.
pub const PARTING: u64 = 1;

/// Connections that have carried a link, as the claim of a further connection of it has them.
const RAIL: u64 = u64::MAX;

/// Whether a connection with this claim is to be a further one.
pub fn is_rail(claim: &Claim) -> bool {
    claim.connections == RAIL
}

/// One link, with or without a connection.
#[derive(Debug, Default)]
pub struct Stream {
    /// The last frame came from a rank that runs ahead, whose next ones wait for our acknowledgement (see `ahead`).
    pub hurried: bool,
    pub outbox: Outbox,
    /// What may be wanted again; `None`: a link ends with its connection (`KW_RELIABLE=no`).
    pub kept: Option<Box<RetransmitBuffer<Buf>>>,
    /// The peer said goodbye, and that was told.
    pub bye: bool,
    /// The peer wants this connection closed; the link goes on over another when somebody wants it.
    pub unwanted: bool,
    pub buffer: Box<[u8]>,
    start: usize,
    pub end: usize,
    pub ask: usize,
    pub inflow: Option<Inflow>,
    /// A payload of which more segments are to come, while frames between them are received.
    paused: Option<Inflow>,
    /// What the peer sends.
    pub arrives: TrafficMix,
    /// Payloads that come or go in pieces over several connections.
    pub stripes: Option<Box<Stripes>>,
    /// The piece of such a payload that `inflow` is.
    piece: Option<Piece>,
    /// Bytes of a piece.
    piece_len: u64,
    /// Bytes of a segment; zero before the first connection.
    segment: u64,
    /// Bytes of the stream that came.
    received: u64,
    /// Random number of the link.
    pub number: u64,
    /// Connections that have carried it.
    connections: u64,
    /// What happened to the last connection.
    pub broke: String,
    /// It was left, because nothing was answered over it.
    pub silent: bool,
}

/// Kinds whose body is payload and may be received in place.
fn carries_payload(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write
    )
}

impl Stream {
    /// A link that has had no connection.
    pub fn new(reliable: bool) -> Stream {
        Stream {
            kept: reliable.then(Box::default),
            ..Stream::default()
        }
    }

    /// What a further connection of a link says: a claim that no first one makes.
    pub fn rail(link: u64) -> Stream {
        Stream {
            number: link,
            connections: RAIL,
            ..Stream::default()
        }
    }

    /// What is under way in pieces; asked for the first time, nothing.
    pub fn stripes(&mut self) -> &mut Stripes {
        let piece = self.piece_len;
        self.stripes
            .get_or_insert_with(|| Box::new(Stripes::new(piece)))
    }

    /// Whether anything is under way in pieces.
    pub fn is_striping(&self) -> bool {
        self.stripes.as_ref().is_some_and(|s| !s.is_idle())
    }

    /// A payload is complete: nothing is written into its place any more.
    pub fn stop_writing(&mut self, number: u64) {
        if let (Some(p), Some(f)) = (&self.piece, &mut self.inflow)
            && p.number == number
        {
            f.landing = nowhere();
        }
    }

    /// Whether nothing is to be sent.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.outbox.is_empty() && !self.is_behind()
    }

    /// Whether bytes are to be sent again.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.kept.as_ref().is_some_and(|k| k.is_behind())
    }

    /// Makes it ready for a connection; on loopback or not decides about segments, once.
    pub fn open(&mut self, segment: u64, tuning: &Tuning) {
        if self.segment == 0 {
            self.segment = segment.max(COPIED);
            self.piece_len = tuning.piece;
            self.outbox.set_segment(self.segment);
            self.buffer = vec![0; tuning.read_buffer].into_boxed_slice();
            self.ask = tuning.read_first;
        }
    }

    /// Bytes of a payload that are certain to come: where short frames may pass it, up to the end of its segment.
    pub fn awaited(&self) -> u64 {
        let end = |f: &Inflow| match self.arrives.is_bulk() {
            true => f.len,
            false => f.stop,
        };
        self.inflow.as_ref().map_or(0, |f| end(f) - f.done)
    }

    /// Whether no frame has come in part.
    pub fn is_between_frames(&self) -> bool {
        let empty = self.inflow.is_none() && self.paused.is_none() && self.start == self.end;
        empty && !self.is_striping()
    }

    /// What we have of it.
    pub fn claim(&self) -> Claim {
        Claim {
            link: self.number,
            connections: self.connections,
            received: self.received,
        }
    }

    /// Whether a connection with this claim of the peer's could carry this link on. Sides may differ by one connection, whose
    /// welcome only one has heard of.
    pub fn allows(&self, claim: &Claim) -> bool {
        let fresh = self.connections == 0 && claim.connections == 0 && claim.received == 0;
        let known = self.number == claim.link && self.connections.abs_diff(claim.connections) <= 1;
        let covers = |k: &RetransmitBuffer<Buf>| k.covers(claim.received);
        match &self.kept {
            Some(kept) => (fresh || known) && covers(kept),
            None => fresh,
        }
    }

    /// A connection with this claim of the peer's carries it from now on. `done` hears whose payload is back. `false`: it cannot.
    pub fn resume(&mut self, claim: &Claim, done: impl FnMut(u64)) -> bool {
        if !self.allows(claim) {
            return false;
        }
        self.number = claim.link;
        self.unwanted = false;
        self.broke.clear();
        self.silent = false;
        self.connections = self.connections.max(claim.connections) + 1;
        self.kept
            .as_mut()
            .is_none_or(|k| k.resume(claim.received, done))
    }

    /// Notes where `n` bytes went: `direct` at most to the payload's place, the rest to the (then empty) buffer.
    #[inline]
    pub fn place(&mut self, n: usize, direct: u64) {
        self.received += n as u64;
        let placed = (n as u64).min(direct);
        if let Some(f) = &mut self.inflow {
            f.done += placed;
        }
        self.end += n - placed as usize;
    }

    /// Hands over what is complete; returns how many frames began.
    #[inline]
    pub fn parse<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> Result<u32, End> {
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
            self.hurried = bytes[1] & AHEAD != 0;
            let len = head.body_len();
            if self.paused.is_some() && head.kind != Kind::More {
                self.arrives.short_frame();
            }
            if head.kind == Kind::Piece {
                self.start += HEADER_LEN;
                self.inflow = Some(self.begin_piece(&head)?);
                frames += 1;
                continue;
            }
            let whole = !segmented(head.kind) || len <= self.segment;
            if whole && len <= body.len() as u64 {
                self.start += HEADER_LEN + len as usize;
                match head.kind {
                    Kind::Bye | Kind::More => self.own_frame(peer, &head, inbound)?,
                    Kind::Striped => self.begin_striped(peer, inbound)?,
                    Kind::Taken => self.stripes().confirmed.push(head.token),
                    _ => {
                        let body = &self.buffer[self.start - len as usize..self.start];
                        inbound.on_frame(peer, &head, body);
                    }
                }
            } else if carries_payload(head.kind) && self.paused.is_none() {
                self.start += HEADER_LEN;
                let landing = inbound.on_head(peer, &head);
                let stop = if whole { len } else { self.segment };
                if !whole {
                    self.arrives.payload();
                }
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

    /// The header of a piece has come.
    #[cold]
    fn begin_piece(&mut self, head: &Header) -> Result<Inflow, End> {
        let piece = piece_of(head);
        let misplaced = End::Nonsense(WireError::Misplaced(head.kind));
        let landing = self.stripes().place(&piece)?.ok_or(misplaced)?;
        self.piece = Some(piece);
        Ok(Inflow {
            landing,
            len: piece.len,
            done: 0,
            stop: piece.len,
        })
    }

    /// The segment of the payload is complete: so is the payload, or frames follow that may pass it.
    fn segment_done<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) {
        match (self.inflow.take(), self.piece.take()) {
            (Some(_), Some(piece)) => {
                if let Some(cookie) = self.stripes().arrived(&piece) {
                    inbound.on_landed(peer, cookie);
                }
            }
            (Some(f), _) if f.done == f.len => inbound.on_landed(peer, f.landing.cookie),
            (part, _) => self.paused = part,
        }
    }

    /// A frame whose payload is to come in pieces.
    #[cold]
    fn begin_striped<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> Result<(), End> {
        let body = self.buffer[..self.start].last_chunk::<HEADER_LEN>();
        let misplaced = End::Nonsense(WireError::Misplaced(Kind::Striped));
        let Some(bytes) = body else {
            return Err(misplaced);
        };
        let head = Header::decode(bytes).map_err(End::Nonsense)?;
        if !segmented(head.kind) || head.len == 0 {
            return Err(misplaced);
        }
        let landing = inbound.on_head(peer, &head);
        self.stripes().into.begin(head.len, landing);
        Ok(())
    }

    /// A frame that is the path's own.
    fn own_frame<I: Inbound>(
        &mut self,
        peer: Peer,
        head: &Header,
        inbound: &mut I,
    ) -> Result<(), End> {
        match (head.kind, self.paused.take()) {
            (Kind::Bye, None) if head.token == PARTING => self.unwanted = true,
            (Kind::Bye, None) => self.goodbye(peer, inbound),
            (Kind::More, Some(mut f)) => {
                f.stop = f.len.min(f.stop.saturating_add(self.segment));
                self.inflow = Some(f);
            }
            _ => return Err(End::Nonsense(WireError::Misplaced(head.kind))),
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
    pub fn adapt(&mut self, full: bool, frames: u32, tuning: &Tuning) {
        match self.inflow.as_ref().or(self.paused.as_ref()) {
            Some(f) if f.len >= tuning.large => self.ask = tuning.read_head,
            _ if frames == 0 => {}
            _ if full && frames > 1 => self.ask = (self.ask * 2).min(self.buffer.len()),
            _ => self.ask = self.ask.max(tuning.read_first),
        }
    }
}
