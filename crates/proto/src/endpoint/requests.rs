//! The requests of one rank, in one table: those of the protocols, and those that the owner opens
//! for its own operations (collectives, partitioned transfers).

use super::{Awaits, Failure, Found, Memory, Outcome};
use crate::matching::{Envelope, Pattern};
use kw_base::overheads::WINDOW;
use kw_base::{ContextId, Key, Peer, Slab};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Names a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReqId(pub Key);

impl ReqId {
    /// Packs it into 56 bits, for a frame or a path.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// Inverse of [`ReqId::to_bits`].
    #[inline]
    pub fn from_bits(bits: u64) -> ReqId {
        ReqId(Key::from_bits(bits))
    }
}

/// An object of the owner that is dropped as soon as a request has ended, however it ends and
/// whether or not its outcome is taken: its `Drop` observes the end.
pub type CompletionGuard = Arc<dyn Debug + Send + Sync>;

/// Effects of a request's end, as bits. Most requests have none.
type AtEnd = u8;
/// The outcome is never taken.
const RELEASED: AtEnd = 1;
/// It has guards.
const GUARDED: AtEnd = 2;

/// State of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Send: kept back by flow control, or until its receive is announced.
    KeptBack,
    /// Send: the path is still reading the buffer.
    Sending,
    /// Send: like `Sending`, payload whose receive is known.
    Streaming,
    /// Send, synchronous: `sent` and `acked` may come in either order.
    SendingSync { sent: bool, acked: bool },
    /// Send: RTS is out; waits for CTS or FIN.
    Offered { cancelling: bool },
    /// Receive: posted.
    Posted(Pattern),
    /// Receive: matched, payload on its way.
    Arriving,
    /// Receive: matched with an offer, which this token of its sender names, and asked for, or
    /// being fetched.
    Asked { offer: u64 },
    /// Receive: matched with a message that is itself still arriving in its unexpected buffer.
    Claimed,
    /// An object of the owner that is not a transfer (a collective schedule).
    Open,
    /// Ended; the outcome may be taken.
    Done,
}

impl State {
    /// Whether the message waits in the path's queue.
    fn is_queued(self) -> bool {
        matches!(
            self,
            State::Sending | State::SendingSync { sent: false, .. }
        )
    }
}

#[derive(Debug)]
pub(crate) struct Req<B> {
    pub state: State,
    pub buf: B,
    /// Destination or source, if known.
    pub peer: Option<Peer>,
    /// Envelope of a send (to cancel it).
    pub env: Envelope,
    pub outcome: Outcome,
    at_end: AtEnd,
    /// For a receive that is [`Eager`]: its bytes (at most [`WINDOW`]) and one more; 0 for all
    /// others.
    eager: u32,
}

/// Incomplete receives that are no longer than the eager limit of their source: only this rank
/// waits for them.
#[derive(Clone, Copy, Default, Debug)]
struct Eager {
    receives: usize,
    bytes: u64,
}

/// The table.
#[derive(Debug)]
pub struct Requests<B> {
    table: Slab<Req<B>>,
    /// Requests that have not ended, released ones included.
    active: usize,
    eager: Eager,
    ended: u64,
    /// Objects kept for requests that have not ended.
    guards: HashMap<ReqId, Vec<CompletionGuard>>,
}

impl<B> Default for Requests<B> {
    fn default() -> Self {
        Requests {
            table: Slab::new(),
            active: 0,
            eager: Eager::default(),
            ended: 0,
            guards: HashMap::new(),
        }
    }
}

impl<B: Memory> Requests<B> {
    /// Requests that have not ended.
    #[inline]
    pub fn active(&self) -> usize {
        self.active
    }

    /// Whether a peer may wait for what this rank does about its requests: true for all but
    /// receives of eager messages, and for these if they are more than a path takes by itself.
    #[inline]
    pub fn may_hold_up_others(&self) -> bool {
        self.active > self.eager.receives || self.eager.bytes > WINDOW
    }

    /// Active transfers except receives of eager messages: their peers, if known, and maximum
    /// bytes.
    pub fn going_on(&self) -> impl Iterator<Item = (Peer, u64)> {
        let all = self.table.iter().map(|(_, r)| r);
        all.filter(|r| r.state != State::Done && r.eager == 0)
            .filter_map(|r| Some((r.peer?, r.buf.len())))
    }

    /// Number of requests that have ended since the start; tells the owner that a thread may have
    /// to be woken.
    #[inline]
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Whether a request has ended (a dead key has).
    #[inline]
    pub fn is_done(&self, key: ReqId) -> bool {
        self.table.get(key.0).is_none_or(|r| r.state == State::Done)
    }

    /// The outcome of a request that has ended.
    pub fn peek(&self, key: ReqId) -> Option<&Outcome> {
        let req = self.table.get(key.0);
        req.filter(|r| r.state == State::Done).map(|r| &r.outcome)
    }

    /// Takes the outcome of a request that has ended.
    #[inline]
    pub fn take(&mut self, key: ReqId) -> Option<Outcome> {
        if self.table.get(key.0)?.state != State::Done {
            return None;
        }
        self.table.remove(key.0).map(|r| r.outcome)
    }

    /// Takes the result of a request that has ended well. `None`: it has not ended well, or there
    /// is more to report ([`Requests::take`]); nothing has happened then.
    #[inline]
    pub fn take_clean(&mut self, key: ReqId) -> Option<Found> {
        let req = self.table.get(key.0)?;
        let outcome = &req.outcome;
        if req.state != State::Done || outcome.cancelled || outcome.failure.is_some() {
            return None;
        }
        let found = Found {
            source: outcome.source,
            tag: outcome.tag,
            len: outcome.len,
        };
        self.table.discard(key.0);
        Some(found)
    }

    /// Forgets a request; it continues.
    pub fn release(&mut self, key: ReqId) {
        match self.table.get_mut(key.0) {
            Some(r) if r.state == State::Done => {
                self.table.remove(key.0);
            }
            Some(r) => r.at_end |= RELEASED,
            None => {}
        }
    }

    /// Keeps a value until a request has ended; drops it at once if it has.
    pub fn keep(&mut self, key: ReqId, what: CompletionGuard) {
        if let Some(r) = self.table.get_mut(key.0)
            && r.state != State::Done
        {
            r.at_end |= GUARDED;
            self.guards.entry(key).or_default().push(what);
        }
    }

    /// The peers on which a request depends.
    pub fn awaits(&self, key: ReqId) -> Awaits {
        let Some(req) = self.table.get(key.0) else {
            return Awaits::NoPeer;
        };
        match req.state {
            State::Posted(want) => {
                let anyone = Awaits::Anyone(ContextId(want.context));
                req.peer.map_or(anyone, Awaits::Peer)
            }
            State::Offered { cancelling: false }
            | State::SendingSync {
                sent: true,
                acked: false,
            } => req.peer.map_or(Awaits::NoPeer, Awaits::Peer),
            State::Open => Awaits::Owner,
            _ => Awaits::NoPeer,
        }
    }

    /// Adds a request for the owner's own use; [`Requests::close`] ends it.
    pub fn open(&mut self) -> ReqId {
        let env = Envelope {
            context: 0,
            source: 0,
            tag: 0,
        };
        self.insert(State::Open, B::nothing(), None, env)
    }

    #[inline]
    pub(crate) fn insert(
        &mut self,
        state: State,
        buf: B,
        peer: Option<Peer>,
        env: Envelope,
    ) -> ReqId {
        self.insert_as(state, buf, peer, env, 0)
    }

    /// Adds a posted receive; `eager`: its message comes eagerly, if it comes from the expected
    /// source.
    #[inline]
    pub(crate) fn insert_posted(
        &mut self,
        want: Pattern,
        buf: B,
        from: Option<Peer>,
        eager: bool,
    ) -> ReqId {
        let env = Envelope {
            context: want.context,
            source: 0,
            tag: 0,
        };
        // One that is longer than the window is too much by itself, however long it is.
        let counted = buf.len().min(WINDOW) as u32 + 1;
        let eager = if eager { counted } else { 0 };
        self.eager.receives += usize::from(eager != 0);
        self.eager.bytes += u64::from(eager);
        self.insert_as(State::Posted(want), buf, from, env, eager)
    }

    #[inline(always)]
    fn insert_as(
        &mut self,
        state: State,
        buf: B,
        peer: Option<Peer>,
        env: Envelope,
        eager: u32,
    ) -> ReqId {
        self.active += 1;
        ReqId(self.table.insert(Req {
            state,
            buf,
            peer,
            env,
            outcome: Outcome::CLEAN,
            at_end: 0,
            eager,
        }))
    }

    /// Adds a request that has failed before it began.
    pub(crate) fn insert_failed(&mut self, peer: Peer, env: Envelope, why: Failure) -> ReqId {
        ReqId(self.table.insert(Req {
            state: State::Done,
            buf: B::nothing(),
            peer: Some(peer),
            env,
            outcome: Outcome::failed(why),
            at_end: 0,
            eager: 0,
        }))
    }

    /// Cookie that a frame must carry whose request [`crate::p2p::Sender::sent_eager`] will make.
    #[inline]
    pub fn cookie_of_next(&self) -> u64 {
        self.table.next_key().to_bits()
    }

    #[inline]
    pub(crate) fn get(&self, key: ReqId) -> Option<&Req<B>> {
        self.table.get(key.0)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: ReqId) -> Option<&mut Req<B>> {
        self.table.get_mut(key.0)
    }

    /// Requests that have not ended and need this peer.
    pub(crate) fn of(&self, peer: Peer) -> Vec<ReqId> {
        let needs_it = |r: &Req<B>| r.peer == Some(peer) && r.state != State::Done;
        let all = self.table.iter().filter(|(_, r)| needs_it(r));
        all.map(|(key, _)| ReqId(key)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ReqId, &Req<B>)> {
        self.table.iter().map(|(key, r)| (ReqId(key), r))
    }

    /// A request that waits for its receiver's answer to an offer.
    pub(crate) fn offered(&mut self, key: ReqId, to: Peer) -> Option<&mut Req<B>> {
        let req = self.table.get_mut(key.0);
        req.filter(|r| r.peer == Some(to) && matches!(r.state, State::Offered { .. }))
    }

    pub(crate) fn set_state(&mut self, key: ReqId, state: State) {
        if let Some(r) = self.table.get_mut(key.0) {
            r.state = state;
        }
    }

    /// Writes envelope and length of the matched message into the receive's outcome.
    #[inline]
    pub(crate) fn matched(&mut self, key: ReqId, env: Envelope, len: u64) {
        if let Some(req) = self.table.get_mut(key.0) {
            req.matched(env, len);
        }
    }

    /// Compares the type signature of a message with that of its receive, before the message goes
    /// there.
    #[cold]
    pub(crate) fn compare_types(&mut self, key: ReqId, env: Envelope, signature: u32, len: u64) {
        let Some(req) = self.table.get_mut(key.0) else {
            return;
        };
        let text = req.buf.mismatch(signature, len.min(req.buf.len()));
        req.outcome.failure = text.map(|text| {
            let (source, tag) = (env.source, env.tag);
            let text = format!("the message of rank {source} with tag {tag} holds {text}");
            Box::new(Failure::Types(text))
        });
    }

    /// The whole message of `len` bytes has arrived for a receive, which ends; returns the source
    /// of the receive.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        key: ReqId,
        env: Envelope,
        len: u64,
        body: &[u8],
    ) -> Option<Peer> {
        let req = self.table.get_mut(key.0)?;
        req.matched(env, len);
        req.buf.write(0, body);
        req.state = State::Done;
        let (from, eager) = (req.peer, req.eager);
        let at_end = req.end();
        self.count_end(key, at_end, eager);
        from
    }

    /// Ends a receive whose outcome [`Requests::matched`] has written.
    #[inline]
    pub(crate) fn finish_recv(&mut self, key: ReqId) {
        let Some(req) = self.table.get_mut(key.0) else {
            return;
        };
        req.state = State::Done;
        self.note_end(key);
    }

    /// Ends a request. If its message waits in a path's queue, returns the destination and bytes,
    /// because it no longer waits.
    #[must_use]
    pub(crate) fn finish(&mut self, key: ReqId, outcome: Outcome) -> Option<(Peer, u64)> {
        let req = self.table.get_mut(key.0)?;
        req.outcome = outcome;
        let before = std::mem::replace(&mut req.state, State::Done);
        let to = req.peer.filter(|_| before.is_queued());
        let queued = to.map(|to| (to, req.buf.len()));
        self.note_end(key);
        queued
    }

    /// Ends a request of [`Requests::open`].
    pub fn close(&mut self, key: ReqId, outcome: Outcome) {
        if let Some(req) = self.table.get_mut(key.0) {
            (req.outcome, req.state) = (outcome, State::Done);
            self.note_end(key);
        }
    }

    #[inline]
    pub(crate) fn note_end(&mut self, key: ReqId) {
        let req = self.table.get_mut(key.0);
        let (at_end, eager) = req.map_or((0, 0), |r| (r.end(), r.eager));
        self.count_end(key, at_end, eager);
    }

    #[inline]
    fn count_end(&mut self, key: ReqId, at_end: AtEnd, eager: u32) {
        self.active -= 1;
        self.eager.receives -= usize::from(eager != 0);
        self.eager.bytes -= u64::from(eager);
        self.ended += 1;
        if at_end != 0 {
            self.follow(key, at_end);
        }
    }

    #[cold]
    fn follow(&mut self, key: ReqId, at_end: AtEnd) {
        if at_end & RELEASED != 0 {
            self.table.discard(key.0);
        }
        if at_end & GUARDED != 0 {
            drop(self.guards.remove(&key));
        }
    }
}

impl<B: Memory> Req<B> {
    /// Writes envelope and length of the matched message into the outcome.
    #[inline]
    fn matched(&mut self, env: Envelope, len: u64) {
        let fits = self.buf.len();
        self.outcome.source = env.source;
        self.outcome.tag = env.tag;
        self.outcome.len = len.min(fits);
        if len > fits {
            self.truncate(len);
        }
    }

    #[cold]
    fn truncate(&mut self, came: u64) {
        let fits = self.buf.len();
        self.outcome.failure = Some(Box::new(Failure::Truncated { came, fits }));
    }

    /// It has ended, and no longer needs its buffer; returns the consequences.
    #[inline]
    fn end(&mut self) -> AtEnd {
        self.buf = B::nothing();
        self.at_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests, and a value that is kept for one of them, whose state [`held`] tells.
    fn keeping() -> (Requests<()>, ReqId, Arc<()>) {
        let (mut requests, kept) = (Requests::<()>::default(), Arc::new(()));
        let key = requests.open();
        requests.keep(key, kept.clone());
        (requests, key, kept)
    }

    fn held(kept: &Arc<()>) -> bool {
        Arc::strong_count(kept) > 1
    }

    #[test]
    fn what_is_kept_is_dropped_when_the_request_ends_however_it_does() {
        let why = Failure::Other(String::new());
        for outcome in [Outcome::CLEAN, Outcome::CANCELLED, Outcome::failed(why)] {
            let (mut requests, key, kept) = keeping();
            assert!(held(&kept));
            requests.close(key, outcome.clone());
            assert!(!held(&kept), "{outcome:?}");
            assert_eq!(requests.take(key), Some(outcome));
        }
    }

    #[test]
    fn receives_of_what_comes_eagerly_hold_up_nobody_unless_they_are_many() {
        let want = Pattern {
            context: 0,
            source: Some(1),
            tag: Some(0),
        };
        let mut requests = Requests::<()>::default();
        let post = |requests: &mut Requests<()>, eager| {
            requests.insert_posted(want, (), Some(Peer(1)), eager)
        };
        let (first, _) = (post(&mut requests, true), post(&mut requests, true));
        assert!(requests.active() == 2 && !requests.may_hold_up_others());
        let long = post(&mut requests, false);
        assert!(requests.may_hold_up_others(), "its sender may wait for it");
        requests.finish_recv(long);
        requests.finish_recv(first);
        assert!(requests.active() == 1 && !requests.may_hold_up_others());
        // Each counts a byte more than it has.
        let many: Vec<_> = (0..WINDOW).map(|_| post(&mut requests, true)).collect();
        assert!(requests.may_hold_up_others(), "they fill the path");
        many.into_iter().for_each(|key| requests.finish_recv(key));
        assert!(requests.active() == 1 && !requests.may_hold_up_others());
    }

    #[test]
    fn what_a_released_request_keeps_is_kept_to_its_end() {
        let (mut requests, key, kept) = keeping();
        requests.release(key);
        assert!(held(&kept));
        requests.close(key, Outcome::CLEAN);
        assert!(!held(&kept) && requests.take(key).is_none());
    }

    #[test]
    fn a_request_that_has_ended_or_is_none_keeps_nothing() {
        let (mut requests, key, kept) = keeping();
        requests.close(key, Outcome::CLEAN);
        requests.keep(key, kept.clone());
        assert!(!held(&kept));
        requests.take(key);
        requests.keep(key, kept.clone());
        assert!(!held(&kept));
    }

    #[test]
    fn one_request_keeps_its_own_alone() {
        let (mut requests, key, kept) = keeping();
        let other = requests.open();
        let more = Arc::new(());
        requests.keep(key, more.clone());
        requests.close(other, Outcome::CLEAN);
        assert!(held(&kept) && held(&more));
        requests.close(key, Outcome::CLEAN);
        assert!(!held(&kept) && !held(&more));
    }
}
