//! The interface of one procedure in the modules.

use super::names::linker;
use super::{Binding, Fortran, by_value, is_choice, is_logical};
use crate::{Api, Direction, Function, Param};

/// The module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Module {
    /// Handles are integers.
    Mpi,
    /// Handles are types, `ierror` is optional.
    F08,
    /// Interfaces for another ABI, whose buffers are passed by address; for gfortran.
    F08ByAddress,
}

impl Module {
    /// Whether it is a variant of mpi_f08.
    pub fn is_f08(self) -> bool {
        self != Module::Mpi
    }
}

/// The interface of a procedure under a name, in the order of the arguments.
pub fn named(name: &str, b: &Binding, api: &Api, module: Module) -> String {
    let mut args: Vec<String> = b.params().map(|p| p.name.clone()).collect();
    if b.ierror {
        args.push("ierror".into());
    }
    let sort = match b.f.code {
        true => "subroutine".to_string(),
        false => format!("{} function", value(b.f)),
    };
    let bind = match (module, b.has_choice()) {
        (Module::F08ByAddress, _) if !b.is_plain_f08() => {
            format!(" bind(C, name=\"{}\")", generic(name))
        }
        (Module::F08ByAddress, _) | (_, false) => String::new(),
        (_, true) => format!(" &\nbind(C, name=\"{}\")", linker(name)),
    };
    let mut out = format!("{sort} {name}( &\n{}){bind}\nimport\n", wrap(&args));
    for p in b.params() {
        out += &format!("{}\n", declare(p, b, api, module));
    }
    if b.ierror {
        out += &format!("integer{} :: ierror\n", optional(module));
    }
    let end = sort.rsplit(' ').next().unwrap_or_default();
    out + &format!("end {end}\n")
}

/// The call of a function and its arguments, in the notation of the standard: for manual pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// mpif.h.
    MpifH,
    /// Module mpi.
    Mpi,
    /// Module mpi_f08.
    F08,
}

/// The lines that declare a function, the call first; none if this interface does not have it.
pub fn fortran_declaration(
    api: &Api,
    fortran: &Fortran,
    f: &Function,
    which: Interface,
) -> Option<Vec<String>> {
    let b = fortran.functions(api).find(|b| b.f.name == f.name)?;
    let f08 = which == Interface::F08;
    if if f08 { !b.f08 } else { b.is_large() } {
        return None;
    }
    let module = if f08 { Module::F08 } else { Module::Mpi };
    let mut args: Vec<&str> = b.params().map(|p| p.name.as_str()).collect();
    let mut lines: Vec<String> = Vec::new();
    for p in b.params() {
        lines.push(match (which, is_choice(p)) {
            (Interface::MpifH, true) => format!("<type> {}(*)", p.name),
            _ => declare(p, &b, api, module),
        });
    }
    if b.ierror {
        args.push("ierror");
        lines.push(format!("integer{} :: ierror", optional(module)));
    }
    let mut call = format!("{}({})", b.generic(), args.join(", "));
    if !f.code {
        call = format!("{} {call}", value(f));
    }
    lines.insert(0, call);
    if which == Interface::MpifH {
        lines = lines
            .into_iter()
            .map(|line| line.to_uppercase().replace("<TYPE>", "<type>"))
            .collect();
    }
    Some(lines)
}

/// The Fortran type of a function's value.
pub fn value(f: &Function) -> &'static str {
    match f.returns.as_str() {
        "double" => "double precision",
        _ => "integer(kind=MPI_ADDRESS_KIND)",
    }
}

fn optional(module: Module) -> &'static str {
    match module {
        Module::F08 | Module::F08ByAddress => ", optional, intent(out)",
        Module::Mpi => "",
    }
}

/// The specific procedure's name.
pub fn specific(b: &Binding, module: Module) -> String {
    match module {
        Module::Mpi => b.specific_mpi(),
        Module::F08 => b.specific_f08(),
        Module::F08ByAddress => format!("{}_f08", b.f.name),
    }
}

/// Properties by which a compiler distinguishes two procedures.
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

/// Arguments, broken into lines that are not too long.
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
    let f08 = module.is_f08();
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
        // without `target` gfortran assumes that the address is forgotten when the call returns
        ty += ", asynchronous, target";
    }
    let checked = match is_choice(p) && module == Module::F08ByAddress {
        true => unchecked(&p.name),
        false => String::new(),
    };
    format!("{checked}{ty} :: {}{}", p.name, dimension(p, module))
}

/// Attribute that makes gfortran pass the address of anything.
pub fn unchecked(name: &str) -> String {
    format!("!GCC$ attributes no_arg_check :: {name}\n")
}

/// The name of a function, derived from that of its procedure in mpi_f08.
fn generic(specific: &str) -> &str {
    specific.strip_suffix("_f08").unwrap_or(specific)
}

fn kind(p: &Param, api: &Api, module: Module) -> String {
    let f08 = module.is_f08();
    let base = p.base_type();
    if is_choice(p) {
        let bounds = if module == Module::F08ByAddress {
            "*"
        } else {
            ".."
        };
        return format!("type(*), dimension({bounds})");
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
        ("C_BUFFER2", _) => "type(*), dimension(..)".into(),
        ("ATTRIBUTE_VAL_10" | "EXTRA_STATE2", _) => "integer".into(),
        ("C_BUFFER" | "ATTRIBUTE_VAL" | "EXTRA_STATE", _) => {
            "integer(kind=MPI_ADDRESS_KIND)".into()
        }
        (_, "char") => "character(len=*)".into(),
        (_, "MPI_Aint") => "integer(kind=MPI_ADDRESS_KIND)".into(),
        (_, "MPI_Count") => "integer(kind=MPI_COUNT_KIND)".into(),
        (_, "MPI_Offset") => "integer(kind=MPI_OFFSET_KIND)".into(),
        (_, "MPI_Status") if f08 => "type(MPI_Status)".into(),
        _ if f08 && api.handle_of(p).is_some() => format!("type({base})"),
        _ => "integer".into(),
    }
}

/// Intent of an argument: none for procedures, for buffers that are written, and where a constant
/// with an address may be passed to be written.
fn has_intent(p: &Param, b: &Binding) -> bool {
    if is_choice(p) {
        return p.c_type.starts_with("const ");
    }
    let codes = p.kind == "ERROR_CODE" && p.c_type.contains('[');
    let constant = codes || matches!(p.kind.as_str(), "STATUS" | "WEIGHT");
    let ignored = constant && p.direction != Direction::In && !set_by_hand(p, b);
    !ignored && !p.kind.contains("FUNCTION")
}

/// MPI_Status_set_...: the status must be a real one.
fn set_by_hand(p: &Param, b: &Binding) -> bool {
    p.kind == "STATUS" && b.f.name.starts_with("MPI_Status_set")
}

fn dimension(p: &Param, module: Module) -> &'static str {
    let status = p.base_type() == "MPI_Status" && module == Module::Mpi;
    let several = p.c_type.contains('[') || p.name.starts_with("array_of");
    match (status, several) {
        (true, true) => "(MPI_STATUS_SIZE, *)",
        (true, false) => "(MPI_STATUS_SIZE)",
        _ if p.kind == "STRING_2DARRAY" => "(count, *)",
        _ if p.c_type.contains("[3]") => "(3, *)",
        _ if several || (p.c_type.contains('[') && !by_value(p)) => {
            if p.base_type() == "char" && p.kind == "STRING" {
                ""
            } else {
                "(*)"
            }
        }
        _ => "",
    }
}
