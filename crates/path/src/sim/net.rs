//! The state behind [`super::SimNet`]: per ordered pair of ranks, the frames that are queued,
//! travel, or are arriving.

use super::{Rng, SimOptions};
use crate::contract::{Body, Destination, Down, Inbound, Sent};
use kw_base::{Peer, Tick};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use std::collections::VecDeque;

#[derive(Debug)]
enum Held {
    Bytes(Vec<u8>),
    Payload { buf: Buf, from: u64, len: u64 },
}

/// A frame that the sender's side still holds.
#[derive(Debug)]
struct Waiting {
    head: Header,
    body: Held,
    cookie: u64,
    leaves: Tick,
}

/// A frame on the wire.
#[derive(Debug)]
struct Flight {
    head: Header,
    body: Vec<u8>,
    arrives: Tick,
}

/// A payload that comes in pieces.
#[derive(Debug)]
struct Arriving {
    body: Vec<u8>,
    done: usize,
    destination: Destination,
}

/// One direction between two ranks.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Waiting>,
    sent: VecDeque<u64>,
    wire: VecDeque<Flight>,
    last: Tick,
    arriving: VecDeque<Arriving>,
    cut: bool,
    /// The receiving side has been told that nothing more comes.
    end_reported: bool,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.wire.is_empty() && self.arriving.is_empty()
    }
}

/// All of the simulated network.
#[derive(Debug)]
pub struct Net {
    n: u32,
    now: Tick,
    rng: Rng,
    options: SimOptions,
    lines: Vec<Line>,
    closed: Vec<bool>,
    frames: u64,
}

fn carries_payload(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write
    )
}

fn down(peer: Peer, reason: &str) -> Down {
    Down {
        path: "sim",
        peer,
        reason: reason.to_string(),
    }
}

impl Net {
    pub fn new(n: u32, seed: u64, options: SimOptions) -> Net {
        Net {
            n,
            now: Tick(0),
            rng: Rng::new(seed),
            options,
            lines: (0..n as usize * n as usize)
                .map(|_| Line::default())
                .collect(),
            closed: vec![false; n as usize],
            frames: 0,
        }
    }

    /// There are `n` ranks from now on; existing ranks keep their numbers and their frames.
    pub fn grow(&mut self, n: u32) {
        let old = self.n;
        if n <= old {
            return;
        }
        let mut before = std::mem::take(&mut self.lines).into_iter();
        for from in 0..n {
            let kept = if from < old { old } else { 0 };
            self.lines.extend(before.by_ref().take(kept as usize));
            self.lines.extend((kept..n).map(|_| Line::default()));
        }
        self.closed.resize(n as usize, false);
        self.n = n;
    }

    pub fn options(&self) -> &SimOptions {
        &self.options
    }

    pub fn now(&self) -> Tick {
        self.now
    }

    pub fn frames(&self) -> u64 {
        self.frames
    }

    pub fn advance(&mut self, nanos: u64) {
        self.now = Tick(self.now.0 + nanos);
    }

    pub fn next_event(&self) -> Option<Tick> {
        let of = |l: &Line| {
            let leaves = l.waiting.front().map(|w| w.leaves);
            let arrives = l.wire.front().map(|f| f.arrives);
            let lands = (!l.arriving.is_empty()).then_some(self.now);
            [leaves, arrives, lands].into_iter().flatten().min()
        };
        self.lines.iter().filter_map(of).min()
    }

    /// Whether a poll of this rank would bring it something now.
    pub fn has_work(&self, me: Peer) -> bool {
        (0..self.n).map(Peer).any(|p| {
            let (out, back) = (&self.lines[self.at(me, p)], &self.lines[self.at(p, me)]);
            let leaves = out.waiting.front().is_some_and(|w| w.leaves <= self.now);
            let arrives = back.wire.front().is_some_and(|f| f.arrives <= self.now);
            let ends = !back.end_reported && (back.cut || self.closed[p.idx()] && back.is_empty());
            leaves || arrives || ends || !out.sent.is_empty() || !back.arriving.is_empty()
        })
    }

    fn at(&self, from: Peer, to: Peer) -> usize {
        from.idx() * self.n as usize + to.idx()
    }

    pub fn is_cut(&self, a: Peer, b: Peer) -> bool {
        self.lines[self.at(a, b)].cut
    }

    pub fn cut(&mut self, a: Peer, b: Peer) {
        for i in [self.at(a, b), self.at(b, a)] {
            let end_reported = self.lines[i].end_reported;
            self.lines[i] = Line {
                cut: true,
                end_reported,
                ..Line::default()
            };
        }
    }

    pub fn close(&mut self, me: Peer) {
        self.closed[me.idx()] = true;
    }

    pub fn pending(&self, me: Peer) -> bool {
        (0..self.n).any(|to| !self.lines[self.at(me, Peer(to))].waiting.is_empty())
    }

    pub fn send(
        &mut self,
        me: Peer,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Sent, Down> {
        debug_assert_eq!(body.len(), head.body_len(), "body of {head:?}");
        if self.closed[me.idx()] {
            return Err(down(to, "this rank has closed its paths"));
        }
        if to.0 >= self.n {
            return Err(down(to, "there is no such rank"));
        }
        let back = self.at(to, me);
        if self.lines[back].cut || self.lines[back].end_reported {
            return Err(down(to, "the simulated connection is gone"));
        }
        self.frames += 1;
        let i = self.at(me, to);
        let wait = self.rng.chance(self.options.queued);
        if wait || !self.lines[i].waiting.is_empty() {
            return Ok(self.queue(i, head, body, cookie));
        }
        let body = copied(body);
        self.launch(i, *head, body);
        Ok(Sent::Done)
    }

    /// Holds a frame back. Protocol bytes are copied, so the sender is done with them all the same.
    fn queue(&mut self, line: usize, head: &Header, body: Body<'_>, cookie: u64) -> Sent {
        let body = match body {
            Body::Payload { buf, from, len } => Held::Payload {
                buf: buf.clone(),
                from,
                len,
            },
            other => Held::Bytes(copied(other)),
        };
        let leaves = self.now + self.travel();
        self.lines[line].waiting.push_back(Waiting {
            head: *head,
            body,
            cookie,
            leaves,
        });
        Sent::Queued
    }

    fn travel(&mut self) -> std::time::Duration {
        let (low, high) = self.options.delay;
        std::time::Duration::from_nanos(self.rng.between(low, high))
    }

    fn launch(&mut self, line: usize, head: Header, body: Vec<u8>) {
        let arrives = (self.now + self.travel()).max(self.lines[line].last);
        let l = &mut self.lines[line];
        l.last = arrives;
        l.wire.push_back(Flight {
            head,
            body,
            arrives,
        });
    }

    /// One poll of rank `me`; deliveries from `only` when given.
    pub fn poll(&mut self, me: Peer, only: Option<Peer>, inbound: &mut dyn Inbound) -> bool {
        self.advance(self.options.step);
        let mut moved = false;
        for p in (0..self.n).map(Peer) {
            moved |= self.leave(me, p, inbound);
        }
        for p in (0..self.n).map(Peer) {
            if only.is_none_or(|o| o == p) {
                moved |= self.deliver(p, me, inbound);
            }
        }
        moved
    }

    /// Releases queued frames of one line whose time has come, and tells their sender.
    fn leave(&mut self, me: Peer, to: Peer, inbound: &mut dyn Inbound) -> bool {
        let i = self.at(me, to);
        let mut moved = false;
        while self.lines[i]
            .waiting
            .front()
            .is_some_and(|w| w.leaves <= self.now)
        {
            let Some(w) = self.lines[i].waiting.pop_front() else {
                break;
            };
            let body = match w.body {
                Held::Bytes(b) => b,
                Held::Payload { buf, from, len } => packed(&buf, from, len),
            };
            self.launch(i, w.head, body);
            self.lines[i].sent.push_back(w.cookie);
        }
        while let Some(cookie) = self.lines[i].sent.pop_front() {
            inbound.on_sent(to, cookie);
            moved = true;
        }
        moved
    }

    /// Delivers the arrived frames of one line.
    fn deliver(&mut self, from: Peer, me: Peer, inbound: &mut dyn Inbound) -> bool {
        let i = self.at(from, me);
        let mut moved = self.land(i, from, inbound);
        while self.lines[i]
            .wire
            .front()
            .is_some_and(|f| f.arrives <= self.now)
        {
            let Some(next) = self.lines[i].wire.front() else {
                break;
            };
            let splits = carries_payload(next.head.kind) && !next.body.is_empty();
            let behind = !self.lines[i].arriving.is_empty();
            if behind && !(splits && self.rng.chance(128)) {
                break;
            }
            let Some(f) = self.lines[i].wire.pop_front() else {
                break;
            };
            moved = true;
            if splits && (behind || self.rng.chance(self.options.partial)) {
                let destination = inbound.on_head(from, &f.head);
                self.lines[i].arriving.push_back(Arriving {
                    body: f.body,
                    done: 0,
                    destination,
                });
            } else {
                inbound.on_frame(from, &f.head, &f.body);
            }
        }
        moved | self.farewell(i, from, inbound)
    }

    /// Puts the next piece of the oldest arriving payload in place; sometimes the rest of it, and
    /// so on.
    fn land(&mut self, line: usize, from: Peer, inbound: &mut dyn Inbound) -> bool {
        let mut moved = false;
        while let Some(a) = self.lines[line].arriving.front_mut() {
            let left = a.body.len() - a.done;
            let piece = self.rng.between(1, left as u64) as usize;
            let room = a.destination.buf.len().saturating_sub(a.destination.at) as usize;
            let fits = (a.done + piece).min(room);
            if a.done < fits {
                a.destination
                    .buf
                    .write(a.destination.at + a.done as u64, &a.body[a.done..fits]);
            }
            a.done += piece;
            moved = true;
            if a.done < a.body.len() {
                break;
            }
            let cookie = a.destination.cookie;
            self.lines[line].arriving.pop_front();
            inbound.on_body(from, cookie);
        }
        moved
    }

    /// Tells a rank, once, that nothing more comes from another one.
    fn farewell(&mut self, line: usize, from: Peer, inbound: &mut dyn Inbound) -> bool {
        let bye = self.closed[from.idx()];
        let l = &mut self.lines[line];
        if l.end_reported || !(l.cut || bye && l.is_empty()) {
            return false;
        }
        l.end_reported = true;
        let clean = !l.cut;
        let reason = if clean {
            "it called MPI_Finalize"
        } else {
            "the simulated connection was cut"
        };
        inbound.on_down(down(from, reason), clean);
        true
    }
}

fn packed(buf: &Buf, from: u64, len: u64) -> Vec<u8> {
    let mut out = vec![0; len as usize];
    let n = buf.read(from, &mut out);
    debug_assert_eq!(n, out.len(), "payload shorter than its frame says");
    out
}

fn copied(body: Body<'_>) -> Vec<u8> {
    match body {
        Body::None => Vec::new(),
        Body::Bytes(b) => b.to_vec(),
        Body::Payload { buf, from, len } => packed(buf, from, len),
    }
}
