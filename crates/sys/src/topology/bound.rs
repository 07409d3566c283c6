//! The package and the last-level cache to which CPUs belong, from the kernel's own files: every
//! rank asks when it starts, and reading the machine's whole tree would take milliseconds.

use super::ranges;
use std::path::Path;

/// The package that has all of these CPUs, and the cache of the third level (or a further one) that
/// all of them share, each by the lowest number of its CPUs.
pub type Bound = (usize, Option<usize>);

/// Location of these CPUs; `None` if they are on several packages, or the kernel does not tell.
pub fn bound(allowed: &[usize]) -> Option<Bound> {
    bound_in(Path::new("/sys/devices/system/cpu"), allowed)
}

fn bound_in(cpus: &Path, allowed: &[usize]) -> Option<Bound> {
    let first = cpus.join(format!("cpu{}", allowed.first()?));
    let topology = first.join("topology");
    let package = ["package_cpus_list", "core_siblings_list"]
        .into_iter()
        .find_map(|name| all_in(&topology.join(name), allowed))?;
    Some((package, last_cache(&first.join("cache"), allowed)))
}

/// The lowest number in a list that contains all of these.
fn all_in(list: &Path, allowed: &[usize]) -> Option<usize> {
    let text = std::fs::read_to_string(list).ok()?;
    let numbers = ranges(text.trim());
    let all = allowed.iter().all(|cpu| numbers.contains(cpu));
    numbers.into_iter().min().filter(|_| all)
}

fn last_cache(caches: &Path, allowed: &[usize]) -> Option<usize> {
    let level = |dir: &Path| -> Option<u32> {
        let text = std::fs::read_to_string(dir.join("level")).ok()?;
        text.trim().parse().ok()
    };
    let dirs = (0..16).map(|i| caches.join(format!("index{i}")));
    let levels = dirs.map_while(|dir| Some((level(&dir)?, dir)));
    let (_, last) = levels
        .filter(|(level, _)| *level >= 3)
        .max_by_key(|l| l.0)?;
    all_in(&last.join("shared_cpu_list"), allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Files as the kernel has them: two packages of four CPUs, and two caches in each.
    fn machine(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("kw-bound-{}-{name}", std::process::id()));
        let write = |file: PathBuf, text: String| {
            std::fs::create_dir_all(file.parent().expect("in a directory")).expect("a directory");
            std::fs::write(file, text + "\n").expect("a file");
        };
        for cpu in 0..8 {
            let dir = root.join(format!("cpu{cpu}"));
            let (package, cache) = (cpu / 4 * 4, cpu / 2 * 2);
            let all = |from, n| format!("{from}-{}", from + n - 1);
            write(dir.join("topology/package_cpus_list"), all(package, 4));
            for (index, level) in [1, 1, 2, 3].into_iter().enumerate() {
                let dir = dir.join(format!("cache/index{index}"));
                write(dir.join("level"), level.to_string());
                let shared = if level == 3 {
                    all(cache, 2)
                } else {
                    cpu.to_string()
                };
                write(dir.join("shared_cpu_list"), shared);
            }
        }
        root
    }

    #[test]
    fn processors_are_of_one_package_and_one_cache_or_not() {
        let root = machine("kinds");
        let of = |cpus: &[usize]| bound_in(&root, cpus);
        assert_eq!(of(&[5]), Some((4, Some(4))));
        assert_eq!(of(&[2, 3]), Some((0, Some(2))));
        assert_eq!(of(&[1, 2]), Some((0, None)), "two caches");
        assert_eq!(of(&[3, 4]), None, "two packages");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[9]), None, "the kernel knows no such processor");
        std::fs::remove_dir_all(root).expect("made above");
    }
}
