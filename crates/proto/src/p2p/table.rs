//! Which protocol for how many bytes: the cheapest by the path's cost lines.
//!
//! T(n) = t0 + tb n for each protocol, one way, in nanoseconds:
//!
//! | protocol | cost of n bytes |
//! | --- | --- |
//! | eager | stream(n) + u copy(n), where u is the share of messages that come before their receive |
//! | rendezvous | 2 control + stream(n) |
//! | get | 2 control + get(n), or what it costs if both ranks copy |
//! | write | stream(n) |
//!
//! No threshold is a constant: the crossing points follow from the cost lines; they are computed
//! once for each peer and again when its path reports a new line, and kept in [`Choice`]. A setting
//! may override the largest eager message.
//!
//! A message is eager while that is cheaper than both rendezvous and get, or costs at most
//! [`WORTH`] of its own time more: if the network is slow and the copy is not, a sender should not
//! wait for its receiver. Memory bounds it as well ([`Room`]), because a message that is sent
//! eagerly may come before its receive.

use crate::stripe::STRIPE_FROM;
pub use kw_base::calibration::Line;
use kw_base::overheads::WINDOW;

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
    /// The same for messages of [`SHARED_FROM`] bytes and more, of which the sender copies a part,
    /// if it may.
    pub shared_get: Option<Line>,
}

/// The shortest message that receiver and sender copy together, bytes (`kw_path::shm`): asking for
/// help and taking turns cost as much as one core copies in about a microsecond.
pub const SHARED_FROM: u64 = 128 << 10;

/// Share of messages assumed to come before their receive (expected receives are the rule in the
/// codes of the papers: seeds 001, section 4.4.1 measures both kinds apart). A built-in value, as
/// [`WORTH`] is.
pub const UNEXPECTED_SHARE: f64 = 0.25;

/// A handshake that gains less than this share of the message's time is not worth the sender's
/// wait.
pub const WORTH: f64 = 1.0 / 64.0;

/// Largest message that may be sent eagerly if nothing bounds the memory for unexpected messages
/// (`KW_UNEXPECTED=0`), bytes.
const EAGER_UNBOUNDED: u64 = 512 << 10;
/// Largest one if there is a bound, bytes: a delay of 8 ms at 1 Gb/s for messages to the same peer
/// behind it. A longer message goes over all links of two hosts, which an eager one does not.
const EAGER_MOST: u64 = STRIPE_FROM - 1;

/// Limits of a rank's memory for unexpected messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Bytes that a rank buffers before it pauses senders; zero: no limit (`KW_UNEXPECTED`).
    pub mark: u64,
    /// Ranks that may send to it.
    pub peers: u32,
}

impl Room {
    /// Largest message that any peer may send eagerly, bytes. When each peer has one in flight
    /// while it is told to pause, the rank keeps at most a quarter more than its mark; but each may
    /// send as much as waits in a path's queue in any case (256 KB, see [flow control](super)).
    pub fn eager_most(&self) -> u64 {
        match self.mark {
            0 => EAGER_UNBOUNDED,
            mark => {
                let share = mark / 4 / u64::from(self.peers.max(1));
                share.max(WINDOW.min(mark)).min(EAGER_MOST)
            }
        }
    }
}

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

    /// Whether an announcement may answer an offer: payload comes in no other way than by being
    /// sent.
    #[inline]
    pub fn answers_offers(&self) -> bool {
        self.announces() && !self.can_get()
    }

    /// Finds the crossing points. `eager_max`: set by a setting; `write`: whether receives may be
    /// announced.
    pub fn from_lines(lines: &Lines, room: Room, eager_max: Option<u64>, write: bool) -> Choice {
        let keeping = |n: u64| UNEXPECTED_SHARE * lines.copy.at(n);
        let eager = |n: u64| lines.stream.at(n) + keeping(n);
        let rendezvous = |n: u64| 2.0 * lines.control.at(0) + lines.stream.at(n);
        let get = |n: u64| {
            let shared = lines.shared_get.filter(|_| n >= SHARED_FROM);
            shared
                .or(lines.get)
                .map_or(f64::INFINITY, |g| 2.0 * lines.control.at(0) + g.at(n))
        };
        let eager_max = eager_max.unwrap_or_else(|| {
            let most = room.eager_most();
            let dear = |n: u64| {
                eager(n) > rendezvous(n).min(get(n)) && keeping(n) > WORTH * lines.stream.at(n)
            };
            crossing(dear).saturating_sub(1).min(most)
        });
        let get_min = match lines.get {
            Some(_) => crossing(|n| get(n) < rendezvous(n)).max(eager_max + 1),
            None => u64::MAX,
        };
        // Announcing saves a handshake; it costs a control frame. If the receiver would fetch the
        // message itself, the fetch is one copy and the announcement gains little.
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

/// Limit of eager messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// `KW_EAGER_SHM`, `KW_EAGER_TCP` or `KW_EAGER_UDP`.
    Setting,
    /// Memory for early messages.
    Room,
    /// The lines: for longer messages the copy of those that come early costs more than a
    /// handshake.
    Lines,
}

impl Reason {
    /// One sentence without its end.
    pub fn sentence(self) -> &'static str {
        match self {
            Reason::Setting => "set by KW_EAGER_*",
            Reason::Room => "the memory that KW_UNEXPECTED leaves each peer",
            Reason::Lines => "copying a longer unexpected message costs more than a handshake",
        }
    }
}

impl Choice {
    /// Limit of its eager messages, computed from these limits and this setting.
    pub fn reason(&self, room: Room, eager_max: Option<u64>) -> Reason {
        match eager_max {
            Some(_) => Reason::Setting,
            None if self.eager_max >= room.eager_most() => Reason::Room,
            None => Reason::Lines,
        }
    }
}

/// The smallest power-of-two-ish size (steps of an eighth) for which `past` holds; `u64::MAX / 2`
/// when none does.
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

    #[test]
    fn messages_that_both_ranks_copy_are_read_from_a_length_on() {
        let lines = Lines {
            stream: line(90.0, 0.067),
            copy: line(60.0, 0.02),
            control: line(70.0, 0.0),
            get: Some(line(1300.0, 0.093)),
            shared_get: None,
        };
        let room = Room {
            mark: 32 << 20,
            peers: 1,
        };
        let alone = Choice::from_lines(&lines, room, None, true);
        assert!(alone.get_min > 1 << 40, "{alone:?}");
        let lines = Lines {
            shared_get: Some(line(1400.0, 0.051)),
            ..lines
        };
        let both = Choice::from_lines(&lines, room, None, true);
        assert_eq!(both.get_min, SHARED_FROM);
        assert_eq!(both.eager_max, alone.eager_max);
    }
    use proptest::prelude::*;

    const fn line(t0: f64, tb: f64) -> Line {
        Line { t0, tb }
    }

    const ROOM: Room = Room {
        mark: 32 << 20,
        peers: 4,
    };

    fn network(control: f64, byte: f64, copy: f64) -> Lines {
        Lines {
            stream: line(4200.0, byte),
            copy: line(60.0, copy),
            control: line(control, 0.0),
            get: None,
            shared_get: None,
        }
    }

    fn eager(lines: &Lines, room: Room) -> u64 {
        Choice::from_lines(lines, room, None, true).eager_max
    }

    #[test]
    fn a_setting_sets_the_largest_eager_message() {
        let lines = Lines {
            stream: line(200.0, 0.05),
            copy: line(50.0, 0.04),
            control: line(150.0, 0.0),
            get: Some(line(300.0, 0.08)),
            shared_get: None,
        };
        let c = Choice::from_lines(&lines, ROOM, Some(1000), true);
        assert_eq!(c.eager_max, 1000);
        assert!(c.get_min > 1000);
        let beyond = Choice::from_lines(&lines, ROOM, Some(1 << 30), true);
        assert_eq!(beyond.eager_max, 1 << 30, "a setting goes before the room");
    }

    #[test]
    fn where_the_copy_is_cheap_beside_the_wire_only_memory_bounds_eager_messages() {
        let gigabit = network(50_000.0, 8.0, 0.06);
        assert_eq!(eager(&gigabit, ROOM), ROOM.eager_most());
        assert_eq!(ROOM.eager_most(), EAGER_MOST);
        let loopback = network(4_200.0, 0.12, 0.06);
        assert!(eager(&loopback, ROOM) < ROOM.eager_most());
    }

    #[test]
    fn early_messages_of_all_peers_pass_the_mark_by_a_quarter_or_by_what_waits_in_queues() {
        for peers in [0, 1, 3, 16, 128, 10_000] {
            for mark in [1, 4 << 10, 1 << 20, 32 << 20, 1 << 40] {
                let most = Room { mark, peers }.eager_most();
                let all = most * u64::from(peers);
                let queues = WINDOW.min(mark) * u64::from(peers);
                assert!(
                    all <= (mark / 4).max(queues),
                    "{peers} peers, mark {mark}: {most}"
                );
                assert!(most <= EAGER_MOST && most > 0);
            }
        }
        let unbounded = Room { mark: 0, peers: 9 };
        assert_eq!(unbounded.eager_most(), EAGER_UNBOUNDED);
    }

    proptest! {
        #[test]
        fn eager_messages_grow_with_the_handshake_and_shrink_with_the_copy(
            control in 10.0..1e6f64, byte in 0.005..100.0f64, copy in 0.001..10.0f64,
            more in 1.0..50.0f64, mark in 1u64..1 << 32, peers in 1u32..1000, fetch in proptest::option::of(100.0..1e5f64),
        ) {
            let room = Room { mark, peers };
            let with = |control, byte, copy| Lines {
                get: fetch.map(|t0| line(t0, 0.07)),
                ..network(control, byte, copy)
            };
            let now = eager(&with(control, byte, copy), room);
            prop_assert!(now <= room.eager_most());
            prop_assert!(eager(&with(control * more, byte, copy), room) >= now);
            prop_assert!(eager(&with(control, byte, copy * more), room) <= now);
            let wider = Room { mark: mark * 2, peers };
            prop_assert!(eager(&with(control, byte, copy), wider) >= now);
            let crowd = Room { mark, peers: peers * 2 };
            prop_assert!(eager(&with(control, byte, copy), crowd) <= now);
            let c = Choice::from_lines(&with(control, byte, copy), room, None, true);
            prop_assert!(c.get_min > c.eager_max && c.announce_min > c.eager_max);
        }

        #[test]
        fn on_a_slower_wire_no_message_ceases_to_be_eager(
            control in 10.0..1e6f64, byte in 0.005..100.0f64, copy in 0.001..10.0f64, more in 1.0..50.0f64,
        ) {
            let now = eager(&network(control, byte, copy), ROOM);
            prop_assert!(eager(&network(control, byte * more, copy), ROOM) >= now);
        }
    }
}
