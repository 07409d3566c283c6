//! Implemented functions (`api/built.tsv`): the crate, and the module below its `calls`, that has
//! the Rust function of an operation.
//!
//! [`built_module`] makes one list of those of a crate, which includes it. A row without a function
//! is a compiler error there that quotes the row, and so is a function without a row, which could
//! not be called.

use crate::api::table;
use crate::forms::{Forms, Use};
use crate::{Api, Error, Function};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The built operations, and the forms that they have.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// Crate and module by the operation's C name.
    modules: BTreeMap<String, String>,
    forms: Forms,
}

impl Built {
    /// Reads `built.tsv` and `forms.tsv` in the folder of the description.
    pub fn read(dir: &Path, api: &Api) -> Result<Built, Error> {
        let forms = Forms::read(dir, api)?;
        let mut modules = BTreeMap::new();
        for [name, module] in table::<2>(dir, "built.tsv")? {
            let bad = |what: &str| Err(Error(format!("built.tsv: {name} {what}")));
            if !api.with_removed().any(|f| f.name == name && f.code) {
                return bad("is not a function that returns an error code");
            }
            if forms.is_form(&name) {
                return bad("is a form of another function (forms.tsv), whose row stands for it");
            }
            if modules.insert(name.clone(), module).is_some() {
                return bad("has two rows");
            }
        }
        Ok(Built { modules, forms })
    }

    /// Nothing is built (for tests).
    pub fn nothing() -> Built {
        Built::default()
    }

    /// Whether `f` is built: the function itself, the operation of which it is a form, or its
    /// large-count base.
    pub fn has(&self, f: &Function) -> bool {
        self.using(f).is_some()
    }

    /// The crate that has the Rust function of an operation, without `kw-`.
    pub(crate) fn crate_of(&self, operation: &str) -> &str {
        let place = self.modules.get(operation).map_or("mpi", String::as_str);
        place.split_once("::").map_or(place, |(name, _)| name)
    }

    /// The name of the Rust function for `f` and how it is called, if it is built.
    pub(crate) fn using<'a>(&'a self, f: &'a Function) -> Option<Use<'a>> {
        let mut using = self.forms.using(f);
        if self.modules.contains_key(&f.name) {
            // a twin whose arguments differ too much for a shared Rust function
            using.operation = &f.name;
        }
        self.modules.contains_key(using.operation).then_some(using)
    }
}

/// The name of a function's Rust function: without `MPI_`, in lower case.
pub(crate) fn rust_name(c_name: &str) -> String {
    c_name["MPI_".len()..].to_ascii_lowercase()
}

/// Rust text for the crate `kw-NAME`: brings every built function of it into one module.
pub fn built_module(built: &Built, name: &str) -> String {
    let mut out = String::new();
    for (operation, place) in &built.modules {
        let (of, module) = place.split_once("::").unwrap_or((place, ""));
        if of != name {
            continue;
        }
        let colons = if module.is_empty() { "" } else { "::" };
        let rust = rust_name(operation);
        let _ = writeln!(
            out,
            "pub use crate::calls::{module}{colons}{rust}; // api/built.tsv says that {operation} is built"
        );
    }
    out
}
