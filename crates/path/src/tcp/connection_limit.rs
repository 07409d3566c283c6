//! More peers than connections: a process may have only so many files open.
//!
//! When a connection is to be made or let in and there is no room, the idle one that was used longest ago is given up: we say a goodbye
//! that is the connection's and not the rank's ([`PARTING`]), and the peer closes it as soon as nothing is under way and our kernel has
//! acknowledged all that it sent. The link stays, and goes on over the next connection, as after one that broke (`remake`). If anything was
//! said after the goodbye, that connection is made at once.
//!
//! A quarter of the room is kept for those who call us: if everybody's were full of calls, nobody's would be answered. Calls without
//! room wait here; who calls us waits in the system's queue, with the acceptor shut, so that it does not keep us awake.

use super::stream::PARTING;
use super::*;

/// The fewest connections that are worth trying with.
pub const LEAST: usize = 4;
/// Connections that are being given up at once.
const AT_ONCE: usize = 4;
/// How soon what waits for room, or for an acknowledgement, is looked at again.
const SOON: Duration = Duration::from_millis(2);

impl TcpPath {
    /// Connections that there are or will soon be.
    pub fn connections(&self) -> usize {
        let sockets = |p: &Peer| match self.slot(*p) {
            Some(Slot::Dialing(dial)) => dial.sockets(),
            _ => 0,
        };
        let dials: usize = self.lists.dialing.iter().map(sockets).sum();
        let bundles = self.bundles.iter().flatten();
        let rails: usize = bundles.map(|b| b.sockets()).sum();
        self.lists.live.len() + rails + dials + self.acceptor.len()
    }

    /// Begins a dial, if there is room.
    pub(super) fn start_dial(&mut self, to: Peer) {
        let kept = self.most / 4;
        if self.most != usize::MAX && self.connections() + kept >= self.most {
            return self.make_room();
        }
        if let Slot::Dialing(dial) = &mut self.slots[to.idx()] {
            dial.start(&self.identity, &self.poller, &self.sources);
        }
    }

    /// Lets in who waits at a listening socket, if there is room.
    pub(super) fn let_in(&mut self, listener: usize, now: Tick) -> bool {
        let room = self.most.saturating_sub(self.connections());
        if room == 0 {
            self.make_room();
            self.acceptor.set_shut(true, &self.poller);
            return false;
        }
        let moved = self
            .acceptor
            .accept(listener, room, now, (&self.identity, &self.poller));
        if self.acceptor.is_shut() && self.most != usize::MAX {
            // The program has opened files itself: there is room for fewer than we thought.
            self.most = self.connections().max(LEAST);
            self.make_room();
        }
        moved
    }

    /// Asks the peer of the idle connection that was used longest ago to close it.
    #[cold]
    fn make_room(&mut self) {
        if self.drop_idle_rails() {
            return;
        }
        let up = |p: &&Peer| match self.slot(**p) {
            Some(Slot::Up(link)) => Some(link),
            _ => None,
        };
        let links = self
            .lists
            .live
            .iter()
            .filter_map(|p| up(&p).map(|l| (*p, l)));
        if links.clone().filter(|(_, l)| l.parting).count() >= AT_ONCE || self.closed {
            return;
        }
        let idle = links.filter(|(_, l)| l.is_idle() && !l.parting && !l.stream.bye);
        let Some((peer, _)) = idle.min_by_key(|(_, l)| l.used) else {
            return;
        };
        let bye = Header {
            token: PARTING,
            ..Header::bare(Kind::Bye)
        };
        if let Slot::Up(link) = &mut self.slots[peer.idx()] {
            link.parting = true;
            // What the socket does not take is queued; what it refuses is noticed when it is read.
            let _ = self
                .lists
                .send(link, peer, (&bye, Body::None), 0, &self.tuning);
        }
    }

    /// The peer wants the connection closed: done when nothing is under way, else looked at again soon.
    #[cold]
    pub(super) fn give_way<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return;
        };
        if self.closed || link.stream.bye {
            return;
        }
        if link.is_idle() && link.is_acknowledged() {
            self.rest(peer, inbound);
        } else if note(&mut self.lists.yielding, peer) {
            // Without the alarm it is looked at by the next poll.
            let _ = self.poller.set_alarm(Tick(1));
        }
    }

    /// A connection that we wanted closed has ended. Whether that was all: then its link rests until somebody wants it.
    pub(super) fn parted<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return false;
        };
        let all = link.is_idle() && link.is_acknowledged();
        if all {
            self.rest(peer, inbound);
        }
        all
    }

    fn rest<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) {
        self.drop_rails(peer);
        self.part(peer, String::new());
        if self.known[peer.idx()].is_empty() {
            inbound.on_stray(peer);
        }
    }

    /// Looks again at what waits for room; says when the next time is.
    pub(super) fn limits<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> Tick {
        let mut waits = false;
        for peer in std::mem::take(&mut self.lists.yielding) {
            self.give_way(peer, inbound);
            waits |= self.lists.yielding.contains(&peer);
        }
        for i in 0..self.lists.dialing.len() {
            let peer = self.lists.dialing[i];
            let waiting = |s: &Slot| matches!(s, Slot::Dialing(d) if !d.begun);
            if waiting(&self.slots[peer.idx()]) {
                self.start_dial(peer);
                waits |= waiting(&self.slots[peer.idx()]);
            }
        }
        if self.acceptor.is_shut() {
            match self.connections() < self.most {
                true => self.acceptor.set_shut(false, &self.poller),
                false => self.make_room(),
            }
            waits |= self.acceptor.is_shut();
        }
        if waits { now + SOON } else { Tick::NEVER }
    }
}
