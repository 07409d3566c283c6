//! The slots of shared memory that long payload goes through, as its path, the measurement of a host
//! and the prices of collectives know them.

/// Bytes of a slot.
pub const SLOT: usize = 8 << 10;

/// Slots of a piece at most, a built-in value that nothing measures. Cores that share no cache move
/// long pieces faster: 256 KB between two of an EPYC took 15 us in pieces of 8 KB, 11 in pieces of
/// 32 KB, and 11 in longer ones; where they share one the length did not matter.
const LONGEST: u64 = 4;

/// Bytes of the pieces that `len` bytes go in: what a receiver waits for before it begins to copy, a
/// quarter of them as far as slots allow.
#[inline]
pub const fn piece_of(len: u64) -> u64 {
    let slots = len / 4 / SLOT as u64;
    let slots = if slots > LONGEST { LONGEST } else { slots };
    (if slots == 0 { 1 } else { slots }) * SLOT as u64
}
