//! Connections that are cut in the middle of messages: nothing is lost, repeated or reordered.

use super::*;
use kw_path::tcp::Tuning;
use std::process::Command;

/// Numbers that look random.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

const SIZES: [usize; 9] = [0, 8, 100, 2_049, 9_000, 60_000, 70_000, 300_000, 2_500_000];

/// One side of the exchange.
struct Side {
    path: TcpPath,
    log: Log,
    sizes: Vec<usize>,
    /// Cookies of what was queued.
    queued: Vec<u64>,
}

impl Side {
    fn say(&mut self, to: u32, n: usize) {
        let tag = self.sizes.len() as i32;
        self.sizes.push(n);
        match send(&mut self.path, to, tag, &filled(&body(tag, n))) {
            Ok(Sent::Queued) => self.queued.push(tag as u64),
            Ok(Sent::Done) => {}
            Err(down) => panic!("{down}"),
        }
    }

    fn poll(&mut self) {
        self.path.poll(now(), &mut self.log);
        assert!(self.log.down.is_empty(), "{:?}", self.log.down);
    }
}

/// Both ranks send each other `count` messages of all sizes, while `cut` does harm now and then.
fn soak(seed: u64, count: usize, segment: u64, mut cut: impl FnMut(&mut [Side; 2], u64)) {
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let tuning = Tuning {
        segment_loopback: segment,
        ..Tuning::for_size(2)
    };
    let paths = [0, 1].map(|me| TcpPath::tuned(config(me, 2), tuning.clone()).expect("loopback"));
    let mut paths = introduced(paths.into()).into_iter();
    let mut sides = [0, 1].map(|_| Side {
        path: paths.next().expect("two"),
        log: Log::default(),
        sizes: Vec::new(),
        queued: Vec::new(),
    });
    until("all messages on both sides", || {
        let me = dice.below(2) as usize;
        let fine = sides[me].sizes.len() - sides[1 - me].log.came.len() < 12;
        if sides[me].sizes.len() < count && fine {
            let n = SIZES[dice.below(SIZES.len() as u64) as usize];
            sides[me].say(1 - me as u32, n);
        }
        for _ in 0..dice.below(3) {
            sides[dice.below(2) as usize].poll();
        }
        if dice.below(8) == 0 {
            cut(&mut sides, dice.below(1 << 20));
        }
        let through = |s: &Side| s.log.sent.len() == s.queued.len();
        (0..2).all(|i| sides[i].log.came.len() == count) && sides.iter().all(through)
    });
    for me in 0..2 {
        let came = &sides[1 - me].log.came;
        for (k, (tag, bytes)) in came.iter().enumerate() {
            assert_eq!(*tag, k as i32, "order");
            assert!(*bytes == body(*tag, sides[me].sizes[k]), "message {k}");
        }
        let mut told = sides[me].log.sent.clone();
        told.sort_unstable();
        assert_eq!(told, sides[me].queued, "each sender is told once");
    }
}

#[test]
fn a_connection_that_is_closed_again_and_again_loses_nothing() {
    let mut cuts = 0;
    for seed in 0..4 {
        let segment = [u64::MAX, 64 << 10][seed as usize % 2];
        soak(seed, 40, segment, |sides, dice| {
            cuts += 1;
            let me = dice as usize % 2;
            sides[me].path.cut(Peer(1 - me as u32));
        });
    }
    assert!(cuts > 20, "only {cuts} cuts");
}

/// `ss -K` takes the connections of this process to a port away, as a firewall or a failing card would: with a reset.
fn reset(address: &str) -> bool {
    let port = address.rsplit(':').next().unwrap_or_default();
    let done = Command::new("ss")
        .args(["-K", "-t", "-H", "state", "established", "dport", "=", port])
        .output();
    done.is_ok_and(|o| !o.stdout.is_empty())
}

#[test]
fn a_connection_that_is_reset_in_the_middle_of_messages_loses_nothing() {
    let mut cuts = 0;
    for seed in 10..13 {
        soak(seed, 30, 64 << 10, |sides, dice| {
            let at = sides[dice as usize % 2].path.address();
            cuts += reset(&at) as u32;
        });
    }
    match cuts {
        0 => println!("not tested: this user or kernel may not reset connections (ss -K)"),
        n => println!("{n} connections were reset"),
    }
}

#[test]
fn a_rank_that_was_only_called_asks_where_the_other_listens() {
    let (mut a, mut b) = (rank(0, 2), rank(1, 2));
    a.introduce(Peer(1), &b.address()).unwrap();
    let [_, mut lb] = ping(&mut a, &mut b);
    let at = a.address();
    drop(a);
    until("the question", || {
        b.poll(now(), &mut lb);
        lb.stray == [Peer(0)]
    });
    assert!(lb.down.is_empty() && b.wants_address(Peer(0)));
    b.introduce(Peer(0), &at).unwrap();
    until("the end", || {
        b.poll(now(), &mut lb);
        !lb.down.is_empty()
    });
    let text = lb.down[0].0.to_string();
    assert!(text.contains("refused") && text.contains("died"), "{text}");
}

#[test]
fn where_nothing_is_kept_a_cut_is_an_error_that_names_both_ranks_and_addresses() {
    for found_by_sending in [false, true] {
        let [mut a, mut b] = two_of(|me| Config {
            reliable: false,
            ..config(me, 2)
        });
        let mut logs = ping(&mut a, &mut b);
        a.cut(Peer(1));
        let mut told = Vec::new();
        until("the end on both sides", || {
            if found_by_sending {
                let sent = send(&mut b, 0, 2, &filled(&body(2, 100)));
                told.extend(sent.err().map(|down| down.to_string()));
            }
            if !found_by_sending || !told.is_empty() {
                a.poll(now(), &mut logs[0]);
                b.poll(now(), &mut logs[1]);
            }
            logs.iter().all(|log| !log.down.is_empty())
        });
        told.extend(logs.iter().map(|log| log.down[0].0.to_string()));
        for text in told {
            assert!(
                text.contains("ranks 0 and 1 (127.0.0.1 to 127.0.0.1)")
                    || text.contains("ranks 1 and 0 (127.0.0.1 to 127.0.0.1)"),
                "{text}"
            );
        }
    }
}
