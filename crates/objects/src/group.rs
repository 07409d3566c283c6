//! Groups: ordered sets of processes, and the table of the groups that the user holds.

use crate::error::{Class, Fault, Res};
use crate::handle::{GroupH, SessionH};
use crate::left::Made;
use crate::state::Tables;
use kw_base::Slab;
use kw_types::comm::GroupError;
use std::sync::Arc;

pub use kw_types::comm::Group;

/// A group that the user holds.
#[derive(Clone, Debug)]
pub struct Held {
    /// The processes.
    pub group: Arc<Group>,
    /// The session that it was derived from; `None` for the world model.
    pub session: Option<SessionH>,
}

/// The groups that the user holds.
#[derive(Debug, Default)]
pub struct Groups {
    /// Those with members.
    pub made: Slab<Held>,
}

impl Groups {
    /// The group of a handle.
    pub fn get(&self, handle: GroupH) -> Res<Arc<Group>> {
        self.held(handle).map(|held| held.group)
    }

    /// The group of a handle, and its session.
    pub fn held(&self, handle: GroupH) -> Res<Held> {
        if handle == GroupH::EMPTY {
            return Ok(Held {
                group: Arc::new(Group::empty()),
                session: None,
            });
        }
        let found = handle.key().and_then(|k| self.made.get(k));
        found.cloned().ok_or_else(|| unknown_group(handle))
    }

    /// Removes a handle. MPI_GROUP_EMPTY is accepted, since constructors return it.
    pub fn free(&mut self, handle: GroupH) -> Res {
        if handle == GroupH::EMPTY {
            return Ok(());
        }
        let gone = handle.key().and_then(|k| self.made.remove(k));
        gone.map(|_| ()).ok_or_else(|| unknown_group(handle))
    }
}

impl Tables {
    /// A handle for a group; MPI_GROUP_EMPTY if it has no members.
    pub fn add_group(&mut self, group: Arc<Group>, session: Option<SessionH>) -> GroupH {
        if group.is_empty() {
            return GroupH::EMPTY;
        }
        let handle = GroupH::from_key(self.groups.made.insert(Held { group, session }));
        self.note_made(Made::Group(handle));
        handle
    }
}

#[cold]
fn unknown_group(handle: GroupH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_GROUP_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no group {}",
            handle.0,
            crate::handle::amiss(handle.0, "freed")
        )
    };
    Fault::new(Class::Group, format!("group is {what}"))
}

/// The fault of a group constructor with wrong arguments.
pub fn group_fault(e: GroupError) -> Box<Fault> {
    let class = match e {
        GroupError::Rank { .. } | GroupError::Twice { .. } => Class::Rank,
        GroupError::Stride { .. } => Class::Arg,
    };
    Fault::new(class, e.to_string())
}
