//! The executor: how one rank runs a plan, with any memory and any messages.
//!
//! # The seams
//!
//! - A [`Schedule`](crate::Schedule) names memory in units. A *plan* is a schedule with its
//!   [`Op`]s: [`bind`] resolves each copy, reduction and wait with contiguous memory to bytes
//!   ([`AreaOffset`]: area and first byte; the lengths are in the op). An op that cannot be resolved
//!   stays a [`Step`](crate::Step) of the schedule ([`Op::Step`]).
//! - [`Progress`] is one run of a plan. [`Progress::go_on`] is the interpreter, the only one: it
//!   runs ops until one has to wait, or is a step that only the owner can do (messages, typed
//!   memory, functions of the user), and says so with [`Next`]. It calls nothing but an
//!   [`ExecContext`]: the bytes of the areas, and the flags of the ranks.
//! - [`FlowControl`] is one rank's side of the memory that the ranks of a node share: which
//!   collective's turn it is, which line, slot and part of the ring a collective has
//!   ([`Reservation`]), and when it may touch them. It reads and writes nothing but [`Flags`].
//!
//! The engine's context is the segment of the host. The symbolic checker's is a set of vector
//! clocks, the loom model's are loom's own atomics and cells: both run this code.

mod flow;
#[cfg(all(test, loom))]
mod loom;
mod ops;
mod ring;
#[cfg(test)]
mod tests;

pub use flow::{Capacity, FlowControl, Need, Reservation, Wait};
pub use ops::{AreaOffset, ExecContext, Next, Op, Progress, Resolver, bind};

/// Bits of a flag's word that hold the stage; those above hold the number of the collective.
pub const STAGE_BITS: u32 = 20;
/// No schedule has a later stage.
pub const LAST_STAGE: u32 = (1 << STAGE_BITS) - 1;

/// The flags of the ranks that share memory, as one of them sees them. A flag is a word and a
/// signature beside it; a word only grows: `number << STAGE_BITS | stage` says that its rank has
/// come to that stage of collective `number`.
pub trait Flags {
    /// The word of a member in the line of that collective. A rank that reads it sees everything
    /// its owner wrote before storing it.
    fn word(&mut self, member: u32, number: u64) -> u64;

    /// The word, and the signature beside it, which is that of the call that the word belongs to;
    /// 0: the member gives no signature.
    fn flag(&mut self, member: u32, number: u64) -> (u64, u64) {
        (self.word(member, number), 0)
    }

    /// Raises this rank's own flag.
    fn raise(&mut self, number: u64, stage: u32, signature: u64);
}
