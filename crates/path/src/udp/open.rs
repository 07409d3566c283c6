//! Opening the path: which sockets, and how long a datagram may be.

use super::link::Batch;
use super::{Slot, Tally, Tuning, UdpPath};
use crate::peer_set::PeerSet;
use crate::{CannotOpen, Cause, Lacking, Member, Ports, address};
use kw_base::Tick;
use kw_proto::reliable::setup::{Listener, SHORTEST};
use kw_sys::netif;
use kw_sys::poller::{Interest, Poller};
use kw_sys::udp::{LONGEST, Sock};
use std::net::{IpAddr, SocketAddr};

/// Parameters to open a path.
#[derive(Clone)]
pub struct Config {
    /// The rank that opens it.
    pub member: Member,
    /// The clock that `poll` gets, too.
    pub clock: fn() -> Tick,
}

/// The sockets, and the bytes of the longest datagram that all of them can send.
fn open(
    (addresses, ports): (&[IpAddr], Ports),
    all: &[netif::Interface],
    tuning: &Tuning,
) -> Result<(Vec<Sock>, usize), Lacking> {
    let (mut socks, mut longest, mut failures) = (Vec::new(), LONGEST, Vec::new());
    for &addr in addresses {
        let bind = |port| {
            let at = SocketAddr::new(addr, port);
            Sock::bind(at, tuning.receive_buffer, tuning.params.ecn)
        };
        match ports.open(bind) {
            Ok(sock) => socks.push(sock),
            Err(why) => {
                failures.push((addr, why));
                continue;
            }
        }
        let name = all.iter().find(|i| i.addr == addr).map(|i| i.name.as_str());
        let headers = if addr.is_ipv4() { 28 } else { 48 };
        let mtu = name.and_then(netif::mtu).unwrap_or(SHORTEST + headers);
        longest = longest.min(mtu.saturating_sub(headers)).max(SHORTEST);
    }
    if socks.is_empty() {
        return Err(Lacking::Addresses {
            purpose: "bound",
            all: failures,
        });
    }
    Ok((socks, longest))
}

fn cannot(why: impl Into<Cause>) -> CannotOpen {
    CannotOpen::new("udp", why)
}

impl UdpPath {
    /// Opens the sockets, and calls no peer yet.
    pub fn new(config: Config) -> Result<UdpPath, CannotOpen> {
        UdpPath::tuned(config, Tuning::default())
    }

    /// Like `new`, with other numbers than the measured ones.
    pub fn tuned(config: Config, mut tuning: Tuning) -> Result<UdpPath, CannotOpen> {
        let Config { member, clock } = config;
        let (all, chosen) = member.addresses().map_err(cannot)?;
        let (socks, longest) = open((&chosen, member.ports), &all, &tuning).map_err(cannot)?;
        let scouts = chosen
            .iter()
            .filter_map(|&a| Sock::bind(SocketAddr::new(a, 0), 0, false).ok())
            .collect();
        let refused = |what| move |why| cannot(Cause::io(what)(why));
        let poller = Poller::new().map_err(refused("epoll failed"))?;
        for (i, sock) in socks.iter().enumerate() {
            let added = poller.add(sock, i as u64, Interest::Read);
            added.map_err(refused("epoll refused a socket"))?;
        }
        let granted = socks
            .iter()
            .filter_map(|s| s.recv_buffer().ok())
            .min()
            .unwrap_or(0) as u64;
        tuning.params.window = (granted / 4).clamp(tuning.window.0, tuning.window.1);
        tuning.params.datagram = longest;
        let at: Vec<_> = socks.iter().map(Sock::at).collect();
        let identity = member.identity();
        Ok(UdpPath {
            me: member.me,
            listener: Listener::new(identity.clone(), member.me.0, member.size, longest),
            identity,
            clock,
            poller,
            armed: vec![false; socks.len()],
            socks,
            scouts,
            address: address::to_text(&at),
            slots: (0..member.size).map(|_| Slot::Unknown).collect(),
            live: PeerSet::default(),
            calling: PeerSet::default(),
            busy: PeerSet::default(),
            heard: PeerSet::default(),
            held: PeerSet::default(),
            retry: Tick::default(),
            next: Tick::NEVER,
            flooded: false,
            inbox: Some(Box::default()),
            batch: Batch::default(),
            tally: Tally::default(),
            tuning,
            closed: false,
        })
    }
}
