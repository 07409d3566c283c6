//! Programs with every pattern of calls, and the progress thread beside them, in virtual time: none
//! makes the progress thread give up, and none pays much for it.

use super::*;

const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// `KW_WATCH`.
const WATCH: Duration = us(50);
const WAKE: Duration = us(15);
/// Cost of a check, of a hand-over, and of its return for the program.
const LOOK: Duration = us(25);
const HAND_OVER: Duration = us(2);
const BACK: Duration = us(2);
/// How long a wait polls before it sleeps.
const SPIN: Duration = us(64 * 15);
/// Duration of a call.
const CALL: Duration = Duration::from_nanos(100);

/// Next action of a program.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Starts a part of an exchange; the exchange goes on with the last of these. Number of pieces,
    /// and how long the network takes for one.
    Start(u32, Duration),
    /// A call that starts nothing and ends nothing.
    Call,
    Compute(Duration),
    /// Waits for the end of the exchange.
    Wait,
}
use Step::{Call, Compute, Start, Wait};

/// A rank whose program computes on the only CPU that there is.
struct Rank {
    now: Tick,
    progress: AsyncProgress,
    looks: Looks,
    entries: u64,
    /// When the progress thread looks next.
    alarm: Option<Tick>,
    /// Pieces that have not been taken, how long the network takes for each, and when the next one
    /// arrives.
    pieces: u32,
    each: Duration,
    next: Tick,
    /// Whether the network is another host's.
    far: bool,
    /// Time that the progress thread has taken from the program.
    taken: Duration,
    /// Pieces that it has taken.
    served: u32,
}

impl Rank {
    fn new(far: bool) -> Rank {
        let mut progress = AsyncProgress::new(false, WAKE);
        progress.state = AsyncState::Idle;
        Rank {
            now: Tick(1_000_000_000_000),
            progress,
            looks: Looks::default(),
            entries: 0,
            alarm: None,
            pieces: 0,
            each: Duration::ZERO,
            next: Tick(0),
            far,
            taken: Duration::ZERO,
            served: 0,
        }
    }

    fn take(&mut self, time: Duration) {
        self.now = self.now + time;
        self.taken += time;
    }

    fn enter(&mut self) {
        self.entries += 1;
        self.now = self.now + CALL;
        if self.progress.state.has_polled() {
            self.take(BACK);
            self.progress.entered(self.now, WATCH);
        }
    }

    /// A poll takes the arrived pieces; returns whether there were any.
    fn poll(&mut self) -> bool {
        let lies = self.pieces > 0 && self.next <= self.now;
        if lies {
            self.pieces -= 1;
            self.next = self.now + self.each;
        }
        lies
    }

    /// The counterpart of `Guard::leave_to_event_thread`.
    fn leave(&mut self) {
        let attends = self.progress.state.needs_kick() || self.progress.tries_to_leave();
        if self.pieces == 0 || !attends {
            return;
        }
        if self.progress.is_to_leave() {
            let transfer = if self.far {
                self.each * self.pieces
            } else {
                Duration::ZERO
            };
            self.take(HAND_OVER);
            self.progress.left(self.now, HAND_OVER, transfer);
        } else if self.progress.on(Event::Left) && self.alarm.is_none() {
            self.looks = Looks::default();
            self.alarm = Some(self.now);
        }
    }

    fn look(&mut self) {
        self.alarm = None;
        if self.progress.state != AsyncState::Watching {
            return;
        }
        self.take(LOOK);
        let busy = self.pieces > 0;
        let event = self.looks.judge(Sight {
            entries: self.entries,
            busy,
            holds_up: busy,
            waited_in: false,
            oversubscribed: false,
        });
        self.progress.looked(self.now, [LOOK; 2], event, false);
        if self.progress.state == AsyncState::Watching {
            self.alarm = Some(self.now + self.progress.pause(self.now, WATCH, &self.looks));
        }
    }

    /// The progress thread was woken by the network.
    fn serve(&mut self) {
        self.take(WAKE);
        self.progress.woken();
        self.served += self.poll() as u32;
        if self.pieces == 0 {
            self.progress.on(Event::AllEnded);
        }
    }

    fn compute(&mut self, time: Duration) {
        let mut left = time;
        loop {
            let polls = self.progress.state == AsyncState::Polling && self.pieces > 0;
            let comes = polls.then_some(self.next);
            let end = self.now + left;
            let Some(at) = comes
                .into_iter()
                .chain(self.alarm)
                .min()
                .filter(|&at| at < end)
            else {
                self.now = end;
                return;
            };
            left = left.saturating_sub(at.since(self.now));
            self.now = self.now.max(at);
            if self.alarm.is_some_and(|alarm| alarm <= self.now) {
                self.look();
            } else {
                self.serve();
            }
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Compute(time) => return self.compute(time),
            Start(pieces, each) => {
                self.enter();
                if self.pieces == 0 {
                    self.next = self.now + each;
                }
                (self.pieces, self.each) = (pieces, each);
            }
            Call => {
                self.enter();
                self.poll();
            }
            Wait => {
                self.enter();
                let before = self.now;
                while self.pieces > 0 {
                    self.now = self.now.max(self.next);
                    self.poll();
                }
                let slept = self.now.since(before).saturating_sub(SPIN);
                if !slept.is_zero() {
                    self.progress.idled(self.now, slept);
                }
                // Checks that were due meanwhile find a thread that waits.
                if self.alarm.is_some_and(|alarm| alarm <= self.now) {
                    self.alarm = None;
                    if self.progress.state == AsyncState::Watching {
                        self.progress.on(Event::Waiter);
                    }
                }
            }
        }
        self.leave();
    }

    /// Runs these this many times.
    fn repeat(&mut self, steps: &[Step], times: u32) {
        for _ in 0..times {
            steps.iter().for_each(|&step| self.run(step));
        }
    }
}

/// An exchange of `pieces`, each of which takes the network `each`, in this many calls, beside
/// computation for this many tenths of that.
fn exchange((pieces, each): (u32, Duration), calls: usize, tenths: u32) -> Vec<Step> {
    let mut steps = vec![Start(pieces, each); calls];
    steps.extend([Compute(each * pieces * tenths / 10), Wait]);
    steps
}

/// Earlier behaviour of a program that gains nothing from the progress thread, and how long its
/// unsuccessful hand-overs take to be repaid.
fn histories() -> Vec<(Vec<Step>, Duration)> {
    let long = Start(8, us(4000));
    let tests = |n, between| {
        let calls = (0..n).flat_map(move |_| [Call, Compute(between)]);
        [long].into_iter().chain(calls).chain([Wait]).collect()
    };
    let short = Start(2, us(30));
    let paid = Duration::ZERO;
    vec![
        (vec![Compute(us(1000))], paid),
        (vec![long, long, Wait], paid),
        ([vec![long; 16], vec![Wait]].concat(), paid),
        (vec![Start(2, us(1090)), Start(2, us(1090)), Wait], paid),
        (vec![Start(1, us(20)), Compute(us(100)), Wait], SPENT),
        (vec![short, short, Compute(us(30)), Wait, Call], SPENT),
        (tests(1000, us(1)), SPENT),
        (tests(1000, us(30)), SPENT),
        (tests(200, us(120)), SPENT),
    ]
}

/// Time in which [`TRUST`] unsuccessful hand-overs and two checks are repaid.
const SPENT: Duration = us(40_000);

/// The sizes of the measurement: 256 KB, 512 KB, 4 MB and 64 MB at 1 Gb/s.
const SIZES: [(u32, Duration); 4] = [(2, us(1090)), (2, us(2190)), (8, us(4380)), (128, us(4380))];

/// Runs exchanges after that; all overlap, except the first and those that begin before the
/// unsuccessful hand-overs are repaid.
fn overlaps(
    (history, settle): &(Vec<Step>, Duration),
    size: (u32, Duration),
    calls: usize,
    tenths: u32,
) {
    let mut rank = Rank::new(true);
    rank.repeat(history, 300);
    let (began, best) = (rank.now, size.1 * size.0 * tenths.max(10) / 10);
    for i in 0..40 {
        let before = rank.now;
        rank.repeat(&exchange(size, calls, tenths), 1);
        let took = rank.now.since(before);
        let may_be_late = i == 0 || before.since(began) < *settle;
        assert!(
            may_be_late || took <= best * 11 / 10,
            "{i}: {took:?} of {best:?}, {size:?}, {calls} calls, {tenths}, {history:?}"
        );
    }
}

#[test]
fn exchanges_overlap_from_the_second_iteration_on_whatever_came_before() {
    for history in histories() {
        for size in SIZES {
            for tenths in [7, 10, 15] {
                overlaps(&history, size, 2, tenths);
            }
        }
    }
}

#[test]
fn so_do_exchanges_with_many_neighbours() {
    for history in histories() {
        for size in &SIZES[2..] {
            overlaps(&history, *size, 12, 10);
        }
    }
}

/// A program that calls MPI so often that no check finds it away.
#[test]
fn so_do_exchanges_of_a_program_that_calls_now_and_then() {
    let works = (0..50).flat_map(|_| [Compute(us(1000)), Call]);
    let steps: Vec<Step> = [Start(25, us(2000))].into_iter().chain(works).collect();
    for (history, _) in histories() {
        let mut rank = Rank::new(true);
        rank.repeat(&history, 300);
        rank.repeat(&steps, 2);
        let (before, served) = (rank.now, rank.served);
        rank.repeat(&steps, 10);
        let (took, best) = (rank.now.since(before), us(50_000) * 10);
        assert!(took <= best * 102 / 100 && rank.pieces == 0, "{took:?}");
        assert!(
            rank.served > served + 100,
            "{} {history:?}",
            rank.served - served
        );
    }
}

#[test]
fn nothing_that_gains_nothing_costs_more_than_a_hundredth() {
    for far in [true, false] {
        for (history, _) in histories() {
            let mut rank = Rank::new(far);
            rank.repeat(&history, 20);
            let (began, before) = (rank.now, rank.taken);
            while rank.now.since(began) < Duration::from_secs(2) {
                rank.repeat(&history, 1);
            }
            let (taken, time) = (rank.taken - before, rank.now.since(began));
            assert!(taken * 100 <= time, "{taken:?} of {time:?}: {history:?}");
        }
    }
}
