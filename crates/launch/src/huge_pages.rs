//! Huge pages for the memory of ranks.
//!
//! Huge pages make some programs that use much memory faster and others slower (docs/programs.md),
//! so the user decides whether ranks start with them. They cost a rank up to one huge page more.

use std::ffi::OsString;

use kw_base::settings::{Id, Settings};
use kw_sys::huge_pages::{ASKED, Policy, VARIABLE, size};

use crate::ranks::Env;

/// The part of a host's memory that a huge page for each of its ranks may take.
const PART_LOST: u64 = 256;

/// Makes this many ranks of this host request huge pages, if KW_HUGE_PAGES says so.
pub fn ask(env: &mut Env, ranks: usize) {
    let value = |env: &Env, name: &str| {
        let current = env.iter().rev().find(|(k, _)| k == name);
        current.map_or_else(|| std::env::var_os(name), |(_, v)| Some(v.clone()))
    };
    let setting = value(env, "KW_HUGE_PAGES").and_then(|v| v.into_string().ok());
    // The ranks reject an invalid value.
    let settings = Settings::read(|name| setting.clone().filter(|_| name == "KW_HUGE_PAGES"));
    let wanted = settings.is_ok_and(|k| k.flag(Id::HugePages));
    if !wanted || Policy::here() != Policy::Madvise || !size().is_some_and(|s| has_room(s, ranks)) {
        return;
    }
    let current = value(env, VARIABLE).and_then(|v| v.into_string().ok());
    if let Some(all) = added(current.as_deref().unwrap_or("")) {
        env.retain(|(k, _)| k != VARIABLE);
        env.push((VARIABLE.into(), OsString::from(all)));
    }
}

/// Whether there is memory for a huge page of this many bytes for each of this many ranks.
fn has_room(page: u64, ranks: usize) -> bool {
    is_little(page.saturating_mul(ranks as u64), kw_sys::mem::usable())
}

/// Whether this many bytes are a small part of a host's memory.
fn is_little(bytes: u64, memory: u64) -> bool {
    bytes <= memory / PART_LOST
}

/// The user's setting for the C library with this added; `None` if the user has already set this.
fn added(current: &str) -> Option<String> {
    match current {
        "" => Some(format!("{ASKED}=1")),
        current if current.contains(ASKED) => None,
        current => Some(format!("{current}:{ASKED}=1")),
    }
}

#[cfg(test)]
mod tests {
    use super::{added, has_room, is_little};

    #[test]
    fn a_huge_page_for_each_rank_is_little_of_the_memory() {
        let gib = 1u64 << 30;
        assert!(is_little(16 * (2 << 20), 16 * gib));
        assert!(!is_little(64 * (2 << 20), 16 * gib));
        assert!(has_room(2 << 20, 0));
        assert!(!has_room(2 << 20, usize::MAX));
    }

    #[test]
    fn what_the_user_says_holds() {
        let own = "glibc.malloc.arena_max=1";
        assert_eq!(added("").unwrap(), "glibc.malloc.hugetlb=1");
        assert_eq!(added(own).unwrap(), format!("{own}:glibc.malloc.hugetlb=1"));
        assert_eq!(added("glibc.malloc.hugetlb=0"), None);
    }
}
