//! Background runs: those of non-blocking collectives. Each is a request, and advances with
//! [`crate::Engine::progress`].

use super::Failure;
use super::channel::{Channels, Watch};
use super::run::{Drive, Run, State};
use super::user::UserStep;
use crate::messages::ReqId;

/// See the module.
#[derive(Debug, Default)]
pub struct Running {
    runs: Vec<(ReqId, Box<Run>)>,
    /// Errors of runs that have ended, until they are taken.
    pub(crate) failed: Vec<(ReqId, Failure)>,
    /// A run has begun to wait on a shm region since a thread last made ready to sleep.
    unwatched: bool,
}

impl Running {
    /// Number of runs.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// All of them.
    #[cold]
    pub(super) fn all(&self) -> &[(ReqId, Box<Run>)] {
        &self.runs
    }

    /// The next run to drive, at the end of the list.
    pub(super) fn add(&mut self, req: ReqId, run: Box<Run>) {
        self.runs.push((req, run));
    }

    /// The run with this index, if it can be driven, which is not in the list then.
    pub(super) fn take_at(&mut self, at: usize) -> Option<(ReqId, Box<Run>)> {
        match self.runs[at].1.state {
            State::WantsUser | State::InUser => None,
            _ => Some(self.runs.swap_remove(at)),
        }
    }

    /// A run was advanced, and now waits: it is put back at the end; the walk of the list continues
    /// from there.
    pub(super) fn wait(&mut self, req: ReqId, mut run: Box<Run>, on: Drive) {
        run.state = match on {
            Drive::User => State::WantsUser,
            Drive::ShmRegion(watch) => State::OnShmRegion(watch),
            Drive::Waiting(req, _) if run.goes_on_after_send(req) => State::HeldBySend,
            Drive::Waiting(..) | Drive::Done => State::Ready,
        };
        self.unwatched |= run.waits_on().is_some();
        self.runs.push((req, run));
    }

    /// Removes a run for good.
    #[cold]
    pub(crate) fn take(&mut self, req: ReqId) -> Option<Box<Run>> {
        let at = self.index(req)?;
        Some(self.runs.swap_remove(at).1)
    }

    /// Whether the run with this index no longer has to wait on its shm region.
    pub(super) fn has_reached(&self, at: usize, channels: &Channels) -> bool {
        let waits = self.runs[at].1.waits_on();
        waits.is_some_and(|watch| channels.reached(watch))
    }

    /// Whether a run can only continue when a send has ended.
    pub(crate) fn is_held_by_send(&self) -> bool {
        let held = |r: &Run| matches!(r.state, State::HeldBySend);
        self.runs.iter().any(|(_, run)| held(run))
    }

    /// Its condition: on a shm region, or transfers that have not been taken, those of the
    /// comparison of the ranks' calls if that comes first.
    #[cold]
    pub(crate) fn waits_of(&self, req: ReqId) -> Option<(Option<Watch>, Vec<ReqId>)> {
        let (_, run) = self.runs.get(self.index(req)?)?;
        let check = run.signature_check.as_deref();
        let run = check.and_then(|check| check.under_way()).unwrap_or(run);
        let flights = run.flights().iter().filter_map(|f| f.req).collect();
        Some((run.waits_on(), flights))
    }

    /// Whether a run waits on a shm region, and began so after a thread last made ready to sleep.
    #[inline(always)]
    pub(crate) fn is_unwatched(&self) -> bool {
        self.unwatched
    }

    /// A thread of this rank is about to sleep: every condition of the runs on shm regions wakes
    /// it.
    pub(crate) fn watch(&mut self, channels: &mut Channels) {
        self.unwatched = false;
        for watch in self.runs.iter().filter_map(|(_, run)| run.waits_on()) {
            channels.sleep_for(watch);
        }
    }

    /// Whether a run waits for a call of a user's function.
    #[inline]
    pub fn wants_user(&self) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|(_, r)| matches!(r.state, State::WantsUser))
    }

    /// A call of a user's function that a run waits for. Make it with the lock released, then call
    /// [`super::Collectives::user_step_done`].
    pub fn take_user_step(&mut self) -> Option<(ReqId, UserStep)> {
        let mut runs = self.runs.iter_mut();
        let (req, run) = runs.find(|(_, r)| matches!(r.state, State::WantsUser))?;
        run.state = State::InUser;
        Some((*req, run.user_step()?))
    }

    /// The call has returned; returns the index of the run.
    pub(super) fn user_done(&mut self, req: ReqId) -> Option<usize> {
        let at = self.index(req)?;
        self.runs[at].1.user_done();
        Some(at)
    }

    fn index(&self, req: ReqId) -> Option<usize> {
        self.runs.iter().position(|r| r.0 == req)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::Key;

    fn request(index: u32) -> ReqId {
        ReqId(Key {
            index,
            generation: 0,
        })
    }

    #[test]
    fn a_run_that_wants_its_user_is_not_driven_before_he_has_returned() {
        let mut running = Running::default();
        let run = Box::new(Run {
            state: State::WantsUser,
            ..Run::default()
        });
        running.add(request(0), run);
        assert!(running.wants_user() && running.take_at(0).is_none());
        assert_eq!(running.user_done(request(0)), Some(0));
        assert!(!running.wants_user());
        let (req, run) = running.take_at(0).expect("it can be driven");
        assert_eq!((req, running.len()), (request(0), 0));
        running.wait(req, run, Drive::Done);
        assert!(running.take(request(1)).is_none() && running.take(req).is_some());
    }
}
