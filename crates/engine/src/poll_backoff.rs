//! Back-off of unsuccessful test calls (MPI_Test, MPI_Iprobe, ...): a program that calls them again
//! and again polls, and must not take the CPU from the rank that would complete its request.
//!
//! A *row* is a series of unsuccessful polls with no other call in between; any progress ends it,
//! and so does a program that computes between two polls. On shared CPUs a long row yields now and
//! then; when it has lasted as long as a blocking call polls, it also sleeps on the doorbell, in
//! total for as long as it was awake: a program that had other work after all loses at most half of
//! its time, and incoming data ends a sleep at once. If each rank has a CPU a row costs a count;
//! now and then it asks the system whether this thread had to wait for its CPU, and while it does
//! another program runs there, and the row does the same.
//!
//! Unsuccessful polls that continue as long as a long wait are checked like one
//! ([`crate::departed`]): the ranks they depend on are asked whether they have left. That applies
//! whatever the program does between them: on a slow CPU, or in a program that computes, they must
//! not loop forever either.
//!
//! Called with the lock held, in the thread of the program that looks.

use crate::departed::DOUBT;
use crate::engine::Engine;
use crate::hang::Lasting;
use crate::polled::Sleep;
use crate::progress_lock::{Guard, Inner, Role};
use crate::wait::{WaitOn, sleep_once};
use kw_base::Tick;
use kw_base::counters::Counter;
use kw_base::sync::thread;
use kw_sys::cpus;
use std::time::Duration;

/// On shared CPUs, one in this many unsuccessful polls reads the clock.
const ROW_SHARED: u32 = 4;
/// The number if each rank has a CPU.
const ROW_ALONE: u32 = 1024;
/// A program that is away for longer between two looks, on average, computes meanwhile. (A loop of
/// C around `MPI_Test` takes 0.1 us, one of Python 1 us.)
const AWAY: Duration = Duration::from_micros(1);
/// A row lets others run so often: the time after which a wait no longer polls alone, which is some
/// wake-ups, by this. A change of processes costs a tenth of that.
const YIELDS_OF_ALONE: u32 = 6;
/// Shortest and longest sleep: the system's timers are no finer, and the program may poll for
/// something other than messages.
const NAPS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
/// How often the system is asked about other programs.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// Another program runs on our CPU when this thread waited for it for more than this part of the
/// time.
const PART_TAKEN: u32 = 10;
/// How often long series of unsuccessful polls are checked.
const DOUBT_EVERY: Duration = Duration::from_millis(10);

/// Unsuccessful polls in a row, of all threads of this rank.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    /// [`Inner::entries`] at the last look.
    entries: u64,
    /// Unsuccessful polls until the row is timed again.
    left: u32,
    /// One in this many polls is timed.
    step: u32,
    times: Option<Times>,
    /// Time at which unsuccessful polls are checked, if they continue until then.
    doubt_at: Option<Tick>,
    rival: Rival,
}

/// A row that is timed.
#[derive(Clone, Copy, Debug)]
struct Times {
    since: Tick,
    /// When it last let others run.
    yielded: Tick,
    /// When its last timed look ended.
    last: Tick,
    /// How long it has slept.
    slept: Duration,
}

impl Times {
    fn new(now: Tick) -> Times {
        Times {
            since: now,
            yielded: now,
            last: now,
            slept: Duration::ZERO,
        }
    }
}

impl Default for PollBackoff {
    fn default() -> PollBackoff {
        PollBackoff {
            entries: 0,
            left: ROW_SHARED,
            step: ROW_SHARED,
            times: None,
            doubt_at: None,
            rival: Rival::default(),
        }
    }
}

/// Whether another program runs on the CPU of the thread that looks.
#[derive(Debug, Default)]
struct Rival {
    /// When the system was asked last, and how long the thread had waited for a CPU until then.
    asked: Option<(Tick, Duration)>,
    is_there: bool,
}

impl PollBackoff {
    /// Whether the next poll is timed if it is unsuccessful.
    #[inline]
    fn is_due(&self) -> bool {
        self.left == 1
    }

    /// Notes an unsuccessful poll; returns whether it is one of many, and to be timed.
    #[inline]
    fn note(&mut self, entries: u64, moved: bool) -> bool {
        let next = entries == self.entries + 1 && !moved;
        self.entries = entries;
        if !next {
            (self.left, self.times, self.doubt_at) = (self.step, None, None);
            return false;
        }
        self.left -= 1;
        self.left == 0
    }

    /// Times an unsuccessful poll that took from `began` to `now`: others are taken to last as
    /// long. Returns whether it belongs to a row.
    fn time(&mut self, began: Tick, now: Tick) -> bool {
        self.left = self.step;
        self.doubt_at.get_or_insert(now + DOUBT);
        let away = (AWAY + now.since(began)) * self.step;
        match &mut self.times {
            Some(times) if now.since(times.last) <= away => {
                times.last = now;
                true
            }
            times => {
                *times = Some(Times::new(now));
                false
            }
        }
    }

    /// Where CPUs are shared more looks are timed than where each rank has one.
    fn set_step(&mut self, shared: bool) {
        self.step = if shared { ROW_SHARED } else { ROW_ALONE };
    }

    /// Action on a timed poll of a row; `alone`, `spin`: how long a blocking call polls before it
    /// yields, and before it sleeps.
    fn next(&self, now: Tick, alone: Duration, spin: Duration) -> Next {
        let Some(times) = self.times else {
            return Next::Nothing;
        };
        let awake = now.since(times.since).saturating_sub(times.slept);
        let left = awake.saturating_sub(times.slept);
        if awake >= spin && left >= NAPS[0] {
            Next::Sleep(left.min(NAPS[1]))
        } else if now.since(times.yielded) >= alone / YIELDS_OF_ALONE {
            Next::Yield
        } else {
            Next::Nothing
        }
    }

    /// Whether unsuccessful polls have continued so long that the ranks they depend on are to be
    /// asked.
    fn is_doubtful(&mut self, now: Tick) -> bool {
        let is = self.doubt_at.is_some_and(|at| now >= at);
        if is {
            self.doubt_at = Some(now + DOUBT_EVERY);
        }
        is
    }

    /// It has let others run from then until now.
    fn gave_way(&mut self, from: Tick, now: Tick, asleep: bool) {
        if let Some(times) = &mut self.times {
            (times.yielded, times.last) = (now, now);
            if asleep {
                times.slept += now.since(from);
            }
        }
    }
}

/// Action on an unsuccessful poll.
enum Next {
    Nothing,
    Yield,
    Sleep(Duration),
}

impl Rival {
    /// Asks the system, now and then.
    fn ask(&mut self, now: Tick) {
        let last = self.asked.map(|a| a.0);
        if last.is_some_and(|last| now.since(last) < ASK_EVERY) {
            return;
        }
        let waited = cpus::waited();
        if let Some((last, before)) = self.asked {
            self.is_there = waited.saturating_sub(before) > now.since(last) / PART_TAKEN;
        }
        self.asked = Some((now, waited));
    }
}

impl<T> Inner<T> {
    fn clock(&self) -> Tick {
        let engine = self.engine.as_ref();
        engine.map_or_else(kw_sys::clock::now, |e| e.messages.clock())
    }

    #[inline]
    fn looked_in_vain(&mut self, moved: bool) -> bool {
        if let Some(engine) = &mut self.engine {
            engine.asked_in_vain();
        }
        self.polls.note(self.entries, moved)
    }
}

impl<T: Send + 'static> Guard<'_, T> {
    /// Looks with `find`; progresses and looks again when it finds nothing; lets others run when it
    /// has found nothing many times. For calls that return without what they looked for. Where that
    /// has gone on for long `doubt` asks whether what is looked for can still come
    /// ([`Engine::doubt`]), and ends it otherwise.
    #[inline]
    pub fn poll<R>(
        &mut self,
        mut find: impl FnMut(&mut Inner<T>) -> Option<R>,
        doubt: impl FnOnce(&mut Inner<T>),
    ) -> Option<R> {
        let inner = &mut **self;
        let found = find(inner);
        if found.is_some() {
            return found;
        }
        let engine = inner.engine.as_mut()?;
        let began = inner.polls.is_due().then(|| engine.messages.clock());
        let moved = engine.progress();
        let found = find(inner);
        let of_many = found.is_none() && inner.looked_in_vain(moved);
        match began {
            Some(began) if of_many => self.back_off(began, &mut find, doubt),
            _ => found,
        }
    }

    /// One more unsuccessful poll of many, which `began` then: yields, and polls again.
    #[cold]
    fn back_off<R>(
        &mut self,
        began: Tick,
        find: &mut impl FnMut(&mut Inner<T>) -> Option<R>,
        doubt: impl FnOnce(&mut Inner<T>),
    ) -> Option<R> {
        let now = self.clock();
        let in_row = self.polls.time(began, now);
        if self.polls.is_doubtful(now) {
            doubt(self);
            self.on_lasting(Lasting {
                on: WaitOn::default(),
                since: now,
                now,
                polls: true,
            });
            self.wake_waiters();
            return find(self);
        }
        if !self.oversubscribed {
            self.polls.rival.ask(now);
        }
        let shared = self.oversubscribed || self.polls.rival.is_there;
        self.polls.set_step(shared);
        if !shared || !in_row {
            return None;
        }
        let (alone, spin) = (self.alone, self.spin);
        let next = match self.polls.next(now, alone, spin) {
            Next::Nothing => return None,
            // Another thread of this rank polls, and sleeps if need be.
            _ if matches!(self.role, Role::Caller | Role::CallerAsleep) => {
                self.apart(thread::yield_now);
                let after = self.clock();
                self.polls.gave_way(now, after, false);
                return find(self);
            }
            next => next,
        };
        self.role = Role::Caller;
        if let Some(s) = &self.sleeper {
            s.take_back();
        }
        let found = match next {
            Next::Sleep(most) => self.nap(most, find),
            _ => self.give_way(now, find),
        };
        let asleep = matches!(next, Next::Sleep(_));
        let after = self.clock();
        self.polls.gave_way(now, after, asleep);
        self.role = Role::Free;
        self.pass_on();
        found
    }

    fn give_way<R>(
        &mut self,
        now: Tick,
        find: &mut impl FnMut(&mut Inner<T>) -> Option<R>,
    ) -> Option<R> {
        let oversubscribed = self.oversubscribed;
        self.apart(thread::yield_now);
        let engine = self.engine.as_mut()?;
        engine.counters.hit(Counter::PollsYielded);
        if oversubscribed {
            engine.messages.spread(now);
        }
        engine.progress();
        find(self)
    }

    fn nap<R>(
        &mut self,
        most: Duration,
        find: &mut impl FnMut(&mut Inner<T>) -> Option<R>,
    ) -> Option<R> {
        let mut found = None;
        self.engine.as_mut()?.counters.hit(Counter::PollsSlept);
        sleep_once(self, WaitOn::default(), most, &mut |s| {
            if found.is_none() {
                s.engine.as_mut().map(Engine::progress);
                found = find(s);
            }
            found.is_some()
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_micros(60);
    const ALONE: Duration = Duration::from_micros(60);

    /// A program whose polls all find nothing, and that is `away` before each of this many that
    /// take `look`: how long it was awake, how often it yielded, how long it slept.
    fn poll([away, look]: [Duration; 2], looks: u32) -> (Duration, u32, Duration) {
        let mut polls = PollBackoff::default();
        polls.set_step(true);
        let (mut now, mut yields, mut slept) = (Tick(1), 0, Duration::ZERO);
        for entry in 0..looks {
            let began = now + away;
            now = began + look;
            if !polls.note(entry as u64, false) || !polls.time(began, now) {
                continue;
            }
            let next = polls.next(now, ALONE, SPIN);
            let from = now;
            match next {
                Next::Nothing => continue,
                Next::Yield => yields += 1,
                Next::Sleep(most) => {
                    assert!(most <= NAPS[1]);
                    slept += most;
                    now = now + most;
                }
            }
            polls.gave_way(from, now, matches!(next, Next::Sleep(_)));
        }
        ((away + look) * looks, yields, slept)
    }

    /// A program that polls: it gives way, and sleeps half of its time.
    fn gives_way(away: u64, look: u64, looks: u32) {
        let (awake, yields, slept) = poll([away, look].map(Duration::from_nanos), looks);
        let most = (awake.as_micros() / (ALONE / YIELDS_OF_ALONE).as_micros()) as u32;
        assert!((most / 2..=most).contains(&yields), "{yields} of {most}");
        assert!(
            slept <= awake && slept > awake / 2,
            "{slept:?} of {awake:?}"
        );
    }

    #[test]
    fn a_program_that_polls_gives_way_and_sleeps_half_of_its_time() {
        gives_way(50, 50, 200_000);
    }

    #[test]
    fn so_does_one_whose_looks_take_long_by_themselves() {
        gives_way(50, 2_000, 10_000);
    }

    #[test]
    fn a_program_that_computes_between_looks_is_left_alone() {
        let times = [3_000, 100].map(Duration::from_nanos);
        let (_, yields, slept) = poll(times, 10_000);
        assert_eq!((yields, slept), (0, Duration::ZERO));
    }

    #[test]
    fn other_calls_and_whatever_moves_end_a_row() {
        let mut polls = PollBackoff::default();
        let found = |polls: &mut PollBackoff, moved| {
            let looks = (1..1000u64).map(|n| polls.note(if moved { n } else { 2 * n }, moved));
            looks.filter(|long| *long).count()
        };
        assert_eq!(found(&mut polls, false), 0);
        assert_eq!(found(&mut polls, true), 0);
    }

    #[test]
    fn with_a_processor_for_each_rank_a_look_only_counts() {
        let mut polls = PollBackoff::default();
        polls.set_step(false);
        let looks = (1..=10 * ROW_ALONE as u64)
            .filter(|n| polls.note(*n, false) && polls.time(Tick(*n), Tick(*n)));
        assert!((8..=10).contains(&looks.count()));
    }

    /// How often unsuccessful polls of this duration are checked.
    fn doubts(look: Duration, looks: u32, shared: bool) -> usize {
        let mut polls = PollBackoff::default();
        polls.set_step(shared);
        let mut now = Tick(1);
        let mut doubtful = |n| {
            now = now + look;
            let timed = polls.note(n as u64, false);
            if timed {
                polls.time(now, now);
            }
            timed && polls.is_doubtful(now)
        };
        (0..looks).filter(|n| doubtful(*n)).count()
    }

    #[test]
    fn looks_that_go_on_are_doubted_whatever_is_between_them() {
        for shared in [false, true] {
            for (look, in_90_ms) in [(100, 900_000), (3000, 30_000)] {
                let look = Duration::from_nanos(look);
                assert_eq!(doubts(look, in_90_ms, shared), 0);
                let times = doubts(look, 2 * in_90_ms + in_90_ms / 5, shared);
                assert!((8..=11).contains(&times), "{look:?}: {times}");
            }
        }
    }
}
