//! The rule of flow control in every interleaving: ranks are threads, flags are loom's atomics, and
//! the shared memory is cells in which loom finds any two accesses that nothing orders. Each rank
//! runs a row of collectives by [`Progress::go_on`]. Run with `make loom`.

use super::{
    AreaOffset, Capacity, ExecContext, Flags, FlowControl, Need, Next, Op, Progress, STAGE_BITS,
};
use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_base::sync::{Arc, thread};
use loom::cell::UnsafeCell;

/// Lines, and slots for data, of each rank.
const LINES: usize = 3;
const SLOTS: usize = 2;

/// Memory shared by two ranks.
struct Shared {
    flags: [[AtomicU64; LINES]; 2],
    /// Rank 0's slots.
    slots: [UnsafeCell<u64>; SLOTS],
    /// Data in rank 0's lines.
    lines: [UnsafeCell<u64>; LINES],
}

/// One rank in one collective. Area 0 is private memory, area 1 the data that rank 0 shows.
struct Side {
    me: u32,
    number: u64,
    need: Need,
    shared: Arc<Shared>,
}

impl Side {
    fn cell(&self) -> &UnsafeCell<u64> {
        match self.need {
            Need::Lines => &self.shared.lines[self.number as usize % LINES],
            _ => &self.shared.slots[self.number as usize % SLOTS],
        }
    }
}

impl Flags for Side {
    fn word(&mut self, member: u32, number: u64) -> u64 {
        let line = &self.shared.flags[member as usize][number as usize % LINES];
        line.load(Ordering::Acquire)
    }

    fn raise(&mut self, number: u64, stage: u32, _: u64) {
        let line = &self.shared.flags[self.me as usize][number as usize % LINES];
        line.store(number << STAGE_BITS | stage as u64, Ordering::Release);
    }
}

/// The contents of a cell do not matter: loom checks the order of accesses.
impl ExecContext for Side {
    type Flags = Self;

    fn flags(&mut self) -> &mut Self {
        self
    }

    fn copy(&mut self, _: AreaOffset, to: AreaOffset, _: u32) {
        match to.area {
            1 => self.cell().with_mut(|_| ()),
            _ => self.cell().with(|_| ()),
        }
    }

    fn reduce(&mut self, _: AreaOffset, _: AreaOffset, _: u32) {}

    fn combine(&mut self, _: AreaOffset, _: AreaOffset, _: AreaOffset, _: u32) {}
}

/// Rank 0 publishes data and waits for no rank; rank 1 signals before it reads, so its mark in one
/// collective does not show that it has ended that one.
fn ops(me: u32) -> Vec<Op> {
    let offset = |area| AreaOffset { area, by: 0 };
    let copy = |from, to| Op::Copy {
        from: offset(from),
        to: offset(to),
        len: 1,
    };
    match me {
        0 => vec![copy(0, 1), Op::Raise(1)],
        _ => vec![
            Op::Raise(1),
            Op::Watch {
                member: 0,
                stage: 1,
            },
            copy(1, 0),
        ],
    }
}

/// One rank runs a row of collectives, each of which touches memory `early` collectives too early.
fn rank(me: u32, needs: &[Need], early: u64, shared: Arc<Shared>) {
    let capacity = Capacity {
        lines: LINES as u64,
        slots: SLOTS as u64,
        ring: 192,
        working_set: 192,
    };
    let (mut flow, ops) = (FlowControl::new(me, 2, capacity), ops(me));
    for &need in needs {
        let mut place = flow.reserve(need);
        place.hurry(early);
        let mut side = Side {
            me,
            number: place.number,
            need,
            shared: shared.clone(),
        };
        let mut progress = Progress::new(place, 0);
        while progress.go_on(&ops, true, &mut flow, &mut side) != Next::End {
            thread::yield_now();
        }
        progress.end(&mut flow, &mut side);
    }
}

fn row(needs: &'static [Need], early: u64) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let shared = Arc::new(Shared {
            flags: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            slots: std::array::from_fn(|_| UnsafeCell::new(0)),
            lines: std::array::from_fn(|_| UnsafeCell::new(0)),
        });
        let theirs = shared.clone();
        let reader = thread::spawn(move || rank(1, needs, early, theirs));
        rank(0, needs, early, shared);
        reader.join().expect("the reader ends");
    });
}

#[test]
fn loom_slots_are_given_out_when_everybody_has_read_them() {
    row(&[Need::Slots; 4], 0);
}

#[test]
fn loom_lines_are_given_out_when_everybody_has_read_them() {
    row(&[Need::Lines; 5], 0);
}

#[test]
fn loom_lines_and_slots_take_turns() {
    row(&[Need::Slots, Need::Lines, Need::Lines, Need::Slots], 0);
}

#[test]
#[should_panic]
fn loom_slots_given_out_one_collective_too_early_are_found() {
    row(&[Need::Slots; 4], 1);
}

#[test]
#[should_panic]
fn loom_lines_given_out_one_collective_too_early_are_found() {
    row(&[Need::Lines; 5], 1);
}
