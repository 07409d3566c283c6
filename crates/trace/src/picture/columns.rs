//! Distribution of a thread's time, by columns of the picture.

use std::ops::Range;

use crate::colours::KINDS;

/// Fractions of a column by kind, in units of `grain`.
pub(super) type Stack = [u32; KINDS.len()];

/// Columns of equal time.
pub(super) struct Columns {
    start: u64,
    /// Nanoseconds of a column.
    width: f64,
    sums: Vec<[f64; KINDS.len()]>,
}

impl Columns {
    /// Columns of an interval of time.
    pub(super) fn new(span: &Range<u64>, count: usize) -> Self {
        Columns {
            start: span.start,
            width: (span.end - span.start).max(1) as f64 / count as f64,
            sums: vec![[0.0; KINDS.len()]; count],
        }
    }

    /// Notes the thread's activity from one time to another.
    pub(super) fn add(&mut self, from: u64, to: u64, kind: usize) {
        let place = |t: u64| t.saturating_sub(self.start) as f64 / self.width;
        let (from, to) = (place(from), place(to).min(self.sums.len() as f64));
        let mut at = from;
        while at < to {
            let next = (at.floor() + 1.0).min(to);
            if let Some(sums) = self.sums.get_mut(at as usize) {
                sums[kind] += next - at;
            }
            at = next;
        }
    }

    /// Runs of equal columns: from, to, contents.
    pub(super) fn runs(&self, grain: u32) -> Vec<(usize, usize, Stack)> {
        let mut runs: Vec<(usize, usize, Stack)> = Vec::new();
        for (at, sums) in self.sums.iter().enumerate() {
            let stack = stack(sums, grain);
            match runs.last_mut() {
                Some((_, to, last)) if *last == stack => *to = at + 1,
                _ => runs.push((at, at + 1, stack)),
            }
        }
        runs
    }
}

/// Rounded so that the edges between kinds are in the right places, and the sum of the parts is at
/// most a whole.
fn stack(sums: &[f64; KINDS.len()], grain: u32) -> Stack {
    let mut stack = Stack::default();
    let (mut sum, mut below) = (0.0, 0);
    for kind in (1..KINDS.len()).rev() {
        sum += sums[kind];
        let edge = ((sum * f64::from(grain)).round() as u32).min(grain);
        stack[kind] = edge - below;
        below = edge;
    }
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAIN: u32 = 24;

    #[test]
    fn time_is_divided_among_columns() {
        let mut columns = Columns::new(&(100..200), 4);
        columns.add(100, 150, 1);
        columns.add(150, 160, 2);
        let mut full = Stack::default();
        full[1] = GRAIN;
        let mut part = Stack::default();
        part[2] = 10; // 10 of 25 ns
        let none = Stack::default();
        assert_eq!(
            columns.runs(GRAIN),
            [(0, 2, full), (2, 3, part), (3, 4, none)]
        );
    }

    #[test]
    fn parts_are_no_more_than_a_whole() {
        let mut sums = [0.0; KINDS.len()];
        (sums[1], sums[2], sums[3]) = (0.5, 0.5, 0.5);
        let all = stack(&sums, GRAIN);
        assert_eq!(all.iter().sum::<u32>(), GRAIN);
        assert_eq!((all[3], all[2], all[1]), (GRAIN / 2, GRAIN / 2, 0));
    }
}
