//! How the two sides of a channel become an intercommunicator.
//!
//! ```text
//! members -> root   where each is reached
//! root <-> root     the cards of both sides, over the channel
//! root -> members   the other side's card: each joins its jobs
//! all               agree on a context id, over the channel and on each side
//! ```
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

/// How the processes of a communicator are introduced to those of another job.
pub struct Introduction<'a> {
    parent: &'a Parent<'a>,
    /// The processes, counted from the root.
    members: Members<'a>,
    /// The root's.
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

    /// What the root does; all hear what came of it.
    fn told(&self, act: impl FnOnce() -> Res<Vec<u8>>) -> Res<Vec<u8>> {
        let mine = match self.members.rank == 0 {
            true => act(),
            false => Ok(Vec::new()),
        };
        let said = match (self.members.rank, mine) {
            (0, Ok(bytes)) => [&0i32.to_le_bytes()[..], &bytes].concat(),
            (0, Err(fault)) => [&fault.code.to_le_bytes()[..], fault.text.as_bytes()].concat(),
            _ => Vec::new(),
        };
        let said = self.members.bcast_any(said)?;
        match said.split_first_chunk() {
            Some((&code, body)) if i32::from_le_bytes(code) == 0 => Ok(body.to_vec()),
            Some((&code, text)) => Err(Fault::of_code(
                i32::from_le_bytes(code),
                String::from_utf8_lossy(text).into_owned(),
            )),
            None => fail(Class::Intern, "the root said nothing"),
        }
    }

    /// The root comes to its channel.
    pub fn open(&self, open: impl FnOnce() -> Res<Channel>) -> Res {
        self.told(|| {
            *self.channel.borrow_mut() = Some(open()?);
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Numbers that the root has, everywhere.
    pub fn numbers_of_root(&self, mine: &[u32]) -> Res<Vec<u32>> {
        let mine = match self.members.rank {
            0 => mine.iter().flat_map(|n| n.to_ne_bytes()).collect(),
            _ => Vec::new(),
        };
        let bytes = self.members.bcast_any(mine)?;
        let numbers = bytes.as_chunks().0.iter();
        Ok(numbers.map(|&word| u32::from_ne_bytes(word)).collect())
    }

    /// Both roots say something; all members of both sides get what the other one said.
    fn swap(&self, mine: impl FnOnce() -> Res<Vec<u8>>) -> Res<Vec<u8>> {
        self.told(|| {
            let mine = mine()?;
            let mut channel = self.channel.borrow_mut();
            let broken = |e| port_fault(Class::Other, "the other side", e);
            let Some(channel) = channel.as_mut() else {
                return fail(Class::Intern, "the root has no channel");
            };
            channel.say(&mine).map_err(broken)?;
            channel.hear(None).map_err(broken)
        })
    }

    fn swap_number(&self, mine: u32) -> Res<u32> {
        let theirs = self.swap(|| Ok(mine.to_le_bytes().to_vec()))?;
        match theirs.first_chunk() {
            Some(word) => Ok(u32::from_le_bytes(*word)),
            None => fail(Class::Other, "the other side speaks another protocol"),
        }
    }

    /// Where each member is reached, by its rank among the members, at the root; nothing elsewhere.
    fn addresses(&self) -> Res<Vec<(String, String)>> {
        let mine = address(self.mpi()).map(|(network, address)| format!("{network} {address}"));
        let len = mine.as_ref().map_or(u32::MAX, |text| text.len() as u32);
        let most = self.members.most(len)?;
        let mut padded = mine?.into_bytes();
        if most == u32::MAX {
            return fail(
                Class::Other,
                "another process of the communicator can be reached over no network",
            );
        }
        padded.resize(most as usize, b' ');
        let all = self.members.gather(&padded)?;
        let of = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            let (network, address) = text.trim_end().split_once(' ').unwrap_or(("", ""));
            (network.to_string(), address.to_string())
        };
        Ok(all.chunks_exact(padded.len()).map(of).collect())
    }

    /// The members of this side, and their jobs, in the order of the communicator's ranks.
    fn card(&self, addresses: &[(String, String)]) -> Res<Card> {
        let guard = self.mpi().lock();
        let Some(engine) = &guard.engine else {
            return fail(Class::Other, "MPI is not initialised");
        };
        let worlds = &engine.job.worlds;
        let mut card = Card::default();
        for peer in self.parent.members.group.iter() {
            let (Some(world), Some(at)) = (worlds.of(peer), self.members.group.rank_of(peer))
            else {
                return fail(Class::Intern, format!("process {peer} belongs to no job"));
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
            let (network, address) = addresses[at as usize].clone();
            card.members.push(ProcessCard {
                world: index as u32,
                rank: world.rank_of(peer).unwrap_or(0),
                network,
                address,
            });
        }
        Ok(card)
    }

    /// The intercommunicator of both sides.
    pub fn meet(&self) -> Res<CommH> {
        let addresses = self.addresses()?;
        let theirs = self.swap(|| Ok(self.card(&addresses)?.encode()))?;
        let Some(theirs) = Card::decode(&theirs).filter(|c| !c.members.is_empty()) else {
            return fail(Class::Other, "the other side speaks another protocol");
        };
        let joined = join(self.mpi(), &theirs);
        let all = self.members.all(joined.is_ok())?;
        let others = self.swap_number(all as u32)?;
        let remote = joined?;
        if !all || others == 0 {
            return fail(
                Class::Other,
                "a process of the other side, or of this one, could not join the other's job",
            );
        }
        let context = self.agree()?;
        let Members { group, rank, .. } = self.parent.members.clone();
        let made = Comm::new(context, group, Some(Arc::new(remote)), rank);
        let made = self.parent.heir(made);
        Ok(add_comm(&mut self.mpi().lock(), made))
    }

    fn agree(&self) -> Res<ContextId> {
        let most = |mine: u32| {
            let ours = self.members.most(mine)?;
            Ok(ours.max(self.swap_number(ours)?))
        };
        let all = |yes: bool| {
            let ours = self.members.all(yes)?;
            Ok(self.swap_number(ours as u32)? == 1 && ours)
        };
        agree_among_jobs(self.mpi(), ContextId(0), most, all)
    }
}

/// By which network this process is reached, and where. It opens one where it has none yet.
fn address(mpi: &Mpi) -> Res<(String, String)> {
    let mut guard = mpi.lock();
    let other = |e: &dyn std::fmt::Display| Fault::new(Class::Other, e.to_string());
    let (engine, _) = running(&mut guard)?;
    if let Some(opening) = engine.needs_network() {
        let opening = opening.map_err(|e| other(&e))?;
        let net = kw_networks::open(Some(opening)).map_err(|e| other(&e))?;
        if let Some(net) = net {
            guard.set_network(net).map_err(|e| other(&e))?;
        }
    }
    let (engine, _) = running(&mut guard)?;
    match engine.address() {
        Some((network, address)) => Ok((network.to_string(), address)),
        None => fail(
            Class::Other,
            "processes of different jobs meet over a network, and KW_PATHS allows none",
        ),
    }
}

/// Joins the jobs of a card and is introduced to its members: the other group.
fn join(mpi: &Mpi, card: &Card) -> Res<Group> {
    let mut guard = mpi.lock();
    let (engine, _) = running(&mut guard)?;
    let mine = engine.address().map(|(network, _)| network.to_string());
    let mut firsts = Vec::new();
    forget_ended(&mut guard);
    let (engine, _) = running(&mut guard)?;
    for world in &card.worlds {
        let Some(agreed) = Agreed::decode(&world.agreed) else {
            return fail(Class::Other, "the other side speaks another protocol");
        };
        if agreed.checks() != engine.job.agreed().checks() {
            return fail(
                Class::Other,
                format!(
                    "job {} compares collective calls and this one does not, or the reverse: give both the same KW_CHECK",
                    world.name
                ),
            );
        }
        let first = engine.join(world.foreign_key, &world.name, agreed);
        firsts.push(first.map_err(|e| Fault::new(Class::Other, e.to_string()))?);
    }
    let mut group = Vec::new();
    for member in &card.members {
        let first = firsts[member.world as usize];
        let world = engine.job.worlds.of(first);
        if world.is_none_or(|w| member.rank >= w.size()) {
            return fail(
                Class::Other,
                "protocol error: the other side named a process that does not exist",
            );
        }
        let peer = Peer(first.0 + member.rank);
        group.push(peer);
        if first == Peer(0) {
            continue;
        }
        if mine.as_deref() != Some(&*member.network) {
            return fail(
                Class::Other,
                format!(
                    "the other side is reached by {}, and this one by {}: give both the same KW_PATHS",
                    member.network,
                    mine.as_deref().unwrap_or("no network")
                ),
            );
        }
        engine
            .introduce(peer, &member.address)
            .map_err(|e| Fault::new(Class::Other, e.to_string()))?;
    }
    Ok(Group::new(group))
}

/// Jobs that have ended make room for others.
fn forget_ended(state: &mut State) {
    if let Some(engine) = &mut state.engine {
        engine.forget_ended(|peer| state.above.is_in_use(peer));
    }
}

/// What went wrong with a port, as a root tells it.
pub fn port_fault(class: Class, what: &str, e: PortError) -> Box<Fault> {
    Fault::new(class, format!("{what}: {e}"))
}

/// At the end of MPI_Init: processes that were spawned meet those who have spawned them.
pub fn meet_parent(mpi: &Mpi) -> Res {
    let _ = kw_sys::environment::take(PARENT);
    let Some(name) = kw_sys::environment::take(PARENT_PORT) else {
        return Ok(());
    };
    let parent = Parent::intra(mpi, CommH::WORLD, "MPI_COMM_WORLD")?;
    let introduction = Introduction::new(&parent, 0);
    introduction.open(|| {
        let patience = Duration::from_secs(wait(mpi));
        port::call(&name, patience)
            .map_err(|e| port_fault(Class::Spawn, "the processes that have spawned this one", e))
    })?;
    let made = introduction.meet()?;
    mpi.lock().above.parent = Some(made);
    if let Ok(comm) = mpi.lock().above.comm_mut(made) {
        comm.name = "MPI_COMM_PARENT".into();
    }
    Ok(())
}

/// Seconds that the other side has to answer (`KW_CONNECT_WAIT`).
pub fn wait(mpi: &Mpi) -> u64 {
    use kw_base::knobs::Id;
    let guard = mpi.lock();
    let knobs = guard.engine.as_ref().map(|e| e.knobs());
    knobs.and_then(|k| k.number(Id::ConnectWait)).unwrap_or(60)
}
