//! The ranks of an open file, and how they agree over the file's own communicator.

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
    /// The ranks, for communication.
    pub fn with<'a>(&'a self, mpi: &'a Mpi) -> Talk<'a> {
        Talk { mpi, ranks: self }
    }
}

/// The ranks of an open file, for communication.
#[derive(Clone, Copy, Debug)]
pub struct Talk<'a> {
    mpi: &'a Mpi,
    ranks: &'a Ranks,
}

/// Bytes of a fault's code.
const CODE: usize = 4;

/// The code of a fault; 0 for none.
pub fn code_of<T>(mine: &Res<T>) -> i32 {
    mine.as_ref().err().map_or(0, |fault| fault.code.max(1))
}

/// Exchanges faults and records among the ranks. If a rank has a fault, all return the fault of the
/// first such rank. Otherwise returns the records of all, in the order of ranks.
pub fn all_tell<T>(members: &Members<'_>, mine: Res<T>, record: &[u8]) -> Res<(T, Vec<u8>)> {
    let (mine, records, []) = all_tell_and(members, mine, record, |_| Ok([]))?;
    Ok((mine, records))
}

/// The same with additional bytes, which rank 0 makes from the records if no rank has a fault.
pub fn all_tell_and<T, const N: usize>(
    members: &Members<'_>,
    mine: Res<T>,
    record: &[u8],
    make: impl FnOnce(&[u8]) -> Res<[u8; N]>,
) -> Res<(T, Vec<u8>, [u8; N])> {
    let len = CODE + record.len();
    let own = [&code_of(&mine).to_le_bytes()[..], record].concat();
    let (all, made) = members.allgather_and(&own, |all| match first_fault(all, len) {
        None => make(&records_of(all, len)),
        Some(_) => Ok([0; N]),
    })?;
    match first_fault(&all, len) {
        None => Ok((mine?, records_of(&all, len), made)),
        Some((rank, code)) => Err(fault_of(members, mine, rank, code)?),
    }
}

/// Continues only if the codes of all ranks are 0; otherwise all return the fault of the first rank
/// that has one.
pub fn none_of<T>(members: &Members<'_>, mine: Res<T>, codes: &[u8]) -> Res<T> {
    match first_fault(codes, CODE) {
        None => mine,
        Some((rank, code)) => Err(fault_of(members, mine, rank, code)?),
    }
}

fn records_of(all: &[u8], len: usize) -> Vec<u8> {
    let records = all.chunks_exact(len).map(|record| &record[CODE..]);
    records.collect::<Vec<_>>().concat()
}

/// The first rank that has a fault, and its code.
fn first_fault(all: &[u8], len: usize) -> Option<(u32, i32)> {
    let codes = all
        .chunks_exact(len)
        .map(|record| i32::from_le_bytes(record[..CODE].try_into().expect("four bytes")));
    (0..).zip(codes).find(|&(_, code)| code != 0)
}

/// The fault of this rank, as all ranks report it.
fn fault_of<T>(members: &Members<'_>, mine: Res<T>, rank: u32, code: i32) -> Res<Box<Fault>> {
    let text = mine.as_ref().err().map_or("", |fault| &fault.text);
    let text = members.led_by(rank).hear_text(text)?;
    Ok(match mine {
        Err(fault) if rank == members.rank => fault,
        _ => Fault::of_code(code, text),
    })
}

/// Continues only if rank 0 does: otherwise the others return its fault.
pub fn as_first<T>(members: &Members<'_>, mine: Res<T>) -> Res<T> {
    let mut code = code_of(&mine).to_le_bytes();
    members.bcast(&mut code)?;
    match i32::from_le_bytes(code) {
        0 => mine,
        code => Err(fault_of(members, mine, 0, code)?),
    }
}

/// The fault that ranks give different values of an argument.
pub fn differ<T>(
    class: Class,
    what: &str,
    other: usize,
    (value, rank): (impl std::fmt::Display, u32),
) -> Res<T> {
    let text = format!(
        "{what} must be the same on all ranks, but ranks 0 and {other} differ (it is {value} on rank {rank})"
    );
    Err(Fault::new(class, text))
}

/// Words as bytes of a message.
pub fn bytes_of<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The first record whose bytes differ from rank 0's.
pub fn other_than_first(records: &[u8], len: usize) -> Option<usize> {
    let first = &records[..len];
    records.chunks_exact(len).position(|other| other != first)
}

/// A pending send or receive.
#[derive(Debug)]
pub enum Pending {
    /// It has ended.
    Done,
    /// It is pending; the peer that ends it.
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

    /// Continues only if all ranks do: if one has a fault, all return the fault of the first such
    /// rank.
    pub fn all_or_none<T>(&self, mine: Res<T>) -> Res<T> {
        Ok(all_tell(&self.members(), mine, &[])?.0)
    }

    /// Checks that all ranks give the same `value` of an argument: otherwise returns a fault on
    /// all.
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
            Some(other) => differ(class, what, other, (value, self.ranks.rank)),
        }
    }

    /// Waits until all ranks have called this.
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
