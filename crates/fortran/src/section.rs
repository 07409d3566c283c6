//! Arithmetic of array sections: which bytes a descriptor describes, in the order of its elements.
//!
//! A section is seen as one contiguous buffer, whose byte k lies somewhere in the section. The
//! first elements of a section are a few [`Piece`]s, each of which is a nest of equal steps.

/// Most dimensions in Fortran.
pub const RANKS: usize = 15;

/// One dimension: number of elements, and bytes from one to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    /// Number of elements.
    pub count: i64,
    /// Stride in bytes; may be negative.
    pub stride: i64,
}

/// A section: elements of `element` bytes; the first dimension varies fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// Bytes of an element.
    pub element: i64,
    /// Dimensions; adjacent ones that can be merged are merged.
    pub dims: Vec<Dim>,
}

/// Elements that form a nest of dimensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Bytes from the section's first element to the first one here.
    pub offset: i64,
    /// Dimensions.
    pub dims: Vec<Dim>,
}

impl Section {
    /// A section of these dimensions.
    pub fn new(element: i64, dims: impl IntoIterator<Item = Dim>) -> Section {
        let mut joined: Vec<Dim> = Vec::new();
        for dim in dims {
            match joined.last_mut() {
                _ if dim.count == 1 => {}
                Some(last) if dim.stride == last.count * last.stride => last.count *= dim.count,
                _ => joined.push(dim),
            }
        }
        Section {
            element,
            dims: joined,
        }
    }

    /// Whether its bytes are contiguous.
    pub fn is_contiguous(&self) -> bool {
        match self.dims.as_slice() {
            [] => true,
            [one] => one.stride == self.element || one.count == 0,
            more => more.iter().any(|dim| dim.count == 0),
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> i64 {
        self.dims.iter().map(|dim| dim.count).product()
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> i64 {
        self.elements() * self.element
    }

    /// The first `n` elements.
    ///
    /// The complete slices of the highest dimension come first; the rest of one slice is a section
    /// of fewer dimensions.
    pub fn first(&self, n: i64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let (mut left, mut offset) = (n.min(self.elements()), 0);
        if self.dims.is_empty() && left > 0 {
            pieces.push(Piece {
                offset,
                dims: Vec::new(),
            });
            return pieces;
        }
        for top in (0..self.dims.len()).rev() {
            let below: i64 = self.dims[..top].iter().map(|dim| dim.count).product();
            let whole = if below == 0 { 0 } else { left / below };
            if whole > 0 {
                let mut dims = self.dims[..top].to_vec();
                dims.push(Dim {
                    count: whole,
                    stride: self.dims[top].stride,
                });
                pieces.push(Piece { offset, dims });
            }
            left -= whole * below;
            offset += whole * self.dims[top].stride;
            if left == 0 {
                break;
            }
        }
        pieces
    }

    /// The first `n` parts of `of` elements each, if all have the same layout: the first one, and
    /// the bytes from one to the next.
    pub fn parts(&self, n: i64, of: i64) -> Option<(Piece, i64)> {
        if n.checked_mul(of)? > self.elements() {
            return None;
        }
        let mut below = 1;
        for (top, dim) in self.dims.iter().enumerate() {
            let along = of / below;
            if of % below != 0 || along == 0 {
                return None;
            }
            // this many elements of the dimension are a part, and the parts are consecutive along
            // it
            if n * along <= dim.count {
                let mut dims = self.dims[..top].to_vec();
                dims.push(Dim {
                    count: along,
                    stride: dim.stride,
                });
                return Some((Piece { offset: 0, dims }, along * dim.stride));
            }
            below *= dim.count;
        }
        None
    }

    /// Offset of the element with an index.
    pub fn offset(&self, mut index: i64) -> i64 {
        let mut offset = 0;
        for dim in &self.dims {
            offset += index % dim.count * dim.stride;
            index /= dim.count;
        }
        offset
    }

    /// Calls `run` for each run of contiguous bytes in order: offset, bytes.
    pub fn runs(&self, mut run: impl FnMut(i64, i64)) {
        // the first dimension is one run if its elements touch
        let (length, outer) = match self.dims.split_first() {
            Some((first, rest)) if first.stride == self.element => {
                (first.count * self.element, rest)
            }
            _ => (self.element, &self.dims[..]),
        };
        if length == 0 || outer.iter().any(|dim| dim.count == 0) {
            return;
        }
        let mut at = [0i64; RANKS];
        let mut offset = 0;
        loop {
            run(offset, length);
            let mut d = 0;
            loop {
                let Some(dim) = outer.get(d) else { return };
                at[d] += 1;
                offset += dim.stride;
                if at[d] < dim.count {
                    break;
                }
                offset -= at[d] * dim.stride;
                at[d] = 0;
                d += 1;
            }
        }
    }
}

/// Layout of the elements of a datatype, in the terms of MPI 5.0, 5.1.7 and 5.1.8.
#[derive(Clone, Copy, Default, Debug)]
pub struct Span {
    /// Lower bound.
    pub lb: i64,
    /// Extent: bytes from one element to the next.
    pub extent: i64,
    /// The first byte.
    pub true_lb: i64,
    /// True extent: bytes from the first byte to the end of the last.
    pub true_extent: i64,
}

impl Span {
    /// How many of its elements an element of a section holds, if they fill it.
    pub fn per_element(&self, element: i64) -> Option<i64> {
        let end = self.true_lb + self.true_extent;
        let inside = self.lb == 0 && self.true_lb >= 0 && end <= self.extent;
        let fits = inside && self.extent > 0 && element % self.extent == 0;
        fits.then(|| element / self.extent)
    }

    /// Whether `n` elements, at least one, fit into this many bytes.
    pub fn lies_in(&self, n: i64, bytes: i64) -> bool {
        let last = self.extent.saturating_mul(n - 1);
        let begin = last.min(0).saturating_add(self.true_lb);
        let end = last.max(0).saturating_add(self.true_lb + self.true_extent);
        self.true_extent <= 0 || (begin >= 0 && end <= bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every element's offset, one by one.
    fn naive(dims: &[Dim]) -> Vec<i64> {
        let mut out = vec![0];
        for dim in dims {
            // the pattern so far repeats along this dimension
            out = (0..dim.count)
                .flat_map(|i| {
                    out.iter()
                        .map(move |at| at + i * dim.stride)
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        out
    }

    fn dims() -> impl Strategy<Value = Vec<Dim>> {
        let dim = (0i64..5, -40i64..40).prop_map(|(count, stride)| Dim { count, stride });
        prop::collection::vec(dim, 0..5)
    }

    /// Dimensions some of which can be merged, as those of arrays can.
    fn touching() -> impl Strategy<Value = (i64, Vec<Dim>)> {
        (1i64..9, prop::collection::vec((1i64..5, 1i64..4), 0..5)).prop_map(|(element, shape)| {
            let mut stride = element;
            let dims = shape.into_iter().map(|(count, gap)| {
                let dim = Dim { count, stride };
                stride *= count * gap.max(1);
                dim
            });
            (element, dims.collect())
        })
    }

    fn bytes_of(section: &Section) -> Vec<i64> {
        let mut out = Vec::new();
        section.runs(|offset, length| out.extend(offset..offset + length));
        out
    }

    proptest! {
        #[test]
        fn runs_are_the_bytes_of_all_elements(element in 1i64..9, dims in dims()) {
            let section = Section::new(element, dims.clone());
            let expected: Vec<i64> = naive(&dims).into_iter().flat_map(|at| at..at + element).collect();
            prop_assert_eq!(bytes_of(&section), expected);
        }

        #[test]
        fn joined_dimensions_are_the_same_bytes((element, dims) in touching()) {
            let section = Section::new(element, dims.clone());
            let expected: Vec<i64> = naive(&dims).into_iter().flat_map(|at| at..at + element).collect();
            prop_assert_eq!(section.bytes(), expected.len() as i64);
            let contiguous = expected.windows(2).all(|w| w[1] == w[0] + 1);
            prop_assert_eq!(section.is_contiguous(), contiguous);
            prop_assert_eq!(bytes_of(&section), expected);
        }

        #[test]
        fn the_first_elements_are_pieces(dims in dims(), n in 0i64..700) {
            let section = Section::new(1, dims.clone());
            let pieces = section.first(n);
            prop_assert!(pieces.len() <= section.dims.len().max(1));
            let found: Vec<i64> = pieces.iter().flat_map(|p| naive(&p.dims).into_iter().map(|at| at + p.offset)).collect();
            let expected: Vec<i64> = naive(&dims).into_iter().take(n as usize).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn parts_are_the_first_elements(dims in dims(), n in 1i64..9, of in 1i64..30) {
            let section = Section::new(1, dims.clone());
            let all = naive(&section.dims);
            if let Some((part, step)) = section.parts(n, of) {
                let found: Vec<i64> = (0..n)
                    .flat_map(|i| naive(&part.dims).into_iter().map(move |at| at + i * step))
                    .collect();
                prop_assert_eq!(found, &all[..(n * of) as usize]);
            }
        }

        #[test]
        fn whole_dimensions_are_parts(dims in dims(), upper in 0usize..5) {
            let section = Section::new(1, dims);
            if upper < section.dims.len() && section.elements() > 0 {
                let of = section.dims[..upper].iter().map(|dim| dim.count).product();
                prop_assert!(section.parts(section.dims[upper].count, of).is_some());
            }
        }

        #[test]
        fn elements_lie_in_bytes_that_have_all_of_theirs(
            (extent, true_lb) in (-9i64..9, -9i64..9), true_extent in 0i64..9, n in 1i64..9, bytes in 0i64..90
        ) {
            let span = Span { lb: 0, extent, true_lb, true_extent };
            let own = (0..n).flat_map(|i| (0..true_extent).map(move |at| i * extent + true_lb + at));
            let all = own.clone().all(|at| (0..bytes).contains(&at));
            prop_assert_eq!(span.lies_in(n, bytes), all);
            let large = Span { extent: i64::MAX / 2, true_extent: 1, ..span };
            prop_assert!(!large.lies_in(9, bytes));
        }

        #[test]
        fn an_element_lies_where_counting_finds_it(dims in dims()) {
            let section = Section::new(1, dims.clone());
            for (i, at) in naive(&dims).into_iter().enumerate() {
                prop_assert_eq!(section.offset(i as i64), at);
            }
        }
    }

    #[test]
    fn a_column_of_every_second_row() {
        // a(1:9:2, 2:3) of real(8) a(10, 4)
        let section = Section::new(
            8,
            [
                Dim {
                    count: 5,
                    stride: 16,
                },
                Dim {
                    count: 2,
                    stride: 80,
                },
            ],
        );
        assert!(!section.is_contiguous());
        // one column's elements end where those of the next begin
        assert_eq!(
            section.dims,
            [Dim {
                count: 10,
                stride: 16
            }]
        );
        assert_eq!(
            section.first(7),
            [Piece {
                offset: 0,
                dims: vec![Dim {
                    count: 7,
                    stride: 16
                }]
            }]
        );
    }
}
