//! Fortran's three interfaces: their functions, and the names of these.
//!
//! A function without choice buffers is one procedure under all its names: `mpi_x_` (mpif.h and
//! module mpi), `mpi_x_f08_` (module mpi_f08) and both with `p` in front. One with choice buffers
//! is two: `mpi_x_` takes addresses (mpif.h), `mpi_x_f08ts_` and `mpi_x_fts_` take C descriptors
//! (both modules). Large-count twins exist in mpi_f08 only. Other special cases are in
//! `api/fortran.tsv`.

mod callbacks;
mod constants;
mod fortran_abi;
mod include;
mod interface;
mod modules;
mod names;
mod pass;
mod shells;

pub use fortran_abi::{FortranAbi, fortran_layer};
pub use include::include_file;
pub use interface::{Interface, fortran_declaration};
pub use modules::{foreign_module, module_files};
pub use names::{Symbols, foreign_symbols, fortran_symbols, symbols};
pub use shells::fortran_shells;

use crate::api::table;
use crate::{Api, Error, Function, Param};
use std::collections::HashSet;
use std::path::Path;

/// The exceptions (`api/fortran.tsv`).
#[derive(Clone, Debug, Default)]
pub struct Fortran {
    rows: HashSet<(String, String)>,
}

const WHAT: [&str; 5] = ["none", "no_f08", "hand", "no_ierror", "own_name"];

impl Fortran {
    /// Reads `fortran.tsv`.
    pub fn read(dir: &Path, api: &Api) -> Result<Fortran, Error> {
        let mut rows = HashSet::new();
        for [name, what, _] in table::<3>(dir, "fortran.tsv")? {
            if api.function(&name).is_none() || !WHAT.contains(&what.as_str()) {
                return Err(Error(format!(
                    "fortran.tsv: {name} {what}: there is no such function, or it is none of {}",
                    WHAT.join(", ")
                )));
            }
            rows.insert((name, what));
        }
        Ok(Fortran { rows })
    }

    fn says(&self, f: &Function, what: &str) -> bool {
        self.rows.contains(&(f.name.clone(), what.to_string()))
    }

    /// The functions that Fortran has: neither those of the tool interface, nor conversions of
    /// handles to integers.
    pub fn functions<'a>(&'a self, api: &'a Api) -> impl Iterator<Item = Binding<'a>> {
        let has = |f: &&Function| {
            let of_c =
                f.params.iter().any(|p| p.kind == "HANDLE_INT") || f.name.ends_with("_fromint");
            !f.is_tool() && !of_c && !self.says(f, "none")
        };
        api.functions.iter().filter(has).map(|f| Binding {
            f,
            by_hand: self.says(f, "hand") || !f.code,
            f08: !self.says(f, "no_f08"),
            ierror: f.code && !self.says(f, "no_ierror"),
            base: f
                .name
                .strip_suffix("_c")
                .filter(|base| api.function(base).is_some()),
            own_name: self.says(f, "own_name"),
        })
    }
}

/// One function in Fortran.
#[derive(Clone, Debug)]
pub struct Binding<'a> {
    /// The function.
    pub f: &'a Function,
    /// Whether its shell is written by hand, in `crates/fortran`.
    pub by_hand: bool,
    /// Whether module mpi_f08 has it.
    pub f08: bool,
    /// Whether it has an `ierror`.
    pub ierror: bool,
    /// The function whose large-count twin it is.
    base: Option<&'a str>,
    /// Whether it is a large-count twin that does not share the generic name of its base.
    own_name: bool,
}

impl Binding<'_> {
    /// Whether it is a large-count twin: mpif.h and module mpi do not have it.
    pub fn is_large(&self) -> bool {
        self.base.is_some()
    }

    /// Whether it takes choice buffers.
    pub fn has_choice(&self) -> bool {
        self.f.params.iter().any(is_choice)
    }

    /// Whether mpif.h and mpi_f08 differ in what they pass, apart from descriptors: `buffer_addr`
    /// of a detached buffer, which mpi and mpif.h declare wrongly and do not use.
    pub fn has_two_forms(&self) -> bool {
        self.has_choice() || self.f.params.iter().any(|p| p.kind == "C_BUFFER2")
    }

    /// Parameters that Fortran has.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        self.f.fixed_params().filter(|p| !is_argument(p))
    }

    /// Whether the buffers are used after the call returns.
    pub fn is_asynchronous(&self) -> bool {
        let f = self.f;
        let later = [
            "_begin",
            "_end",
            "attach",
            "Get_address",
            "Free_mem",
            "Win_create",
        ];
        f.chapter == "one-sided"
            || f.params.iter().any(|p| p.c_type == "MPI_Request *")
            || later.iter().any(|word| f.name.contains(word))
    }
}

/// Whether it is a choice buffer.
fn is_choice(p: &Param) -> bool {
    p.kind == "BUFFER"
}

/// Whether it is the command line, which Fortran does not pass.
fn is_argument(p: &Param) -> bool {
    matches!(p.kind.as_str(), "ARGUMENT_COUNT" | "ARGUMENT_LIST")
}

/// Whether C takes it by value.
fn by_value(p: &Param) -> bool {
    !p.c_type.contains(['*', '['])
}

/// Whether it is a logical in Fortran.
fn is_logical(p: &Param) -> bool {
    p.kind.starts_with("LOGICAL")
}
