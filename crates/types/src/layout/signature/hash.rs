//! A number for a type signature that does not depend on how the signature is folded: a polynomial
//! over its elements.

use super::{Element, Kind, Signature};

/// A prime below 2^61.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0123_4567_89ab_cdef % PRIME;

/// The polynomial's value at [`BASE`], and `BASE` to the power of its length.
#[derive(Clone, Copy)]
pub(super) struct Poly {
    value: u64,
    shift: u64,
}

const NOTHING: Poly = Poly { value: 0, shift: 1 };

fn times(a: u64, b: u64) -> u64 {
    (a as u128 * b as u128 % PRIME as u128) as u64
}

impl Poly {
    fn one(e: Element) -> Poly {
        Poly::of(e.basic as u64 * 64 + e.external as u64 + 1)
    }

    /// Hash of one element, which this number stands for.
    pub(super) fn of(value: u64) -> Poly {
        let shift = BASE;
        Poly { value, shift }
    }

    pub(super) fn value(self) -> u64 {
        self.value
    }

    pub(super) fn then(self, next: Poly) -> Poly {
        Poly {
            value: (times(self.value, next.shift) + next.value) % PRIME,
            shift: times(self.shift, next.shift),
        }
    }

    pub(super) fn repeated(self, mut n: u64) -> Poly {
        let (mut sum, mut power) = (NOTHING, self);
        while n > 0 {
            if n & 1 == 1 {
                sum = sum.then(power);
            }
            power = power.then(power);
            n >>= 1;
        }
        sum
    }
}

impl Signature {
    /// The hash of `n` repetitions of this signature: equal for equal sequences of elements.
    pub fn hash(&self, n: u64) -> u64 {
        self.poly(Poly::one).repeated(n).value
    }

    pub(super) fn poly(&self, one: fn(Element) -> Poly) -> Poly {
        match &self.kind {
            Kind::One(e) => one(*e),
            Kind::Repeat(n, inner) => inner.poly(one).repeated(*n),
            Kind::List(parts) => parts.iter().fold(NOTHING, |p, s| p.then(s.poly(one))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::basic;

    fn of(name: &str) -> Signature {
        let named = basic::NAMED.iter().find(|n| n.name == name);
        Signature::named(named.expect("a predefined datatype"))
    }

    #[test]
    fn folding_does_not_matter_and_order_does() {
        let (int, double) = (of("MPI_INT"), of("MPI_DOUBLE"));
        let pair = Signature::list(vec![int.clone(), double.clone()]);
        let flat = Signature::list(vec![
            int.clone(),
            double.clone(),
            int.clone(),
            double.clone(),
        ]);
        assert_eq!(pair.hash(2), flat.hash(1));
        assert_eq!(pair.repeat(6).unwrap().hash(1), flat.hash(3));
        assert_eq!(int.hash(1000), int.repeat(10).unwrap().hash(100));
        let turned = Signature::list(vec![double.clone(), int.clone()]);
        assert_ne!(pair.hash(1), turned.hash(1));
        assert_ne!(int.hash(1), of("MPI_FLOAT").hash(1));
        assert_ne!(int.hash(2), int.hash(3));
    }

    #[test]
    fn signed_and_unsigned_differ_and_aliases_do_not() {
        assert_eq!(of("MPI_INT").hash(4), of("MPI_INT32_T").hash(4));
        assert_ne!(of("MPI_INT").hash(4), of("MPI_UNSIGNED").hash(4));
        assert_eq!(of("MPI_INT").hash(0), of("MPI_FLOAT").hash(0));
    }
}
