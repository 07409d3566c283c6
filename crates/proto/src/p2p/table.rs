//! Which protocol for how many bytes: the cheapest by the path's cost lines.
//!
//! T(n) = t0 + tb n for each protocol, one way, in nanoseconds:
//!
//! | protocol | cost of n bytes |
//! | --- | --- |
//! | eager | stream(n) + u copy(n), where u is the share of messages that come before their receive |
//! | rendezvous | 2 control + stream(n) |
//! | get | 2 control + get(n) |
//! | write | stream(n) |
//!
//! No threshold is written here: the crossing points follow from the lines, are found once for each peer and again
//! when its path names a line anew; [`Choice`] keeps them. A knob may set the largest eager message instead.

/// `t0 + tb n` nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// Nanoseconds for nothing.
    pub t0: f64,
    /// Nanoseconds a byte.
    pub tb: f64,
}

impl Line {
    /// Nanoseconds for `n` bytes.
    pub fn at(&self, n: u64) -> f64 {
        self.t0 + self.tb * n as f64
    }
}

/// The lines of one kind of path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lines {
    /// A frame with its payload.
    pub stream: Line,
    /// Copying an unexpected message once more.
    pub copy: Line,
    /// A frame without payload.
    pub control: Line,
    /// The receiver reads the sender's memory.
    pub get: Option<Line>,
}

/// Share of messages assumed to come before their receive (expected receives are the rule in the codes of the papers:
/// seeds 001, section 4.4.1 measures both kinds apart).
pub const UNEXPECTED_SHARE: f64 = 0.25;

/// Largest message that may be sent eagerly whatever the lines say: bounds what one unexpected message costs in memory.
pub const EAGER_CAP: u64 = 512 << 10;

/// The protocols' crossing points for one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Largest message sent eagerly, bytes.
    pub eager_max: u64,
    /// Smallest message that the receiver fetches itself; `u64::MAX` when it never does.
    pub get_min: u64,
    /// Smallest receive that is announced to its source; `u64::MAX` when none is.
    pub announce_min: u64,
}

impl Choice {
    /// Whether the receiver may fetch messages at all.
    #[inline]
    pub fn can_get(&self) -> bool {
        self.get_min != u64::MAX
    }

    /// Whether receives are announced.
    #[inline]
    pub fn announces(&self) -> bool {
        self.announce_min != u64::MAX
    }

    /// Whether an announcement may answer an offer: payload comes in no other way than by being sent.
    #[inline]
    pub fn answers_offers(&self) -> bool {
        self.announces() && !self.can_get()
    }

    /// Finds the crossing points. `eager_max`: set by a knob; `write`: whether receives may be announced.
    pub fn from_lines(lines: &Lines, eager_max: Option<u64>, write: bool) -> Choice {
        let eager = |n: u64| lines.stream.at(n) + UNEXPECTED_SHARE * lines.copy.at(n);
        let rendezvous = |n: u64| 2.0 * lines.control.at(0) + lines.stream.at(n);
        let get = |n: u64| {
            lines
                .get
                .map_or(f64::INFINITY, |g| 2.0 * lines.control.at(0) + g.at(n))
        };
        let eager_max = eager_max.unwrap_or_else(|| {
            crossing(|n| n > EAGER_CAP || eager(n) > rendezvous(n).min(get(n)))
                .saturating_sub(1)
                .min(EAGER_CAP)
        });
        let get_min = match lines.get {
            Some(_) => crossing(|n| get(n) < rendezvous(n)).max(eager_max + 1),
            None => u64::MAX,
        };
        // Announcing wins a handshake; it costs a control frame. Where the receiver would fetch the message itself, the
        // fetch is one copy and the announcement buys little.
        let announce_min = match (write, lines.get) {
            (true, None) => eager_max + 1,
            (true, Some(_)) if get_min > eager_max + 1 => eager_max + 1,
            _ => u64::MAX,
        };
        Choice {
            eager_max,
            get_min,
            announce_min,
        }
    }
}

/// The smallest power-of-two-ish size (steps of an eighth) for which `past` holds; `u64::MAX / 2` when none does.
fn crossing(past: impl Fn(u64) -> bool) -> u64 {
    for shift in 6..40 {
        for eighth in 0..8u64 {
            let n = (1u64 << shift) + (eighth << shift) / 8;
            if past(n) {
                return n;
            }
        }
    }
    u64::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn line(t0: f64, tb: f64) -> Line {
        Line { t0, tb }
    }

    #[test]
    fn a_slow_control_frame_makes_larger_messages_eager() {
        let at = |control| {
            let lines = Lines {
                stream: line(1000.0, 0.3),
                copy: line(50.0, 0.05),
                control: line(control, 0.0),
                get: None,
            };
            Choice::from_lines(&lines, None, true).eager_max
        };
        assert!(at(100.0) < at(1000.0));
        assert!(at(5000.0) <= EAGER_CAP);
    }

    #[test]
    fn a_knob_sets_the_largest_eager_message() {
        let lines = Lines {
            stream: line(200.0, 0.05),
            copy: line(50.0, 0.04),
            control: line(150.0, 0.0),
            get: Some(line(300.0, 0.08)),
        };
        let c = Choice::from_lines(&lines, Some(1000), true);
        assert_eq!(c.eager_max, 1000);
        assert!(c.get_min > 1000);
    }
}
