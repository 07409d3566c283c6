//! The simulated network as a [`Network`].

use super::{SimPath, lock};
use crate::{About, Inbound, Network, Path};
use kw_base::Tick;
use kw_base::counters::Way;
use kw_base::settings::Id;

const ABOUT: About = About {
    name: "sim",
    way: Way::Other,
    eager: Id::EagerShm,
    looks_at_one: false,
};

impl Network for SimPath {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn grow(&mut self, size: u32) {
        lock(&self.net).grow(size);
    }

    fn poll_unwatched(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        self.poll(now, inbound)
    }

    fn clock(&self) -> Option<Tick> {
        Some(self.now())
    }
}
