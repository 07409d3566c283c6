//! A turn: reading, sending, asking the poller, and getting ready for a sleep.
//!
//! Up to `Tuning::few_links` connections are read directly, and the poller is asked now and then; more of them only when it tells of them.

use super::link::Watch;
use super::*;

impl TcpPath {
    /// After a sleep on the descriptor: serves what made it readable, without asking the other connections.
    pub fn poll_ready<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        self.note_look();
        let moved = !self.lists.owing.is_empty() && self.settle(inbound);
        let moved = self.look(now, inbound) | moved;
        moved | (!self.striping.is_empty() && self.serve_striping(inbound))
    }

    /// To be called before sleeping on the descriptor: asks to be woken when a full socket has room again, and makes the
    /// next `poll` look at everything.
    pub fn arm(&mut self, who: Asleep, now: Tick) {
        self.patience = 0;
        let patient = who != Asleep::Waiting;
        let how = self.way_to_watch();
        for &peer in &self.lists.live {
            if let Slot::Up(link) = &mut self.slots[peer.idx()] {
                let part = link.stream.arrives.part(&self.tuning);
                link.wake_for(if patient { part } else { 0 });
                let interest = match link.stream.is_flushed() {
                    true => Interest::Read,
                    false => Interest::Both,
                };
                let number = tag::LINK | peer.0 as u64;
                // Where the system refuses, the alarm or the next poll still finds what comes.
                let _ = link.be_watched(&self.poller, number, how(interest));
            }
        }
        if !self.striping.is_empty() {
            self.arm_rails(if patient { self.tuning.part } else { 0 });
        }
        match who {
            _ if self.lists.owing.is_empty() => self.look_no_more(),
            Asleep::Waiting => self.own_all(),
            Asleep::Serving => self.look_no_more(),
            Asleep::Stepping => self.look_later(now),
        }
    }

    /// Whether the alarm has gone off, and would end a sleep at once.
    pub fn is_due(&self, now: Tick) -> bool {
        self.poller.is_due(now)
    }

    /// Where few connections are read directly the poller watches them for the next sleep only.
    pub(super) fn way_to_watch(&self) -> fn(Interest) -> Watch {
        match self.lists.live.len() <= self.tuning.few_links {
            true => Watch::Once,
            false => Watch::Always,
        }
    }

    /// There are more connections than are read directly: the poller tells of each from now on.
    #[cold]
    pub(super) fn watch_all(&mut self) -> std::io::Result<()> {
        for &peer in &self.lists.live {
            if let Slot::Up(link) = &mut self.slots[peer.idx()] {
                let number = tag::LINK | peer.0 as u64;
                link.be_watched(&self.poller, number, Watch::Always(Interest::Read))?;
            }
        }
        Ok(())
    }

    /// Reads from one connection.
    #[inline]
    pub(super) fn pull<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return false;
        };
        match link.pull(peer, &self.tuning, inbound) {
            Ok(false) => false,
            Ok(true) => {
                self.lists.used(link);
                let striping = link.stream.is_striping();
                if link.stream.unwanted {
                    self.give_way(peer, inbound);
                }
                if striping {
                    self.note_striping(peer);
                }
                true
            }
            Err(end) => self.ended(peer, end, inbound),
        }
    }

    /// Sends what is queued.
    pub(super) fn flush<I: Inbound>(&mut self, inbound: &mut I) -> bool {
        let mut moved = false;
        let mut i = 0;
        while i < self.lists.backlog.len() {
            let (sent, left) = self.push(self.lists.backlog[i], inbound);
            moved |= sent;
            if left {
                i += 1;
            } else {
                self.lists.backlog.swap_remove(i);
            }
        }
        moved
    }

    /// Sends what is queued for one peer. Whether some went, and whether some is left.
    pub(super) fn push<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> (bool, bool) {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return (false, false);
        };
        // The reading side finds out what happened, after all that came before the end.
        let sent = link.push(peer, &self.tuning, inbound).unwrap_or_else(|_| {
            if link.stream.kept.is_none() {
                link.stream.outbox.clear();
            }
            false
        });
        self.lists.note_owing(peer, link);
        if link.stream.is_flushed() && link.stream.is_striping() {
            self.share(peer);
        }
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return (sent, false);
        };
        let left = !link.stream.is_flushed();
        if !left && self.closed {
            link.sock.shut_write();
        }
        (sent, left)
    }

    /// There is room to send to this peer.
    fn push_ready<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        if !self.lists.backlog.contains(&peer) {
            return false;
        }
        let (sent, left) = self.push(peer, inbound);
        if !left {
            self.lists.backlog.retain(|&p| p != peer);
        }
        sent
    }

    /// The poller has told of a connection. What is told once counts as something that moved, so that nobody sleeps before it is
    /// watched again.
    fn told_of<I: Inbound>(&mut self, peer: Peer, event: &Event, inbound: &mut I) -> bool {
        let once = match &mut self.slots[peer.idx()] {
            Slot::Up(link) => link.was_told(),
            _ => false,
        };
        once | (event.read && self.pull(peer, inbound))
            | (event.write && self.push_ready(peer, inbound))
    }

    /// Asks the poller and serves what it names.
    pub(super) fn look<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        self.patience = self.tuning.look_every;
        let mut events = std::mem::take(&mut self.events);
        // An epoll that fails leaves the direct reads; there is nobody to tell.
        let _ = self.poller.wait(Some(Duration::ZERO), &mut events);
        let mut moved = false;
        for e in &events {
            let low = e.data & !tag::KINDS;
            moved |= match e.data & tag::KINDS {
                tag::LINK => self.told_of(Peer(low as u32), e, inbound),
                tag::RAIL => self.rail_ready(low, inbound),
                tag::RAIL_DIAL => self.advance_rail(Peer(low as u32), now),
                tag::DIAL => self.advance_dial(Peer(low as u32), now, inbound),
                tag::PENDING => self.advance_pending(low, inbound),
                _ => self.let_in(low as usize, now),
            };
        }
        self.events = events;
        self.timers(now, inbound);
        moved
    }

    /// Time-outs of strangers and of dials, and the alarm for the next ones.
    fn timers<I: Inbound>(&mut self, now: Tick, inbound: &mut I) {
        let listen = match self.linked {
            true => self.leave_silent(now, inbound),
            false => Tick::NEVER,
        };
        if self.is_settled() && listen == Tick::NEVER {
            self.next = Tick::NEVER;
            return;
        }
        let mut next = self.acceptor.expire(now).min(self.limits(now, inbound));
        next = next.min(listen);
        next = next.min(self.dial_rails(now, inbound));
        for i in (0..self.lists.dialing.len()).rev() {
            let peer = self.lists.dialing[i];
            let Slot::Dialing(dial) = &mut self.slots[peer.idx()] else {
                continue;
            };
            if !dial.begun {
                continue;
            }
            match dial.tick(now, &self.identity, &self.poller, &self.sources) {
                Ok(at) => next = next.min(at),
                Err(reason) => self.bury(peer, reason, inbound),
            }
        }
        self.next = next;
        // Without the alarm the rank still sees the time-out at its next poll.
        let _ = self.poller.set_alarm(next);
    }

    fn is_settled(&self) -> bool {
        !self.is_connecting() && self.acceptor.is_quiet()
    }

    /// Whether connections of ours are being made or given up.
    fn is_connecting(&self) -> bool {
        !self.lists.dialing.is_empty()
            || !self.wanting.is_empty()
            || !self.lists.yielding.is_empty()
    }

    /// Whether the poller is asked at every turn.
    pub(super) fn is_urgent(&self, now: Tick) -> bool {
        self.is_connecting() || self.acceptor.is_urgent(now)
    }
}
