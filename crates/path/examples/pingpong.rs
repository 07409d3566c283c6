//! Ping-pong over a path between two processes that poll, without MPI: what the library above costs
//! is the difference to `bench/p2p.c`, which also has the same over plain sockets.
//!
//! `cargo run --release -p kw-path --example pingpong shm|tcp [BYTES...]`
//!
//! One line per size: nanoseconds one way, least and median of the rounds. Buffers are reused, as in
//! the usual benchmarks. The two processes are bound to the first two CPUs.

use kw_base::Peer;
use kw_path::shm::Local;
use kw_path::tcp::{Config, TcpPath};
use kw_path::{Body, Destination, Down, Inbound, Member, Path, Ports, ShmPath};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_sys::clock::now;
use std::process::{Child, Command};
use std::time::Duration;

const ROUNDS: usize = 9;
const KEY: [u8; 32] = [1; 32];
const SIZES: [u64; 9] = [0, 8, 64, 1024, 8192, 16_384, 65_536, 524_288, 4_194_304];

struct Received {
    buf: Buf,
    frames: u64,
}

impl Inbound for Received {
    #[inline]
    fn on_frame(&mut self, _from: Peer, _head: &Header, body: &[u8]) {
        self.buf.write(0, body);
        self.frames += 1;
    }
    fn on_head(&mut self, _from: Peer, _head: &Header) -> Destination {
        Destination {
            cookie: 0,
            buf: self.buf.clone(),
            at: 0,
        }
    }
    fn on_body(&mut self, _from: Peer, _cookie: u64) {
        self.frames += 1;
    }
    fn on_sent(&mut self, _to: Peer, _cookie: u64) {}
    fn on_down(&mut self, down: Down, clean: bool) {
        assert!(clean, "{down}");
    }
}

/// One of the two processes.
struct Side<P> {
    path: P,
    me: u32,
    out: Buf,
    received: Received,
}

impl<P: Path> Side<P> {
    fn send(&mut self, len: u64) {
        let (kind, source, buf) = (Kind::Eager, self.me, &self.out);
        let head = Header {
            kind,
            context: 1,
            source,
            tag: 5,
            len,
            token: 0,
        };
        let body = match len {
            0 => Body::None,
            len => Body::Payload { buf, from: 0, len },
        };
        let to = Peer(1 - self.me);
        self.path.send(to, &head, body, 1).expect("the peer lives");
        while self.path.pending() {
            self.path.poll_from(to, now(), &mut self.received);
        }
    }

    fn receive(&mut self) {
        while self.received.frames == 0 {
            let from = Peer(1 - self.me);
            self.path.poll_from(from, now(), &mut self.received);
        }
        self.received.frames -= 1;
    }

    /// Nanoseconds one way.
    fn round(&mut self, len: u64, times: u64) -> f64 {
        let begin = now();
        for _ in 0..times {
            if self.me == 0 {
                self.send(len);
                self.receive();
            } else {
                self.receive();
                self.send(len);
            }
        }
        now().since(begin).as_nanos() as f64 / (2 * times) as f64
    }
}

fn play<P: Path>(path: P, me: u32, sizes: &[u64]) {
    let most = sizes.iter().max().map_or(8, |&n| n.max(8)) as usize;
    let (out, buf) = (Buf::alloc(most), Buf::alloc(most));
    out.write(0, &vec![7; most]);
    buf.write(0, &vec![9; most]);
    let received = Received { buf, frames: 0 };
    let mut side = Side {
        path,
        me,
        out,
        received,
    };
    // Over TCP the first process learns the other's address from its first message.
    match me {
        0 => side.receive(),
        _ => side.send(0),
    }
    for &len in sizes {
        let times = (20_000_000 / (len + 2000)).clamp(20, 10_000);
        side.round(len, times / 4 + 1);
        let mut rounds = [(); ROUNDS].map(|()| side.round(len, times));
        rounds.sort_by(f64::total_cmp);
        if me == 0 {
            let (least, median) = (rounds[0], rounds[ROUNDS / 2]);
            println!("{len:>8} B {least:>10.0} ns, median {median:>10.0}");
        }
    }
}

fn tcp(me: u32) -> TcpPath {
    let member = Member {
        me: Peer(me),
        size: 2,
        job: "pingpong".to_string(),
        key: KEY,
        interfaces: "auto".to_string(),
        ports: Ports::default(),
        single_host: true,
    };
    let config = Config {
        member,
        reliable: true,
        stripe: true,
        host: String::new(),
        most: usize::MAX,
    };
    TcpPath::new(config).expect("loopback")
}

fn bind(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Starts the second process, which gets the address of the first one's path.
fn second(words: &[String], address: &str) -> Child {
    let own = std::env::current_exe().expect("own file");
    let mut command = Command::new(own);
    command.args(words).arg(format!("@{address}"));
    command.spawn().expect("a second process")
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut sizes: Vec<u64> = words.iter().filter_map(|w| w.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    let first = words.iter().find_map(|w| w.strip_prefix('@'));
    let me = u32::from(first.is_some());
    bind(me as usize);
    let local = Local {
        me: Peer(me),
        peers: vec![Peer(0), Peer(1)],
    };
    let mut child = None;
    match (words.first().map(String::as_str), first) {
        (Some("shm"), None) => {
            let lead = ShmPath::lead(&local).expect("shared memory");
            child = Some(second(&words, &lead.address()));
            let path = lead.serve(&KEY, Duration::from_secs(10));
            play(path.expect("the second process joins"), me, &sizes);
        }
        (Some("shm"), Some(address)) => {
            let path = ShmPath::join(&local, &KEY, address).expect("the first process leads");
            play(path, me, &sizes);
        }
        (Some("tcp"), None) => {
            let path = tcp(me);
            child = Some(second(&words, &path.address()));
            play(path, me, &sizes);
        }
        (Some("tcp"), Some(address)) => {
            let mut path = tcp(me);
            path.introduce(Peer(0), address).expect("an address");
            play(path, me, &sizes);
        }
        _ => panic!("pingpong shm|tcp [BYTES...]"),
    }
    if let Some(mut child) = child {
        child.wait().expect("the second process ends");
    }
}
