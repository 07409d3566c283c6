//! Fuzz target: streams of frames that an attacker may have made.

use super::tests::tuning;
use super::*;
use crate::contract::Destination;
use crate::tcp::socket::fake::Fake;
use kw_fuzz::{config, damaged, pieces};
use kw_sys::buf::Buf;
use proptest::prelude::*;
use proptest::sample::Index;

/// Most bytes of a payload that have a place, whatever its frame says: the rest is thrown away, as
/// if the receive were shorter.
const ROOM: u64 = 400;

/// Output of a reader: frames in order of arrival, and complete payloads, by their cookie.
#[derive(Default)]
struct Log {
    frames: Vec<(Header, Vec<u8>)>,
    begun: Vec<(Header, Buf)>,
    complete: Vec<(u64, Vec<u8>)>,
    gone: u32,
}

impl Inbound for Log {
    fn on_frame(&mut self, _: Peer, head: &Header, body: &[u8]) {
        self.frames.push((*head, body.to_vec()));
    }
    fn on_head(&mut self, _: Peer, head: &Header) -> Destination {
        let buf = Buf::alloc(head.len.min(ROOM) as usize);
        let cookie = self.begun.len() as u64;
        self.begun.push((*head, buf.clone()));
        Destination { cookie, buf, at: 0 }
    }
    fn on_body(&mut self, _: Peer, cookie: u64) {
        let buf = &self.begun[cookie as usize].1;
        let mut bytes = vec![0; buf.len() as usize];
        buf.read(0, &mut bytes);
        self.complete.push((cookie, bytes));
    }
    fn on_sent(&mut self, _: Peer, _: u64) {}
    fn on_down(&mut self, _: Down, clean: bool) {
        assert!(clean, "a reader knows of no other end");
        self.gone += 1;
    }
}

/// Payloads as they came, in a frame or in place.
impl Log {
    fn payloads(&self) -> Vec<(Header, Vec<u8>)> {
        let cut = |(head, body): &(Header, Vec<u8>)| {
            (*head, body[..body.len().min(ROOM as usize)].to_vec())
        };
        let complete =
            |(cookie, bytes): &(u64, Vec<u8>)| (self.begun[*cookie as usize].0, bytes.clone());
        let mut all: Vec<_> = self.frames.iter().map(cut).collect();
        all.extend(self.complete.iter().map(complete));
        all.sort_by_key(|(head, body)| (head.encode(), body.clone()));
        all
    }
}

/// Whether it was a stream of frames; and its output.
fn read(bytes: Vec<Vec<u8>>, scattered: bool) -> (bool, Log) {
    let (mut reader, mut stripes) = (FrameReader::default(), LinkStripes::default());
    let (tuning, mut log) = (tuning(), Log::default());
    reader.open(100, &tuning);
    stripes.open(64);
    let sock = Fake {
        scattered,
        ..Fake::bringing(bytes.into_iter().filter(|b| !b.is_empty()))
    };
    loop {
        match reader.turn(&sock, Peer(1), (&mut stripes, &tuning), &mut log) {
            Ok(Turn::Nothing) => return (true, log),
            Ok(_) => {}
            Err(_) => return (false, log),
        }
    }
}

fn frame(kind: Kind, len: u64, token: u64) -> Vec<u8> {
    let head = Header {
        len,
        token,
        ..Header::bare(kind)
    };
    let body = (0..head.body_len()).map(|i| (i * 7 + token) as u8);
    head.encode().into_iter().chain(body).collect()
}

/// A payload in segments with a frame between two of them, and one in pieces, among frames of all
/// kinds.
fn streams() -> Vec<Vec<u8>> {
    let data = frame(Kind::Data, 150, 5);
    let (first, rest) = data.split_at(HEADER_LEN + 100);
    let more = frame(Kind::More, 0, 0);
    let between = frame(Kind::Eager, 20, 6);
    let striped = [
        frame(Kind::Striped, 0, 0)[..HEADER_LEN].to_vec(),
        frame(Kind::Data, 100, 8)[..HEADER_LEN].to_vec(),
    ];
    let mut all = vec![
        [first, &between, &more, rest].concat(),
        striped.concat(),
        frame(Kind::EagerSync, 300, 3),
        frame(Kind::Write, 90, 7),
        frame(Kind::Eager, 0, 2),
    ];
    all.extend(
        (1..=21)
            .filter_map(Kind::from_byte)
            .map(|k| frame(k, 16, 1)),
    );
    all
}

proptest! {
    #![proptest_config(config())]

    /// Any byte stream is either frames or invalid, with the same result however it is split.
    #[test]
    fn fuzz_stream(
        bytes in damaged(streams()),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
        scattered: bool,
    ) {
        let (whole, first) = read(vec![bytes.clone()], false);
        let torn = pieces(&bytes, &cuts).into_iter().map(<[u8]>::to_vec).collect();
        let (again, second) = read(torn, scattered);
        prop_assert_eq!(whole, again);
        prop_assert_eq!(first.payloads(), second.payloads());
        prop_assert_eq!(first.gone, second.gone);
    }
}
