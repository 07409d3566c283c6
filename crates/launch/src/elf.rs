//! What the file of a program says: which MPI library it was linked with, and where its addresses
//! begin.

use std::fs::File;
use std::path::Path;

use object::elf::{DT_NEEDED, FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};

/// Our own library's name, and that of every library with the standard ABI.
const OURS: &str = "libmpi_abi.so";

/// A library of another MPI that a program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherMpi {
    /// Its name.
    pub name: String,
    /// Whose it is, in words.
    pub whose: &'static str,
}

/// The MPI library, not ours, that a program is linked with. `None` too where that cannot be seen:
/// in a script, in a static program.
pub fn other_mpi(program: &Path) -> Option<OtherMpi> {
    let needed = needed(program)?;
    if needed.iter().any(|n| n.starts_with(OURS)) {
        return None;
    }
    needed.into_iter().find_map(|name| {
        let whose = whose(&name)?;
        Some(OtherMpi { name, whose })
    })
}

fn whose(name: &str) -> Option<&'static str> {
    let (stem, version) = name.split_once(".so").unwrap_or((name, ""));
    match (stem, version) {
        ("libmpi", ".40") | ("libopen-rte" | "libopen-pal", _) => Some("of Open MPI"),
        ("libmpi", ".12") => Some("of MPICH or Intel MPI"),
        ("libmpich", _) => Some("of MPICH"),
        _ if stem.starts_with("libmpi") => Some("of another MPI"),
        _ => None,
    }
}

fn needed(program: &Path) -> Option<Vec<String>> {
    let data = &ReadCache::new(File::open(program).ok()?);
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let table = sections.dynamic_table(endian, data).ok()?;
    let names = table.iter().filter(|d| d.tag == DT_NEEDED);
    Some(
        names
            .filter_map(|d| table.string(d).ok())
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect(),
    )
}

/// The address that the first mapping of a file stands for in its symbols.
pub fn base(file: &Path) -> Option<u64> {
    let data = &ReadCache::new(File::open(file).ok()?);
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let loaded = segments.iter().filter(|s| s.p_type(endian) == PT_LOAD);
    let first = loaded.map(|s| s.p_vaddr(endian)).min()?;
    Some(first & !0xfff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_names() {
        assert_eq!(whose("libmpi.so.40"), Some("of Open MPI"));
        assert_eq!(whose("libmpi.so.12"), Some("of MPICH or Intel MPI"));
        assert_eq!(whose("libmpi_mpifh.so.80"), Some("of another MPI"));
        assert_eq!(whose("libmpfr.so.6"), None);
    }

    #[test]
    fn a_program_says_what_it_needs() {
        let me = std::env::current_exe().unwrap();
        let needed = needed(&me).unwrap();
        assert!(
            needed.iter().any(|n| n.starts_with("libc.so")),
            "{needed:?}"
        );
        assert_eq!(other_mpi(&me), None);
        assert_eq!(
            base(&me),
            Some(0),
            "programs of today can be loaded anywhere"
        );
        assert_eq!(base(Path::new("/dev/null")), None);
    }
}
