//! Format of a datagram. All numbers are little-endian.
//!
//! ```text
//! byte 0..4   crc      CRC32C of all that follows, begun with the session's seed (zero while it is being set up)
//!      4..8   from     rank of the sender in the job
//!      8..12  session  number of the session; zero while it is being set up
//!      12     kind     see [`Kind`]
//!      13     flags    1: answer at once; 2: an acknowledgement follows the header
//!      14..16 version  [`VERSION`]
//!      16..24 number   of the packet: every packet that wants an acknowledgement has its own, also when it repeats bytes
//!      24..32 offset   place of the first byte in the stream; in a `Proof`: bytes of the longest datagram
//! acknowledgement, if there is one:
//!      0..8   largest  number of the newest packet that came
//!      8..16  limit    the stream may be sent up to here
//!      16..20 delay    microseconds since the newest packet came
//!      20..24 marked   packets that came with a mark of congestion (ECN), modulo 2^32
//!      24..28 first    packets just before the newest that came, too
//!      28     ranges   pairs that follow
//!      29..32 zero
//!      32..   (gap u32, packets u32) for each further range, going down
//! the rest: bytes of the stream, or a message of the handshake and zeros
//! ```
//! Seed and session number come from the handshake and are secret, so that an attacker who cannot
//! read the network has to guess 64 bits to have a datagram processed.

use super::Ranges;
use crc_fast::{CrcAlgorithm, Digest};
use std::time::Duration;

/// Version of the datagram format; both sides must have the same.
pub const VERSION: u16 = 1;
/// Bytes of the header.
pub const HEAD_LEN: usize = 32;
/// Bytes of an acknowledgement of one range.
const ACK_LEN: usize = 32;
/// Most ranges of an acknowledgement beyond the first.
pub const MORE_RANGES: usize = 31;
/// Bytes of header and longest acknowledgement.
pub const LONGEST_HEAD: usize = HEAD_LEN + ACK_LEN + 8 * MORE_RANGES;

/// Kind of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// First message of the handshake, padded to the longest datagram that is to be tried.
    Hello = 1,
    /// The answer to it, padded to the same length.
    Challenge = 2,
    /// The initiator's proof.
    Proof = 3,
    /// The acceptor's verdict.
    Verdict = 4,
    /// A numbered packet with bytes of the stream, or with none when it only asks for an answer.
    Data = 5,
    /// An acknowledgement alone; not numbered.
    Ack = 6,
}

impl Kind {
    fn from_byte(b: u8) -> Option<Kind> {
        use Kind::*;
        [Hello, Challenge, Proof, Verdict, Data, Ack]
            .get((b as usize).wrapping_sub(1))
            .copied()
    }
}

/// Flag: the sender waits for the acknowledgement.
pub const NOW: u8 = 1;
/// Flag: an acknowledgement follows the header.
const HAS_ACK: u8 = 2;

/// The header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Its kind.
    pub kind: Kind,
    /// [`NOW`] or nothing.
    pub flags: u8,
    /// Rank of the sender.
    pub from: u32,
    /// Number of the session.
    pub session: u32,
    /// Number of the packet.
    pub number: u64,
    /// Place of its first byte.
    pub offset: u64,
}

/// The receiver's report about arrived packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// Packets that came, the newest of them at least.
    pub numbers: Ranges,
    /// The stream may be sent up to here.
    pub limit: u64,
    /// How long the newest packet has been here.
    pub delay: Duration,
    /// Packets that came with a mark of congestion.
    pub marked: u32,
}

/// A datagram, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Its header.
    pub head: Head,
    /// Packets that it acknowledges.
    pub ack: Option<Ack>,
    /// The contents that follow.
    pub body: &'a [u8],
}

impl Head {
    /// Writes header and acknowledgement; returns their bytes. `to` holds [`LONGEST_HEAD`] bytes.
    pub fn encode(&self, ack: Option<&Ack>, to: &mut [u8]) -> usize {
        let flags = self.flags | if ack.is_some() { HAS_ACK } else { 0 };
        to[4..8].copy_from_slice(&self.from.to_le_bytes());
        to[8..12].copy_from_slice(&self.session.to_le_bytes());
        to[12] = self.kind as u8;
        to[13] = flags;
        to[14..16].copy_from_slice(&VERSION.to_le_bytes());
        to[16..24].copy_from_slice(&self.number.to_le_bytes());
        to[24..32].copy_from_slice(&self.offset.to_le_bytes());
        HEAD_LEN + ack.map_or(0, |a| a.encode(&mut to[HEAD_LEN..]))
    }
}

impl Head {
    /// Writes number, offset and flags into a header that is encoded already, whose acknowledgement
    /// stays.
    pub fn encode_again(&self, to: &mut [u8]) {
        to[13] |= self.flags;
        to[16..24].copy_from_slice(&self.number.to_le_bytes());
        to[24..32].copy_from_slice(&self.offset.to_le_bytes());
    }
}

impl Ack {
    fn encode(&self, to: &mut [u8]) -> usize {
        let mut ranges = self.numbers.newest_first();
        let newest = ranges.next().cloned().unwrap_or(0..1);
        let first = (newest.end - newest.start - 1).min(u32::MAX as u64);
        let delay = self.delay.as_micros().min(u32::MAX as u128) as u32;
        to[..8].copy_from_slice(&(newest.end - 1).to_le_bytes());
        to[8..16].copy_from_slice(&self.limit.to_le_bytes());
        to[16..20].copy_from_slice(&delay.to_le_bytes());
        to[20..24].copy_from_slice(&self.marked.to_le_bytes());
        to[24..28].copy_from_slice(&(first as u32).to_le_bytes());
        to[28..32].fill(0);
        let (mut low, mut count) = (newest.end - 1 - first, 0);
        for r in ranges.take(MORE_RANGES) {
            let (gap, packets) = (low - r.end, r.end - r.start);
            let (Ok(gap), Ok(packets)) = (u32::try_from(gap), u32::try_from(packets)) else {
                break;
            };
            let at = ACK_LEN + 8 * count;
            to[at..at + 4].copy_from_slice(&gap.to_le_bytes());
            to[at + 4..at + 8].copy_from_slice(&packets.to_le_bytes());
            low = r.start;
            count += 1;
        }
        to[28] = count as u8;
        ACK_LEN + 8 * count
    }

    /// The acknowledgement at the beginning of `bytes`, and what follows it.
    fn decode(bytes: &[u8]) -> Option<(Ack, &[u8])> {
        let (head, rest) = bytes.split_at_checked(ACK_LEN)?;
        let count = head[28] as usize;
        let (pairs, rest) = rest.split_at_checked(8 * count)?;
        let largest = u64_at(head, 0);
        let mut low = largest.checked_sub(u32_at(head, 24) as u64)?;
        let mut numbers = Ranges::default();
        numbers.insert(low..largest.checked_add(1)?);
        for pair in pairs.chunks_exact(8) {
            let end = low.checked_sub(u32_at(pair, 0) as u64)?;
            let start = end.checked_sub(u32_at(pair, 4) as u64)?;
            numbers.insert(start..end);
            low = start;
        }
        let ack = Ack {
            numbers,
            limit: u64_at(head, 8),
            delay: Duration::from_micros(u32_at(head, 16) as u64),
            marked: u32_at(head, 20),
        };
        Some((ack, rest))
    }
}

/// Claimed sender and session of a datagram, used to look up the seed.
pub fn sender(datagram: &[u8]) -> Option<(u32, u32)> {
    (datagram.len() >= HEAD_LEN).then(|| (u32_at(datagram, 4), u32_at(datagram, 8)))
}

/// CRC32C of `bytes`, begun with `seed` (the CRC of what goes before them, which is nothing but the
/// seed).
#[inline]
fn sum(seed: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, !seed as u64);
    digest.update(bytes);
    digest.finalize() as u32
}

/// Puts the checksum into a finished datagram.
#[inline]
pub fn seal(datagram: &mut [u8], seed: u32) {
    let crc = sum(seed, &datagram[4..]);
    datagram[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Parses a datagram; `None`: it was damaged, belongs to another session, or is not of this
/// protocol.
#[inline]
pub fn open(datagram: &[u8], seed: u32) -> Option<Packet<'_>> {
    let (head, mut body) = datagram.split_at_checked(HEAD_LEN)?;
    if u32_at(head, 0) != sum(seed, &datagram[4..]) {
        return None;
    }
    let (kind, flags) = (Kind::from_byte(head[12])?, head[13]);
    if u16::from_le_bytes([head[14], head[15]]) != VERSION {
        return None;
    }
    let mut ack = None;
    if flags & HAS_ACK != 0 {
        let (decoded, rest) = Ack::decode(body)?;
        (ack, body) = (Some(decoded), rest);
    }
    let head = Head {
        kind,
        flags: flags & NOW,
        from: u32_at(head, 4),
        session: u32_at(head, 8),
        number: u64_at(head, 16),
        offset: u64_at(head, 24),
    };
    Some(Packet { head, ack, body })
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u32_at(b, at) as u64 | (u32_at(b, at + 4) as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ack(steps: &[(u64, u64)], limit: u64, delay: u32, marked: u32) -> Ack {
        let (mut numbers, mut at) = (Ranges::default(), 0);
        for &(gap, n) in steps {
            numbers.insert(at + gap..at + gap + n);
            at += gap + n;
        }
        let delay = Duration::from_micros(delay as u64);
        Ack {
            numbers,
            limit,
            delay,
            marked,
        }
    }

    /// The value that RFC 3720, B.4 and every list of checksums has.
    #[test]
    fn the_checksum_is_crc32c_and_goes_on_from_its_seed() {
        assert_eq!(sum(0, b"123456789"), 0xe306_9283);
        assert_eq!(sum(sum(0, b"1234"), b"56789"), 0xe306_9283);
    }

    proptest! {
        #[test]
        fn a_packet_survives_the_wire(
            from: u32, session: u32, seed: u32, number: u64, offset: u64, now: bool,
            steps in proptest::collection::vec((1u64..1000, 1u64..1000), 0..32),
            limit: u64, delay: u32, marked: u32, body in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let head = Head { kind: Kind::Data, flags: now as u8, from, session, number, offset };
            let ack = (!steps.is_empty()).then(|| ack(&steps, limit, delay, marked));
            let mut datagram = vec![0; LONGEST_HEAD + body.len()];
            let n = head.encode(ack.as_ref(), &mut datagram);
            datagram.truncate(n);
            datagram.extend_from_slice(&body);
            seal(&mut datagram, seed);
            prop_assert_eq!(sender(&datagram), Some((from, session)));
            prop_assert_eq!(open(&datagram, seed), Some(Packet { head, ack, body: &body }));
            prop_assert_eq!(open(&datagram, !seed), None);
            let bit = number as usize % (8 * datagram.len());
            datagram[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(open(&datagram, seed), None, "a flipped bit is noticed");
        }

        #[test]
        fn any_sealed_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 4..200), kind in 0u8..8) {
            if bytes.len() > 15 {
                (bytes[12], bytes[14], bytes[15]) = (kind, 1, 0);
            }
            seal(&mut bytes, 7);
            let _ = open(&bytes, 7);
            let _ = sender(&bytes);
        }
    }
}
