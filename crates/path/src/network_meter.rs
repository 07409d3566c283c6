//! Measurements of the network under a connection: the round trip when it is made, the rate when it
//! has carried enough data. Over TCP the system knows both; asking costs a system call, so that is
//! done when the bytes sent have doubled. Over UDP the connection knows the round trip, and its
//! [`Stretch`] the rate.

use kw_base::Tick;
use kw_proto::p2p::prices::Network;
use kw_sys::tcp::Measured;
use std::time::Duration;

/// Bytes that must be sent before a rate is meaningful.
const ENOUGH: u64 = 4 << 20;

/// Bytes of a stretch that make a rate.
const LONG: u64 = 1 << 20;
/// If nothing is acknowledged for longer, the other rank's program computes.
const PAUSE: Duration = Duration::from_millis(5);

/// A time in which a connection always had something to send, and the other rank polled: the rate
/// at which data arrives there is that of the network, or of either side's work.
#[derive(Debug, Default)]
pub struct Stretch {
    /// Its start, and how many bytes had arrived by then.
    since: Option<(Tick, u64)>,
    last: Tick,
}

impl Stretch {
    /// This many bytes have arrived; `waiting`: more of them have not been sent yet.
    #[inline]
    pub fn note(&mut self, now: Tick, arrived: u64, waiting: bool) {
        let paused = now > self.last + PAUSE;
        self.last = now;
        match (waiting, self.since) {
            (false, _) => self.since = None,
            (true, Some(_)) if !paused => {}
            (true, _) => self.since = Some((now, arrived)),
        }
    }

    /// Bytes per second, if it has lasted for enough of them.
    pub fn rate(&self, now: Tick, arrived: u64) -> Option<u64> {
        let (begin, before) = self.since?;
        let (time, bytes) = (now.0.checked_sub(begin.0)?, arrived - before);
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(time.max(1));
        (bytes >= LONG && rate > 0).then_some(rate as u64)
    }
}

/// See the module. One for each connection.
#[derive(Debug)]
pub struct NetworkMeter {
    /// The last reported values: choices are priced with them.
    known: Network,
    /// Number of bytes sent at the last query.
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

    /// The known values.
    pub fn known(&self) -> Network {
        self.known
    }

    /// Whether to query the system after this many bytes.
    #[inline]
    pub fn is_due(&self, sent: u64) -> bool {
        sent >= self.due
    }

    /// The system's values after this many bytes. Returns whether they are new.
    #[cold]
    pub fn learn(&mut self, sent: u64, measured: Option<Measured>) -> bool {
        self.due = sent.saturating_mul(2).max(ENOUGH);
        let Some(measured) = measured else {
            return false;
        };
        let mut now = self.known;
        now.round_trip = measured.round_trip.as_nanos() as f64;
        if let Some(rate) = measured.rate {
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

/// Whether two values differ enough to change a choice.
fn differ(before: f64, now: f64) -> bool {
    (now - before).abs() * 4.0 > before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(micros: u64, rate: Option<u64>) -> Option<Measured> {
        Some(Measured {
            round_trip: Duration::from_micros(micros),
            rate,
        })
    }

    #[test]
    fn what_is_news_is_reported_and_what_is_not_is_not() {
        let mut meter = NetworkMeter::new(false);
        assert!(meter.is_due(0) && meter.learn(0, measured(100, None)));
        assert_eq!(meter.known().round_trip, 100_000.0);
        assert!(!meter.is_due(ENOUGH - 1) && meter.is_due(ENOUGH));
        assert!(meter.learn(ENOUGH, measured(100, Some(125_000_000))));
        assert_eq!(meter.known().byte, 8.0);
        assert!(!meter.is_due(2 * ENOUGH - 1));
        assert!(!meter.learn(2 * ENOUGH, measured(110, Some(120_000_000))));
        // A limit by the sender itself is ignored, as is a system that reports nothing.
        assert!(!meter.learn(4 * ENOUGH, measured(110, None)));
        assert!(!meter.learn(8 * ENOUGH, None));
        assert_eq!(meter.known().byte, 8.0);
    }

    #[test]
    fn a_rate_is_what_arrives_while_more_always_waits() {
        let mut stretch = Stretch::default();
        let ms = |n: u64| Tick(n * 1_000_000);
        stretch.note(ms(5), 1000, true);
        stretch.note(ms(6), 5000, true);
        assert_eq!(stretch.rate(ms(7), 1000 + LONG - 1), None);
        stretch.note(ms(10), 6000, true);
        assert_eq!(stretch.rate(ms(13), 1000 + LONG), Some(LONG * 125));
        // A stretch that has sent everything starts again.
        stretch.note(ms(14), 2 * LONG, false);
        assert_eq!(stretch.rate(ms(15), 9 * LONG), None);
        stretch.note(ms(20), 9 * LONG, true);
        assert_eq!(stretch.rate(ms(21), 10 * LONG), Some(LONG * 1000));
        assert_eq!(stretch.rate(ms(19), 10 * LONG), None);
        // So does one in which the peer was silent for long: the other rank computed.
        stretch.note(ms(40), 10 * LONG, true);
        assert_eq!(stretch.rate(ms(41), 11 * LONG), Some(LONG * 1000));
    }

    #[test]
    fn a_rate_that_drifts_is_news_when_it_has_drifted_far() {
        let mut meter = NetworkMeter::new(false);
        let rates = [1000, 850, 700, 600, 500].map(|r| r * 1_000_000);
        let news = rates.map(|rate| meter.learn(ENOUGH, measured(100, Some(rate))));
        assert_eq!(news, [true, false, true, false, true]);
    }

    #[test]
    fn within_a_machine_nothing_is_asked() {
        assert!(!NetworkMeter::new(true).is_due(u64::MAX - 1));
    }
}
