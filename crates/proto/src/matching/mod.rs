//! Posted receives and unexpected messages, and which of them belong together.
//!
//! MPI 5.0, 3.5: messages from one source in one context match in the order they were sent, and
//! receives match in the order they were posted. So there is one queue of receives for each
//! (context, source), one for MPI_ANY_SOURCE in each context, and a global number on every posted
//! receive that decides between the two. A message that waits stands in two queues: that of its
//! source, and that of all messages of the context.
//!
//! Costs: O(1) when messages and receives come in the same order; linear in the entries of the same
//! queue that have other tags otherwise. Memory: what is posted or waits at one time, see `queues`.

mod queues;

use kw_base::Key;
use queues::{Of, Queues};

/// Envelopes that a receive or probe accepts. `None` is the wildcard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Context id.
    pub context: u32,
    /// Rank in the communicator.
    pub source: Option<u32>,
    /// Tag.
    pub tag: Option<i32>,
}

/// The envelope of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Context id.
    pub context: u32,
    /// Sender's rank in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
}

#[derive(Clone, Copy, Debug)]
struct Posted {
    order: u64,
    tag: Option<i32>,
    key: Key,
    /// Announced to its source, see `p2p::announce`.
    announced: bool,
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    tag: i32,
    /// Its entry in the other queue.
    twin: u32,
    key: Key,
}

/// The queues of one rank. Keys are whatever the owner uses to name receives and messages.
#[derive(Debug, Default)]
pub struct Matching {
    posted: Queues<Posted>,
    arrived: Queues<Arrived>,
    clock: u64,
    /// Posted receives from any source.
    wild: usize,
}

impl Pattern {
    #[inline]
    fn of(&self) -> Of {
        Of::new(self.context, self.source)
    }
}

impl Envelope {
    #[inline]
    fn of(&self) -> Of {
        Of::new(self.context, Some(self.source))
    }
}

/// Whether a receive with that tag, or any, takes a message.
#[inline]
pub(crate) fn accepts(pattern: Option<i32>, tag: i32) -> bool {
    match pattern {
        Some(t) => t == tag,
        // Negative tags are the library's own; a wildcard never sees them.
        None => tag >= 0,
    }
}

#[inline]
fn overlap(a: Option<i32>, b: Option<i32>) -> bool {
    a.is_none() || b.is_none() || a == b
}

impl Matching {
    /// Empty queues.
    pub fn new() -> Matching {
        Matching::default()
    }

    /// Messages that no receive has accepted.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.arrived.len() as u64 / 2
    }

    /// Receives for which no message has come.
    pub fn posted(&self) -> u64 {
        self.posted.len() as u64
    }

    /// Whether no message waits and no receive is posted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.arrived.len() == 0 && self.posted.len() == 0
    }

    /// Posts a receive. Call [`Matching::claim`] first: a receive must not be posted while a
    /// message that it accepts is waiting.
    #[inline]
    pub fn post(&mut self, want: Pattern, key: Key) {
        self.clock += 1;
        let entry = Posted {
            order: self.clock,
            tag: want.tag,
            key,
            announced: false,
        };
        self.posted.push(want.of(), entry);
        self.wild += want.source.is_none() as usize;
    }

    #[inline]
    fn unpost(&mut self, at: u32, source: Option<u32>) -> Key {
        self.wild -= source.is_none() as usize;
        self.posted.remove(at).key
    }

    /// The first posted receive of a queue that accepts a tag, and its number.
    #[inline]
    fn first(&self, of: Of, tag: i32) -> Option<(u64, u32)> {
        let mut queue = self.posted.iter(of);
        let found = queue.find(|(_, p)| accepts(p.tag, tag));
        found.map(|(at, p)| (p.order, at))
    }

    /// Takes the first posted receive that accepts a message that has just arrived.
    #[inline]
    pub fn arrive(&mut self, env: Envelope) -> Option<Key> {
        let exact = self.first(env.of(), env.tag);
        if self.wild != 0
            && let Some((order, at)) = self.first(Of::new(env.context, None), env.tag)
            && exact.is_none_or(|e| order < e.0)
        {
            return Some(self.unpost(at, None));
        }
        exact.map(|(_, at)| self.unpost(at, Some(env.source)))
    }

    /// Stores a message that no posted receive accepted.
    pub fn store(&mut self, env: Envelope, key: Key) {
        let entry = |twin| Arrived {
            tag: env.tag,
            twin,
            key,
        };
        let first = self.arrived.push(env.of(), entry(0));
        let twin = self.arrived.push(Of::new(env.context, None), entry(first));
        self.arrived.get(first).twin = twin;
    }

    #[inline]
    fn take(&mut self, at: u32) -> Key {
        let Arrived { twin, key, .. } = self.arrived.remove(at);
        self.arrived.remove(twin);
        key
    }

    /// The first waiting message that a pattern accepts, left in place.
    #[inline]
    pub fn peek(&self, want: Pattern) -> Option<Key> {
        Some(self.locate(want)?.1)
    }

    /// Takes the first waiting message that a pattern accepts.
    #[inline]
    pub fn claim(&mut self, want: Pattern) -> Option<Key> {
        let (at, _) = self.locate(want)?;
        Some(self.take(at))
    }

    #[inline]
    fn locate(&self, want: Pattern) -> Option<(u32, Key)> {
        if self.arrived.len() == 0 {
            return None;
        }
        let mut queue = self.arrived.iter(want.of());
        let found = queue.find(|(_, m)| accepts(want.tag, m.tag));
        found.map(|(at, m)| (at, m.key))
    }

    /// Takes back a posted receive (cancelled, or filled by a write); `false` when it is not posted
    /// any more.
    pub fn withdraw(&mut self, want: Pattern, key: Key) -> bool {
        let found = self.posted.iter(want.of()).find(|(_, p)| p.key == key);
        let at = found.map(|(at, _)| at);
        at.is_some_and(|at| self.unpost(at, want.source) == key)
    }

    /// Takes back a waiting message (cancelled by its sender).
    pub fn forget(&mut self, env: Envelope, key: Key) -> bool {
        let found = self.arrived.iter(env.of()).find(|(_, m)| m.key == key);
        let at = found.map(|(at, _)| at);
        at.is_some_and(|at| self.take(at) == key)
    }

    /// Whether the receive just posted last may be announced to its source: no earlier receive that
    /// could take the same message is unannounced. Marks it when it may.
    pub fn announce(&mut self, want: Pattern, key: Key) -> bool {
        let Some(at) = self.announceable(want, key) else {
            return false;
        };
        self.posted.get(at).announced = true;
        true
    }

    fn announceable(&self, want: Pattern, key: Key) -> Option<u32> {
        let mut wild = self.posted.iter(Of::new(want.context, None));
        if want.source.is_none() || self.wild != 0 && wild.any(|(_, p)| overlap(p.tag, want.tag)) {
            return None;
        }
        let blocks = |p: &Posted| !p.announced && overlap(p.tag, want.tag);
        let mut queue = self.posted.iter(want.of());
        let (at, first) = queue.find(|(_, p)| p.key == key || blocks(p))?;
        (first.key == key).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Post(Option<u32>, Option<i32>),
        Arrive(u32, i32),
        Withdraw(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        let source = prop_oneof![2 => (0u32..3).prop_map(Some), 1 => Just(None)];
        let tag = prop_oneof![2 => (0i32..3).prop_map(Some), 1 => Just(None)];
        prop_oneof![
            4 => (source, tag).prop_map(|(s, t)| Op::Post(s, t)),
            4 => (0u32..3, 0i32..3).prop_map(|(s, t)| Op::Arrive(s, t)),
            1 => (0usize..8).prop_map(Op::Withdraw),
        ]
    }

    fn fits(p: &Pattern, e: &Envelope) -> bool {
        p.context == e.context
            && p.source.is_none_or(|s| s == e.source)
            && p.tag.is_none_or(|t| t == e.tag)
    }

    proptest! {
        /// The oracle is the standard's rule read literally: two plain lists, searched from the
        /// front.
        #[test]
        fn matches_what_two_plain_lists_would_match(ops in prop::collection::vec((op(), 0u32..2), 0..120)) {
            let mut m = Matching::new();
            let mut posted: Vec<(Pattern, Key)> = Vec::new();
            let mut waiting: Vec<(Envelope, Key)> = Vec::new();
            for (n, (op, context)) in ops.into_iter().enumerate() {
                let key = Key { index: n as u32, generation: 0 };
                match op {
                    Op::Post(source, tag) => {
                        let want = Pattern { context, source, tag };
                        prop_assert_eq!(m.waiting(), waiting.len() as u64);
                        prop_assert_eq!(m.posted(), posted.len() as u64);
                        let expect = waiting.iter().position(|(e, _)| fits(&want, e));
                        prop_assert_eq!(m.peek(want), expect.map(|i| waiting[i].1));
                        let got = m.claim(want);
                        prop_assert_eq!(got, expect.map(|i| waiting.remove(i).1));
                        if got.is_none() {
                            m.post(want, key);
                            posted.push((want, key));
                        }
                    }
                    Op::Arrive(source, tag) => {
                        let env = Envelope { context, source, tag };
                        let expect = posted.iter().position(|(p, _)| fits(p, &env));
                        let got = m.arrive(env);
                        prop_assert_eq!(got, expect.map(|i| posted.remove(i).1));
                        if got.is_none() {
                            m.store(env, key);
                            waiting.push((env, key));
                        }
                    }
                    Op::Withdraw(i) if !posted.is_empty() => {
                        let (want, key) = posted.remove(i % posted.len());
                        prop_assert!(m.withdraw(want, key));
                        prop_assert!(!m.withdraw(want, key));
                    }
                    Op::Withdraw(i) if !waiting.is_empty() => {
                        let (env, key) = waiting.remove(i % waiting.len());
                        prop_assert!(m.forget(env, key));
                        prop_assert!(!m.forget(env, key));
                    }
                    Op::Withdraw(_) => {}
                }
            }
        }
    }
}
