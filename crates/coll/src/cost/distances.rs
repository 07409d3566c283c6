//! The prices of a call by distance: between ranks of one cache, of one package, between packages,
//! and of any two ranks.

use super::Prices;
use crate::CallView;

/// Costs between ranks at a given distance.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    /// The prices of the call.
    pub p: Prices,
    /// A byte from the caches of another core, whatever else memory has to do.
    pub shm_buffer: f64,
}

/// The distances between the ranks of one call.
#[derive(Clone, Copy, Debug)]
pub struct Distances {
    /// Between ranks that share a last-level cache.
    pub in_cache: Distance,
    /// Between ranks of one package that do not.
    pub between_caches: Distance,
    /// Between any two ranks of one package, on average.
    pub near: Distance,
    /// Between packages.
    pub far: Distance,
    /// Average between any two ranks of the call; if locations are unknown, the largest distance is
    /// used, because ranks may move.
    pub any: Distance,
}

/// Shares of pairs of ranks: of one cache, of one package with two caches, of two packages.
type Shares = [f64; 3];

impl Distances {
    /// The average for messages over a network: they occupy its links and cost nothing else.
    pub fn without_ways(&self) -> Distances {
        let distance = |d: Distance| {
            let p = Prices {
                net_send: 0.0,
                net_recv: 0.0,
                latency: 0.0,
                ..d.p
            };
            Distance { p, ..d }
        };
        Distances {
            in_cache: distance(self.in_cache),
            between_caches: distance(self.between_caches),
            near: distance(self.near),
            far: distance(self.far),
            any: distance(self.any),
        }
    }

    /// The distances of a call: `p` for the machine, and the effect of memory (`waiting`).
    pub fn of(p: &Prices, call: &CallView, waiting: impl Fn(&mut Prices)) -> Distances {
        let shape = call.levels.map(|l| l.shape());
        let [cached, near] = shape.map_or([0.0; 2], |s| [s.cached, s.near].map(f64::from));
        let distance = |[cached, near, far]: Shares| {
            let mixed = |line: [f64; 3]| cached * line[0] + near * line[1] + far * line[2];
            let mut p = Prices {
                line: mixed([p.cache_line, p.line, p.far_line]),
                read: mixed([p.cache_read, p.read, p.far_read]),
                ..*p
            };
            let shm_buffer = p.read;
            waiting(&mut p);
            Distance { p, shm_buffer }
        };
        let inside = if near > 0.0 { cached / near } else { 0.0 };
        let [cached, near] = [cached / 1000.0, near / 1000.0];
        Distances {
            in_cache: distance([1.0, 0.0, 0.0]),
            between_caches: distance([0.0, 1.0, 0.0]),
            near: distance([inside, 1.0 - inside, 0.0]),
            far: distance([0.0, 0.0, 1.0]),
            any: distance([cached, near - cached, 1.0 - near]),
        }
    }
}
