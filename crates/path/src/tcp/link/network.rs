//! What the system has measured of the network under a connection: the round trip when it is made,
//! the rate when it has carried enough for one. Asking costs a system call, so that is done when
//! the bytes sent have doubled.

use kw_proto::p2p::prices::Network;
use kw_sys::tcp::Measured;

/// Bytes that were sent before a rate says something.
const ENOUGH: u64 = 4 << 20;

/// See the module. One for each connection.
#[derive(Debug)]
pub struct NetworkMeter {
    /// What was news last: choices are priced with it.
    known: Network,
    /// Asked when so many bytes were sent.
    due: u64,
}

impl NetworkMeter {
    /// `near`: within a machine nothing is asked.
    pub fn new(near: bool) -> NetworkMeter {
        NetworkMeter {
            known: Network::default(),
            due: if near { u64::MAX } else { 0 },
        }
    }

    /// What is known.
    pub fn known(&self) -> Network {
        self.known
    }

    /// Whether the system is to be asked, after so many bytes.
    #[inline]
    pub fn is_due(&self, sent: u64) -> bool {
        sent >= self.due
    }

    /// What the system says, after so many bytes. Whether that is news.
    #[cold]
    pub fn learn(&mut self, sent: u64, told: Option<Measured>) -> bool {
        self.due = sent.saturating_mul(2).max(ENOUGH);
        let Some(told) = told else {
            return false;
        };
        let mut now = self.known;
        now.round_trip = told.round_trip.as_nanos() as f64;
        if let Some(rate) = told.rate {
            now.byte = 1e9 / rate as f64;
        }
        let before = self.known;
        let news = differ(before.round_trip, now.round_trip) || differ(before.byte, now.byte);
        if news {
            self.known = now;
        }
        news
    }
}

/// Whether two figures differ by so much that a choice may change.
fn differ(before: f64, now: f64) -> bool {
    (now - before).abs() * 4.0 > before
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn told(micros: u64, rate: Option<u64>) -> Option<Measured> {
        Some(Measured {
            round_trip: Duration::from_micros(micros),
            rate,
        })
    }

    #[test]
    fn what_is_news_is_said_and_what_is_not_is_not() {
        let mut meter = NetworkMeter::new(false);
        assert!(meter.is_due(0) && meter.learn(0, told(100, None)));
        assert_eq!(meter.known().round_trip, 100_000.0);
        assert!(!meter.is_due(ENOUGH - 1) && meter.is_due(ENOUGH));
        assert!(meter.learn(ENOUGH, told(100, Some(125_000_000))));
        assert_eq!(meter.known().byte, 8.0);
        assert!(!meter.is_due(2 * ENOUGH - 1));
        assert!(!meter.learn(2 * ENOUGH, told(110, Some(120_000_000))));
        // What limits the sender itself is no news, nor is a system that says nothing.
        assert!(!meter.learn(4 * ENOUGH, told(110, None)));
        assert!(!meter.learn(8 * ENOUGH, None));
        assert_eq!(meter.known().byte, 8.0);
    }

    #[test]
    fn a_rate_that_drifts_is_news_when_it_has_drifted_far() {
        let mut meter = NetworkMeter::new(false);
        let rates = [1000, 850, 700, 600, 500].map(|r| r * 1_000_000);
        let news = rates.map(|rate| meter.learn(ENOUGH, told(100, Some(rate))));
        assert_eq!(news, [true, false, true, false, true]);
    }

    #[test]
    fn within_a_machine_nothing_is_asked() {
        assert!(!NetworkMeter::new(true).is_due(u64::MAX - 1));
    }
}
