//! Writes the C shells of `kw-abi`: for each function that returns an error code, `MPI_X` and
//! `PMPI_X`.
//!
//! The text is included in a module of `kw-abi` that has in scope: the raw C types, the handle
//! types of `kw_objects`, and `run`, `run_always`, `run_tool`, `arg`, `not_null`, `not_null_when`,
//! `unbuilt`, `Scope`, and all of `kw_mpi::forms`. Both names of a function have separate
//! definitions, so that a tool may replace `MPI_X` and still call `PMPI_X`.

use crate::built::rust_name;
use crate::forms::Use;
use crate::{Api, Built, Error, Function, Null, Param};
use std::fmt::Write;

/// Rust text of all shells.
pub fn shells(api: &Api, built: &Built) -> Result<String, Error> {
    let mut out = String::new();
    for f in api.with_removed().filter(|f| f.code) {
        shell(&mut out, f, api, built)?;
    }
    Ok(out)
}

fn shell(out: &mut String, f: &Function, api: &Api, built: &Built) -> Result<(), Error> {
    let mut params = Vec::new();
    for p in f.fixed_params() {
        params.push(format!("{}: {}", ident(&p.name), raw(p, api, f)?));
    }
    let (params, passed) = (params.join(", "), names(f).join(", "));
    let inner = format!("shell_{}", f.rust_name());
    let inline = if f.hot { "always" } else { "never" };
    let _ = writeln!(
        out,
        "#[inline({inline})]\nunsafe fn {inner}({params}) -> c_int {{"
    );
    let _ = writeln!(
        out,
        "    {}({:?}, {}, move |mpi| {{",
        runner(f),
        f.name,
        scope(f)
    );
    match built.using(f) {
        Some(using) => {
            for p in f.fixed_params() {
                null_check(out, f, p);
            }
            let of = built.crate_of(using.operation);
            let _ = writeln!(out, "        {}", call(&using, of));
        }
        None => {
            let _ = writeln!(out, "        unbuilt()");
        }
    }
    let _ = writeln!(out, "    }})\n}}");
    for prefix in ["", "P"] {
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn {prefix}{}({params}) -> c_int {{\n    unsafe {{ {inner}({passed}) }}\n}}",
            f.name
        );
    }
    Ok(())
}

/// The call of an operation's Rust function: the arguments that its forms share, then the form.
fn call(using: &Use, of: &str) -> String {
    // SAFETY comments are for hand-written text; the promise is in the introduction of
    // `kw_sys::args`.
    let arg = |p: &&Param| format!("unsafe {{ arg({}) }}", ident(&p.name));
    let mut args = vec!["mpi".to_string()];
    args.extend(using.shared.iter().map(arg));
    args.extend(using.mode.map(|mode| format!("Mode::{mode}")));
    if let Some((way, own)) = &using.way {
        let own: String = own.iter().map(|p| arg(p) + ", ").collect();
        args.push(format!("{way}(({own}))"));
    }
    let rust = rust_name(using.operation);
    format!("kw_{of}::built::{rust}({})", args.join(", "))
}

fn runner(f: &Function) -> &'static str {
    match (f.is_tool(), f.always) {
        (true, _) => "run_tool",
        (false, true) => "run_always",
        (false, false) => "run",
    }
}

/// The object whose error handler is called: the first communicator, window, file or session among
/// the arguments, or the object whose handler a new communicator or session gets (MPI 5.0, 7.4.2
/// and 11.3.1). An error without an open file, including that of MPI_File_open, belongs to
/// MPI_FILE_NULL (14.7).
fn scope(f: &Function) -> String {
    if f.chapter == "io" && !f.fixed_params().any(|p| p.c_type == "MPI_File") {
        return "Scope::File(FileH::NULL)".into();
    }
    for p in f.fixed_params() {
        for (c, variant) in [
            ("MPI_Comm", "Comm"),
            ("MPI_Win", "Win"),
            ("MPI_File", "File"),
            ("MPI_Session", "Session"),
        ] {
            if p.c_type == c {
                return format!("Scope::{variant}({})", ident(&p.name));
            }
        }
    }
    let given = f.fixed_params().find(|p| p.c_type == "MPI_Errhandler");
    if let Some(p) = given {
        for (made, variant) in [("MPI_Comm *", "NewComm"), ("MPI_Session *", "NewSession")] {
            if f.fixed_params().any(|p| p.c_type == made) {
                return format!("Scope::{variant}({})", ident(&p.name));
            }
        }
    }
    "Scope::Call".into()
}

fn null_check(out: &mut String, f: &Function, p: &Param) {
    let name = ident(&p.name);
    match p.null {
        Null::No => {
            let _ = writeln!(out, "        not_null({name} as usize, {:?})?;", p.name);
        }
        Null::Empty => {
            let counted = p
                .length
                .as_ref()
                .filter(|l| f.params.iter().any(|q| q.name == **l));
            if let Some(length) = counted {
                let _ = writeln!(
                    out,
                    "        not_null_when({} as i64, {name} as usize, {:?})?;",
                    ident(length),
                    p.name
                );
            }
        }
        _ => {}
    }
}

fn names(f: &Function) -> Vec<String> {
    f.fixed_params().map(|p| ident(&p.name)).collect()
}

/// A C name as a Rust name that is not a keyword.
pub(crate) fn ident(name: &str) -> String {
    match name {
        "type" | "ref" | "in" | "fn" | "mpi" => format!("{name}_"),
        _ => name.to_string(),
    }
}

/// The raw Rust type of a parameter.
fn raw(p: &Param, api: &Api, f: &Function) -> Result<String, Error> {
    let (constant, rest) = match p.c_type.strip_prefix("const ") {
        Some(rest) => (true, rest),
        None => (false, p.c_type.as_str()),
    };
    let base = rest.split([' ', '[']).next().unwrap_or(rest);
    let depth = rest.matches('*').count() + rest.contains('[') as usize;
    if api.form(base) == Some("function") || depth > 1 {
        return Ok("usize".into());
    }
    let plain = value(base, api).ok_or_else(|| {
        Error(format!(
            "{}: {} has the unknown type {base}",
            f.name, p.name
        ))
    })?;
    Ok(match (depth, constant) {
        (0, _) => plain,
        (_, true) => format!("*const {plain}"),
        (_, false) => format!("*mut {plain}"),
    })
}

fn value(base: &str, api: &Api) -> Option<String> {
    let known = match base {
        "int" => "c_int",
        "char" => "c_char",
        "void" => "c_void",
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64",
        "MPI_Status" => "Status",
        "MPI_Datatype" => "TypeH",
        _ if base.starts_with("MPI_T_") && api.form(base)? == "handle" => "usize",
        _ if api.form(base)? == "enum" => "c_int",
        _ if api.form(base)? == "handle" => {
            return Some(format!("{}H", base.strip_prefix("MPI_")?));
        }
        _ => return None,
    };
    Some(known.to_string())
}
