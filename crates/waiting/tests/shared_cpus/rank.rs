//! A rank whose thread carries out what the policy decides, as `engine::wait` does.

use crate::machine::{Accounts, Act, Id, Program, WAKE};
use kw_base::Tick;
use kw_waiting::async_progress::Event;
use kw_waiting::constants::wait::{CHECKED_AFTER, LONGEST_SLEEP};
use kw_waiting::{AsyncState, Decision, Policy, Sleeps, Wait};
use std::collections::VecDeque;
use std::time::Duration;

const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Messages to a rank that it has not received before their sender waits for room.
pub const WINDOW: u32 = 64;
/// Time of a poll, of a call that ends at once, and of ringing a thread that sleeps.
const POLL: Duration = us(1);
const CALL: Duration = Duration::from_nanos(100);
const RING: Duration = us(5);

/// Step of a program.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Compute(Duration),
    /// Sends a message to this rank.
    Send(usize),
    /// Waits for a message from this rank.
    Receive(usize),
    /// Calls MPI_Test until there is a message from this rank.
    TestFor(usize),
    /// Starts a transfer of this many pieces, each of which takes the network this long.
    Start(u32, Duration),
    /// Waits for its end.
    Finish,
    /// A call that starts nothing and ends nothing.
    Call,
}

/// Memory that the ranks share: messages, and which rank sleeps.
pub struct Shared {
    /// Number of messages that wait at a rank, by their sender.
    inbox: Vec<Vec<u32>>,
    asleep: Vec<bool>,
    /// The ranks that are in a call that waits.
    waits: Vec<bool>,
    /// Threads of the ranks, and their progress threads.
    pub threads: Vec<Id>,
    pub progress_threads: Vec<Id>,
    /// How often ranks have slept.
    pub sleeps: Vec<u32>,
    /// CPU time that ranks and their progress threads have used.
    pub used_by_ranks: Duration,
    /// State behind each rank's lock.
    pub ranks: Vec<Behind>,
}

/// State that a rank's two threads share.
pub struct Behind {
    pub policy: Policy,
    pub entries: u64,
    /// The active transfer.
    pub transfer: Transfer,
    /// The progress thread sleeps until a set time.
    pub alarm: bool,
}

/// A transfer over the network, in pieces.
#[derive(Clone, Copy, Default)]
pub struct Transfer {
    pub left: u32,
    pub next: Tick,
    each: Duration,
}

impl Transfer {
    /// Takes the pieces that have come; returns whether there were any. The next one is sent when
    /// these are taken.
    pub fn take(&mut self, now: Tick) -> bool {
        let comes = self.left > 0 && self.next <= now;
        if comes {
            self.left -= 1;
            self.next = now + self.each;
        }
        comes
    }
}

impl Shared {
    /// Whether the rank's thread is in a call that waits.
    pub fn is_waiting(&self, rank: usize) -> bool {
        self.waits[rank]
    }

    pub fn new(ranks: usize, oversubscribed: bool) -> Shared {
        let behind = |_| {
            let mut policy = Policy::new(oversubscribed, WAKE);
            policy.set_times(WAKE, None, us(50));
            policy.async_progress.state = AsyncState::Idle;
            Behind {
                policy,
                entries: 0,
                transfer: Transfer::default(),
                alarm: false,
            }
        };
        Shared {
            ranks: (0..ranks).map(behind).collect(),
            progress_threads: Vec::new(),
            inbox: vec![vec![0; ranks]; ranks],
            asleep: vec![false; ranks],
            waits: vec![false; ranks],
            threads: Vec::new(),
            sleeps: vec![0; ranks],
            used_by_ranks: Duration::ZERO,
        }
    }
}

impl Accounts for Shared {
    fn used(&mut self, thread: Id, time: Duration) {
        if self.threads.contains(&thread) || self.progress_threads.contains(&thread) {
            self.used_by_ranks += time;
        }
    }
}

/// Position of the thread of a rank.
enum At {
    Step,
    /// In MPI_Recv; the poll is done.
    Polled(Wait),
    Yielded(Wait, Tick),
    Slept(Wait),
    /// In MPI_Test, which began then.
    Tested(Tick),
    /// It has yielded or slept since then.
    TestGaveWay(Tick, bool),
}

/// A rank.
pub struct Rank {
    me: usize,
    program: VecDeque<Step>,
    /// Messages sent.
    sent: u64,
    at: At,
}

impl Rank {
    pub fn new(me: usize, program: Vec<Step>) -> Rank {
        Rank {
            me,
            program: program.into(),
            sent: 0,
            at: At::Step,
        }
    }

    /// The program calls MPI.
    fn enter(&self, now: Tick, shared: &mut Shared) {
        let behind = &mut shared.ranks[self.me];
        behind.entries += 1;
        let (progress, watch) = (&mut behind.policy.async_progress, behind.policy.watch);
        if progress.state.has_polled() {
            progress.entered(now, watch);
        }
    }

    /// It returns, as `engine::handover` has it.
    fn leave(&self, now: Tick, shared: &mut Shared, wake: &mut Vec<(Id, Tick)>) {
        let behind = &mut shared.ranks[self.me];
        let (progress, transfer) = (&mut behind.policy.async_progress, &behind.transfer);
        let attends = progress.state.needs_kick() || progress.tries_to_leave();
        let Some(&thread) = shared.progress_threads.get(self.me) else {
            return;
        };
        if transfer.left == 0 || !attends {
            return;
        }
        if progress.is_to_leave() {
            progress.left(now, us(2), transfer.each * transfer.left);
            wake.push((thread, transfer.next));
        } else if progress.on(Event::Left) && !behind.alarm {
            wake.push((thread, now + WAKE));
        }
    }

    /// Ends the call that the program is in, if it can end; returns what that takes.
    fn try_to_end(
        &mut self,
        now: Tick,
        shared: &mut Shared,
        wake: &mut Vec<(Id, Tick)>,
    ) -> Option<Act> {
        let peer = match *self.program.front()? {
            Step::Compute(_) | Step::Start(..) | Step::Call => return None,
            Step::Finish => {
                let transfer = &mut shared.ranks[self.me].transfer;
                transfer.take(now);
                if transfer.left > 0 {
                    return None;
                }
                self.program.pop_front();
                return Some(Act::Run(CALL));
            }
            Step::Send(to) => {
                self.sent += 1;
                let lie = &mut shared.inbox[to][self.me];
                if *lie >= WINDOW {
                    return None;
                }
                *lie += 1;
                to
            }
            Step::Receive(from) | Step::TestFor(from) => {
                let lie = &mut shared.inbox[self.me][from];
                *lie = lie.checked_sub(1)?;
                // Room for half of the window is acknowledged.
                if *lie != WINDOW / 2 {
                    self.program.pop_front();
                    return Some(Act::Run(CALL));
                }
                from
            }
        };
        self.program.pop_front();
        if !std::mem::take(&mut shared.asleep[peer]) {
            return Some(Act::Run(POLL));
        }
        wake.push((shared.threads[peer], now + WAKE));
        Some(Act::Run(RING))
    }

    fn next(&mut self, now: Tick, shared: &mut Shared, wake: &mut Vec<(Id, Tick)>) -> Act {
        shared.waits[self.me] = false;
        let Some(step) = self.program.front().copied() else {
            return Act::End;
        };
        match step {
            Step::Compute(time) => {
                self.program.pop_front();
                Act::Run(time)
            }
            Step::Start(left, each) => {
                self.program.pop_front();
                self.enter(now, shared);
                let next = now + each;
                shared.ranks[self.me].transfer = Transfer { left, next, each };
                self.leave(now, shared, wake);
                Act::Run(POLL)
            }
            Step::TestFor(_) => {
                self.enter(now, shared);
                self.at = At::Tested(now);
                Act::Run(CALL)
            }
            Step::Call => {
                self.program.pop_front();
                self.enter(now, shared);
                self.leave(now, shared, wake);
                Act::Run(CALL)
            }
            Step::Send(_) | Step::Receive(_) | Step::Finish => {
                self.enter(now, shared);
                if let Some(act) = self.try_to_end(now, shared, wake) {
                    return act;
                }
                shared.waits[self.me] = true;
                let policy = &mut shared.ranks[self.me].policy;
                self.at = At::Polled(policy.begin_wait(false, || self.sent, || now));
                Act::Run(POLL)
            }
        }
    }

    /// A poll of a blocking call is done, and it cannot end yet.
    fn polled(
        &mut self,
        mut wait: Wait,
        now: Tick,
        shared: &mut Shared,
        wake: &mut Vec<(Id, Tick)>,
    ) -> Act {
        let round = wait.found_nothing(shared.ranks[self.me].policy.oversubscribed);
        if round.yields {
            self.at = At::Yielded(wait, now);
            return Act::Yield;
        }
        match round.reads_clock {
            true => self.timed(wait, now, shared, wake),
            false => self.poll_again(wait),
        }
    }

    fn poll_again(&mut self, wait: Wait) -> Act {
        self.at = At::Polled(wait);
        Act::Run(POLL)
    }

    fn timed(
        &mut self,
        mut wait: Wait,
        now: Tick,
        shared: &mut Shared,
        wake: &mut Vec<(Id, Tick)>,
    ) -> Act {
        let policy = &shared.ranks[self.me].policy;
        let policy = (policy.oversubscribed, policy.times);
        let most = match wait.on_time(now, policy, || Duration::ZERO).sleeps {
            None => return self.poll_again(wait),
            Some(Sleeps::UntilChecked) => CHECKED_AFTER,
            Some(Sleeps::Long) => LONGEST_SLEEP,
        };
        // Armed: it polls once more.
        if let Some(act) = self.try_to_end(now, shared, wake) {
            return act;
        }
        self.at = At::Slept(wait);
        let transfer = shared.ranks[self.me].transfer;
        let comes = match self.program.front() {
            Some(Step::Finish) => transfer.next,
            _ => Tick::NEVER,
        };
        self.sleep(comes.min(now + most), shared)
    }

    fn sleep(&mut self, until: Tick, shared: &mut Shared) -> Act {
        shared.asleep[self.me] = true;
        shared.sleeps[self.me] += 1;
        Act::Sleep(until)
    }

    /// A test call has found nothing.
    fn tested(&mut self, began: Tick, now: Tick, shared: &mut Shared) -> Option<Act> {
        let Behind {
            policy, entries, ..
        } = &mut shared.ranks[self.me];
        let (oversubscribed, times) = (policy.oversubscribed, policy.times);
        let polls = &mut policy.polls;
        let is_due = polls.is_due();
        if !polls.note(*entries, false) || !is_due {
            return None;
        }
        let next = polls.found_nothing([began, now], oversubscribed, times, || Duration::ZERO);
        let act = match next {
            Decision::Nothing | Decision::CheckPeers => return None,
            Decision::Yield => Act::Yield,
            Decision::Sleep(most) => self.sleep(now + most, shared),
        };
        self.at = At::TestGaveWay(now, matches!(next, Decision::Sleep(_)));
        Some(act)
    }
}

impl Program<Shared> for Rank {
    fn step(&mut self, now: Tick, shared: &mut Shared, wake: &mut Vec<(Id, Tick)>) -> Act {
        shared.asleep[self.me] = false;
        let at = std::mem::replace(&mut self.at, At::Step);
        if matches!(at, At::Polled(_) | At::Tested(_))
            && let Some(act) = self.try_to_end(now, shared, wake)
        {
            shared.waits[self.me] = false;
            return act;
        }
        match at {
            At::Step => {}
            At::Polled(wait) => return self.polled(wait, now, shared, wake),
            At::Yielded(mut wait, before) => {
                let policy = &mut shared.ranks[self.me].policy;
                if policy.learns {
                    let ours = shared.used_by_ranks;
                    policy.others_ran(&mut wait, now.since(before), now, || Some(ours));
                }
                return self.timed(wait, now, shared, wake);
            }
            At::Slept(mut wait) => {
                wait.slept();
                return self.poll_again(wait);
            }
            At::Tested(began) => {
                if let Some(act) = self.tested(began, now, shared) {
                    return act;
                }
            }
            At::TestGaveWay(from, asleep) => {
                let polls = &mut shared.ranks[self.me].policy.polls;
                polls.gave_way(from, now, asleep);
            }
        }
        self.next(now, shared, wake)
    }
}

/// A process that computes forever, from this time on.
pub struct Hog {
    pub from: Option<Duration>,
}

impl<S> Program<S> for Hog {
    fn step(&mut self, now: Tick, _: &mut S, _: &mut Vec<(Id, Tick)>) -> Act {
        match self.from.take() {
            Some(from) => Act::Sleep(now + from),
            None => Act::Run(Duration::from_secs(3600)),
        }
    }
}
