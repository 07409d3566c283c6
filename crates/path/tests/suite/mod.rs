//! The conformance suite of [`Path`]: the requirements on every path, written once.
//!
//! A path joins by implementing [`Fixture`] and naming itself in `conformance!` of
//! `tests/conformance.rs`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kw_base::{Peer, Tick};
use kw_path::sim::Rng;
use kw_path::{Body, Destination, Down, Inbound, Network, Path, Sent};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_types::layout::Layout;

mod cases;
pub use cases::*;

/// Makes connected paths in one process.
pub trait Fixture {
    /// The path under test.
    type P: Path;
    /// `n` paths, of peers `0..n`, each connected (or able to connect) to all others.
    fn connect(n: usize) -> Vec<Self::P>;
}

/// Opens one more path of a network whose peers are in use.
pub trait Joins: Fixture<P: Network> {
    /// The path of the next peer, which knows all others; they do not know it.
    fn join(paths: &[Self::P]) -> Self::P;
}

/// A frame as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// The sender.
    pub from: u32,
    /// Its header.
    pub head: Header,
    /// Its body.
    pub body: Vec<u8>,
}

/// A frame whose body is on its way: sender, header, destination, and the memory behind a
/// destination with gaps.
type Airborne = (u32, Header, Buf, Buf);

/// Records everything a path brings, and checks what can be checked at once.
#[derive(Default)]
pub struct Recorder {
    /// Frames in the order in which they were whole.
    pub came: Vec<Came>,
    /// Cookies of frames that left the caller's memory.
    pub sent: HashSet<u64>,
    /// Peers that went down, and whether they said goodbye.
    pub down: HashMap<u32, bool>,
    /// Room given to a destination is this much shorter than the payload, and begins here.
    pub cut: u64,
    pub at: u64,
    /// Destinations have this layout, if one is given.
    pub layout: Option<Arc<Layout>>,
    destination: HashMap<u64, Airborne>,
    begun: HashMap<u32, VecDeque<u64>>,
    next: u64,
}

impl Inbound for Recorder {
    fn on_frame(&mut self, from: Peer, head: &Header, body: &[u8]) {
        assert_eq!(head.body_len(), body.len() as u64, "{head:?}");
        self.came.push(Came {
            from: from.0,
            head: *head,
            body: body.to_vec(),
        });
    }

    fn on_head(&mut self, from: Peer, head: &Header) -> Destination {
        self.next += 1;
        let room = self.at + head.body_len().saturating_sub(self.cut);
        let (buf, memory) = match &self.layout {
            None => (Buf::alloc(room as usize), Buf::EMPTY),
            Some(layout) => {
                let memory = Buf::alloc(layout.extent() as usize);
                (memory.typed_at(0, 1, layout), memory)
            }
        };
        let airborne = (from.0, *head, buf.clone(), memory);
        self.destination.insert(self.next, airborne);
        self.begun.entry(from.0).or_default().push_back(self.next);
        Destination {
            cookie: self.next,
            buf,
            at: self.at,
        }
    }

    fn on_body(&mut self, from: Peer, cookie: u64) {
        let first = self.begun.get_mut(&from.0).and_then(|q| q.pop_front());
        assert_eq!(first, Some(cookie), "lands in the order of the heads");
        let (who, head, buf, _memory) = self.destination.remove(&cookie).expect("complete once");
        assert_eq!(who, from.0);
        let mut body = vec![0; buf.len() as usize];
        buf.read(0, &mut body);
        self.came.push(Came {
            from: who,
            head,
            body: body.split_off(self.at as usize),
        });
    }

    fn on_sent(&mut self, _to: Peer, cookie: u64) {
        assert!(self.sent.insert(cookie), "frame {cookie} sent twice");
    }

    fn on_down(&mut self, down: Down, clean: bool) {
        assert_eq!(self.down.insert(down.peer.0, clean), None, "{down}");
    }
}

/// Paths with their recorders.
pub struct World<P> {
    pub paths: Vec<P>,
    pub seen: Vec<Recorder>,
    cookie: u64,
    queued: Vec<HashSet<u64>>,
}

impl<P: Path> World<P> {
    pub fn new<F: Fixture<P = P>>(n: usize) -> World<P> {
        World {
            paths: F::connect(n),
            seen: (0..n).map(|_| Recorder::default()).collect(),
            cookie: 100,
            queued: vec![HashSet::new(); n],
        }
    }

    /// One more path, for the next peer.
    pub fn add(&mut self, path: P) {
        self.paths.push(path);
        self.seen.push(Recorder::default());
        self.queued.push(HashSet::new());
    }

    /// Sends, and counts the queued frames.
    pub fn send(&mut self, from: usize, to: usize, head: &Header, body: Body<'_>) -> Sent {
        self.cookie += 1;
        let sent = self.paths[from]
            .send(Peer(to as u32), head, body, self.cookie)
            .expect("the peer is up");
        if sent == Sent::Queued {
            self.queued[from].insert(self.cookie);
        }
        sent
    }

    /// Sends `body` as the payload of message number `tag`.
    pub fn message(&mut self, from: usize, to: usize, tag: i32, body: &[u8]) -> Sent {
        let buf = filled(body);
        let head = head(Kind::Eager, tag, body.len() as u64);
        self.send(from, to, &head, payload(&buf))
    }

    pub fn poll(&mut self, who: usize) -> bool {
        let now: Tick = kw_sys::clock::now();
        self.paths[who].poll(now, &mut self.seen[who])
    }

    /// Polls all ranks until `done`.
    pub fn until(&mut self, what: &str, done: impl Fn(&World<P>) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            for i in 0..self.paths.len() {
                self.poll(i);
            }
            assert!(begin.elapsed() < Duration::from_secs(100), "stuck: {what}");
        }
    }

    /// Polls until `who` has `n` frames, everything queued was sent, and checks that nothing else
    /// happened.
    pub fn settle(&mut self, who: usize, n: usize) {
        self.until("frames come and leave", |w| {
            w.seen[who].came.len() >= n
                && w.paths.iter().all(|p| !p.pending())
                && (0..w.paths.len()).all(|i| w.queued[i].is_subset(&w.seen[i].sent))
        });
        for i in 0..self.paths.len() {
            self.poll(i);
            assert_eq!(
                self.seen[i].sent, self.queued[i],
                "on_sent once for each queued frame"
            );
        }
        assert_eq!(self.seen[who].came.len(), n, "no more than was sent");
    }
}

/// A buffer with these bytes.
pub fn filled(bytes: &[u8]) -> Buf {
    let buf = Buf::alloc(bytes.len());
    buf.write(0, bytes);
    buf
}

/// All of a buffer as a body.
pub fn payload(buf: &Buf) -> Body<'_> {
    Body::Payload {
        buf,
        from: 0,
        len: buf.len(),
    }
}

/// A header whose tag counts messages.
pub fn head(kind: Kind, tag: i32, len: u64) -> Header {
    Header {
        kind,
        context: 0x1234_5678,
        source: 0x9abc_def0,
        tag,
        len,
        token: !(tag as u64),
    }
}

/// Bytes of message `tag`, such that no two messages and no two places look alike. Now and then
/// they look like the beginning of a frame.
pub fn bytes(tag: i32, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(tag as u64 * 7919 + 1);
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        let r = rng.bits();
        let word = if r % 5 == 0 { (r % 64) | (1 << 56) } else { r };
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(len);
    out
}
