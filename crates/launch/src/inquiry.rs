//! Decides when ranks are asked what they wait for, and draws conclusions from their answers: a
//! state machine without clock and sockets.
//!
//! ```text
//! Idle --all ranks have told that they wait, or somebody asks--> First --all answered--> Second --all answered--> Idle: conclude
//!   ^----a rank does not answer, and no user has asked----------/
//! ```
//! If a rank's answer changes, the second round is repeated a few times.
//!
//! What a rank reports in both rounds in the same words was true at the moment between them, when
//! all had reported once. The same applies to missing answers: a rank that does not answer does not
//! wait in MPI, or is treated as if it did not.

use kw_base::Tick;
use kw_hang::{Report, State};
use std::time::Duration;

/// Time limit for answers: a waiting rank looks for a question every second.
const PATIENCE: Duration = Duration::from_millis(1500);
/// When all ranks wait and nothing could be proven: first and longest time until they are asked
/// again.
const AGAIN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];

/// How often the second round is repeated at most.
const REPEATS: u32 = 4;

/// Origin of the inquiry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// All ranks have waited for long.
    Waited,
    /// A request of the user.
    Asked,
    /// The time limit of the job.
    TimeOut,
}

/// State of a rank from the launcher's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stands {
    /// It can be asked.
    Hears,
    /// It has not called MPI_Init, or does not use this library.
    Silent,
    /// It has finished or ended.
    Finished,
}

/// Next action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Do {
    /// Ask these ranks.
    Ask(u32, Vec<u32>),
    /// Print the conclusion: where each rank is.
    Conclude(Cause, Vec<State>),
}

#[derive(Clone, Debug, Default)]
struct Rank {
    /// It has reported unasked that it waits, and nothing since then says that it continued.
    lasts: bool,
    /// How long it had waited, in milliseconds, at its last unasked report; it sends one per wait.
    reported: Option<u64>,
    first: Option<Report>,
    second: Option<Report>,
    asked: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Idle,
    First { until: Tick },
    Second { until: Tick },
}

/// The state machine.
#[derive(Debug)]
pub struct Inquiry {
    ranks: Vec<Rank>,
    phase: Phase,
    cause: Cause,
    round: u32,
    /// How often the second round may still be repeated.
    repeats: u32,
    /// The awaited rank at the last check: while this rank is awaited, no other one is checked.
    awaited: usize,
    /// At the last check all ranks had finished, and since then none has reported that it waits.
    over: bool,
    /// No inquiry starts before this time unless requested; `None`: as soon as all have reported.
    not_before: Option<Tick>,
    again: Duration,
}

impl Inquiry {
    /// Creates the state for a job of this many ranks.
    pub fn new(ranks: usize) -> Inquiry {
        Inquiry {
            ranks: vec![Rank::default(); ranks],
            phase: Phase::Idle,
            cause: Cause::Waited,
            round: 0,
            repeats: 0,
            awaited: 0,
            over: false,
            not_before: None,
            again: AGAIN[0],
        }
    }

    /// Handles a rank's report that it waits.
    pub fn on_report(&mut self, rank: u32, report: Report) {
        let round = self.round;
        let Some(rank) = self.ranks.get_mut(rank as usize) else {
            return;
        };
        // A rank of a busy machine may answer too late, and does not report the same wait again.
        rank.lasts |= rank
            .reported
            .is_some_and(|reported| report.waited >= reported);
        if report.round == 0 {
            (rank.lasts, rank.reported) = (true, Some(report.waited));
            self.over = false;
            // A different wait from the one that led to no conclusion.
            (self.again, self.not_before) = (AGAIN[0], None);
        }
        match self.phase {
            _ if report.round != round || !rank.asked => {}
            Phase::Idle => {}
            Phase::First { .. } => rank.first = Some(report),
            Phase::Second { .. } => rank.second = Some(report),
        }
    }

    /// Starts an inquiry for a user, whether or not any rank has waited for long.
    pub fn ask(&mut self, cause: Cause, now: Tick, stands: impl Fn(u32) -> Stands) -> Do {
        self.begin(cause, now, stands)
    }

    /// The action that is due now.
    pub fn poll(&mut self, now: Tick, stands: impl Fn(u32) -> Stands) -> Option<Do> {
        match self.phase {
            Phase::Idle if self.not_before.is_some_and(|at| now < at) => None,
            Phase::Idle => {
                self.not_before = None;
                let begins = self.all_last(&stands);
                begins.then(|| self.begin(Cause::Waited, now, stands))
            }
            Phase::First { until } => {
                let answered = self.have_answered(|r| &r.first, &stands);
                (answered || now >= until).then(|| self.go_on(answered, now, stands))?
            }
            Phase::Second { until } => {
                let answered = self.have_answered(|r| &r.second, &stands);
                (answered || now >= until).then(|| self.conclude(answered, now, stands))?
            }
        }
    }

    /// When an action is due although no report arrives.
    pub fn next(&self) -> Tick {
        match self.phase {
            Phase::First { until } | Phase::Second { until } => until,
            Phase::Idle => self.not_before.unwrap_or(Tick::NEVER),
        }
    }

    /// Handles the conclusion that all ranks wait and that nothing can be proven, or nothing new:
    /// the next inquiry comes later.
    pub fn again_later(&mut self, now: Tick) {
        self.not_before = Some(now + self.again);
        self.again = AGAIN[1].min(2 * self.again);
    }

    /// Handles a conclusion that was printed.
    pub fn was_printed(&mut self, now: Tick) {
        self.not_before = Some(now + AGAIN[1]);
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Rank)> {
        (0..).zip(&self.ranks)
    }

    /// Whether no rank is `awaited`. Starts at the rank found last time and continues in a circle,
    /// so ranks that arrive one after the other, in any order, cost one check each.
    fn none_is(&mut self, awaited: impl Fn(u32, &Rank) -> bool) -> bool {
        let size = self.ranks.len();
        let mut all = (self.awaited..size).chain(0..self.awaited);
        let found = all.find(|&at| awaited(at as u32, &self.ranks[at]));
        self.awaited = found.unwrap_or(self.awaited);
        found.is_none()
    }

    /// Whether every remaining rank has reported that it waits, and some ranks remain.
    fn all_last(&mut self, stands: &impl Fn(u32) -> Stands) -> bool {
        if self.over {
            return false;
        }
        let all = self.none_is(|number, rank| match stands(number) {
            Stands::Finished => false,
            Stands::Hears => !rank.lasts,
            Stands::Silent => true,
        });
        self.over = all && self.numbered().all(|(n, _)| stands(n) == Stands::Finished);
        all && !self.over
    }

    fn begin(&mut self, cause: Cause, now: Tick, stands: impl Fn(u32) -> Stands) -> Do {
        self.cause = cause;
        let hears = |r: &u32| stands(*r) == Stands::Hears;
        let ranks: Vec<u32> = (0..self.ranks.len() as u32).filter(hears).collect();
        for rank in &mut self.ranks {
            (rank.first, rank.second) = (None, None);
        }
        let until = now + PATIENCE;
        self.phase = Phase::First { until };
        self.repeats = REPEATS;
        self.question(ranks)
    }

    /// `ranks` are in ascending order.
    fn question(&mut self, ranks: Vec<u32>) -> Do {
        self.round += 1;
        for (number, rank) in (0..).zip(&mut self.ranks) {
            rank.asked = ranks.binary_search(&number).is_ok();
        }
        Do::Ask(self.round, ranks)
    }

    fn have_answered(
        &mut self,
        answer: impl Fn(&Rank) -> &Option<Report>,
        stands: &impl Fn(u32) -> Stands,
    ) -> bool {
        self.none_is(|n, r| r.asked && answer(r).is_none() && stands(n) == Stands::Hears)
    }

    /// Continues after the first round.
    fn go_on(&mut self, answered: bool, now: Tick, stands: impl Fn(u32) -> Stands) -> Option<Do> {
        if !answered && self.cause == Cause::Waited {
            self.forget_others(|r| r.first.is_some());
            return None;
        }
        let first = self.numbered().filter(|(_, r)| r.first.is_some());
        let ranks: Vec<u32> = first.map(|(n, _)| n).collect();
        if ranks.is_empty() {
            return self.conclude(true, now, stands);
        }
        let until = now + PATIENCE;
        self.phase = Phase::Second { until };
        Some(self.question(ranks))
    }

    /// Handles a rank that has continued: until it reports again that it waits, no conclusion is
    /// possible.
    fn forget_others(&mut self, which: impl Fn(&Rank) -> bool) {
        self.phase = Phase::Idle;
        for rank in &mut self.ranks {
            rank.lasts &= which(rank);
        }
    }

    fn conclude(
        &mut self,
        answered: bool,
        now: Tick,
        stands: impl Fn(u32) -> Stands,
    ) -> Option<Do> {
        if !answered && self.cause == Cause::Waited {
            self.forget_others(|r| r.second.is_some());
            return None;
        }
        if self.repeats > 0 && self.numbered().any(|(_, r)| r.has_changed()) {
            self.repeats -= 1;
            for rank in &mut self.ranks {
                rank.first = rank.second.take();
            }
            return self.go_on(true, now, stands);
        }
        self.phase = Phase::Idle;
        let states = self.numbered().map(|(n, rank)| state(rank, stands(n)));
        Some(Do::Conclude(self.cause, states.collect()))
    }
}

impl Rank {
    /// Whether it has answered twice in different words, or was not at rest.
    fn has_changed(&self) -> bool {
        let both = self.first.as_ref().zip(self.second.as_ref());
        both.is_some_and(|(first, second)| !second.quiet || !second.stands(first))
    }
}

/// Where a rank is, after both rounds.
fn state(rank: &Rank, stands: Stands) -> State {
    match (stands, &rank.first, &rank.second) {
        (Stands::Finished, ..) => State::Finished,
        (Stands::Silent, ..) => State::Silent,
        (Stands::Hears, Some(first), Some(second)) => {
            let mut report = second.clone();
            // A report that has changed in between was not true at that one moment.
            report.quiet &= second.stands(first);
            State::Waits(Box::new(report))
        }
        (Stands::Hears, ..) => State::NotWaiting(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    fn at(ms: u64) -> Tick {
        Tick(0) + Duration::from_millis(ms)
    }

    fn hears(_: u32) -> Stands {
        Stands::Hears
    }

    fn report(round: u32, mark: u64) -> Report {
        Report {
            round,
            mark,
            quiet: true,
            ..Report::default()
        }
    }

    /// Both ranks have reported that they wait, and are asked.
    fn asked() -> Inquiry {
        let mut inquiry = Inquiry::new(2);
        inquiry.on_report(0, report(0, 0));
        assert_eq!(inquiry.poll(at(1), hears), None, "rank 1 has not told");
        assert_eq!(inquiry.next(), Tick::NEVER, "nothing to do until it tells");
        inquiry.on_report(1, report(0, 0));
        assert_eq!(inquiry.poll(at(2), hears), Some(Do::Ask(1, vec![0, 1])));
        inquiry
    }

    fn answer(inquiry: &mut Inquiry, marks: [u64; 2]) {
        let round = inquiry.round;
        (0..2).for_each(|r| inquiry.on_report(r, report(round, marks[r as usize])));
    }

    #[test]
    fn what_is_reported_twice_is_concluded() {
        let mut inquiry = asked();
        inquiry.on_report(0, report(1, 5));
        assert_eq!(inquiry.poll(at(3), hears), None);
        inquiry.on_report(1, report(1, 6));
        assert_eq!(inquiry.poll(at(4), hears), Some(Do::Ask(2, vec![0, 1])));
        // A late answer to the first question does not count for the second.
        inquiry.on_report(0, report(1, 5));
        assert_eq!(inquiry.poll(at(5), hears), None);
        answer(&mut inquiry, [5, 7]);
        for again in 1..=REPEATS as u64 {
            let asked = Some(Do::Ask(2 + again as u32, vec![0, 1]));
            assert_eq!(
                inquiry.poll(at(5), hears),
                asked,
                "rank 1 has changed its words"
            );
            answer(&mut inquiry, [5, 7 + again]);
        }
        let Some(Do::Conclude(Cause::Waited, states)) = inquiry.poll(at(6), hears) else {
            panic!("nothing was concluded");
        };
        let quiet = |s: &State| matches!(s, State::Waits(r) if r.quiet);
        assert_eq!(states.iter().map(quiet).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_rank_that_has_gone_on_ends_it() {
        let mut inquiry = asked();
        inquiry.on_report(0, report(1, 0));
        assert_eq!(inquiry.poll(at(2000), hears), None);
        assert_eq!(
            inquiry.poll(at(3000), hears),
            None,
            "rank 1 has to tell again"
        );
        inquiry.on_report(1, report(0, 9));
        assert_eq!(inquiry.poll(at(4000), hears), Some(Do::Ask(2, vec![0, 1])));
    }

    #[test]
    fn a_rank_that_answers_late_is_asked_again_if_it_still_waits() {
        let late = |waited| Report {
            waited,
            ..report(1, 0)
        };
        for (waited, wanted) in [(1600, Some(Do::Ask(2, vec![0, 1]))), (90, None)] {
            let mut inquiry = Inquiry::new(2);
            let reported = Report {
                waited: 100,
                ..report(0, 0)
            };
            (0..2).for_each(|r| inquiry.on_report(r, reported.clone()));
            assert_eq!(inquiry.poll(at(2), hears), Some(Do::Ask(1, vec![0, 1])));
            inquiry.on_report(0, late(101));
            assert_eq!(inquiry.poll(at(1600), hears), None, "rank 1 is silent");
            inquiry.on_report(1, late(waited));
            assert_eq!(inquiry.poll(at(1700), hears), wanted);
        }
    }

    #[test]
    fn who_was_asked_by_somebody_and_does_not_answer_is_not_waiting() {
        let mut inquiry = Inquiry::new(3);
        let stands = |r| {
            if r == 2 {
                Stands::Finished
            } else {
                Stands::Hears
            }
        };
        assert_eq!(
            inquiry.ask(Cause::Asked, at(0), stands),
            Do::Ask(1, vec![0, 1])
        );
        inquiry.on_report(1, report(1, 0));
        assert_eq!(inquiry.poll(at(10), stands), None);
        assert_eq!(inquiry.poll(at(1500), stands), Some(Do::Ask(2, vec![1])));
        inquiry.on_report(1, report(2, 0));
        let Some(Do::Conclude(Cause::Asked, states)) = inquiry.poll(at(1510), stands) else {
            panic!("nothing was concluded");
        };
        assert_eq!(states[0], State::NotWaiting(String::new()));
        assert!(matches!(states[1], State::Waits(_)));
        assert_eq!(states[2], State::Finished);
    }

    /// Polls at each event of a job, and counts checks of ranks from the first call of MPI_Init to
    /// the end of the last process.
    #[test]
    fn a_look_for_each_event_is_enough_in_a_large_job() {
        let size = 10_000;
        let looks = Cell::new(0);
        let stages = RefCell::new(vec![Stands::Silent; size]);
        let stands = |r: u32| {
            looks.set(looks.get() + 1);
            stages.borrow()[r as usize]
        };
        let mut inquiry = Inquiry::new(size);
        // Forwards, backwards, and every seventh in turn; a process ends after it has finished.
        let forwards: fn(usize, usize) -> usize = |at, _| at;
        for (order, stage) in [
            (forwards, Stands::Hears),
            (|at, n| n - 1 - at, Stands::Hears),
            (|at, n| at * 7 % n, Stands::Finished),
            (forwards, Stands::Finished),
        ] {
            for turn in 0..size {
                let rank = order(turn, size);
                stages.borrow_mut()[rank] = stage;
                assert_eq!(inquiry.poll(at(0), stands), None);
            }
        }
        assert!(looks.get() < 6 * 4 * size, "{} looks", looks.get());

        looks.set(0);
        let wanted = inquiry.ask(Cause::Asked, at(0), hears);
        assert!(matches!(wanted, Do::Ask(1, ref ranks) if ranks.len() == size));
        stages.replace(vec![Stands::Hears; size]);
        for rank in 0..size as u32 - 1 {
            inquiry.on_report(rank, report(1, 0));
            assert_eq!(inquiry.poll(at(1), stands), None);
        }
        assert!(looks.get() < 3 * size, "{} looks", looks.get());
    }

    #[test]
    fn a_rank_that_speaks_again_after_all_have_finished_is_asked() {
        let mut inquiry = Inquiry::new(1);
        assert_eq!(inquiry.poll(at(0), |_| Stands::Finished), None);
        assert_eq!(inquiry.poll(at(1), hears), None, "it has not told");
        inquiry.on_report(0, report(0, 0));
        assert_eq!(inquiry.poll(at(2), hears), Some(Do::Ask(1, vec![0])));
    }

    #[test]
    fn what_could_not_be_proven_is_asked_again_later_and_later() {
        let mut inquiry = asked();
        answer(&mut inquiry, [0, 0]);
        inquiry.poll(at(3), hears);
        answer(&mut inquiry, [0, 0]);
        assert!(matches!(inquiry.poll(at(4), hears), Some(Do::Conclude(..))));
        inquiry.again_later(at(4));
        assert_eq!(inquiry.poll(at(503), hears), None);
        assert!(inquiry.poll(at(504), hears).is_some());
        inquiry.again_later(at(504));
        assert_eq!(inquiry.not_before, Some(at(1504)));
    }
}
