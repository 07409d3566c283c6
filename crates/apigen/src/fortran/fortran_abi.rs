//! The ABI below the Fortran layer: the standard one, or another (`api/abi/NAME.tsv`).
//!
//! There is one layer, `crates/fortran`. The differences are generated here for its modules
//! `constants`, `handle` and `sentinels`: values, the conversion of a handle to an INTEGER, and the
//! common blocks of constants with an address.

use super::constants::{ADDRESSES, OWN, Value, values};
use super::{Fortran, fortran_shells};
use crate::abi::Fact;
use crate::api::number;
use crate::{Abi, Api, Constant, Error};
use std::fmt::Write;

/// An ABI as Fortran sees it.
#[derive(Clone, Copy, Debug)]
pub struct FortranAbi<'a> {
    pub(super) api: &'a Api,
    abi: Option<&'a Abi>,
}

/// A common block: its constants have addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Its name in Fortran.
    pub name: String,
    /// Its constants, in their order.
    pub members: Vec<&'static str>,
}

/// Type information by which gfortran identifies a type of a module in a `class(*)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Class<'a> {
    /// Beginning of the names, followed by `__vtab`, `__def_init` or `__copy`.
    pub before: &'a str,
    /// End of the names.
    pub after: &'a str,
    hash: &'a str,
    bytes: &'a str,
}

impl<'a> FortranAbi<'a> {
    /// The standard ABI.
    pub fn standard(api: &'a Api) -> FortranAbi<'a> {
        FortranAbi { api, abi: None }
    }

    /// Another ABI.
    pub fn of(api: &'a Api, abi: &'a Abi) -> FortranAbi<'a> {
        FortranAbi {
            api,
            abi: Some(abi),
        }
    }

    /// The constants that only Fortran has.
    pub(super) fn own(&self) -> impl Iterator<Item = (&'static str, i64)> {
        OWN.into_iter().map(|(name, standard)| {
            let of_status = |abi: &Abi| match name {
                "MPI_STATUS_SIZE" => abi.value("MPI_F_STATUS_SIZE"),
                // indices of arrays count from 1
                _ => Some(abi.value(&name.replace("MPI_", "MPI_F_"))? + 1),
            };
            (name, self.abi.and_then(of_status).unwrap_or(standard))
        })
    }

    /// The value of a constant that is a number.
    pub(super) fn number(&self, c: &Constant) -> Option<i64> {
        let standard = number(&c.value);
        let version = ["MPI_VERSION", "MPI_SUBVERSION"].contains(&c.name.as_str());
        let Some(abi) = self.abi.filter(|_| !version) else {
            return standard;
        };
        let value = in_fortran(abi, &c.name).or_else(|| abi.value(&c.name))?;
        // handles and keys whose highest bit is set in C
        Some(if c.c_type == "MPI_Offset" {
            value
        } else {
            i64::from(value as i32)
        })
    }

    /// The value in C of a constant that is an address.
    fn address(&self, c: &Constant) -> Option<i64> {
        let Some(abi) = self.abi else {
            return number(&c.value);
        };
        let symbol = abi.of_form("symbol").find(|f| f.name == c.name);
        abi.value(&c.name)
            .or_else(|| symbol.and_then(|f| number(&f.value)))
    }

    /// Form of a buffer in the procedures of mpi_f08.
    fn buffers(&self) -> Option<&'a str> {
        let of_f08 = self.abi?.of_form("descriptor").next()?;
        Some(&of_f08.value)
    }

    /// The descriptors that the procedures of mpi_f08 take: those of C, or a compiler's own, which
    /// have no descriptors of texts.
    pub(super) fn descriptor(&self) -> &'a str {
        self.buffers().filter(|b| *b != "address").unwrap_or("c")
    }

    /// Whether the procedures of mpi_f08 take addresses of buffers, as mpif.h's do.
    pub(super) fn by_address(&self) -> bool {
        self.buffers() == Some("address")
    }

    /// Whether the procedures of mpi_f08 take buffers in a form that we know.
    pub(super) fn has_f08(&self) -> bool {
        self.abi.is_none() || self.buffers().is_some()
    }

    /// Procedures of this library under names that only this ABI has: the name, the procedure.
    pub(super) fn procedures(&self) -> Vec<(String, String)> {
        let all = self.facts("procedure").flat_map(|f| {
            let fill: Vec<String> = match f.name.contains(['*', '#']) {
                true if f.name.contains('*') => self.api.handles().map(str::to_lowercase).collect(),
                true => shapes().collect(),
                false => vec![String::new()],
            };
            let names = fill.into_iter().map(|h| f.name.replace(['*', '#'], &h));
            names.map(|name| (name, f.value.clone()))
        });
        let copies = self.classes().into_iter().map(|c| {
            let copy = format!("kw_copy_{}_", c.bytes);
            (format!("{}__copy{}", c.before, c.after), copy)
        });
        all.chain(copies).collect()
    }

    /// The name that this ABI has for a comparison (`eq`, `ne`) of two handles of mpi_f08.
    pub(super) fn comparison(&self, end: &str, handle: &str) -> Option<String> {
        let ours = format!("mpi_comm_{end}_");
        let fact = self.facts("procedure").find(|f| f.value == ours)?;
        Some(fact.name.replace('*', &handle.to_lowercase()))
    }

    /// Functions beyond MPI that are aliases: the name, the MPI function.
    pub(super) fn beyond(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.facts("same").map(|f| (&*f.name, &*f.value))
    }

    /// Rows of a form; none for the standard ABI.
    fn facts(&self, form: &'static str) -> impl Iterator<Item = &'a Fact> + use<'a> {
        self.abi.into_iter().flat_map(move |abi| abi.of_form(form))
    }

    /// Handles that are variables of the library: name, value.
    pub(super) fn variables(&self) -> Vec<(String, i64)> {
        let handles: Vec<(String, i64)> = values(self)
            .into_iter()
            .filter_map(|(name, value)| match value {
                Value::Handle(_, v) => Some((name.to_lowercase(), v)),
                _ => None,
            })
            .collect();
        let mut out: Vec<(String, i64)> = Vec::new();
        for f in self.facts("variable") {
            let one = number(&f.value).map(|v| vec![(String::new(), v)]);
            for (name, value) in one.unwrap_or_else(|| handles.clone()) {
                out.push((f.name.replace('*', &name), value));
            }
        }
        out
    }

    /// Types of modules that gfortran has variables for.
    pub(super) fn classes(&self) -> Vec<Class<'a>> {
        let class = |f: &'a Fact| {
            let (before, after) = f.name.split_once('*')?;
            let (hash, bytes) = f.value.split_once(' ')?;
            Some(Class {
                before,
                after,
                hash,
                bytes,
            })
        };
        self.facts("class").filter_map(class).collect()
    }

    /// Symbols of constants with an address that are not common blocks.
    pub(super) fn objects(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.facts("f08").map(|f| f.value.as_str())
    }

    /// The common blocks.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut add = |block: String, constant: &str| {
            let known = ADDRESSES.iter().find(|a| a.0 == constant);
            let Some((constant, ..)) = known else { return };
            match blocks.iter_mut().find(|b| b.name == block) {
                Some(b) => b.members.push(constant),
                None => blocks.push(Block {
                    name: block,
                    members: vec![constant],
                }),
            }
        };
        match self.abi {
            Some(abi) => abi
                .of_form("common")
                .for_each(|f| add(f.value.clone(), &f.name)),
            None => ADDRESSES
                .iter()
                .for_each(|(name, ..)| add(common(name), name)),
        }
        blocks
    }

    /// Bytes of a constant with an address.
    fn bytes(&self, name: &str) -> i64 {
        let size = self.own().find(|own| own.0 == "MPI_STATUS_SIZE");
        match name {
            "MPI_STATUS_IGNORE" | "MPI_STATUSES_IGNORE" => 4 * size.map_or(0, |s| s.1),
            "MPI_ARGV_NULL" | "MPI_ARGVS_NULL" => 1,
            _ => 4,
        }
    }
}

/// Symbols of a constant with an address other than its common block.
fn objects<'a>(abi: &FortranAbi<'a>, constant: &str) -> impl Iterator<Item = &'a str> {
    let all = abi.facts("f08").filter(move |f| f.name == constant);
    all.map(|f| f.value.as_str())
}

/// Shape of an argument in the names of procedures: no dimension, or a number of dimensions.
pub(super) fn shapes() -> impl Iterator<Item = String> {
    let ranks = (1..=15).map(|rank| format!("r{rank}"));
    std::iter::once("scalar".to_string()).chain(ranks)
}

/// Fortran's form of a constant, if it differs from C's.
fn in_fortran(abi: &Abi, name: &str) -> Option<i64> {
    let mut own = abi.of_form("fortran").chain(abi.of_form("integer"));
    let fact = own.find(|f| f.name == name)?;
    number(&fact.value)
}

/// The common block of a constant in the standard ABI.
fn common(name: &str) -> String {
    format!("mpi_fortran_{}", name["MPI_".len()..].to_ascii_lowercase())
}

/// The files that the layer includes: name, text. For a build script.
pub fn fortran_layer(abi: &FortranAbi) -> Result<Vec<(&'static str, String)>, Error> {
    let dir = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let fortran = Fortran::read(&crate::api_dir(dir.as_ref()), abi.api)?;
    Ok(vec![
        ("shells.rs", fortran_shells(abi, &fortran)?),
        ("constants.rs", constants(abi)),
        ("handles.rs", handles(abi)),
        ("commons.rs", commons(abi)),
        ("variables.rs", variables(abi)),
        (
            "descriptor.rs",
            format!("pub use {}::Descriptor;\n", abi.descriptor()),
        ),
    ])
}

/// Rust text of the constants: Fortran's values, C's addresses, the name of the C library's
/// function that takes a hook of a request, and `c_keyval`, which has C's key of a predefined
/// attribute. For a module that has `c_int`.
fn constants(abi: &FortranAbi) -> String {
    let mut out = String::new();
    let library = if abi.abi.is_some() { "abi_shim" } else { "MPI" };
    let _ = writeln!(
        out,
        "pub const REQUEST_HOOK: &std::ffi::CStr = c\"kw_{library}_Request_hook\";"
    );
    for (name, value) in abi.own() {
        let _ = writeln!(out, "pub const {name}: c_int = {value};");
    }
    for (name, value) in values(abi) {
        let (ty, value) = match value {
            Value::Integer(v) | Value::Handle(_, v) => ("c_int", v),
            Value::Offset(v) => ("i64", v),
        };
        let _ = writeln!(out, "pub const {name}: {ty} = {value};");
    }
    let pointers = abi.api.constants.iter().filter(|c| c.c_type.ends_with('*'));
    for c in pointers.filter(|c| !c.name.starts_with("MPI_T_")) {
        // no address is a constant that the ABI does not have
        let value = abi.address(c).unwrap_or_default();
        let _ = writeln!(out, "pub const {}: usize = {value}isize as usize;", c.name);
    }
    let keys = abi.abi.into_iter().flat_map(|abi| {
        let own = abi.of_form("fortran").filter(|f| abi.is_key(&f.name));
        own.filter_map(|f| Some((number(&f.value)?, abi.value(&f.name)?)))
    });
    let arms: String = keys.map(|(f, c)| format!("{f} => {c}, ")).collect();
    out + &format!(
        "#[inline(always)] pub fn c_keyval(key: c_int) -> c_int {{ match key {{ {arms}key => key }} }}\n"
    )
}

/// Rust text of the kinds of handles, for a module that has these macros: `numbered!` if constants
/// are the same in both languages and functions convert the others, `integers!` if handles are
/// INTEGERs in C, too, `converted!` if functions convert all.
fn handles(abi: &FortranAbi) -> String {
    let mut out = String::new();
    for name in abi.api.handles() {
        let short = if name == "Datatype" { "Type" } else { name };
        let ty = |abi: &Abi| {
            let fact = abi
                .of_form("type")
                .find(|f| f.name == format!("MPI_{name}"));
            fact.map(|f| f.value.clone())
        };
        let _ = match abi.abi.and_then(ty).as_deref() {
            None => writeln!(
                out,
                "numbered! {{ {name} MPI_{short}_toint MPI_{short}_fromint }}"
            ),
            Some("int") => writeln!(out, "integers! {{ {name} }}"),
            Some(_) => writeln!(
                out,
                "converted! {{ {name} MPI_{short}_c2f MPI_{short}_f2c }}"
            ),
        };
    }
    out
}

/// Rust text of the common blocks, for a module that has the macros `commons!` (a block or another
/// symbol, its bytes, and the character that fills it) and `addresses!` (a constant, its block and
/// its offset, other symbols).
fn commons(abi: &FortranAbi) -> String {
    let (mut commons, mut addresses) = (String::new(), String::new());
    let mut symbol = |name: &str, bytes: i64, constant: &str| {
        let fill = if constant.contains("ARGV") { b' ' } else { 0 };
        let _ = writeln!(commons, "    {name} {bytes} {fill};");
    };
    let mut places: Vec<(&str, String)> = Vec::new();
    for block in abi.blocks() {
        let mut bytes = 0;
        for name in &block.members {
            places.push((name, format!("{}_ {bytes}", block.name)));
            bytes += abi.bytes(name);
        }
        symbol(&format!("{}_", block.name), bytes, block.members[0]);
    }
    for (name, ..) in ADDRESSES {
        for object in objects(abi, name) {
            places.push((name, format!("{object} 0")));
            symbol(object, abi.bytes(name), name);
        }
        let own = places.iter().filter(|place| place.0 == name);
        let own: Vec<&str> = own.map(|place| place.1.as_str()).collect();
        let _ = writeln!(addresses, "    {name} {};", own.join(", "));
    }
    format!("commons! {{\n{commons}}}\naddresses! {{\n{addresses}}}\n")
}

/// Rust text of the library variables of gfortran's modules, for a module that has the macros
/// `numbers!` (a symbol and its INTEGER) and `classes!` (beginning and end of the names, the hash
/// and the bytes of a type).
fn variables(abi: &FortranAbi) -> String {
    let (mut numbers, mut classes) = (String::new(), String::new());
    for (name, value) in abi.variables() {
        let _ = writeln!(numbers, "    {name} {value};");
    }
    for c in abi.classes() {
        let (before, after, bytes) = (c.before, c.after, c.bytes);
        let _ = writeln!(classes, "    \"{before}\" \"{after}\" {} {bytes};", c.hash);
    }
    format!("numbers! {{\n{numbers}}}\nclasses! {{\n{classes}}}\n")
}
