//! Times of a trace: the processor's ticks as nanoseconds of the machine's clock, and the clock of
//! another machine as ours.
//!
//! Both are pairs of times that were read at one moment, with straight lines between. Another
//! machine's clock is asked again and again: of some answers the one that came back soonest says
//! most, and it is wrong by no more than half of the time that it took (Cristian 1989).

/// Pairs of times, both rising.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pairs: Vec<Pair>,
}

/// Two times of one moment.
#[derive(Clone, Copy, Debug)]
struct Pair {
    from: u64,
    to: u64,
    /// How much the other time goes on for each unit of this one, times 2^32, until the next pair.
    slope: u64,
}

/// Pairs that are kept; beyond, every other one is forgotten.
const MOST: usize = 1 << 16;

impl Line {
    /// Both were read now.
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

    /// Every other pair.
    fn forget(&mut self) {
        let mut n = 0;
        self.pairs.retain(|_| {
            n += 1;
            n % 2 == 1
        });
        (1..self.pairs.len()).for_each(|at| self.join(at));
    }

    /// The line from the pair before one to it, and on.
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
        // what is asked is mostly behind the last but one
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

/// The clock of another machine: answers to questions.
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
    /// An answer: it was asked at `asked` and heard at `heard` by our clock, and their clock said
    /// `theirs` in between.
    pub fn answer(&mut self, asked: u64, theirs: u64, heard: u64) {
        let half = heard.saturating_sub(asked) / 2;
        if self.best.is_none_or(|b| half < b.0) {
            self.best = Some((half, theirs, asked + half));
        }
    }

    /// The answers so far are worth a pair.
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

    /// How far a time may be off, in nanoseconds.
    pub fn error(&self) -> u64 {
        self.error
    }

    /// A time of theirs by our clock.
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
