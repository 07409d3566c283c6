//! The holders of window locks that other ranks wait for.
//!
//! No rank needs to know everything: each holder of a lock reports it, and the rank that has the
//! memory reports the number of holders, and their ranks as far as it knows them. Here a wait for a
//! lock becomes a wait for its holders.

use crate::{Kind, Rank, RankState, Report, State, Wait};

/// A rank's knowledge of a lock of a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lock {
    /// Context of the window.
    pub context: u32,
    /// The rank in the window whose memory it protects.
    pub target: u32,
    /// Number of holders, if it is known.
    pub count: Option<u32>,
    /// The known holders: ranks of the job.
    pub holders: Vec<Rank>,
}

/// Replaces every wait for a lock by a wait for each rank that holds it. If a holder is not known,
/// a wait for no particular rank is added.
pub fn name_holders(states: &mut [RankState]) {
    let settled: Vec<Option<Vec<Wait>>> = states.iter().map(|t| settle(states, t)).collect();
    for (state, waits) in states.iter_mut().zip(settled) {
        if let (State::Waits(report), Some(waits)) = (&mut state.state, waits) {
            report.waits = waits;
        }
    }
}

fn settle(all: &[RankState], state: &RankState) -> Option<Vec<Wait>> {
    let report = state.report()?;
    if !report.waits.iter().any(|w| w.kind == Kind::Lock) {
        return None;
    }
    let waits = report.waits.iter().flat_map(|w| match w.kind {
        Kind::Lock => of_holders(all, report, w),
        _ => vec![*w],
    });
    Some(waits.collect())
}

fn of_holders(all: &[RankState], report: &Report, wait: &Wait) -> Vec<Wait> {
    let (holders, known) = holders(all, report, wait);
    let waits = holders.into_iter().map(|holder| Wait {
        peer: Some(holder),
        ..*wait
    });
    let mut waits: Vec<Wait> = waits.collect();
    if !known {
        waits.push(Wait {
            peer: None,
            ..*wait
        });
    }
    waits
}

/// The holders of a lock, and whether these are all.
fn holders(all: &[RankState], report: &Report, wait: &Wait) -> (Vec<Rank>, bool) {
    let members = report.comm(wait.context).map_or(&[][..], |c| &c.members);
    let (mut holders, mut count) = (Vec::new(), None);
    for (rank, state) in (0..).zip(all) {
        let Some(other) = state.report().filter(|_| members.contains(&rank)) else {
            continue;
        };
        let is = |l: &&Lock| l.context == wait.context && Some(l.target) == wait.source;
        for lock in other.locks.iter().filter(is) {
            holders.extend(&lock.holders);
            count = count.max(lock.count);
        }
    }
    holders.sort_unstable();
    holders.dedup();
    let known = count.is_some_and(|n| n > 0 && n as usize <= holders.len());
    (holders, known)
}
