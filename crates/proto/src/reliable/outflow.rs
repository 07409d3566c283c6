//! The sending half of a connection: which bytes are in flight, which were lost, which come next.
//!
//! Every packet has a number of its own and carries one piece of the stream, as in QUIC: bytes that
//! are sent again go in a new packet, so an acknowledgement always says which sending it answers
//! (RFC 9002, section 3).
//!
//! ```text
//! a packet:    Out --acknowledged--> Acked            a byte:   written --> under way --> arrived
//!               \---- lost --------> Lost                                      \-> lost -/ (again)
//! ```

use super::packet::{Ack, HEAD_LEN};
use super::{Congestion, Params, Ranges, Rtt};
use kw_base::Tick;
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Out,
    Acked,
    Lost,
}

/// A packet that was sent.
#[derive(Clone, Debug)]
struct Sent {
    at: Tick,
    offset: u64,
    len: u32,
    /// The window was full after it.
    limited: bool,
    fate: Fate,
}

impl Sent {
    fn bytes(&self) -> u64 {
        HEAD_LEN as u64 + self.len as u64
    }

    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len as u64
    }
}

/// The next transmission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Next {
    /// Number of the packet.
    pub number: u64,
    /// Its piece of the stream; empty when it only asks.
    pub range: Range<u64>,
    /// The acknowledgement is waited for.
    pub now: bool,
}

/// Counters of a connection.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Numbered packets sent.
    pub packets: u64,
    /// Those of them that repeated bytes or asked.
    pub again: u64,
}

/// The sending half.
#[derive(Debug)]
pub struct Outflow {
    /// Bytes written so far.
    end: u64,
    /// The first byte that was never sent.
    fresh: u64,
    /// The owner waits for the bytes up to here to arrive.
    wanted: u64,
    /// Up to here the receiver takes bytes.
    limit: u64,
    arrived: Ranges,
    lost: Ranges,
    sent: VecDeque<Sent>,
    /// Number of the first of `sent`.
    first: u64,
    largest_acked: Option<u64>,
    in_flight: u64,
    /// When the newest packet was sent.
    last: Tick,
    /// When a packet is lost for being late.
    late: Tick,
    /// Questions asked since the last acknowledgement.
    asked: u32,
    asking: bool,
    marked: u32,
    pub tally: Tally,
}

impl Outflow {
    pub fn new(params: &Params) -> Outflow {
        Outflow {
            end: 0,
            fresh: 0,
            wanted: 0,
            limit: params.first_limit,
            arrived: Ranges::default(),
            lost: Ranges::default(),
            sent: VecDeque::new(),
            first: 0,
            largest_acked: None,
            in_flight: 0,
            last: Tick::default(),
            late: Tick::NEVER,
            asked: 0,
            asking: false,
            marked: 0,
            tally: Tally::default(),
        }
    }

    /// `n` more bytes may be sent; `wanted`: their owner waits until they have arrived.
    pub fn write(&mut self, n: u64, wanted: bool) {
        self.end += n;
        if wanted {
            self.wanted = self.end;
        }
    }

    /// All bytes before this one have arrived.
    pub fn arrived(&self) -> u64 {
        self.arrived
            .first()
            .filter(|r| r.start == 0)
            .map_or(0, |r| r.end)
    }

    /// Whether written bytes have not arrived yet.
    pub fn is_busy(&self) -> bool {
        self.arrived() < self.end
    }

    /// Whether a packet is in flight.
    pub fn is_out(&self) -> bool {
        self.in_flight > 0
    }

    /// Consecutive times that a question got no answer.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// Requests a question, even if everything has arrived.
    pub fn ask(&mut self) {
        self.asking = true;
    }

    /// Whether a packet with bytes could be sent, if window and pacing allow.
    pub fn has_bytes(&self) -> bool {
        !self.lost.is_empty() || self.fresh < self.end.min(self.limit)
    }

    /// Bytes that were never sent.
    pub fn unsent(&self) -> u64 {
        self.end - self.fresh
    }

    /// Whether a question waits to be asked: it needs no window.
    pub fn is_asking(&self) -> bool {
        self.asking
    }

    /// Whether one more packet fits the window.
    pub fn fits(&self, window: u64) -> bool {
        self.in_flight < window
    }

    /// The next packet with at most `room` bytes of the stream.
    pub fn next(&mut self, now: Tick, room: u64, window: u64) -> Next {
        let range = self.piece(room);
        let len = range.end - range.start;
        let number = self.first + self.sent.len() as u64;
        self.in_flight += HEAD_LEN as u64 + len;
        let limited = !self.fits(window) || !self.has_bytes() && self.fresh < self.end;
        let now_flag = self.asking || limited || range.contains(&self.wanted.wrapping_sub(1));
        self.sent.push_back(Sent {
            at: now,
            offset: range.start,
            len: len as u32,
            limited,
            fate: Fate::Out,
        });
        self.asking = false;
        self.last = now;
        self.tally.packets += 1;
        Next {
            number,
            range,
            now: now_flag,
        }
    }

    /// Lost bytes first, then fresh ones. A question without either repeats the oldest bytes that
    /// have not arrived.
    fn piece(&mut self, room: u64) -> Range<u64> {
        if let Some(lost) = self.lost.take_first(room) {
            self.tally.again += 1;
            return lost;
        }
        let end = self.end.min(self.limit).min(self.fresh + room);
        if self.fresh < end {
            let range = self.fresh..end;
            self.fresh = end;
            return range;
        }
        self.tally.again += 1;
        let missing = self.arrived.missing(0..self.fresh);
        match missing.first() {
            Some(r) => r.start..r.end.min(r.start + room),
            None => self.fresh..self.fresh,
        }
    }

    /// An acknowledgement came, by itself or with an `answer`. Numbers that were never used make it
    /// invalid.
    pub fn on_ack(
        &mut self,
        now: Tick,
        ack: &Ack,
        answer: bool,
        rtt: &mut Rtt,
        cc: &mut dyn Congestion,
        params: &Params,
    ) -> Result<(), ()> {
        let largest = ack.numbers.largest().ok_or(())?;
        if largest >= self.first + self.sent.len() as u64 {
            return Err(());
        }
        self.limit = self.limit.max(ack.limit);
        let newest = self.accept(ack);
        if self.largest_acked < Some(largest) {
            self.largest_acked = Some(largest);
            if let Some((at, ..)) = newest.filter(|n| n.1 == largest) {
                rtt.sample(now.since(at), ack.delay, answer, params);
            }
        }
        if let Some((at, _, bytes, limited)) = newest {
            self.asked = 0;
            cc.on_acked(now, bytes, rtt.smoothed(), limited);
            if ack.marked != self.marked {
                self.marked = ack.marked;
                cc.on_marked(now, at);
            }
        }
        self.find_lost(now, rtt, cc, params);
        self.forget();
        Ok(())
    }

    /// Notes the packets that arrived; returns the newest among them (when sent, its number), their
    /// bytes, and whether the window had been full.
    fn accept(&mut self, ack: &Ack) -> Option<(Tick, u64, u64, bool)> {
        let (mut newest, mut bytes, mut limited) = (None, 0, false);
        for r in ack.numbers.iter() {
            for number in r.start.max(self.first)..r.end {
                let p = &mut self.sent[(number - self.first) as usize];
                if p.fate == Fate::Acked {
                    continue;
                }
                if p.fate == Fate::Out {
                    self.in_flight -= p.bytes();
                }
                p.fate = Fate::Acked;
                bytes += p.bytes();
                limited |= p.limited;
                newest = Some((p.at, number));
                let range = p.range();
                self.arrived.insert(range.clone());
                self.lost.remove(range);
            }
        }
        newest.map(|(at, number)| (at, number, bytes, limited))
    }

    /// Declares packets lost that later ones have passed: by number, or by time (RFC 9002, 6.1).
    pub fn find_lost(&mut self, now: Tick, rtt: &Rtt, cc: &mut dyn Congestion, params: &Params) {
        self.late = Tick::NEVER;
        let Some(largest) = self.largest_acked.filter(|l| *l >= self.first) else {
            return;
        };
        let patience = rtt.loss_delay(params);
        let mut bytes = 0;
        let mut span: Option<(Tick, Tick)> = None;
        for i in 0..(largest - self.first) as usize {
            let p = &mut self.sent[i];
            if p.fate != Fate::Out {
                continue;
            }
            let passed = largest - (self.first + i as u64) >= params.reordering;
            if !passed && p.at + patience > now {
                self.late = self.late.min(p.at + patience);
                continue;
            }
            p.fate = Fate::Lost;
            self.in_flight -= p.bytes();
            bytes += p.bytes();
            span = Some((span.map_or(p.at, |s| s.0), p.at));
            let range = p.range();
            for missing in self.arrived.missing(range).iter() {
                self.lost.insert(missing.clone());
            }
        }
        if let Some((oldest, newest)) = span {
            cc.on_lost(now, bytes, newest);
            if newest.since(oldest) > 3 * rtt.probe_delay(0, params) {
                cc.on_collapse(now);
            }
        }
    }

    /// Packets whose fate is known leave the list from its front.
    fn forget(&mut self) {
        while self.sent.front().is_some_and(|p| p.fate != Fate::Out) {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// When something is to be done without an acknowledgement, and what: a loss by time, or a
    /// question.
    pub fn timeout(&self, rtt: &Rtt, params: &Params) -> Tick {
        if self.late != Tick::NEVER {
            return self.late;
        }
        if !self.is_out() {
            return Tick::NEVER;
        }
        self.last + rtt.probe_delay(self.asked, params)
    }

    /// The time of [`Outflow::timeout`] is over.
    pub fn on_timeout(&mut self, now: Tick, rtt: &Rtt, cc: &mut dyn Congestion, params: &Params) {
        if self.late <= now {
            self.find_lost(now, rtt, cc, params);
            self.forget();
            return;
        }
        self.asked += 1;
        self.asking = true;
        // The next question is due after this one, even when the socket has no room for it now.
        self.last = now;
    }
}
