//! Allreduce after Rabenseifner: reduce-scatter by recursive halving, allgather by recursive doubling. As few bytes as the
//! ring in `2 log2 n` steps; for long messages and commutative operations. With `n` no power of two, the first ranks pair
//! up before and after.

use crate::schedule::ask::parts_of;
use crate::schedule::fold::Fold;
use crate::schedule::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (rank, n, home) = (ask.rank, ask.size, ask.output());
    if ask.count == 0 {
        return;
    }
    let twins = n - (1 << n.ilog2());
    let mut fold = Fold::new(ask.input(), home, ask.commutative);
    if rank < 2 * twins && rank % 2 == 0 {
        s.send(rank + 1, fold.acc());
        s.fence();
        s.recv(rank + 1, home);
        return;
    }
    if rank < 2 * twins {
        let fresh = fold.fresh(s);
        s.receive(rank - 1, fresh);
        fold.take(s, fresh, true);
    }
    let v = if rank < 2 * twins {
        rank / 2
    } else {
        rank - twins
    };
    let m = n - twins;
    let real = |w: u32| if w < twins { 2 * w + 1 } else { w + twins };
    halve(v, m, &real, fold, s, home);
    double(v, m, &real, s, home);
    if rank < 2 * twins {
        s.send(rank - 1, home);
    }
}

/// Reduce-scatter: leaves part `v` of `m` in `home`.
fn halve(
    v: u32,
    m: u32,
    real: &dyn Fn(u32) -> u32,
    fold: Fold,
    s: &mut Schedule,
    home: crate::schedule::Slice,
) {
    if m == 1 {
        return fold.finish(s);
    }
    let input = fold.acc();
    let aside = if m > 2 || input == home {
        Some(s.elements(home.len.div_ceil(2) + m as u64))
    } else {
        None
    };
    let (mut low, mut mask) = (0, m / 2);
    while mask > 0 {
        let other = real(v ^ mask);
        let (keep, give) = if v & mask == 0 {
            (low, low + mask)
        } else {
            (low + mask, low)
        };
        let from = if mask == m / 2 { input } else { home };
        let out = parts_of(from, give, give + mask, m);
        let (mine, stay) = (
            parts_of(from, keep, keep + mask, m),
            parts_of(home, keep, keep + mask, m),
        );
        let direct = mask == m / 2 && input != home;
        // When input lies elsewhere, the first half to arrive goes straight home.
        let fresh = match aside {
            Some(a) if !direct => a.part(0, stay.len),
            _ => stay,
        };
        if !stay.is_empty() {
            s.recv(other, fresh);
        }
        if !out.is_empty() {
            s.send(other, out);
        }
        s.fence();
        if direct {
            s.reduce(mine, stay)
        } else {
            s.reduce(fresh, stay)
        }
        low = keep;
        mask /= 2;
    }
}

/// Allgather of the parts.
fn double(
    v: u32,
    m: u32,
    real: &dyn Fn(u32) -> u32,
    s: &mut Schedule,
    home: crate::schedule::Slice,
) {
    let mut mask = 1;
    while mask < m {
        let w = v ^ mask;
        let start = |x: u32| x & !(mask - 1);
        let out = parts_of(home, start(v), start(v) + mask, m);
        let into = parts_of(home, start(w), start(w) + mask, m);
        if !into.is_empty() {
            s.recv(real(w), into);
        }
        if !out.is_empty() {
            s.send(real(w), out);
        }
        s.fence();
        mask *= 2;
    }
}
