//! Buffers attached for buffered sends (MPI 5.0, 3.6), and the messages in them.
//!
//! A buffered message is copied into memory of our own, and its space is deducted from the attached
//! buffer: so the attached buffer never fragments, and its size is the limit that the user chose. A
//! message that left at once takes nothing.

use crate::error::{Fault, Res, fail};
use crate::handle::{CommH, SessionH};
use crate::request::{Flight, Outgoing, fault_of};
use kw_engine::{Engine, ReqId, SendMode, Started};
use kw_sys::buf::BUFFER_AUTOMATIC;
use std::collections::VecDeque;

/// Space that a message takes in an attached buffer beyond its data; at most MPI_BSEND_OVERHEAD
/// (512).
const OVERHEAD: u64 = 64;

/// Owner of an attached buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The process (MPI_Buffer_attach).
    Process,
    /// A communicator.
    Comm(CommH),
    /// A session.
    Session(SessionH),
}

#[derive(Debug)]
struct Message {
    serial: u64,
    id: ReqId,
    comm: CommH,
    cost: u64,
}

#[derive(Debug)]
struct Attached {
    owner: Owner,
    addr: usize,
    size: u64,
    used: u64,
    serial: u64,
    messages: VecDeque<Message>,
}

impl Attached {
    fn automatic(&self) -> bool {
        self.addr == BUFFER_AUTOMATIC
    }

    fn has_room(&self, cost: u64) -> bool {
        self.automatic() || self.used + cost <= self.size
    }

    /// Drops the messages that have left; returns the first failure.
    fn sweep(&mut self, engine: &mut Engine) -> Option<Box<Fault>> {
        let mut lost = None;
        let used = &mut self.used;
        self.messages.retain(|m| {
            if !engine.messages.requests().is_done(m.id) {
                return true;
            }
            *used -= m.cost;
            let flight = Flight {
                id: m.id,
                comm: m.comm,
                from: None,
                receives: false,
            };
            let failure = engine.requests().take(m.id).and_then(|o| o.failure);
            if lost.is_none() {
                lost = fault_of(&flight, failure);
            }
            false
        });
        lost
    }
}

/// The attached buffers of a process.
#[derive(Debug, Default)]
pub struct Buffers {
    attached: Vec<Attached>,
    /// Whether messages have the types of their data, which are compared with those of the receive
    /// (KW_CHECK).
    pub types: bool,
}

impl Buffers {
    fn find(&mut self, owner: Owner) -> Option<&mut Attached> {
        self.attached.iter_mut().find(|a| a.owner == owner)
    }

    /// The buffer of the communicator, else of the session it was made from, else of the process.
    fn index_for(&self, comm: CommH, session: Option<SessionH>) -> Option<usize> {
        let at = |owner| self.attached.iter().position(|a| a.owner == owner);
        let of_session = || session.and_then(|s| at(Owner::Session(s)));
        at(Owner::Comm(comm))
            .or_else(of_session)
            .or_else(|| at(Owner::Process))
    }

    /// Attaches a buffer.
    pub fn attach(&mut self, owner: Owner, addr: usize, size: i64) -> Res {
        if size < 0 {
            return fail!(Arg: "size is {size}, but must not be negative");
        }
        if addr == 0 && size > 0 {
            return fail!(Buffer: "buffer is a null pointer, but size is {size}");
        }
        if self.find(owner).is_some() {
            return fail!(Buffer: "a buffer is already attached here; detach it first");
        }
        self.attached.push(Attached {
            owner,
            addr,
            size: size as u64,
            used: 0,
            serial: 0,
            messages: VecDeque::new(),
        });
        Ok(())
    }

    /// Removes all buffers (the engine is gone, and with it every message in them).
    pub fn clear(&mut self) {
        self.attached.clear();
    }

    /// Whether a buffer is attached here.
    pub fn is_attached(&self, owner: Owner) -> bool {
        self.attached.iter().any(|a| a.owner == owner)
    }

    /// Removes an (empty) buffer; returns address and size as they were given.
    pub fn detach(&mut self, owner: Owner) -> Option<(usize, u64)> {
        let i = self.attached.iter().position(|a| a.owner == owner)?;
        let a = self.attached.swap_remove(i);
        Some((a.addr, a.size))
    }

    /// Starts a buffered send on `comm`; complete for the caller when this returns.
    pub fn send(
        &mut self,
        engine: &mut Engine,
        comm: CommH,
        session: Option<SessionH>,
        out: &Outgoing,
    ) -> Res {
        let Some(i) = self.index_for(comm, session) else {
            return fail!(Buffer: "no buffer is attached for buffered sends; call MPI_Buffer_attach first");
        };
        let a = &mut self.attached[i];
        let len = out.buf.len();
        let cost = len + OVERHEAD;
        if !a.messages.is_empty() {
            a.sweep(engine);
        }
        if !a.has_room(cost) {
            engine.progress();
            a.sweep(engine);
        }
        if !a.has_room(cost) {
            return fail!(Buffer: "the message needs {cost} bytes of the attached buffer, but only {} of {} are free",
                a.size.saturating_sub(a.used), a.size);
        }
        let copy = out.buf.packed(self.types);
        let copy = Outgoing { buf: copy, ..*out };
        if let Started::Request(id) = copy.start(engine, SendMode::Standard) {
            a.serial += 1;
            a.used += cost;
            a.messages.push_back(Message {
                serial: a.serial,
                id,
                comm,
                cost,
            });
        }
        Ok(())
    }

    /// The number of the last message put into a buffer.
    pub fn last(&mut self, owner: Owner) -> u64 {
        self.find(owner).map_or(0, |a| a.serial)
    }

    /// The first message up to number `upto` that has not left.
    pub fn oldest(&self, owner: Owner, upto: u64, engine: &Engine) -> Option<ReqId> {
        let a = self.attached.iter().find(|a| a.owner == owner)?;
        let waiting = |m: &&Message| m.serial <= upto && !engine.messages.requests().is_done(m.id);
        a.messages.iter().find(waiting).map(|m| m.id)
    }

    /// Drops the messages that have left.
    pub fn sweep(&mut self, owner: Owner, engine: &mut Engine) -> Option<Box<Fault>> {
        self.find(owner).and_then(|a| a.sweep(engine))
    }
}

impl Owner {
    /// The error, for the handler of the communicator that owns the buffer.
    pub fn on(self, fault: Box<Fault>) -> Box<Fault> {
        match self {
            Owner::Comm(comm) => fault.on(comm),
            _ => fault,
        }
    }
}
