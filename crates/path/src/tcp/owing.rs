//! Payload that is lent to a connection until the peer's kernel has acknowledged it (see [`kw_core::kept`]): who is told when, and when it is
//! copied instead.

use super::link::Link;
use super::*;
use kw_core::kept::Kept;
use kw_sys::buf::Buf;

/// The next look for acknowledgements.
#[derive(Clone, Copy, Default, Debug)]
pub struct Later {
    at: Tick,
    pause: Duration,
}

impl Later {
    /// No pause is longer: a collective operation may wait for the end of a send.
    const LONGEST: Duration = Duration::from_millis(1);

    /// Chooses the next time; `owed`: bytes that are to be acknowledged, a nanosecond each at first.
    fn put_off(&mut self, now: Tick, owed: u64) {
        self.pause = match self.pause.is_zero() {
            true => Duration::from_nanos(owed),
            false => self.pause * 2,
        };
        self.pause = self.pause.clamp(Later::LONGEST / 20, Later::LONGEST);
        self.at = now + self.pause;
    }
}

impl TcpPath {
    /// Tells those whose payload the peers' kernels have acknowledged, or who were told so in [`TcpPath::own_all`].
    #[cold]
    pub(super) fn settle<I: Inbound>(&mut self, inbound: &mut I) -> bool {
        let before = self.lists.owing.len() + self.told.len();
        for (peer, cookie) in self.told.drain(..) {
            inbound.on_sent(peer, cookie);
        }
        for i in (0..self.lists.owing.len()).rev() {
            let peer = self.lists.owing[i];
            let Slot::Up(link) = &mut self.slots[peer.idx()] else {
                self.lists.owing.swap_remove(i);
                continue;
            };
            link.settle(peer, &self.tuning, inbound);
            if !link.owes() {
                self.lists.owing.swap_remove(i);
            }
        }
        before > self.lists.owing.len()
    }

    /// Before a sleep of the event thread: no event tells of acknowledgements, but the program computes, and a look now and then costs it less
    /// than a copy of what is on its way. The first after the time that a quick network takes, each later one after twice as long.
    #[cold]
    pub(super) fn look_later(&mut self, now: Tick) {
        if now >= self.later.at {
            let owed = |peer: &Peer| match &self.slots[peer.idx()] {
                Slot::Up(link) => link.owed(),
                _ => 0,
            };
            let owed = self.lists.owing.iter().map(owed).sum();
            self.later.put_off(now, owed);
        }
        if self.poller.set_alarm(self.later.at.min(self.next)).is_err() {
            self.own_all();
        }
    }

    /// Before a sleep: nothing wakes us when the peers' kernels have acknowledged, so what is lent is copied, and the sleep ends at once.
    #[cold]
    pub(super) fn own_all(&mut self) {
        for &peer in &self.lists.owing {
            if let Slot::Up(link) = &mut self.slots[peer.idx()] {
                let done = link.own();
                self.told.extend(done.into_iter().map(|c| (peer, c)));
            }
        }
        if !self.told.is_empty() {
            // Without the alarm they are told at the next poll.
            let _ = self.poller.set_alarm(Tick(1));
        }
    }
}

impl Link {
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
        let long = self.waited >= tuning.patient_polls;
        if kept.owes()
            && (long || self.waited >= tuning.hasty_polls && kept.owed() <= tuning.little)
        {
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
}

/// Forgets what the peer's kernel has acknowledged.
pub fn forget(kept: &mut Kept<Buf>, sock: &Sock, done: impl FnMut(u64)) {
    // A system that does not say leaves it to `own`.
    if let Ok(unacknowledged) = sock.unacknowledged() {
        let acknowledged = kept.sent().saturating_sub(unacknowledged as u64);
        kept.release(acknowledged, done);
    }
}

fn read(buf: &Buf, from: u64, to: &mut [u8]) {
    buf.read(from, to);
}
