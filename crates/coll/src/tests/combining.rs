//! Reductions and scans: each rank's result is combined from the right ranks, once each, in their
//! order.

use super::*;

/// A number of pieces for data of that length: more than it has units, fewer, or one.
fn pieces(count: u64) -> u32 {
    1 + (count % 6) as u32
}

/// Expected result at rank `r` of `n` for this root and length.
type Want<'a> = &'a dyn Fn(u32, u32, u32, usize) -> Option<Vec<Symbol>>;

fn reduction(coll: Coll, want: Want) {
    let data = [(0, false), (1, false), (3, true), (41, false), (41, true)];
    let variants = data.map(|(count, in_place)| [true, false].map(|c| (count, in_place, c)));
    let variants = variants.concat();
    for (a, n, site) in cases(coll) {
        let roots = rooted(if coll == Coll::Reduce { n } else { 1 }, &variants);
        for (root, (count, in_place, commutative)) in roots {
            let here = |r: u32| in_place && (coll != Coll::Reduce || r == root);
            let call = |r| CallView {
                root,
                count,
                commutative,
                in_place: here(r),
                param: pieces(count),
                ..site.call(r, n)
            };
            if !a.need.met(&call(0)) {
                continue;
            }
            let len = count as usize;
            let out = world(a, n, commutative, &call, &|r| {
                let data = base(r, len);
                let has_recv = coll != Coll::Reduce || r == root;
                let empty = never(if has_recv { len } else { 0 });
                if here(r) {
                    vec![plain(vec![]), plain(data)]
                } else {
                    vec![plain(data), plain(empty)]
                }
            });
            for r in 0..n {
                if let Some(want) = want(r, n, root, len) {
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

#[test]
fn reduce_folds_in_order_at_the_root() {
    reduction(Coll::Reduce, &|r, n, root, len| {
        (r == root).then(|| folded(0..n, 0..len))
    });
}

#[test]
fn allreduce_folds_in_order_everywhere() {
    reduction(Coll::Allreduce, &|_, n, _, len| Some(folded(0..n, 0..len)));
}

#[test]
fn scan_folds_up_to_each_rank() {
    reduction(Coll::Scan, &|r, _, _, len| Some(folded(0..r + 1, 0..len)));
}

#[test]
fn exscan_folds_below_each_rank() {
    reduction(Coll::Exscan, &|r, _, _, len| {
        (r > 0).then(|| folded(0..r, 0..len))
    });
}

#[test]
fn reduce_scatter_gives_each_rank_its_block() {
    for (a, n, site) in cases(Coll::ReduceScatter) {
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
            let call = |r| CallView {
                count: total,
                commutative,
                in_place,
                send,
                param: if kind < 3 { 2 } else { 64 },
                ..site.call(r, n)
            };
            if !a.need.met(&call(0)) {
                continue;
            }
            let out = world(a, n, commutative, &call, &|r| {
                let data = base(r, total as usize);
                let mine = counts[r as usize] as usize;
                if in_place {
                    vec![plain(vec![]), plain(data)]
                } else {
                    vec![plain(data), plain(never(mine))]
                }
            });
            for r in 0..n as usize {
                let from = at[r] as usize;
                let want = folded(0..n, from..from + counts[r] as usize);
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
