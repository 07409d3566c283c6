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
/// Where the system says who gets huge pages, and how many bytes one has.
const SYSTEM: &str = "/sys/kernel/mm/transparent_hugepage";
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
    if !wanted || !gain(&system("enabled"), &system("hpage_pmd_size"), ranks) {
        return;
    }
    let said = value(env, VARIABLE).and_then(|v| v.into_string().ok());
    if let Some(all) = added(said.as_deref().unwrap_or("")) {
        env.retain(|(k, _)| k != VARIABLE);
        env.push((VARIABLE.into(), OsString::from(all)));
    }
}

/// What the system says in one of its files; nothing where there is none.
fn system(name: &str) -> String {
    std::fs::read_to_string(format!("{SYSTEM}/{name}")).unwrap_or_default()
}

/// Whether ranks get huge pages only if they ask, and there is memory enough.
fn gain(policy: &str, page: &str, ranks: usize) -> bool {
    let fits = |page: u64| is_little(page.saturating_mul(ranks as u64), kw_sys::mem::usable());
    policy.contains("[madvise]") && page.trim().parse().is_ok_and(fits)
}

/// Whether so many bytes are little of a host's memory.
fn is_little(bytes: u64, memory: u64) -> bool {
    bytes <= memory / PART_LOST
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
    use super::{added, gain, is_little};

    #[test]
    fn ranks_ask_where_it_gains_something() {
        let (page, gib) = ("2097152\n", 1u64 << 30);
        assert!(gain("always [madvise] never\n", page, 0));
        assert!(is_little(16 * (2 << 20), 16 * gib));
        assert!(!is_little(64 * (2 << 20), 16 * gib), "memory");
        assert!(
            !gain("always [madvise] never\n", page, usize::MAX),
            "memory"
        );
        assert!(!gain("[always] madvise never\n", page, 2));
        assert!(!gain("always madvise [never]\n", page, 2));
        assert!(!gain("", "", 2), "the system has none");
    }

    #[test]
    fn what_the_user_says_holds() {
        let own = "glibc.malloc.arena_max=1";
        assert_eq!(added("").unwrap(), "glibc.malloc.hugetlb=1");
        assert_eq!(added(own).unwrap(), format!("{own}:glibc.malloc.hugetlb=1"));
        assert_eq!(added("glibc.malloc.hugetlb=0"), None);
    }
}
