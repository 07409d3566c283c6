//! UDP as a [`Network`]: opening by the settings, sleeping, counters.

use super::{Config, Slot, UdpPath};
use crate::{About, Asleep, CannotOpen, Lacking, Network, Opening};
use kw_base::counters::{Counter, Way};
use kw_base::settings::Id;
use kw_base::{Peer, Tick};
use kw_proto::handshake::Foreign;
use kw_proto::p2p::prices;
use std::os::fd::{AsFd, BorrowedFd};

const ABOUT: About = About {
    name: "udp",
    way: Way::Udp,
    eager: Id::EagerUdp,
    looks_at_one: false,
};

/// Opens UDP as the settings say.
pub fn open(opening: Opening<'_>) -> Result<Box<dyn Network>, CannotOpen> {
    let config = Config {
        member: opening.member,
        clock: kw_sys::clock::now,
    };
    Ok(Box::new(UdpPath::new(config)?))
}

impl Network for UdpPath {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn grow(&mut self, size: u32) {
        self.identity.grow(size);
        self.listener.grow(size);
        let more = self.slots.len()..size as usize;
        self.slots.extend(more.map(|_| Slot::Unknown));
    }

    /// A datagram names its sender by the rank in its own job.
    fn join(&mut self, _: Foreign) -> Result<(), CannotOpen> {
        Err(CannotOpen::new("udp", Lacking::OtherJobs))
    }

    fn arm(&mut self, _who: Asleep, _now: Tick) {
        UdpPath::arm(self);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    /// The rate depends on both ranks' work, too: a saved value of a program that computes would
    /// last.
    fn known_network(&self, peer: Peer) -> prices::Network {
        prices::Network {
            byte: 0.0,
            ..self.measured(peer)
        }
    }

    fn network(&self) -> Vec<String> {
        UdpPath::network(self)
    }

    fn counter(&self, counter: Counter) -> Option<u64> {
        Some(match counter {
            Counter::Refused => self.connections_refused(),
            Counter::UdpPackets => self.tally().packets,
            Counter::UdpRepeated => self.tally().again,
            _ => return None,
        })
    }
}
