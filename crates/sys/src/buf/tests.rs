//! Packing, unpacking and copying against byte-by-byte models.

use super::*;
use kw_core::layout::basic;
use proptest::prelude::*;

/// Displacements of the strategy's layouts stay within this distance of the base.
const REACH: i64 = 6000;

fn named() -> impl Strategy<Value = Layout> {
    (0..basic::NAMED.len()).prop_map(|i| Layout::named(&basic::NAMED[i]))
}

/// Layouts whose bytes are all different, so that unpacking has one result.
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

/// Memory with a pattern, and a typed buffer in its middle.
fn place(layout: &Layout, count: u64, seed: u8) -> (Buf, Buf) {
    let memory = Buf::alloc(2 * REACH as usize);
    let pattern: Vec<u8> = (0..2 * REACH)
        .map(|i| (i as u8).wrapping_mul(31) ^ seed)
        .collect();
    memory.write(0, &pattern);
    let typed = Buf::typed(
        memory.addr().offset(REACH),
        count,
        &Arc::new(layout.clone()),
    );
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn reads_and_writes_touch_the_right_bytes(l in layout(), count in 0u64..5, cut in any::<[u16; 2]>()) {
        let (memory, typed) = place(&l, count, 1);
        let at = positions(&l, count);
        prop_assert_eq!(typed.len(), at.len() as u64);
        let from = cut[0] as usize % (at.len() + 1);
        let n = cut[1] as usize % (at.len() + 3);
        let end = (from + n).min(at.len());

        let before = whole(&memory);
        let mut out = vec![0xee; n];
        prop_assert_eq!(typed.read(from as u64, &mut out), end - from);
        let expected: Vec<u8> = at[from..end].iter().map(|&p| before[p]).collect();
        prop_assert_eq!(&out[..end - from], &expected[..]);
        prop_assert!(out[end - from..].iter().all(|&b| b == 0xee));

        let data: Vec<u8> = (0..n).map(|i| i as u8 ^ 0x5a).collect();
        prop_assert_eq!(typed.write(from as u64, &data), end - from);
        let mut model = before;
        for (i, &p) in at[from..end].iter().enumerate() {
            model[p] = data[i];
        }
        prop_assert_eq!(whole(&memory), model);
    }

    #[test]
    fn typed_to_typed_copies_are_pack_then_unpack(
        a in layout(), b in layout(), counts in (0u64..5, 0u64..5), cut in any::<[u16; 3]>()
    ) {
        let (_source, from) = place(&a, counts.0, 7);
        let (memory, to) = place(&b, counts.1, 9);
        let (fa, ta) = (cut[0] as u64 % (from.len() + 1), cut[1] as u64 % (to.len() + 1));
        let len = cut[2] as u64 % (from.len() + 2);
        let (model_memory, model) = place(&b, counts.1, 9);
        let mut packed = vec![0; len as usize];
        let there = from.read(fa, &mut packed);
        let fitted = model.write(ta, &packed[..there]);
        prop_assert_eq!(from.copy_to(fa, &to, ta, len), fitted as u64);
        prop_assert_eq!(whole(&memory), whole(&model_memory));
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
        let (memory, typed) = place(&l, columns, 3);
        let at = positions(&l, columns);
        let from = cut[0] as usize % (at.len() + 1);
        let n = cut[1] as usize % (at.len() - from + 1);
        let before = whole(&memory);
        let mut out = vec![0; n];
        typed.read(from as u64, &mut out);
        let expected: Vec<u8> = at[from..from + n].iter().map(|&p| before[p]).collect();
        prop_assert_eq!(&out, &expected);
        let data: Vec<u8> = (0..n).map(|i| i as u8 ^ 0x5a).collect();
        typed.write(from as u64, &data);
        let mut model = before;
        for (i, &p) in at[from..from + n].iter().enumerate() {
            model[p] = data[i];
        }
        prop_assert_eq!(whole(&memory), model);
    }
}
