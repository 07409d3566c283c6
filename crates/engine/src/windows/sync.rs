//! Synchronisation: the begin and end of epochs, and waits for them.

use super::{WinId, Window, WindowError, Windows};
use crate::messages::{Messages, ReqId, Started};
use kw_base::sync::atomic::{Ordering, fence};
use kw_proto::endpoint::{Failure, Outcome};
use kw_proto::rma::{Access, EpochStart, Frame, LockMode};
use kw_sys::clock;
use kw_waiting::Spin;
use std::time::Duration;

/// When a wait ends.
#[derive(Debug)]
pub(super) enum Until {
    /// All flights to a rank, or to all, up to this number have ended.
    Flown(Option<u32>, u64),
    /// Frames for these ranks have been sent, and flights up to this number have ended.
    Sent(Vec<u32>, u64),
    /// The fence has ended, and so have flights up to this number.
    Fenced(u64),
    /// All origins have called MPI_Win_complete.
    Completed,
    /// These ranks have called MPI_Win_post.
    Posted(Vec<u32>),
}

/// A request that ends with something on a window.
#[derive(Debug)]
pub(super) struct Waiter {
    pub req: ReqId,
    pub until: Until,
}

impl Window {
    fn has_ended(&self, until: &Until) -> bool {
        match until {
            Until::Flown(rank, number) => self.out.flights.have_ended(*rank, *number),
            Until::Sent(ranks, number) => {
                let sent = |&rank: &u32| {
                    self.out.origin.waiting(rank) == 0
                        && self.out.flights.have_ended(Some(rank), *number)
                };
                ranks.iter().all(sent)
            }
            Until::Fenced(number) => {
                self.exposure.target.has_fenced() && self.out.flights.have_ended(None, *number)
            }
            Until::Completed => self.has_completed(),
            Until::Posted(ranks) => !ranks.iter().any(|&r| self.awaits_post(r)),
        }
    }

    /// The error of the operation that was waited for.
    fn failure(&mut self, until: &Until) -> Option<Failure> {
        match until {
            Until::Flown(rank, _) => self.out.flights.take_failure(*rank),
            Until::Sent(ranks, _) => ranks
                .iter()
                .find_map(|&r| self.out.flights.take_failure(Some(r))),
            Until::Fenced(_) => self.out.flights.take_failure(None),
            Until::Completed => {
                self.exposure.memory.end_posted();
                None
            }
            Until::Posted(_) => None,
        }
    }

    /// The rank whose end makes a wait endless, and why it is gone.
    fn gone(&self, messages: &Messages, until: &Until) -> Option<Failure> {
        let peers = &messages.machine.endpoint.peers;
        let why = |rank: u32| peers.why_gone(self.channel.peer(rank));
        let why = match until {
            Until::Flown(..) => None,
            Until::Sent(ranks, _) => {
                let mut waits = ranks.iter().filter(|&&r| self.out.origin.waiting(r) != 0);
                waits.find_map(|&rank| why(rank))
            }
            Until::Fenced(_) if self.exposure.target.has_fenced() => None,
            Until::Fenced(_) => (0..self.channel.size()).find_map(why),
            Until::Completed => self.not_completed().find_map(why),
            Until::Posted(ranks) => {
                let mut waits = ranks.iter().filter(|&&r| self.awaits_post(r));
                waits.find_map(|&rank| why(rank))
            }
        };
        why.map(|why| Failure::PeerGone(why.to_string()))
    }

    /// Waits, if that is needed.
    fn wait(&mut self, messages: &mut Messages, until: Until) -> Started {
        if !self.has_ended(&until) {
            self.out.expect_answers(messages);
        }
        if self.has_ended(&until) || self.advance(messages) && self.has_ended(&until) {
            return match self.failure(&until) {
                None => Started::Done,
                Some(failure) => {
                    let req = messages.requests_mut().open();
                    messages.requests_mut().close(req, Outcome::failed(failure));
                    Started::Request(req)
                }
            };
        }
        match &until {
            Until::Completed => self.posts.mark_completes(),
            Until::Posted(ranks) => self.posts.mark_posts(ranks),
            _ => {}
        }
        let req = messages.requests_mut().open();
        self.waiters.push(Waiter { req, until });
        // A marked post or complete may have come before.
        self.end_waits(messages);
        Started::Request(req)
    }

    /// Ends waits whose condition has come true, or never will.
    pub(super) fn end_waits(&mut self, messages: &mut Messages) {
        let mut i = 0;
        while i < self.waiters.len() {
            let until = &self.waiters[i].until;
            let ended = self.has_ended(until);
            let gone = match ended {
                true => None,
                false => self.gone(messages, until),
            };
            if !ended && gone.is_none() {
                i += 1;
                continue;
            }
            let Waiter { req, until } = self.waiters.remove(i);
            match gone.or_else(|| self.failure(&until)) {
                None => messages.requests_mut().close(req, Outcome::CLEAN),
                Some(failure) => messages.requests_mut().close(req, Outcome::failed(failure)),
            }
        }
    }

    /// Waits until an operation has ended here.
    pub(super) fn request(&mut self, messages: &mut Messages, rank: u32, last: u64) -> Started {
        if self.out.flights.have_ended(Some(rank), last) {
            return Started::Done;
        }
        self.out.push_out(messages, rank);
        self.wait(messages, Until::Flown(Some(rank), last))
    }

    /// Begins a lock epoch on a target. The lock of memory in reach is taken before the program
    /// goes on, because loads and stores may follow.
    fn lock_target(&mut self, messages: &mut Messages, rank: u32, mode: LockMode, check: bool) {
        match self.near.is_direct(rank) {
            true if !check
                || self
                    .near
                    .try_lock(&mut self.exposure.memory.locks, rank, mode) => {}
            true => {
                self.out.origin.open(rank, opening(mode, check));
                self.out.ask(messages, rank, |tag| Frame::Flush { tag });
                self.out.push_out(messages, rank);
                self.near.held.push(rank);
            }
            false => self.out.origin.open(rank, opening(mode, check)),
        }
    }

    fn all_so_far(&mut self, messages: &mut Messages, rank: Option<u32>) -> Started {
        if rank.is_some_and(|rank| self.out.flights.is_clean(rank)) {
            return Started::Done;
        }
        let last = self.out.flights.last();
        self.wait(messages, Until::Flown(rank, last))
    }

    /// Asks a target to report when everything before has ended, if anything needs an answer;
    /// `alone`: no other target is asked.
    fn flush_target(&mut self, messages: &mut Messages, rank: u32, alone: bool) {
        let flush = |tag| Frame::Flush { tag };
        // A check has to learn of the end of a get as well, which its data tells only here.
        let checked = self.out.is_checked && self.out.origin.epoch(rank).is_some();
        match (self.out.origin.take_unanswered(rank) || checked, alone) {
            (true, true) => self.out.ask_at_once(messages, rank, flush),
            (false, true) => self.out.push_out_and_poll(messages, rank),
            (true, false) => self.out.ask(messages, rank, flush),
            (false, false) => {}
        }
        self.out.push_out(messages, rank);
    }

    /// Ends the lock epoch of a target, if it has begun there; `alone`: no other ends at once.
    fn unlock_target(&mut self, messages: &mut Messages, rank: u32, alone: bool) {
        if self.near.is_direct(rank) {
            return self.unlock_direct(messages, rank);
        }
        if self.out.origin.close(rank) {
            return;
        }
        self.out.origin.take_unanswered(rank);
        let unlock = |tag| Frame::Unlock { tag };
        match alone {
            true => self.out.ask_at_once(messages, rank, unlock),
            false => self.out.ask(messages, rank, unlock),
        }
        self.out.push_out(messages, rank);
    }
}

fn opening(mode: LockMode, check: bool) -> EpochStart {
    match check {
        true => EpochStart::Lock(mode),
        false => EpochStart::Unchecked,
    }
}

/// The epoch has changed when a call returns, whatever its request still waits for.
impl Windows {
    /// MPI_Win_fence, first half: operations that this rank has issued to each rank since the last
    /// one. The sum over all ranks of those on this rank is for [`Windows::fence_end`]. `succeeds`:
    /// not MPI_MODE_NOSUCCEED.
    pub fn fence(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        succeeds: bool,
    ) -> Result<Vec<u64>, WindowError> {
        let window = self.get_mut(id)?;
        let fenced = matches!(window.epochs.access(), Access::Fence { .. });
        window.epochs.fence(succeeds)?;
        window.publish_epoch();
        window.tally.epochs += succeeds as u64;
        window.exposure.memory.free_buffers(None);
        window.out.push_all_out(messages);
        if !fenced {
            window.out.origin.forget_counts();
        }
        Ok(window.out.origin.fence(window.channel.size(), succeeds))
    }

    /// Its second half: this many operations on this rank's memory belong to the epoch.
    pub fn fence_end(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        expected: u64,
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.exposure.fence(messages, expected);
        let until = Until::Fenced(window.out.flights.last());
        self.look_for_frames(messages, id, &until);
        Ok(self.get_mut(id)?.wait(messages, until))
    }

    /// Polls for frames that a wait is for, for as long as a polling rank of this host takes to
    /// answer.
    fn look_for_frames(&mut self, messages: &mut Messages, id: WinId, until: &Until) {
        if messages.paths.ranks().is_none() {
            return;
        }
        let mut spin = Spin::new(messages.at_once);
        while let Some(window) = self.all.get(id.0)
            && !window.has_ended(until)
        {
            if !self.take_at_once(messages) && !spin.goes_on(clock::now) {
                return;
            }
        }
    }

    /// Polls on for what a target sends back, for as long as a polling one takes, and applies
    /// meanwhile what others want of this rank: the target may wait for the same. Most answers have
    /// come before, while this rank polled for nothing else, which is quicker
    /// ([`Outgoing::ask_at_once`](super::outgoing::Outgoing::ask_at_once)).
    fn serve_until_answered(&mut self, messages: &mut Messages, id: WinId, rank: u32) {
        let mut spin = Spin::new(messages.at_once);
        while let Some(window) = self.all.get_mut(id.0)
            && window.serves
            && window.out.poll_for_flight(messages, rank, Duration::ZERO)
        {
            if !self.take_at_once(messages) && !spin.goes_on(clock::now) {
                return;
            }
        }
    }

    /// MPI_Win_post.
    pub fn post(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        ranks: &[u32],
    ) -> Result<(), WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.post()?;
        window.exposure.memory.end_posted();
        window.published.publish_posted(true);
        window.post_for(messages, ranks);
        Ok(())
    }

    /// MPI_Win_start.
    pub fn start(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        ranks: &[u32],
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.start(ranks)?;
        window.publish_epoch();
        window.tally.epochs += 1;
        ranks.iter().for_each(|&rank| window.await_post(rank));
        // Operations that need no message need the target's consent before.
        let direct = ranks.iter().copied().filter(|&r| window.near.is_direct(r));
        let direct: Vec<u32> = direct.collect();
        Ok(match direct.is_empty() {
            true => Started::Done,
            false => {
                window.posts.look_for_posts(messages, &direct);
                window.wait(messages, Until::Posted(direct))
            }
        })
    }

    /// MPI_Win_complete.
    pub fn complete(&mut self, messages: &mut Messages, id: WinId) -> Result<Started, WindowError> {
        if self.serve() {
            // Posts that are here let the operations go at once.
            self.take_at_once(messages);
        }
        let window = self.get_mut(id)?;
        let ranks = window.epochs.complete()?;
        window.publish_epoch();
        window.exposure.memory.free_buffers(None);
        for &rank in &ranks {
            if !window.complete_shared(messages, rank) {
                window.out.origin.push_control(rank, Frame::Complete);
                window.out.push_out(messages, rank);
            }
        }
        let until = Until::Sent(ranks, window.out.flights.last());
        self.look_for_frames(messages, id, &until);
        Ok(self.get_mut(id)?.wait(messages, until))
    }

    /// MPI_Win_wait.
    pub fn wait(&mut self, messages: &mut Messages, id: WinId) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.check_posted()?;
        window.epochs.unpost();
        window.published.publish_posted(false);
        window.posts.look_for_completes(messages);
        self.look_for_frames(messages, id, &Until::Completed);
        Ok(self.get_mut(id)?.wait(messages, Until::Completed))
    }

    /// MPI_Win_test: whether the epoch of MPI_Win_post has ended.
    pub fn test(&mut self, messages: &mut Messages, id: WinId) -> Result<bool, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.check_posted()?;
        window.advance(messages);
        let ended = window.has_completed();
        if ended {
            window.epochs.unpost();
            window.published.publish_posted(false);
            window.exposure.memory.end_posted();
        }
        Ok(ended)
    }

    /// MPI_Win_lock; `check`: not MPI_MODE_NOCHECK.
    pub fn lock(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        rank: u32,
        mode: LockMode,
        check: bool,
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.give_strays_back(messages);
        window.epochs.lock(rank)?;
        window.publish_epoch();
        window.tally.epochs += 1;
        window.lock_target(messages, rank, mode, check);
        Ok(match window.near.is_direct(rank) {
            true => window.all_so_far(messages, Some(rank)),
            false => Started::Done,
        })
    }

    /// MPI_Win_unlock.
    pub fn unlock(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        rank: u32,
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.unlock(rank)?;
        window.publish_epoch();
        window.exposure.memory.end_own_operations(Some(rank));
        window.unlock_target(messages, rank, true);
        self.serve_until_answered(messages, id, rank);
        Ok(self.get_mut(id)?.all_so_far(messages, Some(rank)))
    }

    /// Tells a rank in reach that a lock was given back for which a rank waits.
    pub fn wake(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        rank: u32,
    ) -> Result<(), WindowError> {
        self.get_mut(id)?.pass_on(messages, rank);
        Ok(())
    }

    /// MPI_Win_lock_all; `check`: not MPI_MODE_NOCHECK.
    pub fn lock_all(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        check: bool,
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.lock_all()?;
        window.publish_epoch();
        window.tally.epochs += 1;
        window.out.origin.open_all(opening(LockMode::Shared, check));
        for rank in window.near.ranks() {
            window.out.origin.close(rank);
            window.lock_target(messages, rank, LockMode::Shared, check);
        }
        Ok(window.all_so_far(messages, None))
    }

    /// MPI_Win_unlock_all.
    pub fn unlock_all(
        &mut self,
        messages: &mut Messages,
        id: WinId,
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.unlock_all()?;
        window.publish_epoch();
        window.exposure.memory.end_own_operations(None);
        for rank in window.near.ranks() {
            window.unlock_target(messages, rank, false);
        }
        for rank in window.out.origin.begun() {
            if !window.near.is_direct(rank) {
                window.unlock_target(messages, rank, false);
            }
        }
        window.out.origin.close_all();
        Ok(window.all_so_far(messages, None))
    }

    /// MPI_Win_flush of a rank, or MPI_Win_flush_all.
    pub fn flush(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        rank: Option<u32>,
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.check_flush(rank)?;
        window.exposure.memory.end_own_operations(rank);
        if rank == Some(window.channel.me) {
            // As in [`Windows::sync`].
            window.out.push_all_out(messages);
        }
        match rank {
            Some(rank) => {
                window.flush_target(messages, rank, true);
                self.serve_until_answered(messages, id, rank);
            }
            None => {
                for rank in window.out.origin.begun() {
                    window.flush_target(messages, rank, false);
                }
            }
        }
        let window = self.get_mut(id)?;
        if rank.is_none_or(|rank| window.near.is_direct(rank)) {
            fence(Ordering::SeqCst);
        }
        Ok(window.all_so_far(messages, rank))
    }

    /// MPI_Win_flush_local of a rank, or MPI_Win_flush_local_all.
    pub fn flush_local(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        rank: Option<u32>,
    ) -> Result<Started, WindowError> {
        let window = self.get_mut(id)?;
        window.epochs.check_flush(rank)?;
        window.exposure.memory.free_buffers(rank);
        match rank {
            Some(rank) => window.out.push_out(messages, rank),
            None => window.out.push_all_out(messages),
        }
        let last = window.out.flights.last_local(rank);
        Ok(window.wait(messages, Until::Flown(rank, last)))
    }

    /// MPI_Win_sync. A program that calls it in a loop waits for other ranks' accesses to its
    /// memory, and they may wait for operations that it has issued: these leave now.
    pub fn sync(&mut self, messages: &mut Messages, id: WinId) -> Result<(), WindowError> {
        self.get_mut(id)?.out.push_all_out(messages);
        fence(Ordering::SeqCst);
        Ok(())
    }
}
