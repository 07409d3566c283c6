//! A rank's progress thread, which carries out what the policy decides, as `engine::event_thread`
//! does.

use crate::machine::{Act, Id, Program};
use crate::rank::Shared;
use kw_base::Tick;
use kw_waiting::AsyncState;
use kw_waiting::async_progress::{Costs, Event, Looks, Sight};
use std::time::Duration;

/// CPU time of a check, and of taking a piece after a sleep.
const CHECK: Duration = Duration::from_micros(10);
const SERVE: Duration = Duration::from_micros(10);

/// The thread.
pub struct ProgressThread {
    me: usize,
    looks: Looks,
    costs: Costs,
    used: Duration,
    /// The check that it was about to make is made.
    checked: bool,
}

impl ProgressThread {
    pub fn new(me: usize) -> ProgressThread {
        ProgressThread {
            me,
            looks: Looks::default(),
            costs: Costs::default(),
            used: Duration::ZERO,
            checked: false,
        }
    }

    fn work(&mut self, time: Duration) -> Act {
        self.used += time;
        Act::Run(time)
    }

    /// Checks whether the program is inside MPI.
    fn watch(&mut self, now: Tick, shared: &mut Shared) -> Act {
        if !std::mem::replace(&mut self.checked, true) {
            return self.work(CHECK);
        }
        self.checked = false;
        let waited_in = shared.is_waiting(self.me);
        let behind = &mut shared.ranks[self.me];
        let policy = &mut behind.policy;
        let busy = behind.transfer.left > 0;
        let event = self.looks.judge(Sight {
            entries: behind.entries,
            busy,
            holds_up: busy,
            waited_in,
            oversubscribed: policy.async_progress.budget.is_oversubscribed(),
        });
        let costs = self.costs.of_check(self.used);
        policy.async_progress.looked(now, costs, event, false);
        if policy.async_progress.state != AsyncState::Watching {
            return Act::Run(Duration::ZERO);
        }
        behind.alarm = true;
        Act::Sleep(now + policy.async_progress.pause(now, policy.watch, &self.looks))
    }

    /// Takes the arrived pieces, and sleeps until more arrive.
    fn serve(&mut self, now: Tick, shared: &mut Shared) -> Act {
        let behind = &mut shared.ranks[self.me];
        let (transfer, progress) = (&mut behind.transfer, &mut behind.policy.async_progress);
        progress.woken();
        let came = transfer.take(now);
        if transfer.left == 0 {
            progress.on(Event::AllEnded);
        }
        let next = transfer.next;
        let act = match came {
            true => self.work(SERVE),
            false => Act::Sleep(next),
        };
        self.costs.skip(self.used);
        act
    }
}

impl Program<Shared> for ProgressThread {
    fn step(&mut self, now: Tick, shared: &mut Shared, _: &mut Vec<(Id, Tick)>) -> Act {
        let behind = &mut shared.ranks[self.me];
        behind.alarm = false;
        match behind.policy.async_progress.state {
            AsyncState::Off => Act::End,
            AsyncState::Idle | AsyncState::Finished => {
                self.looks = Looks::default();
                Act::Sleep(Tick::NEVER)
            }
            AsyncState::Watching => self.watch(now, shared),
            AsyncState::Polling => self.serve(now, shared),
            AsyncState::Preempted => {
                behind.policy.async_progress.on(Event::Woken);
                Act::Run(Duration::ZERO)
            }
        }
    }
}
