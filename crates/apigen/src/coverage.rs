//! The coverage table: which functions are built.

use crate::{Api, Built};
use std::fmt::Write;

/// One row of the coverage table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Covered {
    /// C name.
    pub name: String,
    /// Chapter of the standard.
    pub chapter: String,
    /// Whether it is built.
    pub built: bool,
}

/// Every function, in the order of the description.
pub fn coverage(api: &Api, built: &Built) -> Vec<Covered> {
    api.functions
        .iter()
        .map(|f| Covered {
            name: f.name.clone(),
            chapter: f.chapter.clone(),
            // Functions that answer no error code are written by hand in kw-abi, all of them.
            built: !f.code || built.has(f),
        })
        .collect()
}

/// Rust text of `pub const COVERAGE: &[(&str, &str, bool)]`: function, chapter, built.
pub fn coverage_const(api: &Api, built: &Built) -> String {
    let mut out = String::from(
        "/// Every function of MPI 5.0: name, chapter, whether it is built.\npub const COVERAGE: &[(&str, &str, bool)] = &[\n",
    );
    for c in coverage(api, built) {
        let _ = writeln!(out, "    ({:?}, {:?}, {}),", c.name, c.chapter, c.built);
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
    let mut out = String::new();
    for chapter in chapters {
        let all = rows.iter().filter(|r| r.chapter == chapter);
        let (n, done) = all.fold((0, 0), |(n, d), r| (n + 1, d + r.built as usize));
        let _ = writeln!(out, "{chapter:<16} {done:>3} of {n:>3}");
    }
    let done = rows.iter().filter(|r| r.built).count();
    let _ = writeln!(out, "{:<16} {done:>3} of {:>3}\n", "all", rows.len());
    for r in rows {
        let _ = writeln!(
            out,
            "{} {} ({})",
            if r.built { "built  " } else { "missing" },
            r.name,
            r.chapter
        );
    }
    out
}
