//! Parameters that follow from those of another function, so that `parameters.tsv` has no rows for
//! them: a large-count twin has the parameters of its base, with wider integers; a nonblocking or
//! persistent form has those of its operation and a request, and a mode of a send those of the send.
//!
//! A function that has rows of its own has only the parameters of those rows.

use crate::{Direction, Error, Function, Null, Param};
use std::collections::HashMap;

/// Gives every function without parameters those that follow from its base, or from the operation of
/// which it is a form; `forms` are the rows of `forms.tsv`.
pub(crate) fn derive(functions: &mut [Function], forms: &[[String; 3]]) -> Result<(), Error> {
    let forms: HashMap<_, _> = forms.iter().map(|[f, form, of]| (f, (form, of))).collect();
    // What a function follows from may itself follow from another one.
    loop {
        let with_parameters = functions.iter().filter(|f| !f.params.is_empty());
        let known: HashMap<_, _> = with_parameters.map(|f| (&f.name, f)).collect();
        let params = |f: &Function| {
            if let Some(base) = &f.twin_of {
                return Some(known.get(base)?.params.iter().map(widened).collect());
            }
            let (form, of) = forms.get(&f.name)?;
            formed(form, known.get(of)?)
        };
        let missing = functions.iter().enumerate();
        let missing = missing.filter(|(_, f)| f.params.is_empty());
        let found: Vec<(usize, Vec<Param>)> = missing
            .filter_map(|(at, f)| Some((at, params(f)?)))
            .collect();
        if found.is_empty() {
            break;
        }
        for (at, params) in found {
            functions[at].params = params;
        }
    }
    let follows = |f: &&Function| f.twin_of.is_some() || forms.contains_key(&f.name);
    let mut missing = functions.iter().filter(|f| f.params.is_empty());
    missing.find(follows).map_or(Ok(()), |f| {
        let text = "has no rows, and its parameters follow from no other function";
        Err(Error(format!("parameters.tsv: {} {text}", f.name)))
    })
}

/// The parameter of a large-count twin: the standard's kinds `POLY...` have a wider integer.
fn widened(p: &Param) -> Param {
    let wide = match p.kind.as_str() {
        "POLYDISPLACEMENT" | "POLYRMA_DISPLACEMENT" => "MPI_Aint",
        kind if kind.starts_with("POLY") => "MPI_Count",
        _ => return p.clone(),
    };
    let c_type = match p.base_type() {
        narrow @ ("int" | "MPI_Aint") => p.c_type.replacen(narrow, wide, 1),
        _ => p.c_type.clone(),
    };
    Param {
        c_type,
        ..p.clone()
    }
}

/// The parameters of a form of an operation; none for forms whose parameters follow no rule.
fn formed(form: &str, operation: &Function) -> Option<Vec<Param>> {
    let params = operation.params.iter();
    let started = params.clone().filter(|p| p.kind != "STATUS").cloned();
    // The persistent sends and receives, which are older, have no info.
    let info = operation.chapter != "point-to-point" && form == "persistent";
    let info = info.then(|| param("info", "MPI_Info", "INFO", Direction::In, Null::NoPointer));
    let request = param(
        "request",
        "MPI_Request *",
        "REQUEST",
        Direction::Out,
        Null::No,
    );
    match form {
        "nonblocking" | "persistent" => Some(started.chain(info).chain([request]).collect()),
        "buffered" | "synchronous" | "ready" => Some(params.cloned().collect()),
        _ => None,
    }
}

fn param(name: &str, c_type: &str, kind: &str, direction: Direction, null: Null) -> Param {
    Param {
        name: name.into(),
        c_type: c_type.into(),
        kind: kind.into(),
        direction,
        length: None,
        null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Api, api::table, api_dir};
    use std::path::Path;

    fn api() -> (Api, Vec<[String; 3]>) {
        let dir = api_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
        (Api::read(&dir).unwrap(), table(&dir, "forms.tsv").unwrap())
    }

    fn of(functions: &[Function], name: &str) -> Vec<String> {
        let f = functions.iter().find(|f| f.name == name).unwrap();
        let params = f.params.iter();
        params.map(|p| format!("{} {}", p.c_type, p.name)).collect()
    }

    #[test]
    fn a_twin_of_a_form_of_a_form_has_wider_integers_and_a_request() {
        let ibsend = of(&api().0.functions, "MPI_Ibsend_c");
        let expected = "const void * buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, \
                        MPI_Comm comm, MPI_Request * request";
        assert_eq!(ibsend.join(", "), expected);
    }

    #[test]
    fn no_row_of_the_table_follows_from_another_function() {
        let (api, forms) = api();
        let dir = api_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
        for [name, ..] in table::<7>(&dir, "parameters.tsv").unwrap() {
            let mut functions = api.functions.clone();
            let f = functions.iter_mut().find(|f| f.name == name).unwrap();
            f.params.clear();
            let derived = derive(&mut functions, &forms).map(|()| of(&functions, &name));
            assert_ne!(derived, Ok(of(&api.functions, &name)), "{name}");
        }
    }

    #[test]
    fn a_form_without_a_rule_needs_rows() {
        let (mut api, forms) = api();
        let testall = api.functions.iter_mut().find(|f| f.name == "MPI_Testall");
        testall.unwrap().params.clear();
        assert_eq!(
            derive(&mut api.functions, &forms).unwrap_err().to_string(),
            "parameters.tsv: MPI_Testall has no rows, and its parameters follow from no other function"
        );
    }
}
