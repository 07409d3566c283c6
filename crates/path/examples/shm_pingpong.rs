//! Ping-pong over the raw shared-memory path between two pinned processes: the limit for the
//! library above.
//!
//! `cargo run --release -p kw-path --example shm_pingpong [-- stream|rate|get|all [bytes ...]]`
//!
//! One way, best of several rounds; buffers are reused, as in the usual benchmarks. `rate` sends 64
//! messages in a row, then the other side does, and divides by 64.

use std::process::Command;
use std::time::{Duration, Instant};

use kw_base::{Peer, Tick};
use kw_path::shm::Local;
use kw_path::{Body, Destination, Down, Inbound, Path, ShmPath};
use kw_proto::wire::{Header, Kind, RemoteRegion};
use kw_sys::buf::Buf;

const WINDOW: u64 = 64;
const KEY: [u8; 32] = [1; 32];

struct Sink {
    buf: Buf,
    got: u64,
    last: u64,
}

impl Inbound for Sink {
    #[inline]
    fn on_frame(&mut self, _from: Peer, head: &Header, body: &[u8]) {
        self.buf.write(0, body);
        self.last = head.token;
        self.got += 1;
    }
    fn on_head(&mut self, _from: Peer, _head: &Header) -> Destination {
        Destination {
            cookie: 0,
            buf: self.buf.clone(),
            at: 0,
        }
    }
    fn on_body(&mut self, _from: Peer, _cookie: u64) {
        self.got += 1;
    }
    fn on_sent(&mut self, _to: Peer, _cookie: u64) {}
    fn on_down(&mut self, _down: Down, _clean: bool) {}
}

struct Side {
    path: ShmPath,
    me: u32,
    sink: Sink,
    out: Buf,
    /// Frames waited for.
    taken: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Stream,
    Rate,
    Get,
}

impl Side {
    fn peer(&self) -> Peer {
        Peer(1 - self.me)
    }

    fn frame(&mut self, kind: Kind, len: u64, token: u64, body: u64) {
        let head = Header {
            kind,
            context: 1,
            source: self.me,
            tag: 5,
            len,
            token,
        };
        let body = match body {
            0 => Body::None,
            len => Body::Payload {
                buf: &self.out,
                from: 0,
                len,
            },
        };
        let sent = self.path.send(Peer(1 - self.me), &head, body, 0);
        sent.expect("the peer lives");
    }

    #[inline]
    fn wait(&mut self) {
        self.taken += 1;
        let (peer, want) = (self.peer(), self.taken);
        let mut idle = 0u64;
        while self.sink.got < want {
            if !self.path.poll_from(peer, Tick(0), &mut self.sink) {
                idle += 1;
                assert!(idle < 20_000_000_000, "stuck");
            }
        }
    }

    fn ping(&mut self, how: How, len: u64) {
        match how {
            How::Stream => self.frame(Kind::Eager, len, 0, len),
            How::Rate => (0..WINDOW).for_each(|_| self.frame(Kind::Eager, len, 0, len)),
            How::Get => {
                self.frame(
                    Kind::Cts,
                    len,
                    self.out.contiguous().expect("a row") as u64,
                    0,
                );
                self.wait();
            }
        }
    }

    fn pong(&mut self, how: How, len: u64) {
        match how {
            How::Stream => self.wait(),
            How::Rate => (0..WINDOW).for_each(|_| self.wait()),
            How::Get => {
                self.wait();
                let (peer, at) = (self.peer(), RemoteRegion::at(self.sink.last));
                self.path
                    .get(peer, at, &self.sink.buf, 0, len)
                    .expect("permitted");
                self.frame(Kind::Fin, len, 0, 0);
            }
        }
    }

    fn round(&mut self, how: How, len: u64, times: u64) -> Duration {
        let begin = Instant::now();
        for _ in 0..times {
            if self.me == 0 {
                self.ping(how, len);
                self.pong(how, len);
            } else {
                self.pong(how, len);
                self.ping(how, len);
            }
        }
        begin.elapsed()
    }
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let local = |me| Local {
        me: Peer(me),
        peers: vec![Peer(0), Peer(1)],
    };
    if let Some(address) = args.first().and_then(|a| a.strip_prefix('@')) {
        pin(1);
        let path = ShmPath::join(&local(1), &KEY, address).expect("join");
        return run(path, 1, &args[1..]);
    }
    pin(0);
    let lead = ShmPath::lead(&local(0)).expect("lead");
    let me = std::env::current_exe().expect("own file");
    let mut child = Command::new(me)
        .arg(format!("@{}", lead.address()))
        .args(&args)
        .spawn()
        .expect("second process");
    let path = lead.serve(&KEY, Duration::from_secs(10)).expect("serve");
    run(path, 0, &args);
    child.wait().expect("second process");
}

fn run(path: ShmPath, me: u32, args: &[String]) {
    let mut sizes: Vec<u64> = args.iter().filter_map(|a| a.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![
            0,
            8,
            24,
            64,
            256,
            1024,
            4096,
            8192,
            16384,
            65536,
            262144,
            524288,
            1 << 20,
            4 << 20,
        ];
    }
    let max = sizes.iter().max().map_or(8, |&m| m.max(8)) as usize;
    let mut side = Side {
        path,
        me,
        sink: Sink {
            buf: Buf::alloc(max),
            got: 0,
            last: 0,
        },
        out: Buf::alloc(max),
        taken: 0,
    };
    side.out.write(0, &vec![7; max]);
    side.sink.buf.write(0, &vec![9; max]);
    play(&mut side, &sizes, args);
    // Queued data leaves only while a thread polls.
    while side.path.pending() {
        side.path.poll(Tick(0), &mut side.sink);
    }
}

fn play(side: &mut Side, sizes: &[u64], args: &[String]) {
    let wanted = args.first().map_or("all", |a| a.as_str());
    let wanted = wanted.trim_end_matches(|c: char| c.is_ascii_digit());
    let wanted = if wanted.is_empty() { "all" } else { wanted };
    for (name, how) in [
        ("stream", How::Stream),
        ("rate", How::Rate),
        ("get", How::Get),
    ] {
        if wanted != name && wanted != "all" {
            continue;
        }
        for &len in sizes {
            if len > 0 || matches!(how, How::Stream | How::Rate) {
                measure(side, name, how, len);
            }
        }
    }
}

fn measure(side: &mut Side, name: &str, how: How, len: u64) {
    let weight = if how == How::Rate { 8 } else { 1 };
    let times = (20_000_000 / weight / (len + 2000)).clamp(20, 10_000);
    side.round(how, len, times / 4 + 1);
    let best = (0..9)
        .map(|_| side.round(how, len, times))
        .min()
        .unwrap_or_default();
    let each = if how == How::Rate { WINDOW } else { 1 };
    let ns = best.as_nanos() as f64 / (times * each * 2) as f64;
    if side.me == 0 {
        println!(
            "{name:>7} {len:>8} B {ns:>10.0} ns {:>7.2} GB/s",
            len as f64 / ns
        );
    }
}
