//! Rows of runs of bytes in a file, and their encoding in a message.

use crate::view::View;
use std::ops::Range;

/// `n` runs of `len` bytes, each `stride` bytes after the previous one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Position of the first byte in the file.
    pub at: u64,
    /// Bytes of a run.
    pub len: u64,
    /// Distance between the beginnings of two runs.
    pub stride: i64,
    /// Number of runs.
    pub n: u64,
}

/// Bytes of an encoded [`Run`].
pub const RUN_LEN: usize = 32;

impl Run {
    /// A single run.
    pub fn one(at: u64, len: u64) -> Run {
        Run {
            at,
            len,
            stride: 0,
            n: 1,
        }
    }

    /// Position of run `i`.
    pub fn place(&self, i: u64) -> u64 {
        self.at.wrapping_add((self.stride as u64).wrapping_mul(i))
    }

    /// Bytes of all runs.
    pub fn bytes(&self) -> u64 {
        self.len.saturating_mul(self.n)
    }

    /// Position of the first byte after the last run.
    pub fn end(&self) -> u64 {
        self.place(self.n.saturating_sub(1)).wrapping_add(self.len)
    }

    /// Whether all bytes are in `range`, and the runs are ascending without overlap.
    fn lies_in(&self, range: &Range<u64>) -> bool {
        let apart = self.n <= 1 || self.stride > 0 && self.stride as u64 >= self.len;
        let far = (self.stride.max(0) as u64).checked_mul(self.n.saturating_sub(1));
        let end = far.and_then(|far| self.at.checked_add(far)?.checked_add(self.len));
        let inside = end.is_some_and(|end| self.at >= range.start && end <= range.end);
        apart && inside
    }
}

/// A list of rows of runs.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct RunList {
    rows: Vec<Run>,
    bytes: u64,
}

/// Reason why bytes are not a list of runs in a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// They end inside of an item.
    #[error("a list of file regions of {0} bytes, which is not a whole number of items")]
    Length(usize),
    /// An item lies outside of the range, or its runs overlap.
    #[error("a list of file regions names bytes outside of the range it is about")]
    Outside,
}

impl RunList {
    /// The file regions of data bytes `from..to` of `view`.
    pub fn of(view: &View, from: u64, to: u64) -> RunList {
        let mut list = RunList::default();
        view.runs(from, to, &mut |run| list.push(run));
        list
    }

    /// Adds a row; one that continues the last row is merged with it.
    pub fn push(&mut self, run: Run) {
        self.bytes += run.bytes();
        if let Some(last) = self.rows.last_mut() {
            if last.n == 1 && run.n == 1 && last.at + last.len == run.at {
                last.len += run.len;
                return;
            }
        }
        self.rows.push(run);
    }

    /// The rows.
    pub fn rows(&self) -> &[Run] {
        &self.rows
    }

    /// Bytes of all runs.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Calls `each` with position and length of every run.
    pub fn for_each(&self, mut each: impl FnMut(u64, u64)) {
        for row in &self.rows {
            for i in 0..row.n {
                each(row.place(i), row.len);
            }
        }
    }

    /// Appends the list to a message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.rows.len() * RUN_LEN);
        for row in &self.rows {
            for word in [row.at, row.len, row.stride as u64, row.n] {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
    }

    /// Reads a list from a message of another rank: all runs must lie in `range`.
    pub fn decode(bytes: &[u8], range: &Range<u64>) -> Result<RunList, Malformed> {
        if !bytes.len().is_multiple_of(RUN_LEN) {
            return Err(Malformed::Length(bytes.len()));
        }
        let mut list = RunList::default();
        for item in bytes.chunks_exact(RUN_LEN) {
            let word = |i: usize| {
                let bytes: [u8; 8] = item[8 * i..8 * i + 8].try_into().expect("eight bytes");
                u64::from_le_bytes(bytes)
            };
            let run = Run {
                at: word(0),
                len: word(1),
                stride: word(2) as i64,
                n: word(3),
            };
            if run.n == 0 || run.len == 0 || !run.lies_in(range) {
                return Err(Malformed::Outside);
            }
            // Both are bounded by the range, which a run does not leave.
            list.bytes = list.bytes.saturating_add(run.bytes());
            list.rows.push(run);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_list_survives_a_message(rows in proptest::collection::vec((0u64..1000, 1u64..9, 0u64..9, 1u64..9), 0..9)) {
            let mut list = RunList::default();
            for (at, len, gap, n) in rows {
                let stride = (len + gap) as i64;
                list.push(Run { at, len, stride, n });
            }
            let mut bytes = Vec::new();
            list.encode(&mut bytes);
            prop_assert_eq!(RunList::decode(&bytes, &(0..2000)), Ok(list));
        }

        #[test]
        fn fuzz_no_list_names_bytes_outside_of_its_range(
            rows in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..4),
            cut in 0usize..32, start in 0u64..1000, len in 0u64..1000,
        ) {
            let mut bytes = Vec::new();
            for (a, b, c, d) in rows {
                for word in [start + a % 1500, b % 64, c % 128, d % 8] {
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let range = start..start + len;
            if let Ok(list) = RunList::decode(&bytes, &range) {
                let mut total = 0;
                list.for_each(|at, len| {
                    assert!(at >= range.start && at + len <= range.end);
                    total += len;
                });
                prop_assert_eq!(total, list.bytes());
            }
        }
    }
}
