//! Collective access (MPI 5.0, 14.4.5): whether the ranks exchange data, and which rank accesses
//! which part of the file. All ranks have the same requests and so reach the same decision.
//!
//! Two-phase access: the range of the file that a call touches is cut into one *domain* for each
//! *aggregator* rank. An aggregator processes its domain in *windows* of a buffer's size. For each
//! window the ranks send it their parts (or are sent them), so that many small pieces become few
//! large accesses. This pays if the pieces of several ranks interleave; otherwise each rank
//! accesses its own bytes.

use crate::cost::{Asked, Cost, Prices};
use crate::hints::{Hints, Switch};
use std::ops::Range;

/// Request of one rank in a collective call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// Position in the file of its first byte.
    pub first: u64,
    /// Position of the first byte after its data.
    pub end: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Runs of bytes in the file that hold them.
    pub pieces: u64,
    /// Cost of accesses by this rank.
    pub cost: Cost,
    /// Whether the view of this rank is ascending, so that it can take part in an exchange.
    pub ascends: bool,
    /// Whether this rank has an error of its own: then no rank accesses the file.
    pub failed: bool,
}

/// Bytes of an encoded [`Request`].
pub const REQUEST_LEN: usize = 72;

impl Request {
    /// The request of a rank that has an error of its own.
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

/// A collective call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Requests of the ranks.
    pub requests: &'a [Request],
    /// Ranks that may access the file for others, in ascending order, at least one.
    pub aggregators: &'a [u32],
    /// Hints, the same on all ranks.
    pub hints: &'a Hints,
    /// Prices of communication, the same on all ranks.
    pub prices: &'a Prices,
    /// Whether it writes.
    pub writes: bool,
}

/// Pieces of a rank from which on it pays to measure the cost of a call before the decision.
const MANY: u64 = 64;

impl Call<'_> {
    fn asked(&self) -> Asked<'_> {
        Asked {
            requests: self.requests,
            hints: self.hints,
            prices: self.prices,
            aggregators: self.aggregators.len(),
            writes: self.writes,
        }
    }

    fn active(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|r| r.bytes != 0)
    }

    fn switch(&self) -> Switch {
        match self.writes {
            true => self.hints.exchange_writes,
            false => self.hints.exchange_reads,
        }
    }

    fn is_nothing(&self) -> bool {
        self.active().next().is_none() || self.requests.iter().any(|r| r.failed)
    }

    fn domains(&self) -> Domains {
        let first = self.active().map(|r| r.first).min().unwrap_or(0);
        let end = self.active().map(|r| r.end).max().unwrap_or(0);
        Domains::new(first..end, self.aggregators, self.hints)
    }

    /// Whether each rank should first access a few of its pieces to measure their cost: the
    /// decision depends on it, and some rank does not know it yet.
    pub fn wants_probe(&self) -> bool {
        !self.is_nothing()
            && self.switch() == Switch::Automatic
            && self.active().all(|r| r.ascends)
            && self.active().any(|r| r.cost.call == 0)
            && self.active().all(|r| r.pieces >= MANY)
            && interleave(self.requests)
    }

    /// The strategy. All ranks reach the same one.
    pub fn decide(&self) -> Decision {
        if self.is_nothing() {
            return Decision::Nothing;
        }
        let possible = self.active().all(|r| r.ascends);
        let domains = self.domains();
        let wanted = match self.switch() {
            Switch::Disable => false,
            Switch::Enable => true,
            Switch::Automatic => {
                let asked = self.asked();
                interleave(self.requests) && asked.alone() > asked.together(&domains)
            }
        };
        match possible && wanted {
            true => Decision::Exchange(domains),
            false => Decision::Independent,
        }
    }

    /// Cost of an exchange per byte before it was measured, in picoseconds.
    pub fn usual_exchange(&self) -> u64 {
        self.asked().usual_exchange()
    }

    /// Cost per byte of an exchange that took this many nanoseconds, in picoseconds; `None` if it
    /// was too small to tell.
    pub fn measured_exchange(&self, took: u64) -> Option<u64> {
        self.asked().measured_exchange(&self.domains(), took)
    }
}

/// Whether the ranges of several ranks overlap.
fn interleave(requests: &[Request]) -> bool {
    let mut ranges: Vec<(u64, u64)> = (requests.iter().filter(|r| r.bytes != 0))
        .map(|r| (r.first, r.end))
        .collect();
    ranges.sort_unstable();
    ranges.windows(2).any(|w| w[1].0 < w[0].1)
}

/// Which aggregator accesses which part of the file, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domains {
    range: Range<u64>,
    /// Start of the first domain, aligned.
    base: u64,
    /// Bytes of a domain, aligned.
    domain: u64,
    /// Bytes of a window.
    window: u64,
    aggregators: Vec<u32>,
}

impl Domains {
    /// Divides a nonempty range of the file.
    pub(crate) fn new(range: Range<u64>, aggregators: &[u32], hints: &Hints) -> Domains {
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

    /// Bytes of the range.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The aggregators' ranks, one for each domain.
    pub fn aggregators(&self) -> &[u32] {
        &self.aggregators
    }

    /// Number of rounds in which the ranks exchange data.
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

/// The ranks that access the file for others: the first `each` of each host, or the number in the
/// hint `cb_nodes`, spread over the hosts. `hosts`: the host number of each rank.
pub fn aggregators(hosts: &[u32], each: u32, hints: &Hints) -> Vec<u32> {
    let mut of_host = std::collections::HashMap::new();
    // In each turn the next rank of every host.
    let mut turns: Vec<(u32, u32)> = (hosts.iter().zip(0..))
        .map(|(host, rank)| {
            let turn = of_host.entry(host).or_insert(0u32);
            *turn += 1;
            (*turn, rank)
        })
        .collect();
    turns.sort_unstable();
    let count = turns.partition_point(|&(turn, _)| turn <= each.max(1));
    let wanted = hints.aggregators.map_or(count, |n| n as usize);
    turns.truncate(wanted.clamp(1, hosts.len().max(1)));
    let mut ranks: Vec<u32> = turns.into_iter().map(|(_, rank)| rank).collect();
    ranks.sort_unstable();
    ranks
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

    fn decide(requests: &[Request], aggregators: &[u32], hints: &Hints, writes: bool) -> Decision {
        let prices = Prices::default();
        call(requests, aggregators, (hints, &prices), writes).decide()
    }

    fn call<'a>(
        requests: &'a [Request],
        aggregators: &'a [u32],
        (hints, prices): (&'a Hints, &'a Prices),
        writes: bool,
    ) -> Call<'a> {
        Call {
            requests,
            aggregators,
            hints,
            prices,
            writes,
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
    fn an_exchange_that_was_slow_is_not_made_again() {
        let writes = |exchange: u64| {
            let cost = Cost {
                call: 6000,
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
        let (hints, prices) = (Hints::default(), Prices::default());
        let chosen = |all: &[Request], took| {
            let both = (&hints, &prices);
            call(all, &[0, 1], both, true).measured_exchange(took)
        };
        let each = chosen(&all, 5_000_000).expect("16 MB tell");
        assert!(
            (190..198).contains(&each),
            "5 ms for 16 MB, of them 0.1 ns a byte for the file: {each}"
        );
        let small: Vec<Request> = (0..2).map(|r| blocks(r, 2, 64, 10)).collect();
        assert_eq!(chosen(&small, 50_000), None);
    }

    #[test]
    fn a_call_is_measured_before_the_first_decision_about_many_pieces() {
        let (hints, prices) = (Hints::default(), Prices::default());
        let wants = |all: &[Request], hints: &Hints| {
            call(all, &[0, 1], (hints, &prices), true).wants_probe()
        };
        let all = |n| -> Vec<Request> { (0..2).map(|r| blocks(r, 2, 1 << 10, n)).collect() };
        assert!(wants(&all(MANY), &hints));
        assert!(!wants(&all(MANY - 1), &hints), "few pieces");
        let mut known = all(1000);
        known[0].cost.call = 700;
        assert!(wants(&known, &hints), "rank 1 does not know it");
        known[1].cost.call = 900;
        assert!(!wants(&known, &hints));
        let mut chosen = Hints::default();
        assert!(chosen.set("romio_cb_write", "enable"));
        assert!(!wants(&all(1000), &chosen), "nothing to decide");
        known[1].failed = true;
        known[1].cost.call = 0;
        assert!(!wants(&known, &hints), "no rank accesses the file");
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
