//! Tests of the simulator itself: order, memory, ends.

use super::*;
use crate::contract::Destination;
use kw_proto::wire::Kind;
use proptest::prelude::*;

fn head(kind: Kind, len: u64, token: u64) -> Header {
    Header {
        kind,
        context: 0,
        source: 0,
        tag: 0,
        len,
        token,
    }
}

/// Records incoming frames, in order of completion.
#[derive(Default)]
struct Log {
    came: Vec<(u32, u64, Vec<u8>)>,
    open: Vec<(u64, u64, Buf)>,
    sent: Vec<u64>,
    down: Vec<(u32, bool)>,
}

impl Inbound for Log {
    fn on_frame(&mut self, from: Peer, head: &Header, body: &[u8]) {
        self.came.push((from.0, head.token, body.to_vec()));
    }
    fn on_head(&mut self, _from: Peer, head: &Header) -> Destination {
        let buf = Buf::alloc(head.len as usize);
        let cookie = self.open.len() as u64;
        self.open.push((cookie, head.token, buf.clone()));
        Destination { cookie, buf, at: 0 }
    }
    fn on_body(&mut self, from: Peer, cookie: u64) {
        let (_, token, buf) = self.open[cookie as usize].clone();
        let mut body = vec![0; buf.len() as usize];
        buf.read(0, &mut body);
        self.came.push((from.0, token, body));
    }
    fn on_sent(&mut self, _to: Peer, cookie: u64) {
        self.sent.push(cookie);
    }
    fn on_down(&mut self, down: Down, clean: bool) {
        self.down.push((down.peer.0, clean));
    }
}

fn payload(token: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (token as usize * 31 + i) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn frames_keep_their_order_and_their_bytes(seed: u64, sizes in prop::collection::vec(0usize..3000, 1..40)) {
        let (_, mut paths) = SimNet::new(3, seed, SimOptions::default());
        let mut queued = Vec::new();
        for (t, &len) in sizes.iter().enumerate() {
            for to in [1u32, 2] {
                let buf = Buf::alloc(len);
                buf.write(0, &payload(t as u64, len));
                let h = head(Kind::Eager, len as u64, t as u64);
                let body = Body::Payload { buf: &buf, from: 0, len: len as u64 };
                let cookie = t as u64 * 2 + to as u64 - 1;
                match paths[0].send(Peer(to), &h, body, cookie).unwrap() {
                    Sent::Done => { buf.write(0, &vec![0xee; len]); }
                    Sent::Queued => queued.push(cookie),
                }
            }
        }
        let mut logs = [Log::default(), Log::default(), Log::default()];
        paths[0].close();
        let mut turns = 0;
        while logs[1].down.is_empty() || logs[2].down.is_empty() {
            for (p, log) in paths.iter_mut().zip(&mut logs) {
                p.poll(Tick(0), log);
            }
            turns += 1;
            prop_assert!(turns < 1_000_000, "seed {seed}");
        }
        for log in &logs[1..] {
            let want: Vec<_> = sizes.iter().enumerate().map(|(t, &n)| (0u32, t as u64, payload(t as u64, n))).collect();
            prop_assert_eq!(&log.came, &want, "seed {}", seed);
            prop_assert_eq!(&log.down, &vec![(0, true)]);
        }
        logs[0].sent.sort();
        queued.sort();
        prop_assert_eq!(&logs[0].sent, &queued);
    }
}

#[test]
fn a_cut_is_reported_once_to_each_side_and_sends_fail() {
    let (net, mut paths) = SimNet::new(2, 7, SimOptions::default());
    paths[0]
        .send(Peer(1), &head(Kind::Cts, 0, 1), Body::None, 0)
        .unwrap();
    net.cut(Peer(0), Peer(1));
    let mut log = Log::default();
    for _ in 0..3 {
        paths[1].poll(Tick(0), &mut log);
    }
    assert_eq!(log.down, vec![(0, false)]);
    assert!(log.came.is_empty());
    let e = paths[0].send(Peer(1), &head(Kind::Cts, 0, 1), Body::None, 0);
    assert!(e.unwrap_err().to_string().contains("rank 1"));
}

#[test]
fn memory_is_reached_only_where_the_options_say() {
    for (reach, want) in [
        (Reach::Absent, Err(Refused::Unsupported)),
        (Reach::Denied, Err(Refused::Denied(1))),
        (Reach::Works, Ok(())),
    ] {
        let options = SimOptions {
            get: reach,
            ..SimOptions::calm()
        };
        let (_, mut paths) = SimNet::new(2, 1, options);
        assert_eq!(
            paths[0].lines(Peer(1), &Calibration::START).get.is_some(),
            reach != Reach::Absent
        );
        let (src, dst) = (Buf::alloc(4), Buf::alloc(4));
        src.write(0, b"abcd");
        let region = RemoteRegion::at(src.region().unwrap().bits() as u64);
        assert_eq!(paths[0].get(Peer(1), region, &dst, 0, 4), want);
        let mut got = [0; 4];
        dst.read(0, &mut got);
        assert_eq!(&got == b"abcd", want.is_ok());
    }
}
