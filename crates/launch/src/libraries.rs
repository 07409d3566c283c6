//! Which library of this installation a program runs on.
//!
//! A program of the standard ABI finds `libmpi_abi.so.1` by itself. One of MPICH or Intel MPI asks
//! the dynamic linker for `libmpi.so.12` (in Fortran for `libmpifort.so.12`), one of Open MPI for
//! `libmpi.so.40` (`libmpi_mpifh.so.40`), so the directory with ours goes to the front of its
//! LD_LIBRARY_PATH; for whatever cannot be looked into, such as Python, whose extensions may want
//! either, both do. What none of our libraries can serve is refused with a sentence.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::elf::{self, Linked};
use crate::ranks::Env;
use crate::verdict::{CANNOT_EXECUTE, Verdict};

const STANDARD: &str = "libmpi_abi.so";
const VARIABLE: &str = "LD_LIBRARY_PATH";

/// An ABI that we have a library for: its directory below `lib`, the library, and which names of
/// libraries are its own.
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

/// What this installation has for the programs of another MPI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Face {
    /// The library.
    pub file: String,
    /// Where it lies.
    pub dir: PathBuf,
}

/// The libraries for programs of other MPIs, where this is installed.
pub fn installed() -> Vec<Face> {
    let exe = std::env::current_exe().and_then(|exe| exe.canonicalize());
    let lib = exe
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.join("lib")));
    let face = |abi: &Abi| {
        let dir = lib.as_ref()?.join(abi.dir);
        dir.is_dir().then(|| Face {
            file: abi.file.into(),
            dir,
        })
    };
    ABIS.iter().filter_map(face).collect()
}

/// The libraries whose directories a program is to look into first.
pub fn serve(program: &Path, faces: Vec<Face>) -> Result<Vec<Face>, Verdict> {
    let Some(linked) = elf::linked(program) else {
        return Ok(faces);
    };
    chosen(&linked, faces, Path::exists).map_err(|fault| {
        let text = format!("'{}' {fault}", program.display());
        Verdict::new(CANNOT_EXECUTE, text)
    })
}

/// Those among `faces` that a program so linked needs, or why it cannot be served; `exists`: whether
/// there is such a file.
fn chosen(
    linked: &Linked,
    faces: Vec<Face>,
    exists: impl Fn(&Path) -> bool,
) -> Result<Vec<Face>, String> {
    if linked.needed.iter().any(|n| n.starts_with(STANDARD)) {
        return Ok(Vec::new());
    }
    let of = |abi: &Abi| linked.needed.iter().find(|n| (abi.owns)(n));
    let needed: Vec<_> = ABIS
        .iter()
        .filter_map(|abi| Some((abi, of(abi)?)))
        .collect();
    let (abi, name) = match needed[..] {
        [] => return foreign(linked).map_or(Ok(faces), Err),
        [one] => one,
        [(_, a), (_, b), ..] => {
            return Err(format!(
                "is linked with {a} and with {b}: their handles differ, so build all parts for the same MPI"
            ));
        }
    };
    let mut own = faces.into_iter().filter(|face| face.file == abi.file);
    let Some(face) = own.next() else {
        return Err(lacking(name));
    };
    for name in linked.needed.iter().filter(|n| (abi.owns)(n)) {
        if !exists(&face.dir.join(name)) {
            return Err(lacking(name));
        }
        if let Some(dir) = linked.first.iter().find(|d| exists(&d.join(name))) {
            return Err(format!(
                "finds {name} in {} by its DT_RPATH, which goes before whatever mpiexec says: take that out (patchelf \
                 --remove-rpath, or chrpath -d), or link the program with -Wl,--enable-new-dtags",
                dir.display()
            ));
        }
    }
    Ok(vec![face])
}

fn lacking(name: &str) -> String {
    format!(
        "needs {name}, which this installation of Kittiwake does not have: compile the program with Kittiwake's mpicc, \
         mpicxx or mpifort, or use that library's mpiexec"
    )
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
    linked.has_mpi.then(|| {
        "has an MPI library inside, linked statically, in whose place no other can be put: link it with the shared one, \
         or compile it with Kittiwake's mpicc"
            .into()
    })
}

/// Whose library it is that has this name.
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

/// Puts their directories in front of where libraries are looked for.
pub fn put_in_front(env: &mut Env, faces: &[Face]) {
    if faces.is_empty() {
        return;
    }
    let mut words: Vec<OsString> = faces.iter().map(|face| face.dir.clone().into()).collect();
    let before = env.iter().position(|(name, _)| name == VARIABLE);
    let before = before.map(|at| env.remove(at).1);
    words.extend(before.filter(|value| !value.is_empty()));
    env.push((VARIABLE.into(), words.join(OsStr::new(":"))));
}

/// Which libraries these are and where they lie, for people.
pub fn told(faces: &[Face]) -> String {
    let each = faces
        .iter()
        .map(|face| format!("{} in {}", face.file, face.dir.display()));
    each.collect::<Vec<_>>().join(" and ")
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

    fn faces() -> Vec<Face> {
        let face = |abi: &Abi| Face {
            file: abi.file.into(),
            dir: Path::new("/opt/kittiwake/lib").join(abi.dir),
        };
        ABIS.iter().map(face).collect()
    }

    /// What lies in the directories of [`faces`].
    fn exists(file: &Path) -> bool {
        [
            "mpich/libmpi.so.12",
            "mpich/libmpich.so.12",
            "mpich/libmpichfort.so.12",
            "openmpi/libmpi.so.40",
            "openmpi/libopen-pal.so.40",
            "openmpi/libmpi_mpifh.so.40",
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
            (&["libmpi_abi.so.1"], &[]),
            (&["libmpi_abi.so.1", "libmpi.so.40"], &[]),
            (&["libmpfr.so.6"], &["mpich", "openmpi"]),
        ] {
            let chosen = chosen(&linked(needed), faces(), exists).unwrap();
            let names = chosen.iter().map(|f| f.dir.file_name().unwrap());
            assert!(names.eq(dirs.iter().copied()), "{needed:?}: {chosen:?}");
        }
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
                "their handles differ",
            ),
            (within, "statically"),
        ] {
            let fault = chosen(&linked, faces(), exists).unwrap_err();
            assert!(fault.contains(part) && !fault.contains('\n'), "{fault}");
        }
        assert!(chosen(&linked(&["libmpi.so.12"]), Vec::new(), exists).is_err());
    }

    #[test]
    fn directories_go_in_front() {
        let mut env = vec![(OsString::from("A"), OsString::from("1"))];
        put_in_front(&mut env, &[]);
        assert_eq!(env.len(), 1);
        put_in_front(&mut env, &faces()[..1]);
        assert_eq!(env[1], (VARIABLE.into(), "/opt/kittiwake/lib/mpich".into()));
        env[1].1 = "/m".into();
        put_in_front(&mut env, &faces());
        let both = "/opt/kittiwake/lib/mpich:/opt/kittiwake/lib/openmpi:/m";
        assert_eq!(env[1], (VARIABLE.into(), both.into()));
    }
}
