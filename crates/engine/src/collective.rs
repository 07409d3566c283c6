//! Runs collective schedules on the engine. (room to be filled)

use crate::engine::Engine;

/// The schedules that run on one engine.
#[derive(Debug, Default)]
pub(crate) struct Collectives {}

impl Collectives {
    /// Schedules that have not ended.
    #[inline]
    pub(crate) fn active(&self) -> usize {
        0
    }
}

impl Engine {
    /// Takes the steps that completions have made possible.
    pub(crate) fn advance_collectives(&mut self) {}
}
