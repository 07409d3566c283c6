//! Messages and bytes for each pair of sender and receiver.

use std::collections::BTreeMap;

use crate::model::Trace;

/// The messages of a pair in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Sender, in `Trace::ranks`.
    pub from: u32,
    /// Receiver, in `Trace::ranks`.
    pub to: u32,
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// All pairs that had a message, by sender and receiver.
pub fn matrix(trace: &Trace) -> Vec<Pair> {
    let mut pairs: BTreeMap<(u32, u32), Pair> = BTreeMap::new();
    for m in &trace.messages {
        let pair = pairs.entry((m.from, m.to)).or_insert(Pair {
            from: m.from,
            to: m.to,
            messages: 0,
            bytes: 0,
        });
        pair.messages += 1;
        pair.bytes = pair.bytes.saturating_add(m.bytes);
    }
    pairs.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, read};

    #[test]
    fn a_ring_has_a_pair_for_each_rank() {
        let trace = read::read(example::ring(4, 3).as_slice()).unwrap();
        let wanted = |from| Pair {
            from,
            to: (from + 1) % 4,
            messages: 3,
            bytes: 3 * 4096,
        };
        assert_eq!(matrix(&trace), [0, 1, 2, 3].map(wanted));
    }
}
