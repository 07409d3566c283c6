//! C's `long double` on x86-64: the x87's 80-bit format in 16 bytes. Rust has no such type, so the
//! CPU's own instructions do the arithmetic.

use super::number::{Arith, Order};
use std::arch::asm;

/// An 80-bit number in 16 bytes; the last six mean nothing.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Extended(pub [u8; 16]);

macro_rules! binary {
    ($name:ident, $instruction:literal) => {
        fn $name(self, o: Self) -> Self {
            let mut r = self;
            // SAFETY: loads and stores ten bytes of the three values, and leaves the x87 stack as
            // empty as it was; every register of it is declared.
            unsafe {
                asm!(
                    "fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", $instruction, "fstp tbyte ptr [{r}]",
                    a = in(reg) &self, b = in(reg) &o, r = in(reg) &mut r,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack)
                );
            }
            r
        }
    };
}

impl Arith for Extended {
    binary!(add, "faddp st(1), st");
    binary!(sub, "fsubp st(1), st");
    binary!(mul, "fmulp st(1), st");
}

impl Order for Extended {
    fn less(self, o: Self) -> bool {
        let yes: u8;
        // SAFETY: loads ten bytes of the two values, and leaves the x87 stack as empty as it was;
        // every register of it is declared.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "fucomip st, st(1)", "fstp st(0)", "seta {yes}",
                a = in(reg) &self, b = in(reg) &o, yes = lateout(reg_byte) yes,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack)
            );
        }
        yes != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Exact conversion of an `f64` that is normal or zero.
    pub fn extended(x: f64) -> Extended {
        let mut r = [0u8; 16];
        if x != 0.0 {
            let bits = x.to_bits();
            let exponent = ((bits >> 52) & 0x7ff) as u16 - 1023 + 16383;
            r[..8].copy_from_slice(&(1 << 63 | bits << 11).to_le_bytes());
            r[8..10].copy_from_slice(&(exponent | ((x < 0.0) as u16) << 15).to_le_bytes());
        }
        Extended(r)
    }

    proptest! {
        #[test]
        fn arithmetic_is_exact_where_integers_are(a in -1i64 << 31..1 << 31, b in -1i64 << 20..1 << 20) {
            let (x, y) = (extended(a as f64), extended(b as f64));
            prop_assert_eq!(&x.add(y).0[..10], &extended((a + b) as f64).0[..10]);
            prop_assert_eq!(&x.sub(y).0[..10], &extended((a - b) as f64).0[..10]);
            if a * b != 0 {
                prop_assert_eq!(&x.mul(y).0[..10], &extended((a * b) as f64).0[..10]);
            }
            prop_assert_eq!(x.less(y), a < b);
        }
    }

    #[test]
    fn nothing_is_less_than_nan() {
        let nan = Extended([0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0x7f, 0, 0, 0, 0, 0, 0]);
        assert!(!nan.less(extended(1.0)) && !extended(1.0).less(nan));
    }
}
