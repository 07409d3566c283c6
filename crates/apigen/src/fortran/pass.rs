//! How one argument is passed from Fortran to C and back, as Rust text: by its kind, type and
//! direction.
//!
//! The text calls the conversions of `kw_fortran::convert` and its neighbours.

use super::{by_value, is_argument, is_choice, is_logical};
use crate::{Api, Direction, Error, Function, Param};

/// One argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pass {
    /// Rust type of the Fortran argument; none if only C has it.
    pub takes: Option<String>,
    /// Whether Fortran passes its length after all arguments.
    pub text: bool,
    /// Statements before the call.
    pub before: String,
    /// The C argument.
    pub arg: String,
    /// Statements after the call, in which its error code is `code`.
    pub after: String,
}

impl Pass {
    fn new(takes: &str, arg: String) -> Pass {
        Pass {
            takes: Some(takes.to_string()),
            arg,
            ..Pass::default()
        }
    }

    fn before(mut self, text: String) -> Pass {
        self.before = text;
        self
    }

    fn after(mut self, text: String) -> Pass {
        self.after = text;
        self
    }
}

/// The Rust name of a parameter.
pub fn ident(p: &Param) -> String {
    match p.name.as_str() {
        "type" | "ref" | "in" | "fn" | "code" | "ierror" => format!("{}_p", p.name),
        name => name.to_string(),
    }
}

/// The Rust type in the declaration of a C function.
pub fn c_type(p: &Param, api: &Api) -> Result<String, Error> {
    let base = p.base_type();
    if api.form(base) == Some("function") {
        return Ok("usize".into());
    }
    let plain = match base {
        "int" => "c_int".to_string(),
        "char" => "c_char".into(),
        "void" => "c_void".into(),
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64".into(),
        "MPI_Status" => "Status".into(),
        _ => api
            .handle_of(p)
            .map(str::to_string)
            .ok_or_else(|| Error(format!("{}: Fortran has no type like {base}", p.name)))?,
    };
    Ok("*mut ".repeat(p.depth()) + &plain)
}

/// How an argument is passed.
pub fn pass(f: &Function, p: &Param, api: &Api) -> Result<Pass, Error> {
    let n = ident(p);
    let ty = c_type(p, api)?;
    if is_argument(p) {
        let none = if by_value(p) {
            "0"
        } else {
            "std::ptr::null_mut()"
        };
        return Ok(Pass {
            arg: none.into(),
            ..Pass::default()
        });
    }
    if is_choice(p) {
        return Ok(
            Pass::new("*mut B", format!("{n}_")).before(format!("let mut {n}_ = B::address({n});"))
        );
    }
    if p.base_type() == "char" {
        return Ok(text(f, p, &n));
    }
    if api.handle_of(p).is_some() {
        return Ok(handle(f, p, &n, &ty));
    }
    if is_logical(p) {
        return Ok(logical(f, p, &n));
    }
    if ty == "usize" {
        let convert = p.base_type()[4..].to_ascii_lowercase();
        let given = Pass::new("usize", format!("{n}_"));
        return Ok(given.before(format!(
            "let {n}_ = match callback::{convert}({n}) {{ Ok(f) => f, Err(class) => return fail(ierror, class) }};"
        )));
    }
    by_kind(f, p, n, &ty)
}

/// How an argument is passed that is determined by its kind alone.
fn by_kind(f: &Function, p: &Param, n: String, ty: &str) -> Result<Pass, Error> {
    Ok(match (p.kind.as_str(), ty) {
        ("C_BUFFER", _) => Pass::new("*mut *mut c_void", format!("{n}.cast()")),
        ("C_BUFFER2", _) => Pass::new("*mut B", format!("(&raw mut {n}_).cast()"))
            .before(format!("let mut {n}_ = 0usize;"))
            .after(format!("B::detached({n}, {n}_);")),
        ("STATUS", _) => Pass::new("*mut Status", format!("sentinels::status({n})")),
        ("WEIGHT", _) => Pass::new("*mut c_int", format!("sentinels::weights({n})")),
        ("ERROR_CODE", "*mut c_int") if p.c_type.contains('[') => {
            Pass::new("*mut c_int", format!("sentinels::errcodes({n})"))
        }
        ("INFO_VALUE_LENGTH", "c_int") => {
            Pass::new("*mut c_int", format!("text::value_length(*{n})"))
        }
        // the length of a text buffer: C's has one more, for the zero
        ("INFO_VALUE_LENGTH" | "STRING_LENGTH", _) if p.direction == Direction::InOut => {
            Pass::new("*mut c_int", format!("&raw mut {n}_"))
                .before(format!("let mut {n}_ = text::room(*{n});"))
                .after(format!("*{n} = ({n}_ - 1).max(0);"))
        }
        // indices of requests count from 1 (MPI 5.0, 3.7.5)
        ("INDEX", "*mut c_int")
            if p.direction == Direction::Out && f.chapter == "point-to-point" =>
        {
            let after = match counted(f) {
                Some(count) if p.c_type.contains('[') => {
                    format!("convert::indices({n}, *{count});")
                }
                _ => format!("convert::index({n});"),
            };
            Pass::new("*mut c_int", n.clone()).after(format!("if code == 0 {{ {after} }}"))
        }
        (_, "c_int" | "i64") => Pass::new(&format!("*mut {ty}"), format!("*{n}")),
        _ if ty.matches('*').count() == 1 => Pass::new(ty, n),
        _ => Err(Error(format!(
            "{}: cannot pass {} to Fortran",
            f.name, p.name
        )))?,
    })
}

/// The parameter with the number of returned indices.
fn counted(f: &Function) -> Option<&str> {
    let p = f.params.iter().find(|p| p.name == "outcount")?;
    Some(&p.name)
}

fn text(f: &Function, p: &Param, n: &str) -> Pass {
    let with_length = |takes: &str, arg: &str, before: String, after: String| Pass {
        text: true,
        ..Pass::new(takes, format!("{n}_.{arg}"))
            .before(before)
            .after(after)
    };
    match p.kind.as_str() {
        "STRING_ARRAY" if p.name == "argv" => with_length(
            "*mut c_char",
            "as_c()",
            format!("let {n}_ = Words::arguments({n}, {n}_len);"),
            String::new(),
        ),
        "STRING_ARRAY" => with_length(
            "*mut c_char",
            "as_c()",
            format!("let {n}_ = Words::counted({n}, {n}_len, *count);"),
            String::new(),
        ),
        "STRING_2DARRAY" => with_length(
            "*mut c_char",
            "as_c()",
            format!("let {n}_ = Lists::read({n}, {n}_len, *count);"),
            String::new(),
        ),
        _ if p.direction == Direction::In => with_length(
            "*mut c_char",
            "as_c()",
            match f.name.starts_with("MPI_Info_") {
                true => format!("let {n}_ = Text::read_info({n}, {n}_len);"),
                false => format!("let {n}_ = Text::read({n}, {n}_len);"),
            },
            String::new(),
        ),
        _ => with_length(
            "*mut c_char",
            "as_c()",
            format!("let mut {n}_ = Room::new();"),
            format!("if code == 0 {{ {n}_.write({n}, {n}_len); }}"),
        ),
    }
}

fn handle(f: &Function, p: &Param, n: &str, ty: &str) -> Pass {
    let name = ty.trim_start_matches("*mut ");
    if by_value(p) {
        return Pass::new("*mut c_int", format!("{n}_"))
            .before(format!("let mut {n}_ = read::<{name}>({n});"));
    }
    if p.c_type.contains('[') {
        return handles(f, p, n, name);
    }
    let pass = Pass::new("*mut c_int", format!("&raw mut {n}_"));
    let (read, write) = (
        format!("let mut {n}_ = read::<{name}>({n});"),
        format!("give({n}, {n}_);"),
    );
    if p.direction == Direction::Out {
        return pass
            .before(format!("let mut {n}_ = {name}(0);"))
            .after(format!("if code == 0 {{ {write} }}"));
    }
    match (name, pending(f)) {
        ("Request", Some("start")) => pass
            .before(format!("{read} pending::start(&[{n}_]);"))
            .after(write),
        ("Request", Some(done)) => pass
            .before(format!("{read} let {n}_was = {n}_;"))
            .after(format!("pending::{done}(&[{n}_was], &[{n}_]); {write}")),
        _ => pass.before(read).after(write),
    }
}

/// Handling of requests with copied sections.
fn pending(f: &Function) -> Option<&'static str> {
    match f.name.as_str() {
        "MPI_Start" | "MPI_Startall" => Some("start"),
        "MPI_Request_free" => Some("forget"),
        _ if f.chapter == "point-to-point" => Some("settle"),
        _ => None,
    }
}

fn handles(f: &Function, p: &Param, n: &str, name: &str) -> Pass {
    let pass = Pass::new("*mut c_int", format!("{n}_.as_c()"));
    let read = format!(
        "let mut {n}_ = Handles::<{name}>::read({n}, {});",
        length(f, p)
    );
    match p.direction {
        Direction::In => pass.before(read),
        Direction::Out => pass
            .before(format!(
                "let mut {n}_ = Handles::<{name}>::room({n}, {});",
                length(f, p)
            ))
            .after(format!("if code == 0 {{ {n}_.write({n}); }}")),
        Direction::InOut => match pending(f).filter(|_| name == "Request") {
            Some("start") => pass
                .before(format!("{read} pending::start(&{n}_);"))
                .after(format!("{n}_.write({n});")),
            Some(done) => pass
                .before(format!("{read} let {n}_was = pending::copy(&{n}_);"))
                .after(format!(
                    "pending::{done}(&{n}_was, &{n}_); {n}_.write({n});"
                )),
            None => pass.before(read).after(format!("{n}_.write({n});")),
        },
    }
}

/// Number of elements of a converted array.
fn length(f: &Function, p: &Param) -> String {
    match &p.length {
        Some(length) => format!("*{length} as i64"),
        // one for each process, or for each neighbour
        None if f.chapter == "topologies" && is_logical(p) => "convert::dimensions(*comm)".into(),
        None if f.chapter == "topologies" => {
            format!("convert::neighbors(*comm, {})", p.name.starts_with("send"))
        }
        None => "convert::peers(*comm)".into(),
    }
}

fn logical(f: &Function, p: &Param, n: &str) -> Pass {
    if by_value(p) {
        return Pass::new("*mut c_int", format!("logical::truth({n})"));
    }
    if p.c_type.contains('[') {
        let pass = Pass::new("*mut c_int", format!("{n}_.as_c()"));
        return match p.direction {
            Direction::In => pass.before(format!(
                "let mut {n}_ = Logicals::read({n}, {});",
                length(f, p)
            )),
            _ => pass
                .before(format!(
                    "let mut {n}_ = Logicals::room({n}, {});",
                    length(f, p)
                ))
                .after(format!("{n}_.write({n});")),
        };
    }
    Pass::new("*mut c_int", format!("&raw mut {n}_"))
        .before(format!("let mut {n}_ = logical::UNSET;"))
        .after(format!("logical::set_logical({n}, {n}_);"))
}
