//! Two connections over a network that loses, repeats, damages, delays and reorders, in virtual
//! time, from a seed.

use super::inflow::Inflow;
use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Effects of the network on datagrams, per thousand except the last two.
#[derive(Clone, Copy, Debug)]
struct Weather {
    lost: u64,
    twice: u64,
    damaged: u64,
    marked: u64,
    /// Longest further delay, microseconds: this is what reorders.
    jitter: u64,
    /// How often and how long a side does not poll its socket, and how many datagrams the socket
    /// holds meanwhile.
    stall: Option<(u64, u64, usize)>,
}

const CALM: Weather = Weather {
    lost: 0,
    twice: 0,
    damaged: 0,
    marked: 0,
    jitter: 0,
    stall: None,
};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }
    fn hits(&mut self, of_thousand: u64) -> bool {
        self.roll(1000) < of_thousand
    }
}

/// One side: its sent and received bytes, and when it wants to be asked again.
struct Side {
    conn: Conn,
    stream: Vec<u8>,
    came: Vec<u8>,
    /// Bytes of the stream that are written so far.
    written: usize,
    /// Before this moment it does not poll.
    away: Tick,
    waiting: usize,
}

struct World {
    sides: [Side; 2],
    now: Tick,
    dice: Dice,
    weather: Weather,
    /// Time, order, destination, contents, mark.
    air: BinaryHeap<Reverse<(Tick, u64, usize, Vec<u8>, bool)>>,
    count: u64,
    dropped: u64,
}

const BEGIN: Tick = Tick(7_000_000_000);

fn bytes(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + salt) as u8).collect()
}

impl World {
    fn new(seed: u64, weather: Weather, lens: [usize; 2], params: Params) -> World {
        let session = Session {
            number: 9,
            seed: 77,
        };
        let side = |me: usize| Side {
            conn: Conn::new(params.clone(), me as u32, session, BEGIN),
            stream: bytes(lens[me], me),
            came: Vec::new(),
            written: 0,
            away: BEGIN,
            waiting: 0,
        };
        World {
            sides: [side(0), side(1)],
            now: BEGIN,
            dice: Dice(seed),
            weather,
            air: BinaryHeap::new(),
            count: 0,
            dropped: 0,
        }
    }

    /// Lets the side write a piece now and then, and sends its datagrams.
    fn serve(&mut self, me: usize) {
        let s = &mut self.sides[me];
        if s.written < s.stream.len() {
            let n = (1 + self.dice.roll(200_000) as usize).min(s.stream.len() - s.written);
            s.written += n;
            s.conn.write(n as u64, n > 100_000);
        }
        let mut room = vec![0; s.conn.datagram() + OVERHEAD];
        let mut out = Vec::new();
        while let Some(t) = s.conn.poll_transmit(self.now, &mut room) {
            let mut datagram = room[..t.head].to_vec();
            datagram.extend_from_slice(&s.stream[t.data.start as usize..t.data.end as usize]);
            assert!(datagram.len() <= s.conn.datagram());
            s.conn.seal(&mut datagram);
            out.push(datagram);
        }
        for datagram in out {
            self.throw(1 - me, datagram);
        }
    }

    fn throw(&mut self, to: usize, datagram: Vec<u8>) {
        let w = self.weather;
        for _ in 0..1 + self.dice.hits(w.twice) as u64 {
            if self.dice.hits(w.lost) {
                continue;
            }
            let mut copy = datagram.clone();
            if self.dice.hits(w.damaged) {
                let at = self.dice.roll(copy.len() as u64) as usize;
                copy[at] ^= 1 << self.dice.roll(8);
            }
            let delay = Duration::from_micros(20 + self.dice.roll(w.jitter + 1));
            let marked = self.dice.hits(w.marked);
            self.count += 1;
            self.air
                .push(Reverse((self.now + delay, self.count, to, copy, marked)));
        }
    }

    fn deliver(&mut self, to: usize, datagram: &[u8], marked: bool) {
        let s = &mut self.sides[to];
        s.waiting -= 1;
        let came = &mut s.came;
        let got = s.conn.receive(self.now, datagram, marked, &mut |b| {
            came.extend_from_slice(b)
        });
        assert_ne!(got, Err(Fault::Acknowledged));
        assert_ne!(got, Err(Fault::TooMuch));
        self.dropped += (got == Ok(Received::Dropped)) as u64;
    }

    /// One moment: data that has arrived by then, and actions that are due.
    fn step(&mut self) {
        // A side that was away handles everything when it is back.
        let due = |s: &Side| {
            if s.away > self.now {
                s.away
            } else {
                s.conn.next_timeout()
            }
        };
        let next = self.air.peek().map_or(Tick::NEVER, |Reverse(e)| e.0);
        let next = self.sides.iter().map(due).fold(next, Tick::min);
        let writing = self.sides.iter().any(|s| s.written < s.stream.len());
        let next = if writing {
            next.min(self.now + Duration::from_micros(100))
        } else {
            next
        };
        assert_ne!(next, Tick::NEVER, "something must be going on");
        self.now = self.now.max(next);
        while self.air.peek().is_some_and(|Reverse(e)| e.0 <= self.now) {
            let Some(Reverse((at, n, to, datagram, marked))) = self.air.pop() else {
                break;
            };
            let away = self.sides[to].away;
            if away <= self.now {
                self.sides[to].waiting += 1;
                self.deliver(to, &datagram, marked);
            } else if at < self.now
                || self
                    .air
                    .iter()
                    .filter(|Reverse(e)| e.2 == to && e.0 == away)
                    .count()
                    < self.weather.stall.map_or(0, |s| s.2)
            {
                self.air.push(Reverse((away, n, to, datagram, marked)));
            }
        }
        for me in 0..2 {
            if let Some((often, long, _)) = self.weather.stall
                && self.sides[me].away <= self.now
                && self.dice.hits(often)
            {
                self.sides[me].away = self.now + Duration::from_micros(self.dice.roll(long));
            }
            if self.sides[me].away <= self.now {
                self.serve(me);
            }
        }
    }

    fn is_done(&self) -> bool {
        let done = |s: &Side| s.written == s.stream.len() && !s.conn.is_busy();
        self.sides.iter().all(done)
    }

    /// Runs until everything has arrived; the virtual time that it took.
    fn run(&mut self) -> Duration {
        let mut steps = 0;
        while !self.is_done() {
            self.step();
            steps += 1;
            assert!(
                self.now.since(BEGIN) < Duration::from_secs(600),
                "no end in virtual time"
            );
            assert!(steps < 3_000_000, "no end");
        }
        for me in 0..2 {
            assert!(
                self.sides[1 - me].came == self.sides[me].stream,
                "what came is what was sent, {me}"
            );
        }
        self.now.since(BEGIN)
    }
}

fn weather() -> impl Strategy<Value = Weather> {
    let stall = proptest::option::of((1u64..30, 1u64..30_000, 0usize..200));
    (
        0u64..200,
        0u64..200,
        0u64..100,
        0u64..100,
        prop_oneof![Just(0u64), 1u64..1000],
        stall,
    )
        .prop_map(|(lost, twice, damaged, marked, jitter, stall)| Weather {
            lost,
            twice,
            damaged,
            marked,
            jitter,
            stall,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn everything_arrives_once_and_in_order(
        seed: u64, weather in weather(), a in 0usize..600_000, b in 0usize..600_000,
        window in prop_oneof![Just(4096u64), Just(1 << 20), 8_000u64..200_000], datagram in 600usize..9000, ecn: bool,
    ) {
        let params = Params { window, first_limit: window.min(128 << 10), datagram, ecn, ..Params::default() };
        World::new(seed, weather, [a, b], params).run();
    }

    #[test]
    fn no_bytes_make_a_connection_panic(
        seed: u64, junk in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..30), sealed: bool, kind in 4u8..8,
    ) {
        let mut w = World::new(seed, CALM, [30_000, 30_000], Params::default());
        w.step();
        for mut bytes in junk {
            if sealed && bytes.len() > 16 {
                bytes[8..12].copy_from_slice(&9u32.to_le_bytes());
                (bytes[12], bytes[14], bytes[15]) = (kind, 1, 0);
                packet::seal(&mut bytes, 77);
            }
            let got = w.sides[0].conn.receive(w.now, &bytes, false, &mut |_| ());
            prop_assert!(sealed || got == Ok(Received::Dropped));
        }
    }
}

#[test]
fn nothing_is_sent_twice_when_nothing_is_lost() {
    let mut w = World::new(1, CALM, [3_000_000, 0], Params::default());
    let took = w.run();
    let tally = w.sides[0].conn.tally();
    assert_eq!(tally.again, 0, "{tally:?}");
    assert!(took < Duration::from_millis(20), "{took:?}");
    assert!(
        w.count < tally.packets * 5 / 4,
        "few acknowledgements: {} datagrams for {tally:?}",
        w.count
    );
}

#[test]
fn five_percent_loss_costs_bandwidth_and_no_stalls() {
    let weather = Weather { lost: 50, ..CALM };
    let took = World::new(5, weather, [3_000_000, 3_000_000], Params::default()).run();
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[test]
fn one_percent_loss_leaves_the_window_open() {
    let rough = World::new(
        5,
        Weather { lost: 10, ..CALM },
        [20_000_000, 0],
        Params::default(),
    )
    .run();
    // With the window that CUBIC has at such a loss, 12 packets, it would be 48 ms.
    assert!(rough < Duration::from_millis(15), "{rough:?}");
}

#[test]
fn a_lost_packet_is_reported_at_the_gap_and_when_it_is_certain() {
    let params = Params::default();
    let mut inflow = Inflow::new();
    for (number, at_once) in [(0, false), (2, true), (3, false), (4, true), (5, false)] {
        let offset = 10 * number;
        let taken = inflow.take(BEGIN, number, offset, &[0; 10], &params, &mut |_| ());
        assert_eq!(taken, Ok(()));
        assert_eq!(inflow.ack_due(&params) <= BEGIN, at_once, "{number}");
        inflow.ack(BEGIN, &params);
    }
}

#[test]
fn a_tail_that_is_lost_is_asked_for_in_milliseconds() {
    let mut w = World::new(3, CALM, [5_000, 0], Params::default());
    w.weather.lost = 1000;
    w.serve(0);
    while w.sides[0].written < 5_000 {
        w.serve(0);
    }
    w.weather.lost = 0;
    let took = w.run();
    assert!(took < Duration::from_millis(10), "{took:?}");
}

#[test]
fn a_receiver_that_sleeps_for_minutes_gets_everything_when_it_wakes_and_costs_little_meanwhile() {
    let mut w = World::new(4, CALM, [400_000, 0], Params::default());
    let wakes = BEGIN + Duration::from_secs(100);
    w.sides[1].away = wakes;
    w.weather.stall = Some((0, 0, 40));
    let took = w.run();
    assert!(took < Duration::from_millis(100_600), "{took:?}");
    let again = w.sides[0].conn.tally().again;
    assert!(again < 1000, "{again} questions and repetitions");
}

#[test]
fn a_question_is_answered_though_there_is_nothing_to_say() {
    let mut w = World::new(1, CALM, [0, 0], Params::default());
    w.sides[0].conn.ask();
    w.serve(0);
    let asked = w.now;
    while w.sides[0].conn.heard() <= asked {
        w.step();
    }
    assert_eq!(w.sides[0].conn.asked(), 0);
}

#[test]
fn acknowledging_what_was_never_sent_is_a_fault() {
    let mut w = World::new(1, CALM, [0, 0], Params::default());
    let head = Head {
        kind: Kind::Ack,
        flags: 0,
        from: 1,
        session: 9,
        number: 0,
        offset: 0,
    };
    let mut numbers = Ranges::default();
    numbers.insert(5..6);
    let ack = packet::Ack {
        numbers,
        limit: 0,
        delay: Duration::ZERO,
        marked: 0,
    };
    let mut bytes = vec![0; 200];
    let n = head.encode(Some(&ack), &mut bytes);
    bytes.truncate(n);
    packet::seal(&mut bytes, 77);
    let got = w.sides[0].conn.receive(w.now, &bytes, false, &mut |_| ());
    assert_eq!(got, Err(Fault::Acknowledged));
}
