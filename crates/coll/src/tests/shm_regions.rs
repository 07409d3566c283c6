//! The checker itself, on shm regions: planted mistakes must be faults, and the rule of reuse must
//! be just strict enough.

use super::*;
use crate::algorithms::bcast_shm;
use crate::check::Reuse;
use crate::sub_comm::SubComm;
use crate::{SHM_BUFFERS, ShmBuffer, Slice, Step};

/// The shm buffer of a rank, `len` units of it beyond the line.
fn shm_buffer(r: u32, len: u64) -> Slice {
    Slice {
        at: FLAG_LINE_BYTES as i64,
        ..line(r, len)
    }
}

/// The shm buffer of a rank, `len` units of its line.
fn line(r: u32, len: u64) -> Slice {
    Slice::whole(SHM_BUFFERS + r, len)
}

/// Every rank writes two units in its shm buffer, signals, and adds up the data that all have
/// written; `edit` plants a mistake at one rank.
fn sum(n: u32, kind: ShmBuffer, edit: impl Fn(u32, &mut Vec<Step>)) -> Vec<Call> {
    let call = |r| {
        let mut s = Schedule {
            shm_buffer: kind,
            long: 2,
            ..Schedule::default()
        };
        s.copy(Slice::whole(SEND, 2), shm_buffer(r, 2));
        s.raise(1);
        s.watch_all(1);
        s.copy(shm_buffer(n - 1, 2), Slice::whole(RECV, 2));
        for other in (0..n - 1).rev() {
            s.reduce(shm_buffer(other, 2), Slice::whole(RECV, 2));
        }
        edit(r, &mut s.steps);
        (s, vec![plain(base(r, 2)), plain(never(2))])
    };
    (0..n).map(call).collect()
}

fn run(calls: Vec<Call>) -> Vec<Vec<Memory>> {
    let n = calls.len() as u32;
    World::new(calls, false)
        .on(Some(shm_regions(n)[1]), None)
        .run()
}

#[test]
fn a_sum_over_the_shm_region_passes() {
    for m in run(sum(5, ShmBuffer::Short, |_, _| {})) {
        assert_eq!(m[1].cells, folded(0..5, 0..2));
    }
}

#[test]
#[should_panic(expected = "in no order")]
fn a_missing_watch_is_a_fault() {
    run(sum(3, ShmBuffer::Short, |r, steps| {
        if r == 2 {
            steps.remove(2);
        }
    }));
}

#[test]
#[should_panic(expected = "in no order")]
fn a_watch_of_the_wrong_rank_is_a_fault() {
    run(sum(3, ShmBuffer::Short, |r, steps| {
        if r == 2 {
            steps[2] = Step::Watch { rank: 0, stage: 1 };
        }
    }));
}

#[test]
#[should_panic(expected = "in no order")]
fn a_write_after_the_raise_is_a_fault() {
    run(sum(3, ShmBuffer::Short, |r, steps| {
        if r == 0 {
            steps.swap(0, 1);
        }
    }));
}

#[test]
#[should_panic(expected = "in no order")]
fn overwriting_what_others_still_read_is_a_fault() {
    run(sum(3, ShmBuffer::Short, |_, steps| {
        steps.push(steps[0]);
    }));
}

#[test]
#[should_panic(expected = "stands in collective 0 at op 2")]
fn a_missing_raise_is_a_fault() {
    run(sum(3, ShmBuffer::Short, |r, steps| {
        if r == 1 {
            steps.remove(1);
        }
    }));
}

#[test]
#[should_panic(expected = "raises 1 after 1")]
fn a_stage_that_does_not_go_up_is_a_fault() {
    run(sum(2, ShmBuffer::Short, |_, steps| {
        steps.push(Step::Raise(1))
    }));
}

#[test]
#[should_panic(expected = "of a shm buffer of")]
fn a_slice_beyond_the_shm_buffer_is_a_fault() {
    run(sum(2, ShmBuffer::Short, |_, steps| {
        let at = shm_regions(2)[1].short as i64 - 1;
        let to = Slice {
            at,
            ..shm_buffer(0, 2)
        };
        let from = Slice::whole(SEND, 2);
        steps.insert(0, Step::Copy { from, to });
    }));
}

#[test]
#[should_panic(expected = "shm buffers of different kinds")]
fn ranks_must_use_shm_buffers_of_one_kind() {
    let mut calls = sum(2, ShmBuffer::Short, |_, _| {});
    calls[1].0.shm_buffer = ShmBuffer::Long;
    run(calls);
}

#[test]
#[should_panic(expected = "never written")]
fn reading_what_nobody_wrote_is_a_fault() {
    run(sum(2, ShmBuffer::Short, |_, steps| {
        let to = Slice::whole(RECV, 1);
        let from = Slice {
            at: 3,
            ..line(0, 1)
        };
        steps.push(Step::Copy { from, to });
    }));
}

#[test]
#[should_panic(expected = "has a message in a shm buffer")]
fn messages_do_not_lie_in_a_shm_buffer() {
    let mut sender = Schedule {
        shm_buffer: ShmBuffer::Short,
        ..Schedule::default()
    };
    sender.copy(Slice::whole(SEND, 1), shm_buffer(0, 1));
    sender.send(1, shm_buffer(0, 1));
    let mut receiver = Schedule {
        shm_buffer: ShmBuffer::Short,
        ..Schedule::default()
    };
    receiver.recv(0, Slice::whole(RECV, 1));
    let memory = |r| vec![plain(base(r, 1)), plain(never(1))];
    run(vec![(sender, memory(0)), (receiver, memory(1))]);
}

#[test]
#[should_panic(expected = "in flight")]
fn memory_is_in_flight_until_the_rank_has_waited() {
    let mut one = Schedule::default();
    one.recv(1, Slice::whole(RECV, 1));
    one.copy(Slice::whole(SEND, 1), Slice::whole(RECV, 1));
    let mut other = Schedule::default();
    other.send(0, Slice::whole(SEND, 1));
    let memory = |r| vec![plain(base(r, 1)), plain(never(1))];
    run(vec![(one, memory(0)), (other, memory(1))]);
}

/// Rank 0 publishes two units and waits for no rank; the others signal before they read, so their
/// marks in one collective do not show its end.
fn news(n: u32, kind: ShmBuffer, shm_buffer: fn(u32, u64) -> Slice) -> Vec<Call> {
    let call = |r| {
        let mut s = Schedule {
            shm_buffer: kind,
            long: 2,
            ..Schedule::default()
        };
        if r == 0 {
            s.copy(Slice::whole(SEND, 2), shm_buffer(0, 2));
        }
        s.raise(1);
        s.watch(0, 1);
        s.copy(shm_buffer(0, 2), Slice::whole(RECV, 2));
        (s, vec![plain(base(r, 2)), plain(never(2))])
    };
    (0..n).map(call).collect()
}

/// Waiting for the same value several times in a row.
fn news_in_a_row(
    kind: ShmBuffer,
    shm_buffer: fn(u32, u64) -> Slice,
    reuse: Reuse,
) -> Vec<Vec<Vec<Memory>>> {
    let most = reuse.slots.max(reuse.lines).max(8);
    let rounds = (0..2 * most + 3).map(|_| news(3, kind, shm_buffer));
    let mut row = vec![vec![]; 3];
    for round in rounds {
        let parts = row.iter_mut().zip(round);
        parts.for_each(|(calls, call)| calls.push(call));
    }
    let shm_region = Some(shm_regions(3)[1]);
    World::row(row, false)
        .on(shm_region, None)
        .reusing(reuse)
        .run_all()
}

/// That many slots and lines, touched too early by that many collectives.
fn reuse(slots: usize, lines: usize, early: usize) -> Reuse {
    Reuse {
        slots,
        lines,
        early,
        newest: false,
    }
}

#[test]
fn the_rule_of_reuse_orders_collectives_in_a_row() {
    let long = [(ShmBuffer::Long, shm_buffer as fn(u32, u64) -> Slice, 3, 3)];
    let short = [2, 3, 16].map(|slots| (ShmBuffer::Short, shm_buffer as _, slots, 2 * slots));
    let lines = [2, 3, 16].map(|lines| (ShmBuffer::Short, line as _, 2, lines));
    for (kind, memory, slots, lines) in long.into_iter().chain(short).chain(lines) {
        for newest in [false, true] {
            let rule = Reuse {
                newest,
                ..reuse(slots, lines, 0)
            };
            for ops in news_in_a_row(kind, memory, rule) {
                assert!(ops.iter().all(|m| m[1].cells == base(0, 2)));
            }
        }
    }
}

#[test]
fn short_data_needs_nothing_but_lines() {
    let shm_region = Some(shm_regions(2)[0]);
    let a = ALL
        .iter()
        .find(|a| a.coll == Coll::Bcast && a.name == "shm");
    for (count, only) in [
        (1, true),
        (FLAG_LINE_BYTES, true),
        (FLAG_LINE_BYTES + 1, false),
    ] {
        for r in 0..2 {
            let call = CallView {
                count,
                shm_region,
                ..CallView::new(r, 2)
            };
            let s = emit(a.expect("a row"), &call);
            assert_eq!(s.touches_lines_only(1), only, "{count} units at rank {r}");
        }
    }
}

#[test]
#[should_panic(expected = "in no order")]
fn short_shm_buffers_given_out_one_collective_too_early_are_a_fault() {
    news_in_a_row(ShmBuffer::Short, shm_buffer, reuse(3, 6, 1));
}

#[test]
#[should_panic(expected = "in no order")]
fn lines_given_out_one_collective_too_early_are_a_fault() {
    news_in_a_row(ShmBuffer::Short, line, reuse(2, 3, 1));
}

#[test]
#[should_panic(expected = "in no order")]
fn long_shm_buffers_given_out_one_collective_too_early_are_a_fault() {
    news_in_a_row(ShmBuffer::Long, shm_buffer, reuse(3, 3, 1));
}

#[test]
fn parts_of_one_schedule_take_turns_on_a_shm_region() {
    // The root of both broadcasts waits for no rank by itself.
    let len = 3;
    for (n, shm_region) in (2..9).flat_map(|n| shm_regions(n).map(|b| (n, b))) {
        let ranks: Vec<u32> = (0..n).collect();
        let call = |r: u32| {
            let mut s = Schedule::default();
            let call = CallView {
                count: len,
                shm_region: Some(shm_region),
                ..CallView::new(r, n)
            };
            for turn in 0..2 {
                let data = Slice::whole(RECV, 2 * len).part(turn as u64 * len, len);
                let part = SubComm::new(&ranks).on(data, data).by_shm_region(turn);
                part.emit(&mut s, |s| bcast_shm::emit(&part.call(&call), s));
            }
            let all = 2 * len as usize;
            let cells = if r == 0 { base(0, all) } else { never(all) };
            (s, vec![plain(vec![]), plain(cells)])
        };
        let calls = (0..n).map(call).collect();
        for m in World::new(calls, false).on(Some(shm_region), None).run() {
            assert_eq!(m[1].cells, base(0, 2 * len as usize));
        }
    }
}

#[test]
fn every_shm_algorithm_may_follow_every_other() {
    // Kinds of shm buffers change places, so that shm buffers lie idle between two uses.
    let n = 5;
    for shm_region in shm_regions(n) {
        let all: Vec<_> = ALL
            .iter()
            .filter(|a| matches!(a.need, Need::Shm | Need::EvenShm))
            .collect();
        for first in 0..all.len() {
            let round = |k: usize| all[(first + k * (first + 1)) % all.len()];
            let calls = |r: u32| {
                (0..12)
                    .map(move |k| call_of(round(k), r, n, shm_region))
                    .collect()
            };
            let row = (0..n).map(calls).collect();
            World::row(row, true)
                .on(Some(shm_region), None)
                .reusing(reuse(2, 3, 0))
                .run_all();
        }
    }
}

/// Some call of an algorithm.
fn call_of(a: &Algorithm, rank: u32, n: u32, shm_region: ShmSizes) -> Call {
    let block = 6;
    let moves = matches!(a.coll, Coll::Allgather | Coll::Alltoall);
    let even = |buf| Blocks::Even { buf, each: block };
    let call = CallView {
        root: 1,
        count: block * n as u64,
        block_bytes: if moves { block } else { 0 },
        send: even(SEND),
        recv: even(RECV),
        shm_region: Some(shm_region),
        ..CallView::new(rank, n)
    };
    let len = (block * n as u64) as usize;
    (
        emit(a, &call),
        vec![
            plain(base(rank, len)),
            plain(if a.coll == Coll::Bcast {
                base(1, len)
            } else {
                never(len)
            }),
        ],
    )
}
