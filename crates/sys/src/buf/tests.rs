//! Packing, unpacking and copying against byte-by-byte models.

use super::*;
use kw_types::layout::basic;
use proptest::prelude::*;

/// Displacements of the strategy's layouts stay within this distance of the base.
const REACH: i64 = 6000;

fn named() -> impl Strategy<Value = Layout> {
    (0..basic::NAMED.len()).prop_map(|i| Layout::named(&basic::NAMED[i]))
}

/// Layouts of all kinds. Elements of a few of them overlap: a structure takes its extent from the
/// members that were resized, and its other members may lie outside.
fn layout() -> impl Strategy<Value = Layout> {
    named().prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (1u64..5, 1u64..4, 0i64..3, inner.clone()).prop_map(|(n, len, gap, of)| {
                let stride = (of.true_extent() + of.extent() * len as i64) + 4 * gap;
                of.hvector(n, len, stride).unwrap()
            }),
            (
                prop::collection::vec((0i64..9, 0u64..3), 1..5),
                inner.clone()
            )
                .prop_map(|(blocks, of)| {
                    let mut at = -of.true_lb();
                    let placed: Vec<(i64, u64)> = blocks
                        .iter()
                        .map(|(gap, len)| {
                            at += gap;
                            let here = at;
                            at += of.extent() * *len as i64 + of.true_extent();
                            (here, *len)
                        })
                        .collect();
                    of.hindexed(&placed).unwrap()
                }),
            // Many blocks of one length at uneven places.
            (
                prop::collection::vec(0i64..9, 9..14),
                1u64..3,
                inner.clone()
            )
                .prop_map(|(gaps, len, of)| {
                    let mut at = -of.true_lb();
                    let step = of.extent() * (len as i64 - 1) + of.true_extent();
                    let placed: Vec<(i64, u64)> = gaps
                        .iter()
                        .map(|gap| {
                            at += gap + step;
                            (at, len)
                        })
                        .collect();
                    of.hindexed(&placed).unwrap()
                }),
            (inner.clone(), inner.clone(), 0i64..5).prop_map(|(a, b, gap)| {
                let at = a.true_lb() + a.true_extent() + gap - b.true_lb();
                Layout::structure(&[(0, 1, &a), (at, 1, &b)]).unwrap()
            }),
            (inner.clone(), 0i64..9).prop_map(|(of, gap)| {
                let extent = of.true_extent() + gap;
                of.resized(of.true_lb(), extent).unwrap()
            }),
        ]
        .prop_filter("small", |l| {
            l.true_extent() < 900 && l.true_lb().abs() < 900 && l.extent() < 900
        })
    })
}

/// Bytes of which neighbours, and those 256 apart, are different.
fn pattern(len: usize, seed: u8) -> Vec<u8> {
    let byte = |i: usize| ((i + i / 256) as u8).wrapping_mul(31) ^ seed;
    (0..len).map(byte).collect()
}

/// Memory with a pattern, and a typed buffer in its middle.
fn place(layout: &Layout, count: u64, seed: u8) -> (Buf, Buf) {
    let memory = Buf::alloc(2 * REACH as usize);
    memory.write(0, &pattern(2 * REACH as usize, seed));
    let typed = memory.typed_at(REACH, count, &Arc::new(layout.clone()));
    (memory, typed)
}

fn whole(memory: &Buf) -> Vec<u8> {
    let mut all = vec![0; memory.len() as usize];
    memory.read(0, &mut all);
    all
}

/// Positions in `place`'s memory of the packed stream.
fn positions(layout: &Layout, count: u64) -> Vec<usize> {
    let mut all = Vec::new();
    layout.for_each_run(count, 0, u64::MAX, &mut |at, len| {
        all.extend((at..at + len as i64).map(|x| (x + REACH) as usize))
    });
    all
}

/// Result of writing `data` to the positions `at` of `memory`.
///
/// A byte that `at` names more than once ends with one of the values written to it; which one is
/// not defined (to receive so is erroneous: MPI 5.0, 5.1.11), thus it is the one that is in
/// `after`, if that is one of them.
fn written(mut memory: Vec<u8>, at: &[usize], data: &[u8], after: &[u8]) -> Vec<u8> {
    let mut seen = vec![false; memory.len()];
    for (&p, &value) in at.iter().zip(data) {
        if !seen[p] || after[p] == value {
            memory[p] = value;
        }
        seen[p] = true;
    }
    memory
}

/// Checks that two byte strings are equal; if not, the error names the first difference.
fn same(is: &[u8], expected: &[u8]) -> Result<(), TestCaseError> {
    let first = || is.iter().zip(expected).take_while(|(a, b)| a == b).count();
    prop_assert!(
        is == expected,
        "first difference at byte {}, lengths {} and {}",
        first(),
        is.len(),
        expected.len()
    );
    Ok(())
}

/// Reads and then writes `n` bytes (of which some may not exist) of `count` elements.
fn check(l: &Layout, count: u64, from: usize, n: usize) -> Result<(), TestCaseError> {
    let (memory, typed) = place(l, count, 1);
    let at = positions(l, count);
    prop_assert_eq!(typed.len(), at.len() as u64);
    let at = &at[from..(from + n).min(at.len())];

    let before = whole(&memory);
    let mut out = vec![0xee; n];
    prop_assert_eq!(typed.read(from as u64, &mut out), at.len());
    let mut expected: Vec<u8> = at.iter().map(|&p| before[p]).collect();
    expected.resize(n, 0xee);
    same(&out, &expected)?;

    let data = pattern(n, 0x5a);
    prop_assert_eq!(typed.write(from as u64, &data), at.len());
    let after = whole(&memory);
    same(&after, &written(before, at, &data, &after))
}

proptest! {
    #[test]
    fn reads_and_writes_touch_the_right_bytes(l in layout(), count in 0u64..5, cut in any::<[u16; 2]>()) {
        let len = (l.size() * count) as usize;
        check(&l, count, cut[0] as usize % (len + 1), cut[1] as usize % (len + 3))?;
    }

    #[test]
    fn typed_to_typed_copies_are_pack_then_unpack(
        a in layout(), b in layout(), counts in (0u64..5, 0u64..5), cut in any::<[u16; 3]>()
    ) {
        let (_source, from) = place(&a, counts.0, 7);
        let (memory, to) = place(&b, counts.1, 9);
        let (fa, ta) = (cut[0] as u64 % (from.len() + 1), cut[1] as u64 % (to.len() + 1));
        let len = cut[2] as u64 % (from.len() + 2);
        let mut packed = vec![0; len as usize];
        let there = from.read(fa, &mut packed);
        let at = &positions(&b, counts.1)[ta as usize..];
        let fitted = there.min(at.len());
        let before = whole(&memory);
        prop_assert_eq!(from.copy_to(fa, &to, ta, len), fitted as u64);
        let after = whole(&memory);
        same(&after, &written(before, at, &packed[..fitted], &after))?;
    }
}

proptest! {
    #[test]
    fn transpositions_touch_the_right_bytes(
        rows in 1u64..37, columns in 1u64..20, width in 0usize..4, cut in any::<[u16; 2]>()
    ) {
        // Columns of a matrix of `rows` lines, 160 bytes each, one after the other.
        let of = Layout::named(basic::by_handle([0x240, 0x209, 0x214, 0x216][width]).unwrap());
        let columns = columns.min(160 / of.size());
        let column = of.hvector(rows, 1, 160).unwrap();
        let l = column.resized(0, of.extent()).unwrap();
        let len = (l.size() * columns) as usize;
        let from = cut[0] as usize % (len + 1);
        check(&l, columns, from, cut[1] as usize % (len - from + 1))?;
    }
}

/// Records shorter than their data, whose members are copied one after the other through all
/// records: a byte in two records does not end with the last record's value.
#[test]
fn overlapping_records_read_exactly_and_keep_a_written_value() {
    let short = Layout::named(basic::by_handle(0x208).unwrap());
    let scattered = short.hindexed(&[(0, 2), (6, 1), (10, 1)]).unwrap();
    let int = Layout::named(basic::by_handle(0x209).unwrap());
    let resized = int.hvector(8, 1, 4).unwrap().resized(0, 32).unwrap();
    let record = Layout::structure(&[(0, 1, &scattered), (12, 1, &resized)]).unwrap();
    assert_eq!(
        (record.size(), record.true_extent(), record.extent()),
        (40, 44, 32)
    );
    for (from, n) in [(0, 160), (0, 162), (3, 150), (41, 119)] {
        check(&record, 4, from, n).unwrap();
    }
}

proptest! {
    #[test]
    fn memory_is_shared_where_some_byte_is(
        a in layout(), b in layout(), counts in (0u64..4, 0u64..4), shift in 0usize..200, rows in any::<(bool, bool)>()
    ) {
        let make = |layout: &Layout, count: u64, at: usize, row: bool| match row {
            true => Buf::bytes(Addr(at), count * layout.size()),
            false => Buf::with_types(Addr(at), count, &Arc::new(layout.clone())),
        };
        let base = 1 << 30;
        let (a, b) = (make(&a, counts.0, base, rows.0), make(&b, counts.1, base + shift, rows.1));
        let bytes = |buf: &Buf| {
            let mut all = std::collections::HashSet::new();
            buf.runs(0, buf.len(), &mut |at, n| all.extend(at..at + n));
            all
        };
        let shared = !bytes(&a).is_disjoint(&bytes(&b));
        prop_assert_eq!(a.shares_memory(&b), shared);
        prop_assert_eq!(b.shares_memory(&a), shared);
    }
}

proptest! {
    #[test]
    fn a_packed_copy_has_the_data_and_its_types(layout in layout(), count in 0u64..4) {
        use kw_proto::endpoint::Memory;
        let (memory, _) = place(&layout, count, 5);
        let at = memory.contiguous().unwrap() + REACH as usize;
        let typed = Buf::with_types(Addr(at), count, &Arc::new(layout.clone()));
        let mut data = vec![0; typed.len() as usize];
        typed.read(0, &mut data);
        for types in [false, true] {
            let copy = typed.packed(types);
            let mut copied = vec![0; data.len()];
            prop_assert_eq!(copy.read(0, &mut copied), data.len());
            same(&copied, &data)?;
            let known = if types { typed.signature() } else { 0 };
            prop_assert_eq!(copy.signature(), known);
            prop_assert_eq!(typed.mismatch(copy.signature(), copy.len()), None);
            prop_assert_eq!(copy.contiguous().is_some(), !types);
        }
    }
}

#[test]
fn a_row_is_copied_out_and_back_and_never_beyond_its_buffer() {
    for (len, stride) in [(1, 3), (4, 4), (5, 9), (64, 128)] {
        let (n, at) = (7, 2);
        let row = Row { at, len, stride, n };
        let bytes: Vec<u8> = (0..1024).map(|i| (i * 7 % 251) as u8).collect();
        let (memory, packed, back) = (Buf::alloc(1024), Buf::alloc(500), Buf::alloc(1024));
        memory.write(0, &bytes);
        memory.copy_row_to(row, &packed, 3);
        back.copy_row_from(row, &packed, 3);
        let (mut out, mut again) = (vec![0; (len * n) as usize], vec![0; 1024]);
        packed.read(3, &mut out);
        back.read(0, &mut again);
        let inside = |i: usize| {
            let i = i as u64;
            i >= at && (i - at) / stride < n && (i - at) % stride < len
        };
        let wanted: Vec<u8> = (0..1024).filter(|&i| inside(i)).map(|i| bytes[i]).collect();
        assert_eq!(out, wanted);
        let whole = |i: usize| if inside(i) { bytes[i] } else { 0 };
        assert!((0..1024).all(|i| again[i] == whole(i)));
        let beyond = Row {
            at: 1024 - 6 * stride - len + 1,
            ..row
        };
        let panics =
            |copy: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(copy)).is_err();
        assert!(panics(&|| memory.copy_row_to(beyond, &packed, 0)));
        assert!(panics(&|| memory.copy_row_from(row, &packed, 500)));
    }
}
