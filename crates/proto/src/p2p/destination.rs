//! Destinations of payload whose body is still on its way.

use crate::endpoint::{Memory, ReqId};
use kw_base::Key;

/// Destination of the payload of a frame whose body is still arriving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The buffer of a receive.
    Request(ReqId),
    /// The buffer of a message whose receive has not come.
    Early(Key),
    /// Discarded.
    Nowhere,
}

/// Encoding of a place for a path: a byte for its kind, above the 56 bits of a key.
const WHICH: u32 = 56;

impl Target {
    /// The place as a number that a path gives back.
    #[inline]
    pub fn to_cookie(self) -> u64 {
        match self {
            Target::Request(key) => key.to_bits(),
            Target::Early(key) => 1 << WHICH | key.to_bits(),
            Target::Nowhere => 2 << WHICH,
        }
    }

    /// Inverse of [`Target::to_cookie`].
    #[inline]
    pub fn from_cookie(cookie: u64) -> Target {
        match cookie >> WHICH {
            0 => Target::Request(ReqId::from_bits(cookie)),
            1 => Target::Early(Key::from_bits(cookie)),
            _ => Target::Nowhere,
        }
    }
}

/// Destination of a frame's payload while its body is on its way.
#[derive(Clone, Debug)]
pub struct Destination<B> {
    /// For `on_body`.
    pub target: Target,
    /// Bytes go to this buffer from its start; those that do not fit are thrown away.
    pub buf: B,
}

impl<B: Memory> Destination<B> {
    /// Bytes to discard.
    pub fn nowhere() -> Destination<B> {
        Destination {
            target: Target::Nowhere,
            buf: B::nothing(),
        }
    }
}
