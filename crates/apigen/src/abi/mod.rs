//! ABIs other than the standard one, and how their values correspond to those of the standard ABI.
//!
//! `api/abi/NAME.tsv` has the facts of one ABI (format: `api/README.md`), `groups.tsv` which
//! constants may stand in which parameters, `exceptions.tsv` the functions that are written by hand.
//! From these come a library's conversions ([`conversions`]), its predefined handles
//! ([`predefined_handles`], [`predefined_objects`]), its shells ([`abi_shells`]), which call the
//! functions of the standard ABI by their table ([`standard_table`]), and a header for tests
//! ([`abi_header`]).

mod convert;
mod header;
mod objects;
mod pass;
mod shells;
mod table;

pub use convert::constants_trait;
pub use header::abi_header;
pub use shells::{abi_aliases, abi_shells, functions_table};
pub use table::standard_table;

/// The files that a library with another ABI includes: name, text. For a build script.
pub fn abi_layer(api: &Api, abi: &Abi) -> Result<Vec<(&'static str, String)>, Error> {
    let predefined = match abi.objects().next() {
        Some(_) => predefined_objects(api, abi)?,
        None => predefined_handles(api, abi)?,
    };
    Ok(vec![
        ("shells.rs", abi_shells(api, abi)?),
        ("constants.rs", conversions(api, abi)?),
        ("predefined.rs", predefined),
    ])
}

use crate::api::{number, table as read_table};
use crate::{Api, Error, Function, Param};
use convert::{conversions, predefined_handles};
use objects::predefined_objects;
use std::collections::BTreeMap;
use std::path::Path;

/// One row of `api/abi/NAME.tsv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub name: String,
    pub form: String,
    pub value: String,
}

/// Constants that may occur in the same place, and their representation there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    name: String,
    /// `values`, `codes`, `bits`, `addresses`, `offsets` or `words`.
    form: String,
    /// Kinds, or `FUNCTION/parameter`; a leading `!` excludes one.
    places: Vec<String>,
    /// Names; a final `*` matches any continuation.
    constants: Vec<String>,
}

/// Another ABI.
#[derive(Clone, Debug)]
pub struct Abi {
    facts: Vec<Fact>,
    groups: Vec<Group>,
    /// Special properties of a function, by its name.
    exceptions: BTreeMap<String, String>,
}

/// Standard handles below this are constants.
const CONSTANTS: usize = 0x403;

const FORMS: [&str; 19] = [
    "type",
    "status",
    "value",
    "extension",
    "equal",
    "symbol",
    "object",
    "integer",
    "function",
    "answers",
    "refused",
    "same",
    "common",
    "f08",
    "fortran",
    "descriptor",
    "procedure",
    "variable",
    "class",
];

impl Abi {
    /// Reads `abi/NAME.tsv` and the tables that all ABIs share, below the folder of the
    /// description.
    pub fn read(dir: &Path, name: &str, api: &Api) -> Result<Abi, Error> {
        let groups = groups(dir)?;
        let dir = dir.join("abi");
        let facts = read_table::<4>(&dir, &format!("{name}.tsv"))?
            .into_iter()
            .map(|[name, form, value, _]| Fact { name, form, value })
            .collect();
        let exceptions = read_table::<3>(&dir, "exceptions.tsv")?
            .into_iter()
            .map(|[name, what, _]| (name, what))
            .collect();
        let abi = Abi {
            facts,
            groups,
            exceptions,
        };
        abi.check(name, api)?;
        Ok(abi)
    }

    fn check(&self, name: &str, api: &Api) -> Result<(), Error> {
        for f in &self.facts {
            if !FORMS.contains(&f.form.as_str()) {
                let text = format!("{name}.tsv: the form of {} is '{}'", f.name, f.form);
                return Err(Error(text));
            }
            let of_constants = ["value", "object", "integer", "fortran", "common", "f08"];
            let is_constant = of_constants.contains(&f.form.as_str());
            if is_constant && f.name != "-" && standard(api, &f.name).is_none() {
                let text = format!("{name}.tsv: {} is not a constant of MPI 5.0", f.name);
                return Err(Error(text));
            }
        }
        for (function, what) in &self.exceptions {
            if api.function(function).is_none()
                || !["hand", "first", "equal"].contains(&what.as_str())
            {
                let text =
                    format!("exceptions.tsv: {function} is not a function, or {what} not a word");
                return Err(Error(text));
            }
        }
        Ok(())
    }

    pub(crate) fn of_form<'a>(&'a self, form: &'a str) -> impl Iterator<Item = &'a Fact> {
        self.facts.iter().filter(move |f| f.form == form)
    }

    /// The value of a constant, if the ABI has it.
    pub(crate) fn value(&self, name: &str) -> Option<i64> {
        let fact = self.of_form("value").find(|f| f.name == name)?;
        number(&fact.value)
    }

    /// Predefined handles beyond MPI: their value here, and the library's own.
    fn extensions(&self) -> impl Iterator<Item = Result<(u32, usize), Error>> + '_ {
        self.of_form("extension").map(|f| {
            let both = f.value.split_once(' ');
            let both = both.map(|(theirs, ours)| (number(theirs), number(ours)));
            match both {
                Some((Some(theirs), Some(ours))) => Ok((theirs as u32, ours as usize)),
                _ => Err(Error(format!(
                    "{}: '{}' is not two numbers",
                    f.name, f.value
                ))),
            }
        })
    }

    /// Whether a constant is the key of an attribute.
    pub(crate) fn is_key(&self, constant: &str) -> bool {
        let keys = self.groups.iter().find(|g| g.name == "keyval");
        keys.is_some_and(|g| g.constants.iter().any(|name| name == constant))
    }

    /// The objects that the library has for predefined handles: constant (`-` for none), symbol,
    /// size in bytes.
    fn objects(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.of_form("object").map(|f| {
            let (symbol, size) = f.value.split_once(' ').unwrap_or((&f.value, "8"));
            (f.name.as_str(), symbol, size)
        })
    }

    /// The group of the constants that may stand in this parameter.
    fn group(&self, f: &Function, p: &Param) -> Option<&Group> {
        let here = format!("{}/{}", f.name, p.name);
        let stands = |g: &&Group| {
            let named = |word: &str| g.places.iter().any(|w| w == word);
            named(&here) || named(&p.kind) && !named(&format!("!{here}"))
        };
        self.groups.iter().find(stands)
    }

    /// Whether a function's shell is written by hand.
    fn by_hand(&self, f: &Function) -> bool {
        self.exceptions.get(&f.name).is_some_and(|w| w == "hand")
    }

    /// Whether it may be the first call of a process.
    fn is_first(&self, f: &Function) -> bool {
        self.exceptions.get(&f.name).is_some_and(|w| w == "first")
    }

    /// The value of the operation that compares, if the ABI and the function have it.
    fn equal(&self, f: &Function) -> Option<i64> {
        self.exceptions.get(&f.name).filter(|w| *w == "equal")?;
        number(&self.of_form("equal").next()?.value)
    }
}

/// The groups of constants, from the folder of the description.
fn groups(dir: &Path) -> Result<Vec<Group>, Error> {
    let words = |text: String| text.split(' ').map(str::to_string).collect();
    let rows = read_table::<4>(&dir.join("abi"), "groups.tsv")?;
    let group = |[name, form, places, constants]: [String; 4]| Group {
        name,
        form,
        places: words(places),
        constants: words(constants),
    };
    Ok(rows.into_iter().map(group).collect())
}

/// The functions that the library has, except those that return a value.
fn functions(api: &Api) -> impl Iterator<Item = &Function> {
    api.with_removed().filter(|f| f.code)
}

/// The value of a constant of the standard ABI, of a constant that MPI 3.0 removed, or of an
/// enumerator.
fn standard(api: &Api, name: &str) -> Option<i64> {
    if let Some(c) = api.constants.iter().find(|c| c.name == name) {
        return number(&c.value);
    }
    if let Some(r) = api.removed.iter().find(|r| r.name == name) {
        return number(&r.definition);
    }
    let (_, value) = enumerators(api).find(|e| e.0 == name)?;
    number(value)
}

/// Names and values of all enumerators.
fn enumerators(api: &Api) -> impl Iterator<Item = (&str, &str)> {
    let enums = api.types.iter().filter(|t| t.form == "enum");
    let each = enums.flat_map(|t| t.definition.split(' '));
    each.filter_map(|e| e.split_once('='))
}

/// The names of all constants that [`standard`] knows.
fn all_constants(api: &Api) -> Vec<&str> {
    let constants = api.constants.iter().filter(|c| c.c_type != "alias");
    let constants = constants.map(|c| c.name.as_str());
    let removed = api.removed.iter().filter(|r| r.form != "type");
    constants
        .chain(removed.map(|r| r.name.as_str()))
        .chain(enumerators(api).map(|e| e.0))
        .collect()
}
