//! Costs of a schedule's steps: the prices of a machine.
//!
//! One set of prices serves two readers: the simulator (crate `sim`) runs whole schedules with
//! them, and the closed forms beside the algorithms price the choices.

mod distances;
mod memo;
mod memory;
mod parts;
mod prices;
mod steps;
mod trees;

pub use distances::{Distance, Distances};
pub(crate) use memo::Memo;
pub use memory::{Memory, PORTS};
pub use parts::Parts;
pub use prices::{PRICES, Price, Prices, Source};
pub use steps::{StepCosts, first_piece};
pub use trees::{
    binomial_down, binomial_gather, binomial_scatter, binomial_up, children, halves, log2_up,
    subtrees,
};

use crate::algorithms::{ALL, Algorithm};
use crate::table::Site;
use crate::{CallView, Coll};

#[cfg(test)]
thread_local! {
    /// Steps that were priced, for tests that count them.
    pub(crate) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A step was priced.
#[inline(always)]
fn count() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

/// Nanoseconds from the call on all ranks until the last one has ended; `call.bytes` and `call.param`
/// are those of the algorithm's row. The same on all ranks.
pub fn price(algorithm: &Algorithm, call: &CallView, p: &Prices, site: Site) -> f64 {
    let net = site.network || call.nodes.is_some();
    let call = &CallView {
        levels: call.priced_levels(),
        ..*call
    };
    // Parts inside a node are calls of their own.
    let least = match call.nodes {
        Some(_) => None,
        None => p.least_byte(algorithm, call),
    };
    let distances = &Distances::of(p, call, |p| p.wait_for_memory(least, net));
    let at = StepCosts::new(distances, net, call);
    let at = call.nodes.map_or(at, |n| at.on_nodes(n, !site.network));
    at.p.call + (algorithm.cost)(call, &at)
}

/// The algorithm that costs least, and its number; the same at all ranks. `None` if the size is not
/// known to all (the v and w forms).
pub fn cheapest(
    coll: Coll,
    call: &CallView,
    p: &Prices,
    site: Site,
) -> Option<(&'static Algorithm, u32)> {
    use Coll::{Allgather, Alltoall, Gather, Scatter};
    if call.bytes == 0 && matches!(coll, Allgather | Alltoall | Gather | Scatter) {
        return None;
    }
    let all = candidates(coll, call, p, site);
    let (_, algorithm, param) = all.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((algorithm, param))
}

/// Every algorithm that can do a call, with the numbers that are worth trying, and its price.
pub fn candidates<'a>(
    coll: Coll,
    call: &'a CallView,
    p: &'a Prices,
    site: Site,
) -> impl Iterator<Item = (f64, &'static Algorithm, u32)> + 'a {
    let priced = move |(a, param)| (price(a, &CallView { param, ..*call }, p, site), a, param);
    able(coll, call).map(priced)
}

/// Every algorithm that can do a call, with the numbers that are worth trying.
pub fn able(coll: Coll, call: &CallView) -> impl Iterator<Item = (&'static Algorithm, u32)> {
    let able = ALL
        .iter()
        .filter(move |a| a.coll == coll && a.need.met(call));
    able.flat_map(|a| a.params.iter().map(move |&param| (a, param)))
}

impl Prices {
    /// Minimum time per byte of a call in shared memory by all ranks of a host, if the data exceeds
    /// the caches: all ranks of a socket share its memory bandwidth.
    fn least_byte(&self, algorithm: &Algorithm, call: &CallView) -> Option<f64> {
        let ranks = match call.levels {
            Some(levels) => f64::from(levels.shape().most),
            None => f64::from(call.size) / self.sockets.max(1.0),
        };
        let moved = match algorithm.at_once {
            true => algorithm.coll.buffers(call.bytes, call.size) as f64,
            false => 0.0,
        };
        (moved * ranks > self.cache).then_some(self.memory * ranks)
    }

    /// The prices with this minimum time per byte.
    fn wait_for_memory(&mut self, least: Option<f64>, net: bool) {
        let least = least.unwrap_or(0.0);
        if !net {
            self.combine = self.combine.max(least);
        }
        let bytes = [
            &mut self.copy,
            &mut self.write,
            &mut self.read,
            &mut self.send_byte,
            &mut self.recv_byte,
            &mut self.long_byte,
            &mut self.fetch_byte,
        ];
        for byte in bytes {
            *byte = byte.max(least);
        }
    }
}
