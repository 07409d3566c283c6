//! Connections that break, and links that go on over the next one.
//!
//! A link outlives its connections ([`super::stream`], [`kw_core::kept`]). When one ends without a goodbye, what its kernel still has is read, and
//! the peer is dialled again, over every pair of addresses; whichever side finds out first. The new connection's handshake says
//! under the key which link it carries on and how much of it each side has ([`Claim`]), and each goes on from there.
//!
//! | what happened | who finds out | how it goes on |
//! | --- | --- | --- |
//! | the connection was reset or closed on the way | both sides, at the next look | dialled by both; the lower rank's call counts |
//! | only one side was told | that side | its call reaches the other, whose connection then ends |
//! | the rank ended | its kernel closes the connection | three rounds (0.4 s) in which all addresses refuse: lost |
//! | its host or the way is gone | the kernel, after `Tuning::silence` without an answer | dialled for 5 s, then lost |
//! | the rank is stopped | nobody: its kernel answers | its full socket may end the connection; the call waits until it goes on |
//!
//! A rank that was connected to, and never sent first, does not know where the peer listens; it asks ([`Inbound::on_stray`]).

use super::door::Knock;
use super::link::End;
use super::stream::is_strand;
use super::*;
use kw_core::handshake::Verdict;

/// The next look for acknowledgements.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Later {
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
    /// A connection ended.
    #[cold]
    pub(super) fn ended<I: Inbound>(&mut self, peer: Peer, end: End, inbound: &mut I) -> bool {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return true;
        };
        let what = end.what(self.me, peer, &link.way());
        if link.parting && end.may_go_on() && self.parted(peer, inbound) {
            return true;
        }
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return true;
        };
        let over = link.stream.bye || self.closed && link.stream.is_flushed();
        if over || link.stream.kept.is_none() || !end.may_go_on() {
            self.bury(peer, format!("{what}; {}", end.advice(peer)), inbound);
            return true;
        }
        self.part(peer, what);
        if self.known[peer.idx()].is_empty() {
            inbound.on_stray(peer);
        }
        self.go_on(peer);
        true
    }

    /// Takes the link from its connection, which is closed.
    pub(super) fn part(&mut self, peer: Peer, why: String) {
        let slot = &mut self.slots[peer.idx()];
        let old = std::mem::replace(slot, Slot::Idle(None));
        if let Slot::Up(link) = old {
            let mut stream = link.stream;
            stream.broke = why;
            *slot = Slot::Idle(Some(Box::new(stream)));
        }
        self.lists.forget(peer);
    }

    /// Dials a peer whose connection broke, if it is known where it listens.
    pub(super) fn go_on(&mut self, peer: Peer) {
        let Slot::Idle(Some(stream)) = &mut self.slots[peer.idx()] else {
            return;
        };
        if stream.broke.is_empty() && stream.is_flushed() || self.known[peer.idx()].is_empty() {
            return;
        }
        let stream = std::mem::take(&mut **stream);
        self.dial(peer, stream);
        self.start_dial(peer);
        // The dial's times count from the next look; without the alarm that is the next poll.
        let _ = self.poller.set_alarm(Tick(1));
    }

    /// A connection to this peer is agreed upon: the link goes on over it.
    pub(super) fn connected<I: Inbound>(
        &mut self,
        peer: Peer,
        sock: Sock,
        mut stream: Stream,
        claim: Claim,
        inbound: &mut I,
    ) {
        self.door.dismiss(peer);
        if !stream.resume(&claim, |cookie| inbound.on_sent(peer, cookie)) {
            let why = "its connection was made anew, but what one side wants again the other has not kept; something between them answers in their place";
            return self.bury(peer, why.to_string(), inbound);
        }
        if self.reliable {
            // Where the system does not know these options, it finds out later.
            let _ = sock.watch(self.tuning.silence);
        }
        match self.adopt(peer, sock, stream) {
            Ok(()) => {
                self.part_from_strands(peer);
                self.flush(inbound);
            }
            Err(e) => self.bury(
                peer,
                format!("the new connection could not be used ({e})"),
                inbound,
            ),
        }
    }

    /// Our own attempts have failed for now: a connection of the peer that waits for this is welcome.
    pub(super) fn fall_back<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let Some(knock) = self.door.parked(peer) else {
            return false;
        };
        self.welcome(peer, knock, inbound);
        true
    }

    fn welcome<I: Inbound>(&mut self, peer: Peer, knock: Knock, inbound: &mut I) {
        let slot = &mut self.slots[peer.idx()];
        let mut fresh = Stream::new(self.reliable);
        let stream = match slot {
            Slot::Dialing(dial) => &mut dial.stream,
            Slot::Idle(Some(stream)) => stream,
            _ => &mut fresh,
        };
        let claim = knock.claim();
        if !stream.allows(&claim) {
            return;
        }
        let ours = Claim {
            link: claim.link,
            ..stream.claim()
        };
        // When the connection breaks at the last moment the peer comes again, or our dial goes on.
        if let Some(sock) = knock.answer(Verdict::Welcome, ours)
            && self
                .poller
                .add(&sock, tag::LINK | peer.0 as u64, Interest::Read)
                .is_ok()
        {
            let stream = std::mem::take(stream);
            self.connected(peer, sock, stream, claim, inbound);
        }
    }

    /// A stranger said something.
    pub(super) fn advance_knock<I: Inbound>(&mut self, key: u64, inbound: &mut I) -> bool {
        let Some(rank) = self.door.advance(key) else {
            return false;
        };
        let peer = Peer(rank);
        if self.door.claim(key).is_some_and(|c| is_strand(&c)) {
            return self.strand_knock(peer, key);
        }
        self.leave(peer, key, inbound);
        match self.slot(peer) {
            Some(Slot::Idle(_)) => {}
            Some(Slot::Dialing(dial)) if self.me > peer || dial.is_idle() => {}
            Some(Slot::Dialing(_)) => return true,
            _ => {
                if let Some(knock) = self.door.take(key) {
                    knock.answer(Verdict::Duplicate, Claim::default());
                }
                return true;
            }
        }
        if let Some(knock) = self.door.take(key) {
            self.welcome(peer, knock, inbound);
        }
        true
    }

    /// A connected peer calls. If it knows of the connection that we have, that one is over: what it has brought is read, and it is
    /// left. If not, ours is looked at: it may be over without our knowledge.
    fn leave<I: Inbound>(&mut self, peer: Peer, key: u64, inbound: &mut I) {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return;
        };
        let Some(claim) = self.door.claim(key) else {
            return;
        };
        if link.stream.kept.is_none() || link.stream.bye || !link.stream.allows(&claim) {
            return;
        }
        let knows = claim.connections >= link.stream.claim().connections;
        let why = format!(
            "the connection of ranks {} and {peer} ({}) was ended by rank {peer}",
            self.me,
            link.way()
        );
        while matches!(self.slots[peer.idx()], Slot::Up(_)) && self.pull(peer, inbound) {}
        if knows && matches!(self.slots[peer.idx()], Slot::Up(_)) {
            self.part(peer, why);
        }
    }

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
