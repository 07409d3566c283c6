//! How much CPU this process may use: its affinity mask and the quota of its control groups.

use std::path::{Path, PathBuf};

use crate::control_group::{self, Limit};

/// Numbers of the CPUs this thread may run on, ascending.
pub fn allowed() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|c| set.is_set(*c))
            .collect(),
        // more CPUs than the mask of the call holds: believe the count
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// Whether the system tells which CPUs this thread may run on; a sandbox may refuse.
pub fn are_known() -> bool {
    rustix::thread::sched_getaffinity(None).is_ok()
}

/// The CPU this thread runs on at this moment.
pub fn current() -> usize {
    rustix::thread::sched_getcpu()
}

/// Queries the CPU's features now, so that later queries are fast: some ten instructions, each of
/// which exits from a virtual machine (4 us).
pub fn ask_abilities() {
    #[cfg(target_arch = "x86_64")]
    let _ = std::arch::is_x86_feature_detected!("avx2");
}

/// How long this thread could have run since its start while another had the CPU; zero if the
/// system does not tell.
pub fn waited() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|w| w.parse().ok());
    std::time::Duration::from_nanos(nanos.unwrap_or(0))
}

/// Runs this thread on that CPU alone, if it may use it.
pub fn stay_on(cpu: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    if cpu < CpuSet::MAX_CPU {
        let mut there = CpuSet::new();
        there.set(cpu);
        // If a sandbox refuses, it runs where the system likes.
        let _ = sched_setaffinity(None, &there);
    }
}

/// Moves this thread to a CPU that it may use; it stays as free to be moved again as it was.
/// Returns whether it did.
pub fn move_to(cpu: usize) -> bool {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(free) = sched_getaffinity(None) else {
        return false;
    };
    if cpu >= CpuSet::MAX_CPU || !free.is_set(cpu) {
        return false;
    }
    let mut there = CpuSet::new();
    there.set(cpu);
    let moved = sched_setaffinity(None, &there).is_ok();
    moved && sched_setaffinity(None, &free).is_ok()
}

/// Bytes of the largest cache that a core has for itself (its second level), if the system tells.
pub fn own_cache() -> Option<usize> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size = |dir: PathBuf| {
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
        let second = read("level")?.trim() == "2" && read("type")?.trim() != "Instruction";
        let kilobytes = read("size")?
            .trim()
            .strip_suffix('K')?
            .parse::<usize>()
            .ok()?;
        second.then_some(kilobytes << 10)
    };
    caches.flatten().find_map(|entry| size(entry.path()))
}

/// CPUs' worth of time that may be used at once: the mask, cut by the quotas of all enclosing
/// control groups (rounded up). At least 1.
pub fn usable() -> usize {
    let mask = allowed().len().max(1);
    match quota() {
        Some(q) => mask.min(q.amount.ceil().max(1.0) as usize),
        None => mask,
    }
}

/// The tightest limit on CPU time of the control groups this process is in, in CPUs' worth; `None`
/// without one.
pub fn quota() -> Option<Limit> {
    control_group::tightest("cpu", quota_v2, quota_v1)
}

fn quota_v2(dir: &Path) -> Option<f64> {
    parse_v2(&std::fs::read_to_string(dir.join("cpu.max")).ok()?)
}

fn quota_v1(dir: &Path) -> Option<f64> {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let quota: f64 = read("cpu.cfs_quota_us")?.trim().parse().ok()?;
    let period: f64 = read("cpu.cfs_period_us")?.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// `cpu.max` of a control group (version 2): `max 100000` or `150000 100000`.
fn parse_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotas_are_read() {
        assert_eq!(super::parse_v2("max 100000\n"), None);
        assert_eq!(super::parse_v2("150000 100000\n"), Some(1.5));
        assert!(super::usable() >= 1);
        assert!(super::usable() <= super::allowed().len());
    }
}
