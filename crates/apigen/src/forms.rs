//! Forms: functions that are variants of one operation (`api/forms.tsv`).
//!
//! MPI_Igather and MPI_Gather_init take MPI_Gather's arguments; they differ in when the operation
//! happens and in how the caller learns of its end. All three share one Rust function, that of the
//! operation MPI_Gather. It takes the arguments that the forms share, and then the form: a
//! [`Sort::Mode`] as an enum, a [`Sort::Way`] as a struct around the parameters that only this form
//! has.

use crate::api::table;
use crate::{Api, Error, Function, Param};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Kind of form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    /// When the operation happens, or whether the call waits for it.
    Way,
    /// Meaning of a send's completion (MPI 5.0, 3.4).
    Mode,
}

/// The words of the column `form`, and their names in `kw_mpi::forms`.
const WORDS: [(&str, &str, Sort); 7] = [
    ("nonblocking", "Nonblocking", Sort::Way),
    ("persistent", "Persistent", Sort::Way),
    ("testing", "Testing", Sort::Way),
    ("peeking", "Peeking", Sort::Way),
    ("buffered", "Buffered", Sort::Mode),
    ("synchronous", "Synchronous", Sort::Mode),
    ("ready", "Ready", Sort::Mode),
];

/// One row: the function is this form of another.
#[derive(Clone, Debug)]
struct Row {
    called: &'static str,
    sort: Sort,
    of: String,
}

/// An operation that has forms.
#[derive(Clone, Debug)]
struct Family {
    /// The parameters that all its forms have.
    shared: HashSet<String>,
    modes: bool,
    ways: bool,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forms {
    rows: HashMap<String, Row>,
    families: HashMap<String, Family>,
}

/// How a function's shell calls the Rust function of its operation.
#[derive(Clone, Debug)]
pub(crate) struct Use<'a> {
    /// Name of the operation.
    pub operation: &'a str,
    /// Argument passed to the Rust function unchanged.
    pub shared: Vec<&'a Param>,
    /// The variant of `Mode`, if the operation has modes.
    pub mode: Option<&'static str>,
    /// The form, if the operation has several, and its parameters.
    pub way: Option<(&'static str, Vec<&'a Param>)>,
}

impl Forms {
    /// Reads the table.
    pub fn read(dir: &Path, api: &Api) -> Result<Forms, Error> {
        let mut forms = Forms::default();
        for row in table::<3>(dir, "forms.tsv")? {
            forms.add(row, api)?;
        }
        for function in forms.rows.keys() {
            if forms.rows.contains_key(forms.resolve(function).0) {
                return Err(Error(format!("forms.tsv: {function} is a form of itself")));
            }
        }
        forms.families = forms.families(api);
        for f in api.functions.iter().filter(|f| f.twin_of.is_none()) {
            forms.check(f, api)?;
        }
        Ok(forms)
    }

    fn add(&mut self, [function, form, of]: [String; 3], api: &Api) -> Result<(), Error> {
        for name in [&function, &of] {
            if api.function(name).is_none_or(|f| f.twin_of.is_some()) {
                let text = "is not a function, or is the large-count twin of one";
                return Err(Error(format!("forms.tsv: {name} {text}")));
            }
        }
        let Some((_, called, sort)) = WORDS.into_iter().find(|w| w.0 == form) else {
            let known = WORDS.map(|w| w.0).join(", ");
            return Err(Error(format!(
                "forms.tsv: the form of {function} is '{form}', which is none of {known}"
            )));
        };
        let row = Row { called, sort, of };
        match self.rows.insert(function.clone(), row) {
            None => Ok(()),
            Some(_) => Err(Error(format!("forms.tsv has two rows for {function}"))),
        }
    }

    /// Whether a function is a form of another.
    pub fn is_form(&self, name: &str) -> bool {
        self.rows.contains_key(name)
    }

    /// How `f` uses the Rust function of its operation. A large-count twin uses it in the same way
    /// as its base.
    pub fn using<'a>(&'a self, f: &'a Function) -> Use<'a> {
        let (operation, mode, way) = self.resolve(f.twin_of.as_deref().unwrap_or(&f.name));
        let family = self.families.get(operation);
        let is_shared = |p: &&Param| family.is_none_or(|f| f.shared.contains(&p.name));
        let (shared, own) = f.fixed_params().partition(is_shared);
        Use {
            operation,
            shared,
            mode: family
                .is_some_and(|f| f.modes)
                .then_some(mode.unwrap_or("Standard")),
            way: family
                .is_some_and(|f| f.ways)
                .then_some((way.unwrap_or("Blocking"), own)),
        }
    }

    /// The operation of a function that is not a twin, its mode and its form.
    fn resolve<'n>(
        &'n self,
        name: &'n str,
    ) -> (&'n str, Option<&'static str>, Option<&'static str>) {
        let (mut name, mut mode, mut way) = (name, None, None);
        // a chain that is longer than the table is a cycle
        for _ in 0..=self.rows.len() {
            let Some(row) = self.rows.get(name) else {
                break;
            };
            match row.sort {
                Sort::Mode => mode = mode.or(Some(row.called)),
                Sort::Way => way = way.or(Some(row.called)),
            }
            name = &row.of;
        }
        (name, mode, way)
    }

    fn families(&self, api: &Api) -> HashMap<String, Family> {
        let names = |name: &str| -> HashSet<String> {
            let params = api.function(name).into_iter().flat_map(|f| &f.params);
            params.map(|p| p.name.clone()).collect()
        };
        let mut families: HashMap<String, Family> = HashMap::new();
        for function in self.rows.keys() {
            let (operation, mode, way) = self.resolve(function);
            let family = families.entry(operation.to_string());
            let family = family.or_insert_with(|| Family {
                shared: names(operation),
                modes: false,
                ways: false,
            });
            let has = names(function);
            family.shared.retain(|p| has.contains(p));
            family.modes |= mode.is_some();
            family.ways |= way.is_some();
        }
        families
    }

    /// Checks that a form passes the arguments that it shares with its operation in the operation's
    /// order, and can place the others.
    fn check(&self, f: &Function, api: &Api) -> Result<(), Error> {
        let using = self.using(f);
        let Some(operation) = api.function(using.operation) else {
            return Ok(());
        };
        let names = |params: Vec<&Param>| -> Vec<String> {
            params.into_iter().map(|p| p.name.clone()).collect()
        };
        let order = names(self.using(operation).shared);
        if names(using.shared) != order {
            return Err(Error(format!(
                "forms.tsv: {} and {} have their common parameters ({}) in another order",
                f.name,
                operation.name,
                order.join(", ")
            )));
        }
        if using.way.is_none() && f.fixed_params().count() != order.len() {
            return Err(Error(format!(
                "forms.tsv: {} has other parameters than {}, but is only another mode of it",
                f.name, operation.name
            )));
        }
        Ok(())
    }
}
