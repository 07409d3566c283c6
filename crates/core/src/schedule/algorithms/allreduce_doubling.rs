//! Allreduce by recursive doubling: `ceil(log2 n)` exchanges of the whole data, in the order of ranks; for short messages.
//! With `n` no power of two, the first ranks pair up before and after.

use crate::schedule::fold::Fold;
use crate::schedule::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (rank, n) = (ask.rank, ask.size);
    if ask.count == 0 {
        return;
    }
    let twins = n - (1 << n.ilog2());
    let mut fold = Fold::new(ask.input(), ask.output(), ask.commutative);
    if rank < 2 * twins && rank % 2 == 0 {
        s.send(rank + 1, fold.acc());
        s.fence();
        s.recv(rank + 1, ask.output());
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
    let mut mask = 1;
    while mask < n - twins {
        let w = v ^ mask;
        let other = if w < twins { 2 * w + 1 } else { w + twins };
        let fresh = fold.fresh(s);
        s.recv(other, fresh);
        s.send(other, fold.acc());
        s.fence();
        fold.take(s, fresh, other < rank);
        mask *= 2;
    }
    fold.finish(s);
    if rank < 2 * twins {
        s.send(rank - 1, ask.output());
    }
}
