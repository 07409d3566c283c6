//! Small collectives among the members of a group, for creating communicators and agreeing on
//! context ids: blocking, on contexts of their own.
//!
//! [`Members`] are a communicating group; tag and context separate its messages from all others.
//! Its members are identified by their ranks in a group that does not change from call to call, so
//! that a message which runs ahead is never taken for another's. The caller must have released the
//! lock.

mod bridge;
mod compare;
mod route;

pub use bridge::Bridge;
pub use route::{Words, route};

use crate::calls::comm_make::spans;
use kw_base::{ContextId, Peer};
use kw_engine::{Failure, MessageFailure, Outcome, ReqId, SendMode, Started, WaitOn, Want};
use kw_objects::Group;
use kw_objects::comm::Comm;
use kw_objects::error::{Class, Fault, Res, fail};
pub use kw_objects::purpose::Purpose;
use kw_objects::request::explain;
use kw_objects::state::Mpi;
use kw_sys::buf::Buf;
use kw_types::comm::Proposal;
use std::sync::Arc;

/// Number of members, with shared cores, below which the root communicates with each directly. A
/// built-in value.
const FLAT: u32 = 128;

/// Bytes of a broadcast of any length that are sent together with the length.
const SHORT: usize = 56;

/// The FNV-1a hash of some bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    let mix = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Members of a group that talk to each other.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    /// MPI.
    pub mpi: &'a Mpi,
    /// Context of their messages.
    pub context: ContextId,
    /// Purpose.
    pub purpose: Purpose,
    /// Members.
    pub group: Arc<Group>,
    /// This process's rank in `group`.
    pub rank: u32,
    /// The group in which the messages name their senders by rank.
    pub names: Arc<Group>,
}

impl<'a> Members<'a> {
    /// The local group of a communicator.
    pub fn of(mpi: &'a Mpi, comm: &Comm) -> Members<'a> {
        Members {
            mpi,
            context: comm.making(),
            purpose: Purpose::Local,
            group: comm.local.clone(),
            rank: comm.rank,
            names: comm.local.clone(),
        }
    }

    /// Some of the members, this process among them as `rank`.
    pub fn part(&self, group: Arc<Group>, rank: u32) -> Members<'a> {
        Members {
            group,
            rank,
            ..self.clone()
        }
    }

    /// The members, counted from `leader`.
    pub fn led_by(&self, leader: u32) -> Members<'a> {
        let size = self.size();
        let turned = (0..size).map(|r| self.group.peer((r + leader) % size));
        let group = Arc::new(Group::new(turned.collect()));
        self.part(group, (self.rank + size - leader) % size)
    }

    fn size(&self) -> u32 {
        self.group.size()
    }

    /// The name and the peer of a member.
    fn member(&self, rank: u32) -> (u32, Peer) {
        let peer = self.group.peer(rank);
        (self.names.rank_of(peer).unwrap_or(rank), peer)
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Res<Option<ReqId>> {
        let to = self.group.peer(to);
        let mine = self.member(self.rank).0;
        start_send(self.mpi, to, (self.context, self.purpose, mine), bytes)
    }

    fn recv(&self, from: u32, bytes: &mut [u8]) -> Res {
        let what = (self.context, self.purpose);
        recv(self.mpi, self.member(from), what, bytes)
    }

    /// Ranks below which the trees are flat: [`FLAT`] where ranks share cores, since every level of
    /// a tree costs turns of the scheduler there.
    fn flat(&self) -> u32 {
        if spans(self.mpi, &[&self.group]) {
            return 0;
        }
        let guard = self.mpi.lock();
        let shared = guard
            .engine
            .as_ref()
            .is_some_and(|e| e.job.agreed().site().shared);
        if shared { FLAT } else { 0 }
    }

    /// Broadcasts `bytes` of rank 0 to all (a binomial tree, or a flat one).
    pub fn bcast(&self, bytes: &mut [u8]) -> Res {
        let (rank, size) = (self.rank, self.size());
        if size <= self.flat() {
            return self.bcast_flat(bytes);
        }
        let mut mask = 1;
        while mask < size && rank & mask == 0 {
            mask <<= 1;
        }
        if rank != 0 {
            self.recv(rank - mask, bytes)?;
        }
        let mut sent = Vec::new();
        while mask > 1 {
            mask >>= 1;
            if rank + mask < size {
                sent.extend(self.send(rank + mask, bytes)?);
            }
        }
        finish_all(self.mpi, sent)
    }

    fn bcast_flat(&self, bytes: &mut [u8]) -> Res {
        if self.rank != 0 {
            return self.recv(0, bytes);
        }
        let mut sent = Vec::new();
        for to in 1..self.size() {
            sent.extend(self.send(to, bytes)?);
        }
        finish_all(self.mpi, sent)
    }

    fn gather_flat(&self, mine: &[u8]) -> Res<Vec<u8>> {
        if self.rank != 0 {
            let sent = self.send(0, mine)?;
            finish_all(self.mpi, sent.into_iter().collect())?;
            return Ok(Vec::new());
        }
        let each = mine.len();
        let mut got = mine.to_vec();
        got.resize(each * self.size() as usize, 0);
        // also without bytes: then this is a barrier
        for from in 1..self.size() {
            self.recv(from, &mut got[each * from as usize..][..each])?;
        }
        Ok(got)
    }

    /// The bytes of all members in the order of ranks at rank 0; nothing elsewhere. All give the
    /// same number of bytes.
    pub fn gather(&self, mine: &[u8]) -> Res<Vec<u8>> {
        let (rank, size, each) = (self.rank, self.size(), mine.len());
        if size <= self.flat() {
            return self.gather_flat(mine);
        }
        let mut got = mine.to_vec();
        let mut mask = 1;
        while mask < size {
            if rank & mask != 0 {
                let sent = self.send(rank - mask, &got)?;
                finish_all(self.mpi, sent.into_iter().collect())?;
                return Ok(Vec::new());
            }
            if rank + mask < size {
                let members = mask.min(size - rank - mask) as usize;
                let old = got.len();
                got.resize(old + members * each, 0);
                self.recv(rank + mask, &mut got[old..])?;
            }
            mask <<= 1;
        }
        Ok(got)
    }

    /// The bytes of all members, in the order of ranks, everywhere.
    pub fn allgather(&self, mine: &[u8]) -> Res<Vec<u8>> {
        let mut all = self.gather(mine)?;
        all.resize(mine.len() * self.size() as usize, 0);
        self.bcast(&mut all)?;
        Ok(all)
    }

    /// [`Members::allgather`] with additional bytes that rank 0 makes from the data of all.
    pub fn allgather_and<const N: usize>(
        &self,
        mine: &[u8],
        make: impl FnOnce(&[u8]) -> Res<[u8; N]>,
    ) -> Res<(Vec<u8>, [u8; N])> {
        let mut all = self.gather(mine)?;
        let mut made = match self.rank {
            0 => make(&all)?,
            _ => [0; N],
        };
        let len = mine.len() * self.size() as usize;
        all.resize(len, 0);
        all.extend(made);
        self.bcast(&mut all)?;
        made.copy_from_slice(&all.split_off(len));
        Ok((all, made))
    }

    /// Whether all members give yes.
    pub fn all(&self, yes: bool) -> Res<bool> {
        let votes = self.gather(&[yes as u8])?;
        let mut verdict = [votes.iter().all(|&v| v == 1) as u8];
        self.bcast(&mut verdict)?;
        Ok(verdict[0] == 1)
    }

    /// Checks that all members give the same `what` of an info: otherwise returns an error for all
    /// of them, which names two that differ.
    pub fn alike(&self, what: &str, mine: &str) -> Res {
        self.alike_or(Class::InfoValue, what, mine)
    }

    /// The same check, with an error of this class.
    pub fn alike_or(&self, class: Class, what: &str, mine: &str) -> Res {
        let own = hash(mine.as_bytes()).to_ne_bytes();
        let all = self.gather(&own)?;
        let other = all.chunks_exact(8).position(|theirs| theirs != own);
        let mut other = (other.unwrap_or(0) as u32).to_ne_bytes();
        self.bcast(&mut other)?;
        let other = match self.size() > 1 {
            true => u32::from_ne_bytes(other),
            false => 0,
        };
        if other == 0 {
            return Ok(());
        }
        let first = self.hear_text(mine)?;
        let theirs = self.led_by(other).hear_text(mine)?;
        let named = |text: &str| match text.is_empty() {
            true => "not given".to_string(),
            false => format!("'{text}'"),
        };
        fail(
            class,
            format!(
                "{what} is {} on rank 0 and {} on rank {other}, but must be the same on all ranks",
                named(&first),
                named(&theirs)
            ),
        )
    }

    /// The value of rank 0.
    pub fn hear_text(&self, mine: &str) -> Res<String> {
        let text = self.bcast_any(mine.as_bytes().to_vec())?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Broadcasts the bytes of rank 0, of any length.
    pub fn bcast_any(&self, mine: Vec<u8>) -> Res<Vec<u8>> {
        // Most are short, and arrive with the length.
        let mut head = [0; 8 + SHORT];
        let first = mine.len().min(SHORT);
        head[..8].copy_from_slice(&(mine.len() as u64).to_ne_bytes());
        head[8..][..first].copy_from_slice(&mine[..first]);
        self.bcast(&mut head)?;
        let len = u64::from_ne_bytes(*head.first_chunk().unwrap_or(&[0; 8])) as usize;
        let mut all = head[8..][..len.min(SHORT)].to_vec();
        if len > SHORT {
            all.extend(mine.get(SHORT..).unwrap_or_default());
            all.resize(len, 0);
            self.bcast(&mut all[SHORT..])?;
        }
        Ok(all)
    }

    /// A word with which this process could lead a new communicator, to be sent with other data.
    pub fn offer(&self) -> u32 {
        match spans(self.mpi, &[&self.group]) {
            // Processes of several jobs have to agree.
            true => u32::MAX,
            false => propose(self.mpi),
        }
    }

    /// The context id of a new communicator of this group, every member of which has made an offer
    /// and knows the leader's.
    pub fn accept(&self, own: u32, leaders: u32) -> Res<ContextId> {
        let theirs = Proposal::from_bits(leaders);
        let stands = leaders != u32::MAX && theirs.fresh;
        if own != u32::MAX && (self.rank > 0 || !stands) {
            take_back(self.mpi, Proposal::from_bits(own));
        }
        if stands {
            return Ok(theirs.id);
        }
        self.agree()
    }

    /// The context id of a new communicator of this group; see `kw_types::comm`.
    pub fn agree(&self) -> Res<ContextId> {
        if spans(self.mpi, &[&self.group]) {
            let most = |wanted| self.most(wanted);
            return agree_among_jobs(self.mpi, self.context, most, |yes| self.all(yes));
        }
        loop {
            let mut word = [0; 4];
            if self.rank == 0 {
                word = propose(self.mpi).to_ne_bytes();
            }
            self.bcast(&mut word)?;
            let proposal = offered(u32::from_ne_bytes(word))?;
            if proposal.fresh {
                return Ok(proposal.id);
            }
            let free = self.mpi.lock().above.comms.context_is_free(proposal.id);
            if self.all(free)? {
                return Ok(proposal.id);
            }
            if self.rank == 0 {
                take_back(self.mpi, proposal);
            }
        }
    }
}

impl Members<'_> {
    /// The maximum over the members.
    pub fn most(&self, mine: u32) -> Res<u32> {
        let mut word = self.most_at_leader(mine)?.to_ne_bytes();
        self.bcast(&mut word)?;
        Ok(u32::from_ne_bytes(word))
    }

    /// The same, at rank 0 alone.
    fn most_at_leader(&self, mine: u32) -> Res<u32> {
        let all = self.gather(&mine.to_ne_bytes())?;
        let all = all.as_chunks().0.iter();
        let most = all.map(|word| u32::from_ne_bytes(*word)).max();
        Ok(most.unwrap_or(mine))
    }
}

/// A context id on which processes of several jobs agree (see `kw_types::comm::SpanningPool`), by a
/// maximum and an exchange over all members.
pub fn agree_among_jobs(
    mpi: &Mpi,
    parent: ContextId,
    mut most: impl FnMut(u32) -> Res<u32>,
    mut all: impl FnMut(bool) -> Res<bool>,
) -> Res<ContextId> {
    for attempt in 0.. {
        let wanted = mpi.lock().above.comms.spanning.wanted(parent.0, attempt);
        let candidate = ContextId(most(wanted.map_or(u32::MAX, |id| id.0))?);
        if candidate.0 == u32::MAX {
            break;
        }
        let claimed = mpi.lock().above.comms.spanning.claim(candidate);
        if all(claimed)? {
            return Ok(candidate);
        }
        if claimed {
            mpi.lock().above.comms.spanning.release(candidate);
        }
    }
    fail!(Other: "every context id is in use; free communicators that are no longer needed")
}

/// A proposal as a word; all ones for none.
fn propose(mpi: &Mpi) -> u32 {
    let mut guard = mpi.lock();
    let made = guard
        .above
        .comms
        .contexts
        .as_mut()
        .and_then(|p| p.propose());
    made.map_or(u32::MAX, Proposal::to_bits)
}

fn offered(word: u32) -> Res<Proposal> {
    if word == u32::MAX {
        return fail!(Other: "every context id is in use; free communicators that are no longer needed");
    }
    Ok(Proposal::from_bits(word))
}

fn take_back(mpi: &Mpi, proposal: Proposal) {
    if let Some(pool) = &mut mpi.lock().above.comms.contexts {
        pool.take_back(proposal);
    }
}

/// Starts a send of a copy of these bytes; the buffer lives as long as the send.
pub fn start_send(
    mpi: &Mpi,
    to: Peer,
    (context, purpose, source): (ContextId, Purpose, u32),
    bytes: &[u8],
) -> Res<Option<ReqId>> {
    let buf = Buf::alloc(bytes.len());
    buf.write(0, bytes);
    let mut guard = mpi.lock();
    let Some(engine) = &mut guard.engine else {
        return Err(stopped());
    };
    let tag = purpose.tag();
    let envelope = (context, source, tag);
    match engine.messages.send(to, envelope, SendMode::Standard, &buf) {
        Started::Done => Ok(None),
        Started::Request(id) => Ok(Some(id)),
    }
}

/// Starts a receive from one process.
pub fn start_recv(
    mpi: &Mpi,
    source: (u32, Peer),
    (context, purpose): (ContextId, Purpose),
    buf: &Buf,
) -> Res<ReqId> {
    let mut guard = mpi.lock();
    let Some(engine) = &mut guard.engine else {
        return Err(stopped());
    };
    let want = Want {
        context,
        source: Some(source),
        tag: Some(purpose.tag()),
    };
    Ok(engine.messages.recv(want, buf.clone()))
}

fn recv(mpi: &Mpi, source: (u32, Peer), what: (ContextId, Purpose), bytes: &mut [u8]) -> Res {
    let buf = Buf::alloc(bytes.len());
    let id = start_recv(mpi, source, what, &buf)?;
    let outcome = finish(mpi, id, Some(source.1))?;
    received(source.1, outcome, &buf, bytes)
}

/// The received bytes, whose number must be the expected one.
fn received(from: Peer, outcome: Outcome, buf: &Buf, bytes: &mut [u8]) -> Res {
    if outcome.len != bytes.len() as u64 {
        return fail!(Intern: "process {from} sent {} bytes instead of {}; do all processes create the same communicator?",
            outcome.len, bytes.len());
    }
    buf.read(0, bytes);
    Ok(())
}

/// Waits for a request and takes its result.
pub fn finish(mpi: &Mpi, id: ReqId, from: Option<Peer>) -> Res<Outcome> {
    let on = WaitOn {
        requests: &[id],
        from,
        ..WaitOn::default()
    };
    let mut guard = mpi.lock.wait(mpi.lock(), on, |inner| {
        inner
            .engine
            .as_ref()
            .is_none_or(|e| e.messages.requests().is_done(id))
    });
    let outcome = guard.engine.as_mut().and_then(|e| e.requests().take(id));
    let mut outcome = outcome.ok_or_else(stopped)?;
    match outcome.failure.take().map(|f| *f) {
        None => Ok(outcome),
        Some(Failure::Message(MessageFailure::Truncated { came, fits })) => {
            fail!(Intern: "{came} bytes arrived instead of {fits}; do all processes create the same communicator?")
        }
        Some(gone @ Failure::Message(MessageFailure::PeerGone(_))) => Err(explain(gone)),
        Some(failure) => fail(Class::Intern, explain(failure).text),
    }
}

fn finish_all(mpi: &Mpi, ids: Vec<ReqId>) -> Res {
    for id in ids {
        finish(mpi, id, None)?;
    }
    Ok(())
}

#[cold]
fn stopped() -> Box<Fault> {
    Fault::new(
        Class::Other,
        "MPI was finalized while a communicator was being made",
    )
}
