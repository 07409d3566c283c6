//! Symbols that represent data in the checker.

use std::fmt;

/// Contents of one unit of memory: the combined contributions of a set of ranks to one place. One
/// word, so that comparing and combining are cheap: rank order needs no list, because an operation
/// that does not commute must find adjacent operands.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Symbol {
    place: u32,
    ranks: u64,
}

impl Symbol {
    /// Memory that was never written.
    pub const NEVER: Symbol = Symbol { place: 0, ranks: 0 };

    /// The contribution of one rank.
    pub fn of(rank: u32, place: usize) -> Symbol {
        Symbol::folded(rank..rank + 1, place)
    }

    /// The contributions of some ranks, combined in their order.
    pub fn folded(ranks: std::ops::Range<u32>, place: usize) -> Symbol {
        let ranks = ranks.fold(0, |set, r| set | 1 << r);
        let place = place as u32;
        Symbol { place, ranks }
    }

    /// Whether the memory was ever written.
    pub fn is_data(self) -> bool {
        self.ranks != 0
    }

    /// `self op right`.
    pub fn combine(self, right: Symbol, commutative: bool) -> Symbol {
        assert!(
            self.is_data() && right.is_data(),
            "reduces memory that was never written"
        );
        assert_eq!(self.place, right.place, "combines different places");
        assert_eq!(
            self.ranks & right.ranks,
            0,
            "{self:?} and {right:?} have ranks in common"
        );
        assert!(
            commutative || self.ranks.leading_zeros() + right.ranks.trailing_zeros() == 64,
            "{self:?} op {right:?} is not the order of ranks"
        );
        Symbol {
            ranks: self.ranks | right.ranks,
            ..self
        }
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:b}", self.place, self.ranks)
    }
}
