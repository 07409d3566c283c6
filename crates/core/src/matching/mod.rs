//! Posted receives and unexpected messages, and which of them belong together.
//!
//! MPI 5.0, 3.5: messages from one source in one context match in the order they were sent, and receives match in the
//! order they were posted. So there is one queue for each (context, source), one for MPI_ANY_SOURCE in each context,
//! and a global number on every posted receive that decides between the two.
//!
//! Costs: O(1) when messages and receives come in the same order; linear in the entries of the same source that have
//! other tags otherwise. Memory: only sources that were ever used in a context have queues.

mod contexts;

use contexts::Contexts;
use kw_base::Key;
use std::collections::VecDeque;

/// What a receive or probe accepts. `None` is the wildcard.
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
    order: u64,
    tag: i32,
    key: Key,
}

#[derive(Debug, Default)]
struct Source {
    posted: VecDeque<Posted>,
    arrived: VecDeque<Arrived>,
}

#[derive(Debug, Default)]
struct Context {
    sources: Vec<Source>,
    any: VecDeque<Posted>,
    arrived: usize,
}

impl Context {
    /// Whether nothing is posted and nothing has arrived.
    fn is_idle(&self) -> bool {
        self.arrived == 0 && self.any.is_empty() && self.sources.iter().all(|s| s.posted.is_empty())
    }

    /// Receives posted here.
    fn posted(&self) -> usize {
        self.any.len() + self.sources.iter().map(|s| s.posted.len()).sum::<usize>()
    }
}

/// The queues of one rank. Keys are whatever the owner uses to name receives and messages.
#[derive(Debug, Default)]
pub struct Matching {
    contexts: Contexts,
    clock: u64,
    waiting: u64,
}

#[inline]
fn accepts(pattern: Option<i32>, tag: i32) -> bool {
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
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Receives that no message has come for. Looks at every queue.
    pub fn posted(&self) -> u64 {
        self.contexts.iter().map(|c| c.posted() as u64).sum()
    }

    fn context(&mut self, id: u32) -> &mut Context {
        self.contexts.entry(id)
    }

    /// Posts a receive. Call [`Matching::claim`] first: a receive must not be posted while a message that it accepts is
    /// waiting.
    #[inline]
    pub fn post(&mut self, want: Pattern, key: Key) {
        self.clock += 1;
        let order = self.clock;
        let entry = Posted {
            order,
            tag: want.tag,
            key,
            announced: false,
        };
        let context = self.context(want.context);
        match want.source {
            Some(s) => context.source(s).posted.push_back(entry),
            None => context.any.push_back(entry),
        }
    }

    /// Takes the first posted receive that accepts a message that has just arrived.
    #[inline]
    pub fn arrive(&mut self, env: Envelope) -> Option<Key> {
        let context = self.contexts.get_mut(env.context)?;
        let exact = context
            .sources
            .get(env.source as usize)
            .and_then(|s| first(&s.posted, env.tag));
        let any = if context.any.is_empty() {
            None
        } else {
            first(&context.any, env.tag)
        };
        let queue = match (exact, any) {
            (None, None) => return None,
            (Some((i, a)), Some((_, b))) if a < b => (i, false),
            (Some((i, _)), None) => (i, false),
            (_, Some((i, _))) => (i, true),
        };
        let taken = match queue {
            (i, true) => context.any.remove(i),
            (i, false) => context.sources[env.source as usize].posted.remove(i),
        };
        taken.map(|p| p.key)
    }

    /// Stores a message that no posted receive accepted.
    pub fn store(&mut self, env: Envelope, key: Key) {
        self.clock += 1;
        self.waiting += 1;
        let order = self.clock;
        let context = self.context(env.context);
        context.arrived += 1;
        context.source(env.source).arrived.push_back(Arrived {
            order,
            tag: env.tag,
            key,
        });
    }

    /// The first waiting message that a pattern accepts, left in place.
    #[inline]
    pub fn peek(&self, want: Pattern) -> Option<Key> {
        let (s, i) = self.locate(want)?;
        let context = self.contexts.get(want.context)?;
        Some(context.sources[s].arrived[i].key)
    }

    /// Takes the first waiting message that a pattern accepts.
    #[inline]
    pub fn claim(&mut self, want: Pattern) -> Option<Key> {
        let (s, i) = self.locate(want)?;
        let context = self.contexts.get_mut(want.context)?;
        context.arrived -= 1;
        self.waiting -= 1;
        context.sources[s].arrived.remove(i).map(|m| m.key)
    }

    #[inline]
    fn locate(&self, want: Pattern) -> Option<(usize, usize)> {
        let context = self.contexts.get(want.context)?;
        if context.arrived == 0 {
            return None;
        }
        let within = |s: usize| {
            let queue = &context.sources.get(s)?.arrived;
            let i = queue.iter().position(|m| accepts(want.tag, m.tag))?;
            Some((queue[i].order, s, i))
        };
        let best = match want.source {
            Some(s) => within(s as usize),
            None => (0..context.sources.len()).filter_map(within).min(),
        };
        best.map(|(_, s, i)| (s, i))
    }

    /// Takes back a posted receive (cancelled, or filled by a write); `false` when it is not posted any more.
    pub fn withdraw(&mut self, want: Pattern, key: Key) -> bool {
        let Some(context) = self.contexts.get_mut(want.context) else {
            return false;
        };
        let queue = match want.source {
            Some(s) => match context.sources.get_mut(s as usize) {
                Some(source) => &mut source.posted,
                None => return false,
            },
            None => &mut context.any,
        };
        let found = queue.iter().position(|p| p.key == key);
        found.is_some_and(|i| queue.remove(i).is_some())
    }

    /// Takes back a waiting message (cancelled by its sender).
    pub fn forget(&mut self, env: Envelope, key: Key) -> bool {
        let Some(context) = self.contexts.get_mut(env.context) else {
            return false;
        };
        let Some(source) = context.sources.get_mut(env.source as usize) else {
            return false;
        };
        let found = source.arrived.iter().position(|m| m.key == key);
        let gone = found.is_some_and(|i| source.arrived.remove(i).is_some());
        context.arrived -= gone as usize;
        self.waiting -= gone as u64;
        gone
    }

    /// Whether the receive just posted last may be announced to its source: no earlier receive that could take the same
    /// message is unannounced. Marks it when it may.
    pub fn announce(&mut self, want: Pattern, key: Key) -> bool {
        let Some(s) = want.source else { return false };
        let context = self.context(want.context);
        if context.any.iter().any(|p| overlap(p.tag, want.tag)) {
            return false;
        }
        let posted = &mut context.source(s).posted;
        let Some(mine) = posted.iter().position(|p| p.key == key) else {
            return false;
        };
        let blocked = posted
            .iter()
            .take(mine)
            .any(|p| !p.announced && overlap(p.tag, want.tag));
        posted[mine].announced = !blocked;
        !blocked
    }

    /// Forgets a context whose communicator is gone, unless something still waits in it.
    pub fn retire(&mut self, context: u32) {
        self.contexts.retire(context);
    }
}

#[inline]
fn first(queue: &VecDeque<Posted>, tag: i32) -> Option<(usize, u64)> {
    queue
        .iter()
        .position(|p| accepts(p.tag, tag))
        .map(|i| (i, queue[i].order))
}

impl Context {
    fn source(&mut self, s: u32) -> &mut Source {
        let i = s as usize;
        if i >= self.sources.len() {
            self.sources.resize_with(i + 1, Source::default);
        }
        &mut self.sources[i]
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
        /// The oracle is the standard's rule read literally: two plain lists, searched from the front.
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
