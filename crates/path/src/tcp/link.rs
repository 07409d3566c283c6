//! One connection in use: bytes out, bytes in.

use super::Tuning;
use super::outbox::Went;
use super::stream::Stream;
use super::stripe::NOBODY;
use crate::contract::{Body, Inbound, Sent};
use kw_base::Peer;
use kw_core::kept::{Kept, Run};
use kw_core::wire::{HEADER_LEN, Header, WireError};
use kw_sys::buf::Buf;
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::{Got, Sock};
use std::io;
use std::net::{IpAddr, SocketAddr};

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
    /// What happened, for people; `way`: the two addresses, ours first.
    pub fn what(&self, me: Peer, peer: Peer, way: &str) -> String {
        let which = format!("the connection of ranks {me} and {peer} ({way})");
        match self {
            End::Closed => format!("{which} was closed without a goodbye"),
            End::Failed(e) => format!("{which} broke ({e})"),
            End::Nonsense(e) => format!("on {which} came what is not a frame ({e})"),
        }
    }

    /// What to make of it, when that is all.
    pub fn advice(&self, peer: Peer) -> String {
        match self {
            End::Nonsense(_) => "check that all ranks load the same library".to_string(),
            _ => format!("rank {peer} or its host has probably died, see its own messages"),
        }
    }

    /// Whether another connection may carry the link on.
    pub fn may_go_on(&self) -> bool {
        !matches!(self, End::Nonsense(_))
    }
}

impl From<io::Error> for End {
    fn from(e: io::Error) -> End {
        End::Failed(e)
    }
}

/// What the poller tells of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// Nothing, or what it has told already.
    Nothing,
    /// The first thing that happens: a connection that is read directly needs the poller only for a sleep, and one that it watches
    /// costs the kernel 0.3 us for each packet.
    Once(Interest),
    /// Everything.
    Always(Interest),
}

/// A welcomed connection, and the link that it carries.
#[derive(Debug)]
pub struct Link {
    pub sock: Sock,
    pub stream: Stream,
    /// What the poller watches.
    pub watch: Watch,
    /// Bytes kept at which the system is asked what is acknowledged.
    look_at: u64,
    /// Polls since somebody waits for an acknowledgement.
    waited: u32,
    /// When it was used last, in uses of all connections.
    pub used: u64,
    /// We have asked the peer to close it.
    pub parting: bool,
    /// Our address and the peer's.
    way: Option<(SocketAddr, SocketAddr)>,
}

/// Largest payload that may be joined to its header (see [`Tuning::send_joined`]).
const JOIN_ROOM: usize = 4 << 10;
/// Most frames are this small; clearing more of the stack for them would cost time.
const SMALL_JOIN: usize = 224;

impl Link {
    pub fn new(sock: Sock, mut stream: Stream, tuning: &Tuning) -> Link {
        let segment = if sock.is_loopback() {
            tuning.segment_loopback
        } else {
            // Where the kernel does not know this option, answers wait behind what it holds.
            let _ = sock.limit_unsent(tuning.unsent);
            tuning.segment
        };
        stream.open(segment, tuning);
        let kept = stream.kept.as_ref().map_or(0, |k| k.len());
        Link {
            watch: Watch::Nothing,
            look_at: kept + tuning.keep,
            waited: 0,
            used: 0,
            parting: false,
            way: sock.here().ok().zip(sock.there().ok()),
            sock,
            stream,
        }
    }

    /// Has the poller watch the connection under this number. A descriptor of ours that is registered can be changed.
    pub fn be_watched(&mut self, poller: &Poller, number: u64, watch: Watch) -> io::Result<()> {
        if watch == self.watch {
            return Ok(());
        }
        match watch {
            Watch::Nothing => {}
            Watch::Once(interest) => poller.change_once(&self.sock, number, interest)?,
            Watch::Always(interest) => poller.change(&self.sock, number, interest)?,
        }
        self.watch = watch;
        Ok(())
    }

    /// The poller has told of something. Whether it tells nothing more.
    pub fn was_told(&mut self) -> bool {
        let once = matches!(self.watch, Watch::Once(_));
        if once {
            self.watch = Watch::Nothing;
        }
        once
    }

    /// Our address and the peer's.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        self.way.map(|(here, there)| (here.ip(), there.ip()))
    }

    /// The two addresses, for people.
    pub fn way(&self) -> String {
        self.way.map_or_else(String::new, |(here, there)| {
            format!("{} to {}", here.ip(), there.ip())
        })
    }

    /// Has a sleep on the socket end when `most` bytes of the segment that is being received have come, or its end; with zero, as
    /// soon as anything has come. More than the segment's rest is never waited for: nothing else is certain to come.
    pub fn wake_for(&mut self, most: u32) {
        let rest = self.stream.inflow.as_ref().map_or(0, |f| f.stop - f.done);
        self.sock.wake_at(rest.min(most as u64) as u32);
    }

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
            return Ok(self.stream.outbox.push(head, body, 0, cookie));
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
        let mut sent = self.stream.outbox.push(head, body, 0, cookie);
        match self.send_queued(tuning, |_| sent = Sent::Done) {
            Err(e) if self.stream.kept.is_none() => {
                self.stream.outbox.clear();
                Err(e)
            }
            _ => Ok(sent),
        }
    }

    /// One system call; how many bytes went.
    #[inline]
    fn send_now(&self, head: &Header, body: Body<'_>, tuning: &Tuning) -> io::Result<usize> {
        match body {
            Body::None => self.sock.send(&head.encode()),
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

    /// Whether somebody waits for an acknowledgement of the peer's kernel.
    #[inline]
    pub fn owes(&self) -> bool {
        self.stream.kept.as_ref().is_some_and(|k| k.owes())
    }

    /// The peer has all of a payload whose last piece ended at byte `end` of our stream: its owner is told, at once or when nothing may want
    /// it again.
    #[cold]
    pub fn give_back<I: Inbound>(&mut self, peer: Peer, cookie: u64, end: u64, inbound: &mut I) {
        let Some(kept) = &mut self.stream.kept else {
            return inbound.on_sent(peer, cookie);
        };
        forget(kept, &self.sock, |c| inbound.on_sent(peer, c));
        if kept.finish_at(end, cookie) {
            inbound.on_sent(peer, cookie);
        }
    }

    /// Bytes of the stream that were handed over.
    pub fn sent(&self) -> u64 {
        self.stream.kept.as_ref().map_or(0, |k| k.sent())
    }

    /// Bytes that lie where they were lent, and that somebody wants back.
    pub fn owed(&self) -> u64 {
        self.stream.kept.as_ref().map_or(0, |k| k.owed())
    }

    /// Whether nothing is under way, as far as this side knows.
    pub fn is_idle(&self) -> bool {
        self.stream.is_flushed() && !self.owes() && self.stream.is_between_frames()
    }

    /// Whether the peer's kernel has acknowledged everything, so that closing loses nothing of ours.
    pub fn is_acknowledged(&mut self) -> bool {
        let Some(kept) = &mut self.stream.kept else {
            return false;
        };
        forget(kept, &self.sock, |_| {});
        kept.is_empty()
    }

    /// Tells those whose payload is acknowledged; what is left of it is copied when it is little, or has been waited for.
    pub fn settle<I: Inbound>(&mut self, peer: Peer, tuning: &Tuning, inbound: &mut I) {
        let Some(kept) = &mut self.stream.kept else {
            return;
        };
        let mut done = |cookie| inbound.on_sent(peer, cookie);
        forget(kept, &self.sock, &mut done);
        self.waited += 1;
        if kept.owes() && (self.waited >= tuning.patient_polls || kept.owed() <= tuning.copied) {
            kept.own(read, done);
        }
        if !kept.owes() {
            self.waited = 0;
        }
    }

    /// Copies what somebody waits for: we are about to sleep, and no event tells of acknowledgements. Who they are.
    pub fn own(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        if let Some(kept) = &mut self.stream.kept {
            forget(kept, &self.sock, |cookie| all.push(cookie));
            kept.own(read, |cookie| all.push(cookie));
        }
        all
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
            self.stream.place(n, direct);
            let frames = self.stream.parse(peer, inbound)?;
            self.stream.adapt(n == asked, frames, tuning);
            // Less than asked: the socket is empty. After a payload that is complete one more look is worth its price: the
            // sender may have announced where the answer goes.
            if n < asked {
                break;
            }
        }
        if self.sock.wakes_at() > 1 {
            self.wake_for(self.sock.wakes_at());
        }
        Ok(moved)
    }

    /// One system call: into the payload's place when one is awaited, else into the buffer.
    #[inline]
    fn receive(&mut self) -> Received {
        let s = &mut self.stream;
        let mut ask = s.ask.min(s.buffer.len());
        if let Some(f) = &s.inflow {
            let want = f.fits().saturating_sub(f.done);
            let whole = f.fits() == f.stop;
            let tail = if whole { ask } else { 0 };
            if want > 0 {
                let at = f.landing.at + f.done;
                let rest = &mut s.buffer[..tail];
                if let Some(got) = self.sock.recv_into(&f.landing.buf, at, want, rest) {
                    let asked = want as usize + tail;
                    return Received {
                        got,
                        asked,
                        direct: want,
                    };
                }
            }
            ask = s.buffer.len();
        }
        let to = s.buffer.len().min(s.end + ask);
        let place = &mut s.buffer[s.end..to];
        Received {
            asked: place.len(),
            got: self.sock.recv(place),
            direct: 0,
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

/// Forgets what the peer's kernel has acknowledged.
fn forget(kept: &mut Kept<Buf>, sock: &Sock, done: impl FnMut(u64)) {
    // A system that does not say leaves it to `own`.
    if let Ok(unacknowledged) = sock.unacknowledged() {
        let acknowledged = kept.sent().saturating_sub(unacknowledged as u64);
        kept.release(acknowledged, done);
    }
}

/// `n` more bytes went: how many of them the peer's kernel has acknowledged, with all before them.
fn skip(kept: &mut Kept<Buf>, sock: &Sock, n: u64) -> u64 {
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

fn read(buf: &Buf, from: u64, to: &mut [u8]) {
    buf.read(from, to);
}
