//! How the two sides of a channel become an intercommunicator.
//!
//! ```text
//! members -> root   where each is reached
//! root <-> root     the channel is opened; the cards of both sides
//! root -> members   the other side's card: each joins its jobs
//! members -> root   which context id is wanted; root <-> root; root -> members: the largest
//! members -> root   whether that is free;       root <-> root; root -> members: whether it stands
//! ```
//! Each step is a turn of every member on its processor. If many share one, that is most of the cost.
//! Whatever fails at a root is told to all members of its side, and breaks the channel, so that the
//! other side hears of it as well.

use crate::card::{Card, ProcessCard, WorldCard};
use kw_base::spawned::{PARENT, PARENT_PORT};
use kw_base::{ContextId, Peer};
use kw_boot::Agreed;
use kw_boot::port::{self, Channel, PortError};
use kw_mpi::chapter::{Members, Parent, add_comm, agree_among_jobs, running};
use kw_objects::Group;
use kw_objects::comm::Comm;
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::CommH;
use kw_objects::state::{Mpi, State};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// Introduction of the processes of a communicator to those of another job.
pub struct Introduction<'a> {
    parent: &'a Parent<'a>,
    /// The processes, counted from the root.
    members: Members<'a>,
    /// State of the root.
    channel: RefCell<Option<Channel>>,
}

impl<'a> Introduction<'a> {
    /// The processes of an intracommunicator, led by this rank.
    pub fn new(parent: &'a Parent<'a>, root: u32) -> Introduction<'a> {
        Introduction {
            parent,
            members: parent.members.led_by(root),
            channel: RefCell::new(None),
        }
    }

    fn mpi(&self) -> &'a Mpi {
        self.members.mpi
    }

    /// Runs the root's part; all get its result.
    fn at_root(&self, act: impl FnOnce() -> Res<Vec<u8>>) -> Res<Vec<u8>> {
        let mine = match self.members.rank == 0 {
            true => act(),
            false => Ok(Vec::new()),
        };
        let answer = match (self.members.rank, mine) {
            (0, Ok(bytes)) => [&0i32.to_le_bytes()[..], &bytes].concat(),
            (0, Err(fault)) => [&fault.code.to_le_bytes()[..], fault.text.as_bytes()].concat(),
            _ => Vec::new(),
        };
        let answer = self.members.bcast_any(answer)?;
        match answer.split_first_chunk() {
            Some((&code, body)) if i32::from_le_bytes(code) == 0 => Ok(body.to_vec()),
            Some((&code, text)) => Err(Fault::of_code(
                i32::from_le_bytes(code),
                String::from_utf8_lossy(text).into_owned(),
            )),
            None => fail(Class::Intern, "the root said nothing"),
        }
    }

    /// Broadcasts numbers of the root.
    pub fn numbers_of_root(&self, mine: &[u32]) -> Res<Vec<u32>> {
        let mine = match self.members.rank {
            0 => mine.iter().flat_map(|n| n.to_ne_bytes()).collect(),
            _ => Vec::new(),
        };
        let bytes = self.members.bcast_any(mine)?;
        let numbers = bytes.as_chunks().0.iter();
        Ok(numbers.map(|&word| u32::from_ne_bytes(word)).collect())
    }

    /// Sends a message to the other root, and returns its message. For the root alone.
    fn swap(&self, mine: &[u8]) -> Res<Vec<u8>> {
        let mut channel = self.channel.borrow_mut();
        let broken = |e| port_fault(Class::Other, "the other side", e);
        let Some(channel) = channel.as_mut() else {
            return fail(Class::Intern, "the root has no channel");
        };
        channel.say(mine).map_err(broken)?;
        channel.hear(None).map_err(broken)
    }

    /// The maximum over the members of both sides.
    fn most(&self, mine: u32) -> Res<u32> {
        let all = self.members.gather(&mine.to_le_bytes())?;
        let all = all.as_chunks().0.iter();
        let ours = all.map(|word| u32::from_le_bytes(*word)).max();
        let answer = self.at_root(|| {
            let ours = ours.unwrap_or(mine);
            let theirs = number(&self.swap(&ours.to_le_bytes())?)?;
            Ok(ours.max(theirs).to_le_bytes().to_vec())
        })?;
        number(&answer)
    }

    /// The other side's card. The root opens its channel when it knows how each member is reached.
    fn card_of_others(&self, open: impl FnOnce() -> Res<Channel>) -> Res<Vec<u8>> {
        let mine = address(self.mpi());
        let (mut open, mut width) = (Some(open), USUAL_ADDRESS);
        loop {
            let all = self.members.gather(&record(mine.as_deref().ok(), width))?;
            let answer = self.at_root(|| {
                let addresses = addresses(&all, width)?;
                let longest = addresses.iter().map(|text| text.len()).max().unwrap_or(0);
                let Some(open) = open.take_if(|_| longest <= width) else {
                    return Ok((longest as u32).to_le_bytes().to_vec());
                };
                *self.channel.borrow_mut() = Some(open()?);
                let theirs = self.swap(&self.card(&addresses)?.encode())?;
                Ok([&0u32.to_le_bytes()[..], &theirs].concat())
            });
            let answer = match answer {
                Ok(answer) => answer,
                Err(fault) => return Err(mine.err().unwrap_or(fault)),
            };
            match number(&answer)? {
                0 => return Ok(answer[4..].to_vec()),
                longest => width = longest as usize,
            }
        }
    }

    /// The members of this side, and their jobs, in the order of the communicator's ranks.
    fn card(&self, addresses: &[String]) -> Res<Card> {
        let guard = self.mpi().lock();
        let Some(engine) = &guard.engine else {
            return fail(Class::Other, "MPI is not initialised");
        };
        let worlds = &engine.job.worlds;
        let mut card = Card::default();
        for peer in self.parent.members.group.iter() {
            let (Some(world), Some(at)) = (worlds.of(peer), self.members.group.rank_of(peer))
            else {
                return fail!(Intern: "process {peer} belongs to no job");
            };
            let key = world.foreign_key();
            let known = card.worlds.iter().position(|w| w.foreign_key == key);
            let index = known.unwrap_or_else(|| {
                card.worlds.push(WorldCard {
                    name: world.name.to_string(),
                    foreign_key: key,
                    agreed: world.agreed.encode(),
                });
                card.worlds.len() - 1
            });
            let (network, address) = addresses[at as usize].split_once(' ').unwrap_or(("", ""));
            card.members.push(ProcessCard {
                world: index as u32,
                rank: world.rank_of(peer).unwrap_or(0),
                network: network.into(),
                address: address.into(),
            });
        }
        Ok(card)
    }

    /// The intercommunicator of both sides; the root opens its channel to the other root by `open`.
    pub fn meet(&self, open: impl FnOnce() -> Res<Channel>) -> Res<CommH> {
        let theirs = self.card_of_others(open)?;
        let joined = match Card::decode(&theirs).filter(|c| !c.members.is_empty()) {
            Some(theirs) => join(self.mpi(), &theirs),
            None => fail(Class::Other, OTHER_PROTOCOL),
        };
        let context = self.agree(joined.is_ok());
        let remote = joined?;
        let context = context?;
        let Members { group, rank, .. } = self.parent.members.clone();
        let made = Comm::new(context, group, Some(Arc::new(remote)), rank);
        let made = self.parent.heir(made);
        Ok(add_comm(&mut self.mpi().lock(), made))
    }

    /// The context id, if all members of both sides have joined the jobs of the other one.
    fn agree(&self, joined: bool) -> Res<ContextId> {
        let most = |wanted: u32| {
            let mine = match (joined, wanted) {
                (false, _) => NOT_JOINED,
                (true, u32::MAX) => NONE_FREE,
                (true, wanted) => wanted,
            };
            match self.most(mine)? {
                NONE_FREE => Ok(u32::MAX),
                NOT_JOINED => fail!(Other:
                    "a process of the other side, or of this one, could not join the other's job"),
                most => Ok(most),
            }
        };
        let all = |yes: bool| Ok(self.most(!yes as u32)? == 0);
        agree_among_jobs(self.mpi(), ContextId(0), most, all)
    }
}

/// Bytes of an address in the first round; a longer address needs a second one.
const USUAL_ADDRESS: usize = 120;
/// In place of a context id: a process has not joined the jobs of the other side.
const NOT_JOINED: u32 = u32::MAX;
/// In place of a context id: a process has none left.
const NONE_FREE: u32 = u32::MAX - 1;
/// In place of a length: a process has no address.
const NO_ADDRESS: u32 = u32::MAX;
const OTHER_PROTOCOL: &str = "the other side speaks another protocol";

/// The number at the beginning of a message.
fn number(answer: &[u8]) -> Res<u32> {
    match answer.first_chunk() {
        Some(word) => Ok(u32::from_le_bytes(*word)),
        None => fail(Class::Other, OTHER_PROTOCOL),
    }
}

/// The length of an address, and as much of it as fits.
fn record(address: Option<&str>, width: usize) -> Vec<u8> {
    let text = address.unwrap_or("").as_bytes();
    let len = address.map_or(NO_ADDRESS, |text| text.len() as u32);
    let mut out = len.to_le_bytes().to_vec();
    out.extend(text);
    out.resize(4 + width, 0);
    out
}

/// The addresses in such records; an incomplete one still has its full length.
fn addresses(records: &[u8], width: usize) -> Res<Vec<String>> {
    let one = |record: &[u8]| match number(record)? {
        NO_ADDRESS => {
            fail!(Other: "another process of the communicator can be reached over no network")
        }
        len => {
            let text = record[4..][..width.min(len as usize)].to_vec();
            let mut text = String::from_utf8_lossy(&text).into_owned();
            text.extend(std::iter::repeat_n(
                ' ',
                (len as usize).saturating_sub(width),
            ));
            Ok(text)
        }
    };
    records.chunks_exact(4 + width).map(one).collect()
}

/// The network and address of this process: `tcp 192.0.2.7:4711`. Opens a network if it has none
/// yet.
fn address(mpi: &Mpi) -> Res<String> {
    let mut guard = mpi.lock();
    let other = |e: &dyn std::fmt::Display| Fault::new(Class::Other, e.to_string());
    let (engine, _) = running(&mut guard)?;
    if let Some(opening) = engine.other_jobs().needs_network() {
        let opening = opening.map_err(|e| other(&e))?;
        let net = kw_networks::open(Some(opening)).map_err(|e| other(&e))?;
        if let Some(net) = net {
            guard.set_network(net).map_err(|e| other(&e))?;
        }
    }
    let (engine, _) = running(&mut guard)?;
    match engine.other_jobs().address() {
        Some((network, address)) => Ok(format!("{network} {address}")),
        None => {
            fail!(Other: "processes of different jobs meet over a network, and KW_PATHS allows none")
        }
    }
}

/// Joins the jobs of a card and is introduced to its members; returns the other group.
fn join(mpi: &Mpi, card: &Card) -> Res<Group> {
    let mut guard = mpi.lock();
    let (engine, _) = running(&mut guard)?;
    let mine = engine
        .other_jobs()
        .address()
        .map(|(network, _)| network.to_string());
    let mut firsts = Vec::new();
    forget_ended(&mut guard);
    let (engine, _) = running(&mut guard)?;
    for world in &card.worlds {
        let Some(agreed) = Agreed::decode(&world.agreed) else {
            return fail(Class::Other, "the other side speaks another protocol");
        };
        if agreed.checks() != engine.job.agreed().checks() {
            return fail!(Other: "job {} compares collective calls and this one does not, or the reverse: give both the same KW_CHECK",
                world.name);
        }
        let first = engine
            .other_jobs()
            .join(world.foreign_key, &world.name, agreed);
        firsts.push(first.map_err(|e| Fault::new(Class::Other, e.to_string()))?);
    }
    let mut group = Vec::new();
    for member in &card.members {
        let first = firsts[member.world as usize];
        let world = engine.job.worlds.of(first);
        if world.is_none_or(|w| member.rank >= w.size()) {
            return fail!(Other: "protocol error: the other side named a process that does not exist");
        }
        let peer = Peer(first.0 + member.rank);
        group.push(peer);
        if first == Peer(0) {
            continue;
        }
        if mine.as_deref() != Some(&*member.network) {
            return fail!(Other: "the other side is reached by {}, and this one by {}: give both the same KW_PATHS",
                member.network, mine.as_deref().unwrap_or("no network"));
        }
        engine
            .other_jobs()
            .introduce(peer, &member.address)
            .map_err(|e| Fault::new(Class::Other, e.to_string()))?;
    }
    Ok(Group::new(group))
}

/// Jobs that have ended make room for others.
fn forget_ended(state: &mut State) {
    if let Some(engine) = &mut state.engine {
        engine
            .other_jobs()
            .forget_ended(|peer| state.above.is_in_use(peer));
    }
}

/// The error of a port, as a root reports it.
pub fn port_fault(class: Class, what: &str, e: PortError) -> Box<Fault> {
    Fault::new(class, format!("{what}: {e}"))
}

/// Connects spawned processes with their parents, at the end of MPI_Init.
pub fn meet_parent(mpi: &Mpi) -> Res {
    let _ = kw_sys::environment::take(PARENT);
    let Some(name) = kw_sys::environment::take(PARENT_PORT) else {
        return Ok(());
    };
    let parent = Parent::intra(mpi, CommH::WORLD, "MPI_COMM_WORLD")?;
    let introduction = Introduction::new(&parent, 0);
    let made = introduction.meet(|| {
        let patience = Duration::from_secs(wait(mpi));
        port::call(&name, patience)
            .map_err(|e| port_fault(Class::Spawn, "the processes that have spawned this one", e))
    })?;
    mpi.lock().above.parent = Some(made);
    if let Ok(comm) = mpi.lock().above.comms.get_mut(made) {
        comm.name = "MPI_COMM_PARENT".into();
    }
    Ok(())
}

/// Seconds until the other side must have answered (`KW_CONNECT_WAIT`).
pub fn wait(mpi: &Mpi) -> u64 {
    use kw_base::settings::Id;
    let guard = mpi.lock();
    let settings = guard.engine.as_ref().map(|e| e.settings());
    settings
        .and_then(|k| k.number(Id::ConnectWait))
        .unwrap_or(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_cut_off_are_as_long_as_the_whole_ones() {
        let whole = "tcp 192.0.2.7:4711";
        let all = |width| [record(Some("tcp a"), width), record(Some(whole), width)].concat();
        let lengths = |all: Vec<String>| all.iter().map(|a| a.len()).collect::<Vec<_>>();
        let found = addresses(&all(8), 8).unwrap();
        assert_eq!(found[0], "tcp a");
        assert_eq!(lengths(found), [5, whole.len()]);
        assert_eq!(
            addresses(&all(whole.len()), whole.len()).unwrap(),
            ["tcp a", whole]
        );
        let without = [record(Some("tcp a"), 8), record(None, 8)].concat();
        assert!(addresses(&without, 8).is_err());
    }
}
