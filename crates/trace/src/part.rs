//! A part of a trace as a trace of its own, so that each analysis of a run can also be made for one
//! of its phases.

use std::ops::Range;

use crate::model::{Collective, Message, Trace};

/// Selection of a part of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Part {
    /// From the first `MPI_Pcontrol(level)` of each rank to its next `MPI_Pcontrol`.
    Phase(i64),
    /// Between two times, in nanoseconds from the first call.
    Between(u64, u64),
}

/// Reason why there is no such part.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No rank has begun this phase.
    #[error("it has no phase {0}: {1}")]
    Phase(i64, String),
    /// No rank is in MPI then.
    #[error("this part of the run, which took {0}, contains no MPI call")]
    Empty(String),
}

/// This part of the trace. Calls that extend beyond it are cut off; messages and collectives that
/// are partly outside are left out, so no rank appears to wait for something invisible.
pub fn part(trace: Trace, part: Part) -> Result<Trace, Fault> {
    let range = match part {
        Part::Phase(level) => phase(&trace, level)?,
        Part::Between(from, to) => {
            let at = |ns: u64| trace.span.start.saturating_add(ns).min(trace.span.end);
            at(from)..at(to).max(at(from))
        }
    };
    let whole = trace.time();
    let cut = cut(trace, &range);
    if cut.calls.is_empty() {
        return Err(Fault::Empty(crate::words::time(whole)));
    }
    Ok(cut)
}

/// From the first rank that begins the phase to the last that ends it.
fn phase(trace: &Trace, level: i64) -> Result<Range<u64>, Fault> {
    let mut found: Option<Range<u64>> = None;
    for rank in 0..trace.ranks.len() as u32 {
        let mut own = phases(trace).filter(|p| p.0 == rank);
        let Some((_, begin, _)) = own.find(|p| p.2 == level) else {
            continue;
        };
        let end = own.next().map_or(trace.span.end, |p| p.1);
        let known = found.get_or_insert(begin..end);
        *known = known.start.min(begin)..known.end.max(end);
    }
    found.ok_or_else(|| Fault::Phase(level, levels(trace)))
}

/// (rank, time, level) of each phase that begins, by time.
fn phases(trace: &Trace) -> impl Iterator<Item = (u32, u64, i64)> {
    let user = |m: &&crate::model::Mark| trace.names.text(m.category) == "user";
    let marks = trace.marks.iter().filter(user);
    marks.filter_map(|m| Some((m.rank, m.time, m.args.level?)))
}

/// The levels of all phases.
fn levels(trace: &Trace) -> String {
    let mut all: Vec<i64> = phases(trace).map(|p| p.2).collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return "the program does not call MPI_Pcontrol".into();
    }
    let names: Vec<String> = all.iter().take(20).map(ToString::to_string).collect();
    format!("the program calls MPI_Pcontrol with {}", names.join(", "))
}

fn cut(mut trace: Trace, range: &Range<u64>) -> Trace {
    let kept = cut_calls(&mut trace, range);
    let new = |old: u32| kept[old as usize];
    let messages = std::mem::take(&mut trace.messages);
    let whole = |m: Message| {
        let (send, receive) = (new(m.send)?, new(m.receive)?);
        let inside = range.contains(&m.sent) && m.received <= range.end;
        inside.then_some(Message { send, receive, ..m })
    };
    trace.messages = messages.into_iter().filter_map(whole).collect();
    let collectives = std::mem::take(&mut trace.collectives);
    let whole = |c: Collective| {
        let members: Option<Vec<u32>> = c.members.into_iter().map(new).collect();
        members.map(|members| Collective { members })
    };
    trace.collectives = collectives.into_iter().filter_map(whole).collect();
    let others = std::mem::take(&mut trace.others);
    let at = |(call, args)| new(call).map(|c| (c, args));
    trace.others = others.into_iter().filter_map(at).collect();
    for counter in &mut trace.counters {
        counter.values.retain(|v| range.contains(&v.0));
    }
    trace.marks.retain(|m| range.contains(&m.time));
    for rank in &mut trace.ranks {
        rank.span = rank.span.start.clamp(range.start, range.end)
            ..rank.span.end.clamp(range.start, range.end);
    }
    trace.span = range.clone();
    trace
}

/// Keeps the calls of the part; returns the new index of each.
fn cut_calls(trace: &mut Trace, range: &Range<u64>) -> Vec<Option<u32>> {
    let mut kept = Vec::with_capacity(trace.calls.len());
    let mut count = 0;
    for call in &mut trace.calls {
        let inside = call.begin < range.end && call.end > range.start;
        kept.push(inside.then_some(count));
        count += u32::from(inside);
        call.begin = call.begin.clamp(range.start, range.end);
        call.end = call.end.clamp(range.start, range.end);
    }
    let mut places = kept.iter();
    trace
        .calls
        .retain(|_| places.next().copied().flatten().is_some());
    for (t, thread) in trace.threads.iter_mut().enumerate() {
        let calls = &trace.calls;
        let from = calls.partition_point(|c| (c.thread as usize) < t);
        let to = calls.partition_point(|c| c.thread as usize <= t);
        thread.calls = from..to;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::waits::{Class, waits};
    use crate::example::{Made, Maker};

    /// Two barriers, a message before the first one, and a phase from each barrier on.
    fn made() -> Trace {
        let mut maker = Maker::new(2);
        maker.call(0, Made::new("MPI_Send", 10, 20, "a.c:1").sends(1, 1, 0, 8));
        maker.call(
            1,
            Made::new("MPI_Recv", 0, 30, "a.c:2").receives(1, 0, 0, 8, 1),
        );
        for (coll, at) in [(0, 100), (1, 200)] {
            for rank in [0, 1] {
                maker.phase(rank, at + u64::from(rank), 1 + coll as i64);
                maker.call(
                    rank,
                    Made::new(
                        "MPI_Barrier",
                        at + 10 + 40 * u64::from(rank),
                        at + 60,
                        "a.c:3",
                    )
                    .collective(coll, 0),
                );
            }
        }
        maker.trace()
    }

    #[test]
    fn a_phase_lasts_to_the_next_one() {
        let one = part(made(), Part::Phase(1)).unwrap();
        assert_eq!(one.span, 100..201);
        assert_eq!((one.calls.len(), one.messages.len()), (2, 0));
        let found = waits(&one);
        assert_eq!(
            (found[0].class, found[0].time(), found[0].cause),
            (Class::Barrier, 40, 1)
        );
        let two = part(made(), Part::Phase(2)).unwrap();
        assert_eq!((two.span, two.calls.len()), (200..260, 2));
    }

    #[test]
    fn what_reaches_beyond_is_cut_off() {
        let some = part(made(), Part::Between(5, 15)).unwrap();
        let spans: Vec<_> = some.calls.iter().map(|c| (c.begin, c.end)).collect();
        assert_eq!(spans, [(10, 15), (5, 15)]);
        assert!(some.messages.is_empty() && waits(&some).is_empty());
        let half = part(made(), Part::Between(100, 120)).unwrap();
        assert!(half.collectives.is_empty() && half.calls.len() == 1);
    }

    #[test]
    fn a_part_that_is_none_is_a_sentence() {
        let none = part(made(), Part::Phase(7)).unwrap_err();
        assert_eq!(
            none.to_string(),
            "it has no phase 7: the program calls MPI_Pcontrol with 1, 2"
        );
        let empty = part(made(), Part::Between(40, 50)).unwrap_err();
        assert!(empty.to_string().contains("contains no MPI call"));
        assert!(part(made(), Part::Between(u64::MAX, 0)).is_err());
    }
}
