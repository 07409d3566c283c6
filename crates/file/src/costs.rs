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
}

impl Default for Costs {
    fn default() -> Costs {
        let Cost { call, byte } = Cost::default();
        Costs {
            call: AtomicU64::new(call),
            byte: AtomicU64::new(byte),
        }
    }
}

impl Costs {
    /// The costs as they are believed now.
    pub fn now(&self) -> Cost {
        Cost {
            call: self.call.load(Ordering::Relaxed),
            byte: self.byte.load(Ordering::Relaxed),
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
}

fn follow(cost: &AtomicU64, measured: u64, most: u64) {
    let old = cost.load(Ordering::Relaxed);
    let new = (old * 7 + measured.min(most)) / 8;
    cost.store(new.max(1), Ordering::Relaxed);
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
        let Cost { call, byte } = costs.now();
        assert!((79_000..=80_000).contains(&call), "{call}");
        assert!((9_900..=10_000).contains(&byte), "{byte}");
        costs.learn(1, 1, u64::MAX);
        costs.learn(1, LARGE, u64::MAX);
        assert!(costs.now().call < 2 * MOST_OF_CALL && costs.now().byte < 2 * MOST_OF_BYTE);
    }
}
