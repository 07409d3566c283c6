//! A view of a file (MPI 5.0, 14.3): a displacement, an elementary type, and a file type that is
//! repeated from there on. The data that a rank sees is a stream of bytes; a view maps positions in
//! this stream to positions in the file.

use crate::runs::Run;
use kw_types::layout::{Layout, Visit};

/// Reason why an elementary type and a file type do not form a view.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfit {
    /// The displacement is negative.
    #[error("the displacement is {0}, but must not be negative")]
    Displacement(i64),
    /// The elementary type has no bytes.
    #[error("the elementary type has no bytes")]
    EmptyEtype,
    /// The file type does not consist of whole elementary types.
    #[error(
        "the file type has {filetype} bytes of data, which is not a multiple of the {etype} bytes of the elementary type"
    )]
    Size {
        /// Bytes of the file type.
        filetype: u64,
        /// Bytes of the elementary type.
        etype: u64,
    },
    /// A byte of the file type lies before its start.
    #[error("the file type has data at displacement {0}, but must have none below 0")]
    Negative(i64),
    /// The displacements of the file type decrease.
    #[error(
        "the displacements of the file type must not decrease, but {after} follows one that ends at {end}"
    )]
    Order {
        /// End of a run of bytes.
        end: i64,
        /// Displacement of the next run.
        after: i64,
    },
}

/// A view. Positions in its data and in the file are in bytes.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    etype: u64,
    filetype: Layout,
    /// Runs of bytes in one file type.
    pieces: u64,
    /// Whether later data lie further back in the file, over all repetitions of the file type.
    ascending: bool,
    /// Whether all data are contiguous.
    dense: bool,
}

/// Number of repetitions of a file type: the most that a file can hold.
const ENDLESS: u64 = u64::MAX;

/// Passes runs on, shifted to their place in the file.
struct Placed<'a> {
    by: u64,
    run: &'a mut dyn FnMut(Run),
}

impl Visit for Placed<'_> {
    fn strided(&mut self, at: i64, len: u64, stride: i64, n: u64) {
        let at = self.by.wrapping_add(at as u64);
        (self.run)(Run { at, len, stride, n });
    }
}

/// Checks the runs of a file type in the order of its data.
#[derive(Default)]
struct Check {
    first: Option<i64>,
    end: i64,
    pieces: u64,
    fault: Option<Unfit>,
}

impl Check {
    fn run(&mut self, at: i64, len: u64) {
        if at < 0 {
            self.fault.get_or_insert(Unfit::Negative(at));
        }
        if self.first.is_some() && at < self.end {
            let end = self.end;
            self.fault.get_or_insert(Unfit::Order { end, after: at });
        }
        self.first.get_or_insert(at);
        self.pieces += u64::from(self.pieces == 0 || at != self.end);
        self.end = at.saturating_add(len as i64);
    }
}

impl Visit for Check {
    fn strided(&mut self, at: i64, len: u64, stride: i64, n: u64) {
        // The first two runs of a regular row and its last one determine its end.
        let place = |i: u64| at.saturating_add(stride.saturating_mul(i as i64));
        for i in [0, 1].into_iter().filter(|&i| i < n) {
            self.run(place(i), len);
        }
        if n > 2 {
            self.pieces += n - 3;
            self.end = place(n - 2).saturating_add(len as i64);
            self.run(place(n - 1), len);
        }
    }
}

impl View {
    /// The view of `filetype` in units of `etype`, from byte `displacement` of the file on.
    pub fn new(displacement: i64, etype: &Layout, filetype: &Layout) -> Result<View, Unfit> {
        let start = u64::try_from(displacement).map_err(|_| Unfit::Displacement(displacement))?;
        let size = etype.size();
        if size == 0 {
            return Err(Unfit::EmptyEtype);
        }
        if !filetype.size().is_multiple_of(size) {
            let filetype = filetype.size();
            return Err(Unfit::Size {
                filetype,
                etype: size,
            });
        }
        // The standard requires a file type that is built from the elementary type. Programs
        // (PnetCDF) combine bytes as the elementary type with any other file type, and nothing
        // depends on it.
        let mut check = Check::default();
        filetype.walk(1, 0, filetype.size(), &mut check);
        if let Some(fault) = check.fault {
            return Err(fault);
        }
        let next = check.first.unwrap_or(0).saturating_add(filetype.extent());
        Ok(View {
            displacement: start,
            etype: size,
            pieces: check.pieces,
            ascending: next >= check.end,
            dense: check.pieces == 1 && filetype.extent() as u64 == filetype.size(),
            filetype: filetype.clone(),
        })
    }

    /// Bytes of an elementary type.
    pub fn etype(&self) -> u64 {
        self.etype
    }

    /// Where the view begins in the file.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Whether the view shows no data: the file type has no bytes.
    pub fn is_empty(&self) -> bool {
        self.filetype.size() == 0
    }

    /// Whether later data never lie before earlier ones in the file, so that a part of the file
    /// holds a contiguous part of the data.
    pub fn is_ascending(&self) -> bool {
        self.ascending
    }

    /// Calls `run` for each row of runs that hold data bytes `from..to`, in the order of the data.
    pub fn runs(&self, from: u64, to: u64, run: &mut dyn FnMut(Run)) {
        if from >= to || self.is_empty() {
            return;
        }
        let by = self.displacement;
        if self.dense {
            let first = self.filetype.true_lb() as u64;
            return run(Run::one(by + first + from, to - from));
        }
        let mut placed = Placed { by, run };
        self.filetype.walk(ENDLESS, from, to, &mut placed);
    }

    /// The position in the file of a byte of the data. Without data: the displacement.
    pub fn offset_of(&self, data: u64) -> u64 {
        let mut at = self.displacement;
        self.runs(data, data.saturating_add(1), &mut |run| at = run.at);
        at
    }

    /// The position in the file of the first byte after data byte `to - 1`.
    pub fn end_of(&self, to: u64) -> u64 {
        match to {
            0 => self.displacement,
            to => self.offset_of(to - 1) + 1,
        }
    }

    /// Whether the data up to byte `to - 1` are at positions that a file can have.
    pub fn fits(&self, to: u64) -> bool {
        let Some(last) = to.checked_sub(1).filter(|_| !self.is_empty()) else {
            return true;
        };
        let (tile, within) = (last / self.filetype.size(), last % self.filetype.size());
        let mut at = 0;
        let mut placed = Placed {
            by: 0,
            run: &mut |run| at = run.at,
        };
        self.filetype.walk(1, within, within + 1, &mut placed);
        let last = tile as i128 * self.filetype.extent() as i128 + at as i128;
        let by = self.displacement as i128;
        let fits = |(first, end): (i128, i128)| by + first >= 0 && by + end <= i64::MAX as i128;
        // In a view that is not ascending, earlier data may lie beyond the last byte.
        let before = self.filetype.reach(0, tile);
        fits((last, last + 1)) && before.is_none_or(fits)
    }

    /// Number of bytes of the data at positions that a file can have: the highest `to` for which
    /// the data fit, at most `i64::MAX`.
    pub fn capacity(&self) -> u64 {
        let (mut low, mut high) = (0, i64::MAX as u64);
        while low < high {
            let middle = high - (high - low) / 2;
            match self.fits(middle) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        low
    }

    /// Number of bytes of the data before position `at` of the file, in an ascending view.
    pub fn data_before(&self, at: u64) -> u64 {
        let size = self.filetype.size();
        let first = self.displacement + self.filetype.true_lb().max(0) as u64;
        if size == 0 || at <= first {
            return 0;
        }
        let beyond = at - first;
        if self.dense {
            return beyond;
        }
        // In an ascending view each repetition ends before the next one begins.
        let extent = self.filetype.extent().max(1) as u64;
        let tile = beyond / extent;
        let (mut low, mut high) = (tile.saturating_mul(size), (tile + 1).saturating_mul(size));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.offset_of(middle) < at {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Approximate number of runs that hold `bytes` bytes of the data.
    pub fn pieces_of(&self, bytes: u64) -> u64 {
        if bytes == 0 || self.is_empty() {
            return 0;
        }
        if self.dense {
            return 1;
        }
        let share = bytes as u128 * self.pieces as u128 / self.filetype.size() as u128;
        (share as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_types::layout::basic;
    use proptest::prelude::*;

    pub(crate) fn named(name: &str) -> Layout {
        let named = basic::NAMED.iter().find(|n| n.name == name);
        Layout::named(named.expect("a predefined datatype"))
    }

    fn byte() -> Layout {
        named("MPI_BYTE")
    }

    /// The position of each byte of the data, by a walk over single runs.
    fn positions(view: &View, to: u64) -> Vec<u64> {
        let mut all = Vec::new();
        view.runs(0, to, &mut |run| {
            for i in 0..run.n {
                let at = run.place(i);
                all.extend(at..at + run.len);
            }
        });
        all
    }

    #[test]
    fn a_view_of_bytes_shows_the_file_from_its_displacement_on() {
        let view = View::new(7, &byte(), &byte()).expect("a view");
        assert_eq!(view.offset_of(5), 12);
        assert_eq!(view.data_before(12), 5);
        assert_eq!((view.data_before(7), view.data_before(3)), (0, 0));
        assert_eq!(view.pieces_of(1 << 20), 1);
    }

    #[test]
    fn types_that_make_no_view_are_refused_with_the_reason() {
        let (int, double) = (named("MPI_INT"), named("MPI_DOUBLE"));
        let refused = |etype, filetype| View::new(0, etype, filetype).expect_err("no view");
        assert!(View::new(-1, &int, &int).is_err());
        let odd = byte().contiguous_of(6).expect("a type");
        assert!(matches!(refused(&int, &odd), Unfit::Size { .. }));
        assert!(matches!(refused(&double, &int), Unfit::Size { .. }));
        let back = int.hindexed(&[(8, 1), (0, 1)]).expect("a type");
        assert_eq!(refused(&int, &back), Unfit::Order { end: 12, after: 0 });
        let before = int.hindexed(&[(-4, 1)]).expect("a type");
        assert_eq!(refused(&int, &before), Unfit::Negative(-4));
        let twice = int.hvector(3, 1, 2).expect("a type");
        assert!(matches!(refused(&int, &twice), Unfit::Order { .. }));
        assert_eq!(refused(&Layout::empty(), &int), Unfit::EmptyEtype);
    }

    #[test]
    fn data_behind_the_largest_position_do_not_fit() {
        let (int, far) = (named("MPI_INT"), named("MPI_INT").resized(0, 1 << 40));
        let view = |by, filetype: &Layout| View::new(by, &int, filetype).expect("a view");
        let far = view(0, &far.expect("a type"));
        assert!(far.fits(0) && far.fits(4 << 23) && !far.fits((4 << 23) + 1));
        // 2^24 file types of 2^40 bytes: 2^64, which is 0 again in 64 bits.
        assert!(!far.fits((4 << 24) + 1) && !far.fits((4 << 24) + 4));
        let row = view(i64::MAX - 100, &int);
        assert!(row.fits(100) && !row.fits(101) && !row.fits(u64::MAX));
        let back = int.hindexed(&[(0, 1), (1 << 40, 1)]);
        let back = back.and_then(|t| t.resized(0, 1 << 39)).expect("a type");
        let room = i64::MAX - (1 << 40) - 4;
        assert!(view(room, &back).fits(8) && !view(room + 1, &back).fits(9));
        assert!(!view(0, &int.resized(0, -4).expect("a type")).fits(5));
        let none = View::new(0, &int, &Layout::empty()).expect("a view");
        assert!(none.fits(u64::MAX));
        assert_eq!((far.capacity(), row.capacity()), (4 << 23, 100));
        assert_eq!(none.capacity(), i64::MAX as u64);
        assert_eq!(view(0, &int).capacity(), i64::MAX as u64);
    }

    #[test]
    fn a_million_pieces_are_seen_through_at_once() {
        let blocks: Vec<(i64, u64)> = (0..1_000_000).map(|i| (i * 20 + i % 3, 4)).collect();
        let view = View::new(100, &byte(), &byte().hindexed(&blocks).expect("a type"));
        let view = view.expect("a view");
        assert_eq!(view.offset_of(4 * 999_999), 100 + 999_999 * 20);
        assert_eq!(view.data_before(100 + 999_999 * 20), 4 * 999_999);
        assert_eq!(view.pieces_of(4_000_000), 1_000_000);
    }

    proptest! {
        #[test]
        fn positions_and_data_are_inverse(
            displacement in 0i64..50,
            gaps in proptest::collection::vec((0i64..9, 1u64..9), 1..12),
            tail in 0i64..9, from in 0u64..200, at in 0u64..600,
        ) {
            let mut end = 0;
            let blocks: Vec<(i64, u64)> = gaps.iter().map(|&(gap, len)| {
                let at = end + gap;
                end = at + len as i64;
                (at, len)
            }).collect();
            let filetype = byte().hindexed(&blocks).and_then(|t| t.resized(0, end + tail)).expect("a type");
            let view = View::new(displacement, &byte(), &filetype).expect("a view");
            prop_assert!(view.is_ascending());
            let all = positions(&view, 400);
            prop_assert_eq!(all.len(), 400);
            prop_assert!(all.windows(2).all(|w| w[0] < w[1]));
            prop_assert_eq!(view.offset_of(from), all[from as usize]);
            prop_assert_eq!(view.end_of(from + 1), all[from as usize] + 1);
            let before = all.iter().filter(|&&p| p < at).count() as u64;
            if before < 400 {
                prop_assert_eq!(view.data_before(at), before);
            }
        }
    }
}
