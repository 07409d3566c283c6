//! The slots of shared memory that long payload goes through: constants for its path, the
//! measurement of a host and the prices of collectives.

/// Bytes of a slot.
pub const SLOT: usize = 8 << 10;

/// Most slots of a piece, a built-in value that is not measured. Cores that share no cache move
/// long pieces faster: 256 KB between two of an EPYC took 15 us in pieces of 8 KB, 11 in pieces of
/// 32 KB, and 11 in longer ones; between cores that share one the length did not matter.
const LONGEST: u64 = 4;

/// Bytes from which on a piece has two slots at least: to publish a piece costs as much as to copy
/// some kilobytes. 32 KB in two pieces instead of four, between cores that share no cache: an
/// exchange 3.5 us instead of 3.6, a stream 1.6 instead of 1.8 for each message.
const TWO_FROM: u64 = 32 << 10;

/// Bytes of the pieces into which `len` bytes are cut: a receiver waits for one before it begins to
/// copy. A quarter of `len`, as far as slots and [`TWO_FROM`] allow.
#[inline]
pub const fn piece_of(len: u64) -> u64 {
    let slots = len / 4 / SLOT as u64;
    let least = if len < TWO_FROM { 1 } else { 2 };
    let slots = if slots > LONGEST { LONGEST } else { slots };
    (if slots < least { least } else { slots }) * SLOT as u64
}
