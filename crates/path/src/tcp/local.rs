//! This rank, as its TCP path knows it: nothing here changes after the path has opened.

use super::Tuning;
use super::dial::Dial;
use super::stream::Broken;
use super::watcher::Token;
use crate::address::Known;
use kw_base::Peer;
use kw_proto::handshake::{Claim, Identity};
use kw_sys::netif::Interface;
use std::net::{IpAddr, SocketAddr};

/// Identity of this rank, its addresses, and its poller numbers.
#[derive(Debug)]
pub struct Local {
    /// This rank.
    pub me: Peer,
    /// Secret for authentication to its peers.
    pub identity: Identity,
    /// Links end with their connections no sooner than their ranks.
    pub reliable: bool,
    /// The numbers.
    pub tuning: Tuning,
    /// Every address of this host.
    own: Vec<Interface>,
    /// Addresses on which this rank listens.
    sources: Vec<IpAddr>,
}

impl Local {
    /// `own` is every address of this host, `sources` those on which this rank listens.
    pub fn new(
        (me, identity): (Peer, Identity),
        reliable: bool,
        tuning: Tuning,
        (own, sources): (Vec<Interface>, Vec<IpAddr>),
    ) -> Local {
        Local {
            me,
            identity,
            reliable,
            tuning,
            own,
            sources,
        }
    }

    /// Whether our call to a peer counts, and not the peer's to us.
    pub fn precedes(&self, peer: Peer) -> bool {
        self.identity.precedes(peer.0)
    }

    /// The addresses on which this rank listens.
    pub fn sources(&self) -> &[IpAddr] {
        &self.sources
    }

    /// Our interface with this address; an address of none stands for itself.
    pub fn interface(&self, address: IpAddr) -> String {
        let found = self.own.iter().find(|i| i.addr == address);
        found.map_or_else(|| address.to_string(), |i| i.name.clone())
    }

    /// Whether our host has several interfaces that the ranks may use.
    pub fn has_links(&self) -> bool {
        let mut names = self.sources.iter().map(|&a| self.interface(a));
        let first = names.next();
        self.tuning.rails_anywhere || names.any(|n| Some(n) != first)
    }

    /// A dial that has not begun, of some addresses of a peer, for a connection that is to carry
    /// `claim`.
    pub fn dial(
        &self,
        (peer, token): (Peer, Token),
        known: &Known,
        at: Vec<SocketAddr>,
        claim: Claim,
        broken: Option<Broken>,
    ) -> Dial {
        let own: Vec<IpAddr> = self.own.iter().map(|i| i.addr).collect();
        Dial::new((peer, token), at, &own, (claim, broken)).of_host(&known.host)
    }
}
