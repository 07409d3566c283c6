//! How one argument of another ABI is passed to the standard function and back, as Rust text: by
//! its kind, type and direction.
//!
//! The text is for a module with an ABI `Here`, its kinds of handles, `Status`, and the contents of
//! `kw-abi-shim`.

use super::{Abi, Group, standard};
use crate::shells::ident;
use crate::{Api, Direction, Error, Function, Param};

/// One argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pass {
    /// Rust type in the other ABI.
    pub takes: String,
    /// Statements before the call.
    pub before: String,
    /// Argument of the standard function.
    pub arg: String,
    /// Statements after the call, which see its error code as `outcome`.
    pub after: String,
}

impl Pass {
    fn plain(ty: String, arg: String) -> Pass {
        Pass {
            takes: ty,
            arg,
            ..Pass::default()
        }
    }

    /// Passes a value that stands for the argument during the call.
    fn through(takes: String, n: &str, made: String, arg: &str, after: String) -> Pass {
        Pass {
            takes,
            before: format!("let mut {n}_ = {made};"),
            arg: format!("{n}_.{arg}"),
            after,
        }
    }
}

/// The Rust type of an argument of the standard function.
pub fn standard_type(p: &Param, api: &Api) -> Result<String, Error> {
    let (base, depth) = (p.base_type(), p.depth());
    if api.form(base) == Some("function") {
        return Ok("usize".into());
    }
    let plain = match base {
        "int" => "c_int",
        "char" | "void" => "c_void",
        "MPI_Aint" | "MPI_Count" | "MPI_Offset" => "i64",
        "MPI_Status" => "Standard",
        _ if api.form(base) == Some("handle") => "usize",
        _ if api.form(base) == Some("enum") => "c_int",
        _ => return Err(Error(format!("{}: there is no type like {base}", p.name))),
    };
    Ok(match depth {
        0 => plain.into(),
        1 => format!("*mut {plain}"),
        _ => "*mut c_void".into(),
    })
}

/// How an argument is passed.
pub fn pass(abi: &Abi, f: &Function, p: &Param, api: &Api) -> Result<Pass, Error> {
    let n = ident(&p.name);
    let ty = standard_type(p, api)?;
    if let Some(kind) = api.handle_of(p) {
        return Ok(handle(f, p, &n, kind));
    }
    if p.base_type() == "MPI_Status" {
        return Ok(status(f, p, &n));
    }
    if api.form(p.base_type()) == Some("function") {
        return Ok(callback(p, &n));
    }
    if let Some((limit, most)) = bounded(abi, p, api) {
        let after = match f.params.iter().find(|p| p.name == "resultlen") {
            Some(length) => format!("{n}_.give(outcome, {});", length.name),
            None => format!("{n}_.give(outcome, std::ptr::null_mut());"),
        };
        let made = format!("Bounded::<{most}>::new({n}, {limit})");
        return Ok(Pass::through(ty, &n, made, "room()", after));
    }
    match abi.group(f, p) {
        Some(group) if group.form == "addresses" && p.base_type() != "void" => {
            let arg = format!("Here::{}_in({n}.cast()).cast()", group.name);
            Ok(Pass::plain(ty, arg))
        }
        Some(group) => constant(f, p, &n, ty, group),
        None => Ok(Pass::plain(ty, n)),
    }
}

fn handle(f: &Function, p: &Param, n: &str, kind: &str) -> Pass {
    let value = format!("V<{kind}>");
    let pointer = format!("*mut {value}");
    if p.depth() == 0 {
        return Pass::plain(value, format!("{kind}::to_standard({n})"));
    }
    if !p.is_array() {
        let (made, after) = match p.direction {
            Direction::Out => ("new", format!("{n}_.give();")),
            Direction::InOut => ("read", format!("{n}_.give();")),
            Direction::In => ("read", String::new()),
        };
        let made = format!("HandlePlace::<{kind}>::{made}({n})");
        return Pass::through(pointer, n, made, "place()", after);
    }
    let (made, after) = match p.direction {
        Direction::In => ("read", String::new()),
        Direction::Out => ("room", format!("{n}_.write();")),
        Direction::InOut => ("read", format!("{n}_.write_null();")),
    };
    let made = format!("Handles::<{kind}>::{made}({n}, {})", length(f, p));
    Pass::through(pointer, n, made, "place()", after)
}

fn status(f: &Function, p: &Param, n: &str) -> Pass {
    let takes = "*mut Status".to_string();
    match (p.direction, &p.length) {
        (Direction::In, _) => {
            let made = format!("StatusPlace::read({n})");
            Pass::through(takes, n, made, "place()", String::new())
        }
        (Direction::InOut, _) => {
            let made = format!("StatusPlace::read({n})");
            Pass::through(takes, n, made, "place()", format!("{n}_.give();"))
        }
        (Direction::Out, None) if several(f).is_none() => {
            let made = format!("StatusPlace::new({n})");
            Pass::through(takes, n, made, "place()", format!("{n}_.give();"))
        }
        (Direction::Out, _) => {
            let count = several(f).unwrap_or_default();
            let made = format!("Statuses::new({n}, {count} as i64)");
            Pass::through(takes, n, made, "place()", format!("{n}_.give();"))
        }
    }
}

/// The count of the statuses, if there are several: their requests.
fn several(f: &Function) -> Option<String> {
    f.params.iter().find(|p| p.name == "array_of_statuses")?;
    let requests = f.params.iter().find(|p| p.kind == "REQUEST")?;
    requests.length.as_deref().map(ident)
}

fn callback(p: &Param, n: &str) -> Pass {
    let function = p.base_type()[4..].to_ascii_lowercase();
    Pass {
        takes: "usize".into(),
        before: format!(
            "let {n}_ = match callback::{function}::<Here>({n}) {{ Ok(f) => f, Err(code) => return code }};"
        ),
        arg: format!("{n}_"),
        after: String::new(),
    }
}

/// Size of a text buffer, if programs of the other ABI have less room, and the number of bytes that
/// the standard function may write.
fn bounded(abi: &Abi, p: &Param, api: &Api) -> Option<(i64, i64)> {
    let name = p.length.as_deref().filter(|_| p.kind == "STRING")?;
    let (theirs, most) = (abi.value(name)?, standard(api, name)?);
    (theirs < most).then_some((theirs, most))
}

/// The functions to the standard constants of a group, and back.
fn ways(group: &Group) -> [String; 2] {
    ["in", "out"].map(|way| match group.form.as_str() {
        // the program's own error codes are not constants
        "codes" => format!("convert::{}_{way}::<Here>", group.name),
        _ => format!("Here::{}_{way}", group.name),
    })
}

fn constant(f: &Function, p: &Param, n: &str, ty: String, group: &Group) -> Result<Pass, Error> {
    let [into, out] = ways(group);
    let is_array = p.is_array();
    if p.depth() == 0 || p.base_type() == "void" && p.kind == "BUFFER" {
        return Ok(Pass::plain(ty, format!("{into}({n})")));
    }
    if p.base_type() == "void" {
        let after = format!("convert::give_address(outcome, {n}, {out});");
        return Ok(Pass {
            after,
            ..Pass::plain(ty, n.into())
        });
    }
    if is_array && p.direction == Direction::In {
        return Ok(match &p.length {
            Some(length) if p.c_type.ends_with("[]") => {
                let made = format!("Ints::read({n}, {} as i64, {into})", ident(length));
                Pass::through(ty, n, made, "place()", String::new())
            }
            // edges and ranges: real ranks
            _ => Pass::plain(ty, n.into()),
        });
    }
    if is_array {
        return Ok(
            match p.length.as_deref().filter(|l| !l.starts_with("max")) {
                Some(length) => Pass {
                    after: format!(
                        "convert::give_all(outcome, {n}, {} as i64, {out});",
                        ident(length)
                    ),
                    ..Pass::plain(ty, n.into())
                },
                // neighbours: real ranks
                None => Pass::plain(ty, n.into()),
            },
        );
    }
    match p.direction {
        Direction::Out => Ok(Pass {
            after: format!("convert::give(outcome, {n}, {out});"),
            ..Pass::plain(ty, n.into())
        }),
        Direction::InOut => {
            let made = format!("convert::IntPlace::read({n}, {into})");
            Ok(Pass::through(
                ty,
                n,
                made,
                "place()",
                format!("{n}_.give({out});"),
            ))
        }
        Direction::In => Err(Error(format!("{}: cannot pass {}", f.name, p.name))),
    }
}

/// Number of elements of an array of handles.
fn length(f: &Function, p: &Param) -> String {
    match &p.length {
        Some(length) => {
            let by_place = f.params.iter().any(|q| q.name == *length && q.depth() > 0);
            match by_place {
                true => format!("convert::count_at({})", ident(length)),
                false => format!("{} as i64", ident(length)),
            }
        }
        // one for each process, or for each neighbour; those of a missing buffer are not examined
        None => {
            let sends = p.name.starts_with("send");
            let of = match f.chapter == "topologies" {
                true => format!("peers::neighbors::<Here>(comm, {sends})"),
                false => "peers::of::<Here>(comm)".to_string(),
            };
            match sends {
                true if f.chapter != "topologies" => {
                    format!("if convert::is_in_place::<Here>(sendbuf) {{ 0 }} else {{ {of} }}")
                }
                _ => of,
            }
        }
    }
}
