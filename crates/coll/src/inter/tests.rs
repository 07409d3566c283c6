//! Every collective between groups of 1 to 9 ranks, every root, with every algorithm that may run
//! its parts, on symbols.

use super::*;
use crate::algorithms::ALL;
use crate::check::{Memory, Symbol, World};

const SIZES: std::ops::RangeInclusive<u32> = 1..=9;

/// All pairs of sizes, either group in front.
fn sizes() -> impl Iterator<Item = [u32; 2]> {
    SIZES.flat_map(|a| SIZES.map(move |b| [a, b]))
}

/// Algorithms that can do the parts of a call, by turns.
fn choose(turn: usize) -> impl Fn(Coll, u64, &CallView) -> (&'static Algorithm, u32) {
    move |coll, _, call| {
        let able: Vec<_> = ALL
            .iter()
            .filter(|a| a.coll == coll && a.need.met(call))
            .collect();
        (able[turn % able.len()], [1, 2, 4, 16][turn % 4])
    }
}

fn memory(cells: Vec<Symbol>) -> Memory {
    Memory { cells, unit: 1 }
}

fn base(rank: u32, places: std::ops::Range<usize>) -> Vec<Symbol> {
    places.map(|i| Symbol::of(rank, i)).collect()
}

/// The combined contribution of `ranks` at each place.
fn folded(ranks: std::ops::Range<u32>, places: std::ops::Range<usize>) -> Vec<Symbol> {
    places.map(|i| Symbol::folded(ranks.clone(), i)).collect()
}

fn call(rank: u32, sizes: [u32; 2]) -> InterCallView<'static> {
    InterCallView {
        rank,
        sizes,
        role: Role::Idle,
        count: 0,
        bytes: 0,
        send: Blocks::NONE,
        recv: Blocks::NONE,
        commutative: true,
    }
}

/// Runs a call in which every rank sends symbols of its own and has `room(rank)` places to receive;
/// returns these.
fn run<'a>(
    emit: Emit,
    turn: usize,
    send: usize,
    room: &dyn Fn(u32) -> usize,
    asks: &dyn Fn(u32) -> InterCallView<'a>,
) -> Vec<Vec<Symbol>> {
    let first = asks(0);
    let n = first.sizes[0] + first.sizes[1];
    let ranks = (0..n)
        .map(|r| {
            let mut s = Schedule::default();
            emit(&asks(r), &choose(turn), &mut s);
            let own = base(r, 0..send);
            (s, vec![memory(own), memory(vec![Symbol::NEVER; room(r)])])
        })
        .collect();
    let out = World::new(ranks, first.commutative).run();
    out.into_iter().map(|m| m[1].cells.clone()).collect()
}

/// Every root: its number among all, and what each rank says.
fn roots(sizes: [u32; 2]) -> impl Iterator<Item = (u32, impl Fn(u32) -> Role)> {
    (0..sizes[0] + sizes[1]).map(move |root| {
        let side = move |r: u32| r >= sizes[0];
        let role = move |r: u32| match () {
            _ if r == root => Role::Root,
            _ if side(r) == side(root) => Role::Idle,
            _ => Role::With(if side(root) { root - sizes[0] } else { root }),
        };
        (root, role)
    })
}

/// Ranks of the group that `rank` is not in.
fn beyond(sizes: [u32; 2], rank: u32) -> std::ops::Range<u32> {
    if rank < sizes[0] {
        sizes[0]..sizes[0] + sizes[1]
    } else {
        0..sizes[0]
    }
}

#[test]
fn barriers_end() {
    for (sizes, turn) in sizes().flat_map(|s| (0..4).map(move |t| (s, t))) {
        run(barrier, turn, 0, &|_| 0, &|r| call(r, sizes));
    }
}

#[test]
fn bcast_brings_the_roots_data_to_the_other_group() {
    for (sizes, turn) in sizes().flat_map(|s| (0..3).map(move |t| (s, t))) {
        for (root, role) in roots(sizes) {
            let asks = |r| InterCallView {
                role: role(r),
                count: 7,
                ..call(r, sizes)
            };
            let ranks = (0..sizes[0] + sizes[1])
                .map(|r| {
                    let mut s = Schedule::default();
                    bcast(&asks(r), &choose(turn), &mut s);
                    let data = match role(r) {
                        Role::Root => base(r, 0..7),
                        _ => vec![Symbol::NEVER; 7],
                    };
                    (s, vec![memory(vec![]), memory(data)])
                })
                .collect();
            let out = World::new(ranks, true).run();
            let want = base(root, 0..7);
            for r in beyond(sizes, root) {
                assert_eq!(out[r as usize][1].cells, want, "{sizes:?} root={root} {r}");
            }
        }
    }
}

#[test]
fn gather_and_scatter_move_blocks_between_the_root_and_the_other_group() {
    for sizes in sizes() {
        for (root, role) in roots(sizes) {
            let many = beyond(sizes, root);
            let n = many.len() as u32;
            let each = |buf, each| Blocks::Even { buf, each };
            let asks = |r| InterCallView {
                role: role(r),
                send: each(SEND, 2),
                recv: each(RECV, 2),
                ..call(r, sizes)
            };
            let len = 2 * n as usize;
            let out = run(gather, 0, len, &|_| len, &asks);
            let want: Vec<_> = many.clone().flat_map(|r| base(r, 0..2)).collect();
            assert_eq!(out[root as usize], want, "{sizes:?} root={root}");
            let out = run(scatter, 0, len, &|_| 2, &asks);
            for (i, r) in many.enumerate() {
                let want = base(root, 2 * i..2 * i + 2);
                assert_eq!(out[r as usize], want, "{sizes:?} root={root} {r}");
            }
        }
    }
}

#[test]
fn all_get_the_blocks_of_the_other_group() {
    for sizes in sizes() {
        let asks = |r| InterCallView {
            send: Blocks::Even { buf: SEND, each: 2 },
            recv: Blocks::Even { buf: RECV, each: 2 },
            ..call(r, sizes)
        };
        let room = |r| 2 * beyond(sizes, r).len();
        let len = 2 * sizes[0].max(sizes[1]) as usize;
        let gathered = run(allgather, 0, len, &room, &asks);
        let dealt = run(alltoall, 0, len, &room, &asks);
        for r in 0..sizes[0] + sizes[1] {
            let i = if r < sizes[0] { r } else { r - sizes[0] } as usize;
            for (k, from) in beyond(sizes, r).enumerate() {
                let at = 2 * k..2 * k + 2;
                let same = base(from, 0..2);
                let own = base(from, 2 * i..2 * i + 2);
                assert_eq!(gathered[r as usize][at.clone()], same, "{sizes:?} {r}");
                assert_eq!(dealt[r as usize][at], own, "{sizes:?} {r}");
            }
        }
    }
}

#[test]
fn reductions_bring_one_groups_fold_to_the_other() {
    for (sizes, turn) in sizes().flat_map(|s| (0..6).map(move |t| (s, t))) {
        let commutative = turn % 2 == 0;
        for count in [0, 5usize] {
            let asks = |r| InterCallView {
                count: count as u64,
                commutative,
                ..call(r, sizes)
            };
            let out = run(allreduce, turn, count, &|_| count, &asks);
            for r in 0..sizes[0] + sizes[1] {
                let want = folded(beyond(sizes, r), 0..count);
                assert_eq!(out[r as usize], want, "{sizes:?} turn={turn} {r}");
            }
            for (root, role) in roots(sizes) {
                let asks = |r| InterCallView {
                    role: role(r),
                    ..asks(r)
                };
                let room = |r| if r == root { count } else { 0 };
                let out = run(reduce, turn, count, &room, &asks);
                let want = folded(beyond(sizes, root), 0..count);
                assert_eq!(out[root as usize], want, "{sizes:?} turn={turn} {root}");
            }
        }
    }
}

/// Unequal shares of `total` for `n` ranks, and where they begin.
fn shares(total: u64, n: u32) -> (Vec<u64>, Vec<i64>) {
    let mut counts: Vec<u64> = (0..n as u64).map(|i| i % 3).collect();
    let so_far: u64 = counts[..n as usize - 1].iter().sum();
    counts[n as usize - 1] = total - so_far;
    let at = (0..n as usize).map(|i| counts[..i].iter().sum::<u64>() as i64);
    (counts.clone(), at.collect())
}

#[test]
fn reduce_scatter_deals_the_other_groups_fold_out() {
    let total = 11;
    for (sizes, turn) in sizes().flat_map(|s| (0..6).map(move |t| (s, t))) {
        let parts = sizes.map(|n| shares(total, n));
        let of = |r: u32| &parts[(r >= sizes[0]) as usize];
        let nth = |r: u32| if r < sizes[0] { r } else { r - sizes[0] } as usize;
        let asks = |r: u32| InterCallView {
            count: total,
            commutative: turn % 2 == 0,
            send: Blocks::Listed {
                buf: SEND,
                counts: &of(r).0,
                at: &of(r).1,
            },
            ..call(r, sizes)
        };
        let room = |r: u32| of(r).0[nth(r)] as usize;
        let out = run(reduce_scatter, turn, total as usize, &room, &asks);
        for r in 0..sizes[0] + sizes[1] {
            let at = of(r).1[nth(r)] as usize;
            let want = folded(beyond(sizes, r), at..at + room(r));
            assert_eq!(out[r as usize], want, "{sizes:?} turn={turn} {r}");
        }
    }
}
