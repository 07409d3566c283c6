//! What this rank knows of the others: how each is reached, what it has announced, whether it has left.

use super::announce::Flow;
use super::departed::End;
use super::flow_control::PeerFlow;
use super::table::Choice;
use super::withheld::Withheld;
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
    pub(super) flow: Flow,
    pub(super) peer_flow: PeerFlow,
    /// Messages of collectives that wait for their announcement, and those behind them, oldest first.
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
            flow: Flow::new(choice.answers_offers()),
            peer_flow: PeerFlow::default(),
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

    /// Whether a path was chosen, and is still there.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Decides anew whether messages may go straight to the path.
    pub fn set_plain(&mut self) {
        let free = !self.peer_flow.stalled() && self.withheld.is_empty();
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

    /// The path of a peer is known now.
    pub(super) fn set_choice(&mut self, peer: Peer, way: Way, choice: Choice) {
        self[peer].way = way;
        self[peer].set_open(true);
        self.move_choice(peer, choice);
    }

    /// Moves the crossing points of a peer whose path is known; what is under way stays as it is.
    pub fn move_choice(&mut self, peer: Peer, choice: Choice) {
        let peer = &mut self[peer];
        peer.choice = choice;
        peer.flow.remember(choice.answers_offers());
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
