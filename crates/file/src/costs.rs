//! Costs of accesses to one file, as measured by this rank.

use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_io_plan::Cost;

/// The highest cost of a call that is accepted at once, nanoseconds: a device's seek.
const MOST_OF_CALL: u64 = 10_000_000;
/// The highest cost of a byte that is accepted, picoseconds: 1 MB/s.
const MOST_OF_BYTE: u64 = 1_000_000;
/// Calls of an access from which on their mean is accepted at once, up to twice the present
/// estimate: a rank that had to wait for its processor measures many times the cost.
const MANY: u64 = 16;
/// The fraction by which an estimated cost is lowered with each access that avoids it.
const DOUBT: u64 = 256;

/// Cost estimates that follow the measurements; 0 before the first.
#[derive(Debug, Default)]
pub struct Costs {
    call: AtomicU64,
    byte: AtomicU64,
    exchange: AtomicU64,
    sieved: AtomicU64,
}

impl Costs {
    /// The present estimates.
    pub fn now(&self) -> Cost {
        Cost {
            call: self.call.load(Ordering::Relaxed),
            byte: self.byte.load(Ordering::Relaxed),
            exchange: self.exchange.load(Ordering::Relaxed),
            sieved: self.sieved.load(Ordering::Relaxed),
        }
    }

    /// Learns from an access with this many calls, bytes, and nanoseconds: the cost of a call if
    /// its bytes cost less than that, otherwise the cost of a byte.
    pub fn learn(&self, calls: u64, bytes: u64, took: u64) {
        if calls == 0 {
            return;
        }
        let cost = self.now().or_first();
        match bytes / calls <= cost.bytes_of_a_call() {
            true => {
                let each = took.saturating_sub(cost.byte.saturating_mul(bytes) / 1000) / calls;
                learn(&self.call, (each, cost.call), MOST_OF_CALL, calls);
            }
            false => {
                let of_bytes = took.saturating_sub(cost.call.saturating_mul(calls));
                let each = of_bytes.saturating_mul(1000) / bytes;
                learn(&self.byte, (each, cost.byte), MOST_OF_BYTE, calls);
            }
        }
    }

    /// Learns from a call with this many bytes that typically took `took` nanoseconds. A cost that
    /// it does not determine is set to the initial assumption, so that it is not measured again.
    pub fn learn_typical(&self, bytes: u64, took: u64) {
        let cost = self.now().or_first();
        if bytes <= cost.bytes_of_a_call() {
            let each = took.saturating_sub(cost.byte.saturating_mul(bytes) / 1000);
            let call = each.clamp(1, MOST_OF_CALL);
            return self.call.store(call, Ordering::Relaxed);
        }
        self.call.store(cost.call, Ordering::Relaxed);
    }

    /// Learns from reading this many bytes with gaps, and taking the pieces out.
    pub fn learn_sieved(&self, bytes: u64, took: u64) {
        let measured = took.saturating_mul(1000) / bytes.max(1);
        if self.sieved.load(Ordering::Relaxed) == 0 {
            let first = measured.clamp(1, MOST_OF_BYTE);
            self.sieved.store(first, Ordering::Relaxed);
        }
        follow(&self.sieved, measured, MOST_OF_BYTE);
    }

    /// Learns the cost of an exchange for each byte; `usual` is the estimate before the first.
    pub fn learn_exchange(&self, measured: u64, usual: u64) {
        let unmeasured = self.exchange.load(Ordering::Relaxed) == 0;
        if unmeasured {
            self.exchange.store(usual.max(1), Ordering::Relaxed);
        }
        // Quickly: an exchange of sparse pieces may cost many times the assumption.
        let old = self.exchange.load(Ordering::Relaxed);
        let believed = measured.min(old.saturating_mul(2)).min(MOST_OF_BYTE);
        let new = (old + believed) / 2;
        self.exchange.store(new.max(1), Ordering::Relaxed);
    }

    /// Handles an exchange of the ranks: lowers the estimated cost of own accesses, if it is higher
    /// than the initial one, so that they are tried again.
    pub fn doubt_own(&self) {
        doubt(&self.call, Cost::default().or_first().call);
        doubt(&self.sieved, self.now().first_sieved_byte());
    }

    /// Handles an access without an exchange: lowers the estimated cost of an exchange, if it is
    /// higher than `usual`, so that it is tried again.
    pub fn doubt_exchange(&self, usual: u64) {
        doubt(&self.exchange, usual);
    }
}

/// Lowers an estimate that is higher than `least` a little.
fn doubt(cost: &AtomicU64, least: u64) {
    let old = cost.load(Ordering::Relaxed);
    if old > least {
        let new = (old - old.div_ceil(DOUBT)).max(least);
        cost.store(new, Ordering::Relaxed);
    }
}

/// Accepts the mean of many calls, up to twice the present estimate; follows others gradually.
fn learn(cost: &AtomicU64, (measured, old): (u64, u64), most: u64, calls: u64) {
    if calls >= MANY {
        let believed = measured.min(old.saturating_mul(2) + 1);
        return cost.store(believed.clamp(1, most), Ordering::Relaxed);
    }
    cost.store(old, Ordering::Relaxed);
    follow(cost, measured, most);
}

/// A rank that had to wait for its processor measures many times the cost: one such access changes
/// the estimate only a little.
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
        costs.learn(0, 0, 5);
        assert_eq!(costs.now(), Cost::default(), "no call");
        for _ in 0..10 {
            costs.learn(20, 20 * 64, 20 * 80_000);
        }
        assert_eq!(costs.now().byte, 0, "not told");
        let call = costs.now().call;
        assert!((79_900..=80_000).contains(&call), "{call}");
        for _ in 0..100 {
            costs.learn(1, 16 << 20, (160 << 20) + 80_000);
        }
        let byte = costs.now().byte;
        assert!((9_900..=10_010).contains(&byte), "{byte}");
        // The time for the bytes of a piece of some KB is not attributed to the call.
        costs.learn(20, 20 * 4000, 20 * 120_000);
        let call = costs.now().call;
        assert!((79_000..81_000).contains(&call), "{call}");
        costs.learn(1, 1, u64::MAX);
        costs.learn(1, 1 << 20, u64::MAX);
        let after = costs.now();
        assert!(after.call <= call + call / 8 + 1, "one spike");
        assert!(after.byte <= byte + byte / 8 + 1, "one spike");
        costs.learn(20, 20, u64::MAX);
        assert!(costs.now().call <= 2 * after.call + 1, "many in one spike");
    }

    #[test]
    fn a_typical_call_is_believed_at_once() {
        let costs = Costs::default();
        costs.learn_typical(64, 50_000);
        assert!((49_900..=50_000).contains(&costs.now().call));
        let large = Costs::default();
        large.learn_typical(1 << 20, 50_000);
        assert_eq!(large.now().call, Cost::default().or_first().call);
    }

    #[test]
    fn calls_that_became_cheaper_are_tried_again() {
        let costs = Costs::default();
        costs.learn_typical(1, 5000);
        let once = costs.now().call;
        (0..10).for_each(|_| costs.doubt_own());
        let later = costs.now().call;
        assert!(later < once && later > once - once / 16, "slowly");
        (0..10_000).for_each(|_| costs.doubt_own());
        assert_eq!(costs.now().call, Cost::default().or_first().call);
    }

    #[test]
    fn reading_with_gaps_has_a_cost_of_its_own() {
        let costs = Costs::default();
        (0..100).for_each(|_| costs.learn_sieved(1 << 20, 60 << 10));
        let Cost { byte, sieved, .. } = costs.now();
        assert_eq!(byte, 0, "not told");
        assert!((50..60).contains(&sieved), "{sieved}");
        let slow = Costs::default();
        slow.learn_sieved(1 << 20, 1 << 30);
        (0..10_000).for_each(|_| slow.doubt_own());
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
        assert!((180..200).contains(&doubted(10)));
        assert!((40..64).contains(&doubted(1000)));
        costs.learn_exchange(20, 40);
        let cheap = costs.now().exchange;
        (0..100).for_each(|_| costs.learn_exchange(20, 40));
        assert!(doubted(10) < cheap, "less than usual is not doubted");
    }
}
