//! Where the ranks of a call are, and the distance between two of them.

use super::Call;
use crate::machine::Machine;

/// Places the ranks on one host after the other; on each they take the cores in turns.
pub(super) struct Layout<'a> {
    machine: &'a Machine,
    size: u32,
    per_host: u32,
}

impl<'a> Layout<'a> {
    pub fn new(machine: &'a Machine, call: &Call) -> Layout<'a> {
        Layout {
            machine,
            size: call.schedules.len() as u32,
            per_host: call.per_host,
        }
    }

    pub fn host(&self, r: u32) -> usize {
        (r / self.per_host) as usize
    }

    pub fn core(&self, r: u32) -> usize {
        let cores = self.machine.host_cores();
        self.host(r) * cores as usize + (r % self.per_host % cores) as usize
    }

    pub fn socket(&self, r: u32) -> usize {
        self.core(r) / self.machine.cores as usize
    }

    /// The price of a distance: within a cache, within a socket, between two.
    fn by_distance(&self, a: u32, b: u32, [cache, socket, host]: [f64; 3]) -> f64 {
        let (per_socket, per_cache) = (self.machine.cores as usize, self.machine.cache_cores());
        let in_socket = |r| self.core(r) % per_socket / per_cache as usize;
        match self.socket(a) == self.socket(b) {
            true if in_socket(a) == in_socket(b) => cache,
            true => socket,
            false => host,
        }
    }

    /// Nanoseconds of a cache line from one to the other.
    pub fn line(&self, a: u32, b: u32) -> f64 {
        let p = &self.machine.prices;
        self.by_distance(a, b, [p.cache_line, p.line, p.far_line])
    }

    /// Nanoseconds of a byte from the other's shm buffer.
    pub fn read(&self, a: u32, b: u32) -> f64 {
        let p = &self.machine.prices;
        self.by_distance(a, b, [p.cache_read, p.read, p.far_read])
    }

    pub fn over_network(&self, a: u32, b: u32) -> bool {
        self.machine.network || self.host(a) != self.host(b)
    }

    /// The `i`th rank of a rank's host.
    pub fn member(&self, r: u32, i: u32) -> u32 {
        r / self.per_host * self.per_host + i
    }

    /// Ranks of a rank's host.
    pub fn members(&self, r: u32) -> u32 {
        self.per_host.min(self.size - self.member(r, 0))
    }
}
