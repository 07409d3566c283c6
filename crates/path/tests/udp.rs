//! The UDP path against forged and echoed datagrams, and peers that are silent, stopped or gone, on
//! real sockets of the loopback interface.
//!
//! Nothing here sleeps: time-outs of the path are reached by giving `poll` a later `now`.

use kw_base::{Peer, Tick};
use kw_path::udp::{Config, UdpPath};
use kw_path::{Body, Destination, Down, Inbound, Member, Path, Ports, Sent};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Records incoming frames and events.
#[derive(Default)]
struct Log {
    came: Vec<(i32, Vec<u8>)>,
    down: Vec<(Down, bool)>,
    sent: Vec<u64>,
    open: Vec<(i32, Buf)>,
}

impl Inbound for Log {
    fn on_frame(&mut self, _from: Peer, head: &Header, body: &[u8]) {
        self.came.push((head.tag, body.to_vec()));
    }
    fn on_head(&mut self, _from: Peer, head: &Header) -> Destination {
        let buf = Buf::alloc(head.len as usize);
        self.open.push((head.tag, buf.clone()));
        let cookie = self.open.len() as u64 - 1;
        Destination { cookie, buf, at: 0 }
    }
    fn on_body(&mut self, _from: Peer, cookie: u64) {
        let (tag, buf) = self.open[cookie as usize].clone();
        let mut body = vec![0; buf.len() as usize];
        buf.read(0, &mut body);
        self.came.push((tag, body));
    }
    fn on_sent(&mut self, _to: Peer, cookie: u64) {
        self.sent.push(cookie);
    }
    fn on_down(&mut self, down: Down, clean: bool) {
        self.down.push((down, clean));
    }
}

fn rank(me: u32, size: u32) -> UdpPath {
    let config = Config {
        member: Member {
            me: Peer(me),
            size,
            job: "test".to_string(),
            key: [9; 32],
            interfaces: "auto".to_string(),
            ports: Ports::default(),
            single_host: true,
        },
        clock: kw_sys::clock::now,
    };
    UdpPath::new(config).expect("loopback")
}

fn pair() -> [UdpPath; 2] {
    let (mut a, mut b) = (rank(0, 2), rank(1, 2));
    a.introduce(Peer(1), &b.address()).unwrap();
    b.introduce(Peer(0), &a.address()).unwrap();
    [a, b]
}

fn body(tag: i32, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + tag as usize) as u8).collect()
}

fn send(path: &mut UdpPath, to: u32, tag: i32, len: usize) -> Result<Sent, Down> {
    let buf = Buf::alloc(len);
    buf.write(0, &body(tag, len));
    let mut head = Header::bare(Kind::Eager);
    (head.tag, head.len) = (tag, len as u64);
    let payload = Body::Payload {
        buf: &buf,
        from: 0,
        len: len as u64,
    };
    path.send(Peer(to), &head, payload, tag as u64)
}

fn now() -> Tick {
    kw_sys::clock::now()
}

fn until(what: &str, mut turn: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !turn() {
        assert!(begin.elapsed() < Duration::from_secs(60), "stuck: {what}");
    }
}

fn exchange(a: &mut UdpPath, b: &mut UdpPath, logs: &mut [Log; 2], tag: i32) {
    send(a, 1, tag, 50_000).unwrap();
    send(b, 0, tag, 8).unwrap();
    let n = logs[0].came.len() + 1;
    until("frames", || {
        a.poll(now(), &mut logs[0]);
        b.poll(now(), &mut logs[1]);
        logs.iter().all(|l| l.came.len() == n)
    });
    assert!(logs[1].came[n - 1] == (tag, body(tag, 50_000)));
    assert!(logs[0].came[n - 1] == (tag, body(tag, 8)));
}

/// Polls until `turn` returns true, half a second of the path's time at each poll, from `time` on.
fn pass(
    path: &mut UdpPath,
    log: &mut Log,
    time: &mut Tick,
    seconds: u64,
    mut turn: impl FnMut(&Log) -> bool,
) -> bool {
    for _ in 0..2 * seconds {
        *time = *time + Duration::from_millis(500);
        // Answers of kernels come at once on loopback, but in real time: several polls at each
        // moment.
        for _ in 0..20 {
            path.poll(*time, log);
        }
        if turn(log) {
            return true;
        }
    }
    false
}

#[test]
fn strangers_and_echoes_are_dropped_counted_and_change_nothing() {
    let [mut a, mut b] = pair();
    let mut logs = [Log::default(), Log::default()];
    let at: SocketAddr = b.address().parse().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let mut noise = 1u64;
    for tag in 0..40 {
        for len in [0, 1, 31, 32, 33, 96, 128, 1400] {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    noise = noise
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(99);
                    (noise >> 40) as u8
                })
                .collect();
            stranger.send_to(&bytes, at).unwrap();
            let mut like_ours = bytes.clone();
            if len > 15 {
                // From rank 0, of no session or of some, of every kind.
                like_ours[4..12].copy_from_slice(&[0, 0, 0, 0, (tag % 2) as u8, 0, 0, 0]);
                (like_ours[12], like_ours[13], like_ours[14], like_ours[15]) =
                    (tag as u8 % 7, 0, 1, 0);
                stranger.send_to(&like_ours, at).unwrap();
            }
        }
        exchange(&mut a, &mut b, &mut logs, tag);
    }
    assert!(b.connections_refused() > 100, "{}", b.connections_refused());
    assert_eq!(a.connections_refused(), 0);
    assert!(logs.iter().all(|l| l.down.is_empty()));
    let answer = stranger.recv_from(&mut [0; 2000]);
    assert!(
        answer.is_err(),
        "an unauthenticated peer gets no answer: {answer:?}"
    );
}

#[test]
fn a_hello_replayed_by_another_process_changes_nothing() {
    let (mut a, mut b) = (rank(0, 2), rank(1, 2));
    let tap = UdpSocket::bind("127.0.0.1:0").unwrap();
    a.introduce(Peer(1), &tap.local_addr().unwrap().to_string())
        .unwrap();
    b.introduce(Peer(0), &a.address()).unwrap();
    send(&mut a, 1, 1, 8).unwrap();
    let mut hello = vec![0; 70_000];
    let n = tap.recv(&mut hello).unwrap();
    let at: SocketAddr = b.address().parse().unwrap();
    let mut log = Log::default();
    for _ in 0..50 {
        tap.send_to(&hello[..n], at).unwrap();
        b.poll(now(), &mut log);
    }
    assert!(log.came.is_empty() && log.down.is_empty());
    // The two connect all the same: from the higher rank's call the lower one learns where the
    // higher can be reached.
    let mut logs = [Log::default(), log];
    send(&mut b, 0, 2, 8).unwrap();
    until("both frames", || {
        a.poll(now(), &mut logs[0]);
        b.poll(now(), &mut logs[1]);
        logs.iter().all(|l| l.came.len() == 1)
    });
}

#[test]
fn an_address_where_nobody_is_ends_in_a_sentence_that_lists_it() {
    let mut time = now();
    let mut a = rank(0, 2);
    let unused = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    a.introduce(Peer(1), &unused.to_string()).unwrap();
    send(&mut a, 1, 1, 8).unwrap();
    let mut log = Log::default();
    assert!(
        pass(&mut a, &mut log, &mut time, 15, |l| !l.down.is_empty()),
        "within 15 s"
    );
    let (down, clean) = &log.down[0];
    assert!(
        !clean && down.reason.contains(&unused.to_string()),
        "{down}"
    );
    assert!(
        down.reason.contains("no process has this port open"),
        "{down}"
    );
    assert!(!a.pending());
}

#[test]
fn a_peer_that_has_not_polled_yet_is_waited_for() {
    let mut time = now();
    let [mut a, mut b] = pair();
    send(&mut a, 1, 1, 8).unwrap();
    let mut log = Log::default();
    assert!(!pass(&mut a, &mut log, &mut time, 60, |l| !l
        .down
        .is_empty()));
    // The path has seen later times than the clock's; it continues from those.
    let mut other = Log::default();
    until("the frame", || {
        time = time + Duration::from_millis(1);
        a.poll(time, &mut log);
        b.poll(now(), &mut other);
        !other.came.is_empty()
    });
}

#[test]
fn a_stopped_peer_is_waited_for_and_a_dead_one_is_reported() {
    let mut time = now();
    let [mut a, mut b] = pair();
    let mut logs = [Log::default(), Log::default()];
    exchange(&mut a, &mut b, &mut logs, 1);
    assert_eq!(send(&mut a, 1, 2, 400_000), Ok(Sent::Queued));
    let [mut log, _] = logs;
    assert!(
        !pass(&mut a, &mut log, &mut time, 120, |l| !l.down.is_empty()),
        "it is only stopped"
    );
    assert!(a.pending());
    drop(b);
    assert!(
        pass(&mut a, &mut log, &mut time, 15, |l| !l.down.is_empty()),
        "within 15 s"
    );
    let (down, clean) = &log.down[0];
    assert!(!clean && down.reason.contains("probably died"), "{down}");
    assert!(!a.pending());
    assert!(send(&mut a, 1, 3, 8).is_err());
}

#[test]
fn after_both_goodbyes_nothing_is_pending_and_silence_means_nothing() {
    let mut time = now();
    let [mut a, mut b] = pair();
    let mut logs = [Log::default(), Log::default()];
    exchange(&mut a, &mut b, &mut logs, 1);
    a.close();
    until("goodbye", || {
        a.poll(now(), &mut logs[0]);
        b.poll(now(), &mut logs[1]);
        !logs[1].down.is_empty()
    });
    drop(a);
    b.close();
    assert!(
        !b.pending(),
        "a peer that has said goodbye needs nothing more"
    );
    let [_, mut log] = logs;
    assert!(!pass(&mut b, &mut log, &mut time, 60, |l| l.down.len() > 1));
    assert!(log.down[0].1, "clean");
}
