//! Small integers with names, so that one is never taken for another.

use std::fmt;

/// A process that this process can talk to: a dense index into the engine's peer table.
///
/// Processes `0..n` of the job we were started in are peers `0..n` in the order of MPI_COMM_WORLD.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Peer(pub u32);

impl Peer {
    /// The index as `usize`.
    #[inline]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The context of a communicator: messages match only within one.
///
/// A communicator owns an even id for point-to-point and the odd one above it for its collectives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ContextId(pub u32);

impl ContextId {
    /// The context that the collectives of the same communicator use.
    #[inline]
    pub fn collective(self) -> ContextId {
        ContextId(self.0 | 1)
    }
}
