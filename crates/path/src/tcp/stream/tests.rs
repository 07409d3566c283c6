//! Links over sockets that take and bring as many bytes as a test says.

use super::*;
use crate::contract::{Destination, Down};
use crate::tcp::socket::fake::Fake;
use kw_base::overheads::WINDOW;
use kw_proto::wire::HEADER_LEN;
use kw_sys::buf::Buf;

/// Records the tags of incoming frames, and checks bodies.
#[derive(Default)]
struct Log {
    tags: Vec<i32>,
    open: Vec<(i32, Buf)>,
    sent: Vec<u64>,
}

fn body(tag: i32, len: u64) -> Vec<u8> {
    (0..len).map(|i| (i as i32 * 3 + tag) as u8).collect()
}

impl Inbound for Log {
    fn on_frame(&mut self, _: Peer, head: &Header, bytes: &[u8]) {
        assert_eq!(bytes, body(head.tag, head.len));
        self.tags.push(head.tag);
    }
    fn on_head(&mut self, _: Peer, head: &Header) -> Destination {
        let buf = Buf::alloc(head.len as usize);
        self.open.push((head.tag, buf.clone()));
        let cookie = self.open.len() as u64 - 1;
        Destination { cookie, buf, at: 0 }
    }
    fn on_body(&mut self, _: Peer, cookie: u64) {
        let (tag, buf) = &self.open[cookie as usize];
        let mut bytes = vec![0; buf.len() as usize];
        buf.read(0, &mut bytes);
        assert_eq!(bytes, body(*tag, buf.len()));
        self.tags.push(*tag);
    }
    fn on_sent(&mut self, _: Peer, cookie: u64) {
        self.sent.push(cookie);
    }
    fn on_down(&mut self, down: Down, _: bool) {
        unreachable!("{down}");
    }
}

fn tuning() -> Tuning {
    Tuning {
        read_buffer: 8 << 10,
        copied: 6000,
        ..Tuning::default()
    }
}

/// Bytes of a segment: the least.
const SEGMENT: u64 = COPIED;

fn link() -> Stream {
    let mut stream = Stream::new(true);
    stream.name(|| 7);
    stream.open(SEGMENT, &tuning());
    stream
}

/// Queues a message.
fn push(stream: &mut Stream, tag: i32, len: u64) -> Sent {
    let buf = Buf::alloc(len as usize);
    buf.write(0, &body(tag, len));
    let kind = match len {
        9000.. => Kind::Data,
        _ => Kind::Eager,
    };
    let head = Header {
        tag,
        len,
        ..Header::bare(kind)
    };
    let payload = Body::Payload {
        buf: &buf,
        from: 0,
        len,
    };
    stream.queue(&head, payload, 0, tag as u64)
}

/// Queues messages of many lengths; returns how many.
fn queue(stream: &mut Stream) -> i32 {
    let lens = [0, 8, 5000, 20_000, 30, 9000, 100];
    for (tag, len) in (0..).zip(lens) {
        push(stream, tag, len);
    }
    lens.len() as i32
}

/// Sends all queued data through a socket that accepts this many bytes at a time; returns the data
/// it accepted.
fn drain(stream: &mut Stream, log: &mut Log, room: usize) -> Vec<u8> {
    let sock = Fake::default();
    while !stream.is_flushed() {
        sock.room.set(room);
        let done = |cookie| log.on_sent(Peer(0), cookie);
        stream.send_some(&sock, &tuning(), done).expect("room");
    }
    sock.sent.take()
}

fn read(stream: &mut Stream, log: &mut Log, bytes: &[u8]) {
    let sock = Fake::bringing([bytes.to_vec()]);
    while stream.read(&sock, Peer(0), &tuning(), log).expect("frames") != Turn::Nothing {}
}

#[test]
fn what_one_side_queues_the_other_reads_however_little_the_socket_takes() {
    for room in (1..=64).chain([4095, 4096, 5000, 1 << 20]) {
        let (mut from, mut to) = (link(), link());
        let (mut sender_log, mut log) = (Log::default(), Log::default());
        let all = queue(&mut from);
        let bytes = drain(&mut from, &mut sender_log, room);
        read(&mut to, &mut log, &bytes);
        log.tags.sort_unstable();
        assert!(
            log.tags.iter().copied().eq(0..all),
            "room {room}: {:?}",
            log.tags
        );
        assert!(to.is_between_frames() && from.unacked().awaits_ack());
        // Two are longer than the limit for copies; they are not acknowledged.
        assert_eq!(sender_log.sent, [2], "room {room}");
    }
}

#[test]
fn a_link_goes_on_wherever_its_connection_broke() {
    let mut whole = link();
    queue(&mut whole);
    let bytes = drain(&mut whole, &mut Log::default(), 1 << 20);
    for cut in (0..bytes.len())
        .step_by(97)
        .chain([1, HEADER_LEN, bytes.len()])
    {
        let (mut from, mut to) = (link(), link());
        let (mut sender_log, mut log) = (Log::default(), Log::default());
        let all = queue(&mut from);
        assert!(from.resume(&to.claim(), |_| {}) && to.resume(&from.claim(), |_| {}));
        drain(&mut from, &mut sender_log, 1 << 20);
        read(&mut to, &mut log, &bytes[..cut]);
        for side in [&mut from, &mut to] {
            let what = "it broke".to_string();
            side.lose_connection(Some(Broken {
                what,
                silent: false,
            }));
            assert!(side.broken().is_some());
        }
        let (ours, theirs) = (from.claim(), to.claim());
        assert!(from.allows(&theirs) && to.allows(&ours));
        assert!(from.resume(&theirs, |c| sender_log.on_sent(Peer(0), c)));
        assert!(to.resume(&ours, |_| {}) && to.broken().is_none());
        let rest = drain(&mut from, &mut sender_log, 1 << 20);
        assert!(rest == bytes[cut..], "broken after {cut} bytes");
        read(&mut to, &mut log, &rest);
        log.tags.sort_unstable();
        assert!(
            log.tags.iter().copied().eq(0..all),
            "broken after {cut} bytes"
        );
    }
}

/// A rank that the system had stopped was sent half a million short messages meanwhile.
#[test]
fn senders_of_short_payloads_are_slowed_while_much_waits() {
    let (mut from, mut to) = (link(), link());
    let (mut sender_log, mut log) = (Log::default(), Log::default());
    let mut all = 0;
    while push(&mut from, all, 8) == Sent::Done {
        all += 1;
    }
    let frame = HEADER_LEN as u64 + 8;
    assert_eq!(all as u64, WINDOW / frame);
    assert_eq!(push(&mut from, all + 1, 8), Sent::Queued);
    let sock = Fake::with_room((WINDOW / 2) as usize);
    let mut send = |sender_log: &mut Log| {
        let done = |cookie| sender_log.on_sent(Peer(0), cookie);
        from.send_some(&sock, &tuning(), done).expect("room")
    };
    while send(&mut sender_log) > 0 {}
    assert_eq!(sender_log.sent, [], "more than half waits");
    sock.room.set(2 * frame as usize);
    send(&mut sender_log);
    assert_eq!(sender_log.sent, [all as u64, all as u64 + 1]);
    assert_eq!(push(&mut from, all + 2, 8), Sent::Done);
    let rest = drain(&mut from, &mut sender_log, 1 << 20);
    read(&mut to, &mut log, &[sock.sent.take(), rest].concat());
    assert!(log.tags.iter().copied().eq(0..all + 3), "in order");
}

#[test]
fn links_that_do_not_belong_together_do_not_go_on() {
    let (mut a, mut b) = (link(), link());
    assert!(a.resume(&b.claim(), |_| {}) && b.resume(&a.claim(), |_| {}));
    let other = Claim {
        link: 8,
        ..b.claim()
    };
    let later = Claim {
        connections: 4,
        ..b.claim()
    };
    let more = Claim {
        received: 1,
        ..b.claim()
    };
    assert!(a.allows(&b.claim()));
    for claim in [other, later, more, rail_claim(7)] {
        assert!(!a.allows(&claim), "{claim:?}");
    }
    assert!(is_rail(&rail_claim(7)) && !is_rail(&a.claim()));
    let mut once = Stream::new(false);
    assert!(once.resume(&Claim::default(), |_| {}));
    assert!(!once.allows(&once.claim()), "it ends with its connection");
}
