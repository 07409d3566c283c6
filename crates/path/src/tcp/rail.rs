//! A further connection to a peer: it carries pieces of long payloads and nothing else, both ways.
//!
//! A piece that comes before its payload has begun on the first connection waits in the socket; the
//! poller then reports the rail's end only.

use super::Tuning;
use super::disconnect::End;
use super::inflow::Inflow;
use super::socket::Socket;
use super::stripe::{Stripes, head_of, piece_of};
use super::watcher::Token;
use kw_base::Peer;
use kw_proto::stripe::{Carrier, Piece};
use kw_proto::wire::{HEADER_LEN, Header, Kind, WireError};
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::{Got, Sock};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// Bytes received at once of payload that is scattered in memory or discarded.
const SCRATCH: usize = 16 << 10;

/// A piece on its way out.
#[derive(Debug)]
struct Sending {
    head: [u8; HEADER_LEN],
    piece: Piece,
    /// Bytes of both that are sent.
    done: u64,
}

/// One further connection.
#[derive(Debug)]
pub struct Rail {
    sock: Sock,
    id: Carrier,
    /// This rank's address and the peer's.
    ends: (IpAddr, IpAddr),
    /// Pending events of the poller.
    heard: Interest,
    /// Payload bytes that went over it.
    sent: u64,
    sending: Option<Sending>,
    head: [u8; HEADER_LEN],
    have: usize,
    receiving: Option<(Piece, Inflow)>,
}

impl Rail {
    /// Takes a connection between these addresses, ours first, into use.
    pub fn new(sock: Sock, id: Carrier, ends: (IpAddr, IpAddr), tuning: &Tuning) -> Rail {
        if !sock.is_loopback() {
            // If the kernel does not know this option it takes more than its share.
            let _ = sock.limit_unsent(tuning.part);
        }
        Rail {
            sock,
            id,
            ends,
            heard: Interest::Read,
            sent: 0,
            sending: None,
            head: [0; HEADER_LEN],
            have: 0,
            receiving: None,
        }
    }

    /// Its name among the further connections of its peer.
    pub fn id(&self) -> Carrier {
        self.id
    }

    /// This rank's address and the peer's.
    pub fn ends(&self) -> (IpAddr, IpAddr) {
        self.ends
    }

    /// Payload bytes that went over it.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the poller tells of its end only.
    pub fn tells_its_end(&self) -> bool {
        self.heard == Interest::End
    }

    /// How long the other side's kernel has answered nothing.
    pub fn unanswered(&self) -> Option<Duration> {
        self.sock.unanswered()
    }

    /// Ends it, as a bad network would.
    pub fn shut(&self) {
        self.sock.shut();
    }

    /// Has the poller report the events of it that matter.
    pub fn listen(&mut self, peer: Peer, poller: &Poller) {
        let want = match (self.is_early(), self.is_sending()) {
            (true, _) => Interest::End,
            (_, true) => Interest::Both,
            _ => Interest::Read,
        };
        let number = Token::Rail(peer, self.id).bits();
        // A registered descriptor of this process can be changed.
        if self.heard != want && poller.change(&self.sock, number, want).is_ok() {
            self.heard = want;
        }
    }

    /// Whether a piece is being sent, and the socket had no room for all of it.
    pub fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Whether the piece that came last waits for its payload to begin.
    pub fn is_early(&self) -> bool {
        self.have == HEADER_LEN && self.receiving.is_none()
    }

    /// Has a sleep on the socket end when `most` bytes of the piece that is being received have
    /// come, or its end.
    pub fn wake_for(&mut self, most: u32) {
        let rest = self.receiving.as_ref().map_or(0, |(_, f)| f.rest());
        self.sock.wake_at(rest.min(most as u64) as u32);
    }

    /// Takes the next piece to send.
    pub fn begin(&mut self, piece: Piece) {
        self.sending = Some(Sending {
            head: head_of(&piece).encode(),
            piece,
            done: 0,
        });
    }

    /// Sends as much of its piece as the socket takes. Returns whether some went.
    pub fn push(&mut self, stripes: &Stripes, tuning: &Tuning) -> io::Result<bool> {
        let mut moved = false;
        while let Some(s) = &mut self.sending {
            // A frame without its payload: the rest of the piece is not needed; the peer has all of
            // it.
            let Some((buf, from)) = stripes.source(&s.piece) else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            let led = (s.done as usize).min(HEADER_LEN);
            let at = s.done - led as u64;
            let rest = (s.piece.len - at).min(tuning.send_chunk);
            let n = self.sock.send_with(&s.head[led..], buf, from + at, rest)?;
            if n == 0 {
                break;
            }
            moved = true;
            s.done += n as u64;
            if s.done == HEADER_LEN as u64 + s.piece.len {
                self.sent += s.piece.len;
                self.sending = None;
            }
        }
        Ok(moved)
    }

    /// Receives as many pieces as it gets turns for. Returns whether something came; `complete` is
    /// called for payloads that are complete.
    pub fn pull(
        &mut self,
        stripes: &mut Stripes,
        tuning: &Tuning,
        complete: &mut Vec<(u64, u64)>,
    ) -> Result<bool, End> {
        let mut moved = false;
        for _ in 0..tuning.turns {
            if self.is_early() && !self.settle_in(stripes)? {
                break;
            }
            let got = match self.receiving.is_some() {
                true => self.receive(stripes)?,
                false => {
                    let got = self.sock.recv(&mut self.head[self.have..])?;
                    if let Got::Bytes(n) = got {
                        self.have += n;
                    }
                    got
                }
            };
            match got {
                Got::Bytes(_) => moved = true,
                Got::Nothing => break,
                Got::End => return Err(End::Closed),
            }
            if self
                .receiving
                .as_ref()
                .is_some_and(|(_, f)| f.is_complete())
                && let Some((piece, _)) = self.receiving.take()
            {
                self.have = 0;
                let cookie = stripes.arrived(&piece);
                complete.extend(cookie.map(|c| (piece.number, c)));
            }
        }
        if self.sock.wakes_at() > 1 {
            self.wake_for(self.sock.wakes_at());
        }
        Ok(moved)
    }

    /// A header is complete: finds the place of its piece. `false`: there is none yet.
    fn settle_in(&mut self, stripes: &Stripes) -> Result<bool, End> {
        let head = Header::decode(&self.head).map_err(End::Nonsense)?;
        if head.kind != Kind::Piece {
            return Err(End::Nonsense(WireError::Misplaced(head.kind)));
        }
        let piece = piece_of(&head);
        let destination = stripes.place(&piece)?;
        self.receiving = destination.map(|l| (piece, Inflow::new(l, piece.len, piece.len)));
        Ok(self.receiving.is_some())
    }

    /// One system call for a piece.
    fn receive(&mut self, stripes: &Stripes) -> io::Result<Got> {
        let Some((piece, flow)) = &mut self.receiving else {
            return Ok(Got::Nothing);
        };
        if !stripes.is_open(piece.number) {
            // Another connection brought the missing part: the memory is its owner's again.
            flow.throw_away();
        }
        let (buf, at, want) = flow.place();
        if want > 0
            && let Some(got) = self.sock.recv_into(buf, at, want, &mut [])
        {
            if let Ok(Got::Bytes(n)) = got {
                flow.placed(n as u64);
            }
            return got;
        }
        let mut scratch = [0; SCRATCH];
        let most = flow.rest().min(SCRATCH as u64) as usize;
        let got = self.sock.recv(&mut scratch[..most])?;
        if let Got::Bytes(n) = got {
            flow.take(&scratch[..n]);
        }
        Ok(got)
    }
}
