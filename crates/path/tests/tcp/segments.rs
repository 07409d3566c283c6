//! Long payloads in segments: small frames pass them, and everything arrives whole.

use super::*;
use kw_path::Asleep;
use kw_path::tcp::Tuning;

/// Two ranks with segments of this many bytes that never take each other for dead.
fn pair_with(segment: u64) -> [TcpPath; 2] {
    let rank = |me| {
        let tuning = Tuning {
            segment_loopback: segment,
            silence: Duration::from_secs(3600),
            ..Tuning::for_size(2)
        };
        TcpPath::tuned(config(me, 2), tuning).expect("loopback")
    };
    let (mut a, mut b) = (rank(0), rank(1));
    a.introduce(Peer(1), &b.address()).unwrap();
    b.introduce(Peer(0), &a.address()).unwrap();
    [a, b]
}

fn send_data(path: &mut TcpPath, tag: i32, buf: &Buf) {
    let head = Header {
        tag,
        len: buf.len(),
        ..Header::bare(Kind::Data)
    };
    let payload = Body::Payload {
        buf,
        from: 0,
        len: buf.len(),
    };
    path.send(Peer(1), &head, payload, tag as u64).unwrap();
}

/// Tags in the order in which the messages were complete; checks every body.
fn exchange(a: &mut TcpPath, b: &mut TcpPath, lengths: &[usize]) -> Vec<i32> {
    let mut log = Log::default();
    until("all messages", || {
        a.poll(now(), &mut Log::default());
        b.poll(now(), &mut log);
        assert!(log.down.is_empty(), "{:?}", log.down);
        log.came.len() == lengths.len()
    });
    for (tag, bytes) in &log.came {
        assert!(
            *bytes == body(*tag, lengths[*tag as usize]),
            "message {tag}"
        );
    }
    log.came.iter().map(|(tag, _)| *tag).collect()
}

/// Sends a message of each length, tagged with its place: long ones as data, small ones as one
/// frame.
fn send_all(path: &mut TcpPath, lengths: &[usize]) {
    for (tag, len) in lengths.iter().enumerate() {
        let buf = filled(&body(tag as i32, *len));
        if *len > 4096 {
            send_data(path, tag as i32, &buf);
        } else {
            send(path, 1, tag as i32, &buf).unwrap();
        }
    }
}

#[test]
fn small_frames_pass_a_long_payload() {
    let [mut a, mut b] = pair_with(64 << 10);
    // Far more than the system's buffers hold, a small one behind it, and both again.
    let lengths = [40 << 20, 8, 40 << 20, 3_000];
    send_all(&mut a, &lengths);
    let order = exchange(&mut a, &mut b, &lengths);
    assert_eq!(
        order,
        [1, 0, 3, 2],
        "each small one before the large one that it was sent after"
    );
}

#[test]
fn payloads_of_every_length_around_a_segment_arrive_whole() {
    for segment in [4 << 10, 5_000, 64 << 10] {
        let [mut a, mut b] = pair_with(segment as u64);
        let mut lengths = vec![1 << 20];
        for n in [1, 2, 3] {
            for off in [-4_100, -1, 0, 1, 31, 32, 33, 4_096, 4_097] {
                lengths.push((n * segment + off).max(0) as usize);
            }
        }
        lengths.push(2 << 20);
        for (tag, len) in lengths.iter().enumerate() {
            send_data(&mut a, tag as i32, &filled(&body(tag as i32, *len)));
        }
        exchange(&mut a, &mut b, &lengths);
    }
}

#[test]
fn a_goodbye_does_not_pass() {
    let [mut a, mut b] = pair_with(64 << 10);
    let bytes = body(0, 40 << 20);
    send_data(&mut a, 0, &filled(&bytes));
    a.close();
    let mut log = Log::default();
    until("the goodbye", || {
        a.poll(now(), &mut Log::default());
        b.poll(now(), &mut log);
        !log.down.is_empty()
    });
    assert!(log.down[0].1, "clean");
    assert!(log.came.len() == 1 && log.came[0].1 == bytes);
}

/// Serves as the progress thread does while an operation goes on: arms, sleeps, polls the
/// connections that are ready, and no others.
fn serve_until(path: &mut TcpPath, log: &mut Log, done: impl Fn(&TcpPath, &Log) -> bool) {
    use kw_sys::poller::{Interest, Poller};
    let mut outer = Poller::new().unwrap();
    outer.add(&*path, 1, Interest::Read).unwrap();
    let mut events = Vec::new();
    until("serving", || {
        path.arm(Asleep::Stepping, now());
        if done(path, log) {
            return true;
        }
        let watchdog = Some(Duration::from_secs(60));
        outer.wait(watchdog, &mut events).unwrap();
        assert!(!events.is_empty(), "the server was not woken");
        path.poll_ready(now(), log);
        false
    });
}

#[test]
fn a_server_that_sleeps_until_segments_are_whole_misses_nothing() {
    let lengths = [
        9 << 20,
        8,
        70_000,
        100,
        65_536,
        65_537,
        1 << 20,
        131_072,
        3_000,
    ];
    let [mut a, mut b] = pair_with(64 << 10);
    let sender = std::thread::spawn(move || {
        send_all(&mut a, &lengths);
        serve_until(&mut a, &mut Log::default(), |a, _| !a.pending());
        a
    });
    let mut log = Log::default();
    serve_until(&mut b, &mut log, |_, log| log.came.len() == lengths.len());
    for (tag, bytes) in &log.came {
        let expected = body(*tag, lengths[*tag as usize]);
        assert!(*bytes == expected, "message {tag}");
    }
    sender.join().unwrap();
}

#[test]
fn a_server_that_waits_for_the_rest_of_a_segment_is_woken_by_the_end() {
    let [mut a, mut b] = pair_with(4 << 20);
    let buf = filled(&body(0, 40 << 20));
    send_data(&mut a, 0, &buf);
    let (mut la, mut lb) = (Log::default(), Log::default());
    until("the connection, and less than a segment", || {
        b.poll(now(), &mut lb);
        a.poll(now(), &mut la);
        lb.begun() == 1
    });
    drop(a);
    serve_until(&mut b, &mut lb, |_, log| !log.down.is_empty());
    assert!(lb.came.is_empty() && !lb.down[0].1);
}

#[test]
fn a_server_hears_that_what_it_lent_has_arrived_though_nothing_wakes_it() {
    let [mut a, mut b] = pair_with(64 << 10);
    let lengths = [8, 300 << 10];
    send_all(&mut a, &lengths[..1]);
    exchange(&mut a, &mut b, &lengths[..1]);
    // More than the other side's kernel accepts while no process reads.
    send_data(&mut a, 1, &filled(&body(1, lengths[1])));
    let mut la = Log::default();
    until("all is handed over", || {
        a.poll(now(), &mut la);
        !a.pending()
    });
    assert!(la.sent.is_empty(), "it has arrived already");
    let (go, may_go) = std::sync::mpsc::channel();
    let receiver = std::thread::spawn(move || {
        may_go.recv().unwrap();
        let mut lb = Log::default();
        serve_until(&mut b, &mut lb, |_, log| log.came.len() == 1);
        assert!(lb.came[0].1 == body(1, lengths[1]));
    });
    let looks = std::cell::Cell::new(0);
    serve_until(&mut a, &mut la, |_, log| {
        looks.set(looks.get() + 1);
        if looks.get() == 4 {
            go.send(()).unwrap();
        }
        log.sent == [1]
    });
    receiver.join().unwrap();
}
