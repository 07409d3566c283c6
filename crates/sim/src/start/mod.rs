//! A start in virtual time: the machines of [`super`] for every rank, the launcher's servers, and
//! then the first barrier between the hosts, with addresses asked for and connections made on first
//! use. Counts messages and bytes, and says how long the longest chain is.
//!
//! The simulation covers Kittiwake's messages; starting processes is the launcher's task and not
//! included. A server handles one message after another; messages between hosts take `far_ns` plus
//! the time of their bytes, messages of a host `near_ns`. `world` is the queue of events and the
//! servers, `barrier` the first collective.

mod barrier;
mod servers;
mod world;

/// Topology of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One server for all (Kittiwake's mpiexec, the rendezvous).
    One,
    /// One on each host, in a tree with this many children each; a fence gathers all values and
    /// spreads them (Slurm, PRRTE, Hydra).
    Tree(u32),
}

/// Information that the launcher has about the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// Nothing but ranks.
    Ranks,
    /// Which rank is on which host.
    Hosts,
    /// That and the job's key: it is Kittiwake's launcher, and nothing has to be agreed on.
    Key,
}

#[cfg(test)]
mod tests;

/// Parameters of the simulation.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Ranks of the job.
    pub ranks: u32,
    /// Ranks of each host; these have consecutive numbers.
    pub per_host: u32,
    /// The launcher's servers.
    pub shape: Shape,
    /// The launcher's information.
    pub knows: Knows,
    /// Questions with which a rank opens the conversation.
    pub greeting: u32,
    /// Nanoseconds of a message between a rank and the server of its host.
    pub near_ns: u64,
    /// Nanoseconds of a message between hosts, its bytes not counted.
    pub far_ns: u64,
    /// Bytes a second between hosts.
    pub bandwidth: u64,
    /// Nanoseconds that a server is busy with each message, in or out.
    pub handle_ns: u64,
}

impl Scenario {
    /// Ordinary Ethernet: 50 us and 1 Gb/s between hosts, 10 us between processes of one, 5 us of a
    /// server for a message. The greeting is that of PMI-1, the longest: version, limits, name of
    /// the job, number of the program, universe, key, map of hosts.
    pub fn ethernet(ranks: u32, per_host: u32, shape: Shape, knows: Knows) -> Scenario {
        Scenario {
            ranks,
            per_host: per_host.max(1),
            shape,
            knows,
            greeting: 7,
            near_ns: 10_000,
            far_ns: 50_000,
            bandwidth: 125_000_000,
            handle_ns: 5_000,
        }
    }

    fn hosts(&self) -> u32 {
        self.ranks.div_ceil(self.per_host)
    }

    /// Whether a rank is the first of several on its host.
    fn leads(&self, rank: u32) -> bool {
        let first = rank.is_multiple_of(self.per_host);
        first && self.per_host > 1 && rank + 1 < self.ranks
    }
}

/// Actions of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Talked {
    /// Questions to the launcher; each has an answer.
    pub asks: u64,
    /// Gets among them.
    pub gets: u64,
    /// Fences among them.
    pub fences: u64,
    /// Bytes of questions and answers.
    pub bytes: u64,
}

/// Cost of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Questions of all ranks, gets, bytes.
    pub all: Talked,
    /// The most of any rank, each maximum on its own.
    pub most: Talked,
    /// Messages between servers.
    pub between: u64,
    /// Bytes between servers.
    pub between_bytes: u64,
    /// Messages of the busiest server, in and out.
    pub busiest: u64,
    /// Nanoseconds until the last rank knows the job and can be found.
    pub ready_ns: u64,
    /// The first barrier.
    pub barrier: Barrier,
}

/// The first barrier between the leaders of hosts, from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Barrier {
    /// Addresses that one rank asked for, at most.
    pub lookups: u64,
    /// Connections that one rank has afterwards, at most.
    pub connections: u64,
    /// Connections made in all.
    pub made: u64,
    /// Bytes between hosts: questions, proofs and frames.
    pub bytes: u64,
    /// Nanoseconds it took.
    pub took_ns: u64,
}

/// Why a simulated start comes to no end: the simulation is at odds with the machines.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A machine refuses its input.
    #[error(transparent)]
    Mismatch(#[from] kw_start::Mismatch),
    /// Nothing answers this rank.
    #[error("rank {0} waits forever")]
    Rank(u32),
    /// Nothing comes to the leader of this host.
    #[error("the leader of host {0} waits forever")]
    Leader(u32),
    /// No value is stored under this key.
    #[error("'{0}' is lost")]
    Value(String),
    /// No algorithm can be chosen.
    #[error(transparent)]
    Table(#[from] kw_coll::table::Unreadable),
}

/// Runs a start.
pub fn run(scenario: &Scenario) -> Result<Figures, StartError> {
    let mut world = world::World::new(scenario);
    world.start()?;
    let started = world.figures();
    let barrier = barrier::run(&mut world)?;
    Ok(Figures { barrier, ..started })
}

/// Common knowledge of the job afterwards: the host of each rank, from this run's machines. For
/// tests.
#[cfg(test)]
#[cfg(test)]
fn hosts_of(scenario: &Scenario) -> Result<Vec<Vec<u32>>, StartError> {
    let mut world = world::World::new(scenario);
    world.start()?;
    Ok(world.maps())
}
