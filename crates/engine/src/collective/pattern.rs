//! Patterns: plans of persistent collectives, which are run again and again.
//!
//! Starts need not come in the order of the communicator's other collectives, not even in the same
//! order at all ranks. So a pattern has a shm region of its own: there its runs come one after the
//! other at every rank. The tag stays: messages between two ranks keep their order, so one round is
//! never taken for the next.

use super::channel::{ChannelId, Channels};
use super::run::{Home, Run};
use super::signature_check::SignatureCheck;
use crate::engine::Engine;
use crate::messages::ReqId;
use kw_base::slab::{Key, Slab};

/// Names a pattern of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PatternId(Key);

/// A plan that its holder runs, one run after the other.
#[derive(Debug)]
pub struct Pattern {
    id: PatternId,
    shm_region: Option<ChannelId>,
}

/// Part of it that stays in the engine.
#[derive(Debug)]
struct Resting {
    /// The plan, while it does not run.
    run: Option<Box<Run>>,
    /// Data that the ranks compare before each run.
    signature_check: Option<Box<SignatureCheck>>,
}

/// All patterns of an engine.
#[derive(Debug, Default)]
pub struct Patterns(Slab<Resting>);

impl Patterns {
    /// Makes a plan a pattern. The shm region was opened for it, and is left if the plan does not
    /// use it.
    pub fn keep(
        &mut self,
        channels: &mut Channels,
        mut plan: Box<Run>,
        shm_region: Option<ChannelId>,
    ) -> Pattern {
        if let Some(region_use) = &plan.region_use {
            channels.take_back(region_use, &plan.progress.place);
        }
        let unused = shm_region.filter(|_| plan.region_use.is_none());
        unused.into_iter().for_each(|b| channels.leave(b));
        let shm_region = shm_region.filter(|_| plan.region_use.is_some());
        let signature_check = plan.signature_check.take();
        let id = PatternId(self.0.insert(Resting {
            run: None,
            signature_check,
        }));
        plan.home = Home::Pattern(id);
        self.rest(id, plan);
        Pattern { id, shm_region }
    }

    /// Its next run; the one before has ended.
    fn next(&mut self, channels: &mut Channels, pattern: &Pattern) -> Box<Run> {
        let resting = self.0.get_mut(pattern.id.0);
        let resting = resting.map(|r| (r.run.take(), r.signature_check.as_ref()));
        let (run, signature_check) = resting.unwrap_or_default();
        // Starting an active request is an error, reported before.
        let mut run = run.unwrap_or_default();
        run.signature_check = signature_check.map(|p| Box::new(p.again()));
        channels.enter(&mut run);
        run
    }

    /// A run of it has ended. If the pattern has no holder any more the plan is freed.
    pub(super) fn rest(&mut self, id: PatternId, run: Box<Run>) {
        if let Some(resting) = self.0.get_mut(id.0) {
            resting.run = Some(run);
        }
    }

    /// There will be no more runs of it.
    pub fn forget(&mut self, channels: &mut Channels, pattern: &Pattern) {
        self.0.remove(pattern.id.0);
        pattern
            .shm_region
            .into_iter()
            .for_each(|b| channels.leave(b));
    }
}

impl Engine {
    /// Runs a pattern; the run before has ended.
    pub fn launch_pattern(&mut self, pattern: &Pattern) -> ReqId {
        let collectives = &mut self.parts.collectives;
        let run = collectives
            .patterns
            .next(&mut collectives.channels, pattern);
        self.launch(run)
    }
}
