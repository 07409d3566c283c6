//! The shared file pointer, and the lock of atomic mode: both are kept by rank 0 of the file's ranks,
//! which answers whether or not its program is in MPI. No hidden file, and no file lock.

use crate::agree::Ranks;
use kw_base::sync::Mutex;
use kw_engine::{Question, SharedCounterId, Started, answer_buf, answer_of, ask};
use kw_mpi::chapter::{finish, running};
use kw_objects::error::Res;
use kw_objects::state::Mpi;

/// The rank that keeps the number.
const KEEPER: u32 = 0;

/// The shared file pointer of one file, as a rank sees it.
#[derive(Debug)]
pub struct Counter {
    ranks: Ranks,
    /// Where this rank keeps it.
    kept: Mutex<Option<SharedCounterId>>,
}

impl Counter {
    /// Rank 0 keeps the number from now on.
    pub fn open(mpi: &Mpi, ranks: &Ranks) -> Res<Counter> {
        let mut kept = None;
        if ranks.rank == KEEPER {
            let mut guard = mpi.lock();
            let engine = running(&mut guard)?.0;
            let (parts, messages) = (&mut engine.parts, &mut engine.messages);
            let group = ranks.group.clone();
            let id = parts
                .shared_counters
                .keep(messages, ranks.counting, group, ranks.rank);
            kept = Some(id);
        }
        Ok(Counter {
            ranks: ranks.clone(),
            kept: Mutex::new(kept),
        })
    }

    /// Nobody asks any more.
    pub fn close(&self, mpi: &Mpi) -> Res {
        let kept = self.kept.lock().ok().and_then(|mut kept| kept.take());
        if let Some(id) = kept {
            let mut guard = mpi.lock();
            let engine = running(&mut guard)?.0;
            engine
                .parts
                .shared_counters
                .forget(&mut engine.messages, id);
        }
        Ok(())
    }

    fn ask(&self, mpi: &Mpi, question: Question) -> Res<u64> {
        let answer = answer_buf();
        let mut guard = mpi.lock();
        let engine = running(&mut guard)?.0;
        let ends = (&*self.ranks.group, self.ranks.rank);
        let context = self.ranks.counting;
        let (sent, answered) = ask(
            &mut engine.messages,
            context,
            ends,
            KEEPER,
            question,
            &answer,
        );
        // Rank 0 answers itself in its next look.
        engine.look_after_sending();
        drop(guard);
        let keeper = Some(self.ranks.group.peer(KEEPER));
        if let Some(id) = answered {
            finish(mpi, id, keeper)?;
        }
        if let Started::Request(id) = sent {
            finish(mpi, id, keeper)?;
        }
        Ok(answer_of(&answer))
    }

    /// Adds to the pointer; returns what it was.
    pub fn fetch_add(&self, mpi: &Mpi, more: u64) -> Res<u64> {
        self.ask(mpi, Question::Add(more))
    }

    /// Sets the pointer.
    pub fn set(&self, mpi: &Mpi, value: u64) -> Res {
        self.ask(mpi, Question::Set(value)).map(drop)
    }

    /// Takes the lock.
    pub fn lock(&self, mpi: &Mpi) -> Res {
        self.ask(mpi, Question::Lock).map(drop)
    }

    /// Gives it back.
    pub fn unlock(&self, mpi: &Mpi) -> Res {
        self.ask(mpi, Question::Unlock).map(drop)
    }
}
