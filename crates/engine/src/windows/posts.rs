//! Post, start, complete and wait (MPI 5.0, 12.5.2): with ranks whose memory is shared by counts in
//! that memory, with others by frames.
//!
//! A target counts its posts for an origin up, and an origin its completes. A rank that waits polls
//! for a moment, then marks the count and sleeps as for a message: the other sends [`Frame::Wake`]
//! when it counts up a marked count.

use super::Window;
use super::direct::Shared;
use crate::messages::Messages;
use kw_base::sync::spin_hint;
use kw_path::shm::window::Count;
use kw_proto::rma::Frame;
use std::sync::Arc;

/// The counts of the ranks that share memory, as far as this rank waits for them.
#[derive(Debug)]
pub(super) struct Posts {
    shared: Option<Arc<Shared>>,
    /// For each place: posts that it has waited for as an origin.
    posts: Vec<u32>,
    /// Completes that it has waited for, as a target.
    completes: Vec<u32>,
    /// Origins of the posted epoch that share memory.
    origins: Vec<u32>,
}

/// Polls of counts before messages are used, where ranks share CPUs: about as long as a message
/// takes. Built-in.
const LOOKS: u32 = 200;
/// The same where each rank has a CPU. If one rank stops polling too early, the other has to send a
/// message, the first is late, and then the other stops polling, too. Built-in.
const LOOKS_ALONE: u32 = 1000;

fn next(count: &mut u32) {
    // The highest bit is a mark.
    *count = (*count + 1) & (u32::MAX >> 1);
}

impl Posts {
    pub fn new(shared: Option<Arc<Shared>>) -> Posts {
        let places = shared.as_ref().map_or(0, |s| s.memory.ranks());
        Posts {
            shared,
            posts: vec![0; places],
            completes: vec![0; places],
            origins: Vec::new(),
        }
    }

    /// The posts of a rank for this one, and how many are awaited; if its memory is shared.
    fn posts_of(&self, rank: u32) -> Option<(Count<'_>, u32)> {
        let (shared, place) = self.shared_place(rank)?;
        let count = shared.memory.posts(place, shared.memory.index());
        Some((count, self.posts[place]))
    }

    fn shared_place(&self, rank: u32) -> Option<(&Shared, usize)> {
        let shared = self.shared.as_deref()?;
        Some((shared, shared.place(rank)?))
    }

    /// An epoch of MPI_Win_post begins.
    fn begin(&mut self) {
        self.origins.clear();
    }

    /// Posts for an origin that shares memory; returns whether it asked for a message. `None`: it
    /// shares none.
    fn post(&mut self, rank: u32) -> Option<bool> {
        let (shared, place) = self.shared_place(rank)?;
        let notified = shared.memory.posts(shared.memory.index(), place).add();
        next(&mut self.completes[place]);
        self.origins.push(rank);
        Some(notified)
    }

    /// MPI_Win_start names this target, if it shares memory; returns whether it does.
    fn start(&mut self, rank: u32) -> bool {
        let Some((_, place)) = self.shared_place(rank) else {
            return false;
        };
        next(&mut self.posts[place]);
        true
    }

    /// Completes at a target that shares memory; returns whether it asked for a message. `None`: it
    /// shares none.
    fn complete(&self, rank: u32) -> Option<bool> {
        let (shared, place) = self.shared_place(rank)?;
        Some(shared.memory.completes(place, shared.memory.index()).add())
    }

    /// Origins that share memory and have not completed, with the count of their completes.
    fn not_completed(&self) -> impl Iterator<Item = (u32, Count<'_>)> {
        self.origins.iter().filter_map(move |&rank| {
            let (shared, place) = self.shared_place(rank)?;
            let count = shared.memory.completes(shared.memory.index(), place);
            (!count.reached(self.completes[place])).then_some((rank, count))
        })
    }

    fn have_completed(&self) -> bool {
        self.not_completed().next().is_none()
    }

    /// Polls for a moment until the origins that share memory have completed.
    pub fn look_for_completes(&self, messages: &Messages) {
        look_until(messages, || self.have_completed());
    }

    /// Polls for a moment until those of these ranks that share memory have posted. The
    /// posts of others come as frames.
    pub fn look_for_posts(&self, messages: &Messages, ranks: &[u32]) {
        let missing = |&rank: &u32| {
            let posts = self.posts_of(rank);
            posts.is_some_and(|(count, number)| !count.reached(number))
        };
        look_until(messages, || !ranks.iter().any(missing));
    }

    /// Asks these ranks to send a message when they post. Check the counts again afterwards.
    pub fn mark_posts(&self, ranks: &[u32]) {
        for (count, number) in ranks.iter().filter_map(|&rank| self.posts_of(rank)) {
            if !count.reached(number) {
                count.wait();
            }
        }
    }

    /// Asks origins to send a message when they complete. Check the counts again afterwards.
    pub fn mark_completes(&self) {
        self.not_completed().for_each(|(_, count)| count.wait());
    }
}

impl Window {
    /// Posts for these origins.
    pub(super) fn post_for(&mut self, messages: &mut Messages, ranks: &[u32]) {
        let far = |rank: &u32| self.near.place_of(*rank).is_none();
        let far = ranks.iter().copied().filter(far);
        self.exposure.target.post(far);
        self.posts.begin();
        for &rank in ranks {
            match self.posts.post(rank) {
                None => self.send_frame(messages, rank, Frame::Post),
                Some(notified) => self.wake_if(messages, rank, notified),
            }
        }
    }

    /// MPI_Win_start names this target.
    pub(super) fn await_post(&mut self, rank: u32) {
        if !self.posts.start(rank) {
            self.out.origin.start(rank);
        }
    }

    /// MPI_Win_complete, if no frame is needed for that; returns whether none is.
    pub(super) fn complete_shared(&mut self, messages: &mut Messages, rank: u32) -> bool {
        let Some(notified) = self.posts.complete(rank) else {
            return false;
        };
        self.wake_if(messages, rank, notified);
        true
    }

    /// Whether this target has not posted.
    pub(super) fn awaits_post(&self, rank: u32) -> bool {
        match self.posts.posts_of(rank) {
            Some((count, number)) => !count.reached(number),
            None => self.out.origin.awaits_post(rank),
        }
    }

    /// Origins of the posted epoch that have not completed.
    pub(super) fn not_completed(&self) -> impl Iterator<Item = u32> {
        let near = self.posts.not_completed().map(|(rank, _)| rank);
        near.chain(self.exposure.target.not_completed())
    }

    /// Whether all origins of the posted epoch have completed.
    pub(super) fn has_completed(&self) -> bool {
        self.exposure.target.has_completed() && self.posts.have_completed()
    }

    fn wake_if(&mut self, messages: &mut Messages, rank: u32, notified: bool) {
        match notified {
            // Another thread of this rank waits.
            true if rank == self.channel.me => self.end_waits(messages),
            true => self.send_frame(messages, rank, Frame::Wake),
            false => {}
        }
    }
}

fn look_until(messages: &Messages, done: impl Fn() -> bool) {
    let looks = match messages.at_once.is_zero() {
        true => LOOKS,
        false => LOOKS_ALONE,
    };
    for _ in 0..looks {
        if done() {
            return;
        }
        spin_hint();
    }
}
