//! Time of each rank: outside MPI, waiting in it, and working in it.

use super::waits::Wait;
use crate::model::Trace;

/// The time of one rank, in nanoseconds; the three together are the time of the whole trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rank {
    /// Outside MPI, also before its first call and after its last.
    pub outside: u64,
    /// In MPI, without a known wait.
    pub inside: u64,
    /// In MPI, waiting for another rank.
    pub waiting: u64,
}

/// The balance of every rank. If a rank has several threads, the first counts, the one that called
/// MPI_Init.
pub fn balance(trace: &Trace, waits: &[Wait]) -> Vec<Rank> {
    let mut all: Vec<Rank> = trace.ranks.iter().map(|_| Rank::default()).collect();
    for (rank, sum) in trace.ranks.iter().zip(&mut all) {
        let Some(thread) = rank.threads.first() else {
            continue;
        };
        let range = trace.threads[*thread as usize].calls.clone();
        let calls = trace.calls[range].iter().filter(|c| c.depth == 0);
        sum.inside = calls.map(|c| c.time()).sum();
        sum.outside = trace.time().saturating_sub(sum.inside);
    }
    for wait in waits {
        let call = &trace.calls[wait.call as usize];
        let rank = trace.threads[call.thread as usize].rank;
        let first = trace.ranks[rank as usize].threads.first() == Some(&call.thread);
        if first {
            let sum = &mut all[rank as usize];
            let time = wait.time().min(sum.inside);
            sum.inside -= time;
            sum.waiting += time;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::waits::waits;
    use crate::example::{Made, Maker};

    #[test]
    fn time_is_outside_waiting_or_inside() {
        let mut maker = Maker::new(2);
        maker.call(0, Made::new("MPI_Barrier", 40, 110, "").collective(0, 0));
        maker.call(1, Made::new("MPI_Barrier", 100, 110, "").collective(0, 0));
        maker.call(0, Made::new("MPI_Finalize", 140, 140, ""));
        let trace = maker.trace();
        let all = balance(&trace, &waits(&trace));
        let rank = |outside, inside, waiting| Rank {
            outside,
            inside,
            waiting,
        };
        assert_eq!(all, [rank(30, 10, 60), rank(90, 10, 0)]);
    }
}
