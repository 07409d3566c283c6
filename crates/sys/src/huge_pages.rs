//! Huge pages for what malloc gives out.
//!
//! Where the system gives huge pages to who asks (`madvise`, as many distributions have it), malloc of
//! the GNU C library asks for its heap and for long blocks when a process starts with a variable of
//! its own set. Whoever starts a process can say so; the process itself comes too late.

/// What malloc reads as a process starts.
pub const VARIABLE: &str = "GLIBC_TUNABLES";
/// What is said there.
pub const ASKED: &str = "glibc.malloc.hugetlb";
/// Where the system says who gets huge pages, and how many bytes one has.
const SYSTEM: &str = "/sys/kernel/mm/transparent_hugepage";

/// Who gets huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Nobody, or the system does not know them.
    Nobody,
    /// Who asks.
    WhoAsks,
    /// Everybody.
    Everybody,
}

impl Policy {
    /// Of this system.
    pub fn here() -> Policy {
        Policy::read(&system("enabled"))
    }

    fn read(said: &str) -> Policy {
        match said {
            said if said.contains("[madvise]") => Policy::WhoAsks,
            said if said.contains("[always]") => Policy::Everybody,
            _ => Policy::Nobody,
        }
    }
}

/// Bytes of a huge page; `None` where the system has none.
pub fn size() -> Option<u64> {
    system("hpage_pmd_size").trim().parse().ok()
}

/// What the system says in one of its files; nothing where there is none.
fn system(name: &str) -> String {
    std::fs::read_to_string(format!("{SYSTEM}/{name}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[test]
    fn the_word_in_brackets_is_the_policy() {
        assert_eq!(Policy::read("always [madvise] never\n"), Policy::WhoAsks);
        assert_eq!(Policy::read("[always] madvise never\n"), Policy::Everybody);
        assert_eq!(Policy::read("always madvise [never]\n"), Policy::Nobody);
        assert_eq!(Policy::read(""), Policy::Nobody);
    }
}
