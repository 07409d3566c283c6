//! Pieces of a partitioned send that travel together: fewer messages if more would not pay.
//!
//! ```text
//! S --row--> R                            all its pieces became ready before the program waited
//! S --row, empty; piece; piece ...--> R   it waited, or was slow: those that were ready left, and
//!                                         the others follow when they are
//! ```
//!
//! A row leaves with its last piece. The receiver may send data that the sender needs only after an
//! earlier piece; so when the sender's program waits, or tests without success, and no transfer of
//! the operation is active, a started row is split. Its message is then empty, which tells the
//! receiver to post its pieces one by one.
//!
//! A row is also split if its pieces become ready slowly ([`Pace`]), though not so slowly that the
//! receiver falls asleep in between: compared with the program's computation of each piece a
//! message of its own costs nothing, and pieces that have left by then need not leave after the
//! last one. Waking the receiver for each piece would cost more than that gains.

use super::{Partitioned, op::Side, setup::Setup};
use crate::messages::{Messages, SendMode, Started};
use kw_base::calibration::Figure;
use kw_base::{Key, Peer, Tick};
use kw_proto::p2p::table::Line;
use kw_sys::buf::Buf;
use std::ops::Range;
use std::time::Duration;

/// A row takes this many times as long as the start of a message, so that the overhead of messages
/// is small.
const LONG: f64 = 32.0;
/// And at least this many measured wake-ups: its receiver may have fallen asleep, and being woken
/// costs the two of them half as much (13 to 27 us where one took 15 us,
/// `docs/decisions.md#what-a-wake-up-costs`). Both are built-in values.
const WAKES: f64 = 8.0 / 3.0;

/// Contents of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cargo {
    Row(u32),
    Piece(u32),
}

impl Cargo {
    pub(super) fn tag(self, setup: &Setup) -> i32 {
        match self {
            Cargo::Row(row) => setup.row_tag(row),
            Cargo::Piece(piece) => setup.first + piece as i32,
        }
    }

    /// First byte and bytes.
    pub(super) fn bytes(self, setup: &Setup) -> (u64, u64) {
        match self {
            Cargo::Row(row) => setup.row_bytes(row),
            Cargo::Piece(piece) => setup.piece(piece),
        }
    }

    pub(super) fn pieces(self, setup: &Setup) -> Range<u32> {
        match self {
            Cargo::Row(row) => setup.pieces_in(row),
            Cargo::Piece(piece) => piece..piece + 1,
        }
    }

    /// Whether this many bytes mean that a row arrives piece by piece.
    pub(super) fn is_apart(self, setup: &Setup, came: u64) -> bool {
        matches!(self, Cargo::Row(_)) && came == 0 && self.bytes(setup).1 != 0
    }
}

/// A row of a send.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Row {
    /// Pieces that are ready.
    ready: u32,
    /// Its pieces leave one by one.
    apart: bool,
}

/// How fast the pieces of a send become ready.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    /// A piece that takes at least this long is worth a message of its own.
    slow: Duration,
    /// If it takes longer than this, the receiver has fallen asleep meanwhile.
    awake: Duration,
    /// When the operation was started, or the last row left.
    since: Tick,
    /// Pieces that became ready since then.
    pieces: u32,
}

impl Pace {
    /// Starts counting pieces again.
    pub(super) fn restart(&mut self, now: Tick) {
        (self.since, self.pieces) = (now, 0);
    }

    /// More pieces are ready: returns whether each so far took that long. The clock is read when
    /// their number has doubled.
    fn is_slow(&mut self, more: u32, now: impl FnOnce() -> Tick) -> bool {
        let before = self.pieces.checked_ilog2();
        self.pieces += more;
        if before == self.pieces.checked_ilog2() {
            return false;
        }
        let each = now().since(self.since) / self.pieces;
        each >= self.slow && each <= self.awake
    }
}

/// Pieces of `bytes` bytes each that a row has, of at most `pieces`. Pieces without data travel on
/// their own: an empty message could not tell that a row is taken apart.
fn row_of(line: &Line, wake: f64, bytes: u64, pieces: u32) -> u32 {
    let long = (LONG * line.t0).max(WAKES * wake) / (line.tb * bytes as f64);
    match bytes {
        0 => 1,
        _ => (long.ceil() as u32).clamp(1, pieces),
    }
}

/// Pieces in a row of a partitioned send, and which of them are slow, by the cost line of the path.
/// `polls`: how long the receiver is sure to poll when it waits.
pub(super) fn row_that_pays(
    messages: &mut Messages,
    polls: Duration,
    to: Peer,
    bytes: u64,
    pieces: u32,
) -> (u32, Pace) {
    messages.route(to);
    let Some(line) = messages.paths.costs().stream_line(to) else {
        return (1, Pace::default());
    };
    let pace = Pace {
        slow: Duration::from_nanos((LONG * line.t0) as u64),
        awake: polls / 2,
        ..Pace::default()
    };
    let wake = messages.paths.costs().figures().get_or_start(Figure::Wake);
    (row_of(&line, wake, bytes, pieces), pace)
}

impl Partitioned {
    /// All partitions of a piece of a send are ready.
    pub(super) fn piece_is_ready(&mut self, messages: &mut Messages, key: Key, piece: u32) {
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        let (Side::Send { rows, .. }, Some(setup)) = (&mut op.side, op.setup) else {
            return;
        };
        let number = piece / setup.row;
        let row = &mut rows[number as usize];
        row.ready += 1;
        if row.apart {
            self.send_cargo(messages, key, Cargo::Piece(piece));
        } else if row.ready as usize == setup.pieces_in(number).len() {
            self.send_cargo(messages, key, Cargo::Row(number));
            self.restart_pace(messages, key);
        } else if row.ready == 1 && !self.begun.contains(&key) {
            self.begun.push(key);
        }
    }

    /// A row has left.
    fn restart_pace(&mut self, messages: &mut Messages, key: Key) {
        if let Some(op) = self.ops.get_mut(key)
            && op.left != 0
            && let Side::Send { pace, .. } = &mut op.side
        {
            pace.restart(messages.paths.clock());
        }
    }

    /// This many more pieces are ready, this one the last. Splits its row, if it is started and
    /// pieces become ready slowly.
    pub(super) fn look_at_pace(&mut self, messages: &mut Messages, key: Key, last: u32, more: u32) {
        let Some(op) = self.ops.get_mut(key) else {
            return;
        };
        let (Side::Send { rows, pace, .. }, Some(setup)) = (&mut op.side, op.setup) else {
            return;
        };
        let number = last / setup.row;
        let row = &mut rows[number as usize];
        let whole = row.ready as usize == setup.pieces_in(number).len();
        if !whole && !row.apart && pace.is_slow(more, || messages.paths.clock()) {
            row.apart = true;
            self.take_apart(messages, key, &setup, number);
        }
    }

    /// The program waits: rows that are begun leave as far as they are ready.
    #[inline]
    pub(crate) fn take_rows_apart(&mut self, messages: &mut Messages) {
        if !self.begun.is_empty() {
            self.take_begun_apart(messages);
        }
    }

    #[cold]
    fn take_begun_apart(&mut self, messages: &mut Messages) {
        for key in std::mem::take(&mut self.begun) {
            let Some(op) = self.ops.get_mut(key) else {
                continue;
            };
            if op.active.is_none() {
                continue;
            }
            if !op.flights.is_empty() {
                self.begun.push(key);
                continue;
            }
            let (Side::Send { rows, .. }, Some(setup)) = (&mut op.side, op.setup) else {
                continue;
            };
            let mut begun = Vec::new();
            for (number, row) in (0..).zip(rows.iter_mut()) {
                let whole = row.ready as usize == setup.pieces_in(number).len();
                if row.ready != 0 && !whole && !row.apart {
                    row.apart = true;
                    begun.push(number);
                }
            }
            begun
                .into_iter()
                .for_each(|row| self.take_apart(messages, key, &setup, row));
        }
    }

    fn take_apart(&mut self, messages: &mut Messages, key: Key, setup: &Setup, row: u32) {
        let Some(op) = self.ops.get(key) else {
            return;
        };
        let Side::Send {
            to,
            context,
            source,
            waits,
            ..
        } = &op.side
        else {
            return;
        };
        let pieces = setup.pieces_in(row);
        let ready: Vec<u32> = pieces.filter(|&p| waits[p as usize] == 0).collect();
        let (to, context, source, tag) = (*to, *context, *source, setup.row_tag(row));
        let mode = SendMode::Standard;
        if let Started::Request(id) = messages.send(to, (context, source, tag), mode, &Buf::EMPTY) {
            messages.requests_mut().release(id);
        }
        ready
            .into_iter()
            .for_each(|piece| self.send_cargo(messages, key, Cargo::Piece(piece)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_slow_when_pieces_take_long_each() {
        let mut pace = Pace {
            slow: Duration::from_nanos(100),
            awake: Duration::from_nanos(400),
            ..Pace::default()
        };
        pace.restart(Tick(1000));
        let mut after = |ns: u64, more| pace.is_slow(more, || Tick(1000 + ns));
        assert!(!after(99, 1) && !after(199, 1), "one, two");
        assert!(!after(1000, 1), "three: the clock is not read");
        assert!(after(500, 2) && !after(2000, 2), "five, seven");
        assert!(after(2000, 10) && !after(50_000, 50), "the receiver sleeps");
    }

    #[test]
    fn rows_are_as_long_as_starts_and_wakeups_are_dear() {
        let line = |t0, tb| Line { t0, tb };
        assert_eq!(row_of(&line(10_000.0, 0.1), 15_000.0, 4 << 20, 64), 1);
        assert_eq!(row_of(&line(10_000.0, 0.1), 15_000.0, 800_000, 64), 4);
        assert_eq!(row_of(&line(100.0, 0.1), 15_000.0, 100_000, 64), 4);
        assert_eq!(row_of(&line(100.0, 0.1), 30_000.0, 100_000, 64), 8);
        assert_eq!(row_of(&line(100.0, 0.1), 15_000.0, 1, 64), 64);
        assert_eq!(row_of(&line(100.0, 0.1), 15_000.0, 0, 64), 1);
        assert_eq!(row_of(&line(100.0, 0.0), 15_000.0, 10, 64), 64);
    }
}
