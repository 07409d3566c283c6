//! Sets of numbers kept as ranges: packets that came, bytes that arrived, bytes to be sent again.

use std::ops::Range;

/// Ranges in ascending order, none empty, none touching another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    list: Vec<Range<u64>>,
}

impl Ranges {
    /// Adds every number of `r`; returns whether one of them is new.
    pub fn insert(&mut self, r: Range<u64>) -> bool {
        if r.is_empty() {
            return false;
        }
        if let Some(last) = self.list.last_mut()
            && last.end == r.start
        {
            last.end = r.end;
            return true;
        }
        let from = self.list.partition_point(|x| x.end < r.start);
        let to = self.list.partition_point(|x| x.start <= r.end);
        if from == to {
            self.list.insert(from, r);
            return true;
        }
        let joined = self.list[from].start.min(r.start)..self.list[to - 1].end.max(r.end);
        let known = to - from == 1 && self.list[from] == joined;
        self.list.splice(from..to, [joined]);
        !known
    }

    /// Takes every number of `r` out.
    pub fn remove(&mut self, r: Range<u64>) {
        let from = self.list.partition_point(|x| x.end <= r.start);
        let to = self.list.partition_point(|x| x.start < r.end);
        if from >= to || r.is_empty() {
            return;
        }
        let left = self.list[from].start..r.start;
        let right = r.end..self.list[to - 1].end;
        let rest = [left, right].into_iter().filter(|x| !x.is_empty());
        self.list.splice(from..to, rest);
    }

    /// The part of `r` that is not in the set.
    pub fn missing(&self, r: Range<u64>) -> Ranges {
        let mut rest = Ranges::default();
        rest.insert(r.clone());
        let from = self.list.partition_point(|x| x.end <= r.start);
        for x in &self.list[from..] {
            if x.start >= r.end {
                break;
            }
            rest.remove(x.clone());
        }
        rest
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.list.first().cloned()
    }

    /// The highest number.
    pub fn largest(&self) -> Option<u64> {
        self.list.last().map(|r| r.end - 1)
    }

    /// Whether the number is in the set.
    pub fn contains(&self, n: u64) -> bool {
        let at = self.list.partition_point(|x| x.end <= n);
        self.list.get(at).is_some_and(|x| x.start <= n)
    }

    /// Takes out the lowest consecutive numbers, `most` of them at most.
    pub fn take_first(&mut self, most: u64) -> Option<Range<u64>> {
        let first = self.list.first_mut()?;
        let taken = first.start..first.end.min(first.start + most);
        first.start = taken.end;
        if first.is_empty() {
            self.list.remove(0);
        }
        Some(taken)
    }

    /// Drops the lowest ranges until this many are left.
    pub fn keep_newest(&mut self, ranges: usize) {
        let surplus = self.list.len().saturating_sub(ranges);
        self.list.drain(..surplus);
    }

    /// From the highest range to the lowest.
    pub fn newest_first(&self) -> impl Iterator<Item = &Range<u64>> {
        self.list.iter().rev()
    }

    /// From the lowest range to the highest.
    pub fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.list.iter()
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Insert (true) or remove a range.
    fn operations() -> impl Strategy<Value = Vec<(bool, u64, u64)>> {
        proptest::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..60)
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set(ops in operations(), probe in 0u64..60, width in 0u64..20) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (add, from, n) in ops {
                if add {
                    let fresh = (from..from + n).any(|x| !set.contains(&x));
                    prop_assert_eq!(ranges.insert(from..from + n), fresh);
                    set.extend(from..from + n);
                } else {
                    ranges.remove(from..from + n);
                    set.retain(|x| !(from..from + n).contains(x));
                }
                let flat: Vec<u64> = ranges.iter().cloned().flatten().collect();
                prop_assert_eq!(&flat, &set.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.list.windows(2).all(|w| w[0].end < w[1].start));
            }
            prop_assert_eq!(ranges.contains(probe), set.contains(&probe));
            prop_assert_eq!(ranges.largest(), set.last().copied());
            let missing: Vec<u64> = ranges.missing(probe..probe + width).iter().cloned().flatten().collect();
            let want: Vec<u64> = (probe..probe + width).filter(|x| !set.contains(x)).collect();
            prop_assert_eq!(missing, want);
        }
    }

    #[test]
    fn numbers_leave_from_the_front_and_old_ranges_are_forgotten() {
        let mut r = Ranges::default();
        r.insert(0..3);
        r.insert(5..6);
        r.insert(9..12);
        assert_eq!(r.take_first(2), Some(0..2));
        assert_eq!(r.take_first(9), Some(2..3));
        r.keep_newest(1);
        assert_eq!(r.first(), Some(9..12));
    }
}
