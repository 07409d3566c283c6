//! Collectives that move data or signals from rank to rank.

use super::*;
use crate::{SHM_BUFFERS, ShmBuffer, Slice, Step};
use kw_base::overheads::WINDOW;

fn fans(coll: Coll) -> &'static [u32] {
    if coll == Coll::Barrier {
        &[1, 2, 4, 16]
    } else {
        &[4]
    }
}

#[test]
fn barriers_let_nobody_go_before_all_have_come() {
    for (a, n, site) in cases(Coll::Barrier) {
        for &param in fans(a.coll) {
            let call = |r| CallView {
                param,
                ..site.call(r, n)
            };
            let calls = (0..n).map(|r| {
                let s = spelled_out(emit(a, &call(r)), &call(r));
                (noted(s, r, n), vec![plain(base(r, 1)), plain(never(1))])
            });
            let shm_region = Some(shm_regions(n)[0]);
            // One shm region for all, since the notes are on it.
            World::new(calls.collect(), true).on(shm_region, None).run();
        }
    }
}

/// The schedule with a watch of each rank of the node in place of the watch of all.
fn spelled_out(mut s: Schedule, call: &CallView) -> Schedule {
    let everybody: Vec<u32> = (0..call.size).collect();
    let here = call.node_ranks().unwrap_or(&everybody);
    let steps = std::mem::take(&mut s.steps);
    for step in steps {
        match step {
            Step::WatchAll(stage) => here.iter().for_each(|&r| s.watch(r, stage)),
            other => s.steps.push(other),
        }
    }
    s
}

/// The schedule with a note on the rank's own shm buffer before it and a look at the notes of all
/// ranks after it: the checker rejects a look that is not ordered after the note.
fn noted(mut s: Schedule, rank: u32, n: u32) -> Schedule {
    let note = |r| Slice {
        buf: SHM_BUFFERS + r,
        at: 0,
        len: 1,
    };
    s.steps.insert(
        0,
        Step::Copy {
            from: Slice::whole(SEND, 1),
            to: note(rank),
        },
    );
    s.steps.push(Step::Fence);
    for r in 0..n {
        s.steps.push(Step::Copy {
            from: note(r),
            to: Slice::whole(RECV, 1),
        });
    }
    s.shm_buffer = ShmBuffer::Short;
    s
}

#[test]
fn bcast_brings_the_roots_data_to_all() {
    for (a, n, site) in cases(Coll::Bcast) {
        for (root, count) in rooted(n, &[0, 1, 5, 64, 67u64]) {
            let call = |r| CallView {
                root,
                count,
                param: 1 + (count % 6) as u32,
                ..site.call(r, n)
            };
            if !a.need.met(&call(0)) {
                continue;
            }
            let len = count as usize;
            let want = base(root, len);
            let out = world(a, n, true, &call, &|r| {
                let cells = if r == root { base(r, len) } else { never(len) };
                vec![plain(vec![]), plain(cells)]
            });
            for (r, m) in out.iter().enumerate() {
                assert_eq!(m[1].cells, want, "{} n={n} root={root} rank={r}", a.name);
            }
        }
    }
}

/// A call that moves blocks: which blocks each rank has and wants, as `(from, index)` of 6 symbols.
fn blocks_of(from: u32, indices: std::ops::Range<u32>) -> Vec<Symbol> {
    let places = indices.start as usize * 6..indices.end as usize * 6;
    places.map(|p| Symbol::of(from, p)).collect()
}

/// Units of the send and of the receive buffer in symbols: on a shm region bytes, otherwise
/// elements of different types.
fn units(site: &Site) -> (usize, usize) {
    if site.shm_region.is_some() {
        (1, 1)
    } else {
        (2, 3)
    }
}

/// Blocks of 6 symbols in such units.
fn even(units: (usize, usize)) -> (Blocks<'static>, Blocks<'static>) {
    let blocks = |buf, unit| Blocks::Even {
        buf,
        each: 6 / unit as u64,
    };
    (blocks(SEND, units.0), blocks(RECV, units.1))
}

#[test]
fn gather_collects_blocks_in_order() {
    for (a, n, site) in cases(Coll::Gather) {
        let want: Vec<Symbol> = (0..n).flat_map(|r| blocks_of(r, 0..1)).collect();
        for (root, in_place) in rooted(n, &[false, true]) {
            let units = units(&site);
            let (send, recv) = even(units);
            let call = |r| CallView {
                root,
                block_bytes: 6,
                send,
                recv,
                in_place: in_place && r == root,
                ..site.call(r, n)
            };
            let out = world(a, n, true, &call, &|r| {
                let own = blocks_of(r, 0..1);
                let mut all = never(if r == root { 6 * n as usize } else { 0 });
                if in_place && r == root {
                    all[6 * r as usize..][..6].copy_from_slice(&own);
                    return vec![unit(vec![], units.0), unit(all, units.1)];
                }
                vec![unit(own, units.0), unit(all, units.1)]
            });
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
    for (a, n, site) in cases(Coll::Scatter) {
        for (root, in_place) in rooted(n, &[false, true]) {
            let units = units(&site);
            let (send, recv) = even(units);
            let call = |r| CallView {
                root,
                block_bytes: 6,
                send,
                recv,
                in_place: in_place && r == root,
                ..site.call(r, n)
            };
            let out = world(a, n, true, &call, &|r| {
                let all = if r == root {
                    blocks_of(root, 0..n)
                } else {
                    vec![]
                };
                let room = if in_place && r == root { 0 } else { 6 };
                vec![unit(all, units.0), unit(never(room), units.1)]
            });
            for r in (0..n).filter(|&r| !(in_place && r == root)) {
                let want = blocks_of(root, r..r + 1);
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
    for (a, n, site) in cases(Coll::Allgather) {
        let want: Vec<Symbol> = (0..n).flat_map(|r| blocks_of(r, 0..1)).collect();
        for (in_place, param) in [(false, 2), (true, 2), (false, 64), (true, 64)] {
            let units = units(&site);
            let (send, recv) = even(units);
            let call = |r| CallView {
                block_bytes: 6,
                send,
                recv,
                in_place,
                param,
                ..site.call(r, n)
            };
            if !a.need.met(&call(0)) {
                continue;
            }
            let out = world(a, n, true, &call, &|r| {
                let own = blocks_of(r, 0..1);
                let mut all = never(6 * n as usize);
                if in_place {
                    all[6 * r as usize..][..6].copy_from_slice(&own);
                }
                let own = if in_place { vec![] } else { own };
                vec![unit(own, units.0), unit(all, units.1)]
            });
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
    for (a, n, site) in cases(Coll::Alltoall) {
        for in_place in [false, true] {
            let units = units(&site);
            let (send, recv) = even(units);
            let call = |r| CallView {
                block_bytes: 6,
                // A call with longer blocks starts fewer of them at once.
                own_bytes: u64::from(r) * WINDOW,
                send,
                recv,
                in_place,
                ..site.call(r, n)
            };
            if !a.need.met(&call(0)) {
                continue;
            }
            let out = world(a, n, true, &call, &|r| {
                let own = blocks_of(r, 0..n);
                if in_place {
                    return vec![unit(vec![], units.0), unit(own, units.1)];
                }
                vec![unit(own, units.0), unit(never(6 * n as usize), units.1)]
            });
            for me in 0..n {
                let want: Vec<Symbol> = (0..n).flat_map(|r| blocks_of(r, me..me + 1)).collect();
                assert_eq!(
                    out[me as usize][1].cells, want,
                    "{} n={n} rank={me} in_place={in_place}",
                    a.name
                );
            }
        }
    }
}

/// Blocks longer than a cache line, which no slot of a shm buffer is cut for.
#[test]
fn alltoall_of_odd_long_blocks_stays_in_order() {
    const LEN: usize = 100;
    for (a, n, site) in cases(Coll::Alltoall).filter(|c| c.1 <= 7) {
        let blocks = |buf| Blocks::Even {
            buf,
            each: LEN as u64,
        };
        let call = |r| CallView {
            block_bytes: LEN as u64,
            send: blocks(SEND),
            recv: blocks(RECV),
            ..site.call(r, n)
        };
        if !a.need.met(&call(0)) {
            continue;
        }
        let out = world(a, n, true, &call, &|r| {
            let own = (0..n as usize * LEN).map(|p| Symbol::of(r, p)).collect();
            vec![unit(own, 1), unit(never(LEN * n as usize), 1)]
        });
        for me in 0..n {
            let mine = me as usize * LEN..(me as usize + 1) * LEN;
            let want: Vec<Symbol> = (0..n)
                .flat_map(|r| mine.clone().map(move |p| Symbol::of(r, p)))
                .collect();
            assert_eq!(
                out[me as usize][1].cells, want,
                "{} n={n} rank={me}",
                a.name
            );
        }
    }
}

#[test]
fn unequal_blocks_go_where_the_caller_says() {
    // Each block is in reverse order with a gap; the length of block (from, to) depends on both.
    for (a, n, site) in cases(Coll::Alltoall) {
        let len = |from: u32, to: u32| ((from * 2 + to) % 4) as u64;
        let send: Vec<Vec<u64>> = (0..n)
            .map(|r| (0..n).map(|to| len(r, to)).collect())
            .collect();
        let recv: Vec<Vec<u64>> = (0..n)
            .map(|r| (0..n).map(|from| len(from, r)).collect())
            .collect();
        let at: Vec<i64> = (0..n as i64).rev().map(|i| i * 5).collect();
        let call = |r: u32| CallView {
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
            ..site.call(r, n)
        };
        if !a.need.met(&call(0)) {
            continue;
        }
        let out = world(a, n, true, &call, &|r| {
            let room = 5 * n as usize;
            vec![plain(base(r, room)), plain(never(room))]
        });
        for (me, from) in (0..n).flat_map(|me| (0..n).map(move |from| (me, from))) {
            let (k, w) = (len(from, me) as usize, at[from as usize] as usize);
            let want: Vec<Symbol> = (0..k)
                .map(|i| Symbol::of(from, at[me as usize] as usize + i))
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
    for (a, n, site) in cases(Coll::Allgather) {
        let counts: Vec<u64> = (0..n as u64).map(|r| r * 2 % 3).collect();
        let at: Vec<i64> = (0..n as i64).rev().map(|i| i * 4).collect();
        let mine: Vec<[u64; 1]> = counts.iter().map(|&c| [c]).collect();
        let call = |r: u32| CallView {
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
            ..site.call(r, n)
        };
        if !a.need.met(&call(0)) {
            continue;
        }
        let out = world(a, n, true, &call, &|r| {
            let own = base(r, counts[r as usize] as usize);
            vec![plain(own), plain(never(4 * n as usize))]
        });
        for (me, from) in (0..n as usize).flat_map(|me| (0..n as usize).map(move |from| (me, from)))
        {
            let (k, w) = (counts[from] as usize, at[from] as usize);
            let want = base(from as u32, k);
            assert_eq!(
                out[me][1].cells[w..w + k],
                want,
                "{} n={n} {from}->{me}",
                a.name
            );
        }
    }
}
