//! The jobs that ranks of this job have spawned.

use super::Common;
use crate::ask::{QUESTION, Question};
use kw_sys::signals;
use std::collections::HashMap;

/// The jobs that ranks on this host have spawned: the process id of each mpiexec, and the rank.
fn children(common: &Common) -> Vec<(u32, u32)> {
    let ranks = common.plan.here().into_iter().map(|r| r as u32);
    let pid = |rank| Some((common.hosts.here.pid(rank)?, rank));
    let pids: HashMap<u32, u32> = ranks.filter_map(pid).collect();
    let starters: Vec<u32> = pids.keys().copied().collect();
    let launchers = kw_sys::neighbours::launchers_of(&starters).into_iter();
    launchers.map(|(pid, by)| (pid, pids[&by])).collect()
}

/// Passes a question to this job on to the jobs that its ranks have spawned.
pub(super) fn ask(common: &Common) {
    for (pid, _) in children(common) {
        // One that has ended meanwhile gives no answer.
        let _ = signals::send(pid as i32, QUESTION, Question::Ranks as i32);
    }
}

/// A line for each of the jobs that ranks have spawned.
pub(super) fn list(common: &Common) -> String {
    let line = |(pid, rank)| {
        format!("  rank {rank} has spawned the job of mpiexec with process id {pid}\n")
    };
    children(common).into_iter().map(line).collect()
}
