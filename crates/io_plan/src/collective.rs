//! Collective access (MPI 5.0, 14.4.5): whether the ranks exchange data, and which rank accesses
//! which part of the file. All ranks have the same requests and so reach the same decision.
//!
//! Two-phase access: the range of the file that a call touches is cut into one *domain* for each
//! *aggregator* rank. An aggregator goes through its domain in *windows* of a buffer's size. For
//! each window the ranks send it their parts (or are sent them), so that many small pieces become
//! few large accesses. This pays where the pieces of several ranks interleave; otherwise each rank
//! accesses its own bytes.

use crate::hints::{Hints, Switch};
use std::ops::Range;

/// Costs of file accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// One access beyond its bytes, nanoseconds.
    pub call: u64,
    /// A byte, picoseconds.
    pub byte: u64,
    /// Moving a byte to an aggregator or from one, picoseconds; 0 before it was measured.
    pub exchange: u64,
    /// Reading a byte of the file with gaps and taking the pieces out, picoseconds; 0 before it was
    /// measured.
    pub sieved: u64,
}

impl Default for Cost {
    /// Before anything was measured: the page cache's.
    fn default() -> Cost {
        Cost {
            call: 500,
            byte: 100,
            exchange: 0,
            sieved: 0,
        }
    }
}

impl Cost {
    /// Bytes that are moved in the time of one access.
    pub fn bytes_of_a_call(&self) -> u64 {
        self.call.saturating_mul(1000) / self.byte.max(1)
    }

    /// Bytes to read at once with gaps, at most `most`. Reads from the page cache take steps that
    /// are still in the processor's cache when the pieces are copied out.
    pub fn sieve_step(&self, most: u64) -> u64 {
        match self.byte < CACHED_BYTE {
            true => most.min(CACHED_STEP),
            false => most,
        }
    }

    /// Cost of a byte that is read with gaps, in picoseconds, before that was measured. Memory that
    /// is in the processor's cache is filled in half the time. Measured as [`CACHED_STEP`].
    pub fn first_sieved_byte(&self) -> u64 {
        match self.byte < CACHED_BYTE {
            true => self.byte.div_ceil(2),
            false => self.byte,
        }
    }

    /// Nanoseconds of accesses.
    fn of(&self, calls: f64, bytes: f64) -> f64 {
        calls * self.call as f64 + bytes * self.byte as f64 / 1000.0
    }
}

/// Request of one rank in a collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// Position in the file of its first byte.
    pub first: u64,
    /// Position just behind its last byte.
    pub end: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Runs of bytes in the file that hold them.
    pub pieces: u64,
    /// Cost of accesses by this rank.
    pub cost: Cost,
    /// Whether the view of this rank ascends, so that it can take part in an exchange.
    pub ascends: bool,
    /// Whether this rank has failed for a reason of its own: then no rank accesses the file.
    pub failed: bool,
}

/// Bytes of an encoded [`Request`].
pub const REQUEST_LEN: usize = 72;

impl Request {
    /// That of a rank which has failed for a reason of its own.
    pub fn failed() -> Request {
        Request {
            failed: true,
            ..Request::default()
        }
    }

    /// The request as bytes of a message.
    pub fn encode(&self) -> [u8; REQUEST_LEN] {
        let flags = u64::from(self.ascends) | u64::from(self.failed) << 1;
        let words = [
            self.first,
            self.end,
            self.bytes,
            self.pieces,
            self.cost.call,
            self.cost.byte,
            self.cost.exchange,
            self.cost.sieved,
            flags,
        ];
        let mut out = [0; REQUEST_LEN];
        for (place, word) in out.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The request in bytes of a message.
    pub fn decode(bytes: &[u8; REQUEST_LEN]) -> Request {
        let word = |i: usize| {
            let word: [u8; 8] = bytes[8 * i..8 * i + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(word)
        };
        Request {
            first: word(0),
            end: word(1),
            bytes: word(2),
            pieces: word(3),
            cost: Cost {
                call: word(4),
                byte: word(5),
                exchange: word(6),
                sieved: word(7),
            },
            ascends: word(8) & 1 != 0,
            failed: word(8) & 2 != 0,
        }
    }
}

/// Default cost of moving a byte to or from an aggregator and placing it there, before it was
/// measured, in picoseconds: two copies within a host while other ranks do the same. Measured on
/// two cores with bench/io.c, blocks of 1 to 64 KB.
const EXCHANGE_WRITTEN: u64 = 40;
/// The default for reads.
const EXCHANGE_READ: u64 = 70;
/// The default if ranks share cores and wait for each other.
const EXCHANGE_CROWDED: u64 = 150;
/// Bytes of the rank that has most, from which on an exchange tells what a byte costs.
const TELLING: f64 = 1048576.0;
/// Minimum cost of a write beyond its bytes if several ranks write one file at once, in
/// nanoseconds: they wait for the file's lock in the kernel. Measured as above: 2,400 to 7,400.
const CONTENDED_CALL: u64 = 3_000;
/// Highest cost of a byte that comes out of the page cache, in picoseconds: 2 GB/s.
const CACHED_BYTE: u64 = 500;
/// Bytes read at once with gaps from the page cache. Measured with steps of 16 KB to 2 MB on a
/// processor with 1 MB of second-level cache: 128 to 512 KB are best, 2 MB takes 8 % longer.
const CACHED_STEP: u64 = 256 << 10;
/// Cost of extracting a byte from data read with gaps, in nanoseconds: one copy.
const SIEVE_PER_BYTE: f64 = 0.02;
/// Cost of finding a piece in such data, in nanoseconds.
const SIEVE_PER_PIECE: f64 = 4.0;
/// Cost of describing one run to an aggregator and placing it there, in nanoseconds.
const EXCHANGE_PER_PIECE: f64 = 8.0;
/// Cost per rank and peer of the messages of one exchange, in nanoseconds.
const EXCHANGE_PER_RANK: f64 = 2_000.0;

/// Strategy of a collective call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// No rank has anything to access, or one of them has failed before.
    Nothing,
    /// Each rank accesses its own bytes.
    Independent,
    /// The ranks exchange data with aggregators.
    Exchange(Domains),
}

/// Decides for a call with these requests, one for each rank. `aggregators`: which ranks may
/// access the file for others, in ascending order, at least one.
pub fn decide(requests: &[Request], aggregators: &[u32], hints: &Hints, writes: bool) -> Decision {
    let active = || requests.iter().filter(|r| r.bytes != 0);
    if active().next().is_none() || requests.iter().any(|r| r.failed) {
        return Decision::Nothing;
    }
    let switch = match writes {
        true => hints.exchange_writes,
        false => hints.exchange_reads,
    };
    let possible = active().all(|r| r.ascends);
    let wanted = match switch {
        Switch::Disable => false,
        Switch::Enable => true,
        Switch::Automatic => {
            interleave(requests) && exchange_pays(requests, aggregators.len(), hints, writes)
        }
    };
    if !possible || !wanted {
        return Decision::Independent;
    }
    let first = active().map(|r| r.first).min().unwrap_or(0);
    let end = active().map(|r| r.end).max().unwrap_or(0);
    Decision::Exchange(Domains::new(first..end, aggregators, hints))
}

/// Whether the ranges of several ranks overlap.
fn interleave(requests: &[Request]) -> bool {
    let mut ranges: Vec<(u64, u64)> = (requests.iter().filter(|r| r.bytes != 0))
        .map(|r| (r.first, r.end))
        .collect();
    ranges.sort_unstable();
    ranges.windows(2).any(|w| w[1].0 < w[0].1)
}

/// Ranks that access anything.
fn active(requests: &[Request]) -> usize {
    requests.iter().filter(|r| r.bytes != 0).count()
}

/// Default cost of an exchange per byte before it was measured, in picoseconds.
pub fn usual_exchange(requests: &[Request], aggregators: usize, writes: bool) -> u64 {
    match (active(requests) > aggregators, writes) {
        (true, _) => EXCHANGE_CROWDED,
        (false, true) => EXCHANGE_WRITTEN,
        (false, false) => EXCHANGE_READ,
    }
}

/// Cost per byte of an exchange that took this many nanoseconds, in picoseconds; `None` if it was
/// too small to tell.
pub fn measured_exchange(
    requests: &[Request],
    aggregators: usize,
    cost: Cost,
    took: u64,
) -> Option<u64> {
    let most = |of: fn(&Request) -> u64| requests.iter().map(of).max().unwrap_or(0) as f64;
    let total: f64 = requests.iter().map(|r| r.bytes as f64).sum();
    let bytes = most(|r| r.bytes).max(total / aggregators as f64);
    let pieces = most(|r| r.pieces) * EXCHANGE_PER_PIECE;
    let each = (took as f64 - pieces) * 1000.0 / bytes - cost.byte as f64;
    (bytes >= TELLING).then(|| each.max(1.0) as u64)
}

/// Whether fewer accesses are worth the exchange: whichever way the ranks that have most to do are
/// done earlier. As many ranks as there are aggregators run at once; where there are more, they take
/// turns.
fn exchange_pays(requests: &[Request], aggregators: usize, hints: &Hints, writes: bool) -> bool {
    let highest = |of: fn(&Request) -> u64| requests.iter().map(of).max().unwrap_or(0);
    let least = match writes && active(requests) > 1 {
        true => CONTENDED_CALL,
        false => 0,
    };
    let cost = Cost {
        call: highest(|r| r.cost.call).max(least),
        byte: highest(|r| r.cost.byte),
        exchange: highest(|r| r.cost.exchange),
        sieved: highest(|r| r.cost.sieved),
    };
    let per_byte = match cost.exchange {
        0 => usual_exchange(requests, aggregators, writes),
        measured => measured,
    };
    let time = |of: &dyn Fn(&Request) -> f64| {
        let most = requests.iter().map(of).fold(0.0, f64::max);
        most.max(requests.iter().map(of).sum::<f64>() / aggregators as f64)
    };
    let each = |r: &Request| cost.of(r.pieces as f64, r.bytes as f64);
    let sieved = |r: &Request| {
        let span = r.end.saturating_sub(r.first) as f64;
        match cost.sieved {
            0 => {
                let step = cost.sieve_step(hints.sieve) as f64;
                let calls = (span / step).ceil() * cost.call as f64;
                let bytes = span * cost.first_sieved_byte() as f64 / 1000.0;
                let taken_out = r.bytes as f64 * SIEVE_PER_BYTE;
                calls + bytes + taken_out + r.pieces as f64 * SIEVE_PER_PIECE
            }
            measured => span * measured as f64 / 1000.0,
        }
    };
    let alone = match writes || hints.sieve_reads == Switch::Disable {
        true => time(&each),
        false => time(&each).min(time(&sieved)),
    };
    let part = |r: &Request| {
        let bytes = r.bytes as f64;
        bytes * (per_byte + cost.byte) as f64 / 1000.0 + r.pieces as f64 * EXCHANGE_PER_PIECE
    };
    alone > time(&part) + requests.len() as f64 * EXCHANGE_PER_RANK
}

/// Which aggregator accesses which part of the file, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domains {
    range: Range<u64>,
    /// Where the first domain would begin, aligned.
    base: u64,
    /// Bytes of a domain, aligned.
    domain: u64,
    /// Bytes of a window.
    window: u64,
    aggregators: Vec<u32>,
}

impl Domains {
    /// Cuts a range of the file, which is not empty.
    fn new(range: Range<u64>, aggregators: &[u32], hints: &Hints) -> Domains {
        let unit = hints.alignment.max(1);
        let base = range.start - range.start % unit;
        let share = (range.end - base).div_ceil(aggregators.len() as u64);
        let domain = share.div_ceil(unit).saturating_mul(unit);
        let window = (hints.buffer / unit)
            .max(1)
            .saturating_mul(unit)
            .min(domain);
        Domains {
            range,
            base,
            domain,
            window,
            aggregators: aggregators.to_vec(),
        }
    }

    /// The aggregators' ranks, one for each domain.
    pub fn aggregators(&self) -> &[u32] {
        &self.aggregators
    }

    /// How many times the ranks exchange data.
    pub fn rounds(&self) -> u64 {
        self.domain.div_ceil(self.window)
    }

    /// The part of the file that the aggregator with this index accesses in a round; may be empty.
    pub fn window(&self, index: usize, round: u64) -> Range<u64> {
        let from = self
            .base
            .saturating_add(self.domain.saturating_mul(index as u64));
        let to = from.saturating_add(self.domain);
        let start = from.saturating_add(self.window.saturating_mul(round));
        let end = start.saturating_add(self.window).min(to);
        let start = start.clamp(self.range.start, self.range.end);
        start..end.clamp(start, self.range.end)
    }
}

/// The ranks that access the file for others: the first `each` of each host, or as many as the hint
/// `cb_nodes` says, spread over the hosts. `hosts`: the host number of each rank.
pub fn aggregators(hosts: &[u32], each: u32, hints: &Hints) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::new();
    let mut taken = vec![false; hosts.len()];
    // In each turn the next rank of every host.
    while order.len() < hosts.len() {
        let mut seen = Vec::new();
        for (rank, host) in hosts.iter().enumerate() {
            if !taken[rank] && !seen.contains(host) {
                seen.push(*host);
                taken[rank] = true;
                order.push(rank as u32);
            }
        }
    }
    let mut of_host = std::collections::HashMap::new();
    for host in hosts {
        *of_host.entry(host).or_insert(0u32) += 1;
    }
    let count = of_host.values().map(|&n| n.min(each.max(1)) as usize).sum();
    let wanted = hints.aggregators.map_or(count, |n| n as usize);
    order.truncate(wanted.clamp(1, hosts.len().max(1)));
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(rank: u64, ranks: u64, len: u64, n: u64) -> Request {
        Request {
            first: rank * len,
            end: ((n - 1) * ranks + rank + 1) * len,
            bytes: n * len,
            pieces: n,
            cost: Cost::default(),
            ascends: true,
            failed: false,
        }
    }

    fn decision(len: u64, n: u64) -> Decision {
        let all: Vec<Request> = (0..4).map(|r| blocks(r, 4, len, n)).collect();
        decide(&all, &[0], &Hints::default(), true)
    }

    #[test]
    fn small_interleaved_blocks_are_exchanged_and_large_ones_are_not() {
        assert!(matches!(decision(64, 1 << 14), Decision::Exchange(_)));
        assert_eq!(decision(1 << 16, 256), Decision::Independent);
        let apart: Vec<Request> = (0..4)
            .map(|r| Request {
                first: r << 20,
                end: (r + 1) << 20,
                ..blocks(0, 1, 64, 1 << 14)
            })
            .collect();
        let alone = decide(&apart, &[0], &Hints::default(), true);
        assert_eq!(alone, Decision::Independent);
    }

    #[test]
    fn gaps_are_read_along_where_that_costs_less_than_an_exchange() {
        let reads = |ranks: u64, cost: Cost, sieve: &str| {
            let mut hints = Hints::default();
            assert!(hints.set("romio_ds_read", sieve));
            let all: Vec<Request> = (0..ranks)
                .map(|r| Request {
                    cost,
                    ..blocks(r, ranks, 64, 1 << 14)
                })
                .collect();
            decide(&all, &[0, 1], &hints, false)
        };
        let cached = Cost::default();
        assert_eq!(reads(2, cached, "automatic"), Decision::Independent);
        let exchanges = |decision| matches!(decision, Decision::Exchange(_));
        assert!(exchanges(reads(2, cached, "disable")));
        assert!(
            exchanges(reads(64, cached, "automatic")),
            "64 times the data"
        );
        let slow = Cost {
            call: 50_000,
            byte: 10_000,
            ..Cost::default()
        };
        assert!(exchanges(reads(2, slow, "automatic")));
        let measured = |sieved| Cost { sieved, ..cached };
        let alone = Decision::Independent;
        assert_eq!(reads(2, measured(60), "automatic"), alone, "as fast");
        assert!(exchanges(reads(2, measured(600), "automatic")), "slower");
    }

    #[test]
    fn gaps_are_read_along_in_small_steps_only_from_the_page_cache() {
        let mut cost = Cost::default();
        assert_eq!(cost.sieve_step(4 << 20), CACHED_STEP);
        assert_eq!(cost.sieve_step(1000), 1000, "not more than the hint says");
        cost.byte = 10 * CACHED_BYTE;
        assert_eq!(cost.sieve_step(4 << 20), 4 << 20);
    }

    #[test]
    fn an_exchange_that_was_slow_is_not_made_again() {
        let writes = |exchange: u64| {
            let cost = Cost {
                exchange,
                ..Cost::default()
            };
            let all: Vec<Request> = (0..2)
                .map(|r| Request {
                    cost,
                    ..blocks(r, 2, 1 << 16, 256)
                })
                .collect();
            decide(&all, &[0, 1], &Hints::default(), true)
        };
        assert!(matches!(writes(0), Decision::Exchange(_)));
        assert_eq!(writes(1000), Decision::Independent);
        let all: Vec<Request> = (0..2).map(|r| blocks(r, 2, 1 << 16, 256)).collect();
        let told = measured_exchange(&all, 2, Cost::default(), 5_000_000);
        assert_eq!(
            told,
            Some(197),
            "5 ms for 16 MB, of them 0.1 ns a byte for the file"
        );
        let small: Vec<Request> = (0..2).map(|r| blocks(r, 2, 64, 10)).collect();
        assert_eq!(measured_exchange(&small, 2, Cost::default(), 50_000), None);
    }

    #[test]
    fn hints_go_before_costs_but_not_before_what_is_possible() {
        let mut hints = Hints::default();
        assert!(hints.set("romio_cb_write", "enable"));
        let mut all: Vec<Request> = (0..4).map(|r| blocks(r, 4, 1 << 16, 8)).collect();
        assert!(matches!(
            decide(&all, &[0, 2], &hints, true),
            Decision::Exchange(_)
        ));
        all[3].ascends = false;
        assert_eq!(decide(&all, &[0, 2], &hints, true), Decision::Independent);
        all[1].failed = true;
        assert_eq!(decide(&all, &[0, 2], &hints, true), Decision::Nothing);
        let none = [Request::default(); 3];
        assert_eq!(decide(&none, &[0], &hints, true), Decision::Nothing);
    }

    #[test]
    fn aggregators_are_spread_over_the_hosts() {
        let hosts = [0, 0, 0, 1, 1, 1, 2];
        let with = |n| {
            let hints = Hints {
                aggregators: n,
                ..Hints::default()
            };
            aggregators(&hosts, 1, &hints)
        };
        assert_eq!(with(None), [0, 3, 6]);
        assert_eq!(with(Some(1)), [0]);
        assert_eq!(with(Some(4)), [0, 1, 3, 6]);
        assert_eq!(with(Some(100)).len(), 7);
        assert_eq!(aggregators(&hosts, 2, &Hints::default()), [0, 1, 3, 4, 6]);
    }

    proptest! {
        #[test]
        fn every_byte_of_the_range_is_in_one_window(
            start in 0u64..10_000, len in 1u64..10_000, count in 1usize..6,
            buffer in 1u64..3000, alignment in 1u64..600,
        ) {
            let hints = Hints { buffer, alignment, ..Hints::default() };
            let ranks: Vec<u32> = (0..count as u32).collect();
            let domains = Domains::new(start..start + len, &ranks, &hints);
            let mut windows = Vec::new();
            for index in 0..count {
                for round in 0..domains.rounds() {
                    let w = domains.window(index, round);
                    prop_assert!(w.end - w.start <= buffer.max(alignment));
                    if !w.is_empty() {
                        windows.push((w.start, w.end));
                    }
                }
            }
            windows.sort_unstable();
            let mut at = start;
            for (from, to) in windows {
                prop_assert_eq!(from, at);
                at = to;
            }
            prop_assert_eq!(at, start + len);
        }

        #[test]
        fn a_request_survives_a_message(
            first: u64, end: u64, bytes: u64, pieces: u64, call: u64, byte: u64, ascends: bool, failed: bool,
        ) {
            let cost = Cost { call, byte, exchange: byte ^ call, sieved: byte.rotate_left(7) };
            let request = Request { first, end, bytes, pieces, cost, ascends, failed };
            prop_assert_eq!(Request::decode(&request.encode()), request);
        }
    }
}
