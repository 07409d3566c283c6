//! Writes the man pages (section 3): the purpose of the function, its parameters, its errors, an
//! example.

use crate::roff::{program, text};
use crate::words::{Summary, Text, Who, Words};
use crate::{
    Api, Built, Direction, Error, Fortran, Function, Interface, Null, Param, fortran_declaration,
    prototype,
};
use std::fmt::Write;

/// Kinds of results of the tool interface that a caller may omit.
const OPTIONAL: &[&str] = &[
    "BIND_TYPE",
    "STRING",
    "STRING_LENGTH",
    "TOOLS_ENUM",
    "TOOL_VAR_VERBOSITY",
    "VARIABLE_SCOPE",
];

/// `(file name, text)` of every page. A twin's page is a reference to its function's page.
pub fn man_pages(
    api: &Api,
    fortran: &Fortran,
    words: &Words,
    built: &Built,
) -> Result<Vec<(String, String)>, Error> {
    let page = |f: &Function| {
        let page = match &f.twin_of {
            Some(base) => format!(".so man3/{base}.3\n"),
            None => page(f, api, fortran, words, built)?,
        };
        Ok((format!("{}.3", f.name), page))
    };
    let old = api.removed_functions.iter();
    let old = old.map(|(f, successor)| Ok((format!("{}.3", f.name), removed(f, successor))));
    api.functions.iter().map(page).chain(old).collect()
}

/// The page of a function that MPI 3.0 removed.
fn removed(f: &Function, successor: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(out, ".TH {} 3 \"\" Kittiwake \"MPI 1.3\"", f.name);
    let _ = writeln!(
        out,
        ".SH NAME\n{} \\- does what {successor} does (removed in MPI 3.0)",
        f.name
    );
    let _ = writeln!(out, ".SH SYNOPSIS\n.nf\n#define MPI1_COMPAT");
    let _ = writeln!(
        out,
        "#include <mpi.h>\n.PP\n{};\n.fi",
        text(&prototype(f, ""))
    );
    let _ = writeln!(
        out,
        ".SH DESCRIPTION\nMPI 3.0 removed this function of MPI-1, and the standard ABI has none of it. Kittiwake keeps it for \
         old codes: it is declared where MPI1_COMPAT is defined before mpi.h is read, or with\n.BR \"mpicc \\-mpi1\" .\nEach use \
         makes the compiler warn.\n.PP\nNew programs use {successor}, whose page says what the parameters are and what can \
         go wrong."
    );
    let _ = writeln!(out, ".SH STATUS\nBuilt. {}", when(f));
    let _ = writeln!(
        out,
        ".SH SEE ALSO\n.BR {successor} (3),\n.BR mpicc (1)\n.PP\nMPI 5.0, chapter 17"
    );
    out
}

fn page(
    f: &Function,
    api: &Api,
    fortran: &Fortran,
    words: &Words,
    built: &Built,
) -> Result<String, Error> {
    let summary = words
        .summaries
        .get(&f.name)
        .ok_or_else(|| Error(format!("summaries.tsv has no row for {}", f.name)))?;
    let none = Text::default();
    let long = words.texts.get(&f.name).unwrap_or(&none);
    let is_built = !f.code || built.has(f);
    let mut out = String::new();
    head(&mut out, f, api, summary);
    let in_fortran = fortran_synopsis(&mut out, f, api, fortran);
    description(&mut out, f, summary, long);
    parameters(&mut out, f, words)?;
    let _ = writeln!(out, ".SH RESULT\n{}", result(f));
    if in_fortran && f.code {
        out.push_str("In Fortran it comes in ierror, which may be left out with mpi_f08.\n");
    }
    errors(&mut out, f, summary, words)?;
    mistakes(&mut out, long);
    if !long.example.is_empty() {
        let _ = writeln!(out, ".SH EXAMPLE\n.EX\n{}.EE", program(&long.example));
    }
    let _ = writeln!(out, ".SH STATUS\n{}", status(f, summary, is_built));
    see(&mut out, summary);
    Ok(out)
}

/// NAME and SYNOPSIS, with the function's twin.
fn head(out: &mut String, f: &Function, api: &Api, summary: &Summary) {
    let twin = twin(f, api);
    let name = twin.map_or(f.name.clone(), |t| format!("{}, {}", f.name, t.name));
    let _ = writeln!(out, ".TH {} 3 \"\" Kittiwake \"MPI 5.0\"", f.name);
    let _ = writeln!(out, ".SH NAME\n{name} \\- {}", text(&summary.text));
    let _ = writeln!(out, ".SH SYNOPSIS\n.nf\n#include <mpi.h>\n.PP");
    let _ = writeln!(out, "{};", text(&prototype(f, "")));
    if let Some(twin) = twin {
        let _ = writeln!(out, "{};", text(&prototype(twin, "")));
    }
    out.push_str(".fi\n");
}

/// The large-count twin of a function.
fn twin<'a>(f: &Function, api: &'a Api) -> Option<&'a Function> {
    let twin = |t: &&Function| t.twin_of.as_deref() == Some(&f.name);
    api.functions.iter().find(twin)
}

/// The rest of SYNOPSIS: Fortran's interfaces of the function, if it has any.
fn fortran_synopsis(out: &mut String, f: &Function, api: &Api, fortran: &Fortran) -> bool {
    let mut any = false;
    for (way, first) in [
        (Interface::F08, "use mpi_f08"),
        (Interface::MpifH, "use mpi   ! or: include 'mpif.h'"),
    ] {
        let Some(lines) = fortran_declaration(api, fortran, f, way) else {
            continue;
        };
        any = true;
        let _ = writeln!(out, ".PP\n.nf\n{}", text(first));
        for (i, line) in lines.iter().enumerate() {
            let indent = if i == 0 { "" } else { "    " };
            let _ = writeln!(out, "{indent}{}", text(line));
        }
        out.push_str(".fi\n");
    }
    let wider = twin(f, api).map(|twin| wider(f, twin)).unwrap_or_default();
    if any && !wider.is_empty() {
        let _ = writeln!(
            out,
            ".PP\nWith mpi_f08, {} may also be integer(kind=MPI_COUNT_KIND).",
            listed(&wider)
        );
    }
    any
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// The parameters that are wider in the large-count twin.
fn wider<'a>(f: &Function, twin: &'a Function) -> Vec<&'a str> {
    let same = |p: &&Param| {
        let own = f.params.iter().find(|q| q.name == p.name);
        own.is_none_or(|q| q.c_type == p.c_type)
    };
    let other = twin.params.iter().filter(|p| !same(p));
    other.map(|p| p.name.as_str()).collect()
}

fn description(out: &mut String, f: &Function, summary: &Summary, long: &Text) {
    let mut first = summary.text.clone();
    first[..1].make_ascii_uppercase();
    let _ = writeln!(out, ".SH DESCRIPTION\n{}.", text(&first));
    let family = [request(f), who(f, summary)];
    let more = family.into_iter().flatten().chain(long.details.clone());
    for paragraph in more {
        let _ = writeln!(out, ".PP\n{}", text(&paragraph));
    }
}

/// Requirements of every call that returns a request.
fn request(f: &Function) -> Option<String> {
    let gives = |p: &Param| p.kind == "REQUEST" && p.direction == Direction::Out;
    if !f.params.iter().any(gives) || !f.chapter_has_operations() {
        return None;
    }
    let sentence = if f.name.ends_with("_init") {
        "Nothing is communicated yet: MPI_Start starts the operation, as often as wanted, and MPI_Wait or MPI_Test \
         completes each start. MPI_Request_free ends it. The arguments stay in use until then."
    } else {
        "The operation is not complete when the call returns: until MPI_Wait, MPI_Test or one of their relatives has \
         completed the request, do not change what is sent and do not touch what is received."
    };
    Some(sentence.to_string())
}

fn who(f: &Function, summary: &Summary) -> Option<String> {
    let over = |p: &&Param| matches!(p.kind.as_str(), "COMMUNICATOR" | "WINDOW" | "FILE");
    let reads = |p: &&Param| p.direction != Direction::Out;
    match summary.who {
        Who::Named => None,
        Who::Local => Some("It is local: it waits for no other process.".into()),
        Who::Collective => Some(match f.params.iter().filter(reads).find(over) {
            Some(p) => format!(
                "It is collective: all processes of {} call it, and all of them call the collective operations on it \
                 in the same order.",
                p.name
            ),
            None => "It is collective: all processes that are concerned call it.".into(),
        }),
    }
}

fn parameters(out: &mut String, f: &Function, words: &Words) -> Result<(), Error> {
    if f.fixed_params().next().is_some() {
        out.push_str(".SH PARAMETERS\n");
    }
    for p in f.fixed_params() {
        let meaning = &words.kind(p)?.meaning;
        let _ = writeln!(out, ".TP\n.I {}\n{}", p.name, text(&describe(p, meaning)));
    }
    Ok(())
}

fn describe(p: &Param, meaning: &str) -> String {
    let way = match p.direction {
        Direction::In => "In",
        Direction::Out => "Out",
        Direction::InOut => "In and out",
    };
    let array = match (&p.length, p.is_array()) {
        (Some(length), true) => format!("an array of {length} entries, each "),
        (None, true) => "an array, each entry ".to_string(),
        _ => String::new(),
    };
    let null = match (p.null, p.kind.as_str()) {
        (Null::Yes, "STATUS") if p.name.starts_with("array") => {
            "; MPI_STATUSES_IGNORE when they are not wanted"
        }
        (Null::Yes, "STATUS") => "; MPI_STATUS_IGNORE when it is not wanted",
        (Null::Yes, "ERROR_CODE") => "; MPI_ERRCODES_IGNORE when they are not wanted",
        (Null::Yes, kind) if p.direction != Direction::In && OPTIONAL.contains(&kind) => {
            "; may be NULL when it is not wanted"
        }
        _ => "",
    };
    format!("{way}: {array}{meaning}{null}.")
}

fn result(f: &Function) -> &'static str {
    match (f.code, f.is_tool()) {
        (false, _) => "The value; no error is reported.",
        (true, true) => "MPI_SUCCESS or an error code. No error handler is called.",
        (true, false) => {
            "MPI_SUCCESS, or an error code after the error handler of the object was called. The error handler that is \
             there at first ends the job; with MPI_ERRORS_RETURN the code comes back."
        }
    }
}

fn errors(out: &mut String, f: &Function, summary: &Summary, words: &Words) -> Result<(), Error> {
    let mut classes: Vec<&str> = Vec::new();
    for p in f.fixed_params() {
        let kind = words.kind(p)?.error.as_deref();
        match (p.direction, p.null) {
            (Direction::Out, _) if p.kind == "BUFFER" => classes.extend(kind),
            (Direction::Out, Null::No) => classes.push("MPI_ERR_ARG"),
            (Direction::Out, _) => {}
            _ => classes.extend(kind),
        }
    }
    if f.is_tool() {
        classes.retain(|c| c.starts_with("MPI_T_"));
    }
    classes.extend(summary.errors.iter().map(String::as_str));
    if f.code && !classes.is_empty() {
        out.push_str(".SH ERRORS\nThese classes can come:\n");
        for (i, class) in classes.iter().enumerate() {
            if !classes[..i].contains(class) {
                let meaning = words.errors.get(*class);
                let meaning =
                    meaning.ok_or_else(|| Error(format!("errors.tsv has no row for {class}")))?;
                let _ = writeln!(out, ".TP\n.B {class}\n{}.", text(&capital(meaning)));
            }
        }
    }
    Ok(())
}

fn capital(sentence: &str) -> String {
    let mut sentence = sentence.to_string();
    sentence[..1].make_ascii_uppercase();
    sentence
}

fn mistakes(out: &mut String, long: &Text) {
    if !long.mistakes.is_empty() {
        out.push_str(".SH MISTAKES\nWhat goes wrong most often:\n");
    }
    for mistake in &long.mistakes {
        let _ = writeln!(out, ".IP \\(bu 2\n{}", text(mistake));
    }
}

fn status(f: &Function, summary: &Summary, built: bool) -> String {
    let have = if built {
        "Built."
    } else {
        "Not built yet: it answers MPI_ERR_UNSUPPORTED_OPERATION."
    };
    let old = match summary.see.first() {
        Some(successor) if f.chapter == "deprecated" => {
            format!(" Deprecated: new programs use {successor}.")
        }
        _ => String::new(),
    };
    format!("{have}{old} {}", when(f))
}

/// Times when it may be called.
fn when(f: &Function) -> &'static str {
    match f.name.as_str() {
        "MPI_Init" | "MPI_Init_thread" => {
            "May be called once in a process, by one of the two, and not after MPI_Finalize; a program that wants MPI \
             again and again opens sessions."
        }
        "MPI_T_init_thread" => "May be called at any time, as often as wanted.",
        _ if f.is_tool() => {
            "May be called between MPI_T_init_thread and MPI_T_finalize, also before MPI is initialised and after it was \
             finalised."
        }
        _ if f.always => {
            "May be called at any time, also before initialisation and after finalisation."
        }
        _ => "May be called between initialisation and finalisation.",
    }
}

fn see(out: &mut String, summary: &Summary) {
    out.push_str(".SH SEE ALSO\n");
    for name in &summary.see {
        let _ = writeln!(out, ".BR {name} (3),");
    }
    let _ = writeln!(
        out,
        ".BR kittiwake (7)\n.PP\nMPI 5.0, section {}",
        summary.paragraph
    );
}
