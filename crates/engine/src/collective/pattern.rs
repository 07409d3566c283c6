//! Patterns: plans of persistent collectives, which are run again and again.
//!
//! Starts need not come in the order of the communicator's other collectives, not even in the same order at all ranks. So a
//! pattern has a board of its own: there its runs come one after the other at every rank.

use super::desk::BoardId;
use super::run::Run;
use crate::engine::{Engine, ReqId};

/// A plan that is not run itself.
#[derive(Debug)]
pub struct Pattern {
    plan: Box<Run>,
    board: Option<BoardId>,
}

impl Engine {
    /// Makes a plan a pattern. The board was opened for it, and is left if the plan does not use it.
    pub fn keep_pattern(&mut self, plan: Box<Run>, board: Option<BoardId>) -> Pattern {
        if let Some(berth) = &plan.berth {
            self.collectives.desks.take_back(berth);
        }
        let unused = board.filter(|_| plan.berth.is_none());
        unused.into_iter().for_each(|b| self.leave_board(b));
        let board = board.filter(|_| plan.berth.is_some());
        Pattern { plan, board }
    }

    /// Runs it.
    pub fn launch_pattern(&mut self, pattern: &Pattern) -> ReqId {
        let collectives = &mut self.collectives;
        let mut run = collectives.spare.pop().unwrap_or_default();
        run.follow(&pattern.plan);
        if let Some(berth) = &pattern.plan.berth {
            let desks = &mut collectives.desks;
            run.berth = desks.another(berth, &run.schedule, run.lines_only);
        }
        self.launch(run)
    }

    /// There will be no more runs of it.
    pub fn drop_pattern(&mut self, pattern: &Pattern) {
        pattern.board.into_iter().for_each(|b| self.leave_board(b));
    }
}
