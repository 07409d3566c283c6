//! Whether two buffers share memory.

use super::{Buf, Shape};

impl Buf {
    /// Whether any byte of memory belongs to the data of both; `false` if that of one moves.
    pub fn shares_memory(&self, other: &Buf) -> bool {
        if self.is_moving() || other.is_moving() {
            return false;
        }
        let ((a, b), (c, d)) = (self.span(), other.span());
        if self.len == 0 || other.len == 0 || b <= c || d <= a {
            return false;
        }
        let (mine, theirs) = (self.sorted_runs(), other.sorted_runs());
        let (mut mine, mut theirs) = (mine.iter().peekable(), theirs.iter().peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            if a.1 <= b.0 {
                mine.next();
            } else if b.1 <= a.0 {
                theirs.next();
            } else {
                return true;
            }
        }
        false
    }

    /// Addresses between which all runs of memory lie.
    fn span(&self) -> (i128, i128) {
        let base = self.base as i128;
        match &self.shape {
            Shape::Contiguous | Shape::Moving { .. } => (base, base + self.len as i128),
            Shape::Typed { layout, count, .. } => {
                let far = layout.extent() as i128 * count.saturating_sub(1) as i128;
                let first = base + layout.true_lb() as i128 + far.min(0);
                (first, first + far.abs() + layout.true_extent() as i128)
            }
        }
    }

    /// Begin and end of each run of memory, by address.
    fn sorted_runs(&self) -> Vec<(usize, usize)> {
        let mut all: Vec<(usize, usize)> = Vec::new();
        self.runs(0, self.len, &mut |at, n| match all.last_mut() {
            Some(last) if last.1 == at => last.1 += n,
            _ => all.push((at, at + n)),
        });
        all.sort_unstable();
        all
    }
}
