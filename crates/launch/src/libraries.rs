//! The library of this installation that a program runs on.
//!
//! A program of the standard ABI finds `libmpi_abi.so.1` by itself. A program of MPICH or Intel MPI
//! asks the dynamic linker for `libmpi.so.12` (in Fortran for `libmpifort.so.12`), one of Open MPI
//! for `libmpi.so.40` (in Fortran for `libmpi_mpifh.so.40` and others), so the directory with our
//! library goes to the front of its LD_LIBRARY_PATH. Some programs cannot be inspected, such as
//! Python, whose extensions may want either; they get both directories. A library that looks
//! elsewhere first (DT_RPATH, a path of its own) is led to ours by `libkw_audit.so` in LD_AUDIT. A
//! program that none of our libraries can serve is refused with a sentence.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::elf::{self, Linked, Symbols};
use crate::ranks::Env;
use crate::verdict::{CANNOT_EXECUTE, Verdict};

const STANDARD: &str = "libmpi_abi.so";
/// The version of glibc from which on function calls are not slower under an auditor, and malloc
/// can ask for huge pages.
pub const CHEAP_AUDIT: (u32, u32) = (2, 35);

const STATIC: &str = "has an MPI library inside, linked statically, in whose place no other can be put: link it with the \
                      shared one, or compile it with Kittiwake's mpicc";

/// An ABI that we have a library for: its directory below `lib`, the library, and the names of
/// libraries that belong to it.
struct Abi {
    dir: &'static str,
    file: &'static str,
    owns: fn(&str) -> bool,
}

const ABIS: [Abi; 2] = [
    Abi {
        dir: "mpich",
        file: "libmpi.so.12",
        // of C and of Fortran, each under its name and Debian's
        owns: |name| {
            [
                "libmpi.so.12",
                "libmpich.so.12",
                "libmpifort.so.12",
                "libmpichfort.so.12",
            ]
            .contains(&name)
        },
    },
    Abi {
        dir: "openmpi",
        file: "libmpi.so.40",
        owns: |name| {
            let starts = ["libmpi.", "libmpi_", "libopen-rte.", "libopen-pal."];
            name.ends_with(".so.40") && starts.iter().any(|start| name.starts_with(start))
        },
    },
];

/// Our libraries for the programs of another MPI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbiShim {
    /// The library.
    pub file: String,
    /// Its directory.
    pub dir: PathBuf,
}

/// Obstacles between a program and the MPI that it was linked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// The libraries whose directories it searches first.
    pub shims: Vec<AbiShim>,
    /// The auditor, which leads the dynamic linker to them whatever it would search before
    /// LD_LIBRARY_PATH.
    pub auditor: Option<PathBuf>,
}

/// First argument that makes this program act as the command which the next word names. All
/// commands are one program (`kw-commands`).
pub const AS: &str = "--as";

/// The words that start a second process of this program, as the command `name`.
pub fn own_words(name: &str) -> io::Result<[String; 3]> {
    let file = own_file()?.to_string_lossy().into_owned();
    Ok([file, AS.into(), name.into()])
}

/// The file of this program: as reported by the system, or by its first argument if /proc is not
/// mounted.
pub fn own_file() -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|why| called().ok_or(why))
}

/// The file that the first argument names.
fn called() -> Option<PathBuf> {
    let word = PathBuf::from(std::env::args_os().next()?);
    let here = std::env::current_dir().ok()?;
    if word.parent() != Some(Path::new("")) {
        return Some(here.join(word)).filter(|file| file.is_file());
    }
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|dir| here.join(dir).join(&word));
    all.find(|file| file.is_file() && kw_sys::process::executable(file))
}

/// The directory of this installation, above that of the commands.
pub fn home() -> io::Result<PathBuf> {
    let exe = own_file()?.canonicalize()?;
    let home = exe.parent().and_then(Path::parent);
    home.map(PathBuf::from)
        .ok_or(io::ErrorKind::NotFound.into())
}

/// The libraries for programs of other MPIs in this installation.
pub fn installed() -> Libraries {
    let lib = home().ok().map(|home| home.join("lib"));
    let shim = |abi: &Abi| {
        let dir = lib.as_ref()?.join(abi.dir);
        dir.is_dir().then(|| AbiShim {
            file: abi.file.into(),
            dir,
        })
    };
    // a path in LD_AUDIT cannot hold these
    let sayable = |path: &PathBuf| !path.to_string_lossy().contains([':', '$']);
    let auditor = lib.as_ref().map(|lib| lib.join("libkw_audit.so"));
    let auditor = auditor.filter(|path| sayable(path) && path.exists());
    Libraries {
        shims: ABIS.iter().filter_map(shim).collect(),
        auditor: auditor.filter(|_| kw_sys::host::glibc() >= Some(CHEAP_AUDIT)),
    }
}

/// Sets the environment in which a program finds the libraries it needs. A program that is not
/// linked with any MPI (`perf`, `valgrind`, `env`) may start another one: the first of its
/// `arguments` that is a program linked with an MPI decides.
pub fn serve(program: &Path, arguments: &[OsString], env: &mut Env) -> Result<Libraries, Verdict> {
    let started = arguments.iter().map(Path::new).find(|p| speaks_mpi(p));
    let program = match started {
        Some(started) if !speaks_mpi(program) => started,
        _ => program,
    };
    let chosen = match elf::linked(program) {
        None => Ok(installed()),
        Some(linked) => chosen(&linked, installed(), Path::exists),
    };
    let chosen = chosen.map_err(|fault| {
        let text = format!("'{}' {fault}", program.display());
        Verdict::new(CANNOT_EXECUTE, text)
    })?;
    chosen.put_in_front(env);
    Ok(chosen)
}

/// A sentence if a program of the standard ABI finds the library of another MPI first: if that
/// library does not speak PMI-1, each rank starts as a job of its own. A library of another
/// Kittiwake is fine.
pub fn other_mpi_first(program: &Path, env: &Env) -> Option<String> {
    let linked = elf::linked(program)?;
    let file = library_of_another_mpi(&linked, env)?;
    Some(format!(
        "'{}' runs on {}, which is not a library of Kittiwake: LD_LIBRARY_PATH or the program's DT_RPATH has it first",
        program.display(),
        file.display()
    ))
}

fn library_of_another_mpi(linked: &Linked, env: &Env) -> Option<PathBuf> {
    let name = linked.needed.iter().find(|n| n.starts_with(STANDARD))?;
    let path = env.iter().find(|(n, _)| n == "LD_LIBRARY_PATH");
    let path = path.map_or(OsStr::new(""), |(_, value)| value);
    let listed = std::env::split_paths(path).filter(|dir| !dir.as_os_str().is_empty());
    let dirs = linked.first.iter().cloned().chain(listed);
    let file = dirs.map(|dir| dir.join(name)).find(|file| file.is_file())?;
    let own = home().map(|home| home.join("lib").join(name));
    let is_own = own.is_ok_and(|own| own.canonicalize().ok() == file.canonicalize().ok());
    (!is_own && !is_kittiwake(&file)).then_some(file)
}

/// Whether a library is Kittiwake's, of any version; one that cannot be read is left to the dynamic
/// linker.
fn is_kittiwake(file: &Path) -> bool {
    const SAYS: &[u8] = b"Kittiwake";
    std::fs::read(file).map_or(true, |code| code.windows(SAYS.len()).any(|w| w == SAYS))
}

/// Refuses a program for another architecture. A program is taken for an emulator if its first
/// argument is a program for the other architecture.
pub fn check_architecture(program: &Path, arguments: &[OsString]) -> Result<(), Verdict> {
    let Some(its) = elf::foreign(program) else {
        return Ok(());
    };
    let emulates = |argument: &OsString| elf::is_native(Path::new(argument));
    if arguments.first().is_some_and(emulates) {
        return Ok(());
    }
    let (own, program) = (std::env::consts::ARCH, program.display());
    let text = format!(
        "'{program}' is a program for {its}, and this machine is for {own}: compile it here"
    );
    Err(Verdict::new(CANNOT_EXECUTE, text))
}

/// Whether it is a program that was linked with a named MPI library.
fn speaks_mpi(program: &Path) -> bool {
    let named = |n: &String| n.starts_with(STANDARD) || ABIS.iter().any(|abi| (abi.owns)(n));
    let linked = |program| elf::linked(program).is_some_and(|l| l.needed.iter().any(named));
    program.is_file() && linked(program)
}

/// What a program linked in this way needs of `ours`, or why it cannot be served; `exists`: whether
/// there is such a file.
fn chosen(
    linked: &Linked,
    ours: Libraries,
    exists: impl Fn(&Path) -> bool,
) -> Result<Libraries, String> {
    if linked.needed.iter().any(|n| n.starts_with(STANDARD)) {
        return Ok(Libraries::default());
    }
    let of = |abi: &Abi| linked.needed.iter().find(|n| (abi.owns)(n));
    let needed: Vec<_> = ABIS
        .iter()
        .filter_map(|abi| Some((abi, of(abi)?)))
        .collect();
    let (abi, name) = match needed[..] {
        [] => return foreign(linked).map_or(Ok(ours), Err),
        [one] => one,
        [(_, a), (_, b), ..] => {
            return Err(format!(
                "is linked with both {a} and {b}, whose handles differ: build all parts for the same MPI"
            ));
        }
    };
    let mut own = ours.shims.into_iter().filter(|shim| shim.file == abi.file);
    let Some(shim) = own.next() else {
        return Err(lacking(name));
    };
    let mut names = linked.needed.iter().filter(|n| (abi.owns)(n));
    if let Some(name) = names.clone().find(|name| !exists(&shim.dir.join(name))) {
        return Err(lacking(name));
    }
    let before = names.find_map(|name| {
        let dir = linked.first.iter().find(|dir| exists(&dir.join(name)))?;
        Some((name, dir))
    });
    if let (Some((name, dir)), None) = (before, &ours.auditor) {
        return Err(format!(
            "finds {name} in {} by its DT_RPATH, which overrides mpiexec: remove it (patchelf --remove-rpath, or chrpath -d), or link the program with -Wl,--enable-new-dtags",
            dir.display()
        ));
    }
    Ok(Libraries {
        shims: vec![shim],
        auditor: ours.auditor.filter(|_| before.is_some()),
    })
}

fn lacking(name: &str) -> String {
    format!(
        "needs {name}, which this installation of Kittiwake does not have: compile the program with Kittiwake's mpicc, \
         mpicxx or mpifort, or use that library's mpiexec"
    )
}

/// The functions that a program wants of its MPI and our replacement does not have, as a sentence:
/// the dynamic linker ends the program when it calls one.
pub fn missing(program: &Path, ours: &Libraries) -> Option<String> {
    let [shim] = &ours.shims[..] else { return None };
    let wanted = elf::symbols(program, Symbols::Wanted, is_of_mpi);
    let files = std::fs::read_dir(&shim.dir).ok()?.flatten();
    let files = files.filter(|f| f.file_type().is_ok_and(|t| t.is_file()));
    let had: HashSet<String> = files
        .flat_map(|f| {
            elf::symbols(&f.path(), Symbols::Had, |name| {
                wanted.iter().any(|w| w == name)
            })
        })
        .collect();
    let lacks: Vec<_> = wanted.iter().filter(|w| !had.contains(*w)).collect();
    let names = match lacks[..] {
        [] => return None,
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, ..] => format!("{one}, {two} and {} more", lacks.len() - 2),
    };
    Some(format!(
        "'{}' needs {names}, which Kittiwake's {} does not define: unless another library defines it, the dynamic linker ends the program on first use (`undefined symbol`)",
        program.display(),
        shim.file
    ))
}

/// Whether a function or variable of this name belongs to an MPI library, in C or C++.
fn is_of_mpi(name: &str) -> bool {
    let starts = [
        "MPI_", "PMPI_", "MPIX_", "PMPIX_", "MPIO_", "ompi_", "_ZN3MPI", "_ZNK3MPI",
    ];
    starts.iter().any(|start| name.starts_with(start))
}

/// Why a program that is not linked with a library that we have cannot be served.
fn foreign(linked: &Linked) -> Option<String> {
    let other = linked.needed.iter().find_map(|n| Some((n, whose(n)?)));
    if let Some((name, whose)) = other {
        return Some(format!(
            "is linked with {name} {whose}, in whose place Kittiwake has no library: compile it with Kittiwake's mpicc, or \
             use that library's mpiexec"
        ));
    }
    linked.has_mpi.then(|| STATIC.into())
}

/// The MPI whose library has this name.
fn whose(name: &str) -> Option<&'static str> {
    let (stem, version) = name.split_once(".so").unwrap_or((name, ""));
    match (stem, version) {
        ("libmpi", ".20" | ".80") => Some("of Open MPI"),
        ("libopen-rte" | "libopen-pal", _) => Some("of Open MPI"),
        ("libmpich" | "libmpichf90" | "libmpichfort" | "libmpifort", _) => Some("of MPICH"),
        ("libmpi", _) => Some("of another MPI"),
        _ => None,
    }
}

impl Libraries {
    /// Makes the dynamic linker find them for a program with this environment.
    fn put_in_front(&self, env: &mut Env) {
        let dirs = self.shims.iter().map(|shim| shim.dir.clone().into());
        prepend(env, "LD_LIBRARY_PATH", dirs.collect());
        prepend(
            env,
            "LD_AUDIT",
            self.auditor.iter().map(OsString::from).collect(),
        );
    }

    /// Their names and directories, for people.
    pub fn described(&self) -> String {
        let each = self.shims.iter();
        let each: Vec<_> = each
            .map(|shim| format!("{} in {}", shim.file, shim.dir.display()))
            .collect();
        let by = self.auditor.as_ref().map_or("", |_| ", by LD_AUDIT");
        each.join(" and ") + by
    }
}

/// Prepends words to a variable, separated by colons.
pub fn prepend(env: &mut Env, variable: &str, mut words: Vec<OsString>) {
    if words.is_empty() {
        return;
    }
    let before = env.iter().position(|(name, _)| name == variable);
    let before = before.map(|at| env.remove(at).1);
    words.extend(before.filter(|value| !value.is_empty()));
    env.push((variable.into(), words.join(OsStr::new(":"))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(needed: &[&str]) -> Linked {
        Linked {
            needed: needed.iter().map(|n| n.to_string()).collect(),
            ..Linked::default()
        }
    }

    fn ours() -> Libraries {
        let shim = |abi: &Abi| AbiShim {
            file: abi.file.into(),
            dir: Path::new("/opt/kittiwake/lib").join(abi.dir),
        };
        Libraries {
            shims: ABIS.iter().map(shim).collect(),
            auditor: Some("/opt/kittiwake/lib/libkw_audit.so".into()),
        }
    }

    /// Contents of the directories of [`ours`] and of another MPI.
    fn exists(file: &Path) -> bool {
        [
            "mpich/libmpi.so.12",
            "mpich/libmpich.so.12",
            "mpich/libmpichfort.so.12",
            "openmpi/libmpi.so.40",
            "openmpi/libopen-pal.so.40",
            "openmpi/libmpi_mpifh.so.40",
            "openmpi/libmpi_usempif08.so.40",
            "other/libmpi.so.40",
        ]
        .iter()
        .any(|end| file.ends_with(end))
    }

    #[test]
    fn what_can_be_served() {
        for (needed, dirs) in [
            (&["libmpi.so.12", "libc.so.6"][..], &["mpich"][..]),
            (&["libmpich.so.12"], &["mpich"]),
            (&["libmpichfort.so.12", "libgfortran.so.5"], &["mpich"]),
            (&["libmpi.so.40", "libopen-pal.so.40"], &["openmpi"]),
            (&["libmpi_mpifh.so.40", "libgfortran.so.5"], &["openmpi"]),
            (
                &["libmpi_usempif08.so.40", "libmpi_mpifh.so.40"],
                &["openmpi"],
            ),
            (&["libmpi_abi.so.1"], &[]),
            (&["libmpi_abi.so.1", "libmpi.so.40"], &[]),
            (&["libmpfr.so.6"], &["mpich", "openmpi"]),
        ] {
            let chosen = chosen(&linked(needed), ours(), exists).unwrap();
            let mut names = chosen.shims.iter().map(|f| f.dir.file_name().unwrap());
            assert!(
                names.by_ref().eq(dirs.iter().copied()),
                "{needed:?}: {chosen:?}"
            );
            let unknown = dirs.len() == 2;
            assert_eq!(chosen.auditor.is_some(), unknown, "{needed:?}");
        }
    }

    #[test]
    fn a_library_of_another_mpi_with_the_standard_abi_is_found_when_it_comes_first() {
        let place = std::env::temp_dir().join(format!("kw-other-mpi-{}", std::process::id()));
        let (ours, other, none) = (place.join("ours"), place.join("other"), place.join("none"));
        for (dir, says) in [(&ours, "Kittiwake 0.0.1"), (&other, "MPICH 9")] {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(dir.join("libmpi_abi.so.1"), says).unwrap();
        }
        let found = |needed: &str, dirs: &[&PathBuf]| {
            let path = std::env::join_paths(dirs).unwrap();
            let env = vec![("LD_LIBRARY_PATH".into(), path)];
            library_of_another_mpi(&linked(&[needed]), &env)
        };
        let its = other.join("libmpi_abi.so.1");
        let first = found("libmpi_abi.so.1", &[&none, &other, &ours]);
        assert_eq!(first, Some(its.clone()));
        assert_eq!(found("libmpi_abi.so.1", &[&none, &ours, &other]), None);
        assert_eq!(found("libmpi_abi.so.1", &[&none]), None);
        assert_eq!(found("libm.so.6", &[&other]), None);
        let mut by_rpath = linked(&["libmpi_abi.so.1"]);
        by_rpath.first = vec![other];
        let found = library_of_another_mpi(&by_rpath, &Vec::new());
        assert_eq!(found, Some(its));
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_path_of_the_program_goes_first() {
        let mut linked = linked(&["libmpi.so.40"]);
        linked.first = vec!["/other".into()];
        let served = chosen(&linked, ours(), exists).unwrap();
        assert!(served.auditor.is_some() && served.described().ends_with("openmpi, by LD_AUDIT"));
        let without = Libraries {
            auditor: None,
            ..ours()
        };
        let fault = chosen(&linked, without, exists).unwrap_err();
        assert!(
            fault.contains("finds libmpi.so.40 in /other by its DT_RPATH"),
            "{fault}"
        );
    }

    #[test]
    fn what_cannot_be_served() {
        let within = Linked {
            has_mpi: true,
            ..Linked::default()
        };
        for (linked, part) in [
            (linked(&["libmpi.so.20"]), "of Open MPI"),
            (linked(&["libmpi.so.1"]), "of another MPI"),
            (linked(&["libmpich.so.10"]), "of MPICH"),
            (linked(&["libmpichf90.so.10"]), "of MPICH"),
            (
                linked(&["libmpi_java.so.40"]),
                "needs libmpi_java.so.40, which",
            ),
            (
                linked(&["libmpi.so.12", "libmpi.so.40"]),
                "whose handles differ",
            ),
            (within, "statically"),
        ] {
            let fault = chosen(&linked, ours(), exists).unwrap_err();
            assert!(fault.contains(part) && !fault.contains('\n'), "{fault}");
        }
        assert!(chosen(&linked(&["libmpi.so.12"]), Libraries::default(), exists).is_err());
    }

    #[test]
    fn directories_go_in_front() {
        let mut env = vec![("LD_LIBRARY_PATH".into(), "/m".into())];
        Libraries::default().put_in_front(&mut env);
        assert_eq!(env.len(), 1);
        ours().put_in_front(&mut env);
        let both = "/opt/kittiwake/lib/mpich:/opt/kittiwake/lib/openmpi:/m";
        let auditor = "/opt/kittiwake/lib/libkw_audit.so";
        let expected: Env = vec![
            ("LD_LIBRARY_PATH".into(), both.into()),
            ("LD_AUDIT".into(), auditor.into()),
        ];
        assert_eq!(env, expected);
    }
}
