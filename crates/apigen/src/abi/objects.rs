//! Predefined objects of an ABI whose handles are addresses, as Rust text.

use super::{Abi, CONSTANTS, standard};
use crate::api::number;
use crate::{Api, Error};
use std::fmt::Write;

/// Rust text for a module with `Address` and with the macros `objects!`, which makes the symbols,
/// and `kinds!`, which makes a type of each kind from its null handle and the function from
/// Fortran's integers to the standard handles (0 for none). `OBJECTS` has the standard handles and
/// where their objects are, `INTEGERS` their integers in Fortran (-1 for none).
pub(super) fn predefined_objects(api: &Api, abi: &Abi) -> Result<String, Error> {
    let mut out = String::from("objects! {\n");
    for (_, symbol, size) in abi.objects() {
        let _ = writeln!(out, "    {symbol} {size};");
    }
    out.push_str("}\n");
    let of_constants = abi.objects().filter(|(name, ..)| *name != "-");
    let places: Vec<String> = of_constants
        .filter_map(|(name, symbol, _)| {
            let handle = standard(api, name)?;
            Some(format!("({handle}, Address::of(&raw const {symbol}))"))
        })
        .collect();
    let _ = writeln!(
        out,
        "pub static OBJECTS: [(usize, Address); {}] = [{}];",
        places.len(),
        places.join(", ")
    );
    integers(&mut out, api, abi)?;
    Ok(out)
}

fn integers(out: &mut String, api: &Api, abi: &Abi) -> Result<(), Error> {
    let mut of_standard = vec![-1; CONSTANTS];
    for kind in api.handles() {
        let upper = format!("MPI_{}_NULL", kind.to_uppercase());
        let Some(null) = standard(api, &upper) else {
            return Err(Error(format!("{upper} is not a constant")));
        };
        let mut arms = String::new();
        for (name, integer) in integers_of(api, abi, kind) {
            let Some(handle) = standard(api, name) else {
                continue;
            };
            of_standard[handle as usize] = integer;
            let _ = write!(arms, " {integer} => {handle},");
        }
        let small = kind.to_lowercase();
        let _ = writeln!(
            out,
            "fn {small}_of_integer(v: c_int) -> usize {{ match v {{{arms} _ => 0 }} }}\nkinds! {{ {kind} {null} {small}_of_integer }}"
        );
    }
    let cells: Vec<String> = of_standard.iter().map(i64::to_string).collect();
    let _ = writeln!(
        out,
        "pub static INTEGERS: [i16; {CONSTANTS}] = [{}];",
        cells.join(", ")
    );
    Ok(())
}

/// The constants of a kind that are integers in Fortran.
fn integers_of<'a>(api: &'a Api, abi: &'a Abi, kind: &str) -> Vec<(&'a str, i64)> {
    let ty = format!("MPI_{kind}");
    let constants = api.constants.iter().filter(|c| c.c_type == ty);
    let removed = api.removed.iter().filter(|r| r.form == ty);
    let names = constants.map(|c| c.name.as_str());
    names
        .chain(removed.map(|r| r.name.as_str()))
        .filter_map(|name| {
            let fact = abi.of_form("integer").find(|f| f.name == name)?;
            Some((name, number(&fact.value)?))
        })
        .collect()
}
