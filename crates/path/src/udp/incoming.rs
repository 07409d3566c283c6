//! Incoming datagrams: they go to their connections or to the listener; then the peers heard from
//! are served.

use super::link::Way;
use super::{Slot, UdpPath, down};
use crate::contract::Inbound;
use kw_base::{Peer, Tick};
use kw_proto::reliable::Received;
use kw_proto::reliable::packet::sender;
use kw_proto::reliable::setup::{Arrival, Caught, Heard};
use kw_sys::udp::{Batch as Came, LONGEST};

impl UdpPath {
    /// Receives from every socket.
    pub(super) fn drain(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        let mut moved = 0;
        let mut inbox = self.inbox.take().unwrap_or_default();
        // A poll without success costs as much as one that brings something: a second one is
        // worthwhile only if there is much traffic.
        let turns = if self.flooded { self.tuning.turns } else { 1 };
        for sock in 0..self.socks.len() {
            for _ in 0..turns {
                match self.socks[sock].recv(&mut inbox) {
                    Ok(Some(came)) => self.sort(now, sock, came, inbound),
                    Ok(None) => break,
                    Err(_) => self.complaints(now, sock),
                }
                moved += 1;
            }
        }
        self.flooded = moved >= turns;
        self.inbox = Some(inbox);
        moved > 0
    }

    /// Datagrams of one sender: to their connection, or to the listener.
    fn sort(&mut self, now: Tick, sock: usize, came: Came<'_>, inbound: &mut dyn Inbound) {
        for datagram in came.bytes.chunks(came.size) {
            let Some((rank, session)) = sender(datagram) else {
                self.tally.dropped += 1;
                continue;
            };
            let peer = Peer(rank);
            match self.slots.get_mut(peer.idx()) {
                Some(Slot::Up(link)) if session != 0 => {
                    match link.receive(peer, now, datagram, came.marked, inbound) {
                        Ok(Received::Taken) => self.note(peer),
                        Ok(Received::Dropped) => self.tally.dropped += 1,
                        Err(why) => self.bury(peer, why.to_string(), inbound),
                    }
                }
                // Data in flight of a session that is over, or has not begun.
                Some(_) if session != 0 => {}
                Some(_) if peer != self.me => {
                    let way = Way {
                        sock,
                        to: came.from,
                    };
                    self.shake(peer, now, way, datagram);
                }
                _ => self.tally.dropped += 1,
            }
        }
    }

    #[inline]
    fn note(&mut self, peer: Peer) {
        self.heard.insert(peer);
    }

    /// A message of a handshake.
    #[cold]
    fn shake(&mut self, peer: Peer, now: Tick, way: Way, datagram: &[u8]) {
        match &mut self.slots[peer.idx()] {
            Slot::Up(link) => {
                if let Some(w) = link.welcome.as_ref().filter(|w| w.is_asked_for(datagram)) {
                    self.socks[way.sock].send(way.to, w.datagram(), LONGEST);
                }
                return;
            }
            Slot::Gone(_) => return,
            Slot::Calling(call) => match call.caller().receive(datagram) {
                Heard::Nothing => {}
                Heard::Challenged => {
                    call.answered(way);
                    call.send(now, &self.socks);
                    return;
                }
                Heard::Welcome(session, longest) => {
                    let way = call.way().unwrap_or(way);
                    self.adopt(peer, session, longest, way, None, now);
                    return;
                }
            },
            Slot::Unknown | Slot::Known(_) => {}
        }
        self.accept(peer, now, way, datagram);
    }

    /// A process claims to be a peer without a connection.
    fn accept(&mut self, peer: Peer, now: Tick, way: Way, datagram: &[u8]) {
        // Without random bytes no peer can be accepted; the peer tries again.
        let Ok(nonce) = kw_sys::random::key() else {
            return;
        };
        let caught = self.listener.receive(now, datagram, nonce);
        let mine = matches!(self.slot(peer), Some(Slot::Calling(_))) && self.me < peer;
        match caught {
            Caught::Nothing(stranger) => self.tally.dropped += stranger as u64,
            // The lower rank's call counts; but perhaps only this address leads to the peer.
            Caught::Answer(_) if mine => {
                if let Slot::Calling(call) = &mut self.slots[peer.idx()] {
                    call.learn(way.to);
                }
            }
            Caught::Answer(words) => {
                self.socks[way.sock].send(way.to, &words, LONGEST);
            }
            Caught::Proven(_) if mine => {}
            Caught::Proven(arrival) => self.welcome(*arrival, way, now),
        }
    }

    fn welcome(&mut self, arrival: Arrival, way: Way, now: Tick) {
        let (peer, datagram) = (Peer(arrival.rank()), arrival.datagram);
        let (session, welcome) = arrival.welcome();
        self.socks[way.sock].send(way.to, welcome.datagram(), LONGEST);
        self.adopt(peer, session, datagram, way, Some(welcome), now);
    }

    /// Serves the peers heard from: reports arrived data, sends data that may be sent.
    pub(super) fn answer(&mut self, now: Tick, inbound: &mut dyn Inbound) {
        while let Some(peer) = self.heard.pop() {
            let Slot::Up(link) = &mut self.slots[peer.idx()] else {
                continue;
            };
            link.keepalive.on_rank(now);
            link.release(peer, inbound);
            if link.learn_network(now) {
                inbound.on_repriced(peer);
            }
            if link.has_bye() && !link.end_reported {
                link.end_reported = true;
                tracing::debug!("udp to rank {peer} is closed: it called MPI_Finalize");
                inbound.on_down(down(peer, "it called MPI_Finalize"), true);
            }
            if !link.is_busy() {
                self.busy.remove(peer);
            }
            self.push(peer, now, false);
        }
    }
}
