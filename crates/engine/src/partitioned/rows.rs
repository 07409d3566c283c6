//! Pieces of a partitioned send that travel together: fewer messages where more would not pay.
//!
//! ```text
//! S --row--> R                               all its pieces became ready before the program waited
//! S --row, empty; piece; piece ...--> R      it waited: those that were ready left, and the others follow when they are
//! ```
//!
//! A row leaves with its last piece. The receiver may say only after an earlier piece what lets the sender go on; so when
//! the sender's program waits, or asks in vain, and nothing of the operation is under way, a row that is begun is taken
//! apart. Its message then is empty, which tells the receiver to post its pieces one by one.

use super::{Side, setup::Setup};
use crate::engine::{Engine, SendMode, Started};
use kw_base::{Key, Peer};
use kw_proto::p2p::table::Line;
use kw_sys::buf::Buf;
use std::ops::Range;

/// A row takes so many times as long as the start of a message, so that what messages cost beside one another is little.
const LONG: f64 = 32.0;

/// What one message carries.
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

    /// Whether so many bytes say that a row comes piece by piece.
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

/// Pieces of `bytes` bytes each that a row has, of at most `pieces`. Pieces without data travel on their own: an empty message
/// could not say that a row is taken apart.
fn row_of(line: &Line, bytes: u64, pieces: u32) -> u32 {
    let starts = LONG * line.t0 / (line.tb * bytes as f64);
    match bytes {
        0 => 1,
        _ => (starts.ceil() as u32).clamp(1, pieces),
    }
}

impl Engine {
    /// Pieces in a row of a partitioned send, by the cost line of the path.
    pub(super) fn row_that_pays(&mut self, to: Peer, bytes: u64, pieces: u32) -> u32 {
        self.route(to);
        let line = self.paths.stream_line(to);
        line.map_or(1, |line| row_of(&line, bytes, pieces))
    }

    /// All partitions of a piece of a send are ready.
    pub(super) fn piece_is_ready(&mut self, key: Key, piece: u32) {
        let Some(op) = self.partitioned.ops.get_mut(key) else {
            return;
        };
        let (Side::Send { rows, .. }, Some(setup)) = (&mut op.side, op.setup) else {
            return;
        };
        let number = piece / setup.row;
        let row = &mut rows[number as usize];
        row.ready += 1;
        if row.apart {
            self.send_cargo(key, Cargo::Piece(piece));
        } else if row.ready as usize == setup.pieces_in(number).len() {
            self.send_cargo(key, Cargo::Row(number));
        } else if row.ready == 1 && !self.partitioned.begun.contains(&key) {
            self.partitioned.begun.push(key);
        }
    }

    /// The program waits: rows that are begun leave as far as they are ready.
    #[inline]
    pub(crate) fn take_rows_apart(&mut self) {
        if !self.partitioned.begun.is_empty() {
            self.take_begun_apart();
        }
    }

    #[cold]
    fn take_begun_apart(&mut self) {
        for key in std::mem::take(&mut self.partitioned.begun) {
            let Some(op) = self.partitioned.ops.get_mut(key) else {
                continue;
            };
            if op.active.is_none() {
                continue;
            }
            if !op.flights.is_empty() {
                self.partitioned.begun.push(key);
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
                .for_each(|row| self.take_apart(key, &setup, row));
        }
    }

    fn take_apart(&mut self, key: Key, setup: &Setup, row: u32) {
        let Some(op) = self.partitioned.ops.get(key) else {
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
        if let Started::Request(id) = self.send(to, context, source, tag, mode, &Buf::EMPTY) {
            self.release(id);
        }
        ready
            .into_iter()
            .for_each(|piece| self.send_cargo(key, Cargo::Piece(piece)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_starts_are_dear() {
        let line = |t0, tb| Line { t0, tb };
        assert_eq!(row_of(&line(100.0, 0.1), 1 << 20, 64), 1);
        assert_eq!(row_of(&line(100.0, 0.1), 8_000, 64), 4);
        assert_eq!(row_of(&line(100.0, 0.1), 1, 64), 64);
        assert_eq!(row_of(&line(100.0, 0.1), 0, 64), 1);
        assert_eq!(row_of(&line(100.0, 0.0), 10, 64), 64);
    }
}
