//! Type signatures: the basic elements of a datatype in the order of its packed stream, kept
//! folded.

mod hash;
pub mod message;

use super::basic::{Basic, Named};
use super::node::{DEEP, SHORT};
use std::sync::Arc;

/// One basic element that is not a pair, and its size in external32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element {
    /// Representation in memory.
    pub basic: Basic,
    /// Bytes in external32.
    pub external: u8,
}

/// A folded list of basic elements.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Bytes in the packed stream.
    pub bytes: u64,
    /// Number of basic elements.
    pub elements: u64,
    /// Bytes in external32.
    pub external: u64,
    /// The element, when all are alike.
    pub only: Option<Element>,
    /// How deep lists are nested in lists, up to the next repetition.
    depth: u32,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    One(Element),
    Repeat(u64, Arc<Signature>),
    List(Arc<[Signature]>),
}

impl Signature {
    /// No elements.
    pub(crate) fn empty() -> Signature {
        Signature {
            bytes: 0,
            elements: 0,
            external: 0,
            only: None,
            depth: 0,
            kind: Kind::List(Arc::new([])),
        }
    }

    /// The signature of a predefined datatype; a pair counts as two elements.
    pub(crate) fn named(named: &Named) -> Signature {
        match named.basic.pair() {
            None => Signature::one(named.basic, named.external),
            Some((value, index, _)) => Signature::list(vec![
                Signature::one(value, named.external - index.size() as u8),
                Signature::one(index, index.size() as u8),
            ]),
        }
    }

    fn one(basic: Basic, external: u8) -> Signature {
        let element = Element { basic, external };
        Signature {
            bytes: basic.size(),
            elements: 1,
            external: external as u64,
            only: Some(element),
            depth: 0,
            kind: Kind::One(element),
        }
    }

    /// `n` copies of the signature; `None` when a total passes 63 bits.
    pub(crate) fn repeat(&self, n: u64) -> Option<Signature> {
        if n == 0 || self.elements == 0 {
            return Some(Signature::empty());
        }
        let total = |x: u64| x.checked_mul(n).filter(|&t| t <= i64::MAX as u64);
        let kind = match (&self.kind, n) {
            (kind, 1) => kind.clone(),
            (Kind::Repeat(m, inner), _) => Kind::Repeat(n.checked_mul(*m)?, inner.clone()),
            _ => Kind::Repeat(n, Arc::new(self.clone())),
        };
        Some(Signature {
            bytes: total(self.bytes)?,
            elements: total(self.elements)?,
            external: total(self.external)?,
            only: self.only,
            depth: if n == 1 { self.depth } else { 0 },
            kind,
        })
    }

    /// The signatures one after the other; totals must have been checked. Lists in lists are kept
    /// like those of nodes.
    pub(crate) fn list(given: Vec<Signature>) -> Signature {
        let mut parts = Vec::with_capacity(given.len());
        for part in given {
            part.add_to(&mut parts, false);
        }
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let first = parts.first().and_then(|p| p.only);
        Signature {
            bytes: parts.iter().map(|p| p.bytes).sum(),
            elements: parts.iter().map(|p| p.elements).sum(),
            external: parts.iter().map(|p| p.external).sum(),
            only: first.filter(|_| parts.iter().all(|p| p.only == first)),
            depth: 1 + parts.iter().map(|p| p.depth).max().unwrap_or(0),
            kind: Kind::List(parts.into()),
        }
    }

    /// Adds this to a list; `unfold`: whatever the length of its own list.
    fn add_to(self, parts: &mut Vec<Signature>, unfold: bool) {
        if self.elements == 0 {
            return;
        }
        let deep = unfold || self.depth >= DEEP;
        match &self.kind {
            Kind::List(inner) if deep || inner.len() <= SHORT => {
                for part in inner.iter() {
                    part.clone().add_to(parts, deep);
                }
            }
            _ => parts.push(self),
        }
    }

    /// How many whole elements the first `bytes` bytes hold; `None` when they end inside an
    /// element.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        if bytes >= self.bytes {
            return (bytes == self.bytes).then_some(self.elements);
        }
        match &self.kind {
            _ if bytes == 0 => Some(0),
            Kind::One(_) => None,
            Kind::Repeat(_, inner) => {
                let rest = inner.elements_in(bytes % inner.bytes)?;
                Some(bytes / inner.bytes * inner.elements + rest)
            }
            Kind::List(parts) => {
                let (mut left, mut count) = (bytes, 0);
                for part in parts.iter() {
                    if left < part.bytes {
                        return Some(count + part.elements_in(left)?);
                    }
                    left -= part.bytes;
                    count += part.elements;
                }
                Some(count)
            }
        }
    }

    /// Bytes of the first `elements` elements.
    pub fn bytes_of(&self, elements: u64) -> u64 {
        if elements >= self.elements {
            return self.bytes;
        }
        match &self.kind {
            Kind::One(_) => 0,
            Kind::Repeat(_, inner) => {
                elements / inner.elements * inner.bytes + inner.bytes_of(elements % inner.elements)
            }
            Kind::List(parts) => {
                let (mut left, mut bytes) = (elements, 0);
                for part in parts.iter() {
                    bytes += part.bytes_of(left);
                    left -= left.min(part.elements);
                }
                bytes
            }
        }
    }

    /// Calls `f(element, n)` for each stretch of equal elements, in order; stops at an error.
    pub fn for_each<E>(&self, f: &mut dyn FnMut(Element, u64) -> Result<(), E>) -> Result<(), E> {
        match &self.kind {
            Kind::One(e) => f(*e, 1),
            Kind::Repeat(n, inner) => match inner.kind {
                Kind::One(e) => f(e, *n),
                _ => (0..*n).try_for_each(|_| inner.for_each(f)),
            },
            Kind::List(parts) => parts.iter().try_for_each(|p| p.for_each(f)),
        }
    }
}
