//! What accesses to one file cost, as this rank has measured.

use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_io_plan::Cost;

/// The highest cost of a call that is believed at once, nanoseconds: a device's seek.
const MOST_OF_CALL: u64 = 10_000_000;
/// The highest cost of a byte that is believed, picoseconds: 1 MB/s.
const MOST_OF_BYTE: u64 = 1_000_000;
/// Bytes of a call whose time is mostly the call's.
const SMALL: u64 = 4096;
/// Bytes of a call whose time is mostly its bytes'.
const LARGE: u64 = 65536;

/// Costs that follow what is measured.
#[derive(Debug)]
pub struct Costs {
    call: AtomicU64,
    byte: AtomicU64,
    exchange: AtomicU64,
    sieved: AtomicU64,
}

impl Default for Costs {
    fn default() -> Costs {
        let Cost {
            call,
            byte,
            exchange,
            sieved,
        } = Cost::default();
        Costs {
            call: AtomicU64::new(call),
            byte: AtomicU64::new(byte),
            exchange: AtomicU64::new(exchange),
            sieved: AtomicU64::new(sieved),
        }
    }
}

impl Costs {
    /// The costs as they are believed now.
    pub fn now(&self) -> Cost {
        Cost {
            call: self.call.load(Ordering::Relaxed),
            byte: self.byte.load(Ordering::Relaxed),
            exchange: self.exchange.load(Ordering::Relaxed),
            sieved: self.sieved.load(Ordering::Relaxed),
        }
    }

    /// Learns from an access with this many calls, bytes, and nanoseconds.
    pub fn learn(&self, calls: u64, bytes: u64, took: u64) {
        if calls == 0 {
            return;
        }
        match bytes / calls {
            ..=SMALL => follow(&self.call, took / calls, MOST_OF_CALL),
            LARGE.. => follow(&self.byte, took.saturating_mul(1000) / bytes, MOST_OF_BYTE),
            _ => {}
        }
    }

    /// Learns from reading so many bytes with gaps, and taking the pieces out.
    pub fn learn_sieved(&self, bytes: u64, took: u64) {
        let measured = took.saturating_mul(1000) / bytes.max(1);
        if self.sieved.load(Ordering::Relaxed) == 0 {
            let first = measured.clamp(1, MOST_OF_BYTE);
            self.sieved.store(first, Ordering::Relaxed);
        }
        follow(&self.sieved, measured, MOST_OF_BYTE);
    }

    /// Learns what an exchange costs for each byte; `usual` is what was believed before the first.
    pub fn learn_exchange(&self, measured: u64, usual: u64) {
        let untold = self.exchange.load(Ordering::Relaxed) == 0;
        if untold {
            self.exchange.store(usual.max(1), Ordering::Relaxed);
        }
        follow(&self.exchange, measured, MOST_OF_BYTE);
    }

    /// The ranks have exchanged data: that reading with gaps costs more than at first is believed a
    /// little less, so that it is tried again.
    pub fn doubt_sieved(&self) {
        let (old, first) = (self.now().sieved, self.now().first_sieved_byte());
        if old > first {
            let new = (old - old.div_ceil(64)).max(first);
            self.sieved.store(new, Ordering::Relaxed);
        }
    }

    /// The ranks have done without an exchange: that it costs more than `usual` is believed a little
    /// less, so that it is tried again.
    pub fn doubt_exchange(&self, usual: u64) {
        let old = self.exchange.load(Ordering::Relaxed);
        if old > usual {
            let new = (old - old / 64).max(usual);
            self.exchange.store(new, Ordering::Relaxed);
        }
    }
}

/// A rank that had to wait for its processor measures many times the cost: one such access moves
/// what is believed by little.
fn follow(cost: &AtomicU64, measured: u64, most: u64) {
    let old = cost.load(Ordering::Relaxed);
    let believed = measured.min(most).min(old.saturating_mul(2) + 1);
    cost.store(((old * 7 + believed) / 8).max(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_calls_tell_what_a_call_costs_and_large_ones_what_a_byte_costs() {
        let costs = Costs::default();
        let before = costs.now();
        costs.learn(0, 0, 5);
        costs.learn(10, 10 * 10_000, 5);
        assert_eq!(costs.now(), before, "neither small nor large");
        for _ in 0..100 {
            costs.learn(10, 10 * 64, 10 * 80_000);
            costs.learn(1, 1 << 20, 10 << 20);
        }
        let Cost { call, byte, .. } = costs.now();
        assert!((79_900..=80_000).contains(&call), "{call}");
        assert!((9_900..=10_000).contains(&byte), "{byte}");
        costs.learn(1, 1, u64::MAX);
        costs.learn(1, LARGE, u64::MAX);
        let after = costs.now();
        assert!(after.call <= call + call / 8 + 1, "one spike");
        assert!(after.byte <= byte + byte / 8 + 1, "one spike");
    }

    #[test]
    fn reading_with_gaps_has_a_cost_of_its_own() {
        let costs = Costs::default();
        (0..100).for_each(|_| costs.learn_sieved(1 << 20, 60 << 10));
        let Cost { byte, sieved, .. } = costs.now();
        assert_eq!(byte, Cost::default().byte);
        assert!((50..60).contains(&sieved), "{sieved}");
        let slow = Costs::default();
        slow.learn_sieved(1 << 20, 1 << 30);
        (0..1000).for_each(|_| slow.doubt_sieved());
        assert_eq!(slow.now().sieved, slow.now().first_sieved_byte());
        costs.learn_sieved(1 << 20, u64::MAX);
        assert!(costs.now().sieved <= sieved + sieved / 8 + 1, "one spike");
    }

    #[test]
    fn an_exchange_is_believed_as_it_was_measured_and_then_doubted() {
        let costs = Costs::default();
        (0..100).for_each(|_| costs.learn_exchange(200, 40));
        assert!((190..=200).contains(&costs.now().exchange));
        let doubted = |n: u64| {
            (0..n).for_each(|_| costs.doubt_exchange(40));
            costs.now().exchange
        };
        assert!((150..200).contains(&doubted(10)));
        assert!((40..64).contains(&doubted(1000)));
        costs.learn_exchange(20, 40);
        let cheap = costs.now().exchange;
        (0..100).for_each(|_| costs.learn_exchange(20, 40));
        assert!(doubted(10) < cheap, "less than usual is not doubted");
    }
}
