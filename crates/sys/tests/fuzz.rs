//! Fuzz target: datatypes of any numbers, and packing what they describe.

use kw_fuzz::config;
use kw_sys::buf::Buf;
use kw_types::layout::{Layout, Mismatch, Order, basic};
use proptest::prelude::*;
use std::sync::Arc;

/// Numbers as programs give them: mostly small, or any.
fn number() -> impl Strategy<Value = i64> {
    let large = &[
        i64::MAX,
        i64::MIN,
        1 << 32,
        -(1 << 32),
        i64::MAX / 8,
        1 << 62,
    ][..];
    prop_oneof![
        6 => -20i64..40,
        1 => prop::sample::select(large),
        1 => any::<i64>(),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    number().prop_map(|n| n.unsigned_abs())
}

#[derive(Clone, Debug)]
enum Recipe {
    Named(usize),
    Vector(u64, u64, i64, Box<Recipe>),
    Indexed(Vec<(i64, u64)>, Box<Recipe>),
    Struct(Vec<(i64, u64, Recipe)>),
    Resized(i64, i64, Box<Recipe>),
    Subarray(Vec<(i64, i64, i64)>, bool, Box<Recipe>),
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let named = (0..basic::NAMED.len()).prop_map(Recipe::Named);
    named.prop_recursive(4, 12, 3, |inner| {
        let list = prop::collection::vec((number(), count()), 0..4);
        let members = prop::collection::vec((number(), count(), inner.clone()), 0..3);
        let dims = prop::collection::vec((number(), number(), number()), 0..3);
        let boxed = inner.prop_map(Box::new);
        prop_oneof![
            (count(), count(), number(), boxed.clone())
                .prop_map(|(n, len, stride, of)| Recipe::Vector(n, len, stride, of)),
            (list, boxed.clone()).prop_map(|(blocks, of)| Recipe::Indexed(blocks, of)),
            members.prop_map(Recipe::Struct),
            (number(), number(), boxed.clone())
                .prop_map(|(lb, extent, of)| Recipe::Resized(lb, extent, of)),
            (dims, any::<bool>(), boxed).prop_map(|(d, c, of)| Recipe::Subarray(d, c, of)),
        ]
    })
}

impl Recipe {
    fn build(&self) -> Result<Layout, Mismatch> {
        match self {
            Recipe::Named(i) => Ok(Layout::named(&basic::NAMED[*i])),
            Recipe::Vector(n, len, stride, of) => of.build()?.hvector(*n, *len, *stride),
            Recipe::Indexed(blocks, of) => of.build()?.hindexed(blocks),
            Recipe::Struct(members) => {
                let of: Result<Vec<Layout>, Mismatch> =
                    members.iter().map(|m| m.2.build()).collect();
                let of = of?;
                let part = |(m, of): (&(i64, u64, Recipe), _)| (m.0, m.1, of);
                let parts: Vec<(i64, u64, &Layout)> = members.iter().zip(&of).map(part).collect();
                Layout::structure(&parts)
            }
            Recipe::Resized(lb, extent, of) => of.build()?.resized(*lb, *extent),
            Recipe::Subarray(dims, c, of) => {
                let order = if *c { Order::C } else { Order::Fortran };
                of.build()?.subarray(dims, order)
            }
        }
    }
}

/// Memory in which packing is tested, bytes to each side.
const REACH: i64 = 20_000;

/// Whether `count` elements are within [`REACH`].
fn is_near(layout: &Layout, count: u64) -> bool {
    let low = layout.true_lb();
    let high = low.saturating_add(layout.true_extent());
    let steps = layout.extent().saturating_mul(count as i64);
    let (low, high) = (
        low.saturating_add(steps.min(0)),
        high.saturating_add(steps.max(0)),
    );
    low >= -REACH && high <= REACH && layout.size() <= 100_000
}

proptest! {
    #![proptest_config(config())]

    /// A constructor refuses arguments that do not fit its numbers; the layouts that it makes
    /// describe themselves correctly.
    #[test]
    fn fuzz_datatype(recipe in recipe(), count in 0u64..3, cut in any::<(u16, u16)>()) {
        let layout = match recipe.build() {
            Ok(layout) if is_near(&layout, count) => layout,
            _ => return Ok(()),
        };
        let memory = Buf::alloc(2 * REACH as usize);
        let bytes: Vec<u8> = (0..2 * REACH).map(|i| (i * 31 + i / 256) as u8).collect();
        memory.write(0, &bytes);
        let typed = memory.typed_at(REACH, count, &Arc::new(layout.clone()));
        prop_assert_eq!(typed.len(), layout.size() * count);
        let mut runs = Vec::new();
        layout.for_each_run(count, 0, u64::MAX, &mut |at, len| {
            let at = (at + REACH) as usize;
            runs.extend_from_slice(&bytes[at..at + len as usize]);
        });
        // Any part of the packed data is that part of the runs.
        let from = cut.0 as usize % (runs.len() + 1);
        let n = (cut.1 as usize).min(runs.len() - from);
        let mut packed = vec![0; n];
        prop_assert_eq!(typed.read(from as u64, &mut packed), n);
        prop_assert_eq!(&packed[..], &runs[from..from + n]);
        // Unpacking the packed data changes nothing.
        typed.write(from as u64, &packed);
        let mut after = vec![0; bytes.len()];
        memory.read(0, &mut after);
        prop_assert!(after == bytes);
        let elements = layout.elements_in(layout.size());
        prop_assert_eq!(elements.and_then(|n| layout.bytes_of(n)), Some(layout.size()));
    }
}
