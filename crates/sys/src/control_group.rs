//! Limits of the control groups of this process (`man 7 cgroups`).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A limit of a control group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Names the group on this machine, whatever part of the tree a process sees: its inode.
    pub group: u64,
    /// Value of the limit.
    pub amount: f64,
}

fn tighter(a: Limit, b: Limit) -> Limit {
    if b.amount < a.amount { b } else { a }
}

/// The tightest limit that a controller sets, as `v2` and `v1` read it from the directory of a group of
/// either version; `None` without one.
pub fn tightest(
    controller: &str,
    v2: fn(&Path) -> Option<f64>,
    v1: fn(&Path) -> Option<f64>,
) -> Option<Limit> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let root = Path::new("/sys/fs/cgroup");
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        match controllers {
            "" => climb(root, path, v2),
            c if c.split(',').any(|c| c == controller) => climb(&root.join(controller), path, v1),
            _ => None,
        }
    });
    limits.reduce(tighter)
}

/// The smallest limit from the group itself up to the root. In a container the path may be the
/// host's: then only the mounted root exists, and it is our group.
fn climb(root: &Path, path: &str, read: fn(&Path) -> Option<f64>) -> Option<Limit> {
    let own = root.join(path.trim_start_matches('/'));
    let mut dirs: Vec<PathBuf> = own
        .ancestors()
        .take_while(|d| d.starts_with(root))
        .map(Path::to_path_buf)
        .collect();
    dirs.push(root.to_path_buf());
    let limit = |dir: &PathBuf| {
        Some(Limit {
            amount: read(dir)?,
            group: std::fs::metadata(dir).ok()?.ino(),
        })
    };
    dirs.iter().filter_map(limit).reduce(tighter)
}
