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

use crate::constants::{co_scheduled::COMPUTED, collectives::TURNS};
use kw_base::Tick;
use std::time::Duration;

/// Exchange between all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exchange {
    /// MPI_Alltoall and its forms.
    Alltoall,
    /// MPI_Allgather and its forms.
    Allgather,
}

/// State of one collective; see the module.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    /// When the last one that took long ended, if none has begun since.
    left: Option<Tick>,
    /// The program stayed away after the one before.
    computes: bool,
}

/// The exchanges of a rank that shares its CPU.
#[derive(Debug, Default)]
pub struct YieldAfter {
    /// Alltoall and allgather.
    exchanges: [Recent; 2],
    /// When the current wait began.
    began: Option<Tick>,
}

impl YieldAfter {
    fn recent(&mut self, exchange: Exchange) -> &mut Recent {
        &mut self.exchanges[exchange as usize]
    }

    /// A collective begins to wait.
    pub fn begins(&mut self, exchange: Option<Exchange>, now: impl FnOnce() -> Tick) {
        let Some(exchange) = exchange else {
            return;
        };
        let (now, recent) = (now(), self.recent(exchange));
        if let Some(left) = recent.left.take() {
            recent.computes = now.since(left) >= COMPUTED;
        }
        self.began = Some(now);
    }

    /// It has ended. Returns whether others are to run before it returns.
    pub fn ends(&mut self, exchange: Option<Exchange>, now: impl FnOnce() -> Tick) -> bool {
        let began = self.began.take();
        let (Some(exchange), Some(began)) = (exchange, began) else {
            return false;
        };
        let now = now();
        if now.since(began) < COMPUTED {
            return false;
        }
        let recent = self.recent(exchange);
        recent.left = Some(now);
        recent.computes
    }
}

/// The yields of a rank before it returns from an exchange, so that others on its CPU do their
/// part.
#[derive(Debug, Default)]
pub struct Turns {
    had: u32,
}

impl Turns {
    /// Others had the CPU for this long. Returns whether they are to have it once more.
    pub fn others_ran(&mut self, lasted: Duration) -> bool {
        self.had += 1;
        self.had < TURNS && lasted < COMPUTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// Runs exchanges of this duration with this much computation in between; returns whether each
    /// yields.
    fn yields(exchange: Option<Exchange>, took: Duration, between: Duration) -> Vec<bool> {
        let (mut after, mut now) = (YieldAfter::default(), Tick::default());
        let one = |_| {
            after.begins(exchange, || now);
            now = now + took;
            let yields = after.ends(exchange, || now);
            now = now + between;
            yields
        };
        (0..4).map(one).collect()
    }

    #[test]
    fn long_exchanges_of_programs_that_compute_afterwards_yield() {
        let found = yields(Some(Exchange::Alltoall), 600 * US, 800 * US);
        assert_eq!(found, [false, true, true, true]);
    }

    #[test]
    fn exchanges_one_after_the_other_do_not() {
        assert_eq!(yields(Some(Exchange::Alltoall), 600 * US, US), [false; 4]);
    }

    #[test]
    fn neither_do_short_ones_nor_other_collectives() {
        assert_eq!(
            yields(Some(Exchange::Allgather), 20 * US, 800 * US),
            [false; 4]
        );
        assert_eq!(yields(None, 600 * US, 800 * US), [false; 4]);
    }

    #[test]
    fn what_one_collective_does_says_nothing_of_the_other() {
        let mut after = YieldAfter::default();
        let at = |us| Tick::default() + us * US;
        after.begins(Some(Exchange::Alltoall), || at(0));
        assert!(!after.ends(Some(Exchange::Alltoall), || at(600)));
        after.begins(Some(Exchange::Allgather), || at(601));
        assert!(!after.ends(Some(Exchange::Allgather), || at(1201)));
        after.begins(Some(Exchange::Alltoall), || at(1700));
        assert!(after.ends(Some(Exchange::Alltoall), || at(2400)));
    }

    #[test]
    fn others_have_their_turns_until_one_computes() {
        let ran = |times: &[Duration]| {
            let mut turns = Turns::default();
            times.iter().take_while(|t| turns.others_ran(**t)).count() + 1
        };
        assert_eq!(ran(&[US; 9]), TURNS as usize);
        assert_eq!(ran(&[COMPUTED; 9]), 1);
    }
}
