//! Contents of a program file: the libraries that it was linked with and where it looks for them,
//! the functions that it wants of them, whether it contains an MPI library, and where its addresses
//! begin.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_AARCH64, EM_PPC64, EM_RISCV, EM_X86_64, FileHeader64,
    Machine, PT_LOAD, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionTable, Sym};
use object::{Endianness, ReadCache};

type Data = ReadCache<File>;
type Header = FileHeader64<Endianness>;

/// How a program was linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linked {
    /// Names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Directories that are searched before those of LD_LIBRARY_PATH.
    pub first: Vec<PathBuf>,
    /// Whether it defines MPI's functions under the names for tools: it contains a whole MPI
    /// library.
    pub has_mpi: bool,
}

/// How a program was linked; `None` if that cannot be seen, for example for a script.
pub fn linked(program: &Path) -> Option<Linked> {
    let data = &ReadCache::new(File::open(program).ok()?);
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let table = sections.dynamic_table(endian, data).ok()?;
    let of = |tag| {
        let rows = table.iter().filter(move |d| d.tag == tag);
        rows.filter_map(|d| table.string(d).ok())
            .map(<[u8]>::to_vec)
    };
    let needed = of(DT_NEEDED).map(|name| String::from_utf8_lossy(&name).into_owned());
    let has_runpath = table.iter().any(|d| d.tag == DT_RUNPATH);
    let first = match has_runpath {
        true => Vec::new(),
        false => of(DT_RPATH)
            .flat_map(|path| directories(&path, program))
            .collect(),
    };
    Some(Linked {
        needed: needed.collect(),
        first,
        has_mpi: has_mpi(&sections, endian, data),
    })
}

/// The architecture of a program that this machine cannot execute. (The C library would run it as a
/// shell script.)
pub fn foreign(program: &Path) -> Option<&'static str> {
    let own = std::env::consts::ARCH;
    // An emulator that the system starts for such programs (binfmt_misc).
    let helped = || std::fs::read_dir("/proc/sys/fs/binfmt_misc").is_ok_and(|all| all.count() > 2);
    built_for(program).filter(|its| *its != own && !helped())
}

/// Whether it is a program for this machine's architecture.
pub fn is_native(program: &Path) -> bool {
    built_for(program) == Some(std::env::consts::ARCH)
}

fn built_for(program: &Path) -> Option<&'static str> {
    let mut head = [0u8; 20];
    std::io::Read::read_exact(&mut File::open(program).ok()?, &mut head).ok()?;
    architecture(&head)
}

/// The architecture in the first bytes of a 64-bit program, if it is one of these.
fn architecture(head: &[u8; 20]) -> Option<&'static str> {
    const LITTLE_64: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
    let machine = u16::from_le_bytes([head[18], head[19]]);
    match Machine(machine) {
        _ if head[..6] != LITTLE_64 => None,
        EM_X86_64 => Some("x86_64"),
        EM_AARCH64 => Some("aarch64"),
        EM_RISCV => Some("riscv64"),
        EM_PPC64 => Some("powerpc64"),
        _ => None,
    }
}

/// The directories of a search path; `$ORIGIN` is the directory of the program.
fn directories(path: &[u8], program: &Path) -> Vec<PathBuf> {
    let program = program.canonicalize().unwrap_or_else(|_| program.into());
    let origin = program.parent().unwrap_or(Path::new("/"));
    let words = path.split(|b| *b == b':').filter(|word| !word.is_empty());
    let directory = |word: &[u8]| {
        let starts = [&b"$ORIGIN"[..], &b"${ORIGIN}"[..]];
        match starts.iter().find_map(|start| word.strip_prefix(*start)) {
            Some(rest) => {
                let mut whole = origin.as_os_str().to_os_string();
                whole.push(OsString::from_vec(rest.to_vec()));
                whole.into()
            }
            None => PathBuf::from(OsString::from_vec(word.to_vec())),
        }
    };
    words.map(directory).collect()
}

fn has_mpi<'a>(
    sections: &SectionTable<'a, Header, &'a Data>,
    endian: Endianness,
    data: &'a Data,
) -> bool {
    let Ok(symbols) = sections.symbols(endian, data, SHT_SYMTAB) else {
        return false;
    };
    let defined = symbols.iter().filter(|s| s.st_shndx(endian) != SHN_UNDEF);
    let mut names = defined.filter_map(|s| s.name(endian, symbols.strings()).ok());
    names.any(|name| name == b"PMPI_Init")
}

/// Dynamic symbols of a file: those that it needs, or those that it defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// Symbols that other files must define.
    Wanted,
    /// Symbols that other files find here.
    Had,
}

/// The symbols of one kind that `choose` accepts, of a program or library; none if it cannot be
/// read.
pub fn symbols(file: &Path, kind: Symbols, choose: impl Fn(&str) -> bool) -> Vec<String> {
    let read = || {
        let data = &ReadCache::new(File::open(file).ok()?);
        let header = Header::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let symbols = sections.symbols(endian, data, SHT_DYNSYM).ok()?;
        let of_kind =
            |s: &&_| (Sym::st_shndx(*s, endian) == SHN_UNDEF) == (kind == Symbols::Wanted);
        let names = symbols.iter().filter(of_kind);
        let names = names.filter_map(|s| s.name(endian, symbols.strings()).ok());
        let names = names.filter_map(|name| std::str::from_utf8(name).ok());
        Some(names.filter(|n| choose(n)).map(String::from).collect())
    };
    read().unwrap_or_default()
}

/// The address in a file's symbols that its first mapping corresponds to.
pub fn base(file: &Path) -> Option<u64> {
    let data = &ReadCache::new(File::open(file).ok()?);
    let header = Header::parse(data).ok()?;
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
    fn the_first_bytes_of_a_program_say_its_architecture() {
        let mut head = [0u8; 20];
        assert_eq!(architecture(&head), None);
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18] = 183;
        assert_eq!(architecture(&head), Some("aarch64"));
        head[18] = 62;
        assert_eq!(architecture(&head), Some("x86_64"));
        head[4] = 1; // 32-bit
        assert_eq!(architecture(&head), None);
    }

    #[test]
    fn this_program_is_for_this_machine() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(foreign(&own), None);
        let head = std::fs::read(own).unwrap()[..20].try_into().unwrap();
        assert_eq!(architecture(&head), Some(std::env::consts::ARCH));
    }

    #[test]
    fn a_program_says_what_it_needs() {
        let me = std::env::current_exe().unwrap();
        let linked = linked(&me).unwrap();
        assert!(
            linked.needed.iter().any(|n| n.starts_with("libc.so")),
            "{linked:?}"
        );
        assert!(!linked.has_mpi);
        assert_eq!(
            base(&me),
            Some(0),
            "programs of today can be loaded anywhere"
        );
        assert_eq!(base(Path::new("/dev/null")), None);
        assert_eq!(super::linked(Path::new("/dev/null")), None);
    }

    #[test]
    fn a_program_says_which_functions_it_wants() {
        let me = std::env::current_exe().unwrap();
        let main = |kind| symbols(&me, kind, |name| name == "__libc_start_main");
        assert_eq!(main(Symbols::Wanted), ["__libc_start_main"]);
        assert!(main(Symbols::Had).is_empty());
        assert!(symbols(Path::new("/dev/null"), Symbols::Had, |_| true).is_empty());
    }

    #[test]
    fn search_paths_begin_where_the_program_is() {
        let found = directories(
            b"$ORIGIN/../lib::/opt/mpi/lib",
            Path::new("/no/such/program"),
        );
        assert_eq!(
            found,
            ["/no/such/../lib", "/opt/mpi/lib"].map(PathBuf::from)
        );
    }
}
