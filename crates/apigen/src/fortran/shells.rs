//! Rust text of the procedures of `libmpifort_abi`, and of the C functions that they call.

use super::fortran_abi::FortranAbi;
use super::names::linker;
use super::pass::{Pass, c_type, ident, pass};
use super::{Binding, Fortran, is_choice};
use crate::{Direction, Error, Param};
use std::fmt::Write;

/// Rust text, included in a module of `kw-fortran` that has all its conversions in scope.
pub fn fortran_shells(abi: &FortranAbi, fortran: &Fortran) -> Result<String, Error> {
    let api = abi.api;
    let mut out = String::from("unsafe extern \"C-unwind\" {\n");
    for b in fortran.functions(api).filter(|b| b.f.code) {
        let mut params = Vec::new();
        for p in b.f.fixed_params() {
            params.push(format!("{}: {}", ident(p), c_type(p, api)?));
        }
        let more = if b.f.params.iter().any(|p| p.c_type == "...") {
            ", ..."
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "    pub fn {}({}{more}) -> c_int;",
            b.f.name,
            params.join(", ")
        );
    }
    out.push_str("}\n");
    for b in fortran.functions(api).filter(|b| !b.by_hand) {
        shell(&mut out, &b, abi)?;
    }
    Ok(out)
}

fn shell(out: &mut String, b: &Binding, abi: &FortranAbi) -> Result<(), Error> {
    let mut passes = Vec::new();
    for p in b.f.fixed_params() {
        passes.push((p, pass(b.f, p, abi.api)?));
    }
    let (defined, f08) = match abi.by_address() {
        true => (b.defined_by_address(), b.f08_by_address()),
        false => (b.defined(), linker(&b.specific_f08())),
    };
    if defined.is_empty() {
        return Ok(());
    }
    if !b.has_two_forms() {
        let name = &defined[0];
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn {name}({}) {{",
            takes(&passes, None, false)
        );
        body(out, b, &passes, true)?;
        out.push_str("}\n");
        return Ok(());
    }
    let inner = b.small();
    generic(out, b, &passes, &inner)?;
    for name in defined {
        let descriptors = name == f08 && b.has_choice();
        let form = match (descriptors, name == f08) {
            (true, _) => "Descriptor",
            (false, true) => "Pointer",
            (false, false) => "Address",
        };
        let described = descriptors && abi.descriptor() == "c";
        let given: Vec<String> = given(&passes, described);
        let _ = writeln!(
            out,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C-unwind\" fn {name}({}) {{ unsafe {{ {inner}::<{form}>({}) }} }}",
            takes(&passes, Some(form), described),
            given.join(", ")
        );
    }
    Ok(())
}

/// A function that is generic over the form of buffers. Most buffers are contiguous and most
/// handles constants; then nothing must be kept across C's function. All other cases are in a
/// function of their own.
fn generic(
    out: &mut String,
    b: &Binding,
    passes: &[(&Param, Pass)],
    inner: &str,
) -> Result<(), Error> {
    let takes = takes(passes, None, false);
    let Some(direct) = direct(b, passes) else {
        let _ = writeln!(
            out,
            "#[inline(always)]\nunsafe fn {inner}<B: Choice>({takes}) {{"
        );
        body(out, b, passes, true)?;
        out.push_str("}\n");
        return Ok(());
    };
    let _ = writeln!(
        out,
        "#[inline(never)]\nunsafe fn {inner}_any<B: Choice>({takes}) {{"
    );
    body(out, b, passes, true)?;
    let given = given(passes, false).join(", ");
    let _ = writeln!(
        out,
        "}}\n#[inline(always)]\nunsafe fn {inner}<B: Choice>({takes}) {{\n    if !unsafe {{ {direct} }} {{ return unsafe {{ {inner}_any::<B>({given}) }} }}"
    );
    body(out, b, passes, false)?;
    out.push_str("}\n");
    Ok(())
}

/// The condition on which the arguments go to C unchanged; none if some never do.
fn direct(b: &Binding, passes: &[(&Param, Pass)]) -> Option<String> {
    let converted =
        |(p, pass): &(&Param, Pass)| pass.text || pass.arg == format!("{}_.as_c()", ident(p));
    if !has_sections(b, passes) || passes.iter().any(converted) {
        return None;
    }
    let conditions = passes.iter().filter_map(|(p, pass)| {
        let n = ident(p);
        match pass.before.split_once("read::<") {
            _ if is_choice(p) => Some(format!("B::is_direct({n})")),
            Some((_, rest)) => Some(format!("is_direct::<{}>({n})", rest.split_once('>')?.0)),
            None => None,
        }
    });
    Some(conditions.collect::<Vec<_>>().join(" && "))
}

/// The parameters of a procedure: arguments, ierror, lengths of texts. C's descriptors of choice
/// buffers imply descriptors of texts (`described`), which contain their length.
fn takes(passes: &[(&Param, Pass)], form: Option<&str>, described: bool) -> String {
    let mut params = Vec::new();
    let mut lengths = Vec::new();
    for (p, pass) in passes {
        let Some(ty) = &pass.takes else { continue };
        let ty = match form {
            _ if described && pass.text => "*mut Descriptor".to_string(),
            Some(form) => ty.replace("*mut B", &format!("*mut {form}")),
            None => ty.clone(),
        };
        params.push(format!("{}: {ty}", ident(p)));
        if pass.text && !described {
            lengths.push(format!("{}_len: Length", ident(p)));
        }
    }
    params.push("ierror: *mut c_int".into());
    params.extend(lengths);
    params.join(", ")
}

fn given(passes: &[(&Param, Pass)], described: bool) -> Vec<String> {
    let mut args = Vec::new();
    let mut lengths = Vec::new();
    for (p, pass) in passes.iter().filter(|(_, pass)| pass.takes.is_some()) {
        let n = ident(p);
        if pass.text && described {
            args.push(format!("(*{n}).base.cast()"));
            lengths.push(format!("(*{n}).element as Length"));
        } else {
            args.push(n.clone());
            if pass.text {
                lengths.push(format!("{n}_len"));
            }
        }
    }
    args.push("ierror".into());
    args.extend(lengths);
    args
}

/// The conversions and C's function; `any`: also for sections that are not contiguous.
fn body(out: &mut String, b: &Binding, passes: &[(&Param, Pass)], any: bool) -> Result<(), Error> {
    out.push_str("    unsafe {\n");
    let mut args: Vec<String> = Vec::new();
    for (_, pass) in passes {
        if !pass.before.is_empty() {
            let _ = writeln!(out, "        {}", pass.before);
        }
        args.push(pass.arg.clone());
    }
    let sections = any && has_sections(b, passes);
    if sections {
        take_sections(out, b, passes, &mut args);
    }
    let _ = writeln!(out, "        let code = {}({});", b.f.name, args.join(", "));
    if is_begin(b.f) {
        out.push_str("        split::begun(code, fh_);\n");
    }
    if sections {
        let _ = match b.f.params.iter().find(|p| is_request(p)) {
            _ if is_begin(b.f) => writeln!(out, "        sections.begun(code, fh_);"),
            Some(p) => writeln!(out, "        sections.done(code, Some({}_));", ident(p)),
            None => writeln!(out, "        sections.done(code, None);"),
        };
    }
    if b.f.name.ends_with("_end") {
        out.push_str("        split::ended(code, fh_);\n");
    }
    for (_, pass) in passes.iter().filter(|(_, pass)| !pass.after.is_empty()) {
        let _ = writeln!(out, "        {}", pass.after);
    }
    out.push_str("        answer(ierror, code)\n    }\n");
    Ok(())
}

/// Whether it begins a split collective access to a file, whose `_end` function ends it.
fn is_begin(f: &crate::Function) -> bool {
    f.name.trim_end_matches("_c").ends_with("_begin")
}

/// The request that an operation returns.
fn is_request(p: &Param) -> bool {
    p.c_type == "MPI_Request *" && p.direction == Direction::Out
}

/// Arrays of datatypes, which C uses while an operation with a request is in flight.
fn kept_arrays(b: &Binding, passes: &[(&Param, Pass)]) -> Vec<String> {
    if !b.f.params.iter().any(is_request) {
        return Vec::new();
    }
    passes
        .iter()
        .filter(|(p, pass)| pass.arg == format!("{}_.as_c()", ident(p)) && p.kind == "DATATYPE")
        .map(|(p, _)| ident(p))
        .collect()
}

/// Whether array sections may be passed that are not contiguous, or arrays have to be kept.
fn has_sections(b: &Binding, passes: &[(&Param, Pass)]) -> bool {
    b.has_choice() && (!base_only(b) || !kept_arrays(b, passes).is_empty())
}

/// Handling of array sections that are not contiguous.
fn take_sections(out: &mut String, b: &Binding, passes: &[(&Param, Pass)], args: &mut [String]) {
    let f = b.f;
    let way = match f.params.iter().any(is_request) {
        false if is_begin(f) => "Way::Split",
        false if f.chapter == "one-sided" => "Way::OneSided",
        false => "Way::Blocking",
        true if f.name.contains("_init") => "Way::Persistent",
        true => "Way::Nonblocking",
    };
    let _ = writeln!(out, "        let mut sections = Sections::new({way});");
    for (at, (p, _)) in passes.iter().enumerate().filter(|(_, (p, _))| is_choice(p)) {
        let n = ident(p);
        let direction = match p.direction {
            Direction::In => "In",
            Direction::Out => "Out",
            Direction::InOut => "InOut",
        };
        let how = match message(f, passes, at) {
            Some((count, datatype)) => {
                let (c, d) = (ident(passes[count].0), ident(passes[datatype].0));
                let _ = writeln!(out, "        let mut {c}_n = *{c};");
                args[count] = format!("{c}_n");
                match f.params.iter().any(|p| p.name == "partitions") {
                    true => {
                        format!("sections.partitions({n}, *partitions, &mut {c}_n, &mut {d}_)")
                    }
                    false => format!(
                        "sections.message({n}, Direction::{direction}, &mut {n}_, &mut {c}_n, &mut {d}_)"
                    ),
                }
            }
            None => format!("sections.copy({n}, Direction::{direction}, &mut {n}_)"),
        };
        let _ = writeln!(
            out,
            "        if B::is_scattered({n}) && let Err(class) = {how} {{ return fail(ierror, class); }}"
        );
    }
    for n in kept_arrays(b, passes) {
        let _ = writeln!(out, "        sections.keep(&mut {n}_);");
    }
}

/// Whether only the address of the buffers matters: memory that is attached or freed, windows,
/// single elements of other windows, the end of an access that got them earlier.
fn base_only(b: &Binding) -> bool {
    let f = b.f;
    let address = [
        "attach",
        "detach",
        "Get_address",
        "Free_mem",
        "Win_create",
        "Fetch_and_op",
        "Compare_and_swap",
        "_end",
    ];
    address.iter().any(|word| f.name.contains(word))
}

/// Positions of the count and the datatype that describe the whole buffer at `at`. In collectives
/// except MPI_Bcast the buffer holds blocks of several ranks, or operands of operations that accept
/// no derived datatypes.
fn message(f: &crate::Function, passes: &[(&Param, Pass)], at: usize) -> Option<(usize, usize)> {
    let chapters = [
        "point-to-point",
        "partitioned",
        "io",
        "one-sided",
        "datatypes",
    ];
    if !chapters.contains(&f.chapter.as_str()) && !f.name.to_ascii_lowercase().contains("bcast") {
        return None;
    }
    let mut count = None;
    for i in at + 1..passes.len() {
        let p = passes[i].0;
        match p.kind.as_str() {
            "BUFFER" => return None,
            "DATATYPE" => return count.map(|c| (c, i)),
            kind if kind.contains("NUM_ELEM") && !p.c_type.contains(['[', '*']) => count = Some(i),
            _ => {}
        }
    }
    None
}
