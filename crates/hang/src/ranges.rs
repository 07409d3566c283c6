//! Sets of ranks in the notation for people: `0-3,7`.

use crate::Rank;
use std::fmt::{Display, Formatter, Result};

/// Most ranges that are written.
const MOST: usize = 8;

/// Ranks in ascending order, as ranges; only the first eight are written, and the others counted.
#[derive(Clone, Debug)]
pub struct Ranges(Vec<(Rank, Rank)>);

impl Ranges {
    /// Ranges of ranks in any order.
    pub fn new(ranks: impl IntoIterator<Item = Rank>) -> Ranges {
        let mut all: Vec<Rank> = ranks.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let mut ranges: Vec<(Rank, Rank)> = Vec::new();
        for rank in all {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
                _ => ranges.push((rank, rank)),
            }
        }
        Ranges(ranges)
    }

    /// Number of ranks.
    pub fn count(&self) -> u64 {
        let sizes = self.0.iter().map(|(a, b)| u64::from(b - a) + 1);
        sizes.sum()
    }

    /// `rank 3`, or `ranks 0-2`.
    pub fn named(&self) -> String {
        let noun = if self.count() == 1 { "rank" } else { "ranks" };
        format!("{noun} {self}")
    }

    /// All of them, without abbreviation.
    pub(crate) fn in_full(&self) -> String {
        let each: Vec<String> = self.0.iter().map(range).collect();
        each.join("+")
    }
}

fn range((first, last): &(Rank, Rank)) -> String {
    match first == last {
        true => format!("{first}"),
        false => format!("{first}-{last}"),
    }
}

impl Display for Ranges {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let shown: Vec<String> = self.0.iter().take(MOST).map(range).collect();
        write!(f, "{}", shown.join(","))?;
        let rest: u64 = self
            .0
            .iter()
            .skip(MOST)
            .map(|(a, b)| u64::from(b - a) + 1)
            .sum();
        match rest {
            0 => Ok(()),
            n => write!(f, " and {n} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_written_as_ranges() {
        assert_eq!(Ranges::new([4, 0, 1, 2, 1]).to_string(), "0-2,4");
        assert_eq!(Ranges::new([7]).named(), "rank 7");
        assert_eq!(Ranges::new([0, u32::MAX]).named(), "ranks 0,4294967295");
        let many = Ranges::new((0..40).map(|i| 2 * i));
        assert_eq!(many.to_string(), "0,2,4,6,8,10,12,14 and 32 more");
    }
}
