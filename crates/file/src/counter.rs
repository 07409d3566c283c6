//! The shared file pointer, and the lock of atomic mode. No hidden file, and no file lock.
//!
//! If all ranks are on one host, the pointer is in memory that they share. Otherwise rank 0 of the
//! file's ranks keeps it, and answers whether or not its program is in MPI; the same applies to the
//! lock once atomic mode was requested.

use crate::agree::Ranks;
use kw_base::sync::{Mutex, MutexGuard};
use kw_engine::{HostCounter, Question, SharedCounterId, Started, answer_buf, answer_of, ask};
use kw_mpi::chapter::{finish, running};
use kw_objects::Group;
use kw_objects::error::Res;
use kw_objects::state::Mpi;
use std::sync::PoisonError;

/// The rank that keeps the number.
const KEEPER: u32 = 0;
/// Claim of a keeper that has no memory to share.
pub const NO_MEMORY: u32 = u32::MAX;

/// Location of the shared file pointer.
#[derive(Debug)]
enum Number {
    /// With the only rank.
    Own(u64),
    /// In the memory of the host.
    Host(HostCounter),
    /// At the keeper.
    Kept,
    /// The file is closed.
    Gone,
}

/// The shared file pointer of one file, as a rank sees it.
#[derive(Debug)]
pub struct Counter {
    ranks: Ranks,
    number: Mutex<Number>,
    /// Keeper of the pointer, or the lock, on this rank.
    kept: Mutex<Option<SharedCounterId>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Claims memory of the host for the number. The keeper calls it, and tells the others.
pub fn claim(mpi: &Mpi) -> Res<u32> {
    let mut guard = mpi.lock();
    let messages = &mut running(&mut guard)?.0.messages;
    Ok(HostCounter::claim(messages).unwrap_or(NO_MEMORY))
}

/// The number in the memory that the keeper has claimed, if there is any and this rank finds it.
pub fn reach(mpi: &Mpi, claimed: u32, group: &Group) -> Res<Option<HostCounter>> {
    if claimed == NO_MEMORY {
        return Ok(None);
    }
    let mut guard = mpi.lock();
    let messages = &mut running(&mut guard)?.0.messages;
    Ok(HostCounter::open(messages, claimed, group))
}

impl Counter {
    /// The number, initially 0, in the memory that all ranks have reached, or with the keeper.
    pub fn new(mpi: &Mpi, ranks: &Ranks, reached: Option<HostCounter>) -> Res<Counter> {
        let number = match (ranks.group.size(), reached) {
            (1, _) => Number::Own(0),
            (_, Some(counter)) => Number::Host(counter),
            (_, None) => Number::Kept,
        };
        let is_kept = matches!(number, Number::Kept);
        let counter = Counter {
            ranks: ranks.clone(),
            number: Mutex::new(number),
            kept: Mutex::new(None),
        };
        if is_kept {
            counter.keep(mpi)?;
        }
        Ok(counter)
    }

    /// Makes the keeper answer from now on. Earlier questions wait.
    pub fn keep(&self, mpi: &Mpi) -> Res {
        let mut kept = locked(&self.kept);
        if self.ranks.rank != KEEPER || kept.is_some() {
            return Ok(());
        }
        let mut guard = mpi.lock();
        let engine = running(&mut guard)?.0;
        let (parts, messages) = (&mut engine.parts, &mut engine.messages);
        let group = self.ranks.group.clone();
        let (context, me) = (self.ranks.counting, self.ranks.rank);
        *kept = Some(parts.shared_counters.keep(messages, context, group, me));
        Ok(())
    }

    /// Closes the pointer, when no rank uses it any more.
    pub fn close(&self, mpi: &Mpi) -> Res {
        let number = std::mem::replace(&mut *locked(&self.number), Number::Gone);
        if let Number::Host(counter) = number {
            counter.leave();
        }
        if let Some(id) = locked(&self.kept).take() {
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
        // Rank 0 answers itself in its next poll.
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

    /// The old value of the number, if it can be changed without a question to the keeper.
    fn change(
        &self,
        new: impl FnOnce(u64) -> u64,
        shared: impl FnOnce(&HostCounter) -> u64,
    ) -> Option<u64> {
        match &mut *locked(&self.number) {
            Number::Own(at) => {
                let old = *at;
                *at = new(old);
                Some(old)
            }
            Number::Host(counter) => Some(shared(counter)),
            Number::Kept | Number::Gone => None,
        }
    }

    /// The pointer.
    pub fn get(&self, mpi: &Mpi) -> Res<u64> {
        self.fetch_add(mpi, 0, u64::MAX)
    }

    /// Adds to the pointer if it is at most `highest`; returns its old value.
    pub fn fetch_add(&self, mpi: &Mpi, more: u64, highest: u64) -> Res<u64> {
        let sum = |old: u64| match old <= highest {
            true => old.wrapping_add(more),
            false => old,
        };
        match self.change(sum, |c| c.add(more, highest)) {
            Some(old) => Ok(old),
            None => self.ask(mpi, Question::Add { more, highest }),
        }
    }

    /// Sets the pointer.
    pub fn set(&self, mpi: &Mpi, value: u64) -> Res {
        match self.change(|_| value, |c| c.set(value)) {
            Some(_) => Ok(()),
            None => self.ask(mpi, Question::Set(value)).map(drop),
        }
    }

    /// Takes the lock.
    pub fn lock(&self, mpi: &Mpi) -> Res {
        self.ask(mpi, Question::Lock).map(drop)
    }

    /// Releases the lock.
    pub fn unlock(&self, mpi: &Mpi) -> Res {
        self.ask(mpi, Question::Unlock).map(drop)
    }
}
