//! What calls on windows wait for, and which ranks hold locks, as text: not used on the path of a
//! message.

use super::sync::Until;
use super::{Window, Windows};
use crate::messages::ReqId;
use kw_hang::{Kind, Lock, Wait};
use kw_proto::rma::{Access, EpochStart};

impl Windows {
    /// All waits of a request, if it belongs to a window.
    pub(crate) fn waits_of(&self, req: ReqId) -> Option<Vec<Wait>> {
        let mut all = self.all.iter();
        all.find_map(|(_, window)| {
            let waiter = window.waiters.iter().find(|w| w.req == req)?;
            let mut waits = View(window).waits(&waiter.until);
            if waits.is_empty() {
                waits.push(Wait::OTHER);
            }
            Some(waits)
        })
    }

    /// The locks that this rank knows of.
    pub(crate) fn held_locks(&self) -> Vec<Lock> {
        let windows = self.all.iter();
        windows
            .flat_map(|(_, window)| View(window).known_locks())
            .collect()
    }
}

/// A window, for people.
#[derive(Clone, Copy)]
struct View<'a>(&'a Window);

impl View<'_> {
    fn waits(&self, until: &Until) -> Vec<Wait> {
        let origin = &self.0.out.origin;
        let waits_for = |kind: Kind| move |rank: u32| self.wait_for(kind, rank);
        match until {
            Until::Flown(rank, number) => self.answers(*rank, *number),
            Until::Sent(ranks, number) => {
                let unposted = ranks.iter().filter(|&&rank| origin.awaits_post(rank));
                let mut waits: Vec<Wait> = unposted.copied().map(waits_for(Kind::Post)).collect();
                waits.extend(ranks.iter().flat_map(|&r| self.answers(Some(r), *number)));
                waits.sort_by_key(|w| w.source);
                waits.dedup();
                waits
            }
            // All ranks have called it: the rest completes by itself.
            Until::Fenced(_) => Vec::new(),
            Until::Completed => {
                let mut ranks: Vec<u32> = self.0.not_completed().collect();
                ranks.sort_unstable();
                ranks.into_iter().map(waits_for(Kind::Complete)).collect()
            }
            Until::Posted(ranks) => {
                let unposted = ranks.iter().filter(|&&rank| self.0.awaits_post(rank));
                unposted.copied().map(waits_for(Kind::Post)).collect()
            }
        }
    }

    /// The waits for targets that have not finished this rank's operations up to a number.
    fn answers(&self, rank: Option<u32>, number: u64) -> Vec<Wait> {
        let targets = self.0.out.flights.targets(number);
        let targets = targets.filter(|&target| rank.is_none_or(|rank| rank == target));
        targets.map(|target| self.answer_of(target)).collect()
    }

    fn answer_of(&self, rank: u32) -> Wait {
        if self.0.out.origin.awaits_post(rank) {
            return self.wait_for(Kind::Post, rank);
        }
        match self.0.out.origin.epoch(rank) {
            Some((EpochStart::Lock(_), false)) => Wait {
                peer: None,
                ..self.wait_for(Kind::Lock, rank)
            },
            Some((EpochStart::Fence(_), false)) => self.wait_for(Kind::Fence, rank),
            _ => Wait::OTHER,
        }
    }

    fn wait_for(&self, kind: Kind, rank: u32) -> Wait {
        Wait {
            kind,
            peer: Some(self.0.channel.group.peer(rank).0),
            source: Some(rank),
            context: self.0.channel.context.0,
            ..Wait::OTHER
        }
    }

    /// The lock of this rank's memory, of the memory whose lock it sees, and the locks that it
    /// holds.
    fn known_locks(&self) -> Vec<Lock> {
        let mut locks: Vec<Lock> = self
            .held_here()
            .map(|rank| self.lock_of(rank, None, &[self.0.channel.me]))
            .collect();
        let holders = self.0.exposure.memory.locks.holders();
        locks.push(self.lock_of(self.0.channel.me, Some(holders.len() as u32), &holders));
        if let Some(shared) = &self.0.near.shared {
            for rank in shared.ranks().filter(|&rank| rank != self.0.channel.me) {
                let Some(place) = self.0.near.place_of(rank) else {
                    continue;
                };
                let (count, _) = shared.memory.lock(place).held();
                locks.push(self.lock_of(rank, Some(count), &shared.holders(place)));
            }
        }
        locks.retain(|lock| !lock.holders.is_empty() || lock.count.is_some_and(|n| n > 0));
        locks
    }

    /// Ranks whose lock this rank is known to hold.
    fn held_here(&self) -> impl Iterator<Item = u32> {
        let taken = self.0.published.reachable.as_ref().and_then(|r| r.taken());
        let granted = move |&rank: &u32| {
            let open = match self.0.epochs.access() {
                Access::Locked(ranks) => ranks.contains(&rank),
                Access::LockedAll => true,
                _ => false,
            };
            let known = matches!(
                self.0.out.origin.epoch(rank),
                Some((EpochStart::Lock(_), true))
            );
            let locked = self.0.near.held.contains(&rank) && !self.awaits_lock(rank);
            locked || open && known || taken == Some(rank)
        };
        (0..self.0.channel.group.size()).filter(granted)
    }

    /// Whether this rank has asked for a lock in reach, and not been answered.
    fn awaits_lock(&self, rank: u32) -> bool {
        matches!(
            self.0.out.origin.epoch(rank),
            Some((EpochStart::Lock(_), false))
        ) && self
            .0
            .out
            .flights
            .targets(self.0.out.flights.last())
            .any(|t| t == rank)
    }

    fn lock_of(&self, target: u32, count: Option<u32>, holders: &[u32]) -> Lock {
        let members = holders
            .iter()
            .filter(|&&rank| rank < self.0.channel.group.size());
        Lock {
            context: self.0.channel.context.0,
            target,
            count,
            holders: members
                .map(|&rank| self.0.channel.group.peer(rank).0)
                .collect(),
        }
    }
}
