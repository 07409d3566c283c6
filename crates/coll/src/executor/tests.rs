//! The executor on memory that can be read: every state of a run is driven from outside.

use super::{
    AreaOffset, Capacity, ExecContext, Flags, FlowControl, LAST_STAGE, Need, Next, Op, Progress,
    Reservation, Resolver, STAGE_BITS, Wait, bind,
};
use crate::{RECV, SEND, SHM_BUFFERS, Schedule, Slice, Step, TEMPS};

/// Data shown by the other members, and actions of this rank.
#[derive(Default)]
struct Bench {
    /// Word and signature of each member, whatever the line.
    others: Vec<(u64, u64)>,
    did: Vec<String>,
}

impl Flags for Bench {
    fn word(&mut self, member: u32, _: u64) -> u64 {
        self.others[member as usize].0
    }

    fn flag(&mut self, member: u32, _: u64) -> (u64, u64) {
        self.others[member as usize]
    }

    fn raise(&mut self, number: u64, stage: u32, signature: u64) {
        self.did.push(format!("raise {number} {stage} {signature}"));
    }
}

impl ExecContext for Bench {
    type Flags = Self;

    fn flags(&mut self) -> &mut Self {
        self
    }

    fn copy(&mut self, from: AreaOffset, to: AreaOffset, len: u32) {
        self.did.push(format!(
            "copy {}+{} {}+{} {len}",
            from.area, from.by, to.area, to.by
        ));
    }

    fn reduce(&mut self, left: AreaOffset, right: AreaOffset, len: u32) {
        self.did
            .push(format!("reduce {} {} {len}", left.area, right.area));
    }

    fn combine(&mut self, left: AreaOffset, right: AreaOffset, into: AreaOffset, len: u32) {
        self.did.push(format!(
            "combine {} {} {} {len}",
            left.area, right.area, into.area
        ));
    }
}

/// A communicator of three, of which this rank is the first.
fn flow() -> FlowControl {
    let capacity = Capacity {
        lines: 4,
        slots: 2,
        ring: 640,
        working_set: 640,
    };
    FlowControl::new(0, 3, capacity)
}

fn bench() -> Bench {
    Bench {
        others: vec![(0, 0); 3],
        did: vec![],
    }
}

fn at(number: u64, stage: u64) -> u64 {
    number << STAGE_BITS | stage
}

#[test]
fn a_run_stops_at_each_wait_and_goes_on_where_it_stopped() {
    let (mut flow, mut bench) = (flow(), bench());
    let mut run = Progress::new(flow.reserve(Need::Lines), 9);
    let ops = [
        Op::Raise(1),
        Op::WatchAll(1),
        Op::Step(7),
        Op::Watch {
            member: 2,
            stage: 3,
        },
    ];
    let mut go = |run: &mut Progress, bench: &mut Bench| run.go_on(&ops, true, &mut flow, bench);
    bench.others[0] = (at(1, 1), 9);
    let waits = |member, stage| {
        Next::Wait(Wait::Flag {
            member,
            number: 1,
            word: at(1, stage),
        })
    };
    assert_eq!(go(&mut run, &mut bench), waits(1, 1));
    bench.others[1] = (at(1, 1), 9);
    assert_eq!(go(&mut run, &mut bench), waits(2, 1));
    bench.others[2] = (at(1, 2), 9);
    assert_eq!(go(&mut run, &mut bench), Next::Step(7));
    assert_eq!(go(&mut run, &mut bench), Next::Step(7), "it was not passed");
    run.pass();
    assert_eq!(go(&mut run, &mut bench), waits(2, 3));
    bench.others[2] = (at(1, 3), 9);
    assert_eq!(go(&mut run, &mut bench), Next::End);
    assert_eq!(bench.did, ["raise 1 1 9"], "once");
    assert!(!run.end(&mut flow, &mut bench), "no run waits for its turn");
    assert_eq!(bench.did.len(), 1, "it has marked itself before");
    assert!(flow.is_idle());
}

#[test]
fn collectives_of_one_rank_take_turns() {
    let (mut flow, mut bench) = (flow(), bench());
    let mut first = Progress::new(flow.reserve(Need::Lines), 0);
    let mut second = Progress::new(flow.reserve(Need::Lines), 0);
    let waits = Next::Wait(Wait::Turn(2));
    assert_eq!(second.go_on(&[], true, &mut flow, &mut bench), waits);
    assert!(!flow.has_come(Wait::Turn(2), &mut bench));
    assert_eq!(first.go_on(&[], true, &mut flow, &mut bench), Next::End);
    assert!(first.end(&mut flow, &mut bench), "the second one waits");
    assert_eq!(bench.did, ["raise 1 0 0"], "at its end at the latest");
    assert!(flow.has_come(Wait::Turn(2), &mut bench));
    assert_eq!(second.go_on(&[], true, &mut flow, &mut bench), Next::End);
}

#[test]
fn memory_is_waited_for_until_all_have_marked_the_collective_after_its_last_use() {
    let (mut flow, mut bench) = (flow(), bench());
    let end = |flow: &mut FlowControl, bench: &mut Bench, need| {
        let mut run = Progress::new(flow.reserve(need), 0);
        let next = run.go_on(&[], true, flow, bench);
        if next == Next::End {
            run.end(flow, bench);
        }
        next
    };
    assert_eq!(end(&mut flow, &mut bench, Need::Slots), Next::End);
    let waits = |member, number| {
        Next::Wait(Wait::Flag {
            member,
            number,
            word: at(number, 0),
        })
    };
    // The second collective has the other slot, and the first one's is free once all have marked
    // the second.
    bench.others = vec![(at(1, 0), 0); 3];
    assert_eq!(end(&mut flow, &mut bench, Need::Slots), Next::End);
    assert_eq!(end(&mut flow, &mut bench, Need::Slots), waits(1, 2));
}

#[test]
fn a_rank_in_another_call_ends_a_run_and_lets_nobody_wait() {
    let (mut flow, mut bench) = (flow(), bench());
    let mut run = Progress::new(flow.reserve(Need::Lines), 9);
    let ops = [
        Op::Watch {
            member: 1,
            stage: 1,
        },
        Op::Raise(1),
        Op::Step(0),
    ];
    bench.others[1] = (at(1, 0), 8);
    assert_eq!(run.go_on(&ops, true, &mut flow, &mut bench), Next::End);
    assert_eq!(run.odd, Some((1, 8)));
    assert_eq!(bench.did, [format!("raise 1 {LAST_STAGE} 9")]);
}

#[test]
fn a_run_with_messages_goes_on_past_a_rank_in_another_call() {
    let (mut flow, mut bench) = (flow(), bench());
    let mut run = Progress::new(flow.reserve(Need::Lines), 9);
    bench.others = vec![(at(1, 1), 9), (at(1, 0), 8), (at(1, 1), 9)];
    let ops = [Op::WatchAll(1), Op::Step(0)];
    assert_eq!(run.go_on(&ops, false, &mut flow, &mut bench), Next::Step(0));
    assert_eq!(run.odd, Some((1, 8)));
    assert!(bench.did.is_empty());
}

/// Elements of 8 bytes; shm buffers of the ranks of this node, 0 and 2, have 100 bytes each in area
/// 5.
struct Eight;

impl Resolver for Eight {
    fn row(&self, slice: Slice) -> Option<(AreaOffset, u64)> {
        let (area, first) = match slice.buf {
            TEMPS.. => return None,
            SHM_BUFFERS.. => (5, (slice.buf - SHM_BUFFERS) as i64 * 100),
            area => (area, 0),
        };
        let by = u32::try_from(first + 8 * slice.at).ok()?;
        Some((AreaOffset { area, by }, 8 * slice.len))
    }

    fn combines(&self) -> bool {
        true
    }

    fn long(&self) -> u64 {
        64
    }

    fn member(&self, rank: u32) -> Option<u32> {
        (rank % 2 == 0).then_some(rank / 2)
    }
}

#[test]
fn binding_works_out_what_lies_in_a_row_and_leaves_the_rest() {
    let (send, recv) = (Slice::whole(SEND, 4), Slice::whole(RECV, 4));
    let shm_buffer = |r| Slice::whole(SHM_BUFFERS + r, 4);
    let mut s = Schedule::default();
    s.use_short(4);
    s.copy(send, shm_buffer(2));
    s.combine(shm_buffer(0), shm_buffer(2), recv);
    s.combine(send, recv, shm_buffer(0));
    s.watch(2, 1);
    s.copy(Slice::whole(SEND, 8), Slice::whole(RECV, 8));
    let temp = s.elements(4);
    s.reduce(temp, recv);
    s.send(1, send);
    let mut ops = Vec::new();
    bind(&s, &Eight, &mut ops);
    let offset = |area, by| AreaOffset { area, by };
    let (a, b, zero, two) = (
        offset(SEND, 0),
        offset(RECV, 0),
        offset(5, 0),
        offset(5, 200),
    );
    let copy = |from, to| Op::Copy { from, to, len: 32 };
    let expected = [
        copy(a, two),
        Op::Combine {
            left: zero,
            right: two,
            into: b,
            len: 32,
        },
        // Others may look at a shm buffer between the two.
        copy(b, zero),
        Op::Reduce {
            left: a,
            right: zero,
            len: 32,
        },
        Op::Watch {
            member: 1,
            stage: 1,
        },
        // Long, in a temporary, a message.
        Op::Step(6),
        Op::Step(7),
        Op::Step(8),
    ];
    assert_eq!(ops, expected);
    assert!(matches!(s.steps[8], Step::Send { to: 1, .. }));
}

#[test]
fn without_shared_memory_each_step_is_left_to_the_owner() {
    let mut run = Progress::new(Reservation::NONE, 0);
    for step in 0..3 {
        assert_eq!(run.next_step(3), Next::Step(step));
        assert_eq!(run.next_step(3), Next::Step(step), "it was not passed");
        run.pass();
    }
    assert_eq!(run.next_step(3), Next::End);
}
