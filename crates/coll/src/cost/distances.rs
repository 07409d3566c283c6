//! The prices of a call by distance: between ranks of one package, between packages, and of any two
//! ranks.

use super::Prices;
use crate::Ask;

/// What things cost between ranks that are so far from each other.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    /// The prices of the call.
    pub p: Prices,
    /// A byte from the caches of another core, whatever memory has to do meanwhile.
    pub shelf: f64,
}

/// The distances between the ranks of one call.
#[derive(Clone, Copy, Debug)]
pub struct Distances {
    /// Within a package.
    pub near: Distance,
    /// Between packages.
    pub far: Distance,
    /// Between any two ranks of the call, on average; where nobody knows where they are, the
    /// largest distance counts, because they may move.
    pub any: Distance,
}

impl Distances {
    /// Of a call: `p` by the machine, and what memory makes of it (`waiting`).
    pub fn of(p: &Prices, ask: &Ask, waiting: impl Fn(&mut Prices)) -> Distances {
        let near = ask
            .levels
            .map_or(0.0, |l| f64::from(l.shape().near) / 1000.0);
        let distance = |near: f64| {
            let mixed = |close: f64, apart: f64| near * close + (1.0 - near) * apart;
            let mut p = Prices {
                line: mixed(p.line, p.far_line),
                read: mixed(p.read, p.far_read),
                ..*p
            };
            let shelf = p.read;
            waiting(&mut p);
            Distance { p, shelf }
        };
        Distances {
            near: distance(1.0),
            far: distance(0.0),
            any: distance(near),
        }
    }
}
