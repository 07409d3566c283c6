//! Waiting on CPUs that may be shared: which thread polls, yields, sleeps, hands over to the
//! progress thread or moves to another CPU. Pure: events and times in, decisions out; no clock, no
//! system call, no atomics.
//!
//! | event | decided by | decision |
//! | --- | --- | --- |
//! | a blocking call begins to wait | [`Policy::begin_wait`] | poll alone, poll and yield, or sleep at once |
//! | its poll found nothing | [`Wait::found_nothing`] | yield, read the clock, help parked threads |
//! | others had the CPU meanwhile | [`Policy::others_ran`] | what this wait and later ones do |
//! | the clock was read | [`Wait::on_time`] | go on polling, check whether peers have left, sleep |
//! | a test call found nothing | [`PollBackoff`] | nothing, yield, sleep for a moment |
//! | a thread leaves or enters MPI; the progress thread checks | [`AsyncProgress`] | which thread polls from now on |
//! | a long exchange between all ranks ends | [`YieldAfter`], [`Turns`] | yield before returning |
//! | time to compare where ranks run | [`placement`] | move to another CPU |
//!
//! `engine` reads the clocks and carries out the decisions; `path` does for [`placement`]. Numbers
//! are in [`constants`]. The tests run ranks, progress threads and computing processes on a
//! scheduler in virtual time.
#![forbid(unsafe_code)]

pub mod async_progress;
mod co_scheduled;
pub mod constants;
mod exchange;
mod other_programs;
pub mod placement;
mod poll_backoff;
mod spin;
mod wait;

pub use async_progress::{AsyncProgress, AsyncState};
pub use co_scheduled::{Beginning, CoScheduled};
pub use exchange::{Exchange, Turns, YieldAfter};
use other_programs::OtherPrograms;
pub use poll_backoff::{Decision, PollBackoff};
pub use spin::Spin;
pub use wait::{Round, Sleeps, Timed, Times, Wait};

use kw_base::Tick;
use std::time::Duration;

/// State of one rank's waiting, and its decisions.
#[derive(Debug)]
pub struct Policy {
    /// More ranks than CPUs share this host.
    pub oversubscribed: bool,
    /// Whether waits learn what other processes on their CPU do: not where `KW_SPIN` says how long
    /// waits poll.
    pub learns: bool,
    /// How long waits poll.
    pub times: Times,
    /// First interval of the progress thread's checks (`KW_WATCH`).
    pub watch: Duration,
    /// The progress thread.
    pub async_progress: AsyncProgress,
    /// Unsuccessful test calls.
    pub polls: PollBackoff,
    /// Other processes on this CPU, if each rank has one.
    others: CoScheduled,
    /// Other programs, if ranks share CPUs.
    programs: OtherPrograms,
}

impl Policy {
    /// The policy of a rank on a host with more ranks than CPUs, or with a CPU for each; `wake`:
    /// the time to wake a thread.
    pub fn new(oversubscribed: bool, wake: Duration) -> Policy {
        Policy {
            oversubscribed,
            learns: false,
            times: Times::default(),
            watch: Duration::ZERO,
            async_progress: AsyncProgress::new(oversubscribed, wake),
            polls: PollBackoff::default(),
            others: CoScheduled::default(),
            programs: OtherPrograms::default(),
        }
    }

    /// Takes over how long waits poll; `spin_setting`: the value of `KW_SPIN`.
    pub fn set_times(&mut self, wake: Duration, spin_setting: Option<Duration>, watch: Duration) {
        self.times = Times::of(wake, spin_setting);
        self.learns = spin_setting.is_none();
        self.watch = watch.max(constants::progress_thread::LEAST_WATCH);
    }

    /// A blocking call begins to wait. `meets`: it waits for ranks with which it shares memory, so
    /// it has written what they may wait for. `sent`: messages that this rank has sent until now;
    /// `now`: the clock. Both are read only where that matters.
    #[inline]
    pub fn begin_wait(
        &mut self,
        meets: bool,
        sent: impl FnOnce() -> u64,
        now: impl FnOnce() -> Tick,
    ) -> Wait {
        let beginning = match self.oversubscribed {
            true => self.programs.beginning(sent(), meets, now),
            false => self.others.beginning(),
        };
        Wait::new(self.times.spin, beginning)
    }

    /// `wait` has let others run until `now`, and they had the CPU for this long. `ours` reads the
    /// CPU time that the ranks of this host have used; `None`: that is not known.
    pub fn others_ran(
        &mut self,
        wait: &mut Wait,
        lasted: Duration,
        now: Tick,
        ours: impl FnOnce() -> Option<Duration>,
    ) {
        let only_compute = match self.oversubscribed {
            true => self.programs.had_it(lasted, now, ours),
            false => {
                let only_compute = self.others.had_it(lasted);
                let take_turns = self.others.take_turns();
                self.async_progress.budget.set_oversubscribed(take_turns);
                only_compute
            }
        };
        if only_compute {
            wait.sleep_at_once();
        }
    }
}
