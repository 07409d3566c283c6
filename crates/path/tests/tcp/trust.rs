//! Unauthenticated connections to a running job: the job's frames stay right, the connections are
//! counted.

use super::*;
use kw_path::sim::Rng;
use kw_proto::handshake::{HELLO_LEN, Identity, PROOF_LEN, Progress};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Two ranks that exchange frames, and the frames.
struct Job {
    paths: [TcpPath; 2],
    logs: [Log; 2],
    sent: i32,
}

impl Job {
    fn new() -> Job {
        Job {
            paths: pair(),
            logs: [Log::default(), Log::default()],
            sent: 0,
        }
    }

    /// One more frame each way, and a poll of each.
    fn turn(&mut self) {
        let size = [8, 3_000, 100_000][self.sent as usize % 3];
        let buf = filled(&body(self.sent, size));
        for me in 0..2 {
            send(&mut self.paths[me], 1 - me as u32, self.sent, &buf).unwrap();
        }
        self.sent += 1;
        self.poll(now());
    }

    fn poll(&mut self, t: Tick) {
        for me in 0..2 {
            self.paths[me].poll(t, &mut self.logs[me]);
        }
    }

    fn refused(&self) -> u64 {
        self.paths[0].connections_refused()
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.paths[0].address()).unwrap()
    }

    /// Continues until this many connections were refused.
    fn until_refused(&mut self, n: u64) {
        until("strangers are refused", || {
            if self.sent < 300 {
                self.turn();
            }
            self.poll(now());
            self.refused() >= n
        });
        assert_eq!(self.refused(), n);
    }

    /// All frames have come, in order, and nothing else.
    fn check(mut self) {
        self.turn();
        until("all frames", || {
            self.poll(now());
            self.logs.iter().all(|l| l.came.len() == self.sent as usize)
        });
        for log in &self.logs {
            assert!(log.down.is_empty());
            for (k, (tag, bytes)) in log.came.iter().enumerate() {
                assert_eq!(k as i32, *tag);
                assert!(*bytes == body(*tag, bytes.len()));
            }
        }
    }
}

#[test]
fn random_bytes_are_refused_while_frames_flow() {
    let seed = 77;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut job = Job::new();
    for n in 1..=40 {
        let len = rng.between(1, 400) as usize;
        let bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
        let mut stranger = job.connect();
        stranger.write_all(&bytes).unwrap();
        job.until_refused(n);
    }
    job.check();
}

#[test]
fn wrong_keys_jobs_and_ranks_are_refused() {
    let mut job = Job::new();
    let liars = [
        Identity::new([1; 32], "test", 1, 2),
        Identity::new(KEY, "another", 1, 2),
        Identity::new(KEY, "test", 0, 2),
        Identity::new(KEY, "test", 7, 9),
    ];
    for (n, liar) in liars.iter().enumerate() {
        let (_, hello) = liar.offer(0, [n as u8; 32]);
        job.connect().write_all(&hello).unwrap();
        job.until_refused(n as u64 + 1);
    }
    let (_, hello) = Identity::new(KEY, "test", 1, 2).offer(1, [5; 32]);
    job.connect().write_all(&hello).unwrap();
    job.until_refused(5);
    job.check();
}

#[test]
fn a_truncated_hello_and_a_silent_stranger_cost_a_seat_for_a_while() {
    let mut job = Job::new();
    let (_, hello) = Identity::new([1; 32], "test", 1, 2).offer(0, [0; 32]);
    let mut truncated = job.connect();
    truncated.write_all(&hello[..HELLO_LEN / 2]).unwrap();
    drop(truncated);
    job.until_refused(1);
    let silent = job.connect();
    // Rank 0 is polled later and later; the connection does not stay for long.
    let mut t = now();
    until("the silent stranger is closed", || {
        t = t + Duration::from_millis(10);
        job.poll(t);
        job.refused() == 2
    });
    drop(silent);
    job.check();
}

#[test]
fn who_hangs_up_without_a_word_is_no_stranger() {
    let mut job = Job::new();
    let (_, hello) = Identity::new(KEY, "test", 1, 2).offer(0, [0; 32]);
    for _ in 0..3 {
        drop(job.connect());
    }
    // Later connections are polled later.
    let mut truncated = job.connect();
    truncated.write_all(&hello[..1]).unwrap();
    drop(truncated);
    job.until_refused(1);
    job.check();
}

/// Reads exactly this many bytes while the job continues.
fn read(job: &mut Job, from: &mut TcpStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    let mut done = 0;
    from.set_nonblocking(true).unwrap();
    until("an answer", || {
        job.poll(now());
        match from.read(&mut bytes[done..]) {
            Ok(0) => panic!("closed after {done} bytes"),
            Ok(k) => done += k,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => panic!("{e}"),
        }
        done == n
    });
    bytes
}

#[test]
fn a_replayed_conversation_is_refused() {
    // A genuine rank 1 that connects through an eavesdropper.
    let mut zero = rank(0, 2);
    let mut one = rank(1, 2);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    one.introduce(Peer(0), &listener.local_addr().unwrap().to_string())
        .unwrap();
    send(&mut one, 0, 1, &filled(b"genuine")).unwrap();
    let (inner, _) = listener.accept().unwrap();
    let outer = TcpStream::connect(zero.address()).unwrap();
    for s in [&inner, &outer] {
        s.set_nonblocking(true).unwrap();
    }
    let mut sent = Vec::new();
    let (mut l0, mut l1) = (Log::default(), Log::default());
    until("the genuine message", || {
        carry(&inner, &outer, &mut sent);
        carry(&outer, &inner, &mut Vec::new());
        one.poll(now(), &mut l1);
        zero.poll(now(), &mut l0);
        !l0.came.is_empty()
    });
    assert_eq!(zero.connections_refused(), 0);
    let mut replay = TcpStream::connect(zero.address()).unwrap();
    replay.write_all(&sent).unwrap();
    until("the replay is refused", || {
        zero.poll(now(), &mut l0);
        zero.connections_refused() == 1
    });
    assert_eq!(l0.came, [(1, b"genuine".to_vec())]);
    assert!(l0.down.is_empty());
}

/// Carries waiting bytes from one socket to another, and keeps a copy.
fn carry(mut from: &TcpStream, mut to: &TcpStream, copy: &mut Vec<u8>) {
    let mut bytes = [0; 4096];
    if let Ok(n) = from.read(&mut bytes) {
        to.write_all(&bytes[..n]).unwrap();
        copy.extend_from_slice(&bytes[..n]);
    }
}

#[test]
fn one_who_knows_the_key_but_not_the_answer_is_refused() {
    let mut job = Job::new();
    let (offered, hello) = Identity::new(KEY, "test", 1, 2).offer(0, [4; 32]);
    let mut s = job.connect();
    s.write_all(&hello).unwrap();
    let challenge = read(&mut job, &mut s, 64);
    assert!(matches!(
        offered.handle(&mut &challenge[..]),
        Progress::Next(_)
    ));
    s.write_all(&challenge[64 - PROOF_LEN..]).unwrap();
    job.until_refused(1);
    job.check();
}

#[test]
fn a_second_connection_of_a_connected_rank_is_turned_away() {
    let mut job = Job::new();
    until("the first frames", || {
        job.turn();
        job.logs.iter().all(|l| !l.came.is_empty())
    });
    let (offered, hello) = Identity::new(KEY, "test", 1, 2).offer(0, [4; 32]);
    let mut s = job.connect();
    s.write_all(&hello).unwrap();
    let challenge = read(&mut job, &mut s, 64);
    let Progress::Next((answered, proof)) = offered.handle(&mut &challenge[..]) else {
        panic!("rank 0 proves itself");
    };
    s.write_all(&proof).unwrap();
    let verdict = read(&mut job, &mut s, PROOF_LEN);
    assert!(matches!(
        answered.handle(&mut &verdict[..]),
        Progress::Next(kw_proto::handshake::Verdict::Duplicate)
    ));
    job.check();
}

#[test]
fn a_flood_of_silent_connections_does_not_keep_the_peer_out() {
    let mut job = Job::new();
    let flood: Vec<_> = (0..150).map(|_| job.connect()).collect();
    until("frames in spite of the flood", || {
        if job.sent < 10 {
            job.turn();
        }
        job.poll(now());
        job.logs.iter().all(|l| l.came.len() == 10)
    });
    until("the flood is bounded", || {
        job.poll(now());
        job.refused() >= 100
    });
    drop(flood);
    job.check();
}
