//! Setup message of the sender of a partitioned transfer: the user's tag, and how the data is
//! divided into pieces.

/// Most pieces of an operation: a receive is posted for each, and a message is sent.
pub(super) const MOST_PIECES: u32 = 64;
/// Most tags of an operation: those of its pieces, and of its rows.
pub(super) const MOST_TAGS: u32 = 2 * MOST_PIECES;
/// Tag of setups; those of pieces are the negative numbers from here to [`LAST_TAG`].
pub(super) const SETUP_TAG: i32 = i32::MIN;
/// Other negative tags have a meaning of their own (MPI_ANY_TAG).
pub(super) const LAST_TAG: i32 = -1024;
/// Bytes of a setup.
pub(super) const SETUP_LEN: usize = 32;

/// How the sender has cut its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Setup {
    /// The user's tag.
    pub(super) tag: i32,
    /// Tag of the first piece.
    pub(super) first: i32,
    /// Partitions.
    pub(super) partitions: u32,
    /// Partitions in a piece; the last piece may have fewer.
    pub(super) group: u32,
    /// Bytes of a partition.
    pub(super) bytes: u64,
    /// Pieces that travel as one message, when they become ready while the sender computes; the
    /// last row may have fewer.
    pub(super) row: u32,
    /// Type signature of the whole data (KW_CHECK), or 0.
    pub(super) types: u32,
}

impl Setup {
    pub(super) fn encode(&self) -> [u8; SETUP_LEN] {
        let mut b = [0; SETUP_LEN];
        b[..4].copy_from_slice(&self.tag.to_le_bytes());
        b[4..8].copy_from_slice(&self.first.to_le_bytes());
        b[8..12].copy_from_slice(&self.partitions.to_le_bytes());
        b[12..16].copy_from_slice(&self.group.to_le_bytes());
        b[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        b[24..28].copy_from_slice(&self.row.to_le_bytes());
        b[28..].copy_from_slice(&self.types.to_le_bytes());
        b
    }

    pub(super) fn decode(b: &[u8; SETUP_LEN]) -> Option<Setup> {
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let setup = Setup {
            tag: word(0) as i32,
            first: word(4) as i32,
            partitions: word(8),
            group: word(12),
            bytes: word(16) as u64 | (word(20) as u64) << 32,
            row: word(24),
            types: word(28),
        };
        let sound =
            setup.tag >= 0 && setup.first > SETUP_TAG && setup.partitions > 0 && setup.group > 0;
        let sound = sound && setup.row > 0;
        let last = setup.first as i64 + MOST_TAGS as i64;
        let sound = sound && setup.pieces() <= MOST_PIECES && last <= LAST_TAG as i64;
        let len = setup.bytes.checked_mul(setup.partitions as u64);
        (sound && len.is_some()).then_some(setup)
    }

    pub(super) fn pieces(&self) -> u32 {
        self.partitions.div_ceil(self.group)
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes * self.partitions as u64
    }

    /// First byte and bytes of a piece.
    pub(super) fn piece(&self, number: u32) -> (u64, u64) {
        let from = number * self.group;
        let to = self.partitions.min(from + self.group);
        (from as u64 * self.bytes, (to - from) as u64 * self.bytes)
    }

    /// The first and the last piece that one of `of` equal partitions of a receive of `len` bytes
    /// needs. Without data the partitions of both sides are shares of nothing, and correspond all
    /// the same.
    pub(super) fn pieces_for(&self, len: u64, partition: u32, of: u32) -> (u32, u32) {
        let of = of.max(1);
        if len > 0 {
            let bytes = len / of as u64;
            let from = bytes * partition as u64;
            return self.pieces_of(from, from + bytes);
        }
        let share = Setup {
            bytes: of as u64,
            ..*self
        };
        let (each, at) = (self.partitions as u64, partition as u64);
        share.pieces_of(at * each, (at + 1) * each)
    }

    /// Rows of pieces.
    pub(super) fn rows(&self) -> u32 {
        self.pieces().div_ceil(self.row)
    }

    /// The pieces of a row.
    pub(super) fn pieces_in(&self, row: u32) -> std::ops::Range<u32> {
        row * self.row..self.pieces().min((row + 1).saturating_mul(self.row))
    }

    /// First byte and bytes of a row.
    pub(super) fn row_bytes(&self, row: u32) -> (u64, u64) {
        let pieces = self.pieces_in(row);
        let from = self.piece(pieces.start).0;
        let (last, len) = self.piece(pieces.end - 1);
        (from, last + len - from)
    }

    /// Tag of a row.
    pub(super) fn row_tag(&self, row: u32) -> i32 {
        self.first + (self.pieces() + row) as i32
    }

    /// The first and the last piece that bytes `from..to` overlap.
    pub(super) fn pieces_of(&self, from: u64, to: u64) -> (u32, u32) {
        let unit = (self.group as u64 * self.bytes).max(1);
        let last = self.pieces() as u64 - 1;
        let at = |byte: u64| (byte / unit).min(last) as u32;
        (at(from), at(to.saturating_sub(1).max(from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(partitions: u32, bytes: u64) -> Setup {
        Setup {
            tag: 3,
            first: SETUP_TAG + 1,
            partitions,
            group: partitions.div_ceil(MOST_PIECES),
            bytes,
            row: 1,
            types: 7,
        }
    }

    #[test]
    fn rows_cover_the_pieces_once() {
        for (partitions, row) in [(1, 1), (6, 4), (64, 64), (65, 7), (1000, 10), (8, 100)] {
            let setup = Setup {
                row,
                ..cut(partitions, 10)
            };
            assert_eq!(Setup::decode(&setup.encode()), Some(setup));
            let (mut piece, mut at) = (0, 0);
            for row in 0..setup.rows() {
                assert_eq!(setup.pieces_in(row).start, piece);
                assert_eq!(setup.row_bytes(row).0, at);
                piece = setup.pieces_in(row).end;
                at += setup.row_bytes(row).1;
                assert!(setup.row_tag(row) < setup.first + MOST_TAGS as i32);
            }
            assert_eq!((piece, at), (setup.pieces(), setup.len()));
        }
    }

    #[test]
    fn pieces_cover_the_buffer_once() {
        for partitions in [1, 2, 63, 64, 65, 100, 128, 1000] {
            for bytes in [0, 1, 7, 4096] {
                let setup = cut(partitions, bytes);
                assert!(setup.pieces() <= MOST_PIECES);
                assert_eq!(Setup::decode(&setup.encode()), Some(setup));
                let mut at = 0;
                for piece in 0..setup.pieces() {
                    let (from, len) = setup.piece(piece);
                    assert_eq!(from, at);
                    at += len;
                }
                assert_eq!(at, setup.len());
            }
        }
    }

    #[test]
    fn a_range_has_come_with_the_pieces_that_overlap_it() {
        let setup = cut(4, 10);
        assert_eq!(setup.pieces_of(0, 10), (0, 0));
        assert_eq!(setup.pieces_of(5, 15), (0, 1));
        assert_eq!(setup.pieces_of(10, 40), (1, 3));
        assert_eq!(setup.pieces_of(40, 50), (3, 3));
        assert_eq!(setup.pieces_for(40, 1, 2), (2, 3));
    }

    #[test]
    fn a_partition_without_data_comes_with_its_own_piece() {
        let setup = cut(3, 0);
        assert_eq!(
            [0, 1, 2].map(|k| setup.pieces_for(0, k, 3)),
            [(0, 0), (1, 1), (2, 2)]
        );
        assert_eq!(
            [0, 1].map(|k| cut(4, 0).pieces_for(0, k, 2)),
            [(0, 1), (2, 3)]
        );
    }

    #[test]
    fn nonsense_is_no_setup() {
        assert_eq!(Setup::decode(&[0; SETUP_LEN]), None);
        let mut b = cut(4, 10).encode();
        b[8..12].copy_from_slice(&1000u32.to_le_bytes());
        assert_eq!(Setup::decode(&b), None);
    }
}
