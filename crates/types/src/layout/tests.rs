//! The reference: random nested datatypes against a naive expansion of their typemaps.

use super::basic::{self, Named};
use super::*;
use proptest::prelude::*;

/// A datatype as a recipe.
#[derive(Clone, Debug)]
enum Recipe {
    Named(&'static Named),
    Contiguous(u64, Box<Recipe>),
    Hvector(u64, u64, i64, Box<Recipe>),
    Hindexed(Vec<(i64, u64)>, Box<Recipe>),
    Struct(Vec<(i64, u64, Recipe)>),
    Subarray(Vec<(i64, i64, i64)>, Order, Box<Recipe>),
    Darray(i64, i64, Vec<(i64, Distribution, i64)>, Order, Box<Recipe>),
    Resized(i64, i64, Box<Recipe>),
}

/// An entry of a typemap.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Entry {
    Data(Basic, i64),
    Lb(i64),
    Ub(i64),
}

impl Entry {
    fn shifted(self, by: i64) -> Entry {
        match self {
            Entry::Data(b, at) => Entry::Data(b, at + by),
            Entry::Lb(at) => Entry::Lb(at + by),
            Entry::Ub(at) => Entry::Ub(at + by),
        }
    }
}

/// Entries, and the bounds around all members with their padding.
#[derive(Clone, Debug, Default)]
struct Typemap(Vec<Entry>, Option<(i64, i64)>);

impl Typemap {
    fn data(&self) -> impl Iterator<Item = (Basic, i64)> + '_ {
        self.0.iter().filter_map(|e| match *e {
            Entry::Data(b, at) => Some((b, at)),
            _ => None,
        })
    }

    /// Lower bound and extent, from the definition (MPI 5.0, 5.1.7), where members keep their
    /// padding.
    fn bounds(&self) -> (i64, i64) {
        let lbs = self.0.iter().filter_map(|e| match e {
            Entry::Lb(at) => Some(*at),
            _ => None,
        });
        let ubs = self.0.iter().filter_map(|e| match e {
            Entry::Ub(at) => Some(*at),
            _ => None,
        });
        let (low, high) = self.1.unwrap_or((0, 0));
        let lb = lbs.min().unwrap_or(low);
        let align = self.data().map(|(b, _)| b.align()).max().unwrap_or(1) as i64;
        let extent = match ubs.max() {
            Some(ub) => ub - lb,
            None => (0..align)
                .map(|e| high - lb + e)
                .find(|x| x % align == 0)
                .unwrap(),
        };
        (lb, extent)
    }

    fn add(&mut self, of: &Typemap, n: u64, at: i64) {
        let (lb, extent) = of.bounds();
        for i in 0..n as i64 {
            if of.data().next().is_some() {
                let low = at + i * extent + lb;
                let (a, b) = self.1.unwrap_or((low, low + extent));
                self.1 = Some((a.min(low), b.max(low + extent)));
            }
            self.0
                .extend(of.0.iter().map(|e| e.shifted(at + i * extent)));
        }
    }

    fn bytes(&self) -> Vec<i64> {
        self.data()
            .flat_map(|(b, at)| at..at + b.size() as i64)
            .collect()
    }

    fn marked(mut self, lb: i64, ub: i64) -> Typemap {
        self.0.retain(|e| matches!(e, Entry::Data(..)));
        self.0.extend([Entry::Lb(lb), Entry::Ub(ub)]);
        self
    }
}

/// Every index of an array, first dimension fastest in Fortran's order, filtered, in order of
/// memory.
fn array(sizes: &[i64], order: Order, of: &Typemap, mine: &dyn Fn(usize, i64) -> bool) -> Typemap {
    let dims: Vec<usize> = match order {
        Order::Fortran => (0..sizes.len()).collect(),
        Order::C => (0..sizes.len()).rev().collect(),
    };
    let total: i64 = sizes.iter().product();
    let mut map = Typemap::default();
    let extent = of.bounds().1;
    for linear in 0..total {
        let mut left = linear;
        let chosen = dims.iter().all(|&d| {
            let index = left % sizes[d];
            left /= sizes[d];
            mine(d, index)
        });
        if chosen {
            map.add(of, 1, linear * extent);
        }
    }
    map.marked(0, total * extent)
}

fn naive(recipe: &Recipe) -> Typemap {
    let mut map = Typemap::default();
    match recipe {
        Recipe::Named(n) => match n.basic.pair() {
            None => {
                map.0.push(Entry::Data(n.basic, 0));
                map.1 = Some((0, n.basic.size() as i64));
            }
            Some((a, b, at)) => {
                map.0.extend([Entry::Data(a, 0), Entry::Data(b, at)]);
                map.1 = Some((0, at + b.size() as i64));
            }
        },
        Recipe::Contiguous(n, of) => map.add(&naive(of), *n, 0),
        Recipe::Hvector(n, len, stride, of) => {
            let of = naive(of);
            (0..*n as i64).for_each(|i| map.add(&of, *len, i * stride));
        }
        Recipe::Hindexed(blocks, of) => {
            let of = naive(of);
            blocks.iter().for_each(|(at, len)| map.add(&of, *len, *at));
        }
        Recipe::Struct(members) => members
            .iter()
            .for_each(|(at, len, of)| map.add(&naive(of), *len, *at)),
        Recipe::Subarray(dims, order, of) => {
            let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
            return array(&sizes, *order, &naive(of), &|d, i| {
                (dims[d].2..dims[d].2 + dims[d].1).contains(&i)
            });
        }
        Recipe::Darray(size, rank, dims, order, of) => {
            let _ = size;
            let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
            let place = |d: usize| {
                let below: i64 = dims[d + 1..].iter().map(|x| x.2).product();
                rank / below % dims[d].2
            };
            return array(&sizes, *order, &naive(of), &|d, i| {
                let (g, how, p) = dims[d];
                let block = match how {
                    Distribution::None => return true,
                    Distribution::Block(b) => b.unwrap_or((g + p - 1) / p),
                    Distribution::Cyclic(b) => b.unwrap_or(1),
                };
                i / block % p == place(d)
            });
        }
        Recipe::Resized(lb, extent, of) => return naive(of).marked(*lb, lb + extent),
    }
    map
}

fn build(recipe: &Recipe) -> Layout {
    match recipe {
        Recipe::Named(n) => Ok(Layout::named(n)),
        Recipe::Contiguous(n, of) => build(of).contiguous_of(*n),
        Recipe::Hvector(n, len, stride, of) => build(of).hvector(*n, *len, *stride),
        Recipe::Hindexed(blocks, of) => build(of).hindexed(blocks),
        Recipe::Struct(members) => {
            let built: Vec<Layout> = members.iter().map(|m| build(&m.2)).collect();
            let members: Vec<(i64, u64, &Layout)> = members
                .iter()
                .zip(&built)
                .map(|(m, l)| (m.0, m.1, l))
                .collect();
            Layout::structure(&members)
        }
        Recipe::Subarray(dims, order, of) => build(of).subarray(dims, *order),
        Recipe::Darray(size, rank, dims, order, of) => build(of).darray(*size, *rank, dims, *order),
        Recipe::Resized(lb, extent, of) => build(of).resized(*lb, *extent),
    }
    .unwrap()
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
}

fn dimension() -> impl Strategy<Value = (i64, i64, i64)> {
    (1i64..5).prop_flat_map(|size| {
        (1..=size)
            .prop_flat_map(move |sub| (0..=size - sub).prop_map(move |start| (size, sub, start)))
    })
}

fn share() -> impl Strategy<Value = (i64, Distribution, i64)> {
    (1i64..7, 1i64..4).prop_flat_map(|(global, processes)| {
        let enough = (global + processes - 1) / processes;
        prop_oneof![
            Just((global, Distribution::None, 1)),
            Just((global, Distribution::Block(None), processes)),
            (enough..enough + 3).prop_map(move |b| (
                global,
                Distribution::Block(Some(b)),
                processes
            )),
            Just((global, Distribution::Cyclic(None), processes)),
            (1i64..9).prop_map(move |b| (global, Distribution::Cyclic(Some(b)), processes)),
        ]
    })
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let leaf = (0..basic::NAMED.len()).prop_map(|i| Recipe::Named(&basic::NAMED[i]));
    leaf.prop_recursive(3, 12, 3, |inner| {
        let of = inner.clone().prop_map(Box::new);
        prop_oneof![
            (0u64..4, of.clone()).prop_map(|(n, of)| Recipe::Contiguous(n, of)),
            (0u64..4, 0u64..3, -20i64..60, of.clone())
                .prop_map(|(n, len, stride, of)| Recipe::Hvector(n, len, stride, of)),
            (
                prop::collection::vec((-30i64..80, 0u64..3), 0..4),
                of.clone()
            )
                .prop_map(|(blocks, of)| Recipe::Hindexed(blocks, of)),
            prop::collection::vec((-30i64..80, 0u64..3, inner), 0..4).prop_map(Recipe::Struct),
            (
                prop::collection::vec(dimension(), 1..3),
                order(),
                of.clone()
            )
                .prop_map(|(d, o, of)| Recipe::Subarray(d, o, of)),
            (
                prop::collection::vec(share(), 1..3),
                order(),
                any::<u32>(),
                of.clone()
            )
                .prop_map(|(d, o, rank, of)| {
                    let size: i64 = d.iter().map(|x| x.2).product();
                    Recipe::Darray(size, rank as i64 % size, d, o, of)
                }),
            (-20i64..20, -10i64..60, of).prop_map(|(lb, e, of)| Recipe::Resized(lb, e, of)),
        ]
    })
}

/// Displacements of bytes `from..to` of `count` elements, one by one.
fn bytes_of_runs(layout: &Layout, count: u64, from: u64, to: u64) -> Vec<i64> {
    let mut bytes = Vec::new();
    layout.for_each_run(count, from, to, &mut |at, len| {
        assert!(len > 0);
        bytes.extend(at..at + len as i64);
    });
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn layouts_agree_with_their_typemaps(recipe in recipe(), count in 0u64..4, cut in any::<[u16; 2]>()) {
        let map = naive(&recipe);
        prop_assume!(map.0.len() < 4000);
        let layout = build(&recipe);
        let bytes = map.bytes();
        prop_assert_eq!(layout.size(), bytes.len() as u64);
        prop_assert_eq!((layout.lb(), layout.extent()), map.bounds());
        let low = bytes.iter().min().copied().unwrap_or(0);
        let high = bytes.iter().max().map_or(0, |m| m + 1);
        prop_assert_eq!((layout.true_lb(), layout.true_extent()), (low, high - low));

        let mut all = Typemap::default();
        all.add(&map, count, 0);
        let stream = all.bytes();
        let total = stream.len() as u64;
        prop_assert_eq!(&bytes_of_runs(&layout, count, 0, total + 9), &stream);
        let a = cut[0] as u64 % (total + 1);
        let b = cut[1] as u64 % (total + 1);
        let (a, b) = (a.min(b), a.max(b));
        prop_assert_eq!(&bytes_of_runs(&layout, count, a, b), &stream[a as usize..b as usize]);
        if let Some(at) = layout.contiguous(count) {
            prop_assert!(stream.iter().enumerate().all(|(i, x)| *x == at + i as i64));
        }
    }

    #[test]
    fn signatures_agree_with_their_typemaps(recipe in recipe(), cut in any::<u16>()) {
        let map = naive(&recipe);
        prop_assume!(map.0.len() < 4000);
        let layout = build(&recipe);
        let elements: Vec<Basic> = map.data().map(|(b, _)| b).collect();
        let mut listed = Vec::new();
        layout.signature().for_each::<()>(&mut |e, n| {
            listed.extend((0..n).map(|_| e.basic));
            Ok(())
        }).unwrap();
        prop_assert_eq!(&listed, &elements);
        let alike = elements.windows(2).all(|w| w[0] == w[1]);
        if layout.signature().only.is_some() {
            prop_assert!(alike);
        }

        // Two elements of the datatype, cut anywhere.
        let mut ends = vec![0u64];
        for b in elements.iter().chain(&elements) {
            ends.push(ends[ends.len() - 1] + b.size());
        }
        let bytes = cut as u64 % (ends[ends.len() - 1] + 1);
        let whole = ends.iter().position(|e| *e == bytes).map(|i| i as u64);
        prop_assert_eq!(layout.elements_in(bytes), whole);
        let n = cut as u64 % ends.len() as u64;
        prop_assert_eq!(layout.bytes_of(n), Some(ends[n as usize]));
    }
}

fn named(handle: usize) -> Layout {
    Layout::named(basic::by_handle(handle).unwrap())
}

#[test]
fn programs_are_normalised() {
    let int = named(0x209);
    let dense = int.hvector(10, 3, 12).unwrap();
    assert_eq!(dense.contiguous(5), Some(0));
    let matrix = int.hvector(4, 1, 8).unwrap().hvector(5, 1, 32).unwrap();
    let vector = int.hvector(20, 1, 8).unwrap();
    assert_eq!(matrix.node, vector.node);
    let listed: Vec<(i64, u64)> = (0..20).map(|i| (i * 8, 1)).collect();
    assert_eq!(int.hindexed(&listed).unwrap().node, vector.node);
    let pair = Layout::structure(&[(0, 1, &int), (4, 2, &int)]).unwrap();
    assert_eq!(pair.contiguous(7), Some(0));
}

#[test]
fn a_chain_of_structures_keeps_its_bytes_however_it_is_folded() {
    let (double, int) = (named(0x214), named(0x209));
    let mut chain = Layout::structure(&[(0, 1, &double), (16, 1, &int)]).unwrap();
    let mut ends = vec![(0, 8), (16, 4)];
    for i in 0..200i64 {
        let at = 32 + i * 12;
        chain = Layout::structure(&[(0, 1, &chain), (at, 1, &int)]).unwrap();
        ends.push((at, 4));
    }
    let mut seen = Vec::new();
    chain.for_each_run(1, 0, chain.size(), &mut |at, len| seen.push((at, len)));
    assert_eq!(seen, ends);
    assert_eq!(chain.elements_in(8 + 4 * 100), Some(101));
    assert_eq!(chain.signature().bytes_of(101), 8 + 4 * 100);
}

#[test]
fn the_padding_of_a_member_counts_as_in_other_libraries() {
    // { (double, 0), (char, 8) } has the extent 16; with a char before it 17, and so 24. The letter
    // of 5.1 says 16, other libraries and programs that compute extents from those of members
    // (mpi4py's dtypes) say 24.
    let (double, char) = (named(0x214), named(0x243));
    let inner = Layout::structure(&[(0, 1, &double), (8, 1, &char)]).unwrap();
    assert_eq!(inner.extent(), 16);
    let outer = Layout::structure(&[(0, 1, &inner), (-1, 1, &char)]).unwrap();
    assert_eq!((outer.lb(), outer.extent()), (-1, 24));
}

#[test]
fn a_huge_vector_is_walked_from_its_middle_at_once() {
    let double = named(0x214);
    let huge = double.hvector(1 << 40, 1, 32).unwrap();
    let mut seen = Vec::new();
    let from = (1u64 << 42) + 3;
    huge.for_each_run(2, from, from + 10, &mut |at, len| seen.push((at, len)));
    let at = (1i64 << 39) * 32;
    assert_eq!(seen, [(at + 3, 5), (at + 32, 5)]);
    assert_eq!(huge.size(), 1 << 43);
}

#[test]
fn what_passes_63_bits_is_refused() {
    let double = named(0x214);
    assert_eq!(
        double.contiguous_of(1 << 60).unwrap_err(),
        Mismatch::TooLarge
    );
    let half = double.contiguous_of(1 << 59).unwrap();
    assert_eq!(half.contiguous_of(2).unwrap_err(), Mismatch::TooLarge);
    assert!(double.repeat(3, i64::MAX / 2 + 1).is_err());
    assert!(double.shifted(i64::MAX - 7).is_err());
    assert!(half.resized(i64::MAX, 1).is_err());
}
