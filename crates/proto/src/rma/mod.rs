//! One-sided communication (MPI 5.0, chapter 12) as pure state machines: no messages are sent and
//! no memory is touched here.
//!
//! ```text
//! Epochs   which calls this rank may make now, and which ranks it may access
//! Origin   frames for each target that have not been sent; when they may be
//! Target   frames of each origin that have come; when they may be applied
//! ```
//!
//! Frames of one origin reach one target in order, each once, inside ordinary messages; nothing is
//! assumed about frames of different origins. So an accumulate is never applied twice, and
//! accumulates of one origin are applied in the order of its calls.
//!
//! **Locks.** [`Frame::Lock`] precedes the first operation and is not answered. Frames behind it
//! wait at the target until the lock is granted ([`LockQueue`], in the order of requests).
//! [`Frame::Unlock`] is answered when everything before it has ended: a lock, a put and an unlock
//! are one message and one answer. An origin that does not know yet whether its frames are applied
//! sends at most [`AHEAD`] bytes, so that a target keeps little for others.
//!
//! **Fences.** Every rank counts the operations that it has issued to each target. One reduction
//! tells each target how many of its memory's operations belong to the epoch, and its fence ends
//! when as many have ended. [`Frame::Fence`] carries the number of the epoch: operations of a rank
//! that is ahead wait until the target's fence has ended. So a fence needs no second
//! synchronisation.
//!
//! **Post, start, complete, wait.** Operations wait at the origin until [`Frame::Post`] has come;
//! [`Frame::Complete`] follows them.

mod by_rank;
mod conflicts;
mod epochs;
mod frame;
mod lock;
mod origin;
mod target;

pub use conflicts::{AccessConflict, AccessKind, AccessNote, Accesses, During};
pub use epochs::{Access, Epochs, Misuse};
pub use frame::{Accumulate, Frame, LockMode, Operation, TargetLocation};
pub use lock::LockQueue;
pub use origin::{AHEAD, EpochStart, Origin};
pub use target::{Applied, Exposed, MOST_TYPES, Placed, Target};

/// Tag of messages that carry frames.
pub const FRAMES_TAG: i32 = 0;

/// Tags for data and answers. A put's data travels to the target, a reply to the origin: both
/// origin and target choose tags, so the two kinds must differ.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tags(u32);

impl Tags {
    /// Numbers before the first is used again; its message has ended long before.
    const MOST: u32 = 1 << 29;

    fn next(&mut self) -> i32 {
        self.0 = (self.0 + 1) % Self::MOST;
        (2 * self.0 + 2) as i32
    }

    /// A tag for data that goes to a target.
    pub fn data(&mut self) -> i32 {
        self.next()
    }

    /// A tag for data that a target sends back.
    pub fn reply(&mut self) -> i32 {
        self.next() + 1
    }
}

/// Whether the tag is one of data that goes to a target.
pub fn is_data(tag: i32) -> bool {
    tag >= 2 && tag % 2 == 0
}

/// Whether the tag is one of a reply.
pub fn is_reply(tag: i32) -> bool {
    tag >= 3 && tag % 2 == 1
}
