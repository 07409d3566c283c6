//! Queues by key, all in one slab, found by hashing.
//!
//! Memory depends on the number of entries that wait at one time, not on the number of queues ever
//! used: a communicator without pending messages costs nothing here, whatever its size and history.
//! Entries of queues whose keys fall into the same bin are in one list; there are at least as many
//! bins as entries, so that a search seldom meets a foreign entry.

/// No entry.
const NONE: u32 = u32::MAX;
/// Bins at first.
const BINS: usize = 16;

/// Names a queue: a context and a source in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Of(u64);

impl Of {
    /// The queue of a source, or (`None`) the one of all sources.
    #[inline]
    pub(super) fn new(context: u32, source: Option<u32>) -> Of {
        // Larger than any rank.
        Of((context as u64) << 32 | source.unwrap_or(u32::MAX) as u64)
    }
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    of: Of,
    before: u32,
    after: u32,
    item: T,
}

#[derive(Clone, Copy, Debug)]
struct Bin {
    first: u32,
    last: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Queues<T> {
    bins: Box<[Bin]>,
    /// A key's bin is given by its hash's highest bits, above this one.
    shift: u32,
    nodes: Vec<Node<T>>,
    /// The first unused node; `after` leads to the next.
    free: u32,
    len: usize,
}

impl<T: Copy> Default for Queues<T> {
    fn default() -> Queues<T> {
        Queues {
            bins: empty(BINS),
            shift: u64::BITS - BINS.ilog2(),
            nodes: Vec::new(),
            free: NONE,
            len: 0,
        }
    }
}

fn empty(bins: usize) -> Box<[Bin]> {
    let bin = Bin {
        first: NONE,
        last: NONE,
    };
    vec![bin; bins].into()
}

impl<T: Copy> Queues<T> {
    /// Entries of all queues.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn bin(&self, of: Of) -> usize {
        // Fibonacci hashing. The library chooses the ids, so no program can aim at one bin.
        (of.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// Adds an entry at the end of a queue. Its number names it until it is removed.
    #[inline]
    pub(super) fn push(&mut self, of: Of, item: T) -> u32 {
        if self.len == self.bins.len() {
            self.grow();
        }
        let node = Node {
            of,
            before: NONE,
            after: NONE,
            item,
        };
        let at = self.free;
        let at = if let Some(unused) = self.nodes.get_mut(at as usize) {
            self.free = unused.after;
            *unused = node;
            at
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        self.len += 1;
        self.append(at);
        at
    }

    /// Puts a node at the end of its bin's list.
    #[inline]
    fn append(&mut self, at: u32) {
        let bin = self.bin(self.nodes[at as usize].of);
        let bin = &mut self.bins[bin];
        let before = std::mem::replace(&mut bin.last, at);
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = at,
            None => bin.first = at,
        }
        let node = &mut self.nodes[at as usize];
        (node.before, node.after) = (before, NONE);
    }

    #[cold]
    fn grow(&mut self) {
        let bins = 2 * self.bins.len();
        self.shift -= 1;
        let old = std::mem::replace(&mut self.bins, empty(bins));
        for bin in old {
            let mut at = bin.first;
            while at != NONE {
                let after = self.nodes[at as usize].after;
                self.append(at);
                at = after;
            }
        }
    }

    /// Takes an entry out of its queue.
    #[inline]
    pub(super) fn remove(&mut self, at: u32) -> T {
        let Node {
            of,
            before,
            after,
            item,
        } = self.nodes[at as usize];
        let bin = self.bin(of);
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = after,
            None => self.bins[bin].first = after,
        }
        match self.nodes.get_mut(after as usize) {
            Some(node) => node.before = before,
            None => self.bins[bin].last = before,
        }
        self.nodes[at as usize].after = std::mem::replace(&mut self.free, at);
        self.len -= 1;
        item
    }

    /// An entry's content.
    #[inline]
    pub(super) fn get(&mut self, at: u32) -> &mut T {
        &mut self.nodes[at as usize].item
    }

    /// The entries of a queue, in the order in which they were added.
    #[inline]
    pub(super) fn iter(&self, of: Of) -> impl Iterator<Item = (u32, &T)> {
        let mut at = self.bins[self.bin(of)].first;
        std::iter::from_fn(move || {
            while let Some(node) = self.nodes.get(at as usize) {
                let this = std::mem::replace(&mut at, node.after);
                if node.of == of {
                    return Some((this, &node.item));
                }
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(queues: &Queues<u32>, of: Of) -> Vec<u32> {
        queues.iter(of).map(|(_, &i)| i).collect()
    }

    /// More keys than bins at first, so that bins are shared, split, and shared again.
    #[test]
    fn queues_keep_their_order_and_their_own_entries_while_bins_split() {
        let mut queues = Queues::default();
        let keys: Vec<Of> = (0..40).map(|i| Of::new(i / 8 << 28, Some(i % 8))).collect();
        let mut places = Vec::new();
        for round in 0..5 {
            places.extend(keys.iter().map(|&of| queues.push(of, round)));
        }
        assert_eq!((queues.len(), queues.bins.len()), (200, 256));
        keys.iter()
            .for_each(|&of| assert_eq!(items(&queues, of), [0, 1, 2, 3, 4]));
        assert_eq!(items(&queues, Of::new(0, None)), []);
        // From the middle, the front and the end.
        for round in [2, 0, 4] {
            for k in 0..keys.len() {
                assert_eq!(queues.remove(places[round * keys.len() + k]), round as u32);
            }
        }
        keys.iter()
            .for_each(|&of| assert_eq!(items(&queues, of), [1, 3]));
    }

    /// A list for each rank that had ever sent made a used communicator of 64 ranks cost 13 KB.
    #[test]
    fn queues_that_nothing_waits_in_cost_nothing() {
        let mut queues = Queues::default();
        for context in 0..100 {
            for source in 0..1000 {
                let pair = [0, 1].map(|i| queues.push(Of::new(context << 20, Some(source)), i));
                for at in pair {
                    queues.remove(at);
                }
            }
        }
        assert_eq!(
            (queues.len(), queues.nodes.len(), queues.bins.len()),
            (0, 2, BINS)
        );
    }
}
