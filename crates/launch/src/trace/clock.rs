//! Times of a trace: conversion of the processor's ticks to nanoseconds of the machine's clock, and
//! of another machine's clock to ours.
//!
//! Both are pairs of times that were read at the same moment, with straight lines between. Another
//! machine's clock is asked repeatedly: of several answers the one with the shortest round trip is
//! the most accurate, and its error is at most half the round trip (Cristian 1989).

/// Pairs of times, both increasing.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pairs: Vec<Pair>,
}

/// Two times of the same moment.
#[derive(Clone, Copy, Debug)]
struct Pair {
    from: u64,
    to: u64,
    /// Increase of the other time per unit of this one, times 2^32, until the next pair.
    slope: u64,
}

/// Number of pairs that are kept; when there are more, every second one is dropped.
const MOST: usize = 1 << 16;

impl Line {
    /// Adds a pair that was read now.
    pub fn add(&mut self, from: u64, to: u64) {
        if self.pairs.last().is_some_and(|last| from <= last.from) {
            return;
        }
        if self.pairs.len() == MOST {
            self.forget();
        }
        let slope = 1 << 32;
        self.pairs.push(Pair { from, to, slope });
        self.join(self.pairs.len() - 1);
    }

    /// Drops every second pair.
    fn forget(&mut self) {
        let mut n = 0;
        self.pairs.retain(|_| {
            n += 1;
            n % 2 == 1
        });
        (1..self.pairs.len()).for_each(|at| self.join(at));
    }

    /// The line through a pair and its predecessor, extended.
    fn join(&mut self, at: usize) {
        let Some(before) = at.checked_sub(1) else {
            return;
        };
        let (a, b) = (self.pairs[before], self.pairs[at]);
        let rise = u128::from(b.to.saturating_sub(a.to)) << 32;
        let slope = rise / u128::from(b.from - a.from);
        let slope = u64::try_from(slope).unwrap_or(u64::MAX);
        (self.pairs[before].slope, self.pairs[at].slope) = (slope, slope);
    }

    /// The other time.
    pub fn at(&self, from: u64) -> u64 {
        // most queries are after the last pair but one
        let pairs = self.pairs.as_slice();
        let pair = match pairs {
            [] => return from,
            [.., before, _] if before.from <= from => before,
            [first, ..] => {
                let behind = pairs.partition_point(|p| p.from <= from);
                pairs.get(behind.saturating_sub(1)).unwrap_or(first)
            }
        };
        match from.checked_sub(pair.from) {
            Some(gone) => pair.to.saturating_add(rise(gone, pair.slope)),
            None => pair.to.saturating_sub(rise(pair.from - from, pair.slope)),
        }
    }
}

fn rise(gone: u64, slope: u64) -> u64 {
    let rise = u128::from(gone) * u128::from(slope) + (1 << 31) >> 32;
    u64::try_from(rise).unwrap_or(u64::MAX)
}

/// The clock of another machine, from its answers to questions.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    /// Theirs, ours.
    line: Line,
    /// The best of the answers since the last pair: half of its round trip, theirs, ours.
    best: Option<(u64, u64, u64)>,
    error: u64,
    known: bool,
}

impl Remote {
    /// Adds an answer: by our clock the question was sent at `asked` and the answer arrived at
    /// `heard`; in between their clock showed `theirs`.
    pub fn answer(&mut self, asked: u64, theirs: u64, heard: u64) {
        let half = heard.saturating_sub(asked) / 2;
        if self.best.is_none_or(|b| half < b.0) {
            self.best = Some((half, theirs, asked + half));
        }
    }

    /// Makes a pair of the best answer so far.
    pub fn settle(&mut self) {
        if let Some((half, theirs, ours)) = self.best.take() {
            self.line.add(theirs, ours);
            self.error = self.error.max(half);
            self.known = true;
        }
    }

    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Bound on the error of a time, in nanoseconds.
    pub fn error(&self) -> u64 {
        self.error
    }

    /// Converts a time of theirs to our clock.
    pub fn ours(&self, theirs: u64) -> u64 {
        self.line.at(theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_pairs_are_lines() {
        let mut line = Line::default();
        assert_eq!(line.at(7), 7);
        line.add(100, 1000);
        assert_eq!(line.at(107), 1007);
        line.add(200, 1050);
        line.add(200, 9999); // no later than the last
        line.add(300, 1250);
        for (from, to) in [
            (0, 950),
            (100, 1000),
            (150, 1025),
            (200, 1050),
            (250, 1150),
            (400, 1450),
        ] {
            assert_eq!(line.at(from), to, "{from}");
        }
    }

    #[test]
    fn what_is_forgotten_leaves_the_line() {
        let mut line = Line::default();
        (1..=MOST as u64 + 1).for_each(|n| line.add(n, 2 * n));
        assert!(line.pairs.len() < MOST);
        assert_eq!(
            (line.at(5000), line.at(MOST as u64)),
            (10000, 2 * MOST as u64)
        );
    }

    #[test]
    fn the_soonest_answer_counts() {
        let mut there = Remote::default();
        assert!(!there.is_known());
        for (asked, theirs, heard) in [(100, 5000, 300), (400, 5260, 420), (500, 5400, 900)] {
            there.answer(asked, theirs, heard);
        }
        there.settle();
        assert!(there.is_known());
        assert_eq!(
            (there.error(), there.ours(5260), there.ours(5360)),
            (10, 410, 510)
        );
        there.settle(); // nothing was asked
        assert_eq!(there.ours(5260), 410);
    }
}
