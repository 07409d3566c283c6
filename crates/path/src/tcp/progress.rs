//! A turn: reading, sending, asking the poller, and getting ready for a sleep.
//!
//! Up to `Tuning::few_links` connections are read directly, and the poller is asked now and then;
//! more of them only when it reports them.

use super::TcpPath;
use super::watcher::Token;
use crate::{Asleep, Inbound};
use kw_base::{Peer, Tick};
use kw_sys::poller::Event;

impl TcpPath {
    /// After a sleep on the descriptor: serves what made it readable, without asking the other
    /// connections.
    pub fn poll_ready(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        self.net.peers.looked();
        let moved = self.reap_acks(inbound);
        let moved = self.look(now, inbound) | moved;
        self.end_turn(inbound) | moved
    }

    /// Must be called before sleeping on the descriptor: asks to be woken when a full socket has
    /// room again, and makes the next `poll` check everything.
    pub fn arm(&mut self, who: Asleep, now: Tick) {
        let net = &mut self.net;
        let (tuning, patient) = (&net.local.tuning, who != Asleep::Waiting);
        net.watcher.hurry();
        net.peers.arm(patient, tuning, net.watcher.poller());
        if !net.striping.is_idle() {
            let batch = if patient { tuning.part } else { 0 };
            net.striping.arm(batch, &net.watcher);
        }
        match who {
            _ if net.peers.lists().unacked.is_empty() => self.acks.cancel_look(&mut net.watcher),
            Asleep::Waiting => self.acks.copy_unacked(&mut net.peers, &mut net.watcher),
            Asleep::Polling => self.acks.cancel_look(&mut net.watcher),
            Asleep::Stepping => self
                .acks
                .schedule_look(now, &mut net.peers, &mut net.watcher),
        }
    }

    /// Whether the alarm has gone off, and would end a sleep at once.
    pub fn is_due(&self, now: Tick) -> bool {
        self.net.watcher.is_due(now)
    }

    /// The rank polls; queued data goes first.
    #[inline]
    pub(super) fn begin_turn(&mut self, inbound: &mut dyn Inbound) -> bool {
        self.net.peers.looked();
        let backlog = !self.net.peers.lists().backlog.is_empty();
        let moved = backlog && self.net.flush(inbound);
        moved | self.reap_acks(inbound)
    }

    /// Then payloads that are in flight in pieces.
    #[inline]
    pub(super) fn end_turn(&mut self, inbound: &mut dyn Inbound) -> bool {
        !self.net.striping.is_idle() && self.net.serve_striping(inbound)
    }

    /// Notifies senders whose payload is acknowledged.
    #[inline]
    fn reap_acks(&mut self, inbound: &mut dyn Inbound) -> bool {
        let net = &mut self.net;
        let owing = !net.peers.lists().unacked.is_empty();
        owing
            && self
                .acks
                .reap_acks(&mut net.peers, &net.local.tuning, inbound)
    }

    /// Asks the poller and serves the connections that it names.
    pub(super) fn look(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        let events = self.net.watcher.ask(&self.net.local.tuning);
        let mut moved = false;
        for event in &events {
            moved |= self.handle(event, now, inbound);
        }
        self.net.watcher.give_back(events);
        self.tick(now, inbound);
        moved
    }

    /// Something has happened.
    fn handle(&mut self, event: &Event, now: Tick, inbound: &mut dyn Inbound) -> bool {
        let net = &mut self.net;
        match Token::of(event.data) {
            Token::Link(peer) => self.handle_link(peer, event, inbound),
            Token::Rail(peer, id) => {
                let here = (&net.local, &net.watcher);
                let rail = (peer, id);
                net.striping.rail_ready(rail, here, &mut net.peers, inbound)
            }
            Token::RailDial(peer) => {
                let here = (&net.local, &mut net.watcher);
                net.striping.advance_dial(peer, now, here, &net.peers)
            }
            Token::Dial(peer) => self.connector.advance_dial(net, peer, now, inbound),
            Token::Pending(key) => self.connector.advance_pending(net, key, inbound),
            Token::Acceptor(listener) => self.connector.let_in(net, listener, now),
        }
    }

    /// An event of the poller for a connection. A one-shot event counts as progress, so that the
    /// rank does not sleep before the connection is watched again.
    fn handle_link(&mut self, peer: Peer, event: &Event, inbound: &mut dyn Inbound) -> bool {
        let once = self.net.peers.on_reported(peer);
        once | (event.read && self.connector.pull(&mut self.net, peer, inbound))
            | (event.write && self.net.push_ready(peer, inbound))
    }

    /// Time has passed: time-outs of unauthenticated connections, of calls and of silent links, and
    /// the alarm for the next ones.
    fn tick(&mut self, now: Tick, inbound: &mut dyn Inbound) {
        let net = &mut self.net;
        let silent = self
            .timeout
            .tick(now, &mut net.striping, &mut net.peers, inbound);
        let settled = !self.connector.is_connecting(net) && self.connector.acceptor().is_quiet();
        if settled && silent == Tick::NEVER {
            return net.watcher.set_no_next();
        }
        let next = self.connector.tick(net, now, inbound);
        net.watcher.set_next(next.min(silent));
    }

    /// Whether the poller is asked at every turn.
    pub(super) fn is_urgent(&self, now: Tick) -> bool {
        self.connector.is_connecting(&self.net) || self.connector.acceptor().is_urgent(now)
    }
}
