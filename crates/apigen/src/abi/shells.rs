//! Rust text of a library with another ABI: the functions; and the type of the table through which
//! they call the standard ones.

use super::Abi;
use super::pass::{Pass, pass, standard_type};
use super::table::{entries, stamp};
use crate::shells::ident;
use crate::{Api, Error, Function};
use std::fmt::Write;

/// Helpers of the functions of a library with another ABI.
const USES: &str = "\
use crate::Here;
use crate::handle::{
    Comm, Datatype, Errhandler, File, Group, Info, Message, Op, Request, Session, Win,
};
use crate::status::Status;
use kw_abi_shim::convert::Ints;
use kw_abi_shim::first::{first, refuse};
use kw_abi_shim::functions::functions;
use kw_abi_shim::handle::{HandlePlace, Handles, Kind, V};
use kw_abi_shim::status::{StatusPlace, Statuses};
use kw_abi_shim::text::Bounded;
use kw_abi_shim::{Constants, by_hand, callback, convert, peers};
use std::ffi::{c_int, c_void};

";

/// Rust text, included in a module of a crate that has the ABI as `Here`, and modules `handle` and
/// `status`.
pub fn abi_shells(api: &Api, abi: &Abi) -> Result<String, Error> {
    let mut out = String::from(USES);
    for f in entries(api).filter(|f| f.code || speaks_of_numbers(f)) {
        shell(&mut out, f, abi, api)?;
    }
    for f in abi.of_form("refused") {
        let call = format!("refuse::<Here>(\"{}\", {})", f.name, f.value);
        beyond(&mut out, &f.name, &call);
    }
    for f in abi.of_form("answers") {
        beyond(&mut out, &f.name, &f.value);
    }
    for way in BETWEEN_LANGUAGES {
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn MPI_Status_{way}(from: *const Status, to: *mut Status) \
             -> c_int {{ unsafe {{ by_hand::copy_status::<Here>(from, to) }} }}"
        );
    }
    for f in abi.of_form("symbol") {
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub static {}: usize = {};",
            f.name, f.value
        );
    }
    Ok(out)
}

/// A function beyond MPI.
fn beyond(out: &mut String, name: &str, answer: &str) {
    let _ = writeln!(
        out,
        "#[unsafe(no_mangle)]\npub extern \"C-unwind\" fn {name}() -> c_int {{ {answer} }}"
    );
}

/// Whether a function that returns a value is the same in every ABI: clocks, address arithmetic.
fn speaks_of_numbers(f: &Function) -> bool {
    let numbers = |p: &crate::Param| p.c_type == "MPI_Aint";
    f.returns != "int" && !f.returns.starts_with("MPI_") || f.params.iter().all(numbers)
}

/// Options for a linker that give every function its name for tools, and give functions beyond MPI
/// that are aliases their names.
pub fn abi_aliases(api: &Api, abi: &Abi) -> String {
    let refused = abi.of_form("refused").chain(abi.of_form("answers"));
    let more = refused.map(|f| f.name.clone());
    let all = entries(api).map(|f| f.name.clone()).chain(more);
    let all = all.chain(between_languages(api));
    let same = abi.of_form("same").flat_map(|f| {
        let for_tools = format!("P{}", f.name);
        [
            (for_tools, f.value.clone()),
            (f.name.clone(), f.value.clone()),
        ]
    });
    all.map(|name| (format!("P{name}"), name))
        .chain(same)
        .map(|(name, of)| format!("--defsym={name}={of}\n"))
        .collect()
}

/// The languages between which a status is copied: it is the same in all.
const BETWEEN_LANGUAGES: [&str; 6] = ["c2f", "f2c", "c2f08", "f082c", "f2f08", "f082f"];

/// The functions between C and Fortran, which the standard ABI has for handles under other names.
fn between_languages(api: &Api) -> impl Iterator<Item = String> {
    let statuses = BETWEEN_LANGUAGES.map(|way| format!("MPI_Status_{way}"));
    let handles = api.handles().flat_map(|kind| {
        let name = if kind == "Datatype" { "Type" } else { kind };
        ["c2f", "f2c"].map(|way| format!("MPI_{name}_{way}"))
    });
    statuses.into_iter().chain(handles)
}

/// The type of the standard functions' table, for a module with `Standard`.
pub fn functions_table(api: &Api) -> Result<String, Error> {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "pub const STAMP: u64 = {};\n#[repr(C)]\npub struct Functions {{\n    pub stamp: u64,",
        stamp(api)
    );
    for f in entries(api) {
        let mut params = Vec::new();
        for p in f.fixed_params() {
            params.push(standard_type(p, api)?);
        }
        if f.params.len() > params.len() {
            params.push("...".into());
        }
        let _ = writeln!(
            out,
            "    pub {}: unsafe extern \"C-unwind\" fn({}) -> {},",
            f.name,
            params.join(", "),
            returns(f)
        );
    }
    Ok(out + "}\n")
}

fn returns(f: &Function) -> &str {
    match f.returns.as_str() {
        "int" => "c_int",
        "double" => "f64",
        "MPI_Aint" => "i64",
        _ => "usize",
    }
}

fn shell(out: &mut String, f: &Function, abi: &Abi, api: &Api) -> Result<(), Error> {
    let mut passes: Vec<(String, Pass)> = Vec::new();
    for p in f.fixed_params() {
        passes.push((ident(&p.name), pass(abi, f, p, api)?));
    }
    let takes = passes
        .iter()
        .map(|(n, pass)| format!("{n}: {}", pass.takes));
    let takes: Vec<String> = takes.collect();
    let _ = writeln!(
        out,
        "#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn {}({}) -> {} {{\n    unsafe {{",
        f.name,
        takes.join(", "),
        returns(f)
    );
    match abi.by_hand(f) {
        true => {
            let names: Vec<&str> = passes.iter().map(|(n, _)| n.as_str()).collect();
            let _ = writeln!(
                out,
                "        by_hand::{}::<Here>({})",
                f.name,
                names.join(", ")
            );
        }
        false => body(out, f, abi, &passes),
    }
    out.push_str("    }\n}\n");
    Ok(())
}

/// What a reduction does with the operation of this value, which compares.
fn compared(passes: &[(String, Pass)], value: i64) -> String {
    let arg = |name: &str| passes.iter().find(|(n, _)| n == name).map(|p| &p.1.arg);
    let fields = ["sendbuf", "recvbuf", "datatype", "comm"].map(|n| match arg(n) {
        Some(arg) => format!("{n}: {arg}"),
        None => n.to_string(),
    });
    let root = arg("root").map_or("None".to_string(), |root| format!("Some({root})"));
    format!(
        "        if op as u32 == {value} {{\n            let r = kw_abi_shim::equal::Reduction {{ {}, count: count as i64, root: {root} }};\n            if let Some(outcome) = kw_abi_shim::equal::equal::<Here>(r) {{ return outcome; }}\n        }}\n",
        fields.join(", ")
    )
}

fn body(out: &mut String, f: &Function, abi: &Abi, passes: &[(String, Pass)]) {
    if abi.is_first(f) {
        out.push_str("        first::<Here>();\n");
    }
    if let Some(value) = abi.equal(f) {
        out.push_str(&compared(passes, value));
    }
    let befores = passes.iter().map(|(_, pass)| &pass.before);
    for before in befores.filter(|text| !text.is_empty()) {
        let _ = writeln!(out, "        {before}");
    }
    let args: Vec<&str> = passes.iter().map(|(_, pass)| pass.arg.as_str()).collect();
    let call = format!("(functions().{})({})", f.name, args.join(", "));
    if !f.code {
        let _ = writeln!(out, "        {call}");
        return;
    }
    let _ = writeln!(out, "        let outcome = {call};");
    let afters = passes.iter().map(|(_, pass)| &pass.after);
    for after in afters.filter(|text| !text.is_empty()) {
        let _ = writeln!(out, "        {after}");
    }
    out.push_str("        convert::error_out::<Here>(outcome)\n");
}
