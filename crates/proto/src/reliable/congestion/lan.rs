//! CUBIC (RFC 9438) for a local network: single losses do not count as congestion.
//!
//! A lost packet is the only sign of a full queue that every network gives, but in a local network
//! of a cluster there is another common cause: noise, a driver, a socket buffer that overflowed
//! once. A window that shrinks at every lost packet is then small for nothing: 1 % loss would leave
//! 12 packets. So the window only shrinks when more than [`TOLERATED`] of the latest bytes were
//! lost (BBR draws the same line: draft-ietf-ccwg-bbr, `BBR.LossThresh`, 2 %); a queue that
//! overflows loses far more than that at once. A mark (ECN) is never noise and always counts.
//!
//! ```text
//!            a congestion event                 window >= threshold
//! slow start -----------------------> avoidance <-------- slow start
//!     ^                                   |
//!     +---------- collapse ---------------+
//! ```

use super::Congestion;
use crate::reliable::Params;
use kw_base::Tick;
use std::time::Duration;

/// Share of lost bytes, in percent, below which they are taken for noise.
const TOLERATED: u64 = 2;
/// Lost packets that are never congestion, however few went before them.
const FEW: u64 = 2;
/// Number of packets in "the latest bytes"; older ones count half, then a quarter, ...
const LATEST: u64 = 512;
/// Fraction of the window left after congestion, in tenths (RFC 9438, 4.6: beta).
const BETA_TENTHS: u64 = 7;
/// How fast the window grows, packets per cubic second (RFC 9438, 5.1: C).
const C: f64 = 0.4;
/// Growth beside a Reno flow, packets per round trip (RFC 9438, 4.3: 3 (1 - beta) / (1 + beta)).
const ALPHA: f64 = 9.0 / 17.0;

/// The default congestion control.
#[derive(Debug)]
pub struct Lan {
    packet: u64,
    least: u64,
    window: u64,
    threshold: u64,
    /// Packets sent before this moment belong to the congestion that was answered last.
    answered: Tick,
    /// When avoidance began, and the window before the congestion that led to it, in bytes.
    epoch: Option<(Tick, u64)>,
    /// Window of an equivalent Reno flow, in bytes.
    reno: f64,
    acked: u64,
    lost: u64,
}

impl Lan {
    /// The state at the beginning of a connection.
    pub fn new(params: &Params) -> Lan {
        let packet = params.datagram as u64;
        Lan {
            packet,
            least: params.least_window * packet,
            window: params.first_window * packet,
            threshold: u64::MAX,
            answered: Tick::default(),
            epoch: None,
            reno: 0.0,
            acked: 0,
            lost: 0,
        }
    }

    fn remember(&mut self, acked: u64, lost: u64) {
        self.acked += acked;
        self.lost += lost;
        if self.acked + self.lost > LATEST * self.packet {
            self.acked /= 2;
            self.lost /= 2;
        }
    }

    fn shrink(&mut self, now: Tick) {
        self.answered = now;
        self.epoch = Some((now, self.window));
        self.window = (self.window * BETA_TENTHS / 10).max(self.least);
        self.threshold = self.window;
        self.reno = self.window as f64;
        (self.acked, self.lost) = (0, 0);
    }

    /// Target of the window within a round trip (RFC 9438, 4.2 and 4.3).
    fn target(&mut self, now: Tick, bytes: u64, rtt: Duration) -> f64 {
        let (begin, before) = *self.epoch.get_or_insert((now, self.window));
        let packet = self.packet as f64;
        let before = before as f64 / packet;
        let k = (before * (10 - BETA_TENTHS) as f64 / 10.0 / C).cbrt();
        let t = (now.since(begin) + rtt).as_secs_f64() - k;
        self.reno += ALPHA * packet * bytes as f64 / self.window as f64;
        let cubic = (C * t * t * t + before) * packet;
        cubic.max(self.reno)
    }
}

impl Congestion for Lan {
    fn on_acked(&mut self, now: Tick, bytes: u64, rtt: Duration, limited: bool) {
        self.remember(bytes, 0);
        if !limited {
            return;
        }
        if self.window < self.threshold {
            self.window += bytes;
            return;
        }
        let (window, target) = (self.window as f64, self.target(now, bytes, rtt));
        // Not faster than slow start, however far away the target is (RFC 9438, 4.4).
        let step = ((target.min(1.5 * window) - window) / window * bytes as f64).max(0.0);
        self.window += step as u64;
    }

    fn on_lost(&mut self, now: Tick, bytes: u64, sent: Tick) {
        self.remember(0, bytes);
        let noise = self.lost <= FEW * self.packet
            || self.lost * 100 <= TOLERATED * (self.acked + self.lost);
        if !noise && sent > self.answered {
            self.shrink(now);
        }
    }

    fn on_marked(&mut self, now: Tick, sent: Tick) {
        if sent > self.answered {
            self.shrink(now);
        }
    }

    fn on_collapse(&mut self, now: Tick) {
        self.shrink(now);
        self.window = self.least;
    }

    fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_micros(100);

    fn at(us: u64) -> Tick {
        Tick(us * 1000)
    }

    fn fresh() -> (Lan, u64) {
        let p = Params::default();
        (Lan::new(&p), p.datagram as u64)
    }

    #[test]
    fn slow_start_doubles_and_an_unused_window_does_not_grow() {
        let (mut c, _) = fresh();
        let w = c.window();
        c.on_acked(at(100), w, RTT, false);
        assert_eq!(c.window(), w);
        c.on_acked(at(200), w, RTT, true);
        assert_eq!(c.window(), 2 * w);
    }

    #[test]
    fn one_percent_is_noise_and_five_are_not() {
        for (per_thousand, shrinks) in [(10, false), (50, true)] {
            let (mut c, packet) = fresh();
            let mut smallest = c.window();
            for i in 1..2000u64 {
                if i * per_thousand % 1000 < per_thousand {
                    c.on_lost(at(i), packet, at(i));
                } else {
                    c.on_acked(at(i), packet, RTT, true);
                }
                smallest = smallest.min(c.window());
            }
            assert_eq!(
                smallest < Lan::new(&Params::default()).window(),
                shrinks,
                "{per_thousand}"
            );
        }
    }

    #[test]
    fn one_congestion_is_answered_once() {
        let (mut c, packet) = fresh();
        let w = c.window();
        c.on_lost(at(100), 10 * packet, at(50));
        assert_eq!(c.window(), w * 7 / 10);
        c.on_lost(at(110), 10 * packet, at(90));
        c.on_marked(at(120), at(99));
        assert_eq!(c.window(), w * 7 / 10, "sent before the answer");
        c.on_marked(at(300), at(200));
        assert_eq!(c.window(), w * 7 / 10 * 7 / 10);
    }

    #[test]
    fn after_congestion_the_window_grows_back_and_never_falls_below_the_least() {
        let (mut c, packet) = fresh();
        c.on_lost(at(100), 20 * packet, at(50));
        let after = c.window();
        for i in 0..2000 {
            let w = c.window();
            c.on_acked(at(200 + 100 * i), w, RTT, true);
        }
        assert!(c.window() > 2 * after, "{} -> {}", after, c.window());
        for i in 0..100 {
            c.on_collapse(at(10_000_000 + i));
        }
        assert_eq!(c.window(), Params::default().least_window * packet);
    }
}
