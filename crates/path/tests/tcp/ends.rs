//! How connections begin and end.

use super::*;
use rustix::net::{AddressFamily, SocketType};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

#[test]
fn a_rank_that_vanishes_is_reported_after_its_last_frames() {
    let [mut a, mut b] = pair();
    let (mut la, mut lb) = (Log::default(), Log::default());
    send(&mut b, 0, 1, &filled(&body(1, 50_000))).unwrap();
    until("the first frame", || {
        b.poll(now(), &mut lb);
        a.poll(now(), &mut la);
        !b.pending() && la.came.len() == 1
    });
    send(&mut b, 0, 2, &filled(&body(2, 100))).unwrap();
    drop(b);
    until("the end", || {
        a.poll(now(), &mut la);
        !la.down.is_empty()
    });
    assert_eq!(la.came.len(), 2);
    let (down, clean) = &la.down[0];
    assert!(!clean && down.to_string().contains("rank 1"), "{down}");
    assert!(send(&mut a, 1, 3, &filled(&[1])).is_err());
}

#[test]
fn a_goodbye_is_clean_and_flushes_what_was_queued() {
    let [mut a, mut b] = pair();
    let (mut la, mut lb) = (Log::default(), Log::default());
    let big = body(5, 20_000_000);
    send(&mut b, 0, 5, &filled(&big)).unwrap();
    b.close();
    assert!(b.pending());
    until("goodbye", || {
        b.poll(now(), &mut lb);
        a.poll(now(), &mut la);
        !la.down.is_empty()
    });
    assert!(!b.pending());
    assert!(la.came[0].1 == big);
    assert!(la.down[0].1);
    drop(b);
    until("the end of the connection", || {
        a.poll(now(), &mut la);
        send(&mut a, 1, 6, &filled(&[1])).is_err()
    });
    assert_eq!(la.down.len(), 1, "told once");
}

#[test]
fn the_network_of_a_peer_that_has_finished_is_reported() {
    let [mut a, mut b] = pair();
    let (mut la, mut lb) = (Log::default(), Log::default());
    send(&mut a, 1, 5, &filled(&[1])).unwrap();
    until("the message", || {
        a.poll(now(), &mut la);
        b.poll(now(), &mut lb);
        !lb.came.is_empty()
    });
    b.close();
    until("goodbye", || {
        b.poll(now(), &mut lb);
        a.poll(now(), &mut la);
        !la.down.is_empty()
    });
    drop(b);
    until("the end of the connection", || {
        a.poll(now(), &mut la);
        a.connections() == 0
    });
    let lines = a.network();
    assert!(
        matches!(&lines[..], [one] if one.contains("tcp to rank 1: 127.0.0.1")),
        "{lines:?}"
    );
}

/// Port of the loopback interface without a listener: it is taken until this process ends, so
/// that no other test gets it.
fn closed_port() -> String {
    let taken = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&taken, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let own = rustix::net::getsockname(&taken).unwrap();
    std::mem::forget(taken);
    SocketAddrV4::try_from(own).unwrap().to_string()
}

#[test]
fn an_unreachable_rank_is_an_error_that_names_every_address() {
    let mut a = rank(0, 2);
    let mut log = Log::default();
    let dead = closed_port();
    a.introduce(Peer(1), &dead).unwrap();
    send(&mut a, 1, 1, &filled(&[1])).unwrap();
    let mut t = now();
    until("giving up", || {
        a.poll(t, &mut log);
        t = t + Duration::from_millis(20);
        !log.down.is_empty()
    });
    let text = log.down[0].0.to_string();
    assert!(text.contains(&dead) && text.contains("refused"), "{text}");
    assert!(!a.pending());
}

#[test]
fn of_several_addresses_the_one_that_proves_the_key_wins() {
    let (mut a, mut b) = (rank(0, 2), rank(1, 2));
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let stranger = rank(0, 2);
    let text = [
        closed_port(),
        mute.local_addr().unwrap().to_string(),
        stranger.address(),
        b.address(),
    ]
    .join(",");
    a.introduce(Peer(1), &text).unwrap();
    let (mut la, mut lb) = (Log::default(), Log::default());
    send(&mut a, 1, 1, &filled(b"to you")).unwrap();
    until("the right address", || {
        a.poll(now(), &mut la);
        b.poll(now(), &mut lb);
        !lb.came.is_empty()
    });
    assert_eq!(lb.came, [(1, b"to you".to_vec())]);
}

#[test]
fn a_rank_that_is_connected_to_needs_no_address() {
    let (mut a, mut b) = (rank(0, 2), rank(1, 2));
    assert!(b.wants_address(Peer(0)));
    a.introduce(Peer(1), &b.address()).unwrap();
    let [mut la, _] = ping(&mut a, &mut b);
    assert!(!b.wants_address(Peer(0)));
    send(&mut b, 0, 2, &filled(b"pong")).unwrap();
    until("pong", || a.poll(now(), &mut la) && !la.came.is_empty());
}

#[test]
fn both_sides_connect_at_once_and_no_frame_is_lost() {
    for round in 0..50 {
        let [mut a, mut b] = pair();
        let (mut la, mut lb) = (Log::default(), Log::default());
        for tag in 0..4 {
            send(&mut a, 1, tag, &filled(&body(tag, 3000))).unwrap();
            send(&mut b, 0, tag, &filled(&body(tag, 3000))).unwrap();
            // Different orders of polling in different rounds.
            match (round + tag) % 3 {
                0 => drop(a.poll(now(), &mut la)),
                1 => drop(b.poll(now(), &mut lb)),
                _ => {}
            }
        }
        until("all frames", || {
            if round % 2 == 0 {
                a.poll(now(), &mut la);
            }
            b.poll(now(), &mut lb);
            a.poll(now(), &mut la);
            la.came.len() == 4 && lb.came.len() == 4
        });
        for log in [la, lb] {
            assert!(log.down.is_empty());
            let tags: Vec<_> = log.came.iter().map(|c| c.0).collect();
            assert_eq!(tags, [0, 1, 2, 3]);
        }
    }
}

#[test]
fn a_hundred_megabytes_each_way_do_not_block_each_other() {
    let [mut a, mut b] = pair();
    let (mut la, mut lb) = (Log::default(), Log::default());
    let bytes = body(0, 100_000).repeat(1000);
    let big = filled(&bytes);
    send(&mut a, 1, 0, &big).unwrap();
    send(&mut b, 0, 0, &big).unwrap();
    until("both messages", || {
        a.poll_from(Peer(1), now(), &mut la);
        b.poll_from(Peer(0), now(), &mut lb);
        la.came.len() == 1 && lb.came.len() == 1
    });
    assert!(la.came[0].1 == bytes && lb.came[0].1 == bytes);
}

#[test]
fn a_sleeper_is_woken_by_what_comes_and_by_room_to_send() {
    let [mut a, mut b] = pair();
    let (mut la, mut lb) = (Log::default(), Log::default());
    let sender = std::thread::spawn(move || {
        send(&mut b, 0, 1, &filled(&body(1, 30_000_000))).unwrap();
        sleep_until(&mut b, &mut lb, |b, _| !b.pending());
        b
    });
    sleep_until(&mut a, &mut la, |_, log| log.came.len() == 1);
    assert!(la.came[0].1 == body(1, 30_000_000));
    sender.join().unwrap();
}

/// Waits as the engine does: drain, arm, drain again, sleep.
fn sleep_until(path: &mut TcpPath, log: &mut Log, done: impl Fn(&TcpPath, &Log) -> bool) {
    use kw_sys::poller::{Interest, Poller};
    let mut outer = Poller::new().unwrap();
    outer.add(&*path, 1, Interest::Read).unwrap();
    let mut events = Vec::new();
    until("sleeping and waking", || {
        while path.poll(now(), log) {}
        path.arm(kw_path::Asleep::Waiting, now());
        if !path.poll(now(), log) && !done(path, log) {
            let watchdog = Some(Duration::from_secs(60));
            outer.wait(watchdog, &mut events).unwrap();
            assert!(!events.is_empty(), "the sleeper was not woken");
        }
        done(path, log)
    });
}
