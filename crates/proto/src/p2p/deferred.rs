//! Long messages of collectives wait for the announcement of their receive, instead of being
//! offered.
//!
//! In a collective the receiver posts the receive of every message, names its source, and expects
//! the length that is sent. So if receives are announced, the announcement of a long one is sure to
//! come, and an offer would be a useless frame: the message is deferred until the announcement
//! tells where it goes.
//!
//! It is sure only if nothing keeps the receive from being announced: the peer has announced
//! receives as short as this message before, and no message with the same envelope is in flight
//! that took none. Otherwise it is offered at once. If no announcement comes all the same (ranks
//! disagree about lengths, which is a mistake of the program, or about which length is long), the
//! message is offered when a wait has lasted long ([`Sender::offer_deferred`]; the owner has the
//! clock), or when an announcement of the peer had to be dropped.
//!
//! Messages with one envelope keep their order: one that follows a deferred one is deferred with
//! it.

use super::flow_control::is_p2p;
use super::peers::PeerState;
use super::sender::{Mode, Sender};
use crate::endpoint::{Memory, ReqId, State};
use crate::matching::Envelope;
use kw_base::Peer;

/// A message that is deferred.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deferred {
    key: ReqId,
    env: Envelope,
    mode: Mode,
}

impl PeerState {
    /// Whether a message that no announced receive takes waits for its announcement, or for others
    /// that do.
    pub(super) fn must_withhold(&self, env: Envelope, mode: Mode, len: u64, short: bool) -> bool {
        if is_p2p(env.context) {
            return false;
        }
        let known = &self.messages;
        let sure = || known.choice.answers_offers() && known.theirs.is_sure_to_ask(env, len);
        mode == Mode::Standard && !short && sure() || known.deferred.iter().any(|m| m.env == env)
    }
}

impl<B: Memory> Sender<'_, B> {
    pub(super) fn withhold(&mut self, key: ReqId, to: Peer, env: Envelope, mode: Mode) {
        self.requests.set_state(key, State::KeptBack);
        let peer = &mut self.peers[to];
        peer.messages
            .deferred
            .push_back(Deferred { key, env, mode });
        peer.set_plain();
    }

    /// A receive was announced that accepts such envelopes and is not matched by an earlier
    /// message: writes the first message deferred for it, and restarts those behind it. Returns
    /// whether there was one.
    pub(super) fn write_deferred(
        &mut self,
        to: Peer,
        token: u64,
        accepts: impl Fn(Envelope) -> bool,
    ) -> bool {
        let first = self.peers[to]
            .messages
            .deferred
            .iter()
            .find(|m| accepts(m.env));
        let Some(env) = first.map(|m| m.env) else {
            return false;
        };
        let mut waiting = self.take_deferred(to, |m| m.env == env).into_iter();
        let first = waiting.find_map(|m| Some((m, self.kept_buf(m.key)?)));
        let written = first.is_some();
        if let Some((m, buf)) = first {
            self.peers[to].messages.theirs.sent_asked();
            self.sending.throttle.sent(buf.len());
            self.send_write(m.key, to, m.env, token, &buf);
        }
        self.start_anew(to, waiting);
        written
    }

    /// Offers the messages that still wait for their announcement: a wait has lasted long. Until
    /// those peers announce something again, no further message to them is deferred. Returns
    /// whether there were any.
    pub fn offer_deferred(&mut self) -> bool {
        let all = self.peers.deferred_from();
        for &to in &all {
            self.offer_deferred_to(to);
        }
        !all.is_empty()
    }

    pub(super) fn offer_deferred_to(&mut self, to: Peer) {
        self.peers[to].messages.theirs.expect_nothing();
        let all = self.take_deferred(to, |_| true);
        self.start_anew(to, all);
    }

    /// The peer is gone.
    pub(super) fn forget_deferred(&mut self, peer: Peer) {
        self.take_deferred(peer, |_| true);
    }

    fn start_anew(&mut self, to: Peer, messages: impl IntoIterator<Item = Deferred>) {
        for m in messages {
            if let Some(buf) = self.kept_buf(m.key) {
                self.launch(m.key, to, m.env, m.mode, &buf);
            }
        }
    }

    /// The message it sends, if it has not been cancelled meanwhile.
    fn kept_buf(&self, key: ReqId) -> Option<B> {
        let req = self
            .requests
            .get(key)
            .filter(|r| r.state == State::KeptBack);
        req.map(|r| r.buf.clone())
    }

    fn take_deferred(&mut self, to: Peer, which: impl Fn(&Deferred) -> bool) -> Vec<Deferred> {
        let peer = &mut self.peers[to];
        let (taken, left) = peer.messages.deferred.drain(..).partition(which);
        peer.messages.deferred = left;
        peer.set_plain();
        taken.into()
    }
}
