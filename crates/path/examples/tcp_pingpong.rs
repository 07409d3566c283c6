//! Ping-pong over the TCP path and over plain sockets, in turn in one run: the cost of the path,
//! without MPI.
//!
//! ```text
//! cargo run --release -p kw-path --example tcp_pingpong [sizes=8,65536] [rounds=N] [read_first=16448] [read_head=2048] [send_chunk=524288]
//!     [send_joined=2048] [read_buffer=65536] [socket_buffer=0]
//! ```
//! The program starts itself a second time. Both processes poll. One line per size: microseconds
//! one way, best and median of several runs, plain sockets and path.

use kw_base::Peer;
use kw_path::tcp::{Config, TcpPath, Tuning};
use kw_path::{Body, Destination, Down, Inbound, Member, Path, Ports, Sent};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_sys::clock::now;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

const RUNS: usize = 7;

struct Options {
    sizes: Vec<usize>,
    rounds: Option<u32>,
    tuning: Tuning,
    server: Option<(String, String)>,
}

fn options() -> Options {
    let mut o = Options {
        sizes: vec![8, 1024, 8192, 65536, 524_288, 4 << 20],
        rounds: None,
        tuning: Tuning::default(),
        server: None,
    };
    let (mut plain, mut path) = (None, None);
    for arg in std::env::args().skip(1) {
        let (name, value) = arg.split_once('=').expect("arguments are name=value");
        let number = || value.parse::<usize>().expect("a number");
        match name {
            "sizes" => {
                o.sizes = value
                    .split(',')
                    .map(|n| n.parse().expect("a size"))
                    .collect()
            }
            "rounds" => o.rounds = Some(number() as u32),
            "read_first" => o.tuning.read_first = number(),
            "read_head" => o.tuning.read_head = number(),
            "turns" => o.tuning.turns = number() as u32,
            "read_buffer" => o.tuning.read_buffer = number(),
            "send_chunk" => o.tuning.send_chunk = number() as u64,
            "send_joined" => o.tuning.send_joined = number(),
            "socket_buffer" => o.tuning.socket_buffer = Some(number()).filter(|&n| n > 0),
            "plain" => plain = Some(value.to_string()),
            "path" => path = Some(value.to_string()),
            _ => panic!("unknown argument {name}"),
        }
    }
    o.server = plain.zip(path);
    o
}

fn rounds(o: &Options, size: usize) -> u32 {
    o.rounds
        .unwrap_or((200_000_000 / (size + 20_000)).clamp(20, 5_000) as u32)
}

/// One end of a ping-pong.
trait End {
    fn send(&mut self, n: usize);
    fn recv(&mut self, n: usize);
}

struct Plain {
    stream: TcpStream,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl End for Plain {
    fn send(&mut self, n: usize) {
        let mut done = 0;
        while done < n {
            match self.stream.write(&self.out[done..n]) {
                Ok(k) => done += k,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn recv(&mut self, n: usize) {
        let mut done = 0;
        while done < n {
            match self.stream.read(&mut self.into[done..n]) {
                Ok(0) => panic!("closed"),
                Ok(k) => done += k,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => panic!("{e}"),
            }
        }
    }
}

struct Posted {
    buf: Buf,
    came: u32,
    sent: u32,
}

impl Inbound for Posted {
    fn on_frame(&mut self, _from: Peer, _head: &Header, body: &[u8]) {
        self.buf.write(0, body);
        self.came += 1;
    }
    fn on_head(&mut self, _from: Peer, _head: &Header) -> Destination {
        Destination {
            cookie: 0,
            buf: self.buf.clone(),
            at: 0,
        }
    }
    fn on_body(&mut self, _from: Peer, _cookie: u64) {
        self.came += 1;
    }
    fn on_sent(&mut self, _to: Peer, _cookie: u64) {
        self.sent += 1;
    }
    fn on_down(&mut self, down: Down, clean: bool) {
        assert!(clean, "{down}");
    }
}

struct Ours {
    path: TcpPath,
    peer: Peer,
    out: Buf,
    posted: Posted,
}

impl End for Ours {
    fn send(&mut self, n: usize) {
        let head = Header {
            kind: Kind::Eager,
            context: 0,
            source: 0,
            tag: 0,
            len: n as u64,
            token: 0,
        };
        let body = Body::Payload {
            buf: &self.out,
            from: 0,
            len: n as u64,
        };
        let sent = self.path.send(self.peer, &head, body, 1).expect("sends");
        self.posted.sent = 0;
        while self.path.pending() || sent == Sent::Queued && self.posted.sent == 0 {
            self.path.poll_from(self.peer, now(), &mut self.posted);
        }
    }

    fn recv(&mut self, _n: usize) {
        while self.posted.came == 0 {
            self.path.poll_from(self.peer, now(), &mut self.posted);
        }
        self.posted.came -= 1;
    }
}

fn open(me: u32, tuning: &Tuning) -> TcpPath {
    let config = Config {
        member: Member {
            me: Peer(me),
            size: 2,
            job: "pingpong".to_string(),
            key: [1; 32],
            interfaces: "auto".to_string(),
            ports: Ports::default(),
            single_host: true,
        },
        reliable: true,
        stripe: true,
        host: String::new(),
        most: usize::MAX,
    };
    TcpPath::tuned(config, tuning.clone()).expect("loopback")
}

fn ours(path: TcpPath, peer: u32, most: usize) -> Ours {
    let buf = Buf::alloc(most);
    let out = Buf::alloc(most);
    out.write(0, &vec![7; most]);
    buf.write(0, &vec![1; most]);
    Ours {
        path,
        peer: Peer(peer),
        out,
        posted: Posted {
            buf,
            came: 0,
            sent: 0,
        },
    }
}

fn plain(stream: TcpStream, most: usize) -> Plain {
    stream.set_nonblocking(true).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    Plain {
        stream,
        out: vec![3; most],
        into: vec![4; most],
    }
}

fn ping(end: &mut dyn End, size: usize, rounds: u32) -> f64 {
    let begin = now();
    for _ in 0..rounds {
        end.send(size);
        end.recv(size);
    }
    now().since(begin).as_nanos() as f64 / 2000.0 / rounds as f64
}

fn pong(end: &mut dyn End, size: usize, rounds: u32) {
    for _ in 0..rounds {
        end.recv(size);
        end.send(size);
    }
}

fn best_and_median(mut t: Vec<f64>) -> (f64, f64) {
    t.sort_by(f64::total_cmp);
    (t[0], t[t.len() / 2])
}

fn serve(o: &Options, plain_at: &str, path_at: &str, most: usize) {
    let mut a = plain(
        TcpStream::connect(plain_at).expect("the first process listens"),
        most,
    );
    let mut path = open(1, &o.tuning);
    path.introduce(Peer(0), path_at).expect("an address");
    let mut b = ours(path, 0, most);
    b.send(0);
    for &size in &o.sizes {
        for _ in 0..RUNS {
            pong(&mut a, size, rounds(o, size));
            pong(&mut b, size, rounds(o, size));
        }
    }
}

fn main() {
    let o = options();
    let most = o.sizes.iter().copied().max().unwrap_or(0).max(1);
    if let Some((plain_at, path_at)) = &o.server {
        return serve(&o, plain_at, path_at, most);
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let path = open(0, &o.tuning);
    let mut child = Command::new(std::env::current_exe().expect("our own path"))
        .args(std::env::args().skip(1))
        .arg(format!("plain={}", listener.local_addr().expect("bound")))
        .arg(format!("path={}", path.address()))
        .stdout(Stdio::inherit())
        .spawn()
        .expect("a second process");
    let mut a = plain(listener.accept().expect("the second process").0, most);
    let mut b = ours(path, 1, most);
    b.recv(0);
    println!("   bytes   plain best  median     path best  median   us one way");
    for &size in &o.sizes {
        let n = rounds(&o, size);
        let (mut ta, mut tb) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            ta.push(ping(&mut a, size, n));
            tb.push(ping(&mut b, size, n));
        }
        let (a0, a1) = best_and_median(ta);
        let (b0, b1) = best_and_median(tb);
        println!("{size:8} {a0:12.2} {a1:7.2} {b0:13.2} {b1:7.2}");
    }
    child.wait().expect("the second process ends");
}
