//! Partitioned transfers between two ranks of one process, from seeds: parts become ready in any
//! order, alone and in ranges, and now and then the sender waits. Every part arrives once, none
//! before it is ready; and while the sender waits, all that are ready arrive.

mod dice;
mod simulated;

use dice::Dice;
use kw_base::calibration::Line;
use kw_base::{ContextId, Peer};
use kw_engine::{Engine, PartId, ReqId, Want};
use kw_path::sim::SimOptions;
use kw_sys::buf::Buf;
use simulated::ranks;
use std::time::Duration;

const CONTEXT: ContextId = ContextId(4);

fn make_send(engine: &mut Engine, from: &Buf, parts: u32) -> PartId {
    let (polls, envelope) = (engine.polls_for(Peer(1)), (CONTEXT, 0, 3));
    let messages = &mut engine.messages;
    let partitioned = &mut engine.parts.partitioned;
    partitioned.send(messages, polls, Peer(1), envelope, from, parts)
}

fn make_recv(engine: &mut Engine, into: &Buf, parts: u32) -> PartId {
    let want = Want {
        context: CONTEXT,
        source: Some((0, Peer(0))),
        tag: Some(3),
    };
    engine
        .parts
        .partitioned
        .recv(&mut engine.messages, want, into, parts)
}

fn start(engine: &mut Engine, id: PartId) -> ReqId {
    engine.parts.partitioned.start(&mut engine.messages, id)
}

fn make_ready(engine: &mut Engine, id: PartId, low: u32, high: u32) {
    let messages = &mut engine.messages;
    engine.parts.partitioned.make_ready(messages, id, low, high);
    engine.look_after_sending();
}

/// The sender's program waits: everything moves until nothing does.
fn wait(engines: &mut [Engine]) {
    for _ in 0..3000 {
        engines[0].asked_in_vain();
        engines.iter_mut().for_each(|e| {
            e.progress();
        });
    }
}

/// Runs of parts in any order: `(first, last)`.
fn order(dice: &mut Dice, parts: usize) -> Vec<(u32, u32)> {
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < parts {
        let last = (at + dice.below(4)).min(parts - 1);
        runs.push((at as u32, last as u32));
        at = last + 1;
    }
    for i in (1..runs.len()).rev() {
        runs.swap(i, dice.below(i + 1));
    }
    runs
}

fn transfer(seed: u64) {
    let mut dice = Dice(seed * 7919 + 1);
    let mut options = SimOptions::default();
    // rows of 13 KB
    options.lines.stream = Line {
        t0: 1000.0,
        tb: 3.1,
    };
    let (_net, mut engines) = ranks(2, seed, options, dice.below(2) == 0);
    let parts = 1 + dice.below(100);
    let bytes = [0, 8, 700, 5000, 20000][dice.below(5)];
    let halves = 1 + dice.below(2);
    let len = parts * bytes;
    let (from, into) = (Buf::alloc(len), Buf::alloc(len));
    let send = make_send(&mut engines[0], &from, parts as u32);
    let recv = make_recv(&mut engines[1], &into, (parts * halves) as u32);
    for round in 0..3 {
        let data: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256 + round) as u8).collect();
        from.write(0, &data);
        let ids = [start(&mut engines[0], send), start(&mut engines[1], recv)];
        let mut ready = vec![false; parts];
        for (low, high) in order(&mut dice, parts) {
            make_ready(&mut engines[0], send, low, high);
            ready[low as usize..=high as usize].fill(true);
            let waits = dice.below(8) == 0;
            match waits {
                true => wait(&mut engines),
                false => _ = engines[dice.below(2)].progress(),
            }
            let arrived = |part: usize| engines[1].parts.partitioned.has_arrived(recv, part as u32);
            // with more than 64 parts some travel together always
            let alone = parts <= 64 && bytes % halves == 0;
            for part in 0..parts * halves {
                let (there, due) = (arrived(part), ready[part / halves]);
                assert!(
                    due || !there,
                    "seed {seed}: part {part} came before it was ready"
                );
                assert!(
                    there || !(due && waits && alone),
                    "seed {seed}: part {part} did not come"
                );
            }
        }
        wait(&mut engines);
        for (engine, id) in engines.iter_mut().zip(ids) {
            let outcome = engine
                .messages
                .requests_mut()
                .take(id)
                .unwrap_or_else(|| panic!("seed {seed}: it never ends"));
            assert_eq!(outcome.failure, None, "seed {seed}");
        }
        let mut got = vec![0; len];
        into.read(0, &mut got);
        assert!(got == data, "seed {seed}: other bytes came");
    }
}

#[test]
fn every_part_arrives_once_and_none_too_early() {
    for seed in 1..60 {
        transfer(seed);
    }
}

/// Parts that take long to compute leave as they are ready, though the sender never waits; the
/// others leave together.
#[test]
fn parts_that_take_long_leave_one_by_one() {
    let mut options = SimOptions::calm();
    // 64 parts of 100 bytes are one row
    options.lines.stream = Line {
        t0: 100.0,
        tb: 0.25,
    };
    let (net, mut engines) = ranks(2, 1, options, true);
    let (from, into) = (Buf::alloc(6400), Buf::alloc(6400));
    let send = make_send(&mut engines[0], &from, 64);
    let recv = make_recv(&mut engines[1], &into, 64);
    for long in [true, false, true] {
        let ids = [start(&mut engines[0], send), start(&mut engines[1], recv)];
        (0..10).for_each(|_| _ = engines[1].progress());
        for part in 0..64 {
            if long {
                net.advance(Duration::from_micros(10));
            }
            make_ready(&mut engines[0], send, part, part);
            (0..20).filter(|_| long).for_each(|_| {
                engines[1].progress();
            });
            assert!(
                part == 63 || engines[1].parts.partitioned.has_arrived(recv, part) == long,
                "part {part}"
            );
        }
        wait(&mut engines);
        for (engine, id) in engines.iter_mut().zip(ids) {
            assert_eq!(
                engine
                    .messages
                    .requests_mut()
                    .take(id)
                    .expect("it has ended")
                    .failure,
                None
            );
        }
    }
}
