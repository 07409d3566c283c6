//! Calling a peer: all pairs of our sockets and its addresses at once, the first that proves the
//! key is used.

use super::link::Way;
use super::queue::Queue;
use kw_base::Tick;
use kw_proto::reliable::setup::Caller;
use kw_sys::udp::Sock;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a peer's hosts may be entirely silent.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(10);
/// Time between two questions whether a host is there at all.
const EVERY: Duration = Duration::from_secs(1);
/// Most addresses that are tried.
const MAX_ADDRESSES: usize = 16;

/// The peer cannot be reached: [`Call::sentence`] says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable;

/// One of the peer's addresses.
#[derive(Debug)]
struct Address {
    at: SocketAddr,
    /// Time of its host's last answer, even if that was "port unreachable".
    host: Option<Tick>,
    refused: bool,
}

/// A call.
#[derive(Debug)]
pub struct Call {
    caller: Caller,
    addresses: Vec<Address>,
    /// Data to be sent when the peer has answered.
    pub queue: Queue,
    /// The route that has answered first.
    way: Option<Way>,
    begun: Tick,
    asked: Tick,
}

impl Call {
    /// Begins.
    pub fn new(caller: Caller, addresses: &[SocketAddr], now: Tick) -> Call {
        let address = |&at: &SocketAddr| Address {
            at,
            host: None,
            refused: false,
        };
        Call {
            caller,
            addresses: addresses.iter().map(address).collect(),
            queue: Queue::default(),
            way: None,
            begun: now,
            asked: now,
        }
    }

    /// The peer has been heard from here.
    pub fn learn(&mut self, at: SocketAddr) {
        if self.addresses.len() < MAX_ADDRESSES && self.addresses.iter().all(|a| a.at != at) {
            self.addresses.push(Address {
                at,
                host: None,
                refused: false,
            });
        }
    }

    /// The machine, for a datagram that came by this route.
    pub fn caller(&mut self) -> &mut Caller {
        &mut self.caller
    }

    /// The first challenge came by this route.
    pub fn answered(&mut self, way: Way) {
        self.way = Some(way);
    }

    /// The route that has answered.
    pub fn way(&self) -> Option<Way> {
        self.way
    }

    /// Sends the messages that are due now.
    pub fn send(&mut self, now: Tick, socks: &[Sock]) {
        while let Some(words) = self.caller.poll_transmit(now) {
            match self.way {
                Some(way) => {
                    socks[way.sock].send(way.to, &words, words.len());
                }
                None => self.shout(&words, socks),
            }
        }
    }

    fn shout(&self, words: &[u8], socks: &[Sock]) {
        for sock in socks {
            let same = |a: &&Address| a.at.is_ipv4() == sock.at().is_ipv4();
            for a in self.addresses.iter().filter(same) {
                sock.send(a.at, words, words.len());
            }
        }
    }

    /// A kernel has answered to a datagram that was sent there.
    pub fn on_complaint(&mut self, now: Tick, to: SocketAddr, refused: bool) {
        for a in self.addresses.iter_mut().filter(|a| a.at == to) {
            a.refused |= refused;
        }
        if !refused {
            return;
        }
        for a in self.addresses.iter_mut().filter(|a| a.at.ip() == to.ip()) {
            a.host = Some(now);
        }
    }

    /// Hosts that have to be asked whether they are there, once a second.
    pub fn turn(&mut self, now: Tick) -> Result<Vec<IpAddr>, Unreachable> {
        let silent =
            |a: &Address| a.refused || now.since(a.host.unwrap_or(self.begun)) >= UNREACHABLE_AFTER;
        let late = now.since(self.begun) >= UNREACHABLE_AFTER && self.way.is_none();
        if self.addresses.is_empty() || late && self.addresses.iter().all(silent) {
            return Err(Unreachable);
        }
        if now.since(self.asked) < EVERY || self.way.is_some() {
            return Ok(Vec::new());
        }
        self.asked = now;
        Ok(self.addresses.iter().map(|a| a.at.ip()).collect())
    }

    /// Results for all its addresses, as text.
    pub fn sentence(&self) -> String {
        let why = |a: &Address| match a.refused {
            true => format!("{}: no process has this port open", a.at),
            false => format!("{}: no answer in {} s", a.at, UNREACHABLE_AFTER.as_secs()),
        };
        let list: Vec<_> = self.addresses.iter().map(why).collect();
        format!(
            "none of its addresses could be reached ({}); check the firewall and KW_INTERFACES",
            list.join("; ")
        )
    }

    /// When this call has to be served again.
    pub fn next(&self) -> Tick {
        self.caller.next_timeout().min(self.asked + EVERY)
    }
}
