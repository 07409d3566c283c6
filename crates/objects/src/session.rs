//! Sessions (MPI 5.0, 11.3): a handle to MPI's resources, from whose process sets communicators are
//! created.

use crate::Group;
use crate::error::{Class, Fault, Res, fail};
use crate::handle::{ErrhandlerH, SessionH};
use crate::info::Info;
use kw_base::{Peer, Slab};
use kw_boot::ProcessSet;

/// The process sets that every session offers. The launcher may offer more, with names of its own.
pub const PSETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// One session.
#[derive(Debug)]
pub struct Session {
    /// Error handler.
    pub errhandler: ErrhandlerH,
    /// Its creation arguments, as far as known.
    pub info: Info,
    /// Sets of the launcher that contain this process.
    sets: Vec<ProcessSet>,
}

impl Session {
    /// A session for process `me`, to which the launcher offers these sets.
    pub fn new(errhandler: ErrhandlerH, info: Info, offered: Vec<ProcessSet>, me: Peer) -> Session {
        let mut sets = offered;
        sets.retain(|s| s.ranks.contains(&me.0));
        Session {
            errhandler,
            info,
            sets,
        }
    }

    /// Names of all process sets that contain this process.
    pub fn psets(&self) -> Vec<&str> {
        let more = self.sets.iter().map(|s| s.name.as_str());
        PSETS.into_iter().chain(more).collect()
    }

    /// The processes of a process set, for process `me` of `size`.
    pub fn pset(&self, name: &str, me: Peer, size: u32) -> Res<Group> {
        match PSETS.iter().position(|p| p.eq_ignore_ascii_case(name)) {
            Some(0) => return Ok(Group::range(Peer(0), size)),
            Some(_) => return Ok(Group::range(me, 1)),
            None => {}
        }
        let named = self.sets.iter().find(|s| s.name == name);
        let named = named.filter(|s| s.ranks.iter().all(|r| *r < size));
        match named {
            Some(set) => Ok(Group::new(set.ranks.iter().copied().map(Peer).collect())),
            None => {
                fail!(Arg: "pset_name is '{name}', but the process sets are {}", self.psets().join(" and "))
            }
        }
    }
}

/// The sessions of the process.
#[derive(Debug, Default)]
pub struct Sessions {
    /// Those that have not been finalized.
    pub open: Slab<Session>,
}

impl Sessions {
    /// The session of a handle.
    pub fn get(&self, handle: SessionH) -> Res<&Session> {
        let found = handle.key().and_then(|k| self.open.get(k));
        found.ok_or_else(|| unknown_session(handle))
    }

    /// The session of a handle, for changes.
    pub fn get_mut(&mut self, handle: SessionH) -> Res<&mut Session> {
        let found = handle.key().and_then(|k| self.open.get_mut(k));
        found.ok_or_else(|| unknown_session(handle))
    }

    /// The error handler for errors that concern no object while there is no MPI_COMM_SELF (before
    /// initialisation, or with sessions only): that of the only session, if there is one.
    pub(crate) fn early_errhandler(&self) -> ErrhandlerH {
        let first = self.open.iter().next();
        first.map_or(ErrhandlerH::FATAL, |(_, s)| s.errhandler)
    }
}

#[cold]
fn unknown_session(handle: SessionH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_SESSION_NULL".to_string()
    } else {
        format!("{:#x}, which names no session (finalized?)", handle.0)
    };
    Fault::new(Class::Session, format!("session is {what}"))
}
