//! Collectives as schedules: what one rank sends, receives, copies and combines, and in which
//! order.
//!
//! A [`Schedule`] is a small program. [`Step::Send`] and [`Step::Recv`] start a transfer and go on
//! at once; each takes the next *slot* number (0, 1, ... in the order of the program).
//! [`Step::Await`] stops until one slot has ended, [`Step::Fence`] until all have; the end of the
//! program is a fence. [`Step::Copy`] and [`Step::Reduce`] happen where they stand. All messages of
//! one collective carry the same tag, so the sends from one rank to another must stand in the order
//! in which the other rank receives them; the symbolic checker of the tests (`check.rs`) proves
//! that, and that no step touches memory that is in flight, for every algorithm and process count.
//!
//! Memory is named, never addressed: a [`Slice`] is a range of units in a buffer. The owner of the
//! schedule defines the unit of each buffer: an element of a datatype (so nothing is packed), or a
//! byte of the packed data.
//!
//! # Shm regions: memory that the ranks of a node share
//!
//! If the ranks of a communicator that live on one node have a *shm region*, a schedule can also
//! write and read there. Every rank owns one [`ShmBuffer`] of the shm region for the time of one
//! collective: buffer [`SHM_BUFFERS`]` + r` is the shm buffer of rank `r`, in bytes, or in elements
//! if the collective combines elements. A rank writes only its own shm buffer (or a part of
//! another's that the algorithm has made its own) and announces that with [`Step::Raise`]; others
//! wait for that with [`Step::Watch`] before they touch it. Stages of one rank go up by any steps
//! from 1 within one collective. Messages are not sent from a shm buffer or received there: they
//! may outlast a collective that fails. The checker keeps vector clocks and faults every access
//! that is not ordered by a raise and a watch.
//!
//! The owner of the schedules must guarantee that collectives on one shared-memory region run one
//! after the other at each rank, in the order of the calls, and that a shm buffer is reused only
//! when every rank has ended the collective that used it before. So a schedule needs no barrier at
//! its end. All ranks of the communicator on this node run a schedule with the same [`ShmBuffer`]
//! kind.
//!
//! One algorithm is one file in `algorithms/` with one function `emit(&CallView, &mut Schedule)`, one
//! row in `algorithms/mod.rs`, and rows in `table.txt` that say when it is chosen. Blocking,
//! non-blocking and persistent calls run the same schedules (MPI 5.0, chapter 6).
#![forbid(unsafe_code)]

pub mod algorithms;
mod call_view;
#[cfg(test)]
mod check;
pub mod cost;
mod cut;
pub mod executor;
mod fold;
mod halving;
pub mod inter;
mod levels;
mod neighbors;
mod nodes;
mod sub_comm;
pub mod table;
#[cfg(test)]
mod tests;
mod tree;

pub use call_view::{Blocks, CallView, ELEMENT, ShmSizes};
pub use levels::{Apart, Domain, Levels, Shape};
pub use neighbors::{Edge, Neighbors};
pub use nodes::Nodes;
pub use sub_comm::Chooser;
pub use table::{Coll, Table};

use executor::Need;

/// The user's send buffer (first of the caller's buffers).
pub const SEND: u32 = 0;
/// The user's receive buffer (second of the caller's buffers).
pub const RECV: u32 = 1;
/// Buffers from this number on are shm buffers: `SHM_BUFFERS + r` is the shm buffer of rank `r` of
/// the communicator, a rank of this node.
pub const SHM_BUFFERS: u32 = 1 << 30;
/// Buffers from this number on are the schedule's temporaries.
pub const TEMPS: u32 = 1 << 31;
/// This many bytes of a shm buffer share the cache line of its owner's flag: such short data costs
/// one line, not two.
pub const FLAG_LINE_BYTES: u64 = 48;

/// Units of a shm buffer that come before the first whole line after the stage's; `unit`: bytes of
/// one.
#[inline]
pub fn front(unit: u64) -> u64 {
    FLAG_LINE_BYTES.div_ceil(unit.max(1))
}

/// Whether a buffer is the shm buffer of some rank.
#[inline]
pub fn is_shm_buffer(buf: u32) -> bool {
    (SHM_BUFFERS..TEMPS).contains(&buf)
}

/// A range of units in a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The buffer: one of the caller's (below [`TEMPS`]), or a temporary.
    pub buf: u32,
    /// First unit; may be negative in the v and w forms.
    pub at: i64,
    /// Number of units.
    pub len: u64,
}

impl Slice {
    /// No data: what barriers send.
    pub const NOTHING: Slice = Slice {
        buf: TEMPS - 1,
        at: 0,
        len: 0,
    };

    /// Units `0..len` of a buffer.
    #[inline]
    pub fn whole(buf: u32, len: u64) -> Slice {
        Slice { buf, at: 0, len }
    }

    /// `len` units from the `from`th of this slice on.
    #[inline]
    pub fn part(self, from: u64, len: u64) -> Slice {
        debug_assert!(from + len <= self.len, "part {from}+{len} of {self:?}");
        Slice {
            buf: self.buf,
            at: self.at + from as i64,
            len,
        }
    }

    /// Whether there is no data in it.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// One step of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Starts a send to a rank of the communicator; the slice may not be written until the slot has
    /// ended.
    Send {
        /// Destination.
        to: u32,
        /// The data to send.
        what: Slice,
    },
    /// Starts a receive; the slice may not be touched until the slot has ended.
    Recv {
        /// Source.
        from: u32,
        /// Destination.
        into: Slice,
    },
    /// Copies packed data; the slices do not overlap, their units may differ.
    Copy {
        /// Source.
        from: Slice,
        /// Destination.
        to: Slice,
    },
    /// `right[i] = left[i] op right[i]`: `left` comes from lower ranks than `right` unless the
    /// operation commutes.
    Reduce {
        /// Left operand, not changed.
        left: Slice,
        /// Right operand and result.
        right: Slice,
    },
    /// Announces to the other ranks of the shm region that this rank has come to this stage: its
    /// accesses to shm buffers before are done.
    Raise(u32),
    /// Waits until that rank (of this node) has come to a stage.
    Watch {
        /// The rank to wait for.
        rank: u32,
        /// The stage.
        stage: u32,
    },
    /// Waits until all ranks of the communicator that are on this node have come to a stage.
    WatchAll(u32),
    /// Waits for one slot.
    Await(u32),
    /// Waits for all slots so far.
    Fence,
}

/// Size and unit of a temporary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Temp {
    /// This many bytes of packed data; the unit is a byte.
    Bytes(u64),
    /// This many elements of the reduction's datatype, laid out like the user's.
    Elements(u64),
    /// As many bytes as that slice of a caller's buffer packs to; the unit is the whole slice.
    Packed(Slice),
}

/// The part of the shm region that a schedule uses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum ShmBuffer {
    /// None.
    #[default]
    None,
    /// A short shm buffer ([`ShmSizes::short`] units): there are many, so that a rank can run
    /// several collectives ahead of others.
    Short,
    /// A long shm buffer (up to [`ShmSizes::long`] units), through which long data flows in pieces.
    /// It is a part of a ring that the collectives of a rank take in turns.
    Long,
}

/// The program of one rank.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The steps.
    pub steps: Vec<Step>,
    /// The temporaries, numbered from [`TEMPS`] on.
    pub temps: Vec<Temp>,
    /// Number of sends and receives.
    pub slots: u32,
    /// The part of the shm region that it uses; the same on all ranks of the node.
    pub shm_buffer: ShmBuffer,
    /// Units of a short shm buffer that it may use from the first whole line on; the same on all
    /// ranks of the node.
    pub short: u64,
    /// Units of a long shm buffer that it may use; the same on all ranks of the node.
    pub long: u64,
    /// Messages are best fetched from the sender's memory by the receiver, if it may.
    pub fetched: bool,
}

impl Schedule {
    /// The shared memory of a node that it touches; `unit`: bytes per unit of a shm buffer. `None`:
    /// none.
    pub fn need(&self, unit: u64) -> Option<Need> {
        match self.shm_buffer {
            ShmBuffer::None => None,
            ShmBuffer::Long => Some(Need::Ring(self.long * unit)),
            ShmBuffer::Short if self.touches_lines_only(unit) => Some(Need::Lines),
            ShmBuffer::Short => Some(Need::Slots),
        }
    }

    /// Whether it touches nothing of shm buffers beyond the lines of stages ([`FLAG_LINE_BYTES`]);
    /// `unit`: bytes of a unit of a shm buffer.
    fn touches_lines_only(&self, unit: u64) -> bool {
        let front = front(unit) as i64;
        let beyond =
            |s: &Slice| !s.is_empty() && is_shm_buffer(s.buf) && s.at + s.len as i64 > front;
        !self.steps.iter().any(|step| match step {
            Step::Copy { from: a, to: b } | Step::Reduce { left: a, right: b } => {
                beyond(a) || beyond(b)
            }
            Step::Send { what: a, .. } | Step::Recv { into: a, .. } => beyond(a),
            _ => false,
        })
    }

    /// Makes sure that this many units of data fit on every rank's short shm buffer.
    #[inline]
    pub fn use_short(&mut self, units: u64) {
        self.shm_buffer = ShmBuffer::Short;
        self.short = self.short.max(units);
    }

    /// Starts a send; returns its slot.
    #[inline]
    pub fn send(&mut self, to: u32, what: Slice) -> u32 {
        self.post(Step::Send { to, what })
    }

    /// Starts a receive; returns its slot.
    #[inline]
    pub fn recv(&mut self, from: u32, into: Slice) -> u32 {
        self.post(Step::Recv { from, into })
    }

    /// Starts a send, unless there is nothing to send.
    #[inline]
    pub fn send_some(&mut self, to: u32, what: Slice) {
        if !what.is_empty() {
            self.send(to, what);
        }
    }

    /// Starts a receive, unless there is nothing to receive.
    #[inline]
    pub fn recv_some(&mut self, from: u32, into: Slice) {
        if !into.is_empty() {
            self.recv(from, into);
        }
    }

    /// Exchanges data with another rank, as far as there is any, and waits for everything.
    #[inline]
    pub fn exchange(&mut self, other: u32, out: Slice, into: Slice) {
        self.recv_some(other, into);
        self.send_some(other, out);
        self.fence();
    }

    /// Receives and waits for it.
    #[inline]
    pub fn receive(&mut self, from: u32, into: Slice) {
        let slot = self.recv(from, into);
        self.wait(slot);
    }

    /// Copies, unless there is nothing to copy.
    #[inline]
    pub fn copy(&mut self, from: Slice, to: Slice) {
        if !from.is_empty() || !to.is_empty() {
            self.steps.push(Step::Copy { from, to });
        }
    }

    /// `right = left op right`.
    #[inline]
    pub fn reduce(&mut self, left: Slice, right: Slice) {
        debug_assert_eq!(left.len, right.len);
        if !left.is_empty() {
            self.steps.push(Step::Reduce { left, right });
        }
    }

    /// `into = left op right`, where `into` is none of them: two steps, which are run as one if
    /// data is contiguous.
    #[inline]
    pub fn combine(&mut self, left: Slice, right: Slice, into: Slice) {
        self.copy(right, into);
        self.reduce(left, into);
    }

    /// Combines `n` operands (two at least) into `sum`, which is none of them: `nth(n-1, _) op ...
    /// op nth(0, _)`.
    pub fn fold(&mut self, n: u32, sum: Slice, mut nth: impl FnMut(u32, &mut Schedule) -> Slice) {
        let (right, left) = (nth(0, self), nth(1, self));
        self.combine(left, right, sum);
        for i in 2..n {
            let left = nth(i, self);
            self.reduce(left, sum);
        }
    }

    /// Waits for a slot.
    #[inline]
    pub fn wait(&mut self, slot: u32) {
        self.steps.push(Step::Await(slot));
    }

    /// Announces a stage to the ranks of the shm region.
    #[inline]
    pub fn raise(&mut self, stage: u32) {
        self.steps.push(Step::Raise(stage));
    }

    /// Waits until another rank of the shm region has come to a stage.
    #[inline]
    pub fn watch(&mut self, rank: u32, stage: u32) {
        self.steps.push(Step::Watch { rank, stage });
    }

    /// Waits until all ranks of the shm region have come to a stage.
    #[inline]
    pub fn watch_all(&mut self, stage: u32) {
        self.steps.push(Step::WatchAll(stage));
    }

    /// Waits for everything started so far.
    #[inline]
    pub fn fence(&mut self) {
        self.steps.push(Step::Fence);
    }

    /// A temporary of this many bytes.
    pub fn bytes(&mut self, len: u64) -> Slice {
        self.temp(Temp::Bytes(len), len)
    }

    /// A temporary of this many elements of the reduction's datatype.
    pub fn elements(&mut self, len: u64) -> Slice {
        self.temp(Temp::Elements(len), len)
    }

    /// A temporary that holds the packed data of a slice of a caller's buffer.
    pub fn packed(&mut self, like: Slice) -> Slice {
        self.temp(Temp::Packed(like), 1)
    }

    fn temp(&mut self, temp: Temp, len: u64) -> Slice {
        self.temps.push(temp);
        Slice::whole(TEMPS + self.temps.len() as u32 - 1, len)
    }

    fn post(&mut self, step: Step) -> u32 {
        self.steps.push(step);
        self.slots += 1;
        self.slots - 1
    }
}
