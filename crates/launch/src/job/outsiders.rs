//! Ranks that never join: a program of another MPI library that cannot speak with us runs as many
//! jobs of one rank each, and all seems well.

use std::path::Path;

use crate::elf::{self, OtherMpi};

/// Whether ranks have joined.
#[derive(Debug, Default)]
pub(super) struct Outsiders {
    /// A rank has spoken to the PMI server.
    joined: bool,
    /// We have asked why none has.
    asked: bool,
}

impl Outsiders {
    /// A rank has spoken.
    pub(super) fn on_joined(&mut self) {
        self.joined = true;
    }

    /// A rank of this program has ended, and none has ever spoken to us. What is to be said, once,
    /// when the program is linked with another MPI library.
    pub(super) fn on_ended(&mut self, program: &Path) -> Option<String> {
        if self.joined || std::mem::replace(&mut self.asked, true) {
            return None;
        }
        let OtherMpi { name, whose } = elf::other_mpi(program)?;
        let program = program.display();
        Some(format!(
            "mpiexec: no rank has joined the job: '{program}' is linked with {name} {whose}, not with Kittiwake, so each \
             rank may be a job of its own; compile it with Kittiwake's mpicc, or use that library's mpiexec\n"
        ))
    }
}
