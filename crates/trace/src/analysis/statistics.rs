//! Calls by rank and function: number, duration, bytes.

use std::collections::BTreeMap;

use crate::model::{Name, Trace};

/// The calls of one function by one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Index in `Trace::ranks`.
    pub rank: u32,
    /// The function.
    pub function: Name,
    /// Number of calls.
    pub count: u64,
    /// Nanoseconds in them, nested calls included.
    pub time: u64,
    /// Bytes in their arguments.
    pub bytes: u64,
    /// The longest, in nanoseconds.
    pub longest: u64,
    /// Fraction of the rank's time, from 0 to 1.
    pub share: f64,
}

/// Statistics of every rank and function, by rank and descending time.
pub fn statistics(trace: &Trace) -> Vec<Row> {
    let mut rows: BTreeMap<(u32, Name), Row> = BTreeMap::new();
    for call in &trace.calls {
        let rank = trace.threads[call.thread as usize].rank;
        let row = rows.entry((rank, call.function)).or_insert(Row {
            rank,
            function: call.function,
            count: 0,
            time: 0,
            bytes: 0,
            longest: 0,
            share: 0.0,
        });
        row.count += 1;
        row.time = row.time.saturating_add(call.time());
        row.bytes = row.bytes.saturating_add(call.args.bytes.unwrap_or(0));
        row.longest = row.longest.max(call.time());
    }
    let whole = trace.time().max(1) as f64;
    let mut rows: Vec<Row> = rows.into_values().collect();
    for row in &mut rows {
        row.share = row.time as f64 / whole;
    }
    rows.sort_by_key(|r| (r.rank, std::cmp::Reverse(r.time)));
    rows
}

#[cfg(test)]
mod tests {
    use crate::example::{Made, Maker};

    #[test]
    fn calls_are_counted_by_rank_and_function() {
        let mut maker = Maker::new(2);
        maker.call(0, Made::new("MPI_Send", 0, 10, "a.c:1").sends(1, 1, 0, 100));
        maker.call(
            0,
            Made::new("MPI_Send", 20, 50, "a.c:1").sends(2, 1, 0, 200),
        );
        maker.call(1, Made::new("MPI_Barrier", 0, 100, "a.c:2"));
        let trace = maker.trace();
        let rows = super::statistics(&trace);
        assert_eq!(rows.len(), 2);
        let send = &rows[0];
        assert_eq!(
            (send.count, send.time, send.bytes, send.longest),
            (2, 40, 300, 30)
        );
        assert_eq!(send.share, 0.4);
        assert_eq!(trace.names.text(rows[1].function), "MPI_Barrier");
    }
}
