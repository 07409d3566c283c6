//! Epochs of one rank on one window: which calls are allowed (MPI 5.0, 12.5).
//!
//! ```text
//!             fence            lock(r)              lock_all         start          complete, unlock
//! Closed      Fence            Locked {r}           LockedAll        Started        refused
//! Fence       Fence            Locked if unused     same             same           refused
//! Locked      refused          more ranks           refused          refused        unlock: fewer ranks
//! LockedAll   refused          refused              refused          refused        unlock_all: Closed
//! Started     refused          refused              refused          refused        complete: Closed
//! ```

/// A call that is not allowed now.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misuse {
    /// An operation outside an access epoch.
    #[error(
        "no access epoch is open: call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all \
         first"
    )]
    NoEpoch,
    /// An operation on a rank that the epoch does not include.
    #[error("rank {0} is not a target of the current access epoch")]
    OtherTarget(u32),
    /// A new epoch while another is open.
    #[error("{0} is still open: close it first")]
    Open(&'static str),
    /// The end of an epoch that is not open.
    #[error("{0}")]
    NotOpen(String),
    /// A flush outside a passive target epoch.
    #[error("it is allowed between MPI_Win_lock or MPI_Win_lock_all and the unlock only")]
    NotPassive,
    /// A second lock on one target.
    #[error("this rank has locked rank {0} already")]
    Twice(u32),
}

/// The access epoch of a rank.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Access {
    /// None.
    #[default]
    Closed,
    /// Between two fences.
    Fence {
        /// Operations were issued.
        used: bool,
    },
    /// Between start and complete.
    Started(Vec<u32>),
    /// Ranks that are locked, in order.
    Locked(Vec<u32>),
    /// All ranks are locked.
    LockedAll,
}

/// See the module.
#[derive(Clone, Default, Debug)]
pub struct Epochs {
    access: Access,
    /// The group of MPI_Win_post, until MPI_Win_wait.
    posted: bool,
    /// Memory for the ranks of the next lock epoch.
    spare: Vec<u32>,
}

impl Epochs {
    /// The access epoch.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Whether an operation may access a rank.
    #[inline]
    pub fn check_access(&mut self, rank: u32) -> Result<(), Misuse> {
        match &mut self.access {
            Access::LockedAll => Ok(()),
            Access::Fence { used } => {
                *used = true;
                Ok(())
            }
            Access::Locked(ranks) if ranks.binary_search(&rank).is_ok() => Ok(()),
            Access::Started(ranks) if ranks.contains(&rank) => Ok(()),
            Access::Closed => Err(Misuse::NoEpoch),
            _ => Err(Misuse::OtherTarget(rank)),
        }
    }

    /// Whether operations were issued since the last fence, if the epoch is one of fences.
    pub fn use_fence(&mut self, yes: bool) {
        if let Access::Fence { used } = &mut self.access {
            *used = yes;
        }
    }

    /// Whether a flush of a rank, or of all, is allowed.
    pub fn check_flush(&self, rank: Option<u32>) -> Result<(), Misuse> {
        match (&self.access, rank) {
            (Access::LockedAll, _) | (Access::Locked(_), None) => Ok(()),
            (Access::Locked(ranks), Some(rank)) if ranks.binary_search(&rank).is_ok() => Ok(()),
            (Access::Locked(_), Some(rank)) => Err(Misuse::OtherTarget(rank)),
            _ => Err(Misuse::NotPassive),
        }
    }

    /// No operation has been issued in an epoch that a new one would have to follow.
    fn check_closed(&self) -> Result<(), Misuse> {
        match self.access {
            Access::Closed | Access::Fence { used: false } => Ok(()),
            _ => Err(Misuse::Open(self.name())),
        }
    }

    fn name(&self) -> &'static str {
        match self.access {
            Access::Closed => "no epoch",
            Access::Fence { .. } => "the epoch of MPI_Win_fence",
            Access::Started(_) => "the epoch of MPI_Win_start",
            Access::Locked(_) => "the epoch of MPI_Win_lock",
            Access::LockedAll => "the epoch of MPI_Win_lock_all",
        }
    }

    /// MPI_Win_fence.
    pub fn fence(&mut self, succeeds: bool) -> Result<(), Misuse> {
        if self.posted {
            return Err(Misuse::Open("the epoch of MPI_Win_post"));
        }
        if !matches!(self.access, Access::Closed | Access::Fence { .. }) {
            return Err(Misuse::Open(self.name()));
        }
        self.access = match succeeds {
            true => Access::Fence { used: false },
            false => Access::Closed,
        };
        Ok(())
    }

    /// MPI_Win_start.
    pub fn start(&mut self, ranks: &[u32]) -> Result<(), Misuse> {
        self.check_closed()?;
        self.access = Access::Started(ranks.to_vec());
        Ok(())
    }

    /// MPI_Win_complete; returns the ranks of the epoch.
    pub fn complete(&mut self) -> Result<Vec<u32>, Misuse> {
        match std::mem::take(&mut self.access) {
            Access::Started(ranks) => Ok(ranks),
            other => {
                self.access = other;
                Err(not_open("MPI_Win_start has not been called"))
            }
        }
    }

    /// MPI_Win_post.
    pub fn post(&mut self) -> Result<(), Misuse> {
        if self.posted {
            return Err(Misuse::Open("the epoch of MPI_Win_post"));
        }
        if matches!(self.access, Access::Fence { used: true }) {
            return Err(Misuse::Open(self.name()));
        }
        self.posted = true;
        Ok(())
    }

    /// MPI_Win_wait, or MPI_Win_test: returns whether that is allowed.
    pub fn check_posted(&self) -> Result<(), Misuse> {
        let posted = self.posted.then_some(());
        posted.ok_or_else(|| not_open("MPI_Win_post has not been called"))
    }

    /// The exposure epoch has ended.
    pub fn unpost(&mut self) {
        self.posted = false;
    }

    /// MPI_Win_lock.
    pub fn lock(&mut self, rank: u32) -> Result<(), Misuse> {
        if let Access::Locked(ranks) = &mut self.access {
            let Err(at) = ranks.binary_search(&rank) else {
                return Err(Misuse::Twice(rank));
            };
            ranks.insert(at, rank);
            return Ok(());
        }
        self.check_closed()?;
        let mut ranks = std::mem::take(&mut self.spare);
        ranks.push(rank);
        self.access = Access::Locked(ranks);
        Ok(())
    }

    /// MPI_Win_unlock.
    pub fn unlock(&mut self, rank: u32) -> Result<(), Misuse> {
        let wrong = || not_open(&format!("this rank has not locked rank {rank}"));
        let Access::Locked(ranks) = &mut self.access else {
            return Err(wrong());
        };
        let at = ranks.binary_search(&rank).map_err(|_| wrong())?;
        ranks.remove(at);
        if ranks.is_empty() {
            self.spare = std::mem::take(ranks);
            self.access = Access::Closed;
        }
        Ok(())
    }

    /// MPI_Win_lock_all.
    pub fn lock_all(&mut self) -> Result<(), Misuse> {
        self.check_closed()?;
        self.access = Access::LockedAll;
        Ok(())
    }

    /// MPI_Win_unlock_all.
    pub fn unlock_all(&mut self) -> Result<(), Misuse> {
        if self.access != Access::LockedAll {
            return Err(not_open("MPI_Win_lock_all has not been called"));
        }
        self.access = Access::Closed;
        Ok(())
    }

    /// Whether the window may be freed.
    pub fn check_free(&self) -> Result<(), Misuse> {
        if self.posted {
            return Err(Misuse::Open("the epoch of MPI_Win_post"));
        }
        match self.access {
            Access::Fence { .. } => Ok(()),
            _ => self.check_closed(),
        }
    }
}

fn not_open(why: &str) -> Misuse {
    Misuse::NotOpen(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Call = (&'static str, fn(&mut Epochs) -> bool);

    const CALLS: [Call; 9] = [
        ("fence", |e| e.fence(true).is_ok()),
        ("start", |e| e.start(&[1]).is_ok()),
        ("complete", |e| e.complete().is_ok()),
        ("lock", |e| e.lock(1).is_ok()),
        ("unlock", |e| e.unlock(1).is_ok()),
        ("lock_all", |e| e.lock_all().is_ok()),
        ("unlock_all", |e| e.unlock_all().is_ok()),
        ("access", |e| e.check_access(1).is_ok()),
        ("flush", |e| e.check_flush(Some(1)).is_ok()),
    ];

    /// Every call in every state.
    #[test]
    fn calls_are_allowed_where_the_standard_says_so() {
        let states: [(&str, fn(&mut Epochs), &str); 6] = [
            ("closed", |_| (), "fence start lock lock_all"),
            (
                "fence",
                |e| e.fence(true).unwrap(),
                "fence start lock lock_all access",
            ),
            (
                "used fence",
                |e| {
                    e.fence(true).unwrap();
                    e.check_access(0).unwrap();
                },
                "fence access",
            ),
            ("started", |e| e.start(&[1, 2]).unwrap(), "complete access"),
            ("locked", |e| e.lock(1).unwrap(), "unlock access flush"),
            (
                "all locked",
                |e| e.lock_all().unwrap(),
                "unlock_all access flush",
            ),
        ];
        for (state, enter, allowed) in states {
            for (name, call) in CALLS {
                let mut epochs = Epochs::default();
                enter(&mut epochs);
                let may = allowed.split(' ').any(|a| a == name);
                assert_eq!(call(&mut epochs), may, "{name} when {state}");
            }
        }
    }

    #[test]
    fn other_ranks_are_not_targets() {
        let mut epochs = Epochs::default();
        epochs.lock(1).unwrap();
        assert_eq!(epochs.check_access(2), Err(Misuse::OtherTarget(2)));
        assert_eq!(epochs.check_flush(Some(2)), Err(Misuse::OtherTarget(2)));
        assert!(epochs.check_free().is_err());
        epochs.lock(2).unwrap();
        epochs.unlock(1).unwrap();
        epochs.unlock(2).unwrap();
        assert!(epochs.check_free().is_ok());
        epochs.post().unwrap();
        assert!(epochs.check_free().is_err() && epochs.fence(true).is_err());
    }
}
