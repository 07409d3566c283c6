//! Settings of every path over a network, and values derived from them.

use crate::{Cause, Ports, address};
use kw_base::Peer;
use kw_proto::handshake::Identity;
use kw_sys::netif::{self, Interface};
use std::net::IpAddr;

/// The rank and job that open a path, and where it may listen.
#[derive(Clone)]
pub struct Member {
    /// This rank.
    pub me: Peer,
    /// Ranks of the job.
    pub size: u32,
    /// Name of the job.
    pub job: String,
    /// Key of the job.
    pub key: [u8; 32],
    /// Interfaces or addresses to listen on, comma separated, or `auto` (`KW_INTERFACES`).
    pub interfaces: String,
    /// Ports to listen on (`KW_PORTS`).
    pub ports: Ports,
    /// All ranks share this machine: `auto` is loopback only.
    pub single_host: bool,
}

impl Member {
    /// Secret for authentication to its peers.
    pub(crate) fn identity(&self) -> Identity {
        Identity::new(self.key, &self.job, self.me.0, self.size)
    }

    /// All interfaces of this host, and the addresses to listen on.
    pub(crate) fn addresses(&self) -> Result<(Vec<Interface>, Vec<IpAddr>), Cause> {
        let all = netif::interfaces().map_err(Cause::io("the interfaces cannot be listed"))?;
        let chosen = address::choose(&self.interfaces, self.single_host, &all)?;
        Ok((all, chosen))
    }
}

/// The addresses of this host on which processes of other jobs may be waited for: those selected by
/// `interfaces` (`KW_INTERFACES`), or loopback if there are no others.
pub fn addresses_for_others(interfaces: &str) -> Result<Vec<IpAddr>, Cause> {
    let all = netif::interfaces().map_err(Cause::io("the interfaces cannot be listed"))?;
    let far = address::choose(interfaces, false, &all);
    match far {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Ok(address::choose(interfaces, true, &all)?),
    }
}

/// Whether this host has an address that others reach, among those selected by `interfaces`.
pub fn reaches_others(interfaces: &str) -> bool {
    let all = netif::interfaces().unwrap_or_default();
    address::choose(interfaces, false, &all).is_ok_and(|found| !found.is_empty())
}
