//! IEEE binary128 in software: sum, difference, product (round to nearest, ties to even) and order.

use super::number::{Arith, Order};

/// A binary128 number: 1 bit of sign, 15 of exponent, 112 of fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Quad(pub u128);

const FRACTION: u32 = 112;
const SIGN: u128 = 1 << 127;
const INFINITE: u128 = 0x7fff << FRACTION;
const NAN: u128 = INFINITE | 1 << 111;
const UNIT: u128 = 1 << FRACTION;

impl Quad {
    fn sign(self) -> u128 {
        self.0 & SIGN
    }

    fn magnitude(self) -> u128 {
        self.0 & !SIGN
    }

    fn is_nan(self) -> bool {
        self.magnitude() > INFINITE
    }

    /// Exponent (1 for subnormals) and mantissa with its leading one.
    fn split(self) -> (i32, u128) {
        let exponent = (self.magnitude() >> FRACTION) as i32;
        let fraction = self.0 & (UNIT - 1);
        if exponent == 0 {
            (1, fraction)
        } else {
            (exponent, fraction | UNIT)
        }
    }

    /// Rounds `mantissa * 2^-3`, which belongs to `exponent`; its lowest bit stands for all that
    /// was cut off.
    fn round(sign: u128, mut exponent: i32, mut mantissa: u128) -> Quad {
        if mantissa == 0 {
            return Quad(sign);
        }
        let top = 127 - mantissa.leading_zeros() as i32;
        let up = top - (FRACTION as i32 + 3);
        if up > 0 {
            mantissa = shift_right(mantissa, up as u32);
            exponent += up;
        } else {
            let down = (-up).min(exponent - 1).max(0);
            mantissa <<= down;
            exponent -= down;
        }
        if exponent < 1 {
            mantissa = shift_right(mantissa, (1 - exponent) as u32);
            exponent = 1;
        }
        let (rest, kept) = (mantissa & 7, mantissa >> 3);
        let rounded = kept + (rest > 4 || (rest == 4 && kept & 1 == 1)) as u128;
        // A carry out of the fraction runs into the exponent, as intended.
        let bits = ((exponent as u128 - 1) << FRACTION) + rounded;
        Quad(
            sign | if exponent >= 0x7fff || bits >= INFINITE {
                INFINITE
            } else {
                bits
            },
        )
    }
}

/// Shifts right; a one that falls out stays as the lowest bit.
fn shift_right(x: u128, by: u32) -> u128 {
    if by == 0 {
        return x;
    }
    if by > 127 {
        return (x != 0) as u128;
    }
    x >> by | (x & ((1 << by) - 1) != 0) as u128
}

/// The 256-bit product: high and low half.
fn product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (ah, al, bh, bl) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (mid, carry) = (ah * bl).overflowing_add(al * bh);
    let (low, over) = (al * bl).overflowing_add(mid << 64);
    (
        ah * bh + (mid >> 64) + ((carry as u128) << 64) + over as u128,
        low,
    )
}

impl Arith for Quad {
    fn add(self, o: Self) -> Self {
        if self.is_nan() || o.is_nan() {
            return Quad(NAN);
        }
        if self.magnitude() == INFINITE || o.magnitude() == INFINITE {
            let opposite = self.0 ^ o.0 == SIGN;
            let infinite = if self.magnitude() == INFINITE {
                self
            } else {
                o
            };
            return if opposite { Quad(NAN) } else { infinite };
        }
        let (big, small) = if self.magnitude() < o.magnitude() {
            (o, self)
        } else {
            (self, o)
        };
        let ((e, m), (f, n)) = (big.split(), small.split());
        let n = shift_right(n << 3, (e - f) as u32);
        if big.sign() == small.sign() {
            return Quad::round(big.sign(), e, (m << 3) + n);
        }
        let difference = (m << 3) - n;
        Quad::round(if difference == 0 { 0 } else { big.sign() }, e, difference)
    }

    fn sub(self, o: Self) -> Self {
        self.add(Quad(o.0 ^ SIGN))
    }

    fn mul(self, o: Self) -> Self {
        let sign = self.sign() ^ o.sign();
        let (a, b) = (self.magnitude(), o.magnitude());
        if self.is_nan() || o.is_nan() {
            return Quad(NAN);
        }
        if a == INFINITE || b == INFINITE {
            return Quad(if a == 0 || b == 0 {
                NAN
            } else {
                sign | INFINITE
            });
        }
        let ((e, m), (f, n)) = (self.split(), o.split());
        let (high, low) = product(m, n);
        // The product has 224 bits of fraction; keep 112 and three more.
        let kept = high << 19 | low >> 109 | (low & ((1 << 109) - 1) != 0) as u128;
        Quad::round(sign, e + f - 16383, kept)
    }
}

impl Order for Quad {
    fn less(self, o: Self) -> bool {
        if self.is_nan() || o.is_nan() || self.magnitude() | o.magnitude() == 0 {
            return false;
        }
        match (self.sign() != 0, o.sign() != 0) {
            (false, false) => self.0 < o.0,
            (true, true) => self.0 > o.0,
            (negative, _) => negative,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Exact conversion, as long as the number has no more than 113 significant bits.
    fn quad(x: i128) -> Quad {
        if x == 0 {
            return Quad(0);
        }
        let (sign, m) = (if x < 0 { SIGN } else { 0 }, x.unsigned_abs());
        let top = 127 - m.leading_zeros();
        let fraction = if top > 112 {
            m >> (top - 112)
        } else {
            m << (112 - top)
        } & (UNIT - 1);
        Quad(sign | (16383 + top as u128) << FRACTION | fraction)
    }

    /// An `f64` as it stands, subnormal or not, scaled by a power of two into the same place of the
    /// wider format.
    fn wide(x: f64) -> Quad {
        let bits = x.to_bits();
        let sign = (bits as u128 >> 63) << 127;
        let (e, f) = (
            (bits >> 52 & 0x7ff) as u128,
            (bits as u128 & ((1 << 52) - 1)) << 60,
        );
        Quad(sign | (e + 16383 - 1023) << FRACTION | f)
    }

    proptest! {
        #[test]
        fn integers_are_exact(a in -1i128 << 56..1 << 56, b in -1i128 << 56..1 << 56) {
            prop_assert_eq!(quad(a).add(quad(b)), quad(a + b));
            prop_assert_eq!(quad(a).sub(quad(b)), quad(a - b));
            if a * b != 0 {
                prop_assert_eq!(quad(a).mul(quad(b)), quad(a * b));
            }
            prop_assert_eq!(quad(a).less(quad(b)), a < b);
        }

        #[test]
        fn sums_of_doubles_are_exact_and_agree_after_rounding(a in 1e-9f64..1e9, b in -1e9f64..1e9) {
            prop_assume!(b.abs() > 1e-9);
            let sum = wide(a).add(wide(b));
            // The exact sum is within half a unit of the double's.
            let off = sum.sub(wide(a + b));
            let ulp = f64::from_bits((a + b).abs().max(1e-200).to_bits() & 0x7ff << 52) * f64::EPSILON;
            prop_assert!(!wide(ulp).less(Quad(off.magnitude())));
        }
    }

    #[test]
    fn special_values_behave() {
        let (inf, nan) = (Quad(INFINITE), Quad(NAN));
        assert!(inf.sub(inf).is_nan() && inf.mul(Quad(0)).is_nan() && nan.add(quad(1)).is_nan());
        assert_eq!(inf.add(quad(-5)), inf);
        let max = Quad(INFINITE - 1);
        assert_eq!(max.add(max), inf);
        assert_eq!(max.mul(max), inf);
        // Subnormals: the smallest number, twice, and halved to zero.
        assert_eq!(Quad(1).add(Quad(1)), Quad(2));
        assert_eq!(Quad(1).mul(Quad(0x3ffe << FRACTION)), Quad(0));
        assert_eq!(Quad(3).mul(Quad(0x3ffe << FRACTION)), Quad(2));
        assert!(!nan.less(inf) && !inf.less(nan) && !Quad(SIGN).less(Quad(0)));
    }

    #[test]
    fn ties_go_to_even() {
        // 2^112 and 2^113 - 1 have all 113 bits; halves tie.
        assert_eq!(quad(1 << 113).add(quad(1)), quad(1 << 113));
        assert_eq!(quad((1 << 113) + 2).add(quad(1)), quad((1 << 113) + 4));
    }
}
