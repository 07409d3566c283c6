//! Cache of earlier choices by price. A plan that is too long to be kept is laid out in every call;
//! its algorithm need not be priced again.

use super::cheapest;
use crate::algorithms::Algorithm;
use crate::table::Site;
use crate::{CallView, Coll, Levels, Shape, ShmSizes, cost::Prices};
use kw_base::sync::Mutex;

/// The chosen algorithm, if any fits.
type Choice = Option<(&'static Algorithm, u32)>;

/// Everything that a choice depends on besides the prices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    coll: Coll,
    amounts: [u64; 3],
    ranks: [u32; 2],
    is: [bool; 4],
    sites: (Site, Option<Site>),
    shm_region: Option<ShmSizes>,
    /// Nodes, ranks of the smallest and of the largest, and whether these are in order.
    nodes: Option<(u32, u32, u32, bool)>,
    levels: Option<Shape>,
}

impl Key {
    fn of(coll: Coll, call: &CallView, site: Site) -> Key {
        let nodes = call.nodes;
        Key {
            coll,
            amounts: [call.bytes, call.count, call.block_bytes],
            ranks: [call.size, call.sharing],
            is: [
                call.commutative,
                call.in_place,
                call.send.is_even(),
                call.recv.is_even(),
            ],
            sites: (site, call.chooser.map(|c| c.site)),
            shm_region: call.shm_region,
            nodes: nodes.map(|n| (n.count(), n.fewest(), n.most(), n.are_in_order())),
            levels: call.priced_levels().map(Levels::shape),
        }
    }

    /// Its place among that many.
    fn place(&self, of: usize) -> usize {
        let mixed = self.amounts[0] ^ self.amounts[0] >> 7 ^ u64::from(self.ranks[0]) << 2;
        (mixed as usize ^ (self.coll as usize) << 3) % of
    }
}

/// Number of remembered choices.
const KEPT: usize = 64;

/// The last choices by one set of prices.
#[derive(Debug, Default)]
pub(crate) struct Memo(Mutex<Vec<Option<(Key, Choice)>>>);

impl Clone for Memo {
    /// An empty memo: the other's prices may change.
    fn clone(&self) -> Memo {
        Memo::default()
    }
}

impl Memo {
    /// Like [`cheapest`].
    pub(crate) fn cheapest(&self, coll: Coll, call: &CallView, p: &Prices, site: Site) -> Choice {
        let key = Key::of(coll, call, site);
        let at = key.place(KEPT);
        if let Some(choice) = self.kept(at, &key) {
            return choice;
        }
        // The lock is not held meanwhile, because composed algorithms look up their parts here.
        let choice = cheapest(coll, call, p, site);
        if let Ok(mut kept) = self.0.lock() {
            kept.resize(KEPT, None);
            kept[at] = Some((key, choice));
        }
        choice
    }

    fn kept(&self, at: usize, key: &Key) -> Option<Choice> {
        let kept = self.0.lock().ok()?;
        let (same, choice) = kept.get(at)?.as_ref()?;
        (same == key).then_some(*choice)
    }
}
