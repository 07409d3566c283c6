//! `mpif.h`, valid in fixed and in free form: no line is continued, and none is longer than 72
//! columns.

use super::constants::{ADDRESSES, Value, values};
use super::fortran_abi::FortranAbi;
use super::interface::value;
use super::{Fortran, callbacks};
use std::fmt::Write;

const HEAD: &str = "\
! mpif.h: MPI 5.0 for Fortran 77 and later, in fixed and free form.
! Generated from api/ by Kittiwake's apigen; do not edit.
";

/// The whole file, for the standard ABI or another.
pub fn include_file(abi: &FortranAbi, fortran: &Fortran) -> String {
    let mut out = String::from(HEAD);
    let mut line = |text: String| {
        let _ = writeln!(out, "      {text}");
    };
    let mut constant = |ty: &str, name: &str, value: String| {
        line(format!("{ty} {name}"));
        line(format!("parameter ({name}={value})"));
    };
    for (name, value) in abi.own() {
        constant("integer", name, value.to_string());
    }
    constant("logical", "MPI_SUBARRAYS_SUPPORTED", ".false.".into());
    constant(
        "logical",
        "MPI_ASYNC_PROTECTS_NONBLOCKING",
        ".false.".into(),
    );
    for (name, value) in values(abi) {
        match value {
            Value::Integer(v) | Value::Handle(_, v) => constant("integer", &name, v.to_string()),
            Value::Offset(v) => constant("integer(kind=8)", &name, v.to_string()),
        }
    }
    let blocks = abi.blocks();
    let has = |name: &str| blocks.iter().any(|block| block.members.contains(&name));
    for (name, ty, _, dimension) in ADDRESSES.into_iter().filter(|a| has(a.0)) {
        line(format!("{ty} {name}{dimension}"));
    }
    for block in &blocks {
        line(format!(
            "common /{}/ {}",
            block.name,
            block.members.join(",")
        ));
        line(format!("save /{}/", block.name));
    }
    for (name, _) in callbacks::predefined() {
        line(format!("external {name}"));
    }
    for b in fortran.functions(abi.api).filter(|b| !b.f.code) {
        for prefix in ["", "P"] {
            line(format!("external {prefix}{}", b.f.name));
            line(format!("{} {prefix}{}", value(b.f), b.f.name));
        }
    }
    out
}
