//! Frames torn at every byte where they can be.

use super::*;
use crate::contract::Destination;
use crate::tcp::socket::fake::Fake;
use kw_sys::buf::Buf;

/// Output of a reader.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Received {
    /// A frame by its tag, with its body, however that came.
    Frame(i32, Vec<u8>),
    /// A goodbye.
    Bye,
}

/// Records frames in the order in which they begin.
#[derive(Default)]
struct Log {
    received: Vec<Received>,
    /// Payloads that have begun and not arrived: their place in `received`, and their memory.
    open: Vec<(usize, Buf)>,
    complete: usize,
}

impl Inbound for Log {
    fn on_frame(&mut self, _: Peer, head: &Header, body: &[u8]) {
        self.received.push(Received::Frame(head.tag, body.to_vec()));
    }
    fn on_head(&mut self, _: Peer, head: &Header) -> Destination {
        let buf = Buf::alloc(head.len as usize);
        self.open.push((self.received.len(), buf.clone()));
        self.received.push(Received::Frame(head.tag, Vec::new()));
        let cookie = self.open.len() as u64 - 1;
        Destination { cookie, buf, at: 0 }
    }
    fn on_body(&mut self, _: Peer, cookie: u64) {
        let (at, buf) = &self.open[cookie as usize];
        let mut bytes = vec![0; buf.len() as usize];
        buf.read(0, &mut bytes);
        let Received::Frame(_, body) = &mut self.received[*at] else {
            unreachable!("a payload is of a frame");
        };
        *body = bytes;
        self.complete += 1;
    }
    fn on_sent(&mut self, _: Peer, _: u64) {}
    fn on_down(&mut self, _: Down, clean: bool) {
        assert!(clean);
        self.received.push(Received::Bye);
    }
}

/// Bytes of a segment.
const SEGMENT: u64 = 100;
/// Bytes of a piece.
const PIECE: u64 = 64;

pub(super) fn tuning() -> Tuning {
    Tuning {
        read_buffer: 256,
        read_first: 80,
        read_head: 40,
        large: 150,
        piece: PIECE,
        ..Tuning::default()
    }
}

fn body(tag: i32, len: u64) -> Vec<u8> {
    (0..len).map(|i| (i as i32 * 7 + tag) as u8).collect()
}

fn frame(kind: Kind, tag: i32, len: u64) -> Vec<u8> {
    let head = Header {
        tag,
        len,
        ..Header::bare(kind)
    };
    [head.encode().to_vec(), body(tag, len)].concat()
}

/// Every kind of frame, and a reader's output for them.
fn stream() -> (Vec<u8>, Vec<Received>) {
    let more = || Header::bare(Kind::More).encode().to_vec();
    let data = frame(Kind::Data, 5, 250);
    let (first, rest) = data.split_at(HEADER_LEN + SEGMENT as usize);
    let (second, third) = rest.split_at(SEGMENT as usize);
    let striped = Header {
        tag: 8,
        len: 100,
        ..Header::bare(Kind::Data)
    };
    let bytes = body(8, 100);
    let piece = |offset: usize, len: usize| {
        let head = Header {
            len: len as u64,
            ..Header::bare(Kind::Piece)
        };
        let head = head.with_aux(offset as u64).encode().to_vec();
        [head, bytes[offset..][..len].to_vec()].concat()
    };
    let parting = Header {
        token: PARTING,
        ..Header::bare(Kind::Bye)
    };
    let parts = [
        frame(Kind::Eager, 1, 8),
        frame(Kind::Eager, 2, 0),
        frame(Kind::EagerSync, 3, 300),
        first.to_vec(),
        frame(Kind::Eager, 6, 20),
        more(),
        second.to_vec(),
        more(),
        third.to_vec(),
        frame(Kind::Write, 7, 90),
        Header::bare(Kind::Striped).encode().to_vec(),
        striped.encode().to_vec(),
        piece(64, 36),
        piece(0, 64),
        Header::bare(Kind::Taken).encode().to_vec(),
        parting.encode().to_vec(),
        Header::bare(Kind::Bye).encode().to_vec(),
    ];
    let received = [
        (1, 8),
        (2, 0),
        (3, 300),
        (5, 250),
        (6, 20),
        (7, 90),
        (8, 100),
    ];
    let received = received.map(|(tag, len)| Received::Frame(tag, body(tag, len)));
    let received = received.into_iter().chain([Received::Bye]).collect();
    (parts.concat(), received)
}

/// A reader, and its output.
struct Side {
    reader: FrameReader,
    stripes: LinkStripes,
    log: Log,
}

impl Side {
    fn new() -> Side {
        let (mut reader, mut stripes) = (FrameReader::default(), LinkStripes::default());
        reader.open(SEGMENT, &tuning());
        stripes.open(PIECE);
        let log = Log::default();
        Side {
            reader,
            stripes,
            log,
        }
    }

    /// Reads until the socket has no more data.
    fn read(&mut self, sock: &Fake) -> Result<(), End> {
        let tuning = tuning();
        loop {
            let with = (&mut self.stripes, &tuning);
            match self.reader.turn(sock, Peer(1), with, &mut self.log)? {
                Turn::Nothing => return Ok(()),
                Turn::Emptied | Turn::Filled => {}
            }
        }
    }

    fn check(&mut self, received: &[Received], bytes: usize, how: &str) {
        assert_eq!(self.log.received, received, "{how}");
        assert_eq!(self.log.complete, self.log.open.len(), "{how}");
        assert_eq!(self.reader.received(), bytes as u64, "{how}");
        assert_eq!(self.reader.farewell(), Farewell::OfRank, "{how}");
        assert!(self.reader.is_between_frames(), "{how}");
        let stripes = self.stripes.make();
        assert_eq!(stripes.take_arrived(), [0], "{how}");
        assert_eq!(stripes.take_confirmed(), [(9, 0)], "{how}");
    }
}

/// Reads a stream that comes in these pieces; payloads are received in place or, `scattered`,
/// through the buffer.
fn read(pieces: impl IntoIterator<Item = Vec<u8>>, scattered: bool, how: &str) {
    let (bytes, received) = stream();
    let mut side = Side::new();
    // A payload of this rank that the peer has received.
    let stripes = side.stripes.make();
    stripes.begin((&Buf::alloc(8), 0, 8), 9);
    assert!(stripes.hand_out(1).is_some());
    let sock = Fake {
        scattered,
        ..Fake::bringing(pieces)
    };
    side.read(&sock).expect("frames");
    side.check(&received, bytes.len(), how);
}

#[test]
fn a_stream_torn_at_any_byte_is_the_same_stream() {
    let (bytes, _) = stream();
    for at in 1..bytes.len() {
        let (a, b) = bytes.split_at(at);
        for scattered in [false, true] {
            let how = format!("torn at byte {at}, scattered: {scattered}");
            read([a.to_vec(), b.to_vec()], scattered, &how);
        }
    }
}

#[test]
fn a_stream_in_pieces_of_any_size_is_the_same_stream() {
    let (bytes, _) = stream();
    for size in 1..bytes.len() + 1 {
        let pieces = bytes.chunks(size).map(<[u8]>::to_vec);
        read(pieces, size % 2 == 0, &format!("in pieces of {size} bytes"));
    }
}

#[test]
fn what_is_no_frame_is_reported_wherever_it_is_torn() {
    let bad = [
        // Only a small frame may pass a payload in segments.
        [
            frame(Kind::Data, 1, 200)[..HEADER_LEN + SEGMENT as usize].to_vec(),
            frame(Kind::Data, 2, 200),
        ]
        .concat(),
        Header::bare(Kind::More).encode().to_vec(),
        // A piece of a payload that has not begun.
        {
            let head = Header {
                len: PIECE,
                ..Header::bare(Kind::Piece)
            };
            head.encode().to_vec()
        },
        [
            Header::bare(Kind::Striped).encode().to_vec(),
            frame(Kind::Eager, 1, 0),
        ]
        .concat(),
        vec![0xff; HEADER_LEN],
    ];
    for (i, bytes) in bad.iter().enumerate() {
        for at in 1..bytes.len() {
            let (a, b) = bytes.split_at(at);
            let mut side = Side::new();
            let end = side.read(&Fake::bringing([a.to_vec(), b.to_vec()]));
            assert!(matches!(end, Err(End::Nonsense(_))), "{i}, torn at {at}");
        }
    }
}

#[test]
fn a_sleep_waits_for_what_is_certain_to_come() {
    let mut side = Side::new();
    let data = frame(Kind::Data, 1, 250);
    let sock = Fake::bringing([data[..HEADER_LEN + 30].to_vec()]);
    side.read(&sock).expect("a frame");
    assert_eq!(
        side.reader.awaited(),
        SEGMENT - 30,
        "frames may follow the segment"
    );
    assert!(!side.reader.is_between_frames());
}
