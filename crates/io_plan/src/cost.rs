//! Costs of accesses and exchanges, and the estimates made from them. Costs of the file system are
//! measured on the open file; prices of communication come from the calibration that the job uses
//! (docs/install.md#calibrating), so that all ranks have the same.

use crate::collective::{Domains, Request};
use crate::hints::{Hints, Switch};
use kw_base::calibration::{Calibration, Figure};

/// Costs of file accesses. Zero: not measured yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// One access without its bytes, nanoseconds.
    pub call: u64,
    /// A byte, picoseconds.
    pub byte: u64,
    /// Moving a byte to an aggregator or from one, picoseconds.
    pub exchange: u64,
    /// Reading a byte of the file with gaps and taking the pieces out, picoseconds.
    pub sieved: u64,
}

/// Cost of one access before any was measured, in nanoseconds: a call of the page cache.
const FIRST_CALL: u64 = 500;
/// Cost of a byte before any was measured, in picoseconds: the page cache's.
const FIRST_BYTE: u64 = 100;
/// Highest cost of a byte that comes out of the page cache, in picoseconds: 2 GB/s.
const CACHED_BYTE: u64 = 500;
/// Bytes read at once with gaps from the page cache. Measured with steps of 16 KB to 2 MB on a
/// processor with 1 MB of second-level cache: 128 to 512 KB are best, 2 MB takes 8 % longer.
const CACHED_STEP: u64 = 256 << 10;
/// Cost of finding a piece in data read with gaps, in nanoseconds, until that was measured as a part
/// of [`Cost::sieved`].
const SIEVE_PER_PIECE: f64 = 4.0;
/// Cost of describing one run to an aggregator and placing it there, in nanoseconds.
const EXCHANGE_PER_PIECE: f64 = 8.0;
/// Bytes of the rank that has most, from which on an exchange determines the cost of a byte.
const TELLING: f64 = 1048576.0;
/// Cache lines that a message moves between two ranks of a host: the frame in the ring, the ring's
/// two positions, and the same for the answer.
const LINES: f64 = 8.0;

impl Cost {
    /// These costs, with those of the page cache in place of costs that were not measured.
    pub fn or_first(self) -> Cost {
        let or = |measured, first| if measured == 0 { first } else { measured };
        Cost {
            call: or(self.call, FIRST_CALL),
            byte: or(self.byte, FIRST_BYTE),
            ..self
        }
    }

    /// Bytes that are moved in the time of one access.
    pub fn bytes_of_a_call(&self) -> u64 {
        let Cost { call, byte, .. } = self.or_first();
        call.saturating_mul(1000) / byte
    }

    /// Bytes to read at once with gaps, at most `most`. Reads from the page cache take steps that
    /// are still in the processor's cache when the pieces are copied out.
    pub fn sieve_step(&self, most: u64) -> u64 {
        match self.or_first().byte < CACHED_BYTE {
            true => most.min(CACHED_STEP),
            false => most,
        }
    }

    /// Cost of a byte that is read with gaps, in picoseconds, before that was measured. Filling
    /// memory that is in the processor's cache takes half the time. Measured in the same way as
    /// [`CACHED_STEP`].
    pub fn first_sieved_byte(&self) -> u64 {
        match self.or_first().byte {
            byte if byte < CACHED_BYTE => byte.div_ceil(2),
            byte => byte,
        }
    }

    /// Duration of accesses in nanoseconds.
    fn of(&self, calls: f64, bytes: f64) -> f64 {
        calls * self.call as f64 + bytes * self.byte as f64 / 1000.0
    }
}

/// Prices of communication between the ranks of a file, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prices {
    /// A byte to another rank, and its copy to its destination.
    pub byte: f64,
    /// The same if ranks share processors: the data are not in their caches any more.
    pub crowded: f64,
    /// A message.
    pub message: f64,
    /// Time until a sleeping rank runs.
    pub wake: f64,
    /// A copy of a byte within a processor's caches.
    pub copy: f64,
}

impl Prices {
    /// Prices of a job with this calibration. Ranks on several hosts use the network.
    pub fn of(calibration: &Calibration, several_hosts: bool) -> Prices {
        let get = |figure| calibration.get_or_start(figure);
        let copy = get(Figure::CopyNear);
        // from memory to the shared area, from there, and to the destination
        let crowded = 3.0 * get(Figure::Memory);
        let (through, message) = match several_hosts {
            false => (
                calibration.stream_between(),
                LINES * calibration.line_between(),
            ),
            true => (get(Figure::NetByte), get(Figure::NetTrip) / 2.0),
        };
        Prices {
            byte: through + copy,
            crowded: crowded.max(through + copy),
            message,
            wake: get(Figure::Wake),
            copy,
        }
    }
}

/// Bytes of encoded [`Prices`].
pub const PRICES_LEN: usize = 40;

impl Prices {
    /// The prices as bytes of a message.
    pub fn encode(&self) -> [u8; PRICES_LEN] {
        let prices = [self.byte, self.crowded, self.message, self.wake, self.copy];
        let mut out = [0; PRICES_LEN];
        for (place, price) in out.chunks_exact_mut(8).zip(prices) {
            place.copy_from_slice(&price.to_le_bytes());
        }
        out
    }

    /// The prices in bytes of a message.
    pub fn decode(bytes: &[u8; PRICES_LEN]) -> Prices {
        let price = |i: usize| {
            let price: [u8; 8] = bytes[8 * i..8 * i + 8].try_into().expect("eight bytes");
            f64::from_le_bytes(price)
        };
        Prices {
            byte: price(0),
            crowded: price(1),
            message: price(2),
            wake: price(3),
            copy: price(4),
        }
    }
}

impl Default for Prices {
    fn default() -> Prices {
        Prices::of(&Calibration::START, false)
    }
}

/// Sum of the ranks' requests in a collective call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub requests: &'a [Request],
    pub hints: &'a Hints,
    pub prices: &'a Prices,
    pub aggregators: usize,
    pub writes: bool,
}

impl Asked<'_> {
    fn highest(&self, of: fn(&Request) -> u64) -> u64 {
        self.requests.iter().map(of).max().unwrap_or(0)
    }

    fn sum(&self, of: fn(&Request) -> u64) -> f64 {
        self.requests.iter().map(|r| of(r) as f64).sum()
    }

    /// The highest costs of all ranks.
    fn cost(&self) -> Cost {
        let cost = Cost {
            call: self.highest(|r| r.cost.call),
            byte: self.highest(|r| r.cost.byte),
            exchange: self.highest(|r| r.cost.exchange),
            sieved: self.highest(|r| r.cost.sieved),
        };
        cost.or_first()
    }

    /// Time until all ranks are done: at most as many run at once as there are aggregators; further
    /// ones take turns.
    fn time(&self, of: impl Fn(&Request) -> f64) -> f64 {
        let most = self.requests.iter().map(&of).fold(0.0, f64::max);
        most.max(self.requests.iter().map(&of).sum::<f64>() / self.aggregators as f64)
    }

    /// Whether ranks with data share processors.
    fn is_crowded(&self) -> bool {
        let active = self.requests.iter().filter(|r| r.bytes != 0).count();
        active > self.aggregators
    }

    /// Cost of an exchange per byte before it was measured, in picoseconds.
    pub fn usual_exchange(&self) -> u64 {
        let byte = match self.is_crowded() {
            true => self.prices.crowded,
            false => self.prices.byte,
        };
        (byte * 1000.0).ceil() as u64
    }

    /// Nanoseconds if each rank accesses its own bytes.
    pub fn alone(&self) -> f64 {
        let cost = self.cost();
        let each = self.time(|r| cost.of(r.pieces as f64, r.bytes as f64));
        if self.writes || self.hints.sieve_reads == Switch::Disable {
            return each;
        }
        each.min(self.time(|r| self.sieved(r, &cost)))
    }

    /// Nanoseconds of a rank that reads gaps along with its pieces.
    fn sieved(&self, r: &Request, cost: &Cost) -> f64 {
        let span = r.end.saturating_sub(r.first) as f64;
        if cost.sieved != 0 {
            return span * cost.sieved as f64 / 1000.0;
        }
        let step = cost.sieve_step(self.hints.sieve) as f64;
        let calls = (span / step).ceil() * cost.call as f64;
        let bytes = span * cost.first_sieved_byte() as f64 / 1000.0;
        let taken_out = r.bytes as f64 * self.prices.copy;
        calls + bytes + taken_out + r.pieces as f64 * SIEVE_PER_PIECE
    }

    /// Nanoseconds if the ranks exchange data.
    pub fn together(&self, domains: &Domains) -> f64 {
        let per_byte = match self.cost().exchange {
            0 => self.usual_exchange(),
            measured => measured,
        };
        let moved = self.time(|r| r.bytes as f64 * per_byte as f64 / 1000.0);
        moved + self.beside(domains)
    }

    /// Calls of all aggregators, and the bytes that they access. If the pieces of all ranks leave
    /// gaps, the fraction of pieces that stay apart is twice the gaps' fraction of the range, and
    /// all if half of it is gaps.
    fn accesses(&self, domains: &Domains) -> (f64, f64) {
        let range = domains.len() as f64;
        let (bytes, pieces) = (self.sum(|r| r.bytes), self.sum(|r| r.pieces));
        let apart = (2.0 * (1.0 - bytes / range)).clamp(0.0, 1.0);
        let windows = (domains.rounds() as f64 * self.aggregators as f64).min(range);
        let along = match (self.writes, self.hints.sieve_reads) {
            (true, _) | (_, Switch::Disable) => 0.0,
            (_, Switch::Enable) => self.hints.sieve as f64,
            // the minimum over the ranks of the gap that is read along
            (_, Switch::Automatic) => {
                let each = self.requests.iter().map(|r| r.cost.bytes_of_a_call());
                each.min().unwrap_or(0) as f64
            }
        };
        match range / pieces.max(1.0) <= along {
            true => (windows, range),
            false => (windows + pieces * apart, bytes.min(range)),
        }
    }

    /// Costs of an exchange in addition to moving data: accesses, description of pieces, messages.
    fn beside(&self, domains: &Domains) -> f64 {
        let (calls, bytes) = self.accesses(domains);
        let accessed = self.cost().of(calls, bytes) / self.aggregators as f64;
        let described = self.time(|r| r.pieces as f64 * EXCHANGE_PER_PIECE);
        let turns = match self.is_crowded() {
            true => self.prices.wake / self.aggregators as f64,
            false => 0.0,
        };
        let ranks = self.requests.len() as f64;
        let round = ranks * (2.0 * self.prices.message + turns);
        accessed + described + domains.rounds() as f64 * round
    }

    /// Cost per byte of an exchange that took this many nanoseconds, in picoseconds; `None` if it was
    /// too small to tell.
    pub fn measured_exchange(&self, domains: &Domains, took: u64) -> Option<u64> {
        let most = self.highest(|r| r.bytes) as f64;
        let bytes = most.max(self.sum(|r| r.bytes) / self.aggregators as f64);
        let each = (took as f64 - self.beside(domains)) * 1000.0 / bytes;
        (bytes >= TELLING).then(|| each.max(1.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Call, Decision};

    /// Pieces of 4 ranks side by side, and a gap after each group of four: `stride` bytes from one
    /// group to the next.
    fn fours(len: u64, stride: u64, n: u64, cost: Cost) -> Vec<Request> {
        let rank = |r: u64| Request {
            first: r * len,
            end: (n - 1) * stride + (r + 1) * len,
            bytes: n * len,
            pieces: n,
            cost,
            ascends: true,
            failed: false,
        };
        (0..4).map(rank).collect()
    }

    fn decision(requests: &[Request], writes: bool) -> Decision {
        Call {
            requests,
            aggregators: &[0, 1],
            hints: &Hints::default(),
            prices: &Prices::default(),
            writes,
        }
        .decide()
    }

    /// The cost of a piece that an aggregator must write by itself was ignored: pieces with gaps
    /// between them were sent to aggregators, which made as many calls.
    #[test]
    fn sparse_pieces_are_written_by_their_ranks() {
        let cost = Cost {
            call: 3000,
            byte: 100,
            ..Cost::default()
        };
        let exchanges = |stride| {
            let all = fours(1024, stride, 1 << 14, cost);
            matches!(decision(&all, true), Decision::Exchange(_))
        };
        assert!(exchanges(4096), "no gaps");
        assert!(exchanges(4096 + 512), "small gaps");
        let steps: Vec<bool> = (12..24).map(|power| exchanges(1 << power)).collect();
        let last = steps.iter().rposition(|&yes| yes).expect("one step");
        assert!(steps[..=last].iter().all(|&yes| yes), "{steps:?}");
        assert!(last <= 3, "one byte in 16 and fewer: {steps:?}");
    }

    /// Windows without data cost rounds of messages.
    #[test]
    fn a_range_of_many_windows_costs_messages() {
        let all = fours(64, 1 << 30, 100, Cost::default());
        assert_eq!(decision(&all, true), Decision::Independent);
        assert_eq!(decision(&all, false), Decision::Independent);
    }

    /// The price of an exchange grows with the gaps, the price of writing alone does not.
    #[test]
    fn gaps_make_an_exchange_dearer_step_by_step() {
        let (hints, prices) = (Hints::default(), Prices::default());
        let prices_of = |stride| {
            let requests = fours(256, stride, 4096, Cost::default());
            let asked = Asked {
                requests: &requests,
                hints: &hints,
                prices: &prices,
                aggregators: 2,
                writes: true,
            };
            let end = requests[3].end;
            let domains = Domains::new(0..end, &[0, 1], &hints);
            (asked.alone(), asked.together(&domains))
        };
        let steps: Vec<(f64, f64)> = (10..20).map(|power| prices_of(1 << power)).collect();
        assert!(
            steps
                .windows(2)
                .all(|w| w[0].0 == w[1].0 && w[0].1 < w[1].1)
        );
    }

    #[test]
    fn a_network_is_dearer_than_shared_memory_and_shared_processors_dearer_than_own_ones() {
        let start = Calibration::START;
        let (near, far) = (Prices::of(&start, false), Prices::of(&start, true));
        assert!(near.byte < near.crowded && near.byte < far.byte);
        assert!(near.message < far.message && far.byte <= far.crowded);
    }

    #[test]
    fn prices_survive_a_message() {
        let prices = Prices {
            byte: 0.1,
            crowded: 0.2,
            message: 3e3,
            wake: 4e4,
            copy: 0.05,
        };
        assert_eq!(Prices::decode(&prices.encode()), prices);
    }

    #[test]
    fn gaps_are_read_along_in_small_steps_only_from_the_page_cache() {
        let mut cost = Cost::default();
        assert_eq!(cost.sieve_step(4 << 20), CACHED_STEP);
        assert_eq!(cost.sieve_step(1000), 1000, "not more than the hint says");
        cost.byte = 10 * CACHED_BYTE;
        assert_eq!(cost.sieve_step(4 << 20), 4 << 20);
    }
}
