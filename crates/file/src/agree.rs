//! The ranks of an open file, and how they agree: over the file's own communicator.

use crate::group::{Group, Way};
use kw_base::{ContextId, Peer};
use kw_engine::{ReqId, SendMode, Started, Want};
use kw_mpi::chapter::{self, Members, Purpose};
use kw_objects::error::{Class, Fault, Res};
use kw_objects::state::Mpi;
use kw_sys::buf::Buf;
use std::sync::Arc;

/// The ranks of an open file.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// The group.
    pub group: Arc<kw_objects::Group>,
    /// This process's rank.
    pub rank: u32,
    /// Context of messages with data.
    pub context: ContextId,
    /// Context of agreements.
    pub making: ContextId,
    /// Context of the shared file pointer.
    pub counting: ContextId,
}

/// Tags of messages with data.
fn tag(way: Way) -> i32 {
    way as i32
}

impl Ranks {
    /// The ranks, to talk with.
    pub fn with<'a>(&'a self, mpi: &'a Mpi) -> Talk<'a> {
        Talk { mpi, ranks: self }
    }
}

/// The ranks of an open file, to talk with.
#[derive(Clone, Copy, Debug)]
pub struct Talk<'a> {
    mpi: &'a Mpi,
    ranks: &'a Ranks,
}

/// A send or a receive that goes on.
#[derive(Debug)]
pub enum Pending {
    /// It has ended.
    Done,
    /// It goes on; the peer that ends it.
    On(ReqId, Peer),
}

impl Talk<'_> {
    /// The members for small collectives.
    pub fn members(&self) -> Members<'_> {
        Members {
            mpi: self.mpi,
            context: self.ranks.making,
            purpose: Purpose::Local,
            group: self.ranks.group.clone(),
            rank: self.ranks.rank,
            names: self.ranks.group.clone(),
        }
    }

    /// Goes on only where all ranks do: where one has a fault, all have the fault of the first
    /// that has.
    pub fn all_or_none<T>(&self, mine: Res<T>) -> Res<T> {
        let code = mine.as_ref().err().map_or(0, |fault| fault.code.max(1));
        let codes = self.members().allgather(&code.to_ne_bytes())?;
        let failed = |c: &[u8]| c != 0i32.to_ne_bytes();
        let Some(first) = codes.chunks_exact(4).position(failed) else {
            return mine;
        };
        let text = mine.as_ref().err().map_or("", |fault| &fault.text);
        let text = self.members().led_by(first as u32).hear_text(text)?;
        let code: [u8; 4] = codes[4 * first..4 * first + 4]
            .try_into()
            .expect("four bytes");
        match mine {
            Err(fault) if first as u32 == self.ranks.rank => Err(fault),
            _ => Err(Fault::of_code(i32::from_ne_bytes(code), text)),
        }
    }

    /// All ranks must give the same `value` of an argument: otherwise a fault for all.
    pub fn same<T: Copy + PartialEq + std::fmt::Display>(
        &self,
        class: Class,
        what: &str,
        value: T,
        bytes: [u8; 8],
    ) -> Res {
        let all = self.members().allgather(&bytes)?;
        match all.chunks_exact(8).position(|other| other != &all[..8]) {
            None => Ok(()),
            Some(other) => {
                let rank = self.ranks.rank;
                let text = format!(
                    "{what} must be the same on all ranks, but ranks 0 and {other} differ (it is {value} on rank {rank})"
                );
                Err(Fault::new(class, text))
            }
        }
    }

    /// Waits until all ranks are here.
    pub fn barrier(&self) -> Res {
        self.members().all(true).map(drop)
    }
}

impl Group for Talk<'_> {
    type Error = Box<Fault>;
    type Pending = Pending;

    fn rank(&self) -> u32 {
        self.ranks.rank
    }

    fn size(&self) -> u32 {
        self.ranks.group.size()
    }

    fn allgather(&self, mine: &[u8]) -> Res<Vec<u8>> {
        self.members().allgather(mine)
    }

    fn send(&self, to: u32, way: Way, buf: &Buf) -> Res<Pending> {
        let peer = self.ranks.group.peer(to);
        let envelope = (self.ranks.context, self.ranks.rank, tag(way));
        let mut guard = self.mpi.lock();
        let (engine, _) = kw_mpi::chapter::running(&mut guard)?;
        match engine
            .messages
            .send(peer, envelope, SendMode::Standard, buf)
        {
            Started::Done => Ok(Pending::Done),
            Started::Request(id) => Ok(Pending::On(id, peer)),
        }
    }

    fn recv(&self, from: u32, way: Way, buf: &Buf) -> Res<Pending> {
        let peer = self.ranks.group.peer(from);
        let want = Want {
            context: self.ranks.context,
            source: Some((from, peer)),
            tag: Some(tag(way)),
        };
        let mut guard = self.mpi.lock();
        let (engine, _) = kw_mpi::chapter::running(&mut guard)?;
        Ok(Pending::On(engine.messages.recv(want, buf.clone()), peer))
    }

    fn wait(&self, pending: Pending) -> Res<u64> {
        match pending {
            Pending::Done => Ok(0),
            Pending::On(id, peer) => Ok(chapter::finish(self.mpi, id, Some(peer))?.len),
        }
    }
}
