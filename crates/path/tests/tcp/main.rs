//! The TCP path against unauthenticated, lying and broken connections, on real sockets of the
//! loopback interface.
//!
//! Nothing here sleeps. Watchdogs only end what would never end; time-outs of the path are reached
//! by giving `poll` a later `now`.

mod coalescing;
#[path = "../common/mod.rs"]
mod common;
mod cuts;
mod ends;
mod limit;
mod rails;
mod segments;
mod soak;
mod trust;
mod typed;

use common::introduced;
use kw_base::{Peer, Tick};
use kw_path::tcp::{Config, TcpPath};
use kw_path::{Body, Destination, Down, Inbound, Member, Path, Ports, Sent};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use std::time::{Duration, Instant};

/// The key of the tests' job.
pub const KEY: [u8; 32] = [9; 32];

/// Records incoming frames and events.
#[derive(Default)]
pub struct Log {
    /// Bodies with their tags, in the order they were complete.
    pub came: Vec<(i32, Vec<u8>)>,
    /// Ends, with whether they were clean.
    pub down: Vec<(Down, bool)>,
    /// Cookies of payloads that were given back.
    pub sent: Vec<u64>,
    /// Ranks whose address was asked for.
    pub stray: Vec<Peer>,
    /// Memory for the next payload that comes in pieces, if not fresh memory.
    pub place: Option<Buf>,
    open: Vec<(i32, Buf)>,
}

impl Inbound for Log {
    fn on_frame(&mut self, _from: Peer, head: &Header, body: &[u8]) {
        self.came.push((head.tag, body.to_vec()));
    }
    fn on_head(&mut self, _from: Peer, head: &Header) -> Destination {
        let fresh = || Buf::alloc(head.len as usize);
        let buf = self.place.take().unwrap_or_else(fresh);
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
    fn on_stray(&mut self, peer: Peer) {
        self.stray.push(peer);
    }
    fn on_down(&mut self, down: Down, clean: bool) {
        self.down.push((down, clean));
    }
}

impl Log {
    /// Current contents of the buffers into which payloads came in pieces, with their tags.
    pub fn places(&self) -> impl Iterator<Item = (i32, Vec<u8>)> {
        self.open.iter().map(|(tag, buf)| {
            let mut bytes = vec![0; buf.len() as usize];
            buf.read(0, &mut bytes);
            (*tag, bytes)
        })
    }

    /// Payloads that have begun to come in pieces.
    pub fn begun(&self) -> usize {
        self.open.len()
    }
}

/// Parameters of a rank of the tests' job.
pub fn config(me: u32, size: u32) -> Config {
    Config {
        member: Member {
            me: Peer(me),
            size,
            job: "test".to_string(),
            key: KEY,
            interfaces: "auto".to_string(),
            ports: Ports::default(),
            single_host: true,
        },
        reliable: true,
        stripe: true,
        host: String::new(),
        most: usize::MAX,
    }
}

/// A rank of the tests' job.
pub fn rank(me: u32, size: u32) -> TcpPath {
    TcpPath::new(config(me, size)).expect("loopback")
}

/// Two ranks that know each other's address.
pub fn pair() -> [TcpPath; 2] {
    two_of(|me| config(me, 2))
}

/// Two ranks of these kinds that know each other's address.
pub fn two_of(kind: impl Fn(u32) -> Config) -> [TcpPath; 2] {
    let both = [0, 1].map(|me| TcpPath::new(kind(me)).expect("loopback"));
    let Ok(both) = introduced(both.into()).try_into() else {
        unreachable!("two are two");
    };
    both
}

/// Rank 0 sends rank 1 something, and so connects; returns what each has received.
pub fn ping(a: &mut TcpPath, b: &mut TcpPath) -> [Log; 2] {
    let [mut la, mut lb] = [Log::default(), Log::default()];
    send(a, 1, 1, &filled(b"ping")).unwrap();
    until("ping", || {
        a.poll(now(), &mut la);
        b.poll(now(), &mut lb);
        !lb.came.is_empty()
    });
    [la, lb]
}

/// The body of message `tag`.
pub fn body(tag: i32, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + tag as usize) as u8).collect()
}

/// Memory with these bytes.
pub fn filled(bytes: &[u8]) -> Buf {
    let buf = Buf::alloc(bytes.len());
    buf.write(0, bytes);
    buf
}

/// Sends a buffer as message `tag`.
pub fn send(path: &mut TcpPath, to: u32, tag: i32, buf: &Buf) -> Result<Sent, Down> {
    send_as(Kind::Eager, path, to, tag, buf)
}

/// The frame with this kind.
pub fn send_as(kind: Kind, path: &mut TcpPath, to: u32, tag: i32, buf: &Buf) -> Result<Sent, Down> {
    let head = Header {
        tag,
        len: buf.len(),
        ..Header::bare(kind)
    };
    let payload = Body::Payload {
        buf,
        from: 0,
        len: buf.len(),
    };
    path.send(Peer(to), &head, payload, tag as u64)
}

/// Runs `turn` until it returns true.
pub fn until(what: &str, mut turn: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !turn() {
        assert!(begin.elapsed() < Duration::from_secs(60), "stuck: {what}");
    }
}

/// The clock.
pub fn now() -> Tick {
    kw_sys::clock::now()
}
