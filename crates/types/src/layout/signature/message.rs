//! The type signature of a message in 32 bits, and whether a receive takes it: what KW_CHECK
//! compares.
//!
//! Data of one kind of element is known by that kind: its signature is a number below [`MIXED`],
//! and a receive that takes less or more of it is compared by the kind. Other data has a hash of
//! its elements in order. Bytes (MPI_BYTE, MPI_PACKED) may be received as any type, and any type as
//! bytes, as programs do it.

use super::hash::Poly;
use super::{Element, Kind, Signature};
use crate::layout::basic::{Basic, Class, NAMED};

/// The signature of data that is not compared.
pub const ANY: u32 = 0;
/// Signatures from here on are hashes.
const MIXED: u32 = 1 << 31;

fn of_basic(basic: Basic) -> u32 {
    match basic.class() {
        Class::Byte => ANY,
        _ => basic as u32 + 1,
    }
}

fn of_hash(value: u64) -> u32 {
    (value ^ value >> 31) as u32 | MIXED
}

/// The element as [`super::hash`] has it, but equal for elements that are alike in memory.
fn one(e: Element) -> Poly {
    Poly::of(e.basic as u64 + 1)
}

/// Name of data with this signature, for messages.
fn name(signature: u32) -> &'static str {
    let special = ["MPI_AINT", "MPI_COUNT", "MPI_OFFSET"];
    let is_it = |basic| of_basic(basic) == signature;
    let mut all = NAMED.iter().filter(|n| is_it(n.basic));
    let found = all.find(|n| !special.contains(&n.name));
    found.map_or("elements of several types", |n| n.name)
}

impl Signature {
    /// The signature of a message of `n` such elements.
    pub fn of_message(&self, n: u64) -> u32 {
        match self.only {
            _ if n == 0 || self.elements == 0 => ANY,
            Some(e) => of_basic(e.basic),
            None => of_hash(self.poly(one).repeated(n).value()),
        }
    }

    /// Description of the mismatch between a message of `bytes` bytes with this signature and a
    /// receive with that one; `None`: no mismatch is known.
    pub fn mismatch(&self, sent: u32, bytes: u64) -> Option<String> {
        let own = self.of_first(bytes)?;
        let differs = sent != ANY && own != ANY && own != sent;
        differs.then(|| match (sent < MIXED, own < MIXED) {
            (false, false) => "elements of several types, but its receive takes others".into(),
            _ => format!("{}, but its receive takes {}", name(sent), name(own)),
        })
    }

    /// The signature of the first `bytes` bytes of this, repeated; `None` if they end inside an
    /// element.
    fn of_first(&self, bytes: u64) -> Option<u32> {
        if bytes == 0 || self.bytes == 0 {
            return Some(ANY);
        }
        if let Some(e) = self.only {
            return Some(of_basic(e.basic));
        }
        let (whole, rest) = (bytes / self.bytes, bytes % self.bytes);
        let mut first = First {
            only: None,
            mixed: whole > 0,
            poly: self.poly(one).repeated(whole),
        };
        first.add(self, rest)?;
        Some(match (first.mixed, first.only) {
            (false, Some(basic)) => of_basic(basic),
            _ => of_hash(first.poly.value()),
        })
    }
}

/// The first bytes of a signature.
struct First {
    /// The element, while all are alike.
    only: Option<Basic>,
    mixed: bool,
    poly: Poly,
}

impl First {
    /// Adds the first `bytes` bytes, fewer than there are.
    fn add(&mut self, of: &Signature, bytes: u64) -> Option<()> {
        if bytes == 0 {
            return Some(());
        }
        match &of.kind {
            Kind::One(_) => None,
            Kind::Repeat(_, inner) => {
                self.add_whole(inner, bytes / inner.bytes);
                self.add(inner, bytes % inner.bytes)
            }
            Kind::List(parts) => {
                let mut left = bytes;
                for part in parts.iter() {
                    if left < part.bytes {
                        return self.add(part, left);
                    }
                    self.add_whole(part, 1);
                    left -= part.bytes;
                }
                Some(())
            }
        }
    }

    fn add_whole(&mut self, part: &Signature, n: u64) {
        if n == 0 || part.elements == 0 {
            return;
        }
        let basic = part.only.map(|e| e.basic);
        self.mixed |= basic.is_none() || self.only.is_some_and(|o| Some(o) != basic);
        self.only = basic;
        self.poly = self.poly.then(part.poly(one).repeated(n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Signature {
        let named = NAMED.iter().find(|n| n.name == name);
        Signature::named(named.expect("a predefined datatype"))
    }

    fn list(names: &[&str]) -> Signature {
        Signature::list(names.iter().map(|n| of(n)).collect())
    }

    #[test]
    fn a_message_fits_a_receive_of_the_same_elements_however_they_are_folded() {
        let pair = list(&["MPI_INT", "MPI_DOUBLE"]);
        let four = list(&["MPI_INT", "MPI_DOUBLE", "MPI_INT", "MPI_DOUBLE"]);
        let sent = pair.of_message(2);
        assert_eq!(sent, four.of_message(1));
        for receive in [&pair, &four, &pair.repeat(7).unwrap()] {
            assert_eq!(receive.mismatch(sent, 24), None);
        }
        // A shorter message fits the beginning of a longer receive.
        let sent = list(&["MPI_INT", "MPI_DOUBLE", "MPI_INT"]).of_message(1);
        assert_eq!(four.mismatch(sent, 16), None);
        assert_eq!(pair.mismatch(sent, 16), None);
        assert_eq!(four.mismatch(of("MPI_INT").of_message(1), 4), None);
    }

    #[test]
    fn other_elements_are_named() {
        let (int, float) = (of("MPI_INT"), of("MPI_FLOAT"));
        let text = int.mismatch(float.of_message(3), 12).unwrap();
        assert_eq!(text, "MPI_FLOAT, but its receive takes MPI_INT");
        let pair = list(&["MPI_INT", "MPI_FLOAT"]);
        let text = int.mismatch(pair.of_message(1), 8).unwrap();
        assert_eq!(
            text,
            "elements of several types, but its receive takes MPI_INT"
        );
        let turned = list(&["MPI_FLOAT", "MPI_INT"]);
        let text = turned.mismatch(pair.of_message(2), 16).unwrap();
        assert!(text.ends_with("but its receive takes others"), "{text}");
        assert!(pair.mismatch(float.of_message(1), 4).is_some());
        assert!(
            of("MPI_LONG")
                .mismatch(of("MPI_DOUBLE").of_message(1), 8)
                .unwrap()
                .starts_with("MPI_DOUBLE")
        );
    }

    #[test]
    fn bytes_fit_all_and_what_is_alike_in_memory_is_alike() {
        let (int, byte) = (of("MPI_INT"), of("MPI_BYTE"));
        assert_eq!(byte.of_message(8), ANY);
        assert_eq!(int.mismatch(ANY, 8), None);
        assert_eq!(of("MPI_PACKED").mismatch(int.of_message(2), 8), None);
        assert_eq!(of("MPI_INTEGER").mismatch(int.of_message(2), 8), None);
        assert_eq!(
            of("MPI_INT64_T").mismatch(of("MPI_LONG").of_message(2), 16),
            None
        );
        let longs = [
            list(&["MPI_LONG", "MPI_INT"]),
            list(&["MPI_INT64_T", "MPI_INT"]),
        ];
        assert_eq!(longs[0].mismatch(longs[1].of_message(1), 12), None);
        assert_eq!(int.of_message(0), ANY);
    }

    #[test]
    fn what_ends_inside_an_element_is_compared_with_nothing() {
        let pair = list(&["MPI_INT", "MPI_DOUBLE"]);
        assert_eq!(pair.mismatch(of("MPI_SHORT").of_message(3), 6), None);
    }
}
