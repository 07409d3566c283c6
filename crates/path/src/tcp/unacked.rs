//! Payload that is lent to a connection until the peer's kernel has acknowledged it (see [`kw_proto::retransmit`]): who is told when, and when it is
//! copied instead.

use super::link::Link;
use super::*;
use kw_proto::retransmit::RetransmitBuffer;
use kw_sys::buf::Buf;

/// The next look for acknowledgements, at the time when all should be there: each look costs the computation as much as any wake-up, and what
/// comes meanwhile wakes the event thread anyway.
#[derive(Clone, Copy, Default, Debug)]
pub struct Later {
    at: Tick,
    /// The last look, and bytes that were owed then.
    last: Option<(Tick, u64)>,
    /// Picoseconds for a byte, as seen last; zero before the first time.
    pace: u64,
    /// Looks since that saw nothing new.
    vain: u32,
}

impl Later {
    /// No pause is longer: a collective operation waits for the end of a send.
    const LONGEST: Duration = Duration::from_millis(10);
    /// None is shorter: what a wake-up costs should be worth it.
    const SHORTEST: Duration = Duration::from_micros(50);
    /// What is guessed before the first time: a quick network.
    const QUICK: u64 = 1000;

    /// Nobody has to look any more. Whether somebody was going to.
    fn rest(&mut self) -> bool {
        (self.last, self.vain) = (None, 0);
        std::mem::take(&mut self.at) != Tick(0)
    }

    /// Chooses the next time; `owed`: bytes that are to be acknowledged.
    fn put_off(&mut self, now: Tick, owed: u64) {
        self.learn(now, owed);
        self.pace = match self.pace {
            0 => Later::QUICK,
            pace => pace.clamp(Later::QUICK / 10, Later::QUICK * 100),
        };
        let all = self.pace.saturating_mul(owed) / 1000;
        // A little later than expected, because a look that comes too early is followed by another one.
        let pause = Duration::from_nanos(all + all / 16) * (1 << self.vain.min(8));
        self.at = now + pause.clamp(Later::SHORTEST, Later::LONGEST);
        self.last = Some((now, owed));
    }

    /// How quickly they come, from what has come since the last look.
    fn learn(&mut self, now: Tick, owed: u64) {
        match self.last {
            Some((then, before)) if before > owed => {
                let picos = now.since(then).as_nanos() as u64 * 1000;
                (self.pace, self.vain) = (picos / (before - owed), 0);
            }
            Some(_) => self.vain += 1,
            None => {}
        }
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

    /// Before a sleep of the event thread, while an operation cannot go on before a send has ended: no event tells of acknowledgements, but the
    /// program computes, and a look costs it less than a copy of what is on its way.
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

    /// Before a sleep of the event thread while nothing depends on acknowledgements.
    pub(super) fn look_no_more(&mut self) {
        if self.later.rest() {
            // An alarm that stays costs a wake-up.
            let _ = self.poller.set_alarm(self.next);
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
pub fn forget(kept: &mut RetransmitBuffer<Buf>, sock: &Sock, done: impl FnMut(u64)) {
    // A system that does not say leaves it to `own`.
    if let Ok(unacknowledged) = sock.unacknowledged() {
        let acknowledged = kept.sent().saturating_sub(unacknowledged as u64);
        kept.release(acknowledged, done);
    }
}

fn read(buf: &Buf, from: u64, to: &mut [u8]) {
    buf.read(from, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn micros(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    /// Looks at a network that takes so many nanoseconds for a byte, until nothing is owed; how many there were.
    fn looks(later: &mut Later, from: Tick, nanos: u64) -> u32 {
        let (mut now, mut looks) = (from, 0);
        loop {
            let gone = now.since(from).as_nanos() as u64 / nanos;
            if gone >= MB {
                later.rest();
                return looks;
            }
            later.put_off(now, MB - gone);
            assert!(later.at > now);
            (now, looks) = (later.at, looks + 1);
        }
    }

    #[test]
    fn one_look_is_enough_once_the_pace_is_known() {
        let mut later = Later::default();
        let guesses = looks(&mut later, Tick(0), 8);
        assert!((2..=4).contains(&guesses), "{guesses} looks");
        assert_eq!(looks(&mut later, Tick(1 << 30), 8), 1);
        // The network has become slower: the pace is found again.
        let more = looks(&mut later, Tick(2 << 30), 24);
        assert!(more <= 4, "{more} looks");
        assert_eq!(
            looks(&mut later, Tick(3 << 30), 24),
            3,
            "at most 10 ms each"
        );
    }

    #[test]
    fn pauses_grow_while_nothing_comes_and_have_an_end() {
        let mut later = Later::default();
        let mut last = Duration::ZERO;
        let mut now = Tick(0);
        for _ in 0..100 {
            later.put_off(now, 64 << 10);
            let pause = later.at.since(now);
            assert!(pause >= last && pause <= Later::LONGEST);
            (last, now) = (pause, later.at);
        }
        assert_eq!(last, Later::LONGEST);
        assert!(later.rest(), "it was going to look");
        assert!(!later.rest());
        later.put_off(now, 1);
        assert_eq!(
            later.at.since(now),
            micros(50),
            "no less than a wake-up is worth"
        );
    }
}
