//! Waits of calls that look for a message without receiving it (MPI_Probe, MPI_Mprobe): for a late
//! sender, as in a receive.

use std::collections::HashMap;

use super::{Class, Wait, until};
use crate::functions::is_probe;
use crate::model::{Name, Trace};

/// Sort key: receiver, sender, tag, communicator.
type Kind = (u32, u32, i32, Name);

/// Messages of each kind, in the order in which they were sent, which is that of their receives.
struct Queues(HashMap<Kind, Vec<u32>>);

impl Queues {
    fn of(trace: &Trace) -> Queues {
        let mut all: HashMap<Kind, Vec<u32>> = HashMap::new();
        for (i, m) in trace.messages.iter().enumerate() {
            let kind = (m.to, m.from, m.tag, m.comm);
            all.entry(kind).or_default().push(i as u32);
        }
        Queues(all)
    }

    /// The message that a call found: the first of its kind that was not received before the call
    /// ended.
    fn found(&self, trace: &Trace, call: u32) -> Option<u32> {
        let args = &trace.calls[call as usize].args;
        let source = u32::try_from(args.source?).ok()?;
        let from = trace
            .ranks
            .binary_search_by_key(&source, |r| r.number)
            .ok()?;
        let kind = (trace.rank_of(call), from as u32, args.tag?, args.comm);
        let queue = self.0.get(&kind)?;
        let end = trace.calls[call as usize].end;
        let first = queue.partition_point(|m| trace.messages[*m as usize].received < end);
        queue.get(first).copied()
    }
}

/// All of them.
pub(super) fn waits(trace: &Trace) -> Vec<Wait> {
    let looks = |c: &u32| is_probe(trace.function(*c));
    let calls: Vec<u32> = (0..trace.calls.len() as u32).filter(looks).collect();
    if calls.is_empty() {
        return Vec::new();
    }
    let queues = Queues::of(trace);
    let wait = |call: u32| {
        let message = queues.found(trace, call)?;
        let m = &trace.messages[message as usize];
        (m.from != m.to).then(|| Wait {
            message: Some(message),
            ..until(trace, Class::LateSender, call, m.sent, m.send)
        })
    };
    calls.into_iter().filter_map(wait).collect()
}
