//! Allocation of the rings of a shared-memory region. All ranks of a communicator run the same
//! collectives in the same order, so all allocate alike, without communication.
//!
//! Parts are allocated one after the other. One that would end beyond the working set starts at the
//! front again, unless it would overlap the part before it, which other ranks may not have started
//! when the next one is allocated. No part is longer than a third of the ring, so before the end of
//! the ring that is always possible. A working set is long enough for lines to leave the caches
//! before they are reused, and short enough for all ranks' working sets to fit in the shared cache:
//! with many ranks only the previous part is spared.
//!
//! The first use of a page costs more than lines that are still in the caches, so a working set is
//! short at first, and grows with the allocated bytes. It has room for two parts, for a rank may be
//! ahead of others by a collective.

use kw_base::working_set::WorkingSet;
use std::collections::VecDeque;

/// Parts start at multiples of this many bytes.
const ALIGN: u64 = 64;

/// Bytes of the first working set: a built-in value that is not measured.
const FIRST_WORKING_SET: u64 = 16 << 10;

/// Parts that a working set has room for, as long as the longest so far.
const AHEAD: u64 = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct Ring {
    reach: u64,
    /// Bytes of the working set.
    working_set: WorkingSet,
    next: u64,
    /// Collective, first byte and end of the parts that have not been reallocated, oldest first.
    parts: VecDeque<(u64, u64, u64)>,
}

impl Ring {
    /// A ring of this many bytes, and its longest working set.
    pub(super) fn new(reach: u64, longest: u64) -> Ring {
        Ring {
            reach,
            working_set: WorkingSet::new(FIRST_WORKING_SET, longest.min(reach)),
            next: 0,
            parts: VecDeque::new(),
        }
    }

    /// Most bytes of a part.
    pub(super) fn most(&self) -> u64 {
        self.reach / 3 / ALIGN * ALIGN
    }

    /// A part of `bytes` for collective `number`: where it begins, and the last collective that had
    /// some of it before.
    pub(super) fn take(&mut self, number: u64, bytes: u64) -> (u64, Option<u64>) {
        let bytes = bytes.max(1).next_multiple_of(ALIGN);
        assert!(bytes <= self.most(), "{bytes} bytes of a ring");
        let mut before = None;
        let room = self.parts.back().map_or(0, |p| p.1);
        self.working_set.stretch(AHEAD * bytes);
        if self.next + bytes > self.working_set.length() && bytes <= room {
            // The rest at the end stays unused; its last owner had it before those whose parts come
            // next.
            before = self.forget(self.next, self.reach);
            self.next = 0;
            self.working_set.end_round();
        }
        let (from, to) = (self.next, self.next + bytes);
        debug_assert!(to <= self.reach);
        before = self.forget(from, to).or(before);
        self.parts.push_back((number, from, to));
        self.next = to;
        (from, before)
    }

    /// Forgets the oldest parts as long as they meet these bytes; returns the last collective of
    /// them.
    fn forget(&mut self, from: u64, to: u64) -> Option<u64> {
        let mut last = None;
        while let Some(&(number, ..)) = self.parts.front().filter(|p| p.1 < to && from < p.2) {
            last = Some(number);
            self.parts.pop_front();
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::working_set::ROUNDS;

    #[test]
    fn whoever_had_a_byte_before_is_named_or_came_before_the_named() {
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for (reach, working_set) in [
            (192, 192),
            (256, 9),
            (640, 300),
            (4096, 4096),
            (4096, 1000),
            (4096, 1),
            (1 << 20, 1 << 18),
        ] {
            let mut ring = Ring::new(reach, working_set);
            let mut owner = vec![None; reach as usize];
            let mut freed = None;
            for number in 1..5000 {
                let most = ring.most();
                let bytes = random(if number % 7 == 0 {
                    most
                } else {
                    most.div_ceil(4)
                }) + 1;
                let (from, before) = ring.take(number, bytes);
                let part = &mut owner[from as usize..(from + bytes) as usize];
                let had = part.iter().copied().max().flatten();
                // A rank that an earlier collective waited for has ended before that one began.
                freed = before.max(freed);
                assert!(
                    had <= freed,
                    "{had:?} had a byte of {number}, freed {freed:?}"
                );
                assert!(
                    before.is_none_or(|b| b + 1 < number),
                    "{number} waits for itself"
                );
                part.fill(Some(number));
            }
        }
    }

    #[test]
    fn parts_lie_one_after_the_other_and_begin_anew() {
        let mut ring = Ring::new(400, 400);
        assert_eq!(ring.take(1, 100), (0, None));
        assert_eq!(ring.take(2, 128), (128, None));
        assert_eq!(ring.take(3, 128), (256, None));
        assert_eq!(ring.take(4, 1), (0, Some(1)));
        assert_eq!(ring.take(5, 100), (64, Some(2)));
        assert_eq!(ring.take(6, 128), (192, Some(3)));
        assert_eq!(ring.take(7, 128), (0, Some(5)));
        let mut ring = Ring::new(4096, 64);
        assert_eq!([1, 2, 3, 4].map(|n| ring.take(n, 256).0), [0, 256, 0, 256]);
    }

    #[test]
    fn a_working_set_grows_with_what_is_given_out_and_has_room_for_some_parts() {
        let longest = 3 * FIRST_WORKING_SET;
        let mut ring = Ring::new(16 * FIRST_WORKING_SET, longest);
        let mut ends = vec![];
        let rounds = ROUNDS as usize * (FIRST_WORKING_SET / 64) as usize;
        for number in 0..4 * rounds as u64 {
            ends.push(ring.take(number, 64).0 + 64);
        }
        let highest = |ends: &[u64]| ends.iter().copied().max().unwrap();
        assert_eq!(highest(&ends[..rounds]), FIRST_WORKING_SET);
        assert_eq!(highest(&ends[..3 * rounds]), 2 * FIRST_WORKING_SET);
        assert_eq!(highest(&ends), longest);

        let mut ring = Ring::new(16 * FIRST_WORKING_SET, 12 * FIRST_WORKING_SET);
        let places =
            [1, 2, 3, 4].map(|n| ring.take(n, 3 * FIRST_WORKING_SET).0 / FIRST_WORKING_SET);
        assert_eq!(places, [0, 3, 0, 3]);
    }
}
