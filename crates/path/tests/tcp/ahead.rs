//! Short frames of a rank that runs ahead are joined, and nobody waits for them.

use super::*;

/// Frames of a burst, far more than go one by one.
const BURST: i32 = 100;

/// Both send and look, in turns: acknowledgements now ride on answers.
fn talk(a: &mut TcpPath, b: &mut TcpPath) {
    for _ in 0..20 {
        let (mut la, mut lb) = (Log::default(), Log::default());
        send(a, 1, 0, &filled(b"ping")).unwrap();
        until("ping", || b.poll(now(), &mut lb) && !lb.came.is_empty());
        send(b, 0, 0, &filled(b"pong")).unwrap();
        until("pong", || a.poll(now(), &mut la) && !la.came.is_empty());
    }
}

/// A burst of a rank that never looks; how often the other looked from the first frame to the last.
fn burst(a: &mut TcpPath, b: &mut TcpPath) -> u32 {
    for tag in 0..BURST {
        send(a, 1, tag, &filled(&body(tag, 8))).unwrap();
    }
    let (mut log, mut looks) = (Log::default(), 0);
    until("all of a burst", || {
        b.poll(now(), &mut log);
        looks += u32::from(!log.came.is_empty());
        log.came.len() == BURST as usize
    });
    let right = (0..BURST).map(|tag| (tag, body(tag, 8)));
    assert!(log.came.into_iter().eq(right), "in order, and whole");
    looks
}

#[test]
fn what_a_rank_sent_ahead_comes_though_it_never_looks_again() {
    let [mut a, mut b] = pair();
    ping(&mut a, &mut b);
    let looks = (0..20).map(|_| {
        talk(&mut a, &mut b);
        burst(&mut a, &mut b)
    });
    // What waits for a usual acknowledgement, of 40 ms, takes thousands of looks.
    let fewest = looks.min();
    assert!(fewest < Some(100), "{fewest:?} looks at best");
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
