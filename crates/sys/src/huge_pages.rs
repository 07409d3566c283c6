//! Huge pages for malloc.
//!
//! If the system gives huge pages on request (`madvise`, as in many distributions), malloc of the
//! GNU C library requests them for its heap and for long blocks when a process starts with a
//! certain variable set. The parent of a process can set it; the process itself is too late.

/// Variable that malloc reads as a process starts.
pub const VARIABLE: &str = "GLIBC_TUNABLES";
/// Its value.
pub const ASKED: &str = "glibc.malloc.hugetlb";
/// The kernel's policy for huge pages, and the bytes of one.
const SYSTEM: &str = "/sys/kernel/mm/transparent_hugepage";

/// Policy for huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Never, or unsupported by the system.
    Never,
    /// On request.
    Madvise,
    /// Always.
    Always,
}

impl Policy {
    /// Policy of this system.
    pub fn here() -> Policy {
        Policy::read(&system("enabled"))
    }

    fn read(text: &str) -> Policy {
        match text {
            text if text.contains("[madvise]") => Policy::Madvise,
            text if text.contains("[always]") => Policy::Always,
            _ => Policy::Never,
        }
    }
}

/// Bytes of a huge page; `None` if the system has none.
pub fn size() -> Option<u64> {
    system("hpage_pmd_size").trim().parse().ok()
}

/// Contents of one of the system's files; empty if there is none.
fn system(name: &str) -> String {
    std::fs::read_to_string(format!("{SYSTEM}/{name}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[test]
    fn the_word_in_brackets_is_the_policy() {
        assert_eq!(Policy::read("always [madvise] never\n"), Policy::Madvise);
        assert_eq!(Policy::read("[always] madvise never\n"), Policy::Always);
        assert_eq!(Policy::read("always madvise [never]\n"), Policy::Never);
        assert_eq!(Policy::read(""), Policy::Never);
    }
}
