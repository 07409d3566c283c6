//! Name of the job, and its parent if processes of another job have spawned it: it ends with them
//! while the two are connected (see [`kw_base::spawned`]).

use crate::ranks::{Source, watch};
use crate::verdict::Verdict;
use kw_base::spawned::{DISCONNECTED, GIVEN_UP, PARENT, PARENT_PORT};
use rustix::event::epoll;
use std::os::fd::OwnedFd;

/// Name and parent of this job.
#[derive(Debug)]
pub(super) struct Identity {
    /// Name of the job.
    pub(super) name: String,
    /// `rank 0 of job kw-17-...`; most jobs have no parent.
    parent: Option<String>,
}

/// Exit status of a job that its parent has given up, or has ended together with itself.
const WITH_PARENT: u8 = 1;

impl Identity {
    /// Identity of the job of this name; reads the parent from the environment.
    pub(super) fn new(name: String) -> Identity {
        let parent = kw_sys::environment::variable(PARENT);
        let spawned = kw_sys::environment::variable(PARENT_PORT).is_some();
        Identity {
            name,
            parent: parent.filter(|_| spawned),
        }
    }

    /// Whether our standard input carries messages of the parent.
    pub(super) fn has_parent(&self) -> bool {
        self.parent.is_some()
    }

    /// Watches our standard input, if it belongs to the parent.
    pub(super) fn watch(&self, epoll: &OwnedFd) -> rustix::io::Result<()> {
        match self.parent {
            Some(_) => watch(epoll, rustix::stdio::stdin(), Source::Parent),
            None => Ok(()),
        }
    }

    /// Name of the job among several; empty for a job without a parent.
    pub(super) fn title(&self) -> String {
        match &self.parent {
            Some(parent) => format!("job {}, spawned by {parent}: ", self.name),
            None => String::new(),
        }
    }

    /// A program of this job, for a trace, with the name of the job if it was spawned.
    pub(super) fn program_title(&self, program: &str) -> String {
        match &self.parent {
            Some(parent) => format!("{program} of job {}, spawned by {parent}", self.name),
            None => program.to_string(),
        }
    }

    /// Handles a message of the parent, or its end; returns the verdict if this ends the job.
    pub(super) fn on_parent(&self, epoll: &OwnedFd) -> Option<Verdict> {
        let mut word = [0];
        let read = rustix::io::read(rustix::stdio::stdin(), &mut word);
        if matches!(
            read,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN)
        ) {
            return None;
        }
        // The message is the last one.
        let _ = epoll::delete(epoll, rustix::stdio::stdin());
        let parent = self.parent.as_ref()?;
        let why = match (read, word[0]) {
            (Ok(1), DISCONNECTED) => return None,
            (Ok(1), GIVEN_UP) => format!("{parent} has given it up"),
            _ => format!(
                "{parent}, which has spawned it and is connected with it, has ended without MPI_Finalize; MPI_Comm_disconnect separates jobs"
            ),
        };
        let sentence = format!("job {} was ended because {why}", self.name);
        Some(Verdict::new(WITH_PARENT, sentence))
    }
}
