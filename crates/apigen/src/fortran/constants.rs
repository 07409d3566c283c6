//! Constants in Fortran: those of C, those with an address, and those that only Fortran has.

use super::fortran_abi::FortranAbi;
use crate::{Api, Constant};

/// A constant with an address: name; the type in mpif.h and module mpi; its type in mpi_f08 if it
/// differs; dimension. Each is a separate common block, and the library compares addresses (MPI
/// 5.0, 2.5.4).
pub const ADDRESSES: [(&str, &str, Option<&str>, &str); 10] = [
    ("MPI_BOTTOM", "integer", None, ""),
    ("MPI_IN_PLACE", "integer", None, ""),
    ("MPI_BUFFER_AUTOMATIC", "integer", None, ""),
    (
        "MPI_STATUS_IGNORE",
        "integer",
        Some("type(MPI_Status)"),
        "(MPI_STATUS_SIZE)",
    ),
    (
        "MPI_STATUSES_IGNORE",
        "integer",
        Some("type(MPI_Status)"),
        "(MPI_STATUS_SIZE,1)",
    ),
    ("MPI_ERRCODES_IGNORE", "integer", None, "(1)"),
    ("MPI_UNWEIGHTED", "integer", None, "(1)"),
    ("MPI_WEIGHTS_EMPTY", "integer", None, "(1)"),
    ("MPI_ARGV_NULL", "character(len=1)", None, "(1)"),
    ("MPI_ARGVS_NULL", "character(len=1)", None, "(1,1)"),
];

/// Constants that only Fortran has, and their values.
pub const OWN: [(&str, i64); 8] = [
    ("MPI_ADDRESS_KIND", 8),
    ("MPI_COUNT_KIND", 8),
    ("MPI_OFFSET_KIND", 8),
    ("MPI_INTEGER_KIND", 4),
    ("MPI_STATUS_SIZE", 8),
    ("MPI_SOURCE", 1),
    ("MPI_TAG", 2),
    ("MPI_ERROR", 3),
];

/// A constant with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A default integer.
    Integer(i64),
    /// An integer of kind MPI_OFFSET_KIND.
    Offset(i64),
    /// A handle: its type without `MPI_`, and its integer.
    Handle(String, i64),
}

/// The constants with a value, without those of the tool interface.
pub fn values(abi: &FortranAbi) -> Vec<(String, Value)> {
    let mut out: Vec<(String, Value)> = Vec::new();
    for c in abi.api.constants.iter().filter(|c| is_fortran(c)) {
        let value = if c.c_type == "alias" {
            out.iter()
                .find(|(name, _)| *name == c.value)
                .map(|(_, v)| v.clone())
        } else {
            abi.number(c).and_then(|v| of_type(c, v, abi.api))
        };
        if let Some(value) = value {
            out.push((c.name.clone(), value));
        }
    }
    out
}

fn is_fortran(c: &Constant) -> bool {
    !c.name.starts_with("MPI_T_") && !c.name.starts_with("MPI_F_") && !c.c_type.ends_with('*')
}

fn of_type(c: &Constant, value: i64, api: &Api) -> Option<Value> {
    match c.c_type.as_str() {
        // a text in Fortran has no final zero
        "macro" if c.name.starts_with("MPI_MAX_") => Some(Value::Integer(value - 1)),
        "macro" | "int" => Some(Value::Integer(value)),
        "MPI_Offset" => Some(Value::Offset(value)),
        ty if api.form(ty) == Some("handle") => Some(Value::Handle(ty[4..].to_string(), value)),
        _ => None,
    }
}
