//! Whether a blocking collective lets others run before it returns, where ranks share CPUs.
//!
//! A rank that has moved its part of an exchange between all ranks returns and computes. A rank on
//! the same CPU that has not moved its own part may then wait for milliseconds until the scheduler
//! runs it, and all ranks that need its data wait with it, on other CPUs with nothing to do. So a
//! rank that has finished yields first.
//!
//! That costs process switches, which would gain nothing for a program that calls the next
//! collective at once. So it is done after exchanges that took as long as a computation
//! ([`COMPUTED`]), in programs that computed after the previous one.

use crate::neighbours::COMPUTED;
use kw_base::Tick;
use kw_base::sync::thread;
use kw_coll::Coll;

/// So often others run then, unless one of them is seen to compute: ranks that exchange data wait
/// for each other now and then. A built-in value.
const TURNS: u32 = 2;

/// See the module. One for each collective that it is about.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    /// When the last one that took long ended, if none has begun since.
    left: Option<Tick>,
    /// The program stayed away after the one before.
    computes: bool,
}

/// The exchanges of a rank that shares its CPU.
#[derive(Debug, Default)]
pub(super) struct YieldAfter {
    /// Alltoall and allgather.
    exchanges: [Exchange; 2],
    /// When the one that waits began.
    began: Option<Tick>,
}

impl YieldAfter {
    fn exchange(&mut self, coll: Option<Coll>) -> Option<&mut Exchange> {
        match coll? {
            Coll::Alltoall => Some(&mut self.exchanges[0]),
            Coll::Allgather => Some(&mut self.exchanges[1]),
            _ => None,
        }
    }

    /// A collective begins to wait.
    pub fn begins(&mut self, coll: Option<Coll>, now: impl FnOnce() -> Tick) {
        let Some(exchange) = self.exchange(coll) else {
            return;
        };
        let now = now();
        if let Some(left) = exchange.left.take() {
            exchange.computes = now.since(left) >= COMPUTED;
        }
        self.began = Some(now);
    }

    /// It has ended. Says whether others are to run before it returns.
    pub fn ends(&mut self, coll: Option<Coll>, now: impl FnOnce() -> Tick) -> bool {
        let began = self.began.take();
        let (Some(exchange), Some(began)) = (self.exchange(coll), began) else {
            return false;
        };
        let now = now();
        if now.since(began) < COMPUTED {
            return false;
        }
        exchange.left = Some(now);
        exchange.computes
    }
}

/// Lets others of this CPU do their part of an exchange.
#[cold]
pub fn let_others_go_on() {
    for _ in 0..TURNS {
        let before = kw_sys::clock::now();
        thread::yield_now();
        if kw_sys::clock::now().since(before) >= COMPUTED {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const US: Duration = Duration::from_micros(1);

    /// Runs exchanges of this duration with this much computation in between; returns whether each
    /// yields.
    fn yields(coll: Coll, took: Duration, between: Duration) -> Vec<bool> {
        let (mut after, mut now) = (YieldAfter::default(), Tick::default());
        let one = |_| {
            after.begins(Some(coll), || now);
            now = now + took;
            let yields = after.ends(Some(coll), || now);
            now = now + between;
            yields
        };
        (0..4).map(one).collect()
    }

    #[test]
    fn long_exchanges_of_programs_that_compute_afterwards_yield() {
        let found = yields(Coll::Alltoall, 600 * US, 800 * US);
        assert_eq!(found, [false, true, true, true]);
    }

    #[test]
    fn exchanges_one_after_the_other_do_not() {
        assert_eq!(yields(Coll::Alltoall, 600 * US, US), [false; 4]);
    }

    #[test]
    fn neither_do_short_ones_nor_other_collectives() {
        assert_eq!(yields(Coll::Allgather, 20 * US, 800 * US), [false; 4]);
        assert_eq!(yields(Coll::Bcast, 600 * US, 800 * US), [false; 4]);
    }

    #[test]
    fn what_one_collective_does_says_nothing_of_the_other() {
        let mut after = YieldAfter::default();
        let at = |us| Tick::default() + us * US;
        after.begins(Some(Coll::Alltoall), || at(0));
        assert!(!after.ends(Some(Coll::Alltoall), || at(600)));
        after.begins(Some(Coll::Allgather), || at(601));
        assert!(!after.ends(Some(Coll::Allgather), || at(1201)));
        after.begins(Some(Coll::Alltoall), || at(1700));
        assert!(after.ends(Some(Coll::Alltoall), || at(2400)));
    }
}
