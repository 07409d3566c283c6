//! The coverage table: which functions are built, in C and in the interfaces of Fortran.

use crate::{Api, Built, Fortran, Function};
use std::collections::HashMap;
use std::fmt::Write;

/// The interfaces: C's, and those of Fortran.
const INTERFACES: [&str; 4] = ["C", "mpi_f08", "mpi", "mpif.h"];

/// One row of the coverage table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Covered {
    /// C name.
    pub name: String,
    /// Chapter of the standard.
    pub chapter: String,
    /// Whether it is built.
    pub built: bool,
    /// Whether Fortran has it in module mpi_f08, in module mpi and in mpif.h. Every implemented
    /// function is in all of these: the library's shells are generated.
    pub fortran: [bool; 3],
}

impl Covered {
    fn has(&self, interface: usize) -> bool {
        interface == 0 || self.fortran[interface - 1]
    }
}

/// Every function, in the order of the description.
pub fn coverage(api: &Api, fortran: &Fortran, built: &Built) -> Vec<Covered> {
    let bindings = fortran.functions(api);
    let bindings: HashMap<&str, [bool; 3]> = bindings
        .map(|b| (b.f.name.as_str(), [b.f08, !b.is_large(), !b.is_large()]))
        .collect();
    api.functions
        .iter()
        .map(|f| Covered {
            name: f.name.clone(),
            chapter: f.chapter.clone(),
            built: is_built(f, built),
            fortran: bindings.get(f.name.as_str()).copied().unwrap_or_default(),
        })
        .collect()
}

/// Functions that return no error code are written by hand in kw-abi, all of them.
fn is_built(f: &Function, built: &Built) -> bool {
    !f.code || built.has(f)
}

/// Rust text of `pub const COVERAGE: &[(&str, &str, bool)]`: function, chapter, built.
pub fn coverage_const(api: &Api, built: &Built) -> String {
    let mut out = String::from(
        "/// Every function of MPI 5.0: name, chapter, whether it is built.\npub const COVERAGE: &[(&str, &str, bool)] = &[\n",
    );
    for f in &api.functions {
        let built = is_built(f, built);
        let _ = writeln!(out, "    ({:?}, {:?}, {built}),", f.name, f.chapter);
    }
    out.push_str("];\n");
    out
}

/// The table for people: a summary by chapter, then every function.
pub fn coverage_text(rows: &[Covered]) -> String {
    let mut chapters: Vec<&str> = Vec::new();
    for r in rows {
        if !chapters.contains(&r.chapter.as_str()) {
            chapters.push(&r.chapter);
        }
    }
    chapters.sort_unstable();
    let mut out = format!("{:<16}", "");
    for interface in INTERFACES {
        let _ = write!(out, " {interface:>11}");
    }
    out.push('\n');
    for chapter in chapters {
        let of_chapter = rows.iter().filter(|r| r.chapter == chapter);
        summary(&mut out, chapter, &of_chapter.collect::<Vec<_>>());
    }
    summary(&mut out, "all", &rows.iter().collect::<Vec<_>>());
    out.push('\n');
    for r in rows {
        let has = (1..INTERFACES.len()).filter(|&i| r.has(i));
        let has: String = has.map(|i| format!(" {}", INTERFACES[i])).collect();
        let has = if has.is_empty() { " C only" } else { &has };
        let is = if r.built { "built  " } else { "missing" };
        let _ = writeln!(out, "{is} {} ({};{has})", r.name, r.chapter);
    }
    out
}

/// Writes the number of built functions, of those that each interface has.
fn summary(out: &mut String, name: &str, rows: &[&Covered]) {
    let _ = write!(out, "{name:<16}");
    for interface in 0..INTERFACES.len() {
        let all = rows.iter().filter(|r| r.has(interface));
        let (n, done) = all.fold((0, 0), |(n, d), r| (n + 1, d + usize::from(r.built)));
        let _ = write!(out, "  {done:>3} of {n:>3}");
    }
    out.push('\n');
}
