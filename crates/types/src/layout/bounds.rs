//! Bounds of a datatype: where its data lies, its lower and upper bound markers, its alignment (MPI
//! 5.0, 5.1.7).
//!
//! Markers are kept apart from data, because a marker anywhere inside hides all data bounds of what
//! is built from it. Without markers a datatype reaches from the lowest to the highest bound of its
//! members, their padding included, and is padded itself to its alignment. (The letter of the
//! standard would drop the padding of inner datatypes again; no library does, and callers rely on
//! an array of members fitting into the extent.)

/// Extent information of a typemap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    /// First byte and end of the data, if there is any.
    pub data: Option<(i64, i64)>,
    /// Bounds with padding.
    pub span: Option<(i64, i64)>,
    /// Lowest lower-bound marker.
    pub lb: Option<i64>,
    /// Highest upper-bound marker.
    pub ub: Option<i64>,
    /// Strictest alignment of a basic element.
    pub align: u64,
}

impl Bounds {
    pub const EMPTY: Bounds = Bounds {
        data: None,
        span: None,
        lb: None,
        ub: None,
        align: 1,
    };

    /// Data up to `high`, padded up to `end`.
    pub fn of_data(high: i64, end: i64, align: u64) -> Bounds {
        Bounds {
            data: Some((0, high)),
            span: Some((0, end)),
            align,
            ..Bounds::EMPTY
        }
    }

    /// Everything `by` bytes further on.
    pub fn shifted(self, by: i64) -> Option<Bounds> {
        let pair = |p: Option<(i64, i64)>| match p {
            Some((a, b)) => Some(Some((a.checked_add(by)?, b.checked_add(by)?))),
            None => Some(None),
        };
        let mark = |m: Option<i64>| match m {
            Some(x) => x.checked_add(by).map(Some),
            None => Some(None),
        };
        Some(Bounds {
            data: pair(self.data)?,
            span: pair(self.span)?,
            lb: mark(self.lb)?,
            ub: mark(self.ub)?,
            align: self.align,
        })
    }

    /// The bounds of both together.
    pub fn joined(self, other: Bounds) -> Bounds {
        Bounds {
            data: around(self.data, other.data),
            span: around(self.span, other.span),
            lb: either(self.lb, other.lb, i64::min),
            ub: either(self.ub, other.ub, i64::max),
            align: self.align.max(other.align),
        }
    }

    /// The bounds of `n` copies, `stride` apart.
    pub fn repeated(self, n: u64, stride: i64) -> Option<Bounds> {
        if n == 0 {
            return Some(Bounds::EMPTY);
        }
        let last = i64::try_from(n - 1).ok()?.checked_mul(stride)?;
        Some(self.joined(self.shifted(last)?))
    }

    /// Lower bound and extent of a datatype with these bounds; without markers the extent is
    /// rounded up to the alignment, which becomes part of the bounds.
    pub fn close(&mut self) -> Option<(i64, i64)> {
        let (low, high) = self.span.unwrap_or((0, 0));
        let lb = self.lb.unwrap_or(low);
        if let Some(ub) = self.ub {
            return Some((lb, ub.checked_sub(lb)?));
        }
        let (extent, align) = (high.checked_sub(lb)?, self.align as i64);
        let padding = (align - extent.rem_euclid(align)) % align;
        if self.span.is_some() {
            self.span = Some((low, high.checked_add(padding)?));
        }
        Some((lb, extent.checked_add(padding)?))
    }
}

fn either(a: Option<i64>, b: Option<i64>, pick: fn(i64, i64) -> i64) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        _ => a.or(b),
    }
}

fn around(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (a, b) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        _ => a.or(b),
    }
}
