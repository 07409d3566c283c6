//! Writes the man pages (section 3): prototype, parameters, errors, whether it is built.

use crate::{Api, Built, Direction, Function, Param, prototype};
use std::fmt::Write;

/// `(file name, text)` of every page. A twin's page is a reference to its function's page.
pub fn man_pages(api: &Api, built: &Built) -> Vec<(String, String)> {
    api.functions
        .iter()
        .map(|f| {
            let text = match &f.twin_of {
                Some(base) => format!(".so man3/{base}.3\n"),
                None => page(f, api, built),
            };
            (format!("{}.3", f.name), text)
        })
        .collect()
}

fn page(f: &Function, api: &Api, built: &Built) -> String {
    let is_built = !f.code || built.path(f, api).is_some();
    let mut out = String::new();
    let _ = writeln!(out, ".TH {} 3 \"\" Kittiwake \"MPI 5.0\"", f.name);
    let _ = writeln!(out, ".SH NAME\n{} \\- MPI 5.0, {}", f.name, f.chapter);
    let _ = writeln!(
        out,
        ".SH SYNOPSIS\n.nf\n#include <mpi.h>\n\n{};",
        prototype(f, "")
    );
    for twin in api
        .functions
        .iter()
        .filter(|t| t.twin_of.as_deref() == Some(&f.name))
    {
        let _ = writeln!(out, "{};", prototype(twin, ""));
    }
    out.push_str(".fi\n");
    if !f.params.is_empty() {
        out.push_str(".SH PARAMETERS\n");
    }
    for p in f.fixed_params() {
        let _ = writeln!(out, ".TP\n.I {}\n{}", p.name, describe(p));
    }
    let _ = writeln!(out, ".SH RESULT\n{}", result(f));
    let _ = writeln!(out, ".SH STATUS\n{}", status(f, is_built));
    out
}

fn describe(p: &Param) -> String {
    let way = match p.direction {
        Direction::In => "in",
        Direction::Out => "out",
        Direction::InOut => "in and out",
    };
    let mut text = format!("{way}: {}", p.kind.to_ascii_lowercase().replace('_', " "));
    if let Some(length) = &p.length {
        let _ = write!(text, ", {length} elements");
    }
    text
}

fn result(f: &Function) -> &'static str {
    match (f.code, f.is_tool()) {
        (false, _) => "The value; no error is reported.",
        (true, true) => "MPI_SUCCESS or an error code. No error handler is called.",
        (true, false) => {
            "MPI_SUCCESS, or an error code after the error handler of the object was called."
        }
    }
}

fn status(f: &Function, built: bool) -> String {
    let when = if f.always {
        "May be called at any time, also before initialisation and after finalisation."
    } else {
        "May be called between initialisation and finalisation."
    };
    let have = if built {
        "Built."
    } else {
        "Not built yet: it answers MPI_ERR_UNSUPPORTED_OPERATION."
    };
    format!("{have} {when}")
}
