//! Huge pages for the memory of ranks.
//!
//! Where the system gives huge pages to who asks (`madvise`, as many distributions have it), malloc of
//! the GNU C library asks for its heap and for long blocks when a process starts with a variable of
//! its own set. Some programs that go through much memory gain by it, others lose (docs/programs.md):
//! so the user says whether ranks start with it. A rank takes up to a huge page more.

use std::ffi::OsString;

use kw_base::knobs::{Id, Knobs};

use crate::ranks::Env;

/// What malloc reads.
const VARIABLE: &str = "GLIBC_TUNABLES";
/// What is said there.
const ASKED: &str = "glibc.malloc.hugetlb";
/// Bytes of a huge page, on x86-64 and with the usual pages of aarch64.
const HUGE_PAGE: u64 = 2 << 20;
/// The part of a host's memory that a huge page for each of its ranks may take.
const PART_LOST: u64 = 256;

/// Has so many ranks of this host ask for huge pages, if KW_HUGE_PAGES says so.
pub fn ask(env: &mut Env, ranks: usize) {
    let value = |env: &Env, name: &str| {
        let said = env.iter().rev().find(|(k, _)| k == name);
        said.map_or_else(|| std::env::var_os(name), |(_, v)| Some(v.clone()))
    };
    let knob = value(env, "KW_HUGE_PAGES").and_then(|v| v.into_string().ok());
    // What is not yes or no the ranks refuse.
    let knobs = Knobs::read(|name| knob.clone().filter(|_| name == "KW_HUGE_PAGES"));
    let wanted = knobs.is_ok_and(|k| k.flag(Id::HugePages));
    let policy = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if wanted && gain(&policy.unwrap_or_default(), ranks, kw_sys::mem::usable()) {
        let said = value(env, VARIABLE).and_then(|v| v.into_string().ok());
        if let Some(all) = added(said.as_deref().unwrap_or("")) {
            env.retain(|(k, _)| k != VARIABLE);
            env.push((VARIABLE.into(), OsString::from(all)));
        }
    }
}

/// Whether ranks get huge pages only if they ask, and there is memory enough.
fn gain(policy: &str, ranks: usize, memory: u64) -> bool {
    policy.contains("[madvise]") && ranks as u64 * HUGE_PAGE <= memory / PART_LOST
}

/// What the user says to the C library, and this; `None` where the user has said it.
fn added(said: &str) -> Option<String> {
    match said {
        "" => Some(format!("{ASKED}=1")),
        said if said.contains(ASKED) => None,
        said => Some(format!("{said}:{ASKED}=1")),
    }
}

#[cfg(test)]
mod tests {
    use super::{added, gain};

    #[test]
    fn ranks_ask_where_it_gains_something() {
        let gib = 1u64 << 30;
        assert!(gain("always [madvise] never\n", 16, 16 * gib));
        assert!(!gain("always [madvise] never\n", 64, 16 * gib), "memory");
        assert!(!gain("[always] madvise never\n", 2, 16 * gib));
        assert!(!gain("always madvise [never]\n", 2, 16 * gib));
        assert!(!gain("", 2, 16 * gib), "the system has none");
    }

    #[test]
    fn what_the_user_says_holds() {
        let own = "glibc.malloc.arena_max=1";
        assert_eq!(added("").unwrap(), "glibc.malloc.hugetlb=1");
        assert_eq!(added(own).unwrap(), format!("{own}:glibc.malloc.hugetlb=1"));
        assert_eq!(added("glibc.malloc.hugetlb=0"), None);
    }
}
