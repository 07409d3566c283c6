//! How long a packet takes there and its acknowledgement back (RFC 6298; RFC 9002, section 5).

use super::Params;
use std::time::Duration;

/// The estimate.
#[derive(Clone, Debug)]
pub struct Rtt {
    smoothed: Duration,
    variation: Duration,
    lowest: Duration,
    latest: Duration,
    /// How long acknowledgements that rode on an answer were held back recently.
    held: Duration,
    /// The last one rode on an answer.
    answered: bool,
    known: bool,
}

impl Rtt {
    /// The estimate before the first sample: that of RFC 9002, 6.2.2 is a third of a second; here
    /// it is a millisecond.
    pub fn new(params: &Params) -> Rtt {
        Rtt {
            smoothed: params.first_rtt,
            variation: params.first_rtt / 2,
            lowest: Duration::MAX,
            latest: params.first_rtt,
            held: params.ack_delay,
            answered: false,
            known: false,
        }
    }

    /// An acknowledgement came `latest` after its packet was sent, by itself or with an `answer`,
    /// and had been held back for `delay`. More than `probe_first` is not the network's doing: the
    /// other rank was computing.
    pub fn sample(&mut self, latest: Duration, delay: Duration, answer: bool, params: &Params) {
        let latest = latest.min(params.probe_first);
        self.latest = latest;
        self.held = match answer {
            true => delay.min(params.ack_delay).max(self.held * 7 / 8),
            false => params.ack_delay,
        };
        self.answered = answer;
        self.lowest = self.lowest.min(latest);
        let adjusted = if latest >= self.lowest + delay {
            latest - delay
        } else {
            latest
        };
        if !self.known {
            self.known = true;
            self.smoothed = adjusted;
            self.variation = adjusted / 2;
            return;
        }
        self.variation = (3 * self.variation + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (7 * self.smoothed + adjusted) / 8;
    }

    /// The smoothed time.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The shortest one.
    pub fn lowest(&self) -> Option<Duration> {
        self.known.then_some(self.lowest)
    }

    /// How long after a newer packet was acknowledged an older one is lost (RFC 9002, 6.1.2).
    pub fn loss_delay(&self, params: &Params) -> Duration {
        let nine_eighths = self.smoothed.max(self.latest) * 9 / 8;
        nine_eighths.clamp(params.granularity, params.probe_first)
    }

    /// How long to wait for an acknowledgement before asking (RFC 9002, 6.2.1), for the n-th time
    /// in a row. Acknowledgements that ride on answers come as soon as those do: in a ping-pong a
    /// lost message costs a few round trips. A rank that computes lets the estimate grow without
    /// the network being any slower: `probe_first` bounds it, asking costs one packet.
    pub fn probe_delay(&self, asked: u32, params: &Params) -> Duration {
        let least = match self.answered {
            true => params.probe_least,
            false => params.granularity,
        };
        let once = self.smoothed + (4 * self.variation).max(least) + self.held;
        let once = once.min(params.probe_first);
        (once * (1 << asked.min(16))).min(params.probe_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn the_estimate_follows_the_rfc() {
        let p = Params::default();
        let mut r = Rtt::new(&p);
        assert_eq!(r.lowest(), None);
        r.sample(100 * US, Duration::ZERO, false, &p);
        assert_eq!((r.smoothed, r.variation), (100 * US, 50 * US));
        r.sample(300 * US, 40 * US, false, &p);
        assert_eq!(
            (r.smoothed, r.variation),
            (120 * US, Duration::from_nanos(77_500))
        );
        r.sample(110 * US, 40 * US, false, &p);
        assert_eq!(r.lowest(), Some(100 * US));
        assert!(
            r.smoothed < 120 * US,
            "a delay longer than the sample is not taken off"
        );
    }

    #[test]
    fn who_is_answered_at_once_asks_soon_and_who_is_not_waits_for_the_acknowledgement() {
        let p = Params::default();
        let mut r = Rtt::new(&p);
        for _ in 0..100 {
            r.sample(30 * US, 5 * US, true, &p);
        }
        let soon = r.probe_delay(0, &p);
        assert!(soon < 300 * US && soon > p.probe_least, "{soon:?}");
        r.sample(1030 * US, 1000 * US, false, &p);
        assert!(r.probe_delay(0, &p) > p.ack_delay);
        for _ in 0..100 {
            r.sample(30 * US, 5 * US, true, &p);
        }
        assert!(r.probe_delay(0, &p) < 300 * US);
    }

    #[test]
    fn asking_backs_off_and_is_bounded_on_both_sides() {
        let p = Params::default();
        let mut r = Rtt::new(&p);
        for _ in 0..100 {
            r.sample(30 * US, Duration::ZERO, false, &p);
        }
        let once = r.probe_delay(0, &p);
        assert_eq!(r.probe_delay(2, &p), 4 * once);
        assert_eq!(r.probe_delay(60, &p), p.probe_last);
        r.sample(Duration::from_secs(3), Duration::ZERO, false, &p);
        assert_eq!(r.probe_delay(0, &p), p.probe_first);
        assert_eq!(r.loss_delay(&p), p.probe_first);
    }
}
