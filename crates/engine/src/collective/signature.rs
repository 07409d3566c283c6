//! A rank's description of its call beside each flag that it stores on a shm region, so that a
//! waiting rank sees whether both calls match: which collective, of how many bytes, with which
//! root. It costs a word in a cache line that moves anyway.

use super::Failure;
use kw_coll::Coll;
use kw_coll::table::COLLS;

/// Collective, root and bytes in one word: 4, 20 and 40 bits, each as large as fits; 0: no
/// description.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Signature(pub u64);

const BYTES: u32 = 40;
const ROOT: u32 = 20;

impl Signature {
    /// Bytes as the table of algorithms counts them, equal on all ranks.
    #[inline]
    pub fn new(coll: Coll, root: u32, bytes: u64) -> Signature {
        let root = (root as u64).min((1 << ROOT) - 1);
        Signature((coll as u64 + 1) << (BYTES + ROOT) | root << BYTES | bytes.min((1 << BYTES) - 1))
    }

    fn coll(self) -> u64 {
        self.0 >> (BYTES + ROOT)
    }

    fn root(self) -> u64 {
        self.0 >> BYTES & ((1 << ROOT) - 1)
    }

    fn bytes(self) -> u64 {
        self.0 & ((1 << BYTES) - 1)
    }

    /// The call as people read it.
    fn text(self) -> String {
        let (coll, name) = COLLS[(self.coll() as usize)
            .saturating_sub(1)
            .min(COLLS.len() - 1)];
        match coll {
            Coll::Barrier => name.into(),
            Coll::Bcast | Coll::Reduce => {
                let (bytes, root) = (self.bytes(), self.root());
                format!("{name} of {bytes} bytes with root {root}")
            }
            _ => format!("{name} of {} bytes", self.bytes()),
        }
    }

    /// The failure of rank `me`, which has this description, when the other rank's is `theirs`.
    #[cold]
    pub fn failure(self, me: u32, other: u32, theirs: Signature) -> Failure {
        let text = format!(
            "rank {other} called {}, rank {me} called {}",
            theirs.text(),
            self.text()
        );
        match (self.coll() == theirs.coll(), self.root() == theirs.root()) {
            (true, true) => Failure::Uneven {
                came: theirs.bytes(),
                wants: self.bytes(),
                text,
            },
            (true, false) => Failure::Roots(text),
            (false, _) => Failure::Calls(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back_and_large_numbers_stay_in_their_place() {
        for &(coll, _) in COLLS {
            for (root, bytes) in [(0, 0), (3, 17), (u32::MAX, u64::MAX)] {
                let signature = Signature::new(coll, root, bytes);
                assert_eq!(signature.coll(), coll as u64 + 1);
                assert_eq!(signature.root(), (root as u64).min((1 << ROOT) - 1));
                assert_eq!(signature.bytes(), bytes.min((1 << BYTES) - 1));
                assert_ne!(signature, Signature::default());
            }
        }
        let (a, b) = (
            Signature::new(Coll::Bcast, 0, 8),
            Signature::new(Coll::Bcast, 1, 8),
        );
        assert_ne!(a, b);
        assert_eq!(b.text(), "bcast of 8 bytes with root 1");
    }
}
