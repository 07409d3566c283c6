//! Ranks that never join: a program of another MPI library that cannot speak with us runs as many
//! jobs of one rank each, and all seems well.

use super::Job;
use crate::elf::{self, OtherMpi};

impl Job {
    /// A rank has ended, and none has ever spoken to us. Says so, once, when its program is linked
    /// with another MPI library.
    pub(super) fn doubt(&mut self, rank: u32) {
        if self.joined || self.doubted || self.ranks.len() < 2 {
            return;
        }
        self.doubted = true;
        let app = self.plan.ranks[rank as usize].app;
        let program = &self.plan.apps[app].program;
        if let Some(OtherMpi { name, whose }) = elf::other_mpi(program) {
            let program = program.display();
            let said = format!(
                "mpiexec: no rank has joined the job: '{program}' is linked with {name} {whose}, not with Kittiwake, so each \
                 rank may be a job of its own; compile it with Kittiwake's mpicc, or use that library's mpiexec\n"
            );
            self.sinks[1].push(said.into_bytes());
        }
    }
}
