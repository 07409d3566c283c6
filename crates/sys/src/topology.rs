//! The processors we may use, grouped by core, neighbours (same cache, same memory) together.

use std::collections::BTreeMap;

/// Allowed processors by core, cores in the order of the machine's tree.
pub fn cores() -> Vec<Vec<usize>> {
    let allowed = crate::cpus::allowed();
    let mut cores: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for cpu in allowed {
        let read = |what: &str| -> Option<usize> {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        let package = read("physical_package_id").unwrap_or(0);
        let core = read("core_id").unwrap_or(cpu);
        cores.entry((package, core)).or_default().push(cpu);
    }
    cores.into_values().collect()
}
