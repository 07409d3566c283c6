//! What this rank knows of the others: how each is reached, what it has announced, whether it has
//! left. What belongs to one matter is a value of that matter's own, which nothing else looks into.

use super::announce::{OurReceives, TheirReceives};
use super::departed::End;
use super::flow_control::{Backlog, Told};
use super::table::Choice;
use super::withheld::Withheld;
use crate::matching::Envelope;
use kw_base::Peer;
use kw_base::counters::Way;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// One peer.
#[derive(Debug)]
pub struct PeerState {
    pub(super) choice: Choice,
    /// What carries messages to it.
    pub(super) way: Way,
    /// The receives that it has announced to us.
    pub(super) theirs: TheirReceives,
    /// The receives that we have announced to it.
    pub(super) ours: OurReceives,
    /// Messages to it that are kept back.
    pub(super) backlog: Backlog,
    /// What we told it of how much it may send.
    pub(super) told: Told,
    /// Messages of collectives that wait for their announcement, and those behind them, oldest
    /// first.
    pub(super) withheld: VecDeque<Withheld>,
    /// The path refused to fetch once: never again for this peer.
    pub(super) get_refused: bool,
    pub(super) gone: Option<String>,
    /// Whether it has called MPI_Finalize.
    pub(super) end: End,
    /// A path was chosen, and it is still there.
    open: bool,
    /// So it is, and no message must wait before it may go there.
    plain: bool,
}

impl PeerState {
    fn new(choice: Choice) -> PeerState {
        PeerState {
            choice,
            way: Way::default(),
            theirs: TheirReceives::new(choice.answers_offers()),
            ours: OurReceives::default(),
            backlog: Backlog::default(),
            told: Told::default(),
            withheld: VecDeque::new(),
            get_refused: false,
            gone: None,
            end: End::default(),
            open: false,
            plain: false,
        }
    }

    /// Whether it is this rank.
    pub fn is_self(&self) -> bool {
        self.way == Way::Own
    }

    /// Whether a path was chosen and nothing is in the way of messages.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether a standard send of `len` bytes is a plain eager frame: the owner may then hand
    /// header and payload to the path directly, and report it with [`super::Sender::sent_eager`].
    #[inline(always)]
    pub fn is_plain_eager(&self, env: Envelope, len: u64) -> bool {
        self.plain && len <= self.choice.eager_max && self.theirs.is_unasked(env)
    }

    /// Whether a message of `len` bytes comes from it without this rank doing anything for it:
    /// eagerly, and over what keeps it meanwhile (datagrams have to be acknowledged).
    #[inline]
    pub fn sends_eagerly(&self, len: u64) -> bool {
        let keeps = matches!(self.way, Way::Shm | Way::Tcp);
        keeps && len <= self.choice.eager_max
    }

    /// Whether it is worth looking at what the peer has sent before this message: it is long, and
    /// the announcement of its receive may lie there.
    pub fn may_be_asked(&self, env: Envelope, len: u64) -> bool {
        let long = len > self.choice.eager_max && self.choice.announces();
        self.open && long && self.theirs.is_unasked(env)
    }

    /// Decides anew whether messages may go straight to the path.
    pub fn set_plain(&mut self) {
        let free = !self.backlog.is_stalled() && self.withheld.is_empty();
        self.plain = self.open && (free || self.is_self());
    }

    /// A path is known, or is no more.
    pub fn set_open(&mut self, open: bool) {
        self.open = open;
        self.set_plain();
    }
}

/// All peers of one rank.
#[derive(Debug)]
pub struct Peers {
    pub(super) all: Vec<PeerState>,
    /// This rank is in MPI_Finalize.
    pub(super) leaving: bool,
}

impl Peers {
    /// So many, all with the same choice for now.
    pub(super) fn new(count: usize, choice: Choice) -> Peers {
        Peers {
            all: (0..count).map(|_| PeerState::new(choice)).collect(),
            leaving: false,
        }
    }

    /// The crossing points for one peer.
    pub fn choice(&self, peer: Peer) -> Choice {
        self[peer].choice
    }

    /// Whom messages are withheld from.
    pub(super) fn withheld_from(&self) -> Vec<Peer> {
        let all = self.all.iter().zip(0..);
        let some = all.filter(|(peer, _)| !peer.withheld.is_empty());
        some.map(|(_, number)| Peer(number)).collect()
    }

    /// The path of a peer is known now: sets what carries messages to it, and its crossing points.
    pub fn set_choice(&mut self, peer: Peer, way: Way, choice: Choice) {
        self[peer].way = way;
        self[peer].set_open(true);
        self.move_choice(peer, choice);
    }

    /// Moves the crossing points of a peer whose path is known; what is under way stays as it is.
    pub fn move_choice(&mut self, peer: Peer, choice: Choice) {
        let peer = &mut self[peer];
        peer.choice = choice;
        peer.theirs.remember(choice.answers_offers());
    }

    /// A peer cannot be reached any more.
    pub(super) fn set_gone(&mut self, peer: Peer, why: &str) {
        self[peer].gone = Some(why.to_string());
        self[peer].set_open(false);
    }
}

impl Index<Peer> for Peers {
    type Output = PeerState;
    #[inline(always)]
    fn index(&self, peer: Peer) -> &PeerState {
        &self.all[peer.idx()]
    }
}

impl IndexMut<Peer> for Peers {
    #[inline(always)]
    fn index_mut(&mut self, peer: Peer) -> &mut PeerState {
        &mut self.all[peer.idx()]
    }
}
