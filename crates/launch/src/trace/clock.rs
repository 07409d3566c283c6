//! Times of a trace: the processor's ticks as nanoseconds of the machine's clock, and the clock of
//! another machine as ours.
//!
//! Both are pairs of times that were read at one moment, with straight lines between. Another
//! machine's clock is asked again and again: of some answers the one that came back soonest says
//! most, and it is wrong by no more than half of the time that it took (Cristian 1989).

/// Pairs of times, both rising.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pairs: Vec<(u64, u64)>,
}

/// Pairs that are kept; beyond, every other one is forgotten.
const MOST: usize = 1 << 16;

impl Line {
    /// Both were read now.
    pub fn add(&mut self, from: u64, to: u64) {
        if self.pairs.last().is_some_and(|last| from <= last.0) {
            return;
        }
        if self.pairs.len() == MOST {
            let mut n = 0;
            self.pairs.retain(|_| {
                n += 1;
                n % 2 == 1
            });
        }
        self.pairs.push((from, to));
    }

    /// The other time.
    pub fn at(&self, from: u64) -> u64 {
        let behind = self.pairs.partition_point(|p| p.0 < from);
        let last = self.pairs.len().saturating_sub(1);
        match self.pairs.len() {
            0 => from,
            1 => between(self.pairs[0], None, from),
            _ => {
                let at = behind.clamp(1, last);
                between(self.pairs[at - 1], Some(self.pairs[at]), from)
            }
        }
    }
}

fn between(a: (u64, u64), b: Option<(u64, u64)>, from: u64) -> u64 {
    let wide = |n: u64| i128::from(n);
    let gone = wide(from) - wide(a.0);
    let there = match b {
        Some(b) if b.0 > a.0 => gone * (wide(b.1) - wide(a.1)) / (wide(b.0) - wide(a.0)),
        _ => gone,
    };
    (wide(a.1) + there).clamp(0, wide(u64::MAX)) as u64
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
