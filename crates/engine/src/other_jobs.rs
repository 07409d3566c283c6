//! Other jobs: those that a rank has met, whose ranks are peers like those of its own, and how it
//! can be reached by others.

use crate::engine::Engine;
use kw_base::Peer;
use kw_base::settings::{Id, Settings};
use kw_boot::{Agreed, BootError};
use kw_path::{CannotOpen, Down, Opening};

/// The jobs that a rank has met, and the way to others.
#[derive(Debug)]
pub struct OtherJobs<'a> {
    engine: &'a mut Engine,
}

impl<'a> OtherJobs<'a> {
    pub(crate) fn of(engine: &'a mut Engine) -> OtherJobs<'a> {
        OtherJobs { engine }
    }

    /// This rank has met another job, with this foreign key and name and these agreed settings: its
    /// ranks are peers from now on. Returns the first of them. Messages that are in flight
    /// continue.
    pub fn join(
        &mut self,
        foreign_key: [u8; 32],
        name: &str,
        agreed: Agreed,
    ) -> Result<Peer, CannotOpen> {
        if let Some(world) = self.engine.job.worlds.known(&foreign_key) {
            return Ok(world.first);
        }
        let world = self
            .engine
            .job
            .worlds
            .join(foreign_key, name, agreed)
            .clone();
        let foreign = self.engine.job.worlds.foreign(&world);
        let (first, peers) = (world.first, self.engine.job.worlds.peers());
        self.engine.messages.grow(peers, &self.engine.settings);
        self.engine.messages.paths.join(foreign)?;
        tracing::info!(
            "met job {name}: its ranks are {first} to {}",
            world.peers().end - 1
        );
        Ok(first)
    }

    /// Forgets jobs that this rank has met and whose ranks have all ended, if none is in use: their
    /// numbers are free for the next.
    pub fn forget_ended(&mut self, in_use: impl Fn(Peer) -> bool) {
        self.engine.progress();
        let joined = self.engine.job.worlds.iter().skip(1);
        let all: Vec<_> = joined.map(|world| world.peers()).collect();
        for peers in all {
            let used = peers.clone().any(|p| in_use(Peer(p)));
            if !used && self.engine.messages.forget(peers.clone()) {
                self.engine.job.worlds.forget(Peer(peers.start));
            }
        }
    }

    /// Sets where a rank of another job listens, which the launcher of this one does not know. Call
    /// it before the first message to that rank.
    pub fn introduce(&mut self, peer: Peer, address: &str) -> Result<(), Down> {
        self.engine.messages.paths.introduce(peer, address)
    }

    /// The network by which this rank is reached, and its address there.
    pub fn address(&self) -> Option<(&'static str, String)> {
        self.engine.messages.paths.address()
    }

    /// Parameters of the network that this rank opens to meet other jobs; `None` if it has one.
    pub fn needs_network(self) -> Option<Result<Opening<'a>, BootError>> {
        if self.address().is_some() {
            return None;
        }
        let name = self.engine.messages.outlet.launcher.job().to_string();
        Some(crate::paths::opening_for_others(
            &name,
            &self.engine.job,
            &self.engine.settings,
        ))
    }
}

/// The addresses on which this rank can wait for processes of other jobs.
pub fn addresses_for_others(settings: &Settings) -> Result<Vec<std::net::IpAddr>, kw_path::Cause> {
    kw_path::addresses_for_others(settings.text(Id::Interfaces))
}
