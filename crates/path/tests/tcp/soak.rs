//! Two ranks exchange messages of all sizes while connections are disturbed: every byte arrives
//! once, order is kept where required, and a payload's memory is not touched after its owner was
//! notified.

use super::*;
use kw_path::tcp::Tuning;

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// The data to send, and the manner.
#[derive(Clone)]
pub struct Soak {
    /// Bytes of a message, one of these.
    pub sizes: &'static [usize],
    /// Messages from this many bytes on are data of a rendezvous, which may be overtaken.
    pub data_from: usize,
    /// Messages of each side.
    pub count: usize,
    /// Messages that may be in flight each way.
    pub window: usize,
    /// One turn in this many disturbs a connection.
    pub harm: u64,
    pub tuning: Tuning,
}

/// One of the two ranks.
pub struct Side {
    pub path: TcpPath,
    log: Log,
    /// Bytes that it has sent.
    sent_lens: Vec<usize>,
    /// Payloads whose owners were not told yet.
    lent: Vec<(u64, Buf)>,
    completed: usize,
}

impl Side {
    fn new(path: TcpPath) -> Side {
        Side {
            path,
            log: Log::default(),
            sent_lens: Vec::new(),
            lent: Vec::new(),
            completed: 0,
        }
    }

    fn say(&mut self, to: u32, n: usize, kind: Kind) {
        let tag = self.sent_lens.len() as i32;
        self.sent_lens.push(n);
        let buf = filled(&body(tag, n));
        match send_as(kind, &mut self.path, to, tag, &buf) {
            Ok(Sent::Queued) => self.lent.push((tag as u64, buf)),
            Ok(Sent::Done) => spoil(&buf),
            Err(down) => panic!("{down}"),
        }
    }

    fn poll(&mut self) {
        self.path.poll(now(), &mut self.log);
        assert!(self.log.down.is_empty(), "{:?}", self.log.down);
        for cookie in &self.log.sent[self.completed..] {
            let at = self.lent.iter().position(|l| l.0 == *cookie);
            let at = at.expect("a payload that is lent, once");
            spoil(&self.lent.swap_remove(at).1);
        }
        self.completed = self.log.sent.len();
    }
}

/// The owner does something else with its memory.
fn spoil(buf: &Buf) {
    buf.write(0, &vec![255; buf.len() as usize]);
}

impl Soak {
    fn kind(&self, bytes: usize) -> Kind {
        match bytes >= self.data_from {
            true => Kind::Data,
            false => Kind::Eager,
        }
    }

    /// Both ranks send each other all messages, while `harm` is called with a number now and then;
    /// returns both at the end.
    pub fn run(&self, seed: u64, mut harm: impl FnMut(&mut [Side; 2], u64)) -> [Side; 2] {
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let mut sides = two_tuned(&self.tuning).map(Side::new);
        until("all messages on both sides", || {
            let me = dice.below(2) as usize;
            let fine = sides[me].sent_lens.len() - sides[1 - me].log.came.len() < self.window;
            if sides[me].sent_lens.len() < self.count && fine {
                let n = self.sizes[dice.below(self.sizes.len() as u64) as usize];
                sides[me].say(1 - me as u32, n, self.kind(n));
            }
            for _ in 0..dice.below(3) {
                sides[dice.below(2) as usize].poll();
            }
            if dice.below(self.harm) == 0 {
                harm(&mut sides, dice.below(1 << 20));
            }
            let done = |s: &Side| s.log.came.len() == self.count && s.lent.is_empty();
            sides.iter().all(done)
        });
        for me in 0..2 {
            self.check(&sides[me].sent_lens, &sides[1 - me].log);
        }
        sides
    }

    /// The received data is as announced.
    fn check(&self, sent_lens: &[usize], log: &Log) {
        for (tag, bytes) in &log.came {
            assert!(
                *bytes == body(*tag, sent_lens[*tag as usize]),
                "message {tag}"
            );
        }
        for (tag, bytes) in log.places() {
            let same = bytes == body(tag, sent_lens[tag as usize]);
            assert!(same, "message {tag} was written into after it was complete");
        }
        let mut tags: Vec<_> = log.came.iter().map(|c| c.0).collect();
        let eager = |tag: &&i32| sent_lens[**tag as usize] < self.data_from;
        assert!(tags.iter().filter(eager).is_sorted(), "order {tags:?}");
        tags.sort_unstable();
        assert!(tags.iter().zip(0..).all(|(a, b)| *a == b), "once each");
    }
}

/// Two ranks of these numbers that know each other's address.
fn two_tuned(tuning: &Tuning) -> [TcpPath; 2] {
    let both = [0, 1].map(|me| TcpPath::tuned(config(me, 2), tuning.clone()).expect("loopback"));
    let Ok(both) = introduced(both.into()).try_into() else {
        unreachable!("two are two");
    };
    both
}
