//! The part of `mpi.h` for codes of MPI-1: what MPI 3.0 removed, when `MPI1_COMPAT` is defined.
//!
//! Each use of it makes the compiler warn, and name the successor. A macro cannot be deprecated, so
//! a handle is defined by an enumerator, which can.

use crate::{Api, Removed, prototype};
use std::fmt::Write;

const HEAD: &str = "
/* What MPI 3.0 removed, for codes of MPI-1 (mpicc -mpi1). The standard ABI has none of it: the functions are Kittiwake's
 * alone, and so are the values of the constants. */
#ifdef MPI1_COMPAT
#if defined(__GNUC__) || defined(__clang__)
#define KITTIWAKE_REMOVED(successor) __attribute__((deprecated(\"MPI 3.0 removed it; use \" successor)))
#else
#define KITTIWAKE_REMOVED(successor)
#endif
";

/// Writes it.
pub(crate) fn removed(api: &Api, out: &mut String) {
    out.push_str(HEAD);
    for r in api.removed.iter().filter(|r| r.form == "type") {
        let (name, is, use_) = (&r.name, &r.definition, &r.successor);
        let _ = writeln!(out, "typedef {is} {name} KITTIWAKE_REMOVED(\"{use_}\");");
    }
    let constants = || api.removed.iter().filter(|r| r.form != "type");
    out.push_str("enum {\n");
    for r in constants() {
        let (name, value, use_) = (enumerator(r), &r.definition, &r.successor);
        let _ = writeln!(out, "    {name} KITTIWAKE_REMOVED(\"{use_}\") = {value},");
    }
    out.push_str("};\n");
    for r in constants().filter(|r| r.form != "int") {
        let _ = writeln!(out, "#define {} (({}){})", r.name, r.form, enumerator(r));
    }
    for prefix in ["", "P"] {
        for (f, successor) in &api.removed_functions {
            let declared = prototype(f, prefix)
                .replace("MPI_Handler_function", "MPI_Comm_errhandler_function");
            let _ = writeln!(
                out,
                "{declared}\n    KITTIWAKE_REMOVED(\"{prefix}{successor}\");"
            );
        }
    }
    out.push_str("#endif\n");
}

/// Source of a constant's value.
fn enumerator(r: &Removed) -> String {
    match r.form.as_str() {
        "int" => r.name.clone(),
        _ => format!("KITTIWAKE_{}", r.name),
    }
}
