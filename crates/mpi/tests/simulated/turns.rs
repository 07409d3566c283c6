//! Ranks are threads, one of which runs at a time: before each poll of its path a rank passes the
//! turn on.
//!
//! Random numbers choose the next rank, mostly among those for which a poll would bring something;
//! if there is none, virtual time advances to the next event. So a seed always gives the same run,
//! however busy the machine is.

use kw_base::Peer;
use kw_base::sync::{Condvar, Mutex, MutexGuard};
use kw_path::sim::{Rng, SimNet};
use std::panic::resume_unwind;
use std::time::Duration;

/// Advance of virtual time when nothing is in flight: a rank waits for the clock, or forever.
const NOTHING_UNDER_WAY: Duration = Duration::from_millis(1);
/// Of 256 turns this many go to any rank, whether there is something for it or not.
const ANYBODY: u32 = 48;

/// The rank whose turn it is.
pub struct Turns {
    net: SimNet,
    state: Mutex<State>,
    changed: Vec<Condvar>,
}

struct State {
    turn: usize,
    alive: Vec<bool>,
    rng: Rng,
    /// Turns until the run counts as one that never ends.
    left: u64,
    failure: Option<String>,
}

/// Ends the thread of a rank because another one has failed; prints nothing.
pub struct Stopped;

impl Turns {
    /// Turns of `n` ranks, `most` at most.
    pub fn new(net: SimNet, n: usize, seed: u64, most: u64) -> Turns {
        Turns {
            net,
            state: Mutex::new(State {
                turn: 0,
                alive: vec![true; n],
                rng: Rng::new(seed ^ 0x7475_726e),
                left: most,
                failure: None,
            }),
            changed: (0..n).map(|_| Condvar::new()).collect(),
        }
    }

    /// Starts a rank; it runs when this returns.
    pub fn begin(&self, me: usize) {
        self.await_turn(self.lock(), me);
    }

    /// Waits for the turn of a rank that is about to poll.
    pub fn pass(&self, me: usize) {
        if std::thread::panicking() {
            return;
        }
        let mut state = self.lock();
        state.left = state.left.saturating_sub(1);
        if state.left == 0 && state.failure.is_none() {
            let waiting: Vec<usize> = (0..state.alive.len()).filter(|&r| state.alive[r]).collect();
            drop(state);
            panic!("the run never ends; ranks that have not: {waiting:?}");
        }
        self.hand_on(&mut state);
        self.await_turn(state, me);
    }

    /// Notes the end of a rank.
    pub fn end(&self, me: usize) {
        let mut state = self.lock();
        state.alive[me] = false;
        self.hand_on(&mut state);
    }

    /// Notes the failure of a rank; all others stop.
    pub fn fail(&self, what: String) {
        let mut state = self.lock();
        state.failure.get_or_insert(what);
        self.changed.iter().for_each(Condvar::notify_one);
    }

    /// The first error.
    pub fn failure(&self) -> Option<String> {
        self.lock().failure.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn await_turn(&self, mut state: MutexGuard<'_, State>, me: usize) {
        while state.turn != me && state.failure.is_none() {
            let woken = self.changed[me].wait(state);
            state = woken.unwrap_or_else(|e| e.into_inner());
        }
        if state.failure.is_some() {
            drop(state);
            resume_unwind(Box::new(Stopped));
        }
    }

    fn hand_on(&self, state: &mut State) {
        let alive: Vec<usize> = (0..state.alive.len()).filter(|&r| state.alive[r]).collect();
        if alive.is_empty() {
            return;
        }
        let mut among = self.busy(&alive);
        if among.is_empty() {
            self.let_time_pass();
            among = self.busy(&alive);
        }
        if among.is_empty() || state.rng.chance(ANYBODY) {
            among = alive;
        }
        let last = among.len() as u64 - 1;
        state.turn = among[state.rng.between(0, last) as usize];
        self.changed[state.turn].notify_one();
    }

    fn busy(&self, alive: &[usize]) -> Vec<usize> {
        let has_work = |r: &usize| self.net.has_work(Peer(*r as u32));
        alive.iter().copied().filter(has_work).collect()
    }

    fn let_time_pass(&self) {
        let now = self.net.now();
        // Messages to a rank that has ended stay in flight.
        let next = self.net.next_event().filter(|at| *at > now);
        self.net
            .advance(next.map_or(NOTHING_UNDER_WAY, |at| at.since(now)));
    }
}
