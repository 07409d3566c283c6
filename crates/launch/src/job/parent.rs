//! A job spawned by processes of another one: it ends with them while the two are connected (see
//! [`kw_base::spawned`]).

use super::Job;
use crate::ask::{QUESTION, Question};
use crate::ranks::{Source, watch};
use crate::verdict::Verdict;
use kw_base::Tick;
use kw_base::spawned::{DISCONNECTED, GIVEN_UP, PARENT, PARENT_PORT};
use kw_sys::signals;
use rustix::event::epoll;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// The parent of this job; most jobs have none.
#[derive(Debug, Default)]
pub(super) struct Parent {
    /// `rank 0 of job kw-17-...`
    name: Option<String>,
}

/// Exit status of a job that its parent has given up, or has ended together with itself.
const WITH_PARENT: u8 = 1;

impl Parent {
    /// Reads the parent from the environment.
    pub(super) fn of_environment() -> Parent {
        let name = kw_sys::environment::variable(PARENT);
        let spawned = kw_sys::environment::variable(PARENT_PORT).is_some();
        Parent {
            name: name.filter(|_| spawned),
        }
    }

    /// Whether our standard input carries messages of the parent.
    pub(super) fn is_there(&self) -> bool {
        self.name.is_some()
    }

    /// Watches our standard input, if it belongs to the parent.
    pub(super) fn watch(&self, epoll: &OwnedFd) -> rustix::io::Result<()> {
        match self.name {
            Some(_) => watch(epoll, rustix::stdio::stdin(), Source::Parent),
            None => Ok(()),
        }
    }
}

impl Job {
    /// Name of the job among several; empty for a job without a parent.
    pub(super) fn title(&self) -> String {
        match &self.parent.name {
            Some(parent) => format!("job {}, spawned by {parent}: ", self.name),
            None => String::new(),
        }
    }

    /// A program of this job, for a trace, with the name of the job if it was spawned.
    pub(super) fn program_title(&self, program: &str) -> String {
        match &self.parent.name {
            Some(parent) => format!("{program} of job {}, spawned by {parent}", self.name),
            None => program.to_string(),
        }
    }

    /// The jobs that ranks on this host have spawned: the process id of each mpiexec, and the rank.
    pub(super) fn children(&self) -> Vec<(u32, u32)> {
        let ranks = self.plan.here().into_iter().map(|r| r as u32);
        let pid = |rank| Some((self.hosts.here.pid(rank)?, rank));
        let pids: HashMap<u32, u32> = ranks.filter_map(pid).collect();
        let starters: Vec<u32> = pids.keys().copied().collect();
        let launchers = kw_sys::neighbours::launchers_of(&starters).into_iter();
        launchers.map(|(pid, by)| (pid, pids[&by])).collect()
    }

    /// Passes a question to this job on to the jobs that its ranks have spawned.
    pub(super) fn ask_children(&self) {
        for (pid, _) in self.children() {
            // One that has ended meanwhile gives no answer.
            let _ = signals::send(pid as i32, QUESTION, Question::Ranks as i32);
        }
    }

    /// A line for each of the jobs that ranks have spawned.
    pub(super) fn list_children(&self) -> String {
        let line = |(pid, rank)| {
            format!("  rank {rank} has spawned the job of mpiexec with process id {pid}\n")
        };
        self.children().into_iter().map(line).collect()
    }

    /// Handles a message of the parent, or its end.
    pub(super) fn on_parent(&mut self, now: Tick) {
        let mut word = [0];
        let read = rustix::io::read(rustix::stdio::stdin(), &mut word);
        if matches!(
            read,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN)
        ) {
            return;
        }
        // The message is the last one.
        let _ = epoll::delete(&self.hosts.epoll, rustix::stdio::stdin());
        let Some(parent) = &self.parent.name else {
            return;
        };
        let why = match (read, word[0]) {
            (Ok(1), DISCONNECTED) => return,
            (Ok(1), GIVEN_UP) => format!("{parent} has given it up"),
            _ => format!(
                "{parent}, which has spawned it and is connected with it, has ended without MPI_Finalize; MPI_Comm_disconnect separates jobs"
            ),
        };
        let sentence = format!("job {} was ended because {why}", self.name);
        self.phases.fail(Verdict::new(WITH_PARENT, sentence), now);
    }
}
