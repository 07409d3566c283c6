//! The peers of one rank, for all protocols: how each is reached, and whether it has left. A
//! protocol keeps its further knowledge of peers itself.

use super::departed::End;
use kw_base::Peer;
use kw_base::counters::Way;
use std::ops::{Index, IndexMut, Range};

/// One peer. `P`: what the message protocols know of it.
#[derive(Debug)]
pub struct PeerState<P> {
    /// The path to it.
    pub(crate) way: Way,
    /// Why it cannot be reached any more, if so.
    pub(crate) gone: Option<String>,
    /// Whether it has called MPI_Finalize.
    pub(super) end: End,
    /// A path was chosen, and it is still there.
    open: bool,
    /// State of the message protocols.
    pub(crate) messages: P,
}

impl<P> PeerState<P> {
    fn new(messages: P) -> PeerState<P> {
        PeerState {
            way: Way::default(),
            gone: None,
            end: End::default(),
            open: false,
            messages,
        }
    }

    /// Whether it is this rank.
    pub fn is_self(&self) -> bool {
        self.way == Way::Own
    }

    /// Whether a path was chosen, and it is still there.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// A path was chosen: sets what carries messages to the peer.
    pub(crate) fn set_way(&mut self, way: Way) {
        (self.way, self.open) = (way, true);
    }
}

/// All peers of one rank.
#[derive(Debug)]
pub struct Peers<P> {
    all: Vec<PeerState<P>>,
    /// This rank is in MPI_Finalize.
    pub(super) leaving: bool,
}

impl<P> Peers<P> {
    /// A table of `count` peers; `messages` makes the state of the message protocols for each.
    pub fn new(count: usize, messages: impl Fn() -> P) -> Peers<P> {
        let mut peers = Peers {
            all: Vec::new(),
            leaving: false,
        };
        peers.grow(count, messages);
        peers
    }

    /// There are `count` peers from now on: existing peers keep their numbers and their state. A
    /// smaller number than now changes nothing.
    pub fn grow(&mut self, count: usize, messages: impl Fn() -> P) {
        let new = self.all.len()..count;
        self.all.extend(new.map(|_| PeerState::new(messages())));
    }

    /// Forgets the state of these peers: the numbers are given to others.
    pub fn forget(&mut self, which: Range<u32>, messages: impl Fn() -> P) {
        for peer in which {
            self[Peer(peer)] = PeerState::new(messages());
        }
    }

    /// The numbers of all.
    pub fn numbers(&self) -> impl Iterator<Item = Peer> + use<P> {
        (0..self.all.len() as u32).map(Peer)
    }

    /// Each peer with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Peer, &PeerState<P>)> {
        (0..).map(Peer).zip(&self.all)
    }

    /// Each peer with its number, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Peer, &mut PeerState<P>)> {
        (0..).map(Peer).zip(&mut self.all)
    }

    /// A peer cannot be reached any more.
    pub(crate) fn on_gone(&mut self, peer: Peer, why: &str) {
        let peer = &mut self[peer];
        peer.gone = Some(why.to_string());
        peer.open = false;
        peer.end.left = true;
    }
}

impl<P> Index<Peer> for Peers<P> {
    type Output = PeerState<P>;
    #[inline(always)]
    fn index(&self, peer: Peer) -> &PeerState<P> {
        &self.all[peer.idx()]
    }
}

impl<P> IndexMut<Peer> for Peers<P> {
    #[inline(always)]
    fn index_mut(&mut self, peer: Peer) -> &mut PeerState<P> {
        &mut self.all[peer.idx()]
    }
}
