//! A further connection to a peer: it carries pieces of long payloads and nothing else, both ways.
//!
//! A piece that comes before its payload has begun on the first connection waits in the socket; the poller then tells of the rail's end only.

use super::Tuning;
use super::disconnect::End;
use super::stream::Inflow;
use super::stripe::{Stripes, head_of, nowhere, piece_of};
use kw_proto::stripe::{Carrier, Piece};
use kw_proto::wire::{HEADER_LEN, Header, Kind, WireError};
use kw_sys::poller::Interest;
use kw_sys::tcp::{Got, Sock};
use std::io;
use std::net::IpAddr;

/// What is received at once of payload that lies in small pieces or goes nowhere.
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
    pub sock: Sock,
    pub id: Carrier,
    pub here: IpAddr,
    pub there: IpAddr,
    /// What the poller tells of it.
    pub heard: Interest,
    /// Payload bytes that went over it.
    pub sent: u64,
    sending: Option<Sending>,
    head: [u8; HEADER_LEN],
    have: usize,
    receiving: Option<(Piece, Inflow)>,
}

impl Rail {
    pub fn new(sock: Sock, id: Carrier, here: IpAddr, there: IpAddr, tuning: &Tuning) -> Rail {
        if !sock.is_loopback() {
            // Where the kernel does not know this option it takes more than its share.
            let _ = sock.limit_unsent(tuning.part);
        }
        Rail {
            sock,
            id,
            here,
            there,
            heard: Interest::Read,
            sent: 0,
            sending: None,
            head: [0; HEADER_LEN],
            have: 0,
            receiving: None,
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

    /// Has a sleep on the socket end when `most` bytes of the piece that is being received have come, or its end.
    pub fn wake_for(&mut self, most: u32) {
        let rest = self.receiving.as_ref().map_or(0, |(_, f)| f.stop - f.done);
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

    /// Sends what the socket takes of its piece. Whether some went.
    pub fn push(&mut self, stripes: &Stripes, tuning: &Tuning) -> io::Result<bool> {
        let mut moved = false;
        while let Some(s) = &mut self.sending {
            // Without the payload nobody has asked for the rest of the piece; the peer has all of it.
            let Some((buf, from)) = stripes.out.source(&s.piece) else {
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

    /// Receives as many pieces as it gets turns for. Whether something came; `landed` hears of payloads that are complete.
    pub fn pull(
        &mut self,
        stripes: &mut Stripes,
        tuning: &Tuning,
        landed: &mut Vec<(u64, u64)>,
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
                .is_some_and(|(_, f)| f.done == f.len)
                && let Some((piece, _)) = self.receiving.take()
            {
                self.have = 0;
                let cookie = stripes.arrived(&piece);
                landed.extend(cookie.map(|c| (piece.number, c)));
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
        let flow = stripes.place(&piece)?.map(|landing| Inflow {
            landing,
            len: piece.len,
            done: 0,
            stop: piece.len,
        });
        self.receiving = flow.map(|f| (piece, f));
        Ok(self.receiving.is_some())
    }

    /// One system call for a piece.
    fn receive(&mut self, stripes: &Stripes) -> io::Result<Got> {
        let Some((piece, flow)) = &mut self.receiving else {
            return Ok(Got::Nothing);
        };
        if !stripes.into.is_open(piece.number) {
            // Another connection brought what was missing: the memory is its owner's again.
            flow.landing = nowhere();
        }
        let want = flow.fits().saturating_sub(flow.done);
        if want > 0 {
            let at = flow.landing.at + flow.done;
            if let Some(got) = self.sock.recv_into(&flow.landing.buf, at, want, &mut []) {
                if let Ok(Got::Bytes(n)) = got {
                    flow.done += n as u64;
                }
                return got;
            }
        }
        let mut scratch = [0; SCRATCH];
        let most = (flow.stop - flow.done).min(SCRATCH as u64) as usize;
        let got = self.sock.recv(&mut scratch[..most])?;
        if let Got::Bytes(n) = got {
            flow.take(&scratch[..n]);
        }
        Ok(got)
    }
}
