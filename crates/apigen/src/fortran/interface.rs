//! The interface of one procedure, as the modules have it.

use super::names::linker;
use super::{Binding, base_type, by_value, handle_of, is_choice, is_logical};
use crate::{Api, Direction, Param};

/// Which module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Module {
    /// Handles are integers.
    Mpi,
    /// Handles are types, `ierror` is optional.
    F08,
}

/// The subroutine or function `specific`, in the order of the arguments.
pub fn interface(b: &Binding, api: &Api, module: Module) -> String {
    let name = specific(b, module);
    let mut args: Vec<String> = b.params().map(|p| p.name.clone()).collect();
    if b.ierror {
        args.push("ierror".into());
    }
    let sort = match b.f.returns.as_str() {
        _ if b.f.code => "subroutine",
        "double" => "double precision function",
        _ => "integer(kind=MPI_ADDRESS_KIND) function",
    };
    let bind = match b.has_choice() {
        true => format!(" &\nbind(C, name=\"{}\")", linker(&name)),
        false => String::new(),
    };
    let mut out = format!("{sort} {name}( &\n{}){bind}\nimport\n", wrap(&args));
    for p in b.params() {
        out += &format!("{}\n", declare(p, b, api, module));
    }
    if b.ierror {
        let optional = if module == Module::F08 {
            ", optional, intent(out)"
        } else {
            ""
        };
        out += &format!("integer{optional} :: ierror\n");
    }
    let end = sort.rsplit(' ').next().unwrap_or(sort);
    out + &format!("end {end}\n")
}

/// The specific procedure's name.
pub fn specific(b: &Binding, module: Module) -> String {
    match module {
        Module::Mpi => b.specific_mpi(),
        Module::F08 => b.specific_f08(),
    }
}

/// What a compiler tells two procedures apart by.
pub fn signature(b: &Binding, api: &Api) -> Vec<String> {
    let types = b.params().map(|p| {
        let ty = declare(p, b, api, Module::F08);
        let ty = ty
            .split("::")
            .next()
            .unwrap_or("")
            .split(',')
            .next()
            .unwrap_or("")
            .trim()
            .to_string();
        if ty.starts_with("integer(kind=") {
            "integer(8)".into()
        } else {
            ty
        }
    });
    types.collect()
}

/// Arguments in lines that are not too long.
fn wrap(args: &[String]) -> String {
    let mut out = String::new();
    let mut width = 0;
    for (i, arg) in args.iter().enumerate() {
        if width + arg.len() > 90 {
            out += " &\n";
            width = 0;
        }
        out += arg;
        if i + 1 < args.len() {
            out += ", ";
        }
        width += arg.len() + 2;
    }
    out
}

fn declare(p: &Param, b: &Binding, api: &Api, module: Module) -> String {
    let f08 = module == Module::F08;
    let mut ty = kind(p, api, module);
    if f08 && has_intent(p, b) {
        ty += match p.direction {
            Direction::In => ", intent(in)",
            Direction::Out => ", intent(out)",
            Direction::InOut => ", intent(inout)",
        };
    }
    let asynchronous = b.is_asynchronous() && b.f.params.iter().any(is_choice);
    let later = is_choice(p)
        || (p.c_type.contains('[')
            && !matches!(p.kind.as_str(), "STRING_ARRAY" | "STRING_2DARRAY"));
    if asynchronous && later {
        ty += ", asynchronous";
    }
    format!("{ty} :: {}{}", p.name, dimension(p, module))
}

fn kind(p: &Param, api: &Api, module: Module) -> String {
    let f08 = module == Module::F08;
    let base = base_type(p);
    if is_choice(p) {
        return "type(*), dimension(..)".into();
    }
    if is_logical(p) {
        return "logical".into();
    }
    if api.form(base) == Some("function") {
        return if f08 {
            format!("procedure({base})")
        } else {
            "external".into()
        };
    }
    match (p.kind.as_str(), base) {
        ("C_BUFFER" | "C_BUFFER2", _) if f08 => "type(c_ptr)".into(),
        ("C_BUFFER2", _) => "type(*), dimension(*)".into(),
        ("ATTRIBUTE_VAL_10" | "EXTRA_STATE2", _) => "integer".into(),
        ("C_BUFFER" | "ATTRIBUTE_VAL" | "EXTRA_STATE", _) => {
            "integer(kind=MPI_ADDRESS_KIND)".into()
        }
        (_, "char") => "character(len=*)".into(),
        (_, "MPI_Aint") => "integer(kind=MPI_ADDRESS_KIND)".into(),
        (_, "MPI_Count") => "integer(kind=MPI_COUNT_KIND)".into(),
        (_, "MPI_Offset") => "integer(kind=MPI_OFFSET_KIND)".into(),
        (_, "MPI_Status") if f08 => "type(MPI_Status)".into(),
        _ if f08 && handle_of(p, api).is_some() => format!("type({base})"),
        _ => "integer".into(),
    }
}

/// No intent where a constant with an address may be passed to be written, nor for procedures.
fn has_intent(p: &Param, b: &Binding) -> bool {
    let written = p.direction != Direction::In;
    let constant = matches!(p.kind.as_str(), "STATUS" | "WEIGHT")
        || is_choice(p)
        || (p.kind == "ERROR_CODE" && p.c_type.contains('['));
    let buffer = is_choice(p) && !p.c_type.starts_with("const ");
    !(written && constant && !set_by_hand(p, b))
        && !buffer
        && !p.kind.ends_with("FUNCTION")
        && !p.kind.contains("FUNCTION_")
}

/// MPI_Status_set_...: a status that must be one.
fn set_by_hand(p: &Param, b: &Binding) -> bool {
    p.kind == "STATUS" && b.f.name.starts_with("MPI_Status_set")
}

fn dimension(p: &Param, module: Module) -> &'static str {
    let status = base_type(p) == "MPI_Status" && module == Module::Mpi;
    let several = p.c_type.contains('[') || p.name.starts_with("array_of");
    match (status, several) {
        (true, true) => "(MPI_STATUS_SIZE, *)",
        (true, false) => "(MPI_STATUS_SIZE)",
        _ if p.kind == "STRING_2DARRAY" => "(count, *)",
        _ if p.c_type.contains("[3]") => "(3, *)",
        _ if several || (p.c_type.contains('[') && !by_value(p)) => {
            if base_type(p) == "char" && p.kind == "STRING" {
                ""
            } else {
                "(*)"
            }
        }
        _ => "",
    }
}
