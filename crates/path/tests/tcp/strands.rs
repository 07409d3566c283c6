//! Long payloads over two connections, either of which is cut in the middle: every byte comes once, small messages keep their order, and
//! nothing reads or writes a payload's memory after its owner was told.

use super::cuts::Dice;
use super::*;
use kw_path::tcp::Tuning;

const SIZES: [usize; 7] = [0, 8, 3_000, 50_000, 70_001, 300_000, 2_500_000];
/// Payloads from here on go in pieces.
const LONG: usize = 60_000;

struct Side {
    path: TcpPath,
    log: Log,
    sizes: Vec<usize>,
    /// Payloads whose owners were not told yet.
    lent: Vec<(u64, Buf)>,
    told: usize,
}

impl Side {
    fn say(&mut self, to: u32, n: usize) {
        let tag = self.sizes.len() as i32;
        self.sizes.push(n);
        let buf = filled(&body(tag, n));
        let kind = if n >= LONG { Kind::Data } else { Kind::Eager };
        let head = Header {
            tag,
            len: n as u64,
            ..Header::bare(kind)
        };
        let payload = Body::Payload {
            buf: &buf,
            from: 0,
            len: n as u64,
        };
        match self.path.send(Peer(to), &head, payload, tag as u64) {
            Ok(Sent::Queued) => self.lent.push((tag as u64, buf)),
            Ok(Sent::Done) => spoil(&buf),
            Err(down) => panic!("{down}"),
        }
    }

    fn poll(&mut self) {
        self.path.poll(now(), &mut self.log);
        assert!(self.log.down.is_empty(), "{:?}", self.log.down);
        for cookie in &self.log.sent[self.told..] {
            let at = self.lent.iter().position(|l| l.0 == *cookie);
            let (_, buf) = self
                .lent
                .swap_remove(at.expect("a payload that is lent, once"));
            spoil(&buf);
        }
        self.told = self.log.sent.len();
    }
}

/// The owner does something else with its memory.
fn spoil(buf: &Buf) {
    buf.write(0, &vec![255; buf.len() as usize]);
}

fn two_sides() -> [Side; 2] {
    let tuning = Tuning {
        piece: 30_000,
        stripe_from: LONG as u64,
        strands_anywhere: true,
        ..Tuning::for_size(2)
    };
    let paths = [0, 1].map(|me| TcpPath::tuned(config(me, 2), tuning.clone()).expect("loopback"));
    let mut paths = introduced(paths.into()).into_iter();
    [0, 1].map(|_| Side {
        path: paths.next().expect("two"),
        log: Log::default(),
        sizes: Vec::new(),
        lent: Vec::new(),
        told: 0,
    })
}

/// Both ranks send each other `count` messages of all sizes, while `cut` does harm now and then.
fn soak(seed: u64, count: usize, mut cut: impl FnMut(&mut [Side; 2], u64)) -> [u64; 3] {
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let mut sides = two_sides();
    until("all messages on both sides", || {
        let me = dice.below(2) as usize;
        let fine = sides[me].sizes.len() - sides[1 - me].log.came.len() < 8;
        if sides[me].sizes.len() < count && fine {
            let n = SIZES[dice.below(SIZES.len() as u64) as usize];
            sides[me].say(1 - me as u32, n);
        }
        for _ in 0..dice.below(3) {
            sides[dice.below(2) as usize].poll();
        }
        if dice.below(16) == 0 {
            cut(&mut sides, dice.below(1 << 20));
        }
        (0..2).all(|i| sides[i].log.came.len() == count && sides[i].lent.is_empty())
    });
    for me in 0..2 {
        check(&sides[me].sizes, &sides[1 - me].log);
    }
    let both = sides.map(|s| s.path.striped());
    [0, 1, 2].map(|k| both[0][k] + both[1][k])
}

fn check(sizes: &[usize], log: &Log) {
    for (tag, bytes) in &log.came {
        assert!(*bytes == body(*tag, sizes[*tag as usize]), "message {tag}");
    }
    for (tag, bytes) in log.places() {
        let same = bytes == body(tag, sizes[tag as usize]);
        assert!(same, "message {tag} was written into after it was complete");
    }
    let small = log.came.iter().map(|c| c.0);
    let small: Vec<_> = small.filter(|&tag| sizes[tag as usize] < LONG).collect();
    assert!(small.is_sorted(), "order {small:?}");
    let mut tags: Vec<_> = log.came.iter().map(|c| c.0).collect();
    tags.sort_unstable();
    assert!(tags.iter().zip(0..).all(|(a, b)| *a == b), "once each");
}

#[test]
fn long_payloads_go_over_both_connections() {
    let [payloads, bytes, again] = soak(1, 60, |_, _| {});
    assert!(
        payloads > 10 && bytes > 1_000_000 && again == 0,
        "{payloads} {bytes} {again}"
    );
}

#[test]
fn a_strand_that_is_cut_in_the_middle_loses_nothing() {
    let (mut cuts, mut again) = (0, 0);
    for seed in 10..16 {
        again += soak(seed, 60, |sides, dice| {
            let me = dice as usize % 2;
            cuts += sides[me].path.cut_strands(Peer(1 - me as u32)) as u32;
        })[2];
    }
    assert!(
        cuts > 10 && again > 0,
        "{cuts} cuts, {again} pieces went again"
    );
}

#[test]
fn either_connection_may_be_cut() {
    let mut cuts = [0, 0];
    for seed in 20..26 {
        soak(seed, 60, |sides, dice| {
            let me = dice as usize % 2;
            let peer = Peer(1 - me as u32);
            if dice & 2 == 0 {
                cuts[1] += sides[me].path.cut_strands(peer) as u32;
            } else {
                sides[me].path.cut(peer);
                cuts[0] += 1;
            }
        });
    }
    assert!(cuts[0] > 10 && cuts[1] > 5, "{cuts:?}");
}
