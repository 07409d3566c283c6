//! Groups: ordered sets of processes.

use kw_base::Peer;

/// An ordered set of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    members: Vec<Peer>,
}

impl Group {
    /// A group of these processes, in this order.
    pub fn new(members: Vec<Peer>) -> Group {
        Group { members }
    }

    /// Number of processes.
    #[inline]
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// The process of a rank below `size`.
    #[inline]
    pub fn peer(&self, rank: u32) -> Peer {
        self.members[rank as usize]
    }

    /// The rank of a process, if it is a member.
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        self.members
            .iter()
            .position(|&m| m == peer)
            .map(|r| r as u32)
    }
}
