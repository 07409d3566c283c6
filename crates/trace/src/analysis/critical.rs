//! The critical path: the chain of events on which the end of the run depended.
//!
//! It is followed from the last end backwards: along a thread to the end of its last wait, from
//! there to the awaited rank, at the moment when that rank came, and so on to the beginning.
//! Shortening something on this path shortens the run; shortening anything else does not.

use std::collections::BTreeMap;

use super::waits::Wait;
use crate::model::{Name, Trace};

/// A piece of the path, on one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index in `Trace::threads`.
    pub thread: u32,
    /// Start.
    pub begin: u64,
    /// End.
    pub end: u64,
}

/// The path, and its contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// Its pieces, in the order of time.
    pub pieces: Vec<Piece>,
    /// Nanoseconds on it by rank (in `Trace::ranks`), longest first.
    pub ranks: Vec<(u32, u64)>,
    /// Nanoseconds on it by function and place, longest first.
    pub functions: Vec<(Name, Name, u64)>,
    /// Nanoseconds on it outside MPI.
    pub outside: u64,
}

impl Path {
    /// Its length in nanoseconds.
    pub fn time(&self) -> u64 {
        self.pieces.iter().map(|p| p.end - p.begin).sum()
    }
}

/// The critical path of a trace; `waits` are sorted by call.
pub fn path(trace: &Trace, waits: &[Wait]) -> Path {
    let mut path = Path {
        pieces: pieces(trace, waits),
        ..Path::default()
    };
    let mut ranks: BTreeMap<u32, u64> = BTreeMap::new();
    let mut functions: BTreeMap<(Name, Name), u64> = BTreeMap::new();
    for piece in &path.pieces {
        let rank = trace.threads[piece.thread as usize].rank;
        *ranks.entry(rank).or_default() += piece.end - piece.begin;
        let mut outside = piece.end - piece.begin;
        for call in trace.calls_in(piece.thread, piece.begin, piece.end) {
            let call = &trace.calls[call as usize];
            let part = call
                .end
                .min(piece.end)
                .saturating_sub(call.begin.max(piece.begin));
            outside = outside.saturating_sub(part);
            *functions.entry((call.function, call.at)).or_default() += part;
        }
        path.outside += outside;
    }
    path.ranks = ranks.into_iter().collect();
    path.ranks.sort_by_key(|r| std::cmp::Reverse(r.1));
    path.functions = functions
        .into_iter()
        .map(|((f, at), time)| (f, at, time))
        .collect();
    path.functions.retain(|f| f.2 > 0);
    path.functions.sort_by_key(|f| std::cmp::Reverse(f.2));
    path
}

fn pieces(trace: &Trace, waits: &[Wait]) -> Vec<Piece> {
    let Some(last) = trace
        .calls
        .iter()
        .filter(|c| c.depth == 0)
        .max_by_key(|c| c.end)
    else {
        return Vec::new();
    };
    let ranges = waits_of_threads(trace, waits);
    let mut used = vec![false; waits.len()];
    let (mut thread, mut time) = (last.thread, last.end);
    let mut pieces = Vec::new();
    loop {
        let range = ranges[thread as usize].clone();
        let found = range.start + waits[range.clone()].partition_point(|w| w.end <= time);
        let before = (range.start..found).rev().find(|w| !used[*w]);
        let begin = before.map_or(trace.span.start, |w| waits[w].end).min(time);
        if begin < time {
            pieces.push(Piece {
                thread,
                begin,
                end: time,
            });
        }
        let Some(before) = before else { break };
        used[before] = true;
        time = begin;
        thread = trace.calls[waits[before].cause as usize].thread;
    }
    pieces.reverse();
    pieces
}

/// Where the waits of each thread are in the list. Along a thread they end one after another,
/// because calls do; nested calls may not, and are skipped then.
fn waits_of_threads(trace: &Trace, waits: &[Wait]) -> Vec<std::ops::Range<usize>> {
    let of = |t: &crate::model::Thread| {
        let place = |c: usize| waits.partition_point(|w| (w.call as usize) < c);
        place(t.calls.start)..place(t.calls.end)
    };
    trace.threads.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::waits::waits;
    use crate::example::{Made, Maker};

    fn made(maker: &Maker) -> (Trace, Path) {
        let trace = maker.trace();
        let path = path(&trace, &waits(&trace));
        (trace, path)
    }

    fn piece(thread: u32, begin: u64, end: u64) -> Piece {
        Piece { thread, begin, end }
    }

    #[test]
    fn it_goes_through_whoever_was_waited_for() {
        let mut maker = Maker::new(3);
        maker.call(0, Made::new("MPI_Init", 0, 1, ""));
        maker.call(0, Made::new("MPI_Send", 70, 75, "a.c:1").sends(1, 1, 0, 8));
        maker.call(
            1,
            Made::new("MPI_Recv", 10, 80, "a.c:2").receives(1, 0, 0, 8, 10),
        );
        for (rank, begin) in [(0, 80), (1, 95), (2, 20)] {
            maker.call(
                rank,
                Made::new("MPI_Barrier", begin, 100 + u64::from(rank), "a.c:3").collective(0, 0),
            );
        }
        let (trace, path) = made(&maker);
        assert_eq!(
            path.pieces,
            [piece(0, 0, 70), piece(1, 70, 95), piece(2, 95, 102)]
        );
        assert_eq!(path.time(), trace.time());
        assert_eq!(path.ranks, [(0, 70), (1, 25), (2, 7)]);
        let recv = path
            .functions
            .iter()
            .find(|f| trace.names.text(f.0) == "MPI_Recv");
        assert_eq!(recv.map(|f| f.2), Some(10));
        assert_eq!(path.outside, 69 + 15);
    }

    #[test]
    fn without_a_wait_it_stays_on_the_last_rank() {
        let mut maker = Maker::new(2);
        maker.call(0, Made::new("MPI_Init", 0, 10, ""));
        maker.call(1, Made::new("MPI_Init", 0, 30, ""));
        let (_, path) = made(&maker);
        assert_eq!(path.pieces, [piece(1, 0, 30)]);
    }

    #[test]
    fn clocks_that_contradict_each_other_end_it_somewhere() {
        let mut maker = Maker::new(2);
        maker.call(
            0,
            Made::new("MPI_Recv", 10, 50, "").receives(2, 1, 0, 8, 10),
        );
        maker.call(0, Made::new("MPI_Send", 50, 50, "").sends(1, 1, 0, 8));
        maker.call(
            1,
            Made::new("MPI_Recv", 10, 50, "").receives(1, 0, 0, 8, 10),
        );
        maker.call(1, Made::new("MPI_Send", 50, 50, "").sends(2, 0, 0, 8));
        let (_, path) = made(&maker);
        assert!(path.time() <= 40);
    }
}
