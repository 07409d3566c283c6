//! The sizes of a host's shm regions, as their path lays them out and as the prices of collectives
//! assume.

/// Bytes of a short area of a rank.
pub const SHORT: usize = 4096;
/// Bytes that the rings of all ranks have together, within the bounds below. Only the used part is
/// ever touched, and that is little more than a working set; the rest is for long parts, so that
/// long data needs few pieces.
const RINGS: usize = 24 << 20;
/// Fewest and most bytes of a rank's ring.
const RING: std::ops::RangeInclusive<usize> = 768 << 10..=2 << 20;

/// Bytes of a rank's ring where there are `n` ranks: whole pages.
pub fn ring(n: usize) -> usize {
    (RINGS / n.max(1)).clamp(*RING.start(), *RING.end()) & !0xfff
}
