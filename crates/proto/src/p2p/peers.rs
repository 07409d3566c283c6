//! State of the point-to-point protocols for each peer: which protocol applies when, its
//! announcements, and deferred messages. The state of one topic is a value of its own that other
//! topics do not access.

use super::announce::{OurReceives, TheirReceives};
use super::deferred::Deferred;
use super::flow_control::{Backlog, SendLimits, is_p2p};
use super::table::Choice;
use crate::endpoint;
use crate::matching::Envelope;
use kw_base::Peer;
use kw_base::counters::Way;
use std::collections::VecDeque;

/// State of the point-to-point protocols for one peer.
#[derive(Debug)]
pub struct PeerMessages {
    pub(super) choice: Choice,
    /// The receives that it has announced to us.
    pub(super) theirs: TheirReceives,
    /// The receives that we have announced to it.
    pub(super) ours: OurReceives,
    /// Messages to it that are kept back.
    pub(super) backlog: Backlog,
    /// The send limits that it was given.
    pub(super) limits: SendLimits,
    /// Messages of collectives that wait for their announcement, and those behind them, oldest
    /// first.
    pub(super) deferred: VecDeque<Deferred>,
    /// The path refused to fetch once: never again for this peer.
    pub(super) get_refused: bool,
    /// A path to it is open, and no message must wait before it may go there.
    plain: bool,
    /// Messages of the program carry their type signature (KW_CHECK): none is plain, and no receive
    /// of the program is announced.
    pub(crate) checks: bool,
}

impl PeerMessages {
    /// The state before the first message, with this choice for now.
    pub fn new(choice: Choice, checks: bool) -> PeerMessages {
        PeerMessages {
            choice,
            theirs: TheirReceives::new(choice.answers_offers()),
            ours: OurReceives::default(),
            backlog: Backlog::default(),
            limits: SendLimits::default(),
            deferred: VecDeque::new(),
            get_refused: false,
            plain: false,
            checks,
        }
    }
}

/// One peer.
pub type PeerState = endpoint::PeerState<PeerMessages>;

impl PeerState {
    /// Whether a path was chosen and messages need not wait.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.messages.plain
    }

    /// Whether no receive in this context is announced: the message must carry its type signature,
    /// and a write into an announced receive has no field for that.
    pub(super) fn keeps_quiet(&self, context: u32) -> bool {
        self.messages.checks && is_p2p(context)
    }

    /// Whether a standard send of `len` bytes is a plain eager frame: the owner may then hand
    /// header and payload to the path directly, and report it with [`super::Sender::sent_eager`].
    #[inline(always)]
    pub fn is_plain_eager(&self, env: Envelope, len: u64) -> bool {
        let known = &self.messages;
        known.plain && len <= known.choice.eager_max && known.theirs.is_unasked(env)
    }

    /// Whether a message of `len` bytes comes from it without any action of this rank: eagerly, and
    /// over a path that keeps it meanwhile (datagrams have to be acknowledged).
    #[inline]
    pub fn sends_eagerly(&self, len: u64) -> bool {
        let keeps = matches!(self.way, Way::Shm | Way::Tcp);
        keeps && len <= self.messages.choice.eager_max
    }

    /// Whether it is worth polling the peer's frames before this message: it is long, and the
    /// announcement of its receive may be there.
    pub fn may_be_asked(&self, env: Envelope, len: u64) -> bool {
        let choice = &self.messages.choice;
        let long = len > choice.eager_max && choice.announces();
        self.is_open() && long && self.messages.theirs.is_unasked(env)
    }

    /// Decides again whether messages may go directly to the path.
    pub fn set_plain(&mut self) {
        let known = &self.messages;
        let free = !known.backlog.is_stalled() && known.deferred.is_empty();
        let free = free || self.is_self();
        self.messages.plain = self.is_open() && free && !self.messages.checks;
    }
}

/// All peers of one rank.
pub type Peers = endpoint::Peers<PeerMessages>;

impl Peers {
    /// The crossing points for one peer.
    pub fn choice(&self, peer: Peer) -> Choice {
        self[peer].messages.choice
    }

    /// The peers to which messages are deferred.
    pub(super) fn deferred_from(&self) -> Vec<Peer> {
        let some = self.iter().filter(|(_, p)| !p.messages.deferred.is_empty());
        some.map(|(peer, _)| peer).collect()
    }

    /// The path of a peer is known now: sets what carries messages to it, and its crossing points.
    pub fn set_choice(&mut self, peer: Peer, way: Way, choice: Choice) {
        self[peer].set_way(way);
        self[peer].set_plain();
        self.move_choice(peer, choice);
    }

    /// Moves the crossing points of a peer whose path is known; active transfers stay as they are.
    pub fn move_choice(&mut self, peer: Peer, choice: Choice) {
        let known = &mut self[peer].messages;
        known.choice = choice;
        known.theirs.remember(choice.answers_offers());
    }
}
