//! The cases of the suite.

use super::*;
use kw_path::Refused;
use kw_proto::wire::RemoteRegion;
use kw_types::layout::{Layout, basic};
use std::sync::Arc;

/// Sizes at the seams of rings, cells, copies and sockets.
pub const SIZES: &[usize] = &[
    0,
    1,
    7,
    8,
    23,
    24,
    25,
    31,
    32,
    63,
    64,
    65,
    87,
    88,
    89,
    255,
    256,
    511,
    512,
    513,
    1024,
    2047,
    4055,
    4056,
    4057,
    4095,
    4096,
    4097,
    8192,
    16383,
    16384,
    16385,
    65535,
    65536,
    65537,
    262143,
    262144,
    262145,
    1 << 20,
    5 << 20,
];

/// Frames of all sizes arrive whole and in order.
pub fn sizes_arrive_whole_and_in_order<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    for round in 0..2 {
        let base = w.seen[1].came.len();
        for (k, &n) in SIZES.iter().enumerate() {
            w.message(0, 1, k as i32, &bytes(k as i32, n));
        }
        w.settle(1, base + SIZES.len());
        check(&w.seen[1].came[base..], SIZES, round);
    }
}

fn check(came: &[Came], sizes: &[usize], round: i32) {
    for (k, (c, &n)) in came.iter().zip(sizes).enumerate() {
        let want = head(Kind::Eager, k as i32, n as u64);
        assert_eq!((c.from, c.head), (0, want), "round {round}");
        assert!(
            c.body == bytes(k as i32, n),
            "body of {n} bytes, round {round}"
        );
    }
}

/// Frames of every kind keep their headers, with and without bodies.
pub fn headers_of_every_kind_survive<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    let mut want = Vec::new();
    for k in (1..=255u8).filter_map(Kind::from_byte) {
        let own = [
            Kind::Bye,
            Kind::More,
            Kind::Striped,
            Kind::Piece,
            Kind::Taken,
        ];
        if own.contains(&k) {
            continue;
        }
        let head = head(k, -(k as i32), 40);
        let body = bytes(k as i32, head.body_len() as usize);
        let buf = filled(&body);
        match k {
            Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write => {
                w.send(0, 1, &head, payload(&buf))
            }
            _ if body.is_empty() => w.send(0, 1, &head, Body::None),
            _ => w.send(0, 1, &head, Body::Bytes(&body)),
        };
        want.push(Came {
            from: 0,
            head,
            body,
        });
    }
    w.settle(1, want.len());
    assert_eq!(w.seen[1].came, want);
}

/// A window of a buffer is sent, not all of it.
pub fn a_part_of_a_buffer_is_sent<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    let all = bytes(1, 400_000);
    let buf = filled(&all);
    for (k, (from, len)) in [(5u64, 20u64), (3, 5000), (77_777, 300_000)]
        .into_iter()
        .enumerate()
    {
        let body = Body::Payload {
            buf: &buf,
            from,
            len,
        };
        w.send(0, 1, &head(Kind::Data, k as i32, len), body);
        w.settle(1, k + 1);
        let part = &all[from as usize..(from + len) as usize];
        assert!(w.seen[1].came[k].body == part, "{from}+{len}");
    }
}

/// Buffers with gaps go out packed and come in unpacked, at every offset of the pieces they are cut
/// into.
pub fn typed_buffers_are_packed_and_unpacked<F: Fixture>() {
    const MPI_BYTE: usize = 0x247;
    let byte = Layout::named(basic::by_handle(MPI_BYTE).expect("a datatype"));
    let mut w = World::<F::P>::new::<F>(2);
    let mut sent = 0;
    for (blocks, len, stride) in [(3, 1, 2), (7, 5, 9), (3000, 3, 4), (40_001, 7, 24)] {
        let layout = Arc::new(byte.hvector(blocks, len, stride).expect("small"));
        let memory = Buf::alloc((blocks as i64 * stride) as usize);
        let typed = memory.typed_at(0, 1, &layout);
        let body = bytes(sent, typed.len() as usize);
        typed.write(0, &body);
        w.seen[1].layout = Some(layout.clone());
        let head = head(Kind::Eager, sent, typed.len());
        w.send(0, 1, &head, payload(&typed));
        sent += 1;
        w.settle(1, sent as usize);
        assert!(
            w.seen[1].came[sent as usize - 1].body == body,
            "{blocks} blocks"
        );
    }
}

/// Data beyond the destination is discarded, later data is intact, and a destination may begin
/// inside a buffer.
pub fn a_short_destination_loses_only_the_rest<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    (w.seen[1].cut, w.seen[1].at) = (70_001, 13);
    let sizes = [900_000, 3, 300_000, 70_002, 65];
    for (k, n) in sizes.into_iter().enumerate() {
        w.message(0, 1, k as i32, &bytes(k as i32, n));
    }
    w.settle(1, sizes.len());
    for (k, n) in sizes.into_iter().enumerate() {
        let (all, came) = (bytes(k as i32, n), &w.seen[1].came[k].body);
        assert!(
            came.len() == n || came.len() == n.saturating_sub(70_001),
            "{n}"
        );
        assert!(all.starts_with(came), "{n}");
    }
}

/// A receiver that does not poll stops no other rank and loses nothing.
pub fn a_thousand_frames_wait_for_a_receiver_that_sleeps<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    let size = |k: i32| [3, 100, 3000, 24, 9000, 70_000][k as usize % 6];
    for k in 0..1000 {
        w.message(0, 1, k, &bytes(k, size(k)));
        if k % 7 == 0 {
            w.poll(0);
        }
    }
    w.settle(1, 1000);
    for (k, c) in w.seen[1].came.iter().enumerate() {
        let k = k as i32;
        assert_eq!((c.head.tag, c.body.len()), (k, size(k)));
        assert!(c.body == bytes(k, size(k)), "frame {k}");
    }
}

/// Both directions at once, each side with more in flight than any buffer holds.
pub fn both_directions_flow_at_once<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    for k in 0..6 {
        for me in 0..2 {
            w.message(me, 1 - me, k, &bytes(k + me as i32, 1_500_000));
            w.message(me, 1 - me, k, &bytes(k, 8));
        }
    }
    w.settle(0, 12);
    w.settle(1, 12);
    for me in 0..2 {
        for (k, pair) in w.seen[me].came.chunks(2).enumerate() {
            assert!(
                pair[0].body == bytes((k + 1 - me) as i32, 1_500_000),
                "{k} to {me}"
            );
            assert!(pair[1].body == bytes(k as i32, 8), "{k} to {me}");
        }
    }
}

/// All ranks talk to each other, polling all or one, randomly by a printed seed.
pub fn many_peers_keep_their_order<F: Fixture>() {
    const N: usize = 6;
    let seed = 20_25;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut w = World::<F::P>::new::<F>(N);
    let mut count = [[0; N]; N];
    let mut total = [0; N];
    for _ in 0..1500 {
        let (from, to) = (rng.bits() as usize % N, rng.bits() as usize % N);
        if from == to {
            let now = kw_sys::clock::now();
            let peer = Peer(rng.bits() as u32 % N as u32);
            w.paths[from].poll_from(peer, now, &mut w.seen[from]);
            continue;
        }
        let size = SIZES[rng.bits() as usize % (SIZES.len() - 4)];
        let tag = count[from][to];
        count[from][to] += 1;
        total[to] += 1;
        w.message(
            from,
            to,
            tag,
            &bytes(tag + (from * N + to) as i32 * 1000, size),
        );
    }
    for (to, &n) in total.iter().enumerate() {
        w.settle(to, n);
    }
    for to in 0..N {
        let mut next = [0; N];
        for c in &w.seen[to].came {
            let from = c.from as usize;
            assert_eq!(c.head.tag, next[from], "{from} -> {to}");
            next[from] += 1;
            let salt = (from * N + to) as i32 * 1000;
            assert!(
                c.body == bytes(c.head.tag + salt, c.body.len()),
                "{from} -> {to}"
            );
        }
    }
}

/// A known source is enough to look at.
pub fn polling_one_source_brings_its_frames<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(3);
    for k in 0..50 {
        w.message(0, 2, k, &bytes(k, 40 * k as usize));
        let begin = Instant::now();
        while w.seen[2].came.len() <= k as usize {
            w.poll(0);
            let now = kw_sys::clock::now();
            w.paths[2].poll_from(Peer(0), now, &mut w.seen[2]);
            assert!(begin.elapsed() < Duration::from_secs(100), "stuck at {k}");
        }
    }
}

/// Memory is fetched if the path says it can.
pub fn get_moves_memory_or_refuses<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    let there = filled(&bytes(1, 300_000));
    let here = Buf::alloc(300_100);
    let lines = w.paths[1].lines(Peer(0), &kw_base::Calibration::START);
    let region = RemoteRegion::at(there.region().unwrap().bits() as u64);
    match w.paths[1].get(Peer(0), region, &here, 100, 300_000) {
        Ok(()) => assert_eq!(there_and_here(&here, 100, 300_000), bytes(1, 300_000)),
        Err(Refused::Unsupported) => assert!(lines.get.is_none()),
        Err(Refused::Denied(_)) => {
            assert!(
                w.paths[1]
                    .lines(Peer(0), &kw_base::Calibration::START)
                    .get
                    .is_none()
            )
        }
    }
}

fn there_and_here(buf: &Buf, from: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    buf.read(from, &mut out);
    out
}

/// Goodbye comes after everything that was sent, once.
pub fn goodbye_is_the_last_thing_heard<F: Fixture>() {
    let mut w = World::<F::P>::new::<F>(2);
    w.message(1, 0, 0, &bytes(0, 10));
    w.settle(0, 1);
    for k in 0..40 {
        w.message(0, 1, k, &bytes(k, 30_000 * (k as usize % 3)));
    }
    w.paths[0].close();
    w.until("goodbye", |w| {
        w.seen[1].down.contains_key(&0) && !w.paths[0].pending()
    });
    assert_eq!(w.seen[1].down.get(&0), Some(&true), "clean");
    assert_eq!(w.seen[1].came.len(), 40);
    let head = head(Kind::Eager, 1, 0);
    assert!(w.paths[0].send(Peer(1), &head, Body::None, 1).is_err());
}

/// A network that has opened for two ranks, and is in use, takes a third.
pub fn a_rank_that_joins_later_is_reached_both_ways<F: Joins>() {
    let mut w = World::<F::P>::new::<F>(2);
    w.message(0, 1, 1, &bytes(1, 300_000));
    w.message(1, 0, 2, &bytes(2, 8));
    w.settle(1, 1);
    w.settle(0, 1);
    let early = w.paths[0].send(Peer(2), &head(Kind::Eager, 0, 0), Body::None, 0);
    assert!(early.is_err(), "there is no rank 2 yet");
    for path in &mut w.paths {
        path.grow(3);
        path.grow(2);
    }
    let late = F::join(&w.paths);
    for path in w.paths.iter_mut().filter(|p| p.wants_address(Peer(2))) {
        path.introduce(Peer(2), &late.address())
            .expect("an address");
    }
    w.add(late);
    for (from, to, tag, size, n) in [
        (0, 2, 3, 300_000, 1),
        (2, 1, 4, 300_000, 2),
        (1, 0, 5, 8, 2),
    ] {
        let body = bytes(tag, size);
        w.message(from, to, tag, &body);
        w.settle(to, n);
        let last = &w.seen[to].came[n - 1];
        assert!((last.from, last.head.tag, &last.body) == (from as u32, tag, &body));
    }
}
