//! Floods: more messages than the receiver has asked for, and how it slows their senders down.
//!
//! A message that comes before its receive is kept, and costs memory (payload and entry). When the
//! kept messages of a rank pass a *mark* (`KW_UNEXPECTED`), it tells each sender of further such
//! messages to **pause**; below half the mark it tells all of them to **resume**. A sender that
//! was told to pause keeps further messages back, in their order, un-sent: their requests stay
//! pending, as those of any message may whose receive has not been posted (MPI 5.0, 3.5 and 3.7.4).
//! Only messages of point-to-point contexts are kept back: collectives, answers and the payload of
//! messages that were offered before pass.
//!
//! ```text
//! sender    open --Pause--> paused --Resume--> draining --all sent--> open
//!             \--too much in the path's queue--> draining
//! receiver  quiet --kept > mark--> pausing --kept < mark / 2, or the program needs a message--> quiet
//! ```
//!
//! No correct program can lock up by it, because the receiver never insists if the program may need
//! a message that is kept back:
//!
//! - A rank does not pause a peer while a receive is posted that a message of that peer could
//!   match, and posting one lets a paused peer resume.
//! - A probe that finds nothing lets those peers resume from which it could have found a message.
//! - While a program waits inside MPI for anything else, a collective or a send, and nothing
//!   arrives, all of them resume (the owner reports that, [`super::Receiver::let_through`]: it has a
//!   clock). So even programs that rely on the buffering of messages make progress.
//!
//! Each of the last two lets only a further portion through, a quarter of the mark, before the peer
//! is told to pause again.
//!
//! Messages already in a path cannot be kept back, so at most [`WINDOW`] bytes go there (or this
//! rank's own mark, if that is less), and a rank that sends without ever polling must poll now and
//! then for a pause request ([`super::Sending::owes_a_look`]).

use super::peers::Peers;
use super::sender::{Mode, Sender};
use crate::endpoint::{Memory, Outbox, ReqId, Requests, State};
use crate::matching::{Envelope, Pattern};
use crate::wire::{Header, Kind};
use kw_base::Peer;
use kw_base::counters::Counter;
use kw_base::overheads;
use kw_types::comm::STRIDE;
use std::collections::VecDeque;

/// Bytes that a message costs its receiver beside its payload: its entries in the table of early
/// messages and in two queues, and the allocator's share (`bench/flow_control`: 275 MB for a
/// million of 8 bytes).
const ENTRY: u64 = 272;
/// Most bytes (by [`weight`]) that wait in a path's own queue for one peer, and that are sent there
/// between two polls.
const WINDOW: u64 = overheads::WINDOW;

/// Memory that an unexpected message of `len` bytes takes at the receiver.
#[inline]
pub(super) fn weight(len: u64) -> u64 {
    len + ENTRY
}

#[inline]
pub(crate) fn is_p2p(context: u32) -> bool {
    context.is_multiple_of(STRIDE)
}

/// Whether a message is one that the program sends as such.
pub(super) fn is_users(env: &Envelope) -> bool {
    is_p2p(env.context) && env.tag >= 0
}

/// The receiver's side: what a rank keeps, and how much that may be.
#[derive(Debug, Default)]
pub(super) struct HighWater {
    /// Above it, senders are told to pause. `None`: never.
    mark: Option<u64>,
    /// Weight of the messages of point-to-point contexts that are kept.
    kept: u64,
    /// Peers that were told to pause.
    paused: usize,
    /// Peers may send more than the mark, see [`SendLimits::leave`].
    lenient: bool,
}

/// The send limits that this rank gave one peer.
#[derive(Debug, Default)]
pub(super) struct SendLimits {
    /// It was told to pause.
    paused: bool,
    /// It is not told to pause again before this much is kept.
    leave: u64,
}

/// The sender's side: the peers for which messages wait before more is sent.
#[derive(Debug)]
pub(super) struct Throttle {
    /// Most that waits in a path's own queue for one peer.
    window: u64,
    /// Peers for which messages are kept back, or whose path has enough to do.
    stalled: Vec<Peer>,
    /// Weight of the messages sent since the last poll for frames.
    unlooked: u64,
}

/// Messages deferred for one peer, with the reason.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// The peer told us to pause.
    paused: bool,
    /// The peer is in [`Throttle::stalled`].
    stalled: bool,
    /// Messages kept back, oldest first; those that were cancelled meanwhile are skipped.
    waiting: VecDeque<(ReqId, Mode)>,
    /// Weight of the messages that wait in the path's queue.
    queued: u64,
}

impl Backlog {
    /// Whether every message to this peer asks whether it must wait.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Whether messages may go straight to the path.
    fn is_free(&self, window: u64) -> bool {
        self.waiting.is_empty() && self.may_go(window)
    }

    /// A message of this length does not wait in the path's queue any more.
    pub(super) fn unqueued(&mut self, len: u64) {
        self.queued = self.queued.saturating_sub(weight(len));
    }

    /// Whether the first message that was kept back may go now.
    fn may_go(&self, window: u64) -> bool {
        !self.paused && self.queued < window
    }

    /// The next message that may go, taken off the list.
    fn next(&mut self, window: u64) -> Option<(ReqId, Mode)> {
        self.may_go(window).then(|| self.waiting.pop_front())?
    }

    /// The peer is gone: nothing waits for it any more.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        (self.paused, self.queued) = (false, 0);
    }
}

impl HighWater {
    /// Sets how much is kept before senders are told to pause, bytes.
    pub(super) fn set_mark(&mut self, bytes: Option<u64>) {
        self.mark = bytes;
    }

    /// How much more a peer may send that was told to resume because the program needs a message.
    fn portion(&self) -> u64 {
        self.mark.unwrap_or(0) / 4
    }

    /// Whether some peer was told to pause.
    #[inline]
    pub(super) fn is_pausing(&self) -> bool {
        self.paused != 0
    }

    /// A message is kept.
    #[inline]
    pub(super) fn kept_more<B: Memory>(
        &mut self,
        peers: &mut Peers,
        requests: &Requests<B>,
        out: &mut Outbox<B>,
        from: Peer,
        env: &Envelope,
        len: u64,
    ) {
        if is_p2p(env.context) {
            self.kept += weight(len);
            if self.mark.is_some_and(|mark| self.kept > mark) {
                self.rein_in(peers, requests, out, from);
            }
        }
    }

    /// It is not kept any more.
    #[inline]
    pub(super) fn kept_less<B>(
        &mut self,
        peers: &mut Peers,
        out: &mut Outbox<B>,
        env: &Envelope,
        len: u64,
    ) {
        if is_p2p(env.context) {
            self.kept -= weight(len);
            let busy = self.paused != 0 || self.lenient;
            if busy && self.mark.is_none_or(|mark| self.kept < mark / 2) {
                self.calm_down(peers, out);
            }
        }
    }

    /// Little is kept again: all is as at the start.
    #[cold]
    fn calm_down<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>) {
        self.let_all_go(peers, out, 0);
        peers
            .iter_mut()
            .for_each(|(_, p)| p.messages.limits.leave = 0);
        self.lenient = false;
    }

    /// Tells a peer to pause, unless the program may need its next message.
    #[cold]
    fn rein_in<B: Memory>(
        &mut self,
        peers: &mut Peers,
        requests: &Requests<B>,
        out: &mut Outbox<B>,
        from: Peer,
    ) {
        let peer = &mut peers[from];
        if peer.messages.limits.paused || self.kept < peer.messages.limits.leave || peer.is_self() {
            return;
        }
        if is_wanted(requests, from) {
            peer.messages.limits.leave = self.kept + self.portion();
            self.lenient = true;
            return;
        }
        peer.messages.limits.paused = true;
        self.paused += 1;
        out.counters.hit(Counter::PausesSent);
        out.bare(from, Header::bare(Kind::Pause));
    }

    /// The program waits and nothing comes: every peer may send a further portion.
    pub(super) fn let_through<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>) {
        self.let_all_go(peers, out, self.kept + self.portion());
    }

    /// A receive was posted, or a probe found nothing: a paused sender that may have the message
    /// resumes.
    #[inline]
    pub(super) fn need<B>(
        &mut self,
        peers: &mut Peers,
        out: &mut Outbox<B>,
        want: Pattern,
        from: Option<Peer>,
    ) {
        if self.paused != 0 && is_p2p(want.context) {
            let leave = self.kept + self.portion();
            match from {
                Some(p) => self.let_go_on(peers, out, p, leave),
                None => self.let_all_go(peers, out, leave),
            }
        }
    }

    #[cold]
    fn let_all_go<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>, leave: u64) {
        for peer in peers.numbers() {
            self.let_go_on(peers, out, peer, leave);
        }
    }

    #[cold]
    fn let_go_on<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>, to: Peer, leave: u64) {
        let limits = &mut peers[to].messages.limits;
        if std::mem::replace(&mut limits.paused, false) {
            limits.leave = leave;
            self.lenient = true;
            self.paused -= 1;
            out.bare(to, Header::bare(Kind::Resume));
        }
    }

    /// The peer has left in order, or is gone: it need not be told anything.
    pub(super) fn on_left(&mut self, peers: &mut Peers, peer: Peer) {
        let limits = &mut peers[peer].messages.limits;
        self.paused -= std::mem::replace(&mut limits.paused, false) as usize;
    }
}

/// Whether a receive is posted that a message of this peer could match.
fn is_wanted<B: Memory>(requests: &Requests<B>, from: Peer) -> bool {
    requests.iter().any(|(_, r)| match r.state {
        State::Posted(want) => {
            is_p2p(want.context) && (want.source.is_none() || r.peer == Some(from))
        }
        _ => false,
    })
}

impl Throttle {
    /// Before anything is sent.
    pub(super) fn new() -> Throttle {
        Throttle {
            window: WINDOW,
            stalled: Vec::new(),
            unlooked: 0,
        }
    }

    /// The mark of this rank, which also limits what it puts into its paths.
    pub(super) fn set_mark(&mut self, bytes: Option<u64>) {
        self.window = bytes.map_or(WINDOW, |mark| WINDOW.min(mark));
    }

    /// A message went out.
    #[inline]
    pub(super) fn sent(&mut self, len: u64) {
        self.unlooked += weight(len);
    }

    /// Whether this rank has sent enough without polling that a poll is due. Asking counts as
    /// polling.
    #[inline]
    pub(super) fn owes_a_look(&mut self) -> bool {
        let due = self.unlooked > WINDOW;
        if due {
            self.unlooked = 0;
        }
        due
    }

    /// Whether messages are kept back.
    pub(super) fn keeps_back(&self, peers: &Peers) -> bool {
        let mut stalled = self.stalled.iter();
        stalled.any(|&p| !peers[p].messages.backlog.waiting.is_empty())
    }

    /// Whether some messages are kept back, or some path has enough to do.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// Whether a message must wait until others have gone.
    pub(super) fn must_wait(&self, peers: &Peers, to: Peer, env: &Envelope) -> bool {
        let peer = &peers[to];
        is_p2p(env.context) && !peer.messages.backlog.is_free(self.window) && !peer.is_self()
    }

    /// The peer told us to pause, or to resume.
    fn on_limit(&mut self, peers: &mut Peers, from: Peer, paused: bool) {
        peers[from].messages.backlog.paused = paused;
        self.stall(peers, from);
    }

    /// A message waits in the path's queue.
    pub(super) fn queued(&mut self, peers: &mut Peers, to: Peer, len: u64) {
        let backlog = &mut peers[to].messages.backlog;
        backlog.queued += weight(len);
        if backlog.queued >= self.window {
            self.stall(peers, to);
        }
    }

    /// A message is kept back.
    fn keep_back(&mut self, peers: &mut Peers, to: Peer, key: ReqId, mode: Mode) {
        peers[to].messages.backlog.waiting.push_back((key, mode));
        self.stall(peers, to);
    }

    /// From now on every message to this peer asks whether it must wait.
    fn stall(&mut self, peers: &mut Peers, to: Peer) {
        let peer = &mut peers[to];
        if !std::mem::replace(&mut peer.messages.backlog.stalled, true) {
            self.stalled.push(to);
        }
        peer.set_plain();
    }

    /// Peers that are no longer stalled are forgotten.
    fn note_free(&mut self, peers: &mut Peers) {
        let window = self.window;
        self.stalled.retain(|&to| {
            let peer = &mut peers[to];
            peer.messages.backlog.stalled = !peer.messages.backlog.is_free(window);
            peer.set_plain();
            peer.messages.backlog.stalled
        });
    }
}

/// Messages that were kept back, and go now.
impl<B: Memory> Sender<'_, B> {
    /// The peer told us to pause, or to resume.
    pub(super) fn on_limit(&mut self, from: Peer, paused: bool) {
        self.sending.throttle.on_limit(self.peers, from, paused);
    }

    /// Keeps a message back.
    pub(super) fn keep_back(&mut self, to: Peer, env: Envelope, mode: Mode, buf: &B) -> ReqId {
        let key = self
            .requests
            .insert(State::KeptBack, buf.clone(), Some(to), env);
        self.out.counters.hit(Counter::SendsKeptBack);
        let throttle = &mut self.sending.throttle;
        throttle.keep_back(self.peers, to, key, mode);
        key
    }

    /// Sends those kept-back messages that may go; returns whether there were any. The owner polls
    /// for frames between two calls.
    #[cold]
    pub fn send_kept_back(&mut self) -> bool {
        let mut any = false;
        // Sending to a peer that is in the list adds no entry.
        for i in 0..self.sending.throttle.stalled.len() {
            any |= self.send_kept_back_to(self.sending.throttle.stalled[i]);
        }
        self.sending.throttle.note_free(self.peers);
        any
    }

    fn send_kept_back_to(&mut self, to: Peer) -> bool {
        let (mut any, window) = (false, self.sending.throttle.window);
        while let Some((key, mode)) = self.peers[to].messages.backlog.next(window) {
            let req = self
                .requests
                .get(key)
                .filter(|r| r.state == State::KeptBack);
            if let Some((env, buf)) = req.map(|r| (r.env, r.buf.clone())) {
                self.launch(key, to, env, mode, &buf);
                any = true;
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::super::PeerMessages;
    use super::super::table::Choice;
    use super::*;
    use crate::endpoint::{Action, FrameBody};
    use kw_base::counters::Way;

    const ENV: Envelope = Envelope {
        context: 0,
        source: 1,
        tag: 7,
    };

    /// This rank and two others, to which a path is known.
    fn peers() -> Peers {
        let choice = Choice {
            eager_max: 100,
            get_min: u64::MAX,
            announce_min: u64::MAX,
        };
        let mut peers = Peers::new(3, || PeerMessages::new(choice, false));
        for (peer, way) in [(0, Way::Own), (1, Way::Other), (2, Way::Other)] {
            peers.set_choice(Peer(peer), way, choice);
        }
        peers
    }

    /// Requests sent to peers since the last query.
    fn limits(out: &mut Outbox<()>) -> Vec<(u32, Kind)> {
        let frame = |a| match a {
            Action::Frame {
                to,
                head,
                body: FrameBody::None,
                ..
            } => (to.0, head.kind),
            other => panic!("{other:?}"),
        };
        out.actions.drain(..).map(frame).collect()
    }

    #[test]
    fn a_sender_is_paused_above_the_mark_and_resumed_below_half_of_it() {
        let (mut peers, requests, mut out) = (peers(), Requests::default(), Outbox::default());
        let mut high_water = HighWater::default();
        high_water.set_mark(Some(10_000));
        let mut bring = |h: &mut HighWater, out: &mut _, from| {
            h.kept_more(&mut peers, &requests, out, Peer(from), &ENV, 6000)
        };
        bring(&mut high_water, &mut out, 1);
        assert_eq!(limits(&mut out), []);
        bring(&mut high_water, &mut out, 2);
        bring(&mut high_water, &mut out, 2);
        assert_eq!(limits(&mut out), [(2, Kind::Pause)], "once");
        // Its own messages are never kept back.
        bring(&mut high_water, &mut out, 0);
        assert_eq!(limits(&mut out), []);
        for kept in [3, 2, 1] {
            assert!(high_water.is_pausing(), "{kept} messages are kept");
            high_water.kept_less(&mut peers, &mut out, &ENV, 6000);
        }
        assert_eq!(limits(&mut out), []);
        high_water.kept_less(&mut peers, &mut out, &ENV, 6000);
        assert_eq!(limits(&mut out), [(2, Kind::Resume)]);
    }

    #[test]
    fn a_peer_whose_message_is_wanted_may_send_a_further_portion() {
        let (mut peers, mut out) = (peers(), Outbox::default());
        let mut requests = Requests::<()>::default();
        let mut high_water = HighWater::default();
        high_water.set_mark(Some(10_000));
        let want = Pattern {
            context: 0,
            source: Some(0),
            tag: None,
        };
        requests.insert_posted(want, (), Some(Peer(1)), false);
        let mut bring = |len| {
            let from = Peer(1);
            high_water.kept_more(&mut peers, &requests, &mut out, from, &ENV, len);
            limits(&mut out)
        };
        assert_eq!(bring(11_000), []);
        assert_eq!(bring(2_000), [], "the portion");
    }

    #[test]
    fn a_sender_that_is_paused_or_has_filled_the_window_waits() {
        let (mut peers, mut throttle, to) = (peers(), Throttle::new(), Peer(1));
        assert!(!throttle.must_wait(&peers, to, &ENV) && peers[to].is_plain());
        throttle.on_limit(&mut peers, to, true);
        assert!(throttle.must_wait(&peers, to, &ENV) && !peers[to].is_plain());
        let collective = Envelope { context: 1, ..ENV };
        assert!(!throttle.must_wait(&peers, to, &collective));
        throttle.on_limit(&mut peers, to, false);
        throttle.note_free(&mut peers);
        assert!(!throttle.is_stalled() && peers[to].is_plain());
        throttle.queued(&mut peers, to, WINDOW);
        assert!(throttle.must_wait(&peers, to, &ENV) && throttle.is_stalled());
        peers[to].messages.backlog.unqueued(WINDOW);
        throttle.note_free(&mut peers);
        assert!(!throttle.must_wait(&peers, to, &ENV) && !throttle.is_stalled());
    }
}
