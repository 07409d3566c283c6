//! Every algorithm, for every process count from 1 to 33, every root of small ones, with and without MPI_IN_PLACE.

use super::algorithms::{ALL, Algorithm};
use super::check::{Memory, Symbol, Symbols, World};
use super::{Ask, Blocks, Coll, RECV, SEND, Schedule};

const SIZES: std::ops::RangeInclusive<u32> = 1..=33;

/// Symbols in a unit of the send and of the receive buffer: blocks of 6 symbols are 3 units here, 2 units there.
const UNITS: (usize, usize) = (2, 3);

fn of(coll: Coll) -> impl Iterator<Item = &'static Algorithm> {
    ALL.iter().filter(move |a| a.coll == coll)
}

fn roots(n: u32) -> Vec<u32> {
    if n <= 9 {
        (0..n).collect()
    } else {
        vec![0, 1, n / 2, n - 1]
    }
}

fn emit(a: &Algorithm, ask: &Ask) -> Schedule {
    let mut s = Schedule::default();
    (a.emit)(ask, &mut s);
    s
}

fn base(symbols: &mut Symbols, rank: u32, len: usize) -> Vec<Symbol> {
    (0..len).map(|i| symbols.base(rank, i)).collect()
}

/// Runs `a` on `n` ranks; `memory(rank)` gives the buffers, `ask(rank)` the call.
fn world<'a>(
    a: &Algorithm,
    n: u32,
    symbols: &mut Symbols,
    commutative: bool,
    ask: &dyn Fn(u32) -> Ask<'a>,
    memory: &mut dyn FnMut(&mut Symbols, u32) -> Vec<Memory>,
) -> Vec<Vec<Memory>> {
    let ranks = (0..n)
        .map(|r| (emit(a, &ask(r)), memory(symbols, r)))
        .collect();
    World::new(ranks, symbols, commutative).run()
}

fn plain(cells: Vec<Symbol>) -> Memory {
    Memory { cells, unit: 1 }
}

/// A number of pieces for data of that length: more than it has units, fewer, or one.
fn pieces(count: u64) -> u32 {
    1 + (count % 6) as u32
}

fn fans(coll: Coll) -> &'static [u32] {
    if coll == Coll::Barrier {
        &[1, 2, 4, 16]
    } else {
        &[4]
    }
}

#[test]
fn barriers_let_nobody_go_before_all_have_come() {
    // With synchronous sends a schedule that ends has matched all messages; that everybody hears of everybody is checked
    // on the messages as a graph: what a rank knows when it sends flows to the receiver.
    for a in of(Coll::Barrier) {
        for (n, &fan) in SIZES.flat_map(|n| fans(a.coll).iter().map(move |f| (n, f))) {
            let mut symbols = Symbols::default();
            let ask = |r| Ask {
                fan,
                ..Ask::new(r, n)
            };
            world(a, n, &mut symbols, true, &ask, &mut |_, _| vec![]);
            let schedules: Vec<_> = (0..n).map(|r| emit(a, &ask(r))).collect();
            assert!(all_know_all(&schedules), "{} n={n} fan={fan}", a.name);
        }
    }
}

/// Runs the schedules with knowledge as data: a send carries what its rank knows, a fence takes in what came.
fn all_know_all(schedules: &[Schedule]) -> bool {
    use super::Step;
    let n = schedules.len();
    let mut know: Vec<u64> = (0..n).map(|r| 1 << r).collect();
    let mut pc = vec![0; n];
    let mut wire: std::collections::HashMap<(usize, usize), std::collections::VecDeque<u64>> =
        Default::default();
    let mut want: Vec<Vec<usize>> = vec![vec![]; n];
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for me in 0..n {
            while pc[me] <= schedules[me].steps.len() {
                match schedules[me].steps.get(pc[me]) {
                    Some(Step::Send { to, .. }) => wire
                        .entry((me, *to as usize))
                        .or_default()
                        .push_back(know[me]),
                    Some(Step::Recv { from, .. }) => want[me].push(*from as usize),
                    Some(Step::Fence) | None => {
                        let ready = want[me]
                            .iter()
                            .all(|&f| wire.get(&(f, me)).is_some_and(|q| !q.is_empty()));
                        if !ready {
                            break;
                        }
                        for from in std::mem::take(&mut want[me]) {
                            know[me] |= wire
                                .get_mut(&(from, me))
                                .and_then(|q| q.pop_front())
                                .unwrap_or(0);
                        }
                    }
                    other => panic!("a barrier has no {other:?}"),
                }
                pc[me] += 1;
                moved = true;
            }
        }
    }
    know.iter().all(|&k| k.count_ones() as usize == n)
}

#[test]
fn bcast_brings_the_roots_data_to_all() {
    for a in of(Coll::Bcast) {
        for n in SIZES {
            for root in roots(n) {
                for count in [0, 1, 5, 64, 67u64] {
                    let mut symbols = Symbols::default();
                    let ask = |r| Ask {
                        root,
                        count,
                        fan: pieces(count),
                        ..Ask::new(r, n)
                    };
                    let want = base(&mut symbols, root, count as usize);
                    let out = world(a, n, &mut symbols, true, &ask, &mut |sy, r| {
                        let cells = if r == root {
                            base(sy, r, count as usize)
                        } else {
                            vec![0; count as usize]
                        };
                        vec![plain(vec![]), plain(cells)]
                    });
                    for (r, m) in out.iter().enumerate() {
                        assert_eq!(m[1].cells, want, "{} n={n} root={root} rank={r}", a.name);
                    }
                }
            }
        }
    }
}

/// The list of contributions of ranks `from..to` at each place.
fn folded(
    symbols: &mut Symbols,
    ranks: std::ops::Range<u32>,
    places: std::ops::Range<usize>,
) -> Vec<Symbol> {
    places
        .map(|i| symbols.of(ranks.clone().map(|r| r << 16 | i as u32).collect()))
        .collect()
}

fn reduction(coll: Coll, want: &dyn Fn(&mut Symbols, u32, u32, u32, usize) -> Option<Vec<Symbol>>) {
    for (a, n) in of(coll).flat_map(|a| SIZES.map(move |n| (a, n))) {
        let roots = if coll == Coll::Reduce {
            roots(n)
        } else {
            vec![0]
        };
        for (root, commutative) in roots.into_iter().flat_map(|r| [(r, true), (r, false)]) {
            for (count, in_place) in [(0, false), (1, false), (3, true), (41, false), (41, true)] {
                let here = |r: u32| in_place && (coll != Coll::Reduce || r == root);
                let ask = |r| Ask {
                    root,
                    count,
                    commutative,
                    in_place: here(r),
                    fan: pieces(count),
                    ..Ask::new(r, n)
                };
                if !a.need.met(&ask(0)) {
                    continue;
                }
                let mut symbols = Symbols::default();
                let len = count as usize;
                let out = world(a, n, &mut symbols, commutative, &ask, &mut |sy, r| {
                    let data = base(sy, r, len);
                    let has_recv = coll != Coll::Reduce || r == root;
                    let empty = vec![0; if has_recv { len } else { 0 }];
                    if here(r) {
                        vec![plain(vec![]), plain(data)]
                    } else {
                        vec![plain(data), plain(empty)]
                    }
                });
                for r in 0..n {
                    if let Some(want) = want(&mut symbols, r, n, root, len) {
                        let got = &out[r as usize][1].cells;
                        assert_eq!(
                            got, &want,
                            "{} n={n} root={root} rank={r} count={count} in_place={in_place}",
                            a.name
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn reduce_folds_in_order_at_the_root() {
    reduction(Coll::Reduce, &|sy, r, n, root, len| {
        (r == root).then(|| folded(sy, 0..n, 0..len))
    });
}

#[test]
fn allreduce_folds_in_order_everywhere() {
    reduction(Coll::Allreduce, &|sy, _, n, _, len| {
        Some(folded(sy, 0..n, 0..len))
    });
}

#[test]
fn scan_folds_up_to_each_rank() {
    reduction(Coll::Scan, &|sy, r, _, _, len| {
        Some(folded(sy, 0..r + 1, 0..len))
    });
}

#[test]
fn exscan_folds_below_each_rank() {
    reduction(Coll::Exscan, &|sy, r, _, _, len| {
        (r > 0).then(|| folded(sy, 0..r, 0..len))
    });
}

#[test]
fn reduce_scatter_gives_each_rank_its_block() {
    for (a, n) in of(Coll::ReduceScatter).flat_map(|a| SIZES.map(move |n| (a, n))) {
        for (kind, commutative, in_place) in (0..6).flat_map(|k| {
            [
                (k, true, false),
                (k, false, false),
                (k, true, true),
                (k, false, true),
            ]
        }) {
            let counts: Vec<u64> = (0..n as u64)
                .map(|r| [2, (r * 3) % 5, (r == 1) as u64][kind % 3])
                .collect();
            let at: Vec<i64> = (0..n as usize)
                .map(|r| counts[..r].iter().sum::<u64>() as i64)
                .collect();
            let total: u64 = counts.iter().sum();
            let buf = if in_place { RECV } else { SEND };
            let send = Blocks::Listed {
                buf,
                counts: &counts,
                at: &at,
            };
            let ask = |r| Ask {
                count: total,
                commutative,
                in_place,
                send,
                fan: if kind < 3 { 2 } else { 64 },
                ..Ask::new(r, n)
            };
            if !a.need.met(&ask(0)) {
                continue;
            }
            let mut symbols = Symbols::default();
            let out = world(a, n, &mut symbols, commutative, &ask, &mut |sy, r| {
                let data = base(sy, r, total as usize);
                let mine = counts[r as usize] as usize;
                if in_place {
                    vec![plain(vec![]), plain(data)]
                } else {
                    vec![plain(data), plain(vec![0; mine])]
                }
            });
            for r in 0..n as usize {
                let from = at[r] as usize;
                let want = folded(&mut symbols, 0..n, from..from + counts[r] as usize);
                assert_eq!(
                    out[r][1].cells[..want.len()],
                    want,
                    "{} n={n} rank={r} in_place={in_place}",
                    a.name
                );
            }
        }
    }
}

/// A call that moves blocks: which blocks each rank has and wants, as `(from, index)` of 6 symbols.
fn blocks_of(symbols: &mut Symbols, from: u32, indices: impl Iterator<Item = u32>) -> Vec<Symbol> {
    indices
        .flat_map(|i| (0..6).map(move |k| i as usize * 6 + k))
        .map(|p| symbols.base(from, p))
        .collect()
}

fn unit(cells: Vec<Symbol>, unit: usize) -> Memory {
    Memory { cells, unit }
}

fn even(each: u64) -> (Blocks<'static>, Blocks<'static>) {
    (
        Blocks::Even {
            buf: SEND,
            each: 3 * each,
        },
        Blocks::Even {
            buf: RECV,
            each: 2 * each,
        },
    )
}

#[test]
fn gather_collects_blocks_in_order() {
    for (a, n) in of(Coll::Gather).flat_map(|a| SIZES.map(move |n| (a, n))) {
        for (root, in_place) in roots(n).into_iter().flat_map(|r| [(r, false), (r, true)]) {
            let (send, recv) = even(1);
            let ask = |r| Ask {
                root,
                block_bytes: 6,
                send,
                recv,
                in_place: in_place && r == root,
                ..Ask::new(r, n)
            };
            let mut symbols = Symbols::default();
            let out = world(a, n, &mut symbols, true, &ask, &mut |sy, r| {
                let own = blocks_of(sy, r, 0..1);
                let mut all = vec![0; if r == root { 6 * n as usize } else { 0 }];
                if in_place && r == root {
                    all[6 * r as usize..][..6].copy_from_slice(&own);
                    return vec![unit(vec![], UNITS.0), unit(all, UNITS.1)];
                }
                vec![unit(own, UNITS.0), unit(all, UNITS.1)]
            });
            let want: Vec<Symbol> = (0..n)
                .flat_map(|r| blocks_of(&mut symbols, r, 0..1))
                .collect();
            assert_eq!(
                out[root as usize][1].cells, want,
                "{} n={n} root={root} in_place={in_place}",
                a.name
            );
        }
    }
}

#[test]
fn scatter_deals_blocks_out() {
    for (a, n) in of(Coll::Scatter).flat_map(|a| SIZES.map(move |n| (a, n))) {
        for (root, in_place) in roots(n).into_iter().flat_map(|r| [(r, false), (r, true)]) {
            let (send, recv) = even(1);
            let ask = |r| Ask {
                root,
                block_bytes: 6,
                send,
                recv,
                in_place: in_place && r == root,
                ..Ask::new(r, n)
            };
            let mut symbols = Symbols::default();
            let out = world(a, n, &mut symbols, true, &ask, &mut |sy, r| {
                let all = if r == root {
                    blocks_of(sy, root, 0..n)
                } else {
                    vec![]
                };
                vec![
                    unit(all, UNITS.0),
                    unit(vec![0; if in_place && r == root { 0 } else { 6 }], UNITS.1),
                ]
            });
            for r in (0..n).filter(|&r| !(in_place && r == root)) {
                let want = blocks_of(&mut symbols, root, r..r + 1);
                assert_eq!(
                    out[r as usize][1].cells, want,
                    "{} n={n} root={root} rank={r}",
                    a.name
                );
            }
        }
    }
}

#[test]
fn allgather_collects_blocks_everywhere() {
    for (a, n) in of(Coll::Allgather).flat_map(|a| SIZES.map(move |n| (a, n))) {
        for (in_place, fan) in [(false, 2), (true, 2), (false, 64), (true, 64)] {
            let (send, recv) = even(1);
            let ask = |r| Ask {
                block_bytes: 6,
                send,
                recv,
                in_place,
                fan,
                ..Ask::new(r, n)
            };
            if !a.need.met(&ask(0)) {
                continue;
            }
            let mut symbols = Symbols::default();
            let out = world(a, n, &mut symbols, true, &ask, &mut |sy, r| {
                let own = blocks_of(sy, r, 0..1);
                let mut all = vec![0; 6 * n as usize];
                if in_place {
                    all[6 * r as usize..][..6].copy_from_slice(&own);
                }
                vec![
                    unit(if in_place { vec![] } else { own }, UNITS.0),
                    unit(all, UNITS.1),
                ]
            });
            let want: Vec<Symbol> = (0..n)
                .flat_map(|r| blocks_of(&mut symbols, r, 0..1))
                .collect();
            for (r, m) in out.iter().enumerate() {
                assert_eq!(
                    m[1].cells, want,
                    "{} n={n} rank={r} in_place={in_place}",
                    a.name
                );
            }
        }
    }
}

#[test]
fn alltoall_turns_rows_into_columns() {
    for (a, n) in of(Coll::Alltoall).flat_map(|a| SIZES.map(move |n| (a, n))) {
        for in_place in [false, true] {
            let (send, recv) = even(1);
            let ask = |r| Ask {
                block_bytes: 6,
                send,
                recv,
                in_place,
                ..Ask::new(r, n)
            };
            if !a.need.met(&ask(0)) {
                continue;
            }
            let mut symbols = Symbols::default();
            let out = world(a, n, &mut symbols, true, &ask, &mut |sy, r| {
                let own = blocks_of(sy, r, 0..n);
                if in_place {
                    return vec![unit(vec![], UNITS.0), unit(own, UNITS.1)];
                }
                vec![unit(own, UNITS.0), unit(vec![0; 6 * n as usize], UNITS.1)]
            });
            for me in 0..n {
                let want: Vec<Symbol> = (0..n)
                    .flat_map(|r| blocks_of(&mut symbols, r, me..me + 1))
                    .collect();
                assert_eq!(
                    out[me as usize][1].cells, want,
                    "{} n={n} rank={me} in_place={in_place}",
                    a.name
                );
            }
        }
    }
}

#[test]
fn unequal_blocks_go_where_the_caller_says() {
    // Each block lies in reverse order with a gap; the length of block (from, to) depends on both.
    for (a, n) in of(Coll::Alltoall)
        .filter(|a| a.need == super::algorithms::Need::Apart)
        .flat_map(|a| SIZES.map(move |n| (a, n)))
    {
        let len = |from: u32, to: u32| ((from * 2 + to) % 4) as u64;
        let send: Vec<Vec<u64>> = (0..n)
            .map(|r| (0..n).map(|to| len(r, to)).collect())
            .collect();
        let recv: Vec<Vec<u64>> = (0..n)
            .map(|r| (0..n).map(|from| len(from, r)).collect())
            .collect();
        let at: Vec<i64> = (0..n as i64).rev().map(|i| i * 5).collect();
        let ask = |r: u32| Ask {
            send: Blocks::Listed {
                buf: SEND,
                counts: &send[r as usize],
                at: &at,
            },
            recv: Blocks::Listed {
                buf: RECV,
                counts: &recv[r as usize],
                at: &at,
            },
            ..Ask::new(r, n)
        };
        let mut symbols = Symbols::default();
        let out = world(a, n, &mut symbols, true, &ask, &mut |sy, r| {
            vec![
                plain(base(sy, r, 5 * n as usize)),
                plain(vec![0; 5 * n as usize]),
            ]
        });
        for (me, from) in (0..n).flat_map(|me| (0..n).map(move |from| (me, from))) {
            let (k, w) = (len(from, me) as usize, at[from as usize] as usize);
            let want: Vec<Symbol> = (0..k)
                .map(|i| symbols.base(from, at[me as usize] as usize + i))
                .collect();
            assert_eq!(
                out[me as usize][1].cells[w..w + k],
                want,
                "{} n={n} {from}->{me}",
                a.name
            );
        }
    }
}

#[test]
fn allgatherv_takes_unequal_and_empty_blocks() {
    for (a, n) in of(Coll::Allgather).flat_map(|a| SIZES.map(move |n| (a, n))) {
        let counts: Vec<u64> = (0..n as u64).map(|r| r * 2 % 3).collect();
        let at: Vec<i64> = (0..n as i64).rev().map(|i| i * 4).collect();
        let mine: Vec<[u64; 1]> = counts.iter().map(|&c| [c]).collect();
        let ask = |r: u32| Ask {
            send: Blocks::Listed {
                buf: SEND,
                counts: &mine[r as usize],
                at: &[0],
            },
            recv: Blocks::Listed {
                buf: RECV,
                counts: &counts,
                at: &at,
            },
            ..Ask::new(r, n)
        };
        if !a.need.met(&ask(0)) {
            continue;
        }
        let mut symbols = Symbols::default();
        let out = world(a, n, &mut symbols, true, &ask, &mut |sy, r| {
            vec![
                plain(base(sy, r, counts[r as usize] as usize)),
                plain(vec![0; 4 * n as usize]),
            ]
        });
        for (me, from) in (0..n as usize).flat_map(|me| (0..n as usize).map(move |from| (me, from)))
        {
            let (k, w) = (counts[from] as usize, at[from] as usize);
            let want = base(&mut symbols, from as u32, k);
            assert_eq!(
                out[me][1].cells[w..w + k],
                want,
                "{} n={n} {from}->{me}",
                a.name
            );
        }
    }
}
