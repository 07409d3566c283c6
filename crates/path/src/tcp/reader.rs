//! Incoming bytes become frames.
//!
//! A [`FrameReader`] outlives the connections of its link: a frame may begin on one and end on the
//! next. It knows nothing of the source of the bytes ([`Socket`]), so its tests tear frames
//! anywhere.

use super::Tuning;
use super::bulk_detector::BulkDetector;
use super::disconnect::End;
use super::inflow::Inflow;
use super::segmented;
use super::socket::Socket;
use super::stripe::{LinkStripes, piece_of};
use crate::contract::{Down, Inbound};
use kw_base::Peer;
use kw_proto::stripe::Piece;
use kw_proto::wire::{AHEAD, HEADER_LEN, Header, Kind, WireError};
use kw_sys::tcp::Got;

/// Token of a goodbye that is the connection's, not the rank's.
pub const PARTING: u64 = 1;

/// The peer's announcement of the end.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Farewell {
    /// Nothing.
    #[default]
    None,
    /// It wants this connection closed; the link continues over another when it is needed.
    OfConnection,
    /// Goodbye, and that was reported.
    OfRank,
}

/// Result of one read of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Nothing.
    Nothing,
    /// Less than was asked for: the socket is empty.
    Emptied,
    /// As much as was asked for.
    Filled,
}

/// The receiving half of a link.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// Bytes `start..end` have come and have not been passed on.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes that the next poll asks for.
    ask: usize,
    inflow: Option<Inflow>,
    /// A payload of which more segments are to come, while frames between them are received.
    paused: Option<Inflow>,
    /// The piece of a striped payload that `inflow` is.
    piece: Option<Piece>,
    /// Bytes of a segment; zero before the first connection.
    segment: u64,
    /// Bytes of the stream that came.
    received: u64,
    incoming: BulkDetector,
    hurried: bool,
    farewell: Farewell,
}

/// Kinds whose body is payload and may be received in place.
fn carries_payload(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write
    )
}

fn misplaced(kind: Kind) -> End {
    End::Nonsense(WireError::Misplaced(kind))
}

impl FrameReader {
    /// Prepares it for the first connection, over which payloads arrive in segments of this many
    /// bytes.
    pub fn open(&mut self, segment: u64, tuning: &Tuning) {
        self.segment = segment;
        self.buffer = vec![0; tuning.read_buffer].into_boxed_slice();
        self.ask = tuning.read_first;
    }

    /// Bytes of the stream that came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The peer's announcement of the end.
    pub fn farewell(&self) -> Farewell {
        self.farewell
    }

    /// Another connection carries the link on: the last one no longer has to be closed.
    pub fn resume(&mut self) {
        if self.farewell == Farewell::OfConnection {
            self.farewell = Farewell::None;
        }
    }

    /// Whether the last frame came from a rank that runs ahead, whose next ones wait for our
    /// acknowledgement (see `coalesce`).
    #[inline]
    pub fn is_hurried(&self) -> bool {
        self.hurried
    }

    /// Bytes of a payload between two wake-ups.
    pub fn part(&self, tuning: &Tuning) -> u32 {
        self.incoming.part(tuning)
    }

    /// Bytes of a payload that are certain to come: up to the end of its segment if short frames
    /// may pass it.
    pub fn awaited(&self) -> u64 {
        let rest = |f: &Inflow| match self.incoming.is_bulk() {
            true => f.rest(),
            false => f.rest_of_segment(),
        };
        self.inflow.as_ref().map_or(0, rest)
    }

    /// Whether no frame has come in part.
    pub fn is_between_frames(&self) -> bool {
        self.inflow.is_none() && self.paused.is_none() && self.start == self.end
    }

    /// A payload in pieces is complete: nothing is written into its place any more.
    pub fn stop_writing(&mut self, number: u64) {
        if let (Some(p), Some(f)) = (&self.piece, &mut self.inflow)
            && p.number == number
        {
            f.throw_away();
        }
    }

    /// Polls the socket once, and passes complete frames on.
    #[inline]
    pub fn turn<S: Socket>(
        &mut self,
        sock: &S,
        peer: Peer,
        (stripes, tuning): (&mut LinkStripes, &Tuning),
        inbound: &mut dyn Inbound,
    ) -> Result<Turn, End> {
        let (got, asked) = self.receive(sock)?;
        let n = match got {
            Got::Bytes(n) => n,
            Got::Nothing => return Ok(Turn::Nothing),
            Got::End => return Err(End::Closed),
        };
        let frames = self.parse(peer, stripes, inbound)?;
        self.adapt(n == asked, frames, tuning);
        // After a payload that is complete one more poll is worth its price: the sender may have
        // announced where the answer goes.
        Ok(match n < asked {
            true => Turn::Emptied,
            false => Turn::Filled,
        })
    }

    /// One system call: into the payload's place when one is awaited, else into the buffer. Returns
    /// the bytes received and requested.
    #[inline]
    fn receive<S: Socket>(&mut self, sock: &S) -> Result<(Got, usize), End> {
        let mut ask = self.ask.min(self.buffer.len());
        if let Some(f) = &mut self.inflow {
            let (buf, at, want) = f.place();
            let tail = if f.is_whole() { ask } else { 0 };
            // The buffer has nothing of a payload that is awaited.
            if want > 0
                && let Some(got) = sock.recv_into(buf, at, want, &mut self.buffer[..tail])
            {
                let got = got?;
                if let Got::Bytes(n) = got {
                    let placed = (n as u64).min(want);
                    f.placed(placed);
                    self.received += n as u64;
                    self.end += n - placed as usize;
                }
                return Ok((got, want as usize + tail));
            }
            ask = self.buffer.len();
        }
        let to = self.buffer.len().min(self.end + ask);
        let place = &mut self.buffer[self.end..to];
        let asked = place.len();
        let got = sock.recv(place)?;
        if let Got::Bytes(n) = got {
            self.received += n as u64;
            self.end += n;
        }
        Ok((got, asked))
    }

    /// Passes complete frames on; returns how many frames began.
    #[inline]
    fn parse(
        &mut self,
        peer: Peer,
        stripes: &mut LinkStripes,
        inbound: &mut dyn Inbound,
    ) -> Result<u32, End> {
        let mut frames = 0;
        loop {
            if let Some(f) = &mut self.inflow {
                self.start += f.take(&self.buffer[self.start..self.end]);
                if !f.is_segment_complete() {
                    break;
                }
                self.end_segment(peer, stripes, inbound);
            }
            let ready = &self.buffer[self.start..self.end];
            let Some((bytes, body)) = ready.split_first_chunk::<HEADER_LEN>() else {
                break;
            };
            let head = Header::decode(bytes).map_err(End::Nonsense)?;
            self.hurried = bytes[1] & AHEAD != 0;
            if self.paused.is_some() && head.kind != Kind::More {
                self.incoming.short_frame();
            }
            let (len, room) = (head.body_len(), body.len() as u64);
            let whole = !segmented(head.kind) || len <= self.segment;
            if head.kind == Kind::Piece {
                self.start += HEADER_LEN;
                self.inflow = Some(self.begin_piece(&head, stripes)?);
            } else if whole && len <= room {
                self.start += HEADER_LEN + len as usize;
                self.on_whole(peer, &head, stripes, inbound)?;
            } else if carries_payload(head.kind) && self.paused.is_none() {
                self.start += HEADER_LEN;
                self.begin_payload(peer, &head, whole, inbound);
            } else if whole && len <= (self.buffer.len() - HEADER_LEN) as u64 {
                break;
            } else {
                return Err(misplaced(head.kind));
            }
            frames += 1;
        }
        self.compact();
        Ok(frames)
    }

    /// A frame that ends at `start` is in the buffer, all of it.
    #[inline]
    fn on_whole(
        &mut self,
        peer: Peer,
        head: &Header,
        stripes: &mut LinkStripes,
        inbound: &mut dyn Inbound,
    ) -> Result<(), End> {
        match head.kind {
            Kind::Bye | Kind::More => self.on_own(peer, head, inbound)?,
            Kind::Striped => self.begin_striped(peer, stripes, inbound)?,
            Kind::Taken => stripes.make().on_confirmed(head.token),
            _ => {
                let body = &self.buffer[self.start - head.body_len() as usize..self.start];
                inbound.on_frame(peer, head, body);
            }
        }
        Ok(())
    }

    /// The header of a payload that is still to come, in one segment (`whole`) or several.
    #[inline]
    fn begin_payload(&mut self, peer: Peer, head: &Header, whole: bool, inbound: &mut dyn Inbound) {
        let (destination, len) = (inbound.on_head(peer, head), head.body_len());
        if !whole {
            self.incoming.payload();
        }
        let stop = if whole { len } else { self.segment };
        self.inflow = Some(Inflow::new(destination, len, stop));
    }

    /// The header of a piece has come.
    #[cold]
    fn begin_piece(&mut self, head: &Header, stripes: &mut LinkStripes) -> Result<Inflow, End> {
        let piece = piece_of(head);
        let place = stripes.make().place(&piece)?;
        let destination = place.ok_or_else(|| misplaced(head.kind))?;
        self.piece = Some(piece);
        Ok(Inflow::new(destination, piece.len, piece.len))
    }

    /// The segment of the payload is complete: so is the payload, or frames follow that may pass
    /// it.
    fn end_segment(&mut self, peer: Peer, stripes: &mut LinkStripes, inbound: &mut dyn Inbound) {
        match (self.inflow.take(), self.piece.take()) {
            (Some(_), Some(piece)) => {
                if let Some(cookie) = stripes.make().arrived(&piece) {
                    inbound.on_body(peer, cookie);
                }
            }
            (Some(f), _) if f.is_complete() => inbound.on_body(peer, f.cookie()),
            (part, _) => self.paused = part,
        }
    }

    /// A frame whose payload will come in pieces.
    #[cold]
    fn begin_striped(
        &mut self,
        peer: Peer,
        stripes: &mut LinkStripes,
        inbound: &mut dyn Inbound,
    ) -> Result<(), End> {
        let body = self.buffer[..self.start].last_chunk::<HEADER_LEN>();
        let bytes = body.ok_or_else(|| misplaced(Kind::Striped))?;
        let head = Header::decode(bytes).map_err(End::Nonsense)?;
        if !segmented(head.kind) || head.len == 0 {
            return Err(misplaced(Kind::Striped));
        }
        let destination = inbound.on_head(peer, &head);
        stripes.make().comes(head.len, destination);
        Ok(())
    }

    /// A frame that is the path's own.
    fn on_own(&mut self, peer: Peer, head: &Header, inbound: &mut dyn Inbound) -> Result<(), End> {
        match (head.kind, self.paused.take()) {
            (Kind::Bye, None) if head.token == PARTING => {
                if self.farewell == Farewell::None {
                    self.farewell = Farewell::OfConnection;
                }
            }
            (Kind::Bye, None) => self.on_goodbye(peer, inbound),
            (Kind::More, Some(mut f)) => {
                f.next_segment(self.segment);
                self.inflow = Some(f);
            }
            _ => return Err(misplaced(head.kind)),
        }
        Ok(())
    }

    #[cold]
    fn on_goodbye(&mut self, peer: Peer, inbound: &mut dyn Inbound) {
        self.farewell = Farewell::OfRank;
        let down = Down {
            path: "tcp",
            peer,
            reason: "it called MPI_Finalize".to_string(),
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

    /// The next data is probably similar to the last. Many frames per call: request more at once. A
    /// large payload: request little more than its header, so that little of it is copied.
    #[inline]
    fn adapt(&mut self, full: bool, frames: u32, tuning: &Tuning) {
        match self.inflow.as_ref().or(self.paused.as_ref()) {
            Some(f) if f.len() >= tuning.large => self.ask = tuning.read_head,
            _ if frames == 0 => {}
            _ if full && frames > 1 => self.ask = (self.ask * 2).min(self.buffer.len()),
            _ => self.ask = self.ask.max(tuning.read_first),
        }
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
