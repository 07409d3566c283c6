//! Ranks that computed while others waited: the ends of the chains of waits.
//!
//! Rank 2 waits for rank 1, which waits for rank 0, which computes: rank 0 is the origin of both
//! waits. The chain is followed a limited number of steps for each wait.

use crate::analysis::critical::Piece;
use crate::analysis::waits::Wait;
use crate::model::Trace;

/// Number of waits that are followed from one wait.
const STEPS: usize = 48;

/// The wait of a call; `waits` are sorted by call.
fn of_call(waits: &[Wait], call: u32) -> Option<&Wait> {
    let found = waits.binary_search_by_key(&call, |w| w.call).ok()?;
    Some(&waits[found])
}

/// The parts of a wait that the awaited ranks, directly or indirectly, spent outside MPI.
pub(super) fn computing(trace: &Trace, waits: &[Wait], wait: &Wait) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut open = vec![Piece {
        thread: trace.calls[wait.cause as usize].thread,
        begin: wait.begin,
        end: wait.end,
    }];
    let mut steps = 0;
    while let Some(piece) = open.pop() {
        let mut from = piece.begin;
        for call in trace.calls_in(piece.thread, piece.begin, piece.end) {
            let (begin, end) = (
                trace.calls[call as usize].begin,
                trace.calls[call as usize].end,
            );
            if begin > from {
                found.push(Piece {
                    begin: from,
                    end: begin,
                    ..piece
                });
            }
            from = from.max(end.min(piece.end));
            if let Some(next) = of_call(waits, call).filter(|_| steps < STEPS) {
                let (begin, end) = (next.begin.max(piece.begin), next.end.min(piece.end));
                if begin < end {
                    steps += 1;
                    let thread = trace.calls[next.cause as usize].thread;
                    open.push(Piece { thread, begin, end });
                }
            }
        }
        if from < piece.end {
            found.push(Piece {
                begin: from,
                end: piece.end,
                ..piece
            });
        }
    }
    found
}
