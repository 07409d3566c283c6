//! Sixteen engines in one process over the simulated network: every rank sends to every other, in
//! virtual time, from one seed, with queued sends, payload in pieces, refused fetches.

mod simulated;

use kw_base::{ContextId, Peer};
use kw_engine::{ReqId, SendMode, Started, Want};
use kw_path::sim::{Reach, SimOptions};
use kw_sys::buf::Buf;
use simulated::ranks;

const WORLD: ContextId = ContextId(0);

fn filled(from: usize, to: usize, round: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (from * 31 + to * 17 + round * 7 + i) as u8)
        .collect()
}

fn exchange(seed: u64, options: SimOptions, write: bool) {
    const N: usize = 16;
    const SIZES: [usize; 5] = [0, 8, 512, 513, 9000];
    let (_net, mut engines) = ranks(N as u32, seed, options, write);
    let mut waiting: Vec<(usize, ReqId, Option<(Buf, Vec<u8>)>)> = Vec::new();
    for round in 0..SIZES.len() {
        for me in 0..N {
            for other in 0..N {
                let len = SIZES[(round + me + other) % SIZES.len()];
                let buf = Buf::alloc(len);
                let want = Want {
                    context: WORLD,
                    source: Some((other as u32, Peer(other as u32))),
                    tag: Some(round as i32),
                };
                // Half of the receives are posted late, after the sends of their round.
                if (me + round) % 2 == 0 {
                    let r = engines[me].messages.recv(want, buf.clone());
                    waiting.push((me, r, Some((buf, filled(other, me, round, len)))));
                }
            }
        }
        for me in 0..N {
            for other in 0..N {
                let len = SIZES[(round + me + other) % SIZES.len()];
                let buf = Buf::alloc(len);
                buf.write(0, &filled(me, other, round, len));
                let to = Peer(other as u32);
                let mode = if other % 5 == 0 {
                    SendMode::Synchronous
                } else {
                    SendMode::Standard
                };
                if let Started::Request(r) =
                    engines[me]
                        .messages
                        .send(to, (WORLD, me as u32, round as i32), mode, &buf)
                {
                    waiting.push((me, r, None));
                }
            }
        }
        for (me, engine) in engines.iter_mut().enumerate() {
            for other in 0..N {
                let len = SIZES[(round + me + other) % SIZES.len()];
                if (me + round) % 2 != 0 {
                    let buf = Buf::alloc(len);
                    let want = Want {
                        context: WORLD,
                        source: Some((other as u32, Peer(other as u32))),
                        tag: Some(round as i32),
                    };
                    let r = engine.messages.recv(want, buf.clone());
                    waiting.push((me, r, Some((buf, filled(other, me, round, len)))));
                }
            }
        }
    }
    let mut rounds = 0;
    while !waiting
        .iter()
        .all(|(me, r, _)| engines[*me].messages.requests().is_done(*r))
    {
        engines.iter_mut().for_each(|e| {
            e.progress();
        });
        rounds += 1;
        assert!(rounds < 2_000_000, "seed {seed}: something never ends");
    }
    for (me, r, expect) in waiting {
        let outcome = engines[me]
            .messages
            .requests_mut()
            .take(r)
            .expect("it has ended");
        assert_eq!(outcome.failure, None, "seed {seed}");
        if let Some((buf, bytes)) = expect {
            let mut got = vec![0; bytes.len()];
            buf.read(0, &mut got);
            assert_eq!(outcome.len as usize, bytes.len(), "seed {seed}");
            assert!(got == bytes, "seed {seed}: rank {me} got other bytes");
        }
    }
    assert!(engines.iter().all(|e| !e.busy()), "seed {seed}");
}

#[test]
fn everybody_to_everybody_by_rendezvous_and_write() {
    for seed in 1..6 {
        exchange(seed, SimOptions::default(), true);
    }
}

#[test]
fn everybody_to_everybody_without_write() {
    for seed in 10..13 {
        exchange(seed, SimOptions::default(), false);
    }
}

#[test]
fn everybody_to_everybody_by_get() {
    let options = SimOptions {
        get: Reach::Works,
        ..SimOptions::default()
    };
    for seed in 20..23 {
        exchange(seed, options.clone(), false);
    }
}

#[test]
fn a_refused_fetch_becomes_a_rendezvous() {
    let options = SimOptions {
        get: Reach::Denied,
        ..SimOptions::default()
    };
    for seed in 30..33 {
        exchange(seed, options.clone(), true);
    }
}

/// A peer that is cut off ends the operations that need it with a sentence, and nothing else.
#[test]
fn a_cut_ends_what_needs_the_peer_and_nothing_else() {
    let (net, mut engines) = ranks(3, 99, SimOptions::calm(), true);
    let buf = Buf::alloc(8);
    let from = |r: u32| Want {
        context: WORLD,
        source: Some((r, Peer(r))),
        tag: Some(1),
    };
    let lost = engines[0].messages.recv(from(1), buf.clone());
    let kept = engines[0].messages.recv(from(2), buf.clone());
    net.cut(Peer(0), Peer(1));
    for _ in 0..100 {
        engines.iter_mut().for_each(|e| {
            e.progress();
        });
    }
    let failure = engines[0]
        .messages
        .requests_mut()
        .take(lost)
        .expect("it has ended")
        .failure;
    assert!(format!("{failure:?}").contains("rank 1"), "{failure:?}");
    assert!(!engines[0].messages.requests().is_done(kept));
    engines[2]
        .messages
        .send(Peer(0), (WORLD, 2, 1), SendMode::Standard, &buf);
    for _ in 0..100 {
        engines.iter_mut().for_each(|e| {
            e.progress();
        });
    }
    assert_eq!(
        engines[0]
            .messages
            .requests_mut()
            .take(kept)
            .expect("it has ended")
            .failure,
        None
    );
}
