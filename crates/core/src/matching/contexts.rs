//! The queues of each context, found by its id.
//!
//! Ids of communicators that the user makes are spread over all of 32 bits (see `comm`), so those are hashed; the few
//! constant ids, MPI_COMM_WORLD's among them, are found at once.

use super::Context;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Ids below this are kept in a row.
const LOW: u32 = 16;

/// Mixes one number (Fibonacci hashing); ids are chosen by this library, nobody can aim at one bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u32(b as u32));
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0 ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// The queues of all contexts that were ever used and not retired.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    low: Vec<Context>,
    high: HashMap<u32, Context, BuildHasherDefault<Mix>>,
}

impl Contexts {
    #[inline]
    pub(super) fn get(&self, id: u32) -> Option<&Context> {
        if id < LOW {
            return self.low.get(id as usize);
        }
        self.high.get(&id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Context> {
        if id < LOW {
            return self.low.get_mut(id as usize);
        }
        self.high.get_mut(&id)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Context> {
        self.low.iter().chain(self.high.values())
    }

    /// The queues of a context, made if need be.
    #[inline]
    pub(super) fn entry(&mut self, id: u32) -> &mut Context {
        if id >= LOW {
            return self.high.entry(id).or_default();
        }
        let i = id as usize;
        if i >= self.low.len() {
            self.low.resize_with(i + 1, Context::default);
        }
        &mut self.low[i]
    }

    /// Forgets a context that will not be used again, if nothing waits in it.
    pub(super) fn retire(&mut self, id: u32) {
        if self.high.get(&id).is_some_and(Context::is_idle) {
            self.high.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Matching, Pattern};
    use kw_base::Key;

    /// Ids of communicators are spread widely: with a table indexed by them, the 1024th duplicate of sixteen processes
    /// was refused.
    #[test]
    fn ids_far_apart_cost_what_is_used_and_are_forgotten_when_idle() {
        let mut m = Matching::new();
        let key = Key {
            index: 1,
            generation: 0,
        };
        let want = |context| Pattern {
            context,
            source: Some(3),
            tag: Some(0),
        };
        for context in [0, LOW - 1, LOW, 1 << 16, (1 << 31) - 1] {
            m.post(want(context), key);
            m.retire(context);
            assert!(
                m.withdraw(want(context), key),
                "{context}: something waited there"
            );
        }
        assert_eq!(m.contexts.high.len(), 3);
        for context in [LOW, 1 << 16, (1 << 31) - 1] {
            m.retire(context);
        }
        assert!(m.contexts.high.is_empty());
    }
}
