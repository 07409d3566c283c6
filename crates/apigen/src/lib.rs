//! Reads `api/`, the project's description of MPI 5.0, and writes what follows from it: the C header, the C shells of
//! `kw-abi`, the coverage table and the man pages.
//!
//! ```no_run
//! # fn main() -> Result<(), kw_apigen::Error> {
//! let api = kw_apigen::Api::read("api".as_ref())?;
//! let built = kw_apigen::Built::scan("crates/mpi/src/calls".as_ref(), &api)?;
//! let words = kw_apigen::Words::read("api".as_ref())?;
//! let header: String = kw_apigen::header(&api, &words);
//! let rows: Vec<kw_apigen::Covered> = kw_apigen::coverage(&api, &built);
//! // For a build script: Rust text of `pub const COVERAGE: &[(&str, &str, bool)]` (function, chapter, built).
//! let table: String = kw_apigen::coverage_const(&api, &built);
//! # Ok(()) }
//! ```
//!
//! A program that wants the coverage table (`kwinfo --coverage`) takes this crate as a build-dependency, writes
//! [`coverage_const`] to `OUT_DIR` in its build script and includes it. [`rerun_if_changed`] names the files to watch.
#![forbid(unsafe_code)]

mod api;
mod built;
mod coverage;
mod header;
mod man;
mod removed;
mod roff;
mod shells;
mod words;

pub use api::{Api, Constant, Direction, Function, Null, Param, Removed, Type};
pub use built::Built;
pub use coverage::{Covered, coverage, coverage_const, coverage_text};
pub use header::{header, prototype};
pub use man::man_pages;
pub use shells::shells;
pub use words::{Kind, Summary, Text, Who, Words};

use std::path::{Path, PathBuf};

/// What is wrong with the description or with a built function, in one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(pub String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// `api/` and the folder of the calls, seen from the folder of a crate of this workspace (`CARGO_MANIFEST_DIR`).
pub fn workspace_paths(crate_dir: &Path) -> (PathBuf, PathBuf) {
    let root = crate_dir.join("../..");
    (root.join("api"), root.join("crates/mpi/src/calls"))
}

/// Tells cargo (on standard output) to run the build script again when the description or the calls change.
pub fn rerun_if_changed(api: &Path, calls: &Path) {
    println!("cargo:rerun-if-changed={}", api.display());
    println!("cargo:rerun-if-changed={}", calls.display());
}
