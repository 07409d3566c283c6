//! TCP as a [`Network`]: opening by the settings, sleeping, counters.

use super::{Config, TcpPath, Tuning};
use crate::{About, Asleep, CannotOpen, Inbound, Network, Opening, Path};
use kw_base::counters::{Counter, Way};
use kw_base::settings::Id;
use kw_base::{Peer, Tick};
use kw_proto::handshake::Foreign;
use kw_proto::p2p::prices;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

/// Open files that connections leave to the program and to the rest of the library.
const SPARE_FILES: usize = 16;

const ABOUT: About = About {
    name: "tcp",
    way: Way::Tcp,
    eager: Id::EagerTcp,
    looks_at_one: true,
};

/// Opens TCP as the settings say.
pub fn open(opening: Opening<'_>) -> Result<Box<dyn Network>, CannotOpen> {
    let (settings, member) = (opening.settings, opening.member);
    let tuning = match opening.oversubscribed {
        true => Tuning::for_size(member.size).on_shared_cores(),
        false => Tuning::for_size(member.size),
    };
    let config = Config {
        member,
        reliable: settings.flag(Id::Reliable),
        stripe: settings.flag(Id::Stripe),
        host: match settings.text(Id::Host) {
            "auto" => kw_sys::host::name(),
            name => name.to_string(),
        },
        most: kw_sys::process::spare_files().saturating_sub(SPARE_FILES + opening.sharing),
    };
    Ok(Box::new(TcpPath::tuned(config, tuning)?))
}

impl Network for TcpPath {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn grow(&mut self, size: u32) {
        let net = &mut self.net;
        net.local.identity.grow(size);
        net.peers.grow(size);
        net.striping.grow(size);
        self.connector.grow(size);
    }

    fn join(&mut self, foreign: Foreign) -> Result<(), CannotOpen> {
        let size = foreign.first + foreign.size;
        let net = &mut self.net;
        net.local.identity.join(foreign);
        net.peers.grow(size);
        net.striping.grow(size);
        self.connector.grow(size);
        Ok(())
    }

    fn forget(&mut self, peers: Range<u32>) -> bool {
        let net = &mut self.net;
        if !net.peers.forget(peers.clone()) {
            return false;
        }
        net.local.identity.forget(peers.start);
        peers.clone().for_each(|p| net.striping.forget(Peer(p)));
        self.connector.forget(peers);
        true
    }

    fn poll_ready(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        TcpPath::poll_ready(self, now, inbound)
    }

    /// The system watches the sockets; an alarm that has gone off already would only end the sleep.
    fn poll_unwatched(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        self.is_due(now) && TcpPath::poll_ready(self, now, inbound)
    }

    fn arm(&mut self, who: Asleep, now: Tick) {
        TcpPath::arm(self, who, now);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    /// Queries whether the kernels of all peers have all that was sent to them.
    fn is_quiet(&mut self) -> bool {
        !self.pending() && self.net.peers.are_quiet()
    }

    fn known_network(&self, peer: Peer) -> prices::Network {
        self.net.peers.network(peer)
    }

    fn network(&self) -> Vec<String> {
        TcpPath::network(self)
    }

    fn counter(&self, counter: Counter) -> Option<u64> {
        let striped = self.striped();
        Some(match counter {
            Counter::Refused => self.connections_refused(),
            Counter::StripedSent => striped[0],
            Counter::StripedBytes => striped[1],
            Counter::StripedAgain => striped[2],
            Counter::SilentLeft => self.silent_left(),
            _ => return None,
        })
    }
}
