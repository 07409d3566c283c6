//! Analyses of a trace: figures of calls and messages, waits, the critical path.
//!
//! Each is a function of the trace, independent of its presentation.

pub mod balance;
pub mod critical;
mod epochs;
pub mod locks;
pub mod losses;
pub mod matrix;
pub mod sizes;
pub mod statistics;
pub mod waits;

use crate::model::Trace;

/// All analyses.
#[derive(Debug)]
pub struct Analysis {
    /// Per rank and function.
    pub statistics: Vec<statistics::Row>,
    /// Messages and bytes for each pair of ranks.
    pub matrix: Vec<matrix::Pair>,
    /// Lengths of messages.
    pub sizes: Vec<sizes::Bin>,
    /// Time of each rank.
    pub balance: Vec<balance::Rank>,
    /// Every wait with its cause.
    pub waits: Vec<waits::Wait>,
    /// The critical path.
    pub critical: critical::Path,
    /// Waits and other costs by place, largest first.
    pub losses: Vec<losses::Loss>,
}

/// All analyses of a trace.
pub fn analyse(trace: &Trace) -> Analysis {
    let waits = waits::waits(trace);
    Analysis {
        statistics: statistics::statistics(trace),
        matrix: matrix::matrix(trace),
        sizes: sizes::sizes(trace),
        balance: balance::balance(trace, &waits),
        critical: critical::path(trace, &waits),
        losses: losses::losses(trace, &waits),
        waits,
    }
}
