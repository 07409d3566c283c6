//! Reads `api/`, the project's description of MPI 5.0, and generates from it: the C header, the C
//! shells of `kw-abi`, the lists of functions that each crate has built, the coverage table and the
//! man pages.
//!
//! # What is written by hand, and what is not
//!
//! By hand: one Rust function for each *operation*, below `calls` of its crate, and its row in
//! `built.tsv`. Everything else that is the same operation for MPI is generated:
//!
//! - The large-count twin (`twin_of` in `functions.tsv`): its shell widens the integers, which the
//!   types that the Rust function asks for decide (`kw_abi::arg`).
//! - The forms (`forms.tsv`): the Rust function gets what its forms share, in C's order, then,
//!   where there are several, the mode (`kw_objects::forms::Mode`) and the form, a struct around the
//!   parameters that only that form has. So MPI_Irecv is `recv(mpi, buf, count, datatype, source,
//!   tag, comm, Nonblocking((request,)))`, and MPI_Recv's form is `Blocking((status,))`. The
//!   function is generic over it: each form of each operation is compiled apart.
//!
//! Both have the parameters of their base or operation, by the rules of `derived.rs`, and rows of their
//! own in `parameters.tsv` only where no rule fits.
//!
//! To add a function: write it, add the row. To add a form of an operation: add its row to
//! `forms.tsv` and implement the form where the operation is (a trait beside it:
//! `calls/coll/form.rs` for all collectives, `calls/p2p/form.rs` for sends and receives). A row
//! without code does not compile, nor does code without a row (except a function that another one
//! calls).
//!
//! Windows and files fit in like this:
//!
//! - *Windows*: MPI_Rput is `nonblocking` of MPI_Put (its own parameter is the request), and so are
//!   Rget, Raccumulate and Rget_accumulate. MPI_Win_lock and its relatives are operations of their
//!   own.
//! - *Files*: MPI_File_iread is `nonblocking` of MPI_File_read (own: the request instead of the
//!   status), and so are MPI_File_iread_at of MPI_File_read_at and the others. `_begin` is a word
//!   more in `forms.rs`. `_end` is an operation of its own: it lacks the arguments that the forms
//!   share.
//!
//! Fortran's interfaces are generated beside C's (`fortran/`): the library's shells by each
//! parameter's type, kind and direction, mpif.h, and the sources of the modules.
//!
//! ```no_run
//! # fn main() -> Result<(), kw_apigen::Error> {
//! let api = kw_apigen::Api::read("api".as_ref())?;
//! let built = kw_apigen::Built::read("api".as_ref(), &api)?;
//! let words = kw_apigen::Words::read("api".as_ref())?;
//! let header: String = kw_apigen::header(&api, &words);
//! let fortran = kw_apigen::Fortran::read("api".as_ref(), &api)?;
//! let rows: Vec<kw_apigen::Covered> = kw_apigen::coverage(&api, &fortran, &built);
//! // For a build script: Rust text of `pub const COVERAGE: &[(&str, &str, bool)]` (function, chapter, built).
//! let table: String = kw_apigen::coverage_const(&api, &built);
//! # Ok(()) }
//! ```
//!
//! A crate that needs any of this has this crate as a build-dependency, writes the output to
//! `OUT_DIR` by [`build_script`], and includes it.
#![forbid(unsafe_code)]

mod abi;
mod api;
mod built;
mod constants;
mod coverage;
mod derived;
mod forms;
mod fortran;
mod header;
mod man;
mod profile;
mod removed;
mod roff;
mod shells;
mod trace;
mod words;

pub use abi::{
    Abi, abi_aliases, abi_header, abi_layer, abi_shells, constants_trait, functions_table,
    standard_table,
};
pub use api::{Api, Constant, Direction, Function, Null, Param, Removed, Type};
pub use built::{Built, built_module};
pub use constants::rust_constants;
pub use coverage::{Covered, coverage, coverage_const, coverage_text};
pub use fortran::{
    Binding, Fortran, FortranAbi, Interface, Symbols, foreign_module, foreign_symbols,
    fortran_declaration, fortran_layer, fortran_shells, fortran_symbols, include_file,
    module_files, symbols,
};
pub use header::{header, prototype};
pub use man::man_pages;
pub use profile::{profile_names, profile_wrappers};
pub use shells::shells;
pub use words::{Kind, Summary, Text, Who, Words};

use std::path::{Path, PathBuf};

/// Error in the description or in an implemented function, in one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(pub String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// `api/`, relative to the folder of a crate of this workspace (`CARGO_MANIFEST_DIR`).
pub fn api_dir(crate_dir: &Path) -> PathBuf {
    crate_dir.join("../../api")
}

/// Complete build script: writes to `OUT_DIR` the files that `files` makes (name, text), again when
/// the description changes. An error in the description is an error of the build.
pub fn build_script(
    files: impl FnOnce(&Api, &Built, &Words) -> Result<Vec<(&'static str, String)>, Error>,
) {
    if let Err(e) = build(files) {
        println!("cargo::error={e}");
        std::process::exit(1);
    }
}

/// The build script of a library with another ABI, `api/abi/NAME.tsv`.
pub fn abi_build_script(
    name: &str,
    files: impl FnOnce(&Api, &Abi) -> Result<Vec<(&'static str, String)>, Error>,
) {
    build_script(|api, _, _| {
        let dir = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        files(api, &Abi::read(&api_dir(dir.as_ref()), name, api)?)
    });
}

fn build(
    files: impl FnOnce(&Api, &Built, &Words) -> Result<Vec<(&'static str, String)>, Error>,
) -> Result<(), Error> {
    let var = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .ok_or_else(|| Error(format!("{name} is not set")))
    };
    let dir = api_dir(&var("CARGO_MANIFEST_DIR")?);
    println!("cargo:rerun-if-changed={}", dir.display());
    let api = Api::read(&dir)?;
    let out = var("OUT_DIR")?;
    for (file, text) in files(&api, &Built::read(&dir, &api)?, &Words::read(&dir)?)? {
        std::fs::write(out.join(file), text)
            .map_err(|e| Error(format!("cannot write {file}: {e}")))?;
    }
    Ok(())
}
