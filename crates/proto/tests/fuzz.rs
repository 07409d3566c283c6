//! Fuzz targets: datagrams and frame headers that an attacker may have made.

use kw_base::Tick;
use kw_fuzz::{config, damaged};
use kw_proto::reliable::packet::{self, Ack, Head, LONGEST_HEAD, NOW};
use kw_proto::reliable::{Conn, Params, Ranges, Received, Session};
use kw_proto::wire::{HEADER_LEN, Header, Kind};
use proptest::prelude::*;
use std::time::Duration;

const SESSION: Session = Session {
    number: 77,
    seed: 0x1234_5678,
};

fn datagram(kind: packet::Kind, number: u64, ranges: &[(u64, u64)], body: &[u8]) -> Vec<u8> {
    let mut numbers = Ranges::default();
    for &(from, to) in ranges {
        numbers.insert(from..to);
    }
    let ack = Ack {
        numbers,
        limit: 1 << 20,
        delay: Duration::from_micros(30),
        marked: 1,
    };
    let head = Head {
        kind,
        flags: NOW,
        from: 1,
        session: SESSION.number,
        number,
        offset: number * 100,
    };
    let mut bytes = vec![0; LONGEST_HEAD];
    let len = head.encode((!ranges.is_empty()).then_some(&ack), &mut bytes);
    bytes.truncate(len);
    bytes.extend_from_slice(body);
    packet::seal(&mut bytes, SESSION.seed);
    bytes
}

fn datagrams() -> Vec<Vec<u8>> {
    use packet::Kind::*;
    vec![
        datagram(Data, 0, &[], b"a few bytes"),
        datagram(Data, 1, &[(0, 3)], &[5; 100]),
        datagram(Data, 2, &[(0, 1), (2, 3), (4, 9)], b""),
        datagram(Ack, 0, &[(0, 2), (3, 4)], b""),
        datagram(Hello, 0, &[], &[9; 60]),
    ]
}

/// A connection that has sent four packets.
fn conn() -> Conn {
    let mut conn = Conn::new(Params::default(), 0, SESSION, Tick(0));
    conn.write(5000, true);
    let mut room = vec![0; 2000];
    for _ in 0..4 {
        conn.poll_transmit(Tick(1000), &mut room);
    }
    conn
}

proptest! {
    #![proptest_config(config())]

    /// Data with the right checksum may still be arbitrary: it is parsed or dropped.
    #[test]
    fn fuzz_datagram(mut bytes in damaged(datagrams()), sealed: bool) {
        if sealed && bytes.len() >= 4 {
            packet::seal(&mut bytes, SESSION.seed);
        }
        let Some(read) = packet::open(&bytes, SESSION.seed) else {
            return Ok(());
        };
        prop_assert!(read.body.len() < bytes.len());
        let mut again = vec![0; LONGEST_HEAD.max(bytes.len())];
        let len = read.head.encode(read.ack.as_ref(), &mut again);
        again.truncate(len);
        again.extend_from_slice(read.body);
        packet::seal(&mut again, SESSION.seed);
        let reread = packet::open(&again, SESSION.seed);
        prop_assert_eq!(reread.map(|p| (p.head, p.body.to_vec())), Some((read.head, read.body.to_vec())));
    }

    /// An attacker who knows a session's seed cannot send anything that crashes a connection.
    #[test]
    fn fuzz_connection(all in prop::collection::vec(damaged(datagrams()), 1..6)) {
        let (mut conn, mut came) = (conn(), 0);
        let mut room = vec![0; 2000];
        for (mut bytes, now) in all.into_iter().zip(2u64..) {
            if bytes.len() >= 4 {
                packet::seal(&mut bytes, SESSION.seed);
            }
            let now = Tick(now * 1000);
            let body = bytes.len();
            match conn.receive(now, &bytes, false, &mut |b| came += b.len()) {
                Ok(Received::Dropped) => {}
                Ok(Received::Taken) => prop_assert!(came <= 6 * body.max(200)),
                Err(_) => return Ok(()),
            }
            conn.poll_transmit(now, &mut room);
            prop_assert!(conn.arrived() <= 5000);
        }
    }

    #[test]
    fn fuzz_frame_header(bytes in damaged(headers())) {
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            return Ok(());
        };
        if let Ok(read) = Header::decode(head) {
            let again = read.encode();
            prop_assert_eq!(Header::decode(&again), Ok(read));
            prop_assert!(read.body_len() <= read.len.max(HEADER_LEN as u64));
        }
    }
}

fn headers() -> Vec<Vec<u8>> {
    let kinds = (1..=21).filter_map(Kind::from_byte);
    let head = |kind| Header {
        len: 4096,
        token: 3,
        tag: -7,
        ..Header::bare(kind)
    };
    kinds.map(|k| head(k).encode().to_vec()).collect()
}
