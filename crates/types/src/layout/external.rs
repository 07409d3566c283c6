//! external32: the portable representation of basic elements (MPI 5.0, 14.5.2). Big-endian, IEEE,
//! fixed sizes.

use super::basic::{Basic, Class};
use super::signature::Element;

/// A value that the other representation cannot hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the value {0} does not fit the {1} bytes that external32 gives this datatype")]
pub struct OutOfRange(pub i128, pub u8);

/// Whether C's `long double` is the x87's 80-bit number.
const X87: bool = cfg!(target_arch = "x86_64");

/// Bytes of one component: half of a complex element.
fn component(e: Element) -> (usize, usize) {
    let halves = if e.basic.class() == Class::Complex {
        2
    } else {
        1
    };
    (
        e.basic.size() as usize / halves,
        e.external as usize / halves,
    )
}

fn is_x87(basic: Basic) -> bool {
    X87 && matches!(basic, Basic::LongDouble | Basic::ComplexLongDouble)
}

/// Appends the external form of native elements, all alike.
pub fn encode(e: Element, native: &[u8], out: &mut Vec<u8>) -> Result<(), OutOfRange> {
    let (size, external) = component(e);
    for value in native.chunks_exact(size) {
        if is_x87(e.basic) {
            out.extend(quad_of_x87(value).to_be_bytes());
        } else if size == external {
            out.extend(to_big(value));
        } else {
            let value = integer(e.basic, value);
            let bits = external as u32 * 8;
            let fits = match e.basic.class() {
                Class::Signed => -1 << (bits - 1) <= value && value < 1 << (bits - 1),
                _ => value < 1 << bits,
            };
            if !fits {
                return Err(OutOfRange(value, e.external));
            }
            out.extend(&value.to_be_bytes()[16 - external..]);
        }
    }
    Ok(())
}

/// Appends the native form of external elements, all alike.
pub fn decode(e: Element, data: &[u8], out: &mut Vec<u8>) -> Result<(), OutOfRange> {
    let (size, external) = component(e);
    for value in data.chunks_exact(external) {
        if is_x87(e.basic) {
            let mut bits = [0; 16];
            bits.copy_from_slice(value);
            out.extend(x87_of_quad(u128::from_be_bytes(bits)));
        } else if size == external {
            out.extend(from_big(value));
        } else {
            let negative = e.basic.class() == Class::Signed && value[0] & 0x80 != 0;
            let start = if negative { -1i128 } else { 0 };
            let value = value.iter().fold(start, |v, &b| v << 8 | b as i128);
            out.extend(native_bytes(value, size));
        }
    }
    Ok(())
}

fn to_big(value: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let n = value.len();
    (0..n).map(move |i| {
        value[if cfg!(target_endian = "little") {
            n - 1 - i
        } else {
            i
        }]
    })
}

fn from_big(value: &[u8]) -> impl Iterator<Item = u8> + '_ {
    to_big(value)
}

fn integer(basic: Basic, native: &[u8]) -> i128 {
    let mut bytes = to_big(native).peekable();
    let negative = basic.class() == Class::Signed && bytes.peek().is_some_and(|b| b & 0x80 != 0);
    bytes.fold(if negative { -1 } else { 0 }, |v, b| v << 8 | b as i128)
}

fn native_bytes(value: i128, size: usize) -> Vec<u8> {
    from_big(&value.to_be_bytes()[16 - size..]).collect()
}

/// IEEE binary128 of an x87 number: the same exponent, the integer bit made implicit.
fn quad_of_x87(native: &[u8]) -> u128 {
    let mut mantissa = [0; 8];
    mantissa.copy_from_slice(&native[..8]);
    let mantissa = u64::from_le_bytes(mantissa);
    let head = u16::from_le_bytes([native[8], native[9]]);
    let (sign, exponent) = ((head >> 15) as u128, (head & 0x7fff) as u128);
    if exponent == 0 {
        return sign << 127 | (mantissa as u128) << 49;
    }
    sign << 127 | exponent << 112 | ((mantissa & (u64::MAX >> 1)) as u128) << 49
}

/// The nearest x87 number, ties to even, in its 16 bytes.
fn x87_of_quad(quad: u128) -> [u8; 16] {
    let sign = (quad >> 127) as u16;
    let mut exponent = (quad >> 112) as u16 & 0x7fff;
    let fraction = quad & (u128::MAX >> 16);
    let mut mantissa = (fraction >> 49) as u64;
    if exponent == 0x7fff {
        let quiet = (fraction != 0 && mantissa == 0) as u64;
        mantissa |= 1 << 63 | quiet << 62;
    } else {
        mantissa |= ((exponent != 0) as u64) << 63;
        let (rest, half) = (fraction & ((1 << 49) - 1), 1u128 << 48);
        if rest > half || (rest == half && mantissa & 1 == 1) {
            let (rounded, carried) = mantissa.overflowing_add(1);
            mantissa = if carried { 1 << 63 } else { rounded };
            exponent += carried as u16;
        }
        if exponent == 0 && mantissa >> 63 == 1 {
            exponent = 1;
        }
        if exponent == 0x7fff {
            mantissa = 1 << 63;
        }
    }
    let mut native = [0; 16];
    native[..8].copy_from_slice(&mantissa.to_le_bytes());
    native[8..10].copy_from_slice(&(sign << 15 | exponent).to_le_bytes());
    native
}

#[cfg(test)]
mod tests {
    use super::super::basic::{NAMED, by_handle};
    use super::super::{Layout, Signature};
    use super::*;
    use proptest::prelude::*;

    fn element(handle: usize) -> Element {
        let layout = Layout::named(by_handle(handle).unwrap());
        let signature: &Signature = layout.signature();
        signature.only.unwrap()
    }

    fn external(handle: usize, native: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(element(handle), native, &mut out).unwrap();
        out
    }

    #[test]
    fn values_look_as_the_standard_says() {
        assert_eq!(external(0x209, &1i32.to_ne_bytes()), [0, 0, 0, 1]);
        assert_eq!(
            external(0x20a, &(-2i64).to_ne_bytes()),
            [255, 255, 255, 254]
        );
        assert_eq!(external(0x214, &1.5f64.to_ne_bytes()), 1.5f64.to_be_bytes());
        let complex = [1f32.to_ne_bytes(), 2f32.to_ne_bytes()].concat();
        let expected = [1f32.to_be_bytes(), 2f32.to_be_bytes()].concat();
        assert_eq!(external(0x212, &complex), expected);
        assert_eq!(external(0x23c, &0x20acu32.to_ne_bytes()), [0x20, 0xac]);
        let mut out = Vec::new();
        let long = encode(element(0x20a), &(1i64 << 40).to_ne_bytes(), &mut out);
        assert_eq!(long, Err(OutOfRange(1 << 40, 4)));
    }

    #[test]
    fn x87_numbers_become_binary128() {
        // 1.0 and -2.5: integer bit explicit, exponent bias 16383.
        let one = [&(1u64 << 63).to_le_bytes()[..], &0x3fffu16.to_le_bytes()].concat();
        assert_eq!(quad_of_x87(&one), 0x3fff << 112);
        let minus = [&(5u64 << 61).to_le_bytes()[..], &0xc000u16.to_le_bytes()].concat();
        assert_eq!(quad_of_x87(&minus), 0xc000_4000 << 96);
        let infinity = x87_of_quad(0x7fff << 112);
        assert_eq!(infinity[..10], [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x7f]);
        // The largest binary128 below 2 rounds up to 2.
        let two = x87_of_quad((0x4000 << 112) - 1);
        assert_eq!(two[..10], [0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x40]);
    }

    proptest! {
        #[test]
        fn x87_round_trips(mantissa in any::<u64>(), exponent in 0u16..0x7fff, sign in any::<bool>()) {
            let mantissa = if exponent == 0 { mantissa >> 1 } else { mantissa | 1 << 63 };
            let head = exponent | (sign as u16) << 15;
            let native = [&mantissa.to_le_bytes()[..], &head.to_le_bytes(), &[0; 6]].concat();
            prop_assert_eq!(x87_of_quad(quad_of_x87(&native)).to_vec(), native);
        }

        #[test]
        fn elements_round_trip(row in 0..NAMED.len(), values in prop::collection::vec(any::<i16>(), 1..9)) {
            let layout = Layout::named(&NAMED[row]);
            let Some(e) = layout.signature().only else { return Ok(()) };
            prop_assume!(!is_x87(e.basic));
            let (size, _) = component(e);
            let signed = e.basic.class() == Class::Signed;
            let native: Vec<u8> = values.iter()
                .flat_map(|&v| native_bytes(if signed { v as i128 } else { v as u16 as i128 }, size))
                .collect();
            let whole = native.len() / e.basic.size() as usize * e.basic.size() as usize;
            let native = &native[..whole];
            let (mut there, mut back) = (Vec::new(), Vec::new());
            encode(e, native, &mut there).unwrap();
            decode(e, &there, &mut back).unwrap();
            prop_assert_eq!(there.len() as u64, whole as u64 / e.basic.size() * e.external as u64);
            prop_assert_eq!(&back[..], native);
        }
    }
}
