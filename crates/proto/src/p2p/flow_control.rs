//! Floods: more messages than the receiver has asked for, and how it slows their senders down.
//!
//! A message that comes before its receive is kept, and costs memory (payload and entry). When what a rank keeps passes a *mark*
//! (`KW_UNEXPECTED`), it tells each sender whose messages it goes on to keep to **hold**; below half the mark it tells all of
//! them to **go** again. A sender that was told to hold keeps further messages back, in their order, un-sent: their requests stay pending, as
//! those of any message may whose receive has not been posted (MPI 5.0, 3.5 and 3.7.4). Only messages of point-to-point contexts
//! are held: collectives, answers and the payload of messages that were offered before pass.
//!
//! ```text
//! sender    open --Hold--> held --Go--> draining --all sent--> open
//!             \--too much in the path's queue--> draining
//! receiver  quiet --kept > mark--> holding --kept < mark / 2, or the program needs a message--> quiet
//! ```
//!
//! No correct program can lock up by it, because the receiver never insists where the program may need what is held:
//!
//! - A rank gives no hold to a peer while a receive is posted that a message of that peer could match, and posting one makes
//!   a held peer go.
//! - A probe that finds nothing makes the peers go that it could have found something of.
//! - A program that waits inside MPI for anything else, a collective or a send, while nothing arrives makes all of them go
//!   (the owner says so, [`Machine::let_through`]: it has a clock). So even programs that rely on the buffering of messages go on.
//!
//! Each of the last two lets only a further portion through, a quarter of the mark, before the peer is told to hold again.
//!
//! What is already in a path cannot be held, so no more goes there than [`WINDOW`] (or our own mark, if that is less), and a rank that sends without ever looking
//! must look now and then whether it was told to hold ([`FlowControl::owes_a_look`]).

use super::Memory;
use super::machine::{Machine, Mode};
use super::outbox::Outbox;
use super::peers::Peers;
use super::requests::{ReqKey, Requests, State};
use crate::matching::{Envelope, Pattern};
use crate::wire::{Header, Kind};
use kw_base::Peer;
use kw_base::counters::Counter;
use kw_types::comm::STRIDE;
use std::collections::VecDeque;

/// Bytes that a message costs its receiver beside its payload: its entries in the table of early messages and in two queues,
/// and the allocator's share (`bench/flow_control`: 275 MB for a million of 8 bytes).
const ENTRY: u64 = 272;
/// Most that waits in a path's own queue for one peer, and that is sent there between two looks (by [`weight`]): bytes.
pub(super) const WINDOW: u64 = 256 << 10;

/// What a message of `len` bytes costs the receiver if it comes early.
#[inline]
pub(super) fn weight(len: u64) -> u64 {
    len + ENTRY
}

#[inline]
pub(super) fn is_p2p(context: u32) -> bool {
    context.is_multiple_of(STRIDE)
}

/// What a rank keeps, and how much that may be.
#[derive(Debug, Default)]
pub struct FlowControl {
    /// Above it, senders are told to hold. `None`: never.
    mark: Option<u64>,
    /// Weight of the messages of point-to-point contexts that are kept.
    kept: u64,
    /// Peers that were told to hold.
    holding: usize,
    /// Peers may send more than the mark, see [`PeerFlow::leave`].
    lenient: bool,
    /// Peers that messages are kept back for, or whose path has enough to do.
    stalled: Vec<Peer>,
    /// Weight of what was sent since we last looked for frames.
    unlooked: u64,
}

/// What two ranks have told each other.
#[derive(Debug, Default)]
pub(super) struct PeerFlow {
    /// We told the peer to hold.
    holding: bool,
    /// It is not told again before this much is kept.
    leave: u64,
    /// The peer told us to hold.
    held: bool,
    /// In [`FlowControl::stalled`].
    stalled: bool,
    /// Messages kept back, oldest first; those that were cancelled meanwhile are skipped.
    backlog: VecDeque<(ReqKey, Mode)>,
    /// Weight of the messages that wait in the path's queue.
    queued: u64,
}

impl FlowControl {
    /// A message went out.
    #[inline]
    pub(super) fn sent(&mut self, len: u64) {
        self.unlooked += weight(len);
    }

    /// Most that waits in a path's own queue for one peer.
    fn window(&self) -> u64 {
        self.mark.map_or(WINDOW, |mark| WINDOW.min(mark))
    }

    /// How much more a peer may send that was let go for want of a message.
    fn portion(&self) -> u64 {
        self.mark.unwrap_or(0) / 4
    }
}

impl PeerFlow {
    pub(super) fn stalled(&self) -> bool {
        self.stalled
    }

    /// Whether messages may go straight to the path.
    fn is_free(&self, window: u64) -> bool {
        self.backlog.is_empty() && self.may_go(window)
    }

    /// A message of this length does not wait in the path's queue any more.
    pub(super) fn unqueued(&mut self, len: u64) {
        self.queued = self.queued.saturating_sub(weight(len));
    }

    /// Whether the first message that was kept back may go now.
    fn may_go(&self, window: u64) -> bool {
        !self.held && self.queued < window
    }
}

/// The receiver's side.
impl FlowControl {
    /// Sets how much is kept before senders are told to hold, bytes; zero: whatever comes.
    pub fn set_mark(&mut self, bytes: u64) {
        self.mark = (bytes != 0).then_some(bytes);
    }

    /// Whether some peer was told to hold.
    #[inline]
    pub fn is_holding(&self) -> bool {
        self.holding != 0
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
            let busy = self.holding != 0 || self.lenient;
            if busy && self.mark.is_none_or(|mark| self.kept < mark / 2) {
                self.calm_down(peers, out);
            }
        }
    }

    /// Little is kept again: all is as at the start.
    #[cold]
    fn calm_down<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>) {
        self.let_all_go(peers, out, 0);
        peers.all.iter_mut().for_each(|p| p.peer_flow.leave = 0);
        self.lenient = false;
    }

    /// Tells a peer to hold, unless the program may need its next message.
    #[cold]
    fn rein_in<B: Memory>(
        &mut self,
        peers: &mut Peers,
        requests: &Requests<B>,
        out: &mut Outbox<B>,
        from: Peer,
    ) {
        let peer = &mut peers[from];
        if peer.peer_flow.holding || self.kept < peer.peer_flow.leave || peer.is_self() {
            return;
        }
        if is_wanted(requests, from) {
            peer.peer_flow.leave = self.kept + self.portion();
            self.lenient = true;
            return;
        }
        peer.peer_flow.holding = true;
        self.holding += 1;
        out.counters.hit(Counter::HoldsGiven);
        out.bare(from, Header::bare(Kind::Hold));
    }

    /// The program waits for something and nothing comes: every peer may send a further portion.
    fn let_through<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>) {
        self.let_all_go(peers, out, self.kept + self.portion());
    }

    /// A receive was posted, or a probe found nothing: whoever might send what is wanted goes on.
    #[inline]
    pub(super) fn need<B>(
        &mut self,
        peers: &mut Peers,
        out: &mut Outbox<B>,
        want: Pattern,
        from: Option<Peer>,
    ) {
        if self.holding != 0 && is_p2p(want.context) {
            let leave = self.kept + self.portion();
            match from {
                Some(p) => self.let_go_on(peers, out, p, leave),
                None => self.let_all_go(peers, out, leave),
            }
        }
    }

    #[cold]
    fn let_all_go<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>, leave: u64) {
        for p in 0..peers.all.len() {
            self.let_go_on(peers, out, Peer(p as u32), leave);
        }
    }

    #[cold]
    fn let_go_on<B>(&mut self, peers: &mut Peers, out: &mut Outbox<B>, to: Peer, leave: u64) {
        let peer_flow = &mut peers[to].peer_flow;
        if std::mem::replace(&mut peer_flow.holding, false) {
            peer_flow.leave = leave;
            self.lenient = true;
            self.holding -= 1;
            out.bare(to, Header::bare(Kind::Go));
        }
    }

    /// The peer has left in peace, or is gone: it need not be told anything.
    pub(super) fn on_left(&mut self, peers: &mut Peers, peer: Peer) {
        peers[peer].end.left = true;
        let peer_flow = &mut peers[peer].peer_flow;
        self.holding -= std::mem::replace(&mut peer_flow.holding, false) as usize;
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

/// The sender's side.
impl FlowControl {
    /// Whether so much was sent without a look at what comes that one is due. Asking counts as looking.
    #[inline]
    pub fn owes_a_look(&mut self) -> bool {
        let due = self.unlooked > WINDOW;
        if due {
            self.unlooked = 0;
        }
        due
    }

    /// Whether messages are kept back.
    fn keeps_back(&self, peers: &Peers) -> bool {
        let mut stalled = self.stalled.iter();
        stalled.any(|&p| !peers[p].peer_flow.backlog.is_empty())
    }

    /// Whether [`Machine::release_held`] may have something to do.
    #[inline]
    pub fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// Whether a message must wait until others have gone.
    pub(super) fn must_wait(&self, peers: &Peers, to: Peer, env: &Envelope) -> bool {
        let peer = &peers[to];
        is_p2p(env.context) && !peer.peer_flow.is_free(self.window()) && !peer.is_self()
    }

    /// The peer told us to hold, or to go on.
    pub(super) fn on_peer_flow(
        &mut self,
        peers: &mut Peers,
        from: Peer,
        held: bool,
    ) -> Result<(), String> {
        peers[from].peer_flow.held = held;
        self.stall(peers, from);
        Ok(())
    }

    /// A message waits in the path's queue.
    pub(super) fn queued(&mut self, peers: &mut Peers, to: Peer, len: u64) {
        let window = self.window();
        let peer_flow = &mut peers[to].peer_flow;
        peer_flow.queued += weight(len);
        if peer_flow.queued >= window {
            self.stall(peers, to);
        }
    }

    /// From now on every message to this peer asks whether it must wait.
    fn stall(&mut self, peers: &mut Peers, to: Peer) {
        let peer = &mut peers[to];
        if !std::mem::replace(&mut peer.peer_flow.stalled, true) {
            self.stalled.push(to);
        }
        peer.set_plain();
    }

    /// The peer is gone: nothing waits for it any more.
    pub(super) fn forget(&mut self, peers: &mut Peers, peer: Peer) {
        self.on_left(peers, peer);
        let peer_flow = &mut peers[peer].peer_flow;
        peer_flow.backlog.clear();
        (peer_flow.held, peer_flow.queued) = (false, 0);
    }
}

/// Messages that are kept back, and go.
impl<B: Memory> Machine<B> {
    /// Keeps a message back.
    pub(super) fn keep_back(&mut self, to: Peer, env: Envelope, mode: Mode, buf: &B) -> ReqKey {
        let key = self.requests.insert(State::Held, buf, Some(to), env);
        self.peers[to].peer_flow.backlog.push_back((key, mode));
        self.out.counters.hit(Counter::SendsHeld);
        self.flow_control.stall(&mut self.peers, to);
        key
    }

    /// Sends what may go of the messages that were kept back; whether any did. The owner looks for frames between two calls.
    #[cold]
    pub fn release_held(&mut self) -> bool {
        let (mut any, window) = (false, self.flow_control.window());
        let mut stalled = std::mem::take(&mut self.flow_control.stalled);
        stalled.retain(|&to| {
            any |= self.release_to(to, window);
            let peer = &mut self.peers[to];
            peer.peer_flow.stalled = !peer.peer_flow.is_free(window);
            peer.set_plain();
            peer.peer_flow.stalled
        });
        self.flow_control.stalled = stalled;
        any
    }

    fn release_to(&mut self, to: Peer, window: u64) -> bool {
        let mut any = false;
        while self.peers[to].peer_flow.may_go(window) {
            let Some((key, mode)) = self.peers[to].peer_flow.backlog.pop_front() else {
                break;
            };
            let req = self.requests.get(key).filter(|r| r.state == State::Held);
            if let Some((env, buf)) = req.map(|r| (r.env, r.buf.clone())) {
                self.launch(key, to, env, mode, &buf);
                any = true;
            }
        }
        any
    }

    /// A receive was posted, or a probe found nothing: whoever might send what is wanted goes on.
    #[inline]
    pub(super) fn need(&mut self, want: Pattern, from: Option<Peer>) {
        let flow_control = &mut self.flow_control;
        flow_control.need(&mut self.peers, &mut self.out, want, from);
    }

    /// Whether messages are kept back.
    pub fn keeps_back(&self) -> bool {
        self.flow_control.keeps_back(&self.peers)
    }

    /// The program waits for something and nothing comes: every peer may send a further portion.
    pub fn let_through(&mut self) {
        let flow_control = &mut self.flow_control;
        flow_control.let_through(&mut self.peers, &mut self.out);
    }
}
