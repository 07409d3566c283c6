//! The launcher's servers: one for all, or one on each host in a tree.
//!
//! A fence is complete at a server when its own ranks and its children have come; the root lets all
//! go, the children first. Values go up with the fence and down to every server, as real launchers
//! do it.

use super::{Scenario, Shape};

/// Bytes of a question or an answer, in addition to key and value.
pub(super) const HEAD: u64 = 40;

/// One server.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    /// When it is free again.
    free_ns: u64,
    /// Ranks and children that have come to the fence.
    pub came: u32,
    /// Ranks and children that it has.
    pub due: u32,
    /// Bytes that were stored here, or came from children, since the last fence.
    pub fresh: u64,
    /// Messages in and out.
    pub handled: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Servers {
    pub list: Vec<Server>,
    scenario: Scenario,
    pub between: u64,
    pub between_bytes: u64,
}

impl Servers {
    pub(super) fn new(scenario: &Scenario) -> Servers {
        let count = match scenario.shape {
            Shape::One => 1,
            Shape::Tree(_) => scenario.hosts(),
        };
        let mut servers = Servers {
            list: vec![Server::default(); count as usize],
            scenario: *scenario,
            between: 0,
            between_bytes: 0,
        };
        for s in 0..count {
            servers.list[s as usize].due =
                servers.ranks_of(s).len() as u32 + servers.children(s).len() as u32;
        }
        servers
    }

    /// The server of a rank.
    pub(super) fn of(&self, rank: u32) -> u32 {
        match self.scenario.shape {
            Shape::One => 0,
            Shape::Tree(_) => rank / self.scenario.per_host,
        }
    }

    pub(super) fn ranks_of(&self, server: u32) -> std::ops::Range<u32> {
        let (n, each) = (self.scenario.ranks, self.scenario.per_host);
        match self.scenario.shape {
            Shape::One => 0..n,
            Shape::Tree(_) => server * each..n.min((server + 1) * each),
        }
    }

    pub(super) fn children(&self, server: u32) -> std::ops::Range<u32> {
        let fan = match self.scenario.shape {
            Shape::One => return 0..0,
            Shape::Tree(fan) => fan.max(1),
        };
        let first = server.saturating_mul(fan).saturating_add(1);
        let hosts = self.scenario.hosts();
        first.min(hosts)..first.saturating_add(fan).min(hosts)
    }

    pub(super) fn parent(&self, server: u32) -> Option<u32> {
        match self.scenario.shape {
            Shape::Tree(fan) if server > 0 => Some((server - 1) / fan.max(1)),
            _ => None,
        }
    }

    /// Nanoseconds of a message of this many bytes between a rank and its server.
    pub(super) fn way(&self, rank: u32, bytes: u64) -> u64 {
        let far = self.scenario.shape == Shape::One && rank >= self.scenario.per_host;
        match far {
            true => self.far(bytes),
            false => self.scenario.near_ns,
        }
    }

    /// Nanoseconds of a message of this many bytes between hosts.
    pub(super) fn far(&self, bytes: u64) -> u64 {
        self.scenario.far_ns + self.wire(bytes)
    }

    fn wire(&self, bytes: u64) -> u64 {
        bytes * 1_000_000_000 / self.scenario.bandwidth.max(1)
    }

    /// A message came to, or goes from, a server; returns when that is done.
    pub(super) fn handle(&mut self, server: u32, now: u64) -> u64 {
        let s = &mut self.list[server as usize];
        s.handled += 1;
        s.free_ns = s.free_ns.max(now) + self.scenario.handle_ns;
        s.free_ns
    }

    /// A message from one server to another, its bytes leaving one after the other; returns when it
    /// arrives.
    pub(super) fn pass_on(&mut self, from: u32, now: u64, bytes: u64) -> u64 {
        let wire = self.wire(bytes);
        let left = self.handle(from, now) + wire;
        self.list[from as usize].free_ns = left;
        self.between += 1;
        self.between_bytes += bytes;
        left + self.scenario.far_ns
    }
}
