//! The CPUs we may use, grouped by core, neighbours (same cache, same memory) together.
//!
//! hwloc knows the machine's tree best. It is opened at run time, so that a program built here runs
//! where hwloc is not installed; then the kernel's own files are read, which know cores and
//! packages but not caches.

use std::collections::BTreeMap;

mod bound;
mod hwloc;
mod part;

pub use bound::{Bound, bound};
pub use part::MachinePart;

/// Allowed CPUs by core, cores in the order of the machine's tree.
pub fn cores() -> Vec<Vec<usize>> {
    let allowed = crate::cpus::allowed();
    let tree = hwloc::threads().unwrap_or_else(|| by_kernel(&allowed));
    let cores = group(&tree, &allowed);
    match cores.is_empty() {
        true => allowed.into_iter().map(|c| vec![c]).collect(),
        false => cores,
    }
}

/// A hardware thread: its number in the kernel and the places of its core and its package in the
/// tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    cpu: usize,
    core: usize,
    package: usize,
}

/// All hardware threads of the machine, also those that this process may not use.
#[derive(Clone, Debug)]
pub struct Tree(Vec<Thread>);

impl Tree {
    /// Reads the tree (takes milliseconds).
    pub fn read() -> Tree {
        Tree(hwloc::threads().unwrap_or_else(|| by_kernel(&online())))
    }

    /// Package and core of a hardware thread, in the order of the tree.
    pub fn place(&self, cpu: usize) -> Option<(u32, u32)> {
        let found = self.0.iter().find(|t| t.cpu == cpu)?;
        Some((found.package as u32, found.core as u32))
    }

    /// Bytes that the last-level caches of a hardware thread's package hold, all of them together;
    /// `None` if the kernel does not tell.
    pub fn cache(&self, cpu: usize) -> Option<u64> {
        let package = self.0.iter().find(|t| t.cpu == cpu)?.package;
        let of_package = self.0.iter().filter(|t| t.package == package);
        let mut left: Vec<usize> = of_package.map(|t| t.cpu).collect();
        let mut bytes = 0;
        while let Some(&next) = left.first() {
            let (size, sharing) = last_cache(next)?;
            bytes += size;
            left.retain(|cpu| *cpu != next && !sharing.contains(cpu));
        }
        Some(bytes)
    }
}

/// Size in bytes of the last-level cache of a hardware thread, and the threads that share it;
/// `None` if the kernel does not report it.
pub fn last_cache(cpu: usize) -> Option<(u64, Vec<usize>)> {
    let read = |index: u32, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{what}");
        std::fs::read_to_string(path).ok()
    };
    let level = |index: u32| read(index, "level")?.trim().parse::<u32>().ok();
    let (last, _) = (0..8)
        .filter_map(|i| Some((i, level(i)?)))
        .max_by_key(|(_, l)| *l)?;
    Some((
        size(read(last, "size")?.trim())?,
        ranges(read(last, "shared_cpu_list")?.trim()),
    ))
}

/// `32768K` as bytes.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_shl(shift)
}

/// Numbers of the CPUs that are online.
fn online() -> Vec<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    ranges(text.trim())
}

/// Numbers in a list like `0-3,8`; other text is ignored.
fn ranges(text: &str) -> Vec<usize> {
    let one = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    text.split(',').filter_map(one).flatten().collect()
}

fn group(tree: &[Thread], allowed: &[usize]) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for t in tree.iter().filter(|t| allowed.contains(&t.cpu)) {
        cores.entry(t.core).or_default().push(t.cpu);
    }
    cores.into_values().collect()
}

fn by_kernel(allowed: &[usize]) -> Vec<Thread> {
    let place = |cpu: usize| {
        let read = |what: &str| -> Option<usize> {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        let package = read("physical_package_id").unwrap_or(0);
        (package, read("core_id").unwrap_or(cpu))
    };
    let mut places: Vec<_> = allowed.iter().map(|&c| (place(c), c)).collect();
    places.sort_unstable();
    let mut core = 0;
    let mut threads = Vec::new();
    for (i, (at, cpu)) in places.iter().enumerate() {
        core += usize::from(i > 0 && *at != places[i - 1].0);
        threads.push(Thread {
            cpu: *cpu,
            core,
            package: at.0,
        });
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_knows_every_processor() {
        assert_eq!(ranges("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(ranges(""), []);
        assert_eq!(size("32768K"), Some(32 << 20));
        assert_eq!((size("x"), size("12"), size("3Q")), (None, None, None));
        let tree = Tree::read();
        for cpu in crate::cpus::allowed() {
            assert!(tree.place(cpu).is_some(), "processor {cpu}");
        }
    }

    #[test]
    fn every_allowed_processor_is_in_one_core() {
        let allowed = crate::cpus::allowed();
        let mut all = cores().concat();
        all.sort_unstable();
        assert_eq!(all, allowed);
        let mut all = group(&by_kernel(&allowed), &allowed).concat();
        all.sort_unstable();
        assert_eq!(all, allowed);
    }
}
