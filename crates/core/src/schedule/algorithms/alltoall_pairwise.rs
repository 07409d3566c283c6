//! Alltoall in `n-1` rounds of one message out and one in, so that nobody is flooded; for long blocks. Every receive is
//! posted before the first round: a message finds its place, and its sender may know it beforehand.

use crate::schedule::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let receives: Vec<Option<u32>> = (1..ask.size)
        .map(|by| {
            let into = ask.recv.block(ask.before(by));
            (!into.is_empty()).then(|| s.recv(ask.before(by), into))
        })
        .collect();
    s.copy(ask.send.block(ask.rank), ask.recv.block(ask.rank));
    for (by, receive) in (1..).zip(receives) {
        let out = ask.send.block(ask.after(by));
        let send = (!out.is_empty()).then(|| s.send(ask.after(by), out));
        send.into_iter()
            .chain(receive)
            .for_each(|slot| s.wait(slot));
    }
}
