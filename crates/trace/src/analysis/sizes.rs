//! Lengths of messages: a histogram by powers of two.

use crate::model::Trace;

/// Messages of at least `from` and less than twice as many bytes; the first bin is that of empty
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// The shortest length in this bin.
    pub from: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// The bin of a length.
fn place(bytes: u64) -> usize {
    (64 - bytes.leading_zeros()) as usize
}

/// The bins from the shortest to the longest message, also empty ones between.
pub fn sizes(trace: &Trace) -> Vec<Bin> {
    let from = |i: usize| if i == 0 { 0 } else { 1u64 << (i - 1) };
    let mut bins: Vec<Bin> = (0..65)
        .map(|i| Bin {
            from: from(i),
            messages: 0,
            bytes: 0,
        })
        .collect();
    for m in &trace.messages {
        let bin = &mut bins[place(m.bytes)];
        bin.messages += 1;
        bin.bytes = bin.bytes.saturating_add(m.bytes);
    }
    let used = |b: &Bin| b.messages > 0;
    let Some(first) = bins.iter().position(used) else {
        return Vec::new();
    };
    let last = bins.iter().rposition(used).unwrap_or(first);
    bins[first..=last].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{Made, Maker};

    #[test]
    fn lengths_fall_into_powers_of_two() {
        let mut maker = Maker::new(2);
        for (i, bytes) in [0, 1, 2, 3, 4, 1 << 40].into_iter().enumerate() {
            let i = i as u64;
            maker.call(
                0,
                Made::new("MPI_Send", i * 10, i * 10 + 1, "").sends(i + 1, 1, 0, bytes),
            );
            let receive = Made::new("MPI_Recv", i * 10 + 2, i * 10 + 3, "");
            maker.call(1, receive.receives(i + 1, 0, 0, bytes, 0));
        }
        let bins = sizes(&maker.trace());
        let seen: Vec<_> = bins
            .iter()
            .filter(|b| b.messages > 0)
            .map(|b| (b.from, b.messages))
            .collect();
        assert_eq!(seen, [(0, 1), (1, 1), (2, 2), (4, 1), (1 << 40, 1)]);
        assert_eq!(bins.len(), 42);
    }
}
