//! Pacing: what the window allows leaves spread over the round trip, not in one burst (RFC 9002,
//! 7.7).
//!
//! A token bucket, one token per byte, refilled at 5/4 of a window per round trip. A full bucket
//! may leave at once: as much as one system call sends. A packet may leave while the bucket is not
//! empty, and may take it below zero. A sender that must wait waits for a quarter of a bucket,
//! since a timer costs more than a packet.

use kw_base::Tick;
use std::time::Duration;

/// The bucket.
#[derive(Debug)]
pub struct Pacer {
    most: i64,
    tokens: i64,
    filled: Tick,
}

impl Pacer {
    /// A full bucket of this many bytes.
    pub fn new(most: u64) -> Pacer {
        Pacer {
            most: most as i64,
            tokens: most as i64,
            filled: Tick::default(),
        }
    }

    /// Whether a packet may leave now; else when.
    pub fn admit(&mut self, now: Tick, window: u64, rtt: Duration) -> Result<(), Tick> {
        if self.tokens > 0 {
            return Ok(());
        }
        let rtt = rtt.as_nanos().max(1);
        let passed = now.since(self.filled).as_nanos();
        let gained = (passed * window as u128 * 5 / 4 / rtt).min(1 << 50) as i64;
        let wanted = self.most / 4;
        if self.tokens + gained >= wanted {
            self.tokens = (self.tokens + gained).min(self.most);
            self.filled = now;
            return Ok(());
        }
        let lacking = (wanted - self.tokens) as u128;
        let wait = (lacking * rtt * 4 / 5 / window.max(1) as u128 + 1).min(u64::MAX as u128);
        Err(self.filled + Duration::from_nanos(wait as u64))
    }

    /// A packet of this many bytes leaves.
    pub fn spend(&mut self, now: Tick, bytes: u64) {
        if self.tokens == self.most {
            self.filled = now;
        }
        // Questions do not wait for tokens; they must not use up the tokens of an hour.
        self.tokens = (self.tokens - bytes as i64).max(-self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_in_a_second_is_the_rate_and_one_bucket() {
        let (window, rtt, packet) = (100_000, Duration::from_millis(1), 1000);
        let mut p = Pacer::new(20_000);
        let (mut now, mut sent) = (Tick(5_000_000_000), 0u64);
        let end = now + Duration::from_secs(1);
        while now < end {
            match p.admit(now, window, rtt) {
                Ok(()) => {
                    p.spend(now, packet);
                    sent += packet;
                }
                Err(at) => {
                    assert!(at > now, "waiting is for later");
                    now = at;
                }
            }
        }
        let rate = 125_000_000;
        assert!(
            (rate * 99 / 100..=rate + 20_000 + packet).contains(&sent),
            "{sent}"
        );
    }

    #[test]
    fn a_rest_fills_one_bucket_and_no_more() {
        let mut p = Pacer::new(10_000);
        let (window, rtt) = (10_000, Duration::from_millis(10));
        for round in 1..4u64 {
            let now = Tick(round * 1_000_000_000);
            let mut n = 0;
            while p.admit(now, window, rtt).is_ok() {
                p.spend(now, 1000);
                n += 1;
            }
            assert_eq!(n, 10, "round {round}");
        }
    }
}
