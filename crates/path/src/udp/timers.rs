//! Timers: connections and calls to be served, and keepalive probes.

use super::call::Unreachable;
use super::{Slot, UdpPath};
use crate::contract::Inbound;
use kw_base::{Peer, Tick};
use kw_proto::reliable::keepalive::Turn;
use kw_sys::udp::Complaint;
use std::net::{IpAddr, SocketAddr};

/// A closed port: its host reports that, which is a sign of life (see
/// [`kw_proto::reliable::keepalive`]).
const NOBODYS_PORT: u16 = 1;

impl UdpPath {
    /// The timers of connections and calls.
    #[cold]
    pub(super) fn timers(&mut self, now: Tick, inbound: &mut dyn Inbound) {
        self.next = Tick::NEVER;
        self.signs_of_life(now);
        for i in (0..self.live.len()).rev() {
            let Some(peer) = self.live.get(i) else {
                continue;
            };
            match self.watch(peer, now) {
                Some(reason) => self.bury(peer, reason, inbound),
                None => {
                    self.push(peer, now, false);
                }
            }
        }
        for i in (0..self.calling.len()).rev() {
            let Some(peer) = self.calling.get(i) else {
                continue;
            };
            let Slot::Calling(call) = &mut self.slots[peer.idx()] else {
                continue;
            };
            match call.turn(now) {
                Ok(hosts) => {
                    call.send(now, &self.socks);
                    self.next = self.next.min(call.next());
                    hosts.into_iter().for_each(|h| self.scout(h));
                }
                Err(Unreachable) => {
                    let reason = call.sentence();
                    self.bury(peer, reason, inbound);
                }
            }
        }
    }

    /// Whether a peer is still there; the reason when it is not.
    fn watch(&mut self, peer: Peer, now: Tick) -> Option<String> {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return None;
        };
        link.report(peer);
        if link.has_bye() {
            // Its silence means nothing any more.
            link.keepalive.on_rank(now);
            return None;
        }
        match link.keepalive.turn(now) {
            Turn::Rest => None,
            Turn::Over(loss) => Some(loss.to_string()),
            Turn::Ask => {
                link.conn.ask();
                let host = link.way.to.ip();
                self.scout(host);
                None
            }
        }
    }

    /// Hosts that have answered the scouts.
    fn signs_of_life(&mut self, now: Tick) {
        for scout in &self.scouts {
            while let Some(Complaint { to, refused }) = scout.complaint() {
                for slot in &mut self.slots {
                    match slot {
                        Slot::Up(link) if link.way.to.ip() == to.ip() && refused => {
                            link.keepalive.on_host(now)
                        }
                        Slot::Calling(call) => call.on_complaint(now, to, refused),
                        _ => {}
                    }
                }
            }
        }
    }

    fn scout(&self, host: IpAddr) {
        let to = SocketAddr::new(host, NOBODYS_PORT);
        for s in self
            .scouts
            .iter()
            .filter(|s| s.at().is_ipv4() == host.is_ipv4())
        {
            s.send(to, &[0], 1);
        }
    }

    /// ICMP answers to this rank's datagrams.
    #[cold]
    pub(super) fn complaints(&mut self, now: Tick, sock: usize) {
        while let Some(Complaint { to, refused }) = self.socks[sock].complaint() {
            self.next = now;
            for slot in &mut self.slots {
                match slot {
                    Slot::Up(link) if link.way.to == to && refused => {
                        link.keepalive.on_refusal(now)
                    }
                    Slot::Calling(call) => call.on_complaint(now, to, refused),
                    _ => {}
                }
            }
        }
    }
}
