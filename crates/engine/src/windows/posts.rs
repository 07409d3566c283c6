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

/// The counts of the ranks that share memory, as far as this rank waits for them.
#[derive(Default, Debug)]
pub(super) struct Awaited {
    /// For each place: posts that it has waited for as an origin.
    posts: Vec<u32>,
    /// Completes that it has waited for, as a target.
    completes: Vec<u32>,
    /// Places of the origins of the posted epoch.
    origins: Vec<u32>,
}

/// Polls of counts before messages are used. Starting value: about as long as a message takes.
const LOOKS: u32 = 200;

impl Awaited {
    pub fn new(places: usize) -> Awaited {
        Awaited {
            posts: vec![0; places],
            completes: vec![0; places],
            origins: Vec::new(),
        }
    }
}

fn next(count: &mut u32) {
    // The highest bit is a mark.
    *count = (*count + 1) & (u32::MAX >> 1);
}

impl Window {
    /// The posts of a rank for this one, and how many are awaited; if its memory is shared.
    fn posts_of(&self, rank: u32) -> Option<(Count<'_>, u32)> {
        let (shared, place) = self.shared_place(rank)?;
        let count = shared.memory.posts(place, shared.memory.index());
        Some((count, self.awaited.posts[place]))
    }

    fn shared_place(&self, rank: u32) -> Option<(&Shared, usize)> {
        let shared = self.shared.as_ref()?;
        Some((shared, shared.place(rank)?))
    }

    /// Posts for these origins.
    pub(super) fn post_for(&mut self, messages: &mut Messages, ranks: &[u32]) {
        let far = |&rank: &u32| self.place_of(rank).is_none();
        let far: Vec<u32> = ranks.iter().copied().filter(far).collect();
        self.target.post(&far);
        self.awaited.origins.clear();
        for &rank in ranks {
            let Some((shared, place)) = self.shared_place(rank) else {
                self.tell(messages, rank, Frame::Post);
                continue;
            };
            let notified = shared.memory.posts(shared.memory.index(), place).add();
            next(&mut self.awaited.completes[place]);
            self.awaited.origins.push(place as u32);
            self.tell_if(messages, rank, notified);
        }
    }

    /// MPI_Win_start names this target.
    pub(super) fn await_post(&mut self, rank: u32) {
        match self.place_of(rank) {
            Some(place) => next(&mut self.awaited.posts[place]),
            None => self.origin.start(rank),
        }
    }

    /// MPI_Win_complete, if no frame is needed for that; returns whether none is.
    pub(super) fn complete_shared(&mut self, messages: &mut Messages, rank: u32) -> bool {
        let Some((shared, place)) = self.shared_place(rank) else {
            return false;
        };
        let notified = shared.memory.completes(place, shared.memory.index()).add();
        self.tell_if(messages, rank, notified);
        true
    }

    /// Whether this target has not posted.
    pub(super) fn awaits_post(&self, rank: u32) -> bool {
        match self.posts_of(rank) {
            Some((count, number)) => !count.reached(number),
            None => self.origin.awaits_post(rank),
        }
    }

    /// Origins that share memory and have not completed: their places.
    fn places_not_completed(&self) -> impl Iterator<Item = (u32, Count<'_>)> {
        let shared = self.shared.iter();
        shared.flat_map(move |shared| {
            let me = shared.memory.index();
            let origins = self.awaited.origins.iter();
            origins.filter_map(move |&place| {
                let count = shared.memory.completes(me, place as usize);
                let number = self.awaited.completes[place as usize];
                (!count.reached(number)).then_some((place, count))
            })
        })
    }

    /// Origins of the posted epoch that have not completed.
    pub(super) fn not_completed(&self) -> impl Iterator<Item = u32> {
        let near = self.places_not_completed().filter_map(move |(place, _)| {
            let shared = self.shared.as_ref()?;
            shared.ranks().nth(place as usize)
        });
        near.chain(self.target.not_completed())
    }

    /// Whether all origins of the posted epoch have completed.
    pub(super) fn has_completed(&self) -> bool {
        self.target.has_completed() && self.places_not_completed().next().is_none()
    }

    /// Polls for a moment until the origins that share memory have completed.
    pub(super) fn look_for_completes(&self) {
        look_until(|| self.places_not_completed().next().is_none());
    }

    /// Polls for a moment until those of these ranks that share memory have posted. The
    /// posts of others come as frames.
    pub(super) fn look_for_posts(&self, ranks: &[u32]) {
        let missing = |&rank: &u32| {
            let posts = self.posts_of(rank);
            posts.is_some_and(|(count, number)| !count.reached(number))
        };
        look_until(|| !ranks.iter().any(missing));
    }

    /// Asks these ranks to send a message when they post. Check the counts again afterwards.
    pub(super) fn mark_posts(&self, ranks: &[u32]) {
        for (count, number) in ranks.iter().filter_map(|&rank| self.posts_of(rank)) {
            if !count.reached(number) {
                count.wait();
            }
        }
    }

    /// Asks origins to send a message when they complete. Check the counts again afterwards.
    pub(super) fn mark_completes(&self) {
        self.places_not_completed()
            .for_each(|(_, count)| count.wait());
    }

    fn tell_if(&mut self, messages: &mut Messages, rank: u32, notified: bool) {
        match notified {
            // Another thread of this rank waits.
            true if rank == self.me => self.end_waits(messages),
            true => self.tell(messages, rank, Frame::Wake),
            false => {}
        }
    }

    fn tell(&mut self, messages: &mut Messages, rank: u32, frame: Frame<'_>) {
        let mut frames = Vec::new();
        frame.encode(&mut frames);
        self.say(messages, rank, &frames);
    }
}

fn look_until(done: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if done() {
            return;
        }
        spin_hint();
    }
}
