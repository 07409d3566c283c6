//! Conflicting accesses to the memory of one rank (MPI 5.0, 12.7), for `KW_CHECK`.
//!
//! Every unfinished access is kept, by the bytes that it touches. A new access conflicts with a
//! kept one if both touch a byte, both are in an epoch of the same kind, at least one writes, and
//! they are not two accumulates that may overlap. [`Accesses::end`] takes the end of an epoch or a
//! flush: later accesses are ordered after what has ended.
//!
//! Epochs of different kinds are never compared: a rank that has ended its fence may lock a target
//! that has not.

use kw_types::layout::Basic;
use std::collections::BTreeMap;

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Reads.
    Get,
    /// Writes.
    Put,
    /// Combines, by the operation with this handle.
    Accumulate {
        /// Handle of the operation.
        op: u8,
        /// It writes: all but MPI_NO_OP do.
        writes: bool,
        /// Element.
        basic: Basic,
    },
    /// MPI_Compare_and_swap.
    Swap,
    /// The rank whose memory it is reads it, for a call of MPI.
    Load,
    /// The rank that has the memory writes it, for a call of MPI.
    Store,
}

impl AccessKind {
    fn writes(self) -> bool {
        match self {
            AccessKind::Get | AccessKind::Load => false,
            AccessKind::Accumulate { writes, .. } => writes,
            AccessKind::Put | AccessKind::Swap | AccessKind::Store => true,
        }
    }

    fn combines(self) -> bool {
        matches!(self, AccessKind::Accumulate { .. } | AccessKind::Swap)
    }
}

/// Kind of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum During {
    /// Between two fences.
    Fence,
    /// From MPI_Win_post to MPI_Win_wait.
    Posted,
    /// Under a lock.
    Lock,
}

/// An access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessNote<S> {
    /// The rank that makes it.
    pub by: u32,
    /// Its kind.
    pub kind: AccessKind,
    /// The epoch.
    pub during: During,
    /// The call's place in the program.
    pub site: S,
}

impl<S> AccessNote<S> {
    fn conflicts_with(&self, other: &AccessNote<S>) -> bool {
        use AccessKind::Accumulate;
        let (a, b) = (self.kind, other.kind);
        if self.during != other.during || !(a.writes() || b.writes()) {
            return false;
        }
        match (a, b) {
            (
                Accumulate { op, writes, basic },
                Accumulate {
                    op: op2,
                    writes: writes2,
                    basic: basic2,
                },
            ) => self.by != other.by && writes && writes2 && (op != op2 || basic != basic2),
            _ => !(a.combines() && b.combines()),
        }
    }
}

/// Two accesses that conflict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessConflict<S> {
    /// The first byte that both touch.
    pub first: u64,
    /// The end of these bytes.
    pub end: u64,
    /// The access that was there.
    pub earlier: AccessNote<S>,
    /// The new one.
    pub later: AccessNote<S>,
}

/// Bytes that the same accesses touch.
#[derive(Clone, Debug)]
struct Piece<S> {
    end: u64,
    by: Vec<AccessNote<S>>,
}

/// Most pieces that are kept: accesses beyond them are compared, and not kept.
const MOST_PIECES: usize = 1 << 16;

/// Accesses to the memory of a rank that have not ended.
#[derive(Debug)]
pub struct Accesses<S> {
    /// Pieces by their first byte; no two overlap.
    pieces: BTreeMap<u64, Piece<S>>,
}

impl<S> Default for Accesses<S> {
    fn default() -> Self {
        Accesses {
            pieces: BTreeMap::new(),
        }
    }
}

impl<S: Clone + PartialEq> Accesses<S> {
    /// A new access to bytes `first..end`: returns the first conflict with one that is kept.
    /// `keep`: it lasts until its end is reported.
    pub fn add(
        &mut self,
        (first, end): (u64, u64),
        new: &AccessNote<S>,
        keep: bool,
    ) -> Option<AccessConflict<S>> {
        if first >= end {
            return None;
        }
        let found = self.find((first, end), new);
        if keep && self.pieces.len() < MOST_PIECES {
            self.keep((first, end), new);
        }
        found
    }

    /// The first kept access with which this one conflicts.
    pub fn find(&self, (first, end): (u64, u64), new: &AccessNote<S>) -> Option<AccessConflict<S>> {
        let before = self.pieces.range(..first).next_back();
        let inside = self.pieces.range(first..end);
        let mut all = before
            .into_iter()
            .chain(inside)
            .filter(|(_, p)| p.end > first);
        all.find_map(|(&at, piece)| {
            let earlier = piece.by.iter().find(|old| new.conflicts_with(old))?;
            Some(AccessConflict {
                first: at.max(first),
                end: piece.end.min(end),
                earlier: earlier.clone(),
                later: new.clone(),
            })
        })
    }

    fn keep(&mut self, (first, end): (u64, u64), new: &AccessNote<S>) {
        self.split(first);
        self.split(end);
        let mut at = first;
        let mut gaps = Vec::new();
        for (&from, piece) in self.pieces.range_mut(first..end) {
            if at < from {
                gaps.push((at, from));
            }
            at = piece.end;
            if !piece.by.contains(new) {
                piece.by.push(new.clone());
            }
        }
        if at < end {
            gaps.push((at, end));
        }
        for (from, end) in gaps {
            let by = vec![new.clone()];
            self.pieces.insert(from, Piece { end, by });
        }
    }

    /// Cuts the piece that contains this byte.
    fn split(&mut self, at: u64) {
        let Some((_, piece)) = self.pieces.range_mut(..at).next_back() else {
            return;
        };
        if piece.end > at {
            let rest = piece.clone();
            piece.end = at;
            self.pieces.insert(at, rest);
        }
    }

    /// Accesses in an epoch of this kind have ended; `by`: only those of this rank.
    pub fn end(&mut self, during: During, by: Option<u32>) {
        let ends = |a: &AccessNote<S>| a.during == during && by.is_none_or(|by| a.by == by);
        self.pieces.retain(|_, piece| {
            piece.by.retain(|a| !ends(a));
            !piece.by.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SUM: AccessKind = combine(3, true, Basic::I32);

    const fn combine(op: u8, writes: bool, basic: Basic) -> AccessKind {
        AccessKind::Accumulate { op, writes, basic }
    }

    fn note(by: u32, kind: AccessKind) -> AccessNote<u32> {
        AccessNote {
            by,
            kind,
            during: During::Lock,
            site: by,
        }
    }

    /// Whether two ranks, and one rank twice, conflict by these accesses.
    fn conflict(a: AccessKind, b: AccessKind) -> (bool, bool) {
        let both = |other: u32| {
            let mut all = Accesses::default();
            assert_eq!(all.add((0, 8), &note(0, a), true), None);
            all.add((4, 12), &note(other, b), true).is_some()
        };
        (both(1), both(0))
    }

    #[test]
    fn kinds_of_accesses_that_conflict() {
        use AccessKind::{Get, Load, Put, Store, Swap};
        let product = combine(4, true, Basic::I32);
        let wide = combine(3, true, Basic::I64);
        let look = combine(9, false, Basic::I32);
        let (yes, no, others) = ((true, true), (false, false), (true, false));
        for (a, b, expected) in [
            (Put, Put, yes),
            (Put, Get, yes),
            (Put, SUM, yes),
            (Put, Swap, yes),
            (Put, Load, yes),
            (Put, look, yes),
            (Get, Get, no),
            (Get, SUM, yes),
            (Get, Swap, yes),
            (Get, look, no),
            (Get, Load, no),
            (Get, Store, yes),
            (SUM, SUM, no),
            (SUM, product, others),
            (SUM, wide, others),
            (SUM, look, no),
            (SUM, Swap, no),
            (SUM, Store, yes),
            (SUM, Load, yes),
            (look, Load, no),
        ] {
            assert_eq!(conflict(a, b), expected, "{a:?} and {b:?}");
            assert_eq!(conflict(b, a), expected, "{b:?} and {a:?}");
        }
    }

    #[test]
    fn what_has_ended_or_is_in_another_epoch_conflicts_with_nothing() {
        let mut all = Accesses::default();
        let put = |by| note(by, AccessKind::Put);
        assert_eq!(all.add((0, 8), &put(0), true), None);
        all.end(During::Fence, None);
        all.end(During::Lock, Some(1));
        let found = all.add((6, 10), &put(1), false).expect("both write");
        assert_eq!(
            (found.first, found.end, found.earlier.by, found.later.by),
            (6, 8, 0, 1)
        );
        all.end(During::Lock, Some(0));
        assert_eq!(all.add((6, 10), &put(1), true), None);
        let fenced = AccessNote {
            during: During::Fence,
            ..put(2)
        };
        assert_eq!(all.add((6, 10), &fenced, true), None);
        all.end(During::Lock, None);
        all.end(During::Fence, None);
        assert!(all.pieces.is_empty());
    }

    proptest! {
        /// Against a list of all accesses.
        #[test]
        fn conflicts_are_found_as_by_looking_at_every_byte(
            steps in prop::collection::vec((0..24u64, 0..6u64, 0..3u32, 0..4usize, any::<bool>()), 1..40),
        ) {
            let kinds = [AccessKind::Put, AccessKind::Get, SUM, combine(4, true, Basic::I32)];
            let mut all = Accesses::default();
            let mut list: Vec<((u64, u64), AccessNote<u32>)> = Vec::new();
            for (first, len, by, kind, ends) in steps {
                if ends {
                    all.end(During::Lock, Some(by));
                    list.retain(|(_, a)| a.by != by);
                }
                let (end, new) = (first + len, note(by, kinds[kind]));
                let meets = |&&((a, b), ref old): &&((u64, u64), AccessNote<u32>)| {
                    a.max(first) < b.min(end) && new.conflicts_with(old)
                };
                let expected = list.iter().find(meets).is_some();
                prop_assert_eq!(all.add((first, end), &new, true).is_some(), expected);
                list.push(((first, end), new));
                let ends: Vec<(u64, u64)> = all.pieces.iter().map(|(a, p)| (*a, p.end)).collect();
                prop_assert!(ends.windows(2).all(|w| w[0].1 <= w[1].0), "{:?}", ends);
            }
        }
    }
}
