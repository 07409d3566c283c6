//! Sets of peers that wait for some action.

use kw_base::Peer;

/// Each peer once, in no particular order; whether one is in it is known without a search.
#[derive(Debug, Default)]
pub struct PeerSet {
    peers: Vec<Peer>,
    /// Whether a peer is in `peers`, by its number.
    member: Vec<bool>,
}

impl PeerSet {
    /// Adds a peer. Returns whether it was not there.
    #[inline]
    pub fn insert(&mut self, peer: Peer) -> bool {
        if self.contains(peer) {
            return false;
        }
        if self.member.len() <= peer.idx() {
            self.member.resize(peer.idx() + 1, false);
        }
        self.member[peer.idx()] = true;
        self.peers.push(peer);
        true
    }

    /// Removes a peer. Returns whether it was there.
    #[inline]
    pub fn remove(&mut self, peer: Peer) -> bool {
        let there = self.contains(peer);
        if there {
            self.member[peer.idx()] = false;
            let at = self.peers.iter().position(|&p| p == peer);
            at.map(|at| self.peers.swap_remove(at));
        }
        there
    }

    /// Removes the peer that was added last, if none was removed since.
    #[inline]
    pub fn pop(&mut self) -> Option<Peer> {
        let peer = self.peers.pop()?;
        self.member[peer.idx()] = false;
        Some(peer)
    }

    /// Whether a peer is in it.
    #[inline]
    pub fn contains(&self, peer: Peer) -> bool {
        self.member.get(peer.idx()).is_some_and(|&m| m)
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// The peer at this position; `remove` moves the last one to the position that it frees.
    #[inline]
    pub fn get(&self, at: usize) -> Option<Peer> {
        self.peers.get(at).copied()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Peer> + Clone + '_ {
        self.peers.iter().copied()
    }

    /// Removes all.
    pub fn take(&mut self) -> Vec<Peer> {
        for peer in &self.peers {
            self.member[peer.idx()] = false;
        }
        std::mem::take(&mut self.peers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_does_what_a_set_does(steps in prop::collection::vec((0..3u8, 0..20u32), 0..200)) {
            let (mut ours, mut known) = (PeerSet::default(), BTreeSet::new());
            for (what, peer) in steps {
                match what {
                    0 => assert_eq!(ours.insert(Peer(peer)), known.insert(peer)),
                    1 => assert_eq!(ours.remove(Peer(peer)), known.remove(&peer)),
                    2 if peer == 0 => {
                        let popped = ours.pop().map(|p| p.0);
                        assert_eq!(popped.is_some(), popped.is_some_and(|p| known.remove(&p)));
                    }
                    _ => assert_eq!(ours.contains(Peer(peer)), known.contains(&peer)),
                }
                let mut all: Vec<_> = ours.iter().map(|p| p.0).collect();
                all.sort_unstable();
                assert!(all.iter().eq(&known));
                assert_eq!((ours.len(), ours.is_empty()), (known.len(), known.is_empty()));
            }
            let all = ours.take();
            assert_eq!((all.len(), ours.len()), (known.len(), 0));
            assert!(known.iter().all(|&p| !ours.contains(Peer(p))));
        }
    }
}
