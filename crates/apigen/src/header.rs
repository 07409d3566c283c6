//! Writes `mpi.h`: the C header of the standard ABI (MPI 5.0, chapter 20), for C99 and C++.

use crate::removed::removed;
use crate::{Api, Constant, Function, Param, Type, Words};
use std::fmt::Write;

const HEAD: &str = "\
/* mpi.h: the C interface of MPI 5.0 in the standard ABI. Generated from api/ by Kittiwake's apigen; do not edit. */
#ifndef KITTIWAKE_MPI_H
#define KITTIWAKE_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";

const DEPRECATED: &str = "
/* With KITTIWAKE_WARN_DEPRECATED defined the compiler warns of each use of what MPI 5.0 deprecates, and names the successor. */
#if defined(KITTIWAKE_WARN_DEPRECATED) && (defined(__GNUC__) || defined(__clang__))
#define KITTIWAKE_DEPRECATED(successor) __attribute__((deprecated(\"MPI 5.0 deprecates it; use \" successor)))
#else
#define KITTIWAKE_DEPRECATED(successor)
#endif
";

const TAIL: &str = "\
#ifdef __cplusplus
}
#endif

#endif
";

/// Conversions of a status: name, from, to.
const STATUSES: [(&str, &str, &str); 6] = [
    ("c2f", "MPI_Status", "MPI_Fint"),
    ("f2c", "MPI_Fint", "MPI_Status"),
    ("c2f08", "MPI_Status", "MPI_F08_status"),
    ("f082c", "MPI_F08_status", "MPI_Status"),
    ("f2f08", "MPI_Fint", "MPI_F08_status"),
    ("f082f", "MPI_F08_status", "MPI_Fint"),
];

/// The whole header.
pub fn header(api: &Api, words: &Words) -> String {
    let mut out = String::from(HEAD);
    out.push_str(DEPRECATED);
    section(&mut out, "Versions and sizes");
    for c in api.constants.iter().filter(|c| c.c_type == "macro") {
        let _ = writeln!(out, "#define {:<34} {}", c.name, c.value);
    }
    types(api, &mut out);
    constants(api, &mut out);
    for prefix in ["", "P"] {
        section(
            &mut out,
            if prefix.is_empty() {
                "Functions"
            } else {
                "Functions for tools"
            },
        );
        for f in &api.functions {
            let _ = writeln!(
                out,
                "{}{};",
                prototype(f, prefix),
                warning(f, words, prefix)
            );
        }
    }
    fortran(api, &mut out);
    removed(api, &mut out);
    out.push('\n');
    out.push_str(TAIL);
    out
}

/// Attribute that makes the compiler warn of a deprecated function, if the user requests it.
fn warning(f: &Function, words: &Words, prefix: &str) -> String {
    let of = |f: &Function| words.summaries.get(&f.name)?.see.first();
    match of(f).filter(|_| f.chapter == "deprecated") {
        Some(successor) => format!("\n    KITTIWAKE_DEPRECATED(\"{prefix}{successor}\")"),
        None => String::new(),
    }
}

/// The C prototype, without the semicolon; `prefix` is empty or `P`.
pub fn prototype(f: &Function, prefix: &str) -> String {
    let params: Vec<String> = f.params.iter().map(declare).collect();
    let params = if params.is_empty() {
        "void".to_string()
    } else {
        params.join(", ")
    };
    format!("{} {prefix}{}({params})", f.returns, f.name)
}

fn declare(p: &Param) -> String {
    if p.c_type == "..." {
        return "...".to_string();
    }
    match p.c_type.find('[') {
        Some(at) => format!("{} {}{}", &p.c_type[..at], p.name, &p.c_type[at..]).replace("* ", "*"),
        None if p.c_type.ends_with('*') => format!("{}{}", p.c_type, p.name),
        None => format!("{} {}", p.c_type, p.name),
    }
}

fn section(out: &mut String, title: &str) {
    let _ = writeln!(out, "\n/* {title} */");
}

fn types(api: &Api, out: &mut String) {
    section(out, "Types");
    for t in &api.types {
        let _ = writeln!(out, "{}", typedef(t));
    }
}

fn typedef(t: &Type) -> String {
    let (name, def) = (&t.name, &t.definition);
    match t.form.as_str() {
        "handle" => format!("typedef struct {def} *{name};"),
        "struct" => format!("typedef struct {name} {{ {def} }} {name};"),
        "enum" => format!(
            "typedef enum {name} {{ {} }} {name};",
            def.replace('=', " = ").replace(" M", ", M")
        ),
        "function" => match def.split_once(' ') {
            Some((returns, params)) => format!("typedef {returns} ({name}){params};"),
            None => format!("typedef {def} {name};"),
        },
        _ => format!("typedef {def} {name};"),
    }
}

fn constants(api: &Api, out: &mut String) {
    section(out, "Constants");
    let mut in_enum = false;
    for c in api.constants.iter().filter(|c| c.c_type != "macro") {
        let enumerator = c.c_type == "int";
        if enumerator != in_enum {
            let _ = writeln!(out, "{}", if enumerator { "enum {" } else { "};" });
            in_enum = enumerator;
        }
        let _ = writeln!(out, "{}", constant(c));
    }
    if in_enum {
        out.push_str("};\n");
    }
}

fn constant(c: &Constant) -> String {
    match c.c_type.as_str() {
        "int" => format!("    {:<34} = {},", c.name, c.value),
        "alias" => format!("#define {:<34} {}", c.name, c.value),
        ty => format!(
            "#define {:<34} (({}){})",
            c.name,
            ty.replace(" *", "*"),
            c.value
        ),
    }
}

fn fortran(api: &Api, out: &mut String) {
    section(
        out,
        "Statuses and handles between C and Fortran, under their names before MPI 5.0",
    );
    out.push_str("typedef MPI_Status MPI_F08_status;\n");
    for prefix in ["", "P"] {
        for (name, from, to) in STATUSES {
            let _ = writeln!(
                out,
                "int {prefix}MPI_Status_{name}(const {from} *from, {to} *to);"
            );
        }
        for ty in api.handles() {
            let name = if ty == "Datatype" { "Type" } else { ty };
            let _ = writeln!(out, "MPI_Fint {prefix}MPI_{name}_c2f(MPI_{ty} handle);");
            let _ = writeln!(out, "MPI_{ty} {prefix}MPI_{name}_f2c(MPI_Fint value);");
        }
    }
}
