//! The worlds of a process: its own job, and jobs that it has joined since it started.
//!
//! A *world* is a job whose processes were started together, know each other from the start and
//! have agreed on everything that they must choose alike. A process belongs to one world, its own.
//! It numbers all processes that it may exchange messages with: those of its own world by their
//! ranks, those of each further world from the number where that world begins. So a [`Peer`] is a
//! number of this process alone: two processes of different worlds number a third one differently.

use crate::Agreed;
use kw_base::Peer;
use kw_proto::handshake::{self, Foreign};
use std::sync::Arc;

/// One job.
#[derive(Clone)]
pub struct World {
    /// Its first rank, as a peer of this process; the others follow.
    pub first: Peer,
    /// For the own world the job's key, which is proof of belonging; for another one its foreign
    /// key ([`World::foreign_key`]).
    pub key: [u8; 32],
    /// Its name, for messages.
    pub name: Arc<str>,
    /// Information that all its ranks know alike.
    pub agreed: Arc<Agreed>,
    id: u64,
    foreign_key: [u8; 32],
}

impl World {
    /// Ranks.
    pub fn size(&self) -> u32 {
        self.agreed.size()
    }

    /// Its ranks, as peers of this process.
    pub fn peers(&self) -> std::ops::Range<u32> {
        self.first.0..self.first.0 + self.size()
    }

    /// The value that proves to others that they were introduced to this world; it differs from
    /// that of every other world.
    pub fn foreign_key(&self) -> [u8; 32] {
        self.foreign_key
    }

    /// The rank in this world of a peer of this process, if it is one of its ranks.
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        let rank = peer.0.checked_sub(self.first.0)?;
        (rank < self.size()).then_some(rank)
    }
}

/// A process as every job names it: its world ([`World::id`]), and its rank there.
pub type ProcessName = (u64, u32);

impl World {
    /// The world in one number, which every process computes alike.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Worlds {
    /// Name of a peer of this process for every job.
    pub fn name_of(&self, peer: Peer) -> Option<ProcessName> {
        let world = self.of(peer)?;
        Some((world.id(), world.rank_of(peer)?))
    }

    /// The peer with such a name; `None` if this process has not met its world.
    pub fn peer_of(&self, (world, rank): ProcessName) -> Option<Peer> {
        let world = self.iter().find(|w| w.id() == world)?;
        (rank < world.size()).then(|| Peer(world.first.0 + rank))
    }

    /// Whether peers belong to several worlds.
    pub fn differ(&self, mut peers: impl Iterator<Item = Peer>) -> bool {
        if self.joined.is_empty() {
            return false;
        }
        let of = |p: Peer| self.of(p).map(|w| w.first);
        let first = peers.next().and_then(of);
        peers.any(|p| of(p) != first)
    }
}

/// The key is not printed.
impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("first", &self.first)
            .field("name", &self.name)
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}

/// All worlds of a process.
#[derive(Clone, Debug)]
pub struct Worlds {
    own: World,
    joined: Vec<World>,
}

impl Worlds {
    /// The world of a job that no other process has joined.
    pub fn new(key: [u8; 32], name: &str, agreed: Agreed) -> Worlds {
        let first = Peer(0);
        let own = world(first, key, name, agreed);
        Worlds {
            own,
            joined: Vec::new(),
        }
    }

    /// The world that this process was started in.
    #[inline]
    pub fn own(&self) -> &World {
        &self.own
    }

    /// All of them, this process's own first.
    pub fn iter(&self) -> impl Iterator<Item = &World> {
        std::iter::once(&self.own).chain(&self.joined)
    }

    /// The number after the last process of all worlds.
    pub fn peers(&self) -> u32 {
        self.iter().map(|w| w.peers().end).max().unwrap_or(0)
    }

    /// A joined world has ended: its numbers are free.
    pub fn forget(&mut self, first: Peer) {
        self.joined.retain(|world| world.first != first);
    }

    /// Start of the lowest free range of this many numbers.
    fn room(&self, size: u32) -> Peer {
        let mut taken: Vec<_> = self.iter().map(World::peers).collect();
        taken.sort_unstable_by_key(|t| t.start);
        let mut at = 0;
        for peers in taken {
            if peers.start - at >= size {
                break;
            }
            at = peers.end;
        }
        Peer(at)
    }

    /// The world of a peer.
    pub fn of(&self, peer: Peer) -> Option<&World> {
        self.iter().find(|world| world.rank_of(peer).is_some())
    }

    /// The world with this foreign key, if it is known.
    pub fn known(&self, foreign_key: &[u8; 32]) -> Option<&World> {
        self.iter().find(|w| w.foreign_key == *foreign_key)
    }

    /// Information about another world for a network.
    pub fn foreign(&self, world: &World) -> Foreign {
        let range = (world.first.0, world.size());
        Foreign::new(range, &self.own.foreign_key, &world.foreign_key)
    }

    /// Adds a job that this process has joined. Its ranks become peers with consecutive numbers,
    /// which no other job has.
    pub fn join(&mut self, foreign_key: [u8; 32], name: &str, agreed: Agreed) -> &World {
        let key = foreign_key;
        let first = self.room(agreed.size());
        let at = self.joined.len();
        self.joined.push(world(first, key, name, agreed));
        &self.joined[at]
    }
}

fn world(first: Peer, key: [u8; 32], name: &str, agreed: Agreed) -> World {
    let foreign_key = match first {
        Peer(0) => handshake::foreign_key(&key),
        _ => key,
    };
    let hash = handshake::key_of(&foreign_key, "name of a job");
    World {
        id: u64::from_le_bytes(*hash.first_chunk().unwrap_or(&[0; 8])),
        foreign_key,
        first,
        key,
        name: name.into(),
        agreed: Arc::new(agreed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::settings::Settings;
    use kw_start::Load;

    fn agreed(size: u32) -> Agreed {
        let load = Load::even(false, size);
        Agreed::new(vec![0; size as usize], load, &Settings::defaults()).unwrap()
    }

    #[test]
    fn each_peer_is_a_rank_of_one_world() {
        let mut worlds = Worlds::new([1; 32], "first", agreed(3));
        assert_eq!((worlds.peers(), worlds.own().first), (3, Peer(0)));
        assert_eq!(worlds.join([2; 32], "second", agreed(1)).first, Peer(3));
        assert_eq!(worlds.join([3; 32], "third", agreed(2)).first, Peer(4));
        let found: Vec<_> = (0..worlds.peers())
            .map(|peer| {
                let world = worlds.of(Peer(peer)).unwrap();
                (&*world.name, world.rank_of(Peer(peer)).unwrap())
            })
            .collect();
        let want = [
            ("first", 0),
            ("first", 1),
            ("first", 2),
            ("second", 0),
            ("third", 0),
            ("third", 1),
        ];
        assert_eq!(found, want);
        assert!(worlds.of(Peer(6)).is_none());
        assert_eq!(worlds.iter().count(), 3);
    }

    #[test]
    fn numbers_of_jobs_that_ended_are_given_to_others() {
        let mut worlds = Worlds::new([1; 32], "own", agreed(2));
        let join =
            |worlds: &mut Worlds, n: u8, size| worlds.join([n; 32], "other", agreed(size)).first;
        let firsts = [2, 3, 1].map(|size| join(&mut worlds, size as u8 + 10, size));
        assert_eq!(firsts, [Peer(2), Peer(4), Peer(7)]);
        worlds.forget(Peer(4));
        assert!(worlds.of(Peer(5)).is_none());
        assert_eq!(join(&mut worlds, 20, 4), Peer(8));
        assert_eq!(join(&mut worlds, 21, 2), Peer(4));
        assert_eq!(join(&mut worlds, 22, 1), Peer(6));
        assert_eq!(worlds.peers(), 12);
        worlds.forget(Peer(8));
        assert_eq!(worlds.peers(), 8);
    }

    #[test]
    fn worlds_name_processes_alike() {
        let mut here = Worlds::new([1; 32], "first", agreed(3));
        let mut there = Worlds::new([9; 32], "second", agreed(2));
        let second = there.own().foreign_key();
        here.join(second, "second", agreed(2));
        assert_eq!(there.peer_of(here.name_of(Peer(2)).unwrap()), None);
        there.join(here.own().foreign_key(), "first", agreed(3));
        for peer in 0..5 {
            let name = here.name_of(Peer(peer)).unwrap();
            let other = there.peer_of(name).unwrap();
            assert_eq!(here.peer_of(name), Some(Peer(peer)));
            assert_eq!(other, Peer((peer + 2) % 5), "{name:?}");
        }
        assert!(here.differ([Peer(0), Peer(3)].into_iter()));
        assert!(!here.differ([Peer(4), Peer(3)].into_iter()));
    }

    #[test]
    fn no_log_shows_a_key() {
        let worlds = Worlds::new([0xab; 32], "secret", agreed(1));
        let text = format!("{worlds:?}");
        assert!(!text.contains("171") && !text.contains("ab, ab"), "{text}");
    }
}
