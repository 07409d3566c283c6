//! Frames that are put into the ring and read from it past the queues, among those that go the
//! ordinary way.

#[path = "common/pair.rs"]
mod pair;

use kw_base::{Peer, Tick};
use kw_path::{Body, Destination, Down, Inbound, Path, Sent, ShmPath};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_sys::doorbell::Mode;
use pair::pair;

/// Longer than a body that travels in the ring.
const LONG: usize = 5000;
/// More frames than the ring has cells.
const MANY: i32 = 300;

/// Tags of the frames, in the order in which they came.
#[derive(Default)]
struct Tags(Vec<i32>, i32);

impl Inbound for Tags {
    fn on_frame(&mut self, _from: Peer, head: &Header, _body: &[u8]) {
        self.0.push(head.tag);
    }
    fn on_head(&mut self, _from: Peer, head: &Header) -> Destination {
        self.1 = head.tag;
        Destination {
            cookie: 0,
            buf: Buf::alloc(head.len as usize),
            at: 0,
        }
    }
    fn on_body(&mut self, _from: Peer, _cookie: u64) {
        self.0.push(self.1);
    }
    fn on_sent(&mut self, _to: Peer, _cookie: u64) {}
    fn on_down(&mut self, _down: Down, _clean: bool) {}
}

fn head(tag: i32, len: usize) -> Header {
    Header {
        kind: Kind::Eager,
        context: 0,
        source: 0,
        tag,
        len: len as u64,
        token: 0,
    }
}

fn send(path: &mut ShmPath, tag: i32, len: usize) -> Sent {
    let (buf, from) = (&Buf::alloc(len), 0);
    let body = Body::Payload {
        buf,
        from,
        len: len as u64,
    };
    let sent = path.send(Peer(1), &head(tag, len), body, 1);
    sent.expect("the peer lives")
}

fn put(path: &mut ShmPath, tag: i32, len: usize) -> bool {
    path.put_at_once(Peer(1), &head(tag, len), len, |out| out.fill(tag as u8))
}

/// Both ranks, after a first frame: they know each other.
fn acquainted() -> [ShmPath; 2] {
    let [mut a, mut b] = pair();
    assert!(
        !put(&mut a, 0, 8),
        "the peer does not know that it must look"
    );
    assert!(b.next_from(Peer(0), || false).is_none());
    send(&mut a, 0, 8);
    let mut tags = Tags::default();
    assert!(b.poll_from(Peer(0), Tick(0), &mut tags));
    assert_eq!(tags.0, [0]);
    [a, b]
}

#[test]
fn a_frame_that_was_shown_stays_until_it_is_accepted() {
    let [mut a, mut b] = acquainted();
    assert!(put(&mut a, 1, 8) && put(&mut a, 2, 100) && put(&mut a, 3, 0));
    for (tag, len) in [(1, 8), (2, 100)] {
        for _ in 0..2 {
            let (head, body) = b.next_from(Peer(0), || false).expect("it is there");
            assert_eq!((head.tag, body), (tag, &vec![tag as u8; len][..]));
        }
        b.accept_from(Peer(0), len);
    }
    let mut tags = Tags::default();
    b.poll(Tick(0), &mut tags);
    assert_eq!(tags.0, [3]);
    assert!(b.next_from(Peer(0), || false).is_none());
}

#[test]
fn nothing_is_put_past_frames_that_wait() {
    let [mut a, mut b] = acquainted();
    assert!(!put(&mut a, 1, LONG), "too long");
    let put_so_far = (1..MANY).take_while(|&tag| put(&mut a, tag, 8)).count() as i32;
    assert!(put_so_far < MANY - 1, "the ring is full");
    assert_eq!(send(&mut a, put_so_far + 1, 8), Sent::Queued);
    let mut tags = Tags::default();
    while b.poll(Tick(0), &mut tags) {}
    assert!(!put(&mut a, 0, 8), "there is space, but one waits");
    while a.poll(Tick(0), &mut Tags::default()) {}
    assert!(put(&mut a, put_so_far + 2, 8));
    while b.poll(Tick(0), &mut tags) {}
    assert_eq!(tags.0, (1..=put_so_far + 2).collect::<Vec<_>>());
}

#[test]
fn a_long_frame_is_not_shown() {
    let [mut a, mut b] = acquainted();
    send(&mut a, 1, LONG);
    assert!(b.next_from(Peer(0), || false).is_none());
    let mut tags = Tags::default();
    while b.poll(Tick(0), &mut tags) {}
    assert_eq!(tags.0, [1]);
}

#[test]
fn a_sleeper_is_rung_for_what_is_put_at_once() {
    let [mut a, b] = acquainted();
    let bell = b.doorbell();
    assert!(bell.arm(Mode::Futex));
    assert!(put(&mut a, 1, 8));
    assert!(!bell.is_armed() && a.rings() == 1);
}

#[test]
fn nothing_is_put_after_goodbye() {
    let [mut a, _b] = acquainted();
    a.close();
    assert!(!put(&mut a, 1, 8));
}
