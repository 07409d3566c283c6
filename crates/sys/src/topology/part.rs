//! Parts of a machine that several cores share: packages, NUMA nodes, caches, as the kernel's files
//! tell them.

use std::path::PathBuf;

/// A kind of part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachinePart {
    /// A processor package.
    Socket,
    /// A NUMA node.
    Numa,
    /// The cores that share a cache of the third level.
    L3,
    /// The cores that share a cache of the second level.
    L2,
}

impl MachinePart {
    /// All of them.
    pub const ALL: [MachinePart; 4] = [
        MachinePart::Socket,
        MachinePart::Numa,
        MachinePart::L3,
        MachinePart::L2,
    ];

    /// Its usual name.
    pub fn word(self) -> &'static str {
        match self {
            MachinePart::Socket => "socket",
            MachinePart::Numa => "numa",
            MachinePart::L3 => "l3cache",
            MachinePart::L2 => "l2cache",
        }
    }

    /// A text that is the same for all CPUs of the same part, and differs between parts. If the
    /// kernel does not tell, the whole machine is one part.
    pub fn of(self, cpu: usize) -> String {
        let folder = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}"));
        let read = |what: &str| std::fs::read_to_string(folder.join(what)).ok();
        let cache = |level: &str| {
            let index = |i: u32| Some(format!("cache/index{i}/")).filter(|i| is(&read, i, level));
            read(&format!("{}shared_cpu_list", (0..8).find_map(index)?))
        };
        let found = match self {
            MachinePart::Socket => read("topology/physical_package_id"),
            MachinePart::Numa => node(&folder),
            MachinePart::L3 => cache("3"),
            MachinePart::L2 => cache("2"),
        };
        found.unwrap_or_default()
    }
}

/// Whether this cache holds data and is of this level.
fn is(read: &impl Fn(&str) -> Option<String>, index: &str, level: &str) -> bool {
    let says = |what: &str| read(&format!("{index}{what}")).unwrap_or_default();
    says("level").trim() == level && says("type").trim() != "Instruction"
}

/// The name of the entry `node0`, `node1`, ... in the folder of a CPU.
fn node(folder: &std::path::Path) -> Option<String> {
    let names = std::fs::read_dir(folder).ok()?.flatten();
    let mut names = names.map(|e| e.file_name().to_string_lossy().into_owned());
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    names.find(|name| name.strip_prefix("node").is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_a_core_are_in_the_same_parts() {
        for core in super::super::cores() {
            for part in MachinePart::ALL {
                let all: Vec<String> = core.iter().map(|cpu| part.of(*cpu)).collect();
                assert!(all.iter().all(|d| *d == all[0]), "{part:?}: {all:?}");
            }
        }
    }
}
