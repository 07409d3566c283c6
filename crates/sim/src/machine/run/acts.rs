//! Effects and durations of a schedule's steps on a machine.

use super::{Event, Kind, Posted, Run, Work};
use kw_coll::cost::{PORTS, first_piece};
use kw_coll::{FLAG_LINE_BYTES, SHM_BUFFERS, Slice, Step, TEMPS, Temp, is_shm_buffer};

impl Run<'_> {
    pub(super) fn act(&mut self, r: u32, now: f64) -> f64 {
        let me = r as usize;
        let steps = &self.call.schedules[me].steps;
        let (step, next) = (
            steps[self.ranks[me].pc],
            steps.get(self.ranks[me].pc + 1).copied(),
        );
        self.ranks[me].pc += 1;
        let now = self.spend(r, now, self.p.step);
        match step {
            Step::Send { to, what } => self.send(r, to, what, now),
            Step::Recv { from, into } => self.recv(r, from, into, now),
            Step::Copy { from, to } => match next {
                // One pass, as the executor makes it: the copy is the reduction's right operand.
                Some(Step::Reduce { left, right }) if right == to && !is_shm_buffer(to.buf) => {
                    self.ranks[me].pc += 1;
                    self.combine(r, [left, from], to, now)
                }
                _ => self.copy(r, from, to, now),
            },
            Step::Reduce { left, right } => self.combine(r, [left, right], right, now),
            Step::Raise(stage) => self.raise(r, stage, now),
            Step::Watch { .. } | Step::WatchAll(_) | Step::Await(_) | Step::Fence => now,
        }
    }

    fn bytes(&self, r: u32, slice: Slice) -> f64 {
        let temp = slice.buf.checked_sub(TEMPS);
        let temps = &self.call.schedules[r as usize].temps;
        let unit = match temp.and_then(|t| temps.get(t as usize)) {
            Some(Temp::Bytes(_)) => 1,
            _ => self.call.unit,
        };
        (slice.len * unit) as f64
    }

    /// Bytes of a slice that another rank has in its shm buffer, and that rank; without bytes that
    /// came with the line of its stage.
    fn shown(&self, r: u32, slice: Slice) -> Option<(u32, f64)> {
        let owner = is_shm_buffer(slice.buf).then(|| slice.buf - SHM_BUFFERS)?;
        let end = (slice.at as u64 + slice.len) * self.call.unit;
        (owner != r && end > FLAG_LINE_BYTES).then(|| (owner, self.bytes(r, slice)))
    }

    /// Reads what another rank shows, which takes this long for each byte.
    fn reads(&mut self, r: u32, of: u32, bytes: f64, byte: f64, now: f64) -> f64 {
        let end = self.spend(r, now, self.layout.line(r, of) + bytes * byte);
        let port = &mut self.ports[of as usize];
        *port = port.max(now) + bytes * byte / PORTS;
        end.max(*port)
    }

    fn copy(&mut self, r: u32, from: Slice, to: Slice, now: f64) -> f64 {
        let bytes = self.bytes(r, to);
        if let Some((of, bytes)) = self.shown(r, from) {
            let end = self.reads(r, of, bytes, self.layout.read(r, of), now);
            return end.max(self.moves(r, now, 0.0, bytes));
        }
        let beyond =
            is_shm_buffer(to.buf) && (to.at as u64 + to.len) * self.call.unit > FLAG_LINE_BYTES;
        let byte = if beyond { self.p.write } else { self.p.copy };
        self.moves(r, now, bytes * byte, bytes)
    }

    fn combine(&mut self, r: u32, operands: [Slice; 2], into: Slice, mut now: f64) -> f64 {
        let bytes = self.bytes(r, into);
        for operand in operands {
            if let Some((of, bytes)) = self.shown(r, operand) {
                now = self.reads(r, of, bytes, self.layout.read(r, of), now);
            }
        }
        let write = match self.shown(r, into) {
            Some(_) => self.p.write,
            None => 0.0,
        };
        self.moves(r, now, bytes * (self.p.combine + write), bytes)
    }

    fn raise(&mut self, r: u32, stage: u32, now: f64) -> f64 {
        let rank = &mut self.ranks[r as usize];
        rank.raises.push(((rank.round, stage), now));
        for watcher in std::mem::take(&mut rank.watchers) {
            self.at(now, Event::Wake(watcher));
        }
        now
    }

    fn post(&mut self, r: u32) -> u32 {
        let rank = &mut self.ranks[r as usize];
        rank.slots.push(f64::INFINITY);
        rank.open += 1;
        rank.slots.len() as u32 - 1
    }

    fn ends(&mut self, r: u32, slot: u32, at: f64) {
        let rank = &mut self.ranks[r as usize];
        rank.slots[slot as usize] = at;
        rank.open -= 1;
        rank.last_end = rank.last_end.max(at);
        if rank.asleep {
            self.at(at, Event::Wake(r));
        }
    }

    fn send(&mut self, r: u32, to: u32, what: Slice, now: f64) -> f64 {
        let (p, bytes, slot) = (self.p, self.bytes(r, what), self.post(r));
        let net = self.layout.over_network(r, to);
        let fetched = self.call.schedules[r as usize].fetched && !net;
        let long = fetched || bytes > if net { p.net_eager } else { p.eager };
        let data = if long { 0.0 } else { bytes };
        let then = match net {
            true => self.moves(r, now, p.net_send + data * p.net_byte, data),
            false => self.moves(r, now, p.send + data * p.send_byte, data),
        };
        let at = match net {
            true => self.crosses(r, to, data, now + p.net_send, then),
            false => then + self.layout.line(r, to) + p.way,
        };
        if !long {
            self.ends(r, slot, then);
        }
        let post = Posted {
            slot,
            bytes,
            at,
            long,
        };
        let channel = self.channels.entry((r, to)).or_default();
        match channel.recvs.pop_front() {
            Some(recv) => self.meet(r, to, post, recv, then),
            None => channel.sends.push_back(post),
        }
        then
    }

    fn recv(&mut self, r: u32, from: u32, into: Slice, now: f64) -> f64 {
        let (bytes, slot) = (self.bytes(r, into), self.post(r));
        let post = Posted {
            slot,
            bytes,
            at: now,
            long: false,
        };
        let channel = self.channels.entry((from, r)).or_default();
        match channel.sends.pop_front() {
            Some(send) => self.meet(from, r, send, post, now),
            None => channel.recvs.push_back(post),
        }
        now
    }

    /// When the last byte of a message has come that leaves between `first` and `last`.
    fn crosses(&mut self, from: u32, to: u32, bytes: f64, first: f64, last: f64) -> f64 {
        let busy = bytes * self.p.link;
        let (a, b) = (self.layout.host(from), self.layout.host(to));
        if a == b {
            return last + self.p.latency;
        }
        let out = &mut self.links[a][0];
        let begin = first.max(*out);
        *out = (begin + busy).max(last);
        let (end, begin) = (*out + self.p.latency, begin + self.p.latency);
        let into = &mut self.links[b][1];
        *into = (begin.max(*into) + busy).max(end);
        *into
    }

    /// A receiver's work for a message through shared memory, in addition to its bytes.
    fn receives(&self, from: u32, to: u32) -> f64 {
        self.layout.line(from, to) + self.p.recv
    }

    /// Both ends of a message are there.
    fn meet(&mut self, from: u32, to: u32, send: Posted, recv: Posted, now: f64) {
        let (p, net, bytes) = (self.p, self.layout.over_network(from, to), send.bytes);
        let here = now.max(send.at);
        let line = self.layout.line(from, to);
        let fetched = self.call.schedules[from as usize].fetched && !net;
        if send.long && !fetched {
            let answer = match net {
                true => p.latency + p.net_send + p.net_recv,
                false => line + p.way + self.receives(from, to),
            };
            let kind = Kind::Stream {
                slot: send.slot,
                to,
                to_slot: recv.slot,
                bytes,
            };
            return self.give(from, here + answer, kind);
        }
        let back = line + p.way;
        let (ns, ready) = match (net, fetched) {
            (true, _) => {
                let busy = bytes * p.net_byte;
                (p.net_recv + busy, now.max(send.at - busy))
            }
            (false, true) => (
                self.receives(from, to) + p.fetch + bytes * p.fetch_byte,
                here,
            ),
            (false, false) => (self.receives(from, to) + bytes * p.recv_byte, here),
        };
        let sender = fetched.then_some((from, send.slot, back));
        let kind = Kind::Take {
            slot: recv.slot,
            ns,
            bytes,
            sender,
        };
        self.give(to, ready, kind);
    }

    fn give(&mut self, r: u32, ready: f64, kind: Kind) {
        self.ranks[r as usize].works.push(Work { ready, kind });
        if self.ranks[r as usize].asleep {
            self.at(ready, Event::Wake(r));
        }
    }

    pub(super) fn do_work(&mut self, r: u32, work: Work, now: f64) -> f64 {
        match work.kind {
            Kind::Take {
                slot,
                ns,
                bytes,
                sender,
            } => {
                let end = self.moves(r, now, ns, bytes);
                self.ends(r, slot, end);
                if let Some((sender, slot, back)) = sender {
                    self.ends(sender, slot, end + back);
                }
                end
            }
            Kind::Stream {
                slot,
                to,
                to_slot,
                bytes,
            } => self.stream(r, slot, (to, to_slot), bytes, now),
        }
    }

    fn stream(&mut self, r: u32, slot: u32, to: (u32, u32), bytes: f64, now: f64) -> f64 {
        let (p, net) = (self.p, self.layout.over_network(r, to.0));
        let byte = if net { p.net_byte } else { p.long_byte };
        let end = self.moves(r, now, bytes * byte, bytes);
        self.ends(r, slot, end);
        let (ns, ready) = match net {
            true => {
                let last = self.crosses(r, to.0, bytes, now, end);
                let busy = bytes * byte;
                (p.net_recv + busy, now.max(last - busy))
            }
            false => {
                let first = first_piece(bytes) * byte + self.layout.line(r, to.0);
                (self.receives(r, to.0) + bytes * byte, now + first)
            }
        };
        let kind = Kind::Take {
            slot: to.1,
            ns,
            bytes,
            sender: None,
        };
        self.give(to.0, ready, kind);
        end
    }
}
