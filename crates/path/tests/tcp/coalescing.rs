//! Short frames of a rank that runs ahead are joined, and no rank waits for them.

use super::*;

/// Frames of a burst, far more than go one by one.
const BURST: i32 = 100;

/// Both send and poll, in turns: acknowledgements now ride on answers.
fn talk(a: &mut TcpPath, b: &mut TcpPath) {
    for _ in 0..20 {
        let (mut la, mut lb) = (Log::default(), Log::default());
        send(a, 1, 0, &filled(b"ping")).unwrap();
        until("ping", || b.poll(now(), &mut lb) && !lb.came.is_empty());
        send(b, 0, 0, &filled(b"pong")).unwrap();
        until("pong", || a.poll(now(), &mut la) && !la.came.is_empty());
    }
}

/// Bursts of a rank that never looks, each read before the next; how often the other looked at most
/// for one of them.
fn bursts(a: &mut TcpPath, b: &mut TcpPath) -> u32 {
    let (mut log, mut most) = (Log::default(), 0);
    for first in [0, BURST, 2 * BURST] {
        let tags = first..first + BURST;
        for tag in tags.clone() {
            send(a, 1, tag, &filled(&body(tag, 8))).unwrap();
        }
        let mut looks = 0;
        until("all of a burst", || {
            b.poll(now(), &mut log);
            looks += 1;
            log.came.len() == tags.end as usize
        });
        most = most.max(looks);
    }
    let right = (0..3 * BURST).map(|tag| (tag, body(tag, 8)));
    assert!(log.came.into_iter().eq(right), "in order, and whole");
    most
}

#[test]
fn what_a_rank_sent_ahead_comes_though_it_never_looks_again() {
    let [mut a, mut b] = pair();
    ping(&mut a, &mut b);
    let mut looks: Vec<u32> = (0..21)
        .map(|_| {
            talk(&mut a, &mut b);
            bursts(&mut a, &mut b)
        })
        .collect();
    // Waiting for a usual acknowledgement, of 40 ms, takes thousands of polls.
    looks.sort_unstable();
    assert!(looks[10] < 100, "looks: {looks:?}");
}

#[test]
fn a_look_of_the_sender_lets_everything_go() {
    let [mut a, mut b] = pair();
    ping(&mut a, &mut b);
    talk(&mut a, &mut b);
    for tag in 0..BURST {
        send(&mut a, 1, tag, &filled(&body(tag, 8))).unwrap();
    }
    a.poll(now(), &mut Log::default());
    send(&mut a, 1, BURST, &filled(&body(BURST, 100_000))).unwrap();
    let mut log = Log::default();
    until("all of it", || {
        b.poll(now(), &mut log);
        a.poll(now(), &mut Log::default());
        log.came.len() == BURST as usize + 1
    });
    let tags = log.came.iter().map(|(tag, _)| *tag);
    assert!(tags.eq(0..=BURST), "short and long ones in order");
}
