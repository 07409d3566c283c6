//! The description as values, and the reader of its tables (format: `api/README.md`).

use crate::{Error, derived::derive};
use std::collections::HashMap;
use std::path::Path;

/// Direction of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Read by MPI.
    In,
    /// Written by MPI.
    Out,
    /// Both.
    InOut,
}

/// Whether a pointer may be null.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Null {
    /// Not a pointer.
    NoPointer,
    /// Never.
    No,
    /// When the array has no elements.
    Empty,
    /// Always.
    Yes,
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// C name.
    pub name: String,
    /// C type; an array keeps its brackets (`const int[]`).
    pub c_type: String,
    /// The standard's kind (RANK, TAG, ...).
    pub kind: String,
    /// Direction.
    pub direction: Direction,
    /// The parameter that counts the elements, for arrays that have one.
    pub length: Option<String>,
    /// Whether it may be null.
    pub null: Null,
}

/// One function.
#[derive(Clone, Debug)]
pub struct Function {
    /// C name, `MPI_...`.
    pub name: String,
    /// C type of the result.
    pub returns: String,
    /// Whether the result is an error code.
    pub code: bool,
    /// Chapter of the standard.
    pub chapter: String,
    /// Whether it may be called before initialisation and after finalisation.
    pub always: bool,
    /// Whether its shell is inlined.
    pub hot: bool,
    /// The function with which it shares its Rust function.
    pub twin_of: Option<String>,
    /// Parameters in order.
    pub params: Vec<Param>,
}

/// One constant.
#[derive(Clone, Debug)]
pub struct Constant {
    /// C name.
    pub name: String,
    /// C type, `int`, `macro` or `alias`.
    pub c_type: String,
    /// Value as text.
    pub value: String,
}

/// One type.
#[derive(Clone, Debug)]
pub struct Type {
    /// C name.
    pub name: String,
    /// integer, handle, struct, enum, function or alias.
    pub form: String,
    /// Its kind.
    pub definition: String,
}

/// A type or constant that MPI 3.0 removed.
#[derive(Clone, Debug)]
pub struct Removed {
    /// C name.
    pub name: String,
    /// `type`, or the C type of a constant.
    pub form: String,
    /// The kind of type, or a constant's value.
    pub definition: String,
    /// The replacement.
    pub successor: String,
}

/// The description of MPI 5.0.
#[derive(Clone, Debug)]
pub struct Api {
    /// Functions in the order of the table.
    pub functions: Vec<Function>,
    /// Constants.
    pub constants: Vec<Constant>,
    /// Types.
    pub types: Vec<Type>,
    /// Functions that MPI 3.0 removed, each with its successor.
    pub removed_functions: Vec<(Function, String)>,
    /// Types and constants that it removed.
    pub removed: Vec<Removed>,
}

impl Param {
    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        self.c_type.contains('[')
    }

    /// Its C type without const, stars and brackets.
    pub fn base_type(&self) -> &str {
        let rest = self.c_type.strip_prefix("const ").unwrap_or(&self.c_type);
        rest.split([' ', '[']).next().unwrap_or(rest)
    }

    /// Number of pointers that lead to a value of its base type; an array is one.
    pub fn depth(&self) -> usize {
        self.c_type.matches('*').count() + usize::from(self.is_array())
    }
}

impl Function {
    /// Whether the requests that its chapter gives are for communication, access to files or
    /// windows.
    pub fn chapter_has_operations(&self) -> bool {
        self.chapter != "external"
    }

    /// Whether it belongs to the tool interface (errors are returned, no error handler is called).
    pub fn is_tool(&self) -> bool {
        self.name.starts_with("MPI_T_")
    }

    /// The name of its Rust function: without `MPI_`, in lower case.
    pub fn rust_name(&self) -> String {
        crate::built::rust_name(&self.name)
    }

    /// Parameters without the `...`.
    pub fn fixed_params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|p| p.c_type != "...")
    }
}

impl Api {
    /// The handle types without `MPI_`, except those of the tool interface.
    pub fn handles(&self) -> impl Iterator<Item = &str> {
        let handles = self.types.iter().filter(|t| t.form == "handle");
        handles
            .map(|t| &t.name["MPI_".len()..])
            .filter(|name| !name.starts_with("T_"))
    }

    /// The handle type of a parameter without `MPI_`, if it has one of [`Api::handles`].
    pub fn handle_of<'a>(&self, p: &'a Param) -> Option<&'a str> {
        let name = p.base_type().strip_prefix("MPI_")?;
        self.handles().any(|h| h == name).then_some(name)
    }

    /// Reads the tables of a folder.
    pub fn read(dir: &Path) -> Result<Api, Error> {
        let functions = table::<7>(dir, "functions.tsv")?.into_iter().map(function);
        let mut functions = with_params(dir, "parameters.tsv", functions.collect())?;
        derive(&mut functions, &table::<3>(dir, "forms.tsv")?)?;
        let (functions_of_old, removed): (Vec<_>, Vec<_>) = table::<4>(dir, "removed.tsv")?
            .into_iter()
            .partition(|row| row[1] == "function");
        let successors = functions_of_old.iter().map(|row| row[3].clone());
        let successors: Vec<String> = successors.collect();
        let old = functions_of_old.into_iter().map(removed_function);
        let old = with_params(dir, "removed_parameters.tsv", old.collect())?;
        let constants = table::<3>(dir, "constants.tsv")?
            .into_iter()
            .map(|[name, c_type, value]| Constant {
                name,
                c_type,
                value,
            })
            .collect();
        let types = table::<3>(dir, "types.tsv")?
            .into_iter()
            .map(|[name, form, definition]| Type {
                name,
                form,
                definition,
            })
            .collect();
        Ok(Api {
            functions,
            constants,
            types,
            removed_functions: old.into_iter().zip(successors).collect(),
            removed: removed.into_iter().map(removed_row).collect(),
        })
    }

    /// Every function that has a shell: those of MPI 5.0, then the removed ones.
    pub fn with_removed(&self) -> impl Iterator<Item = &Function> {
        let old = self.removed_functions.iter().map(|(f, _)| f);
        self.functions.iter().chain(old)
    }

    /// A function by its C name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// Form of a type, if it is in the table.
    pub fn form(&self, name: &str) -> Option<&str> {
        let old = self.removed.iter().find(|r| r.name == name);
        let name = old.map_or(name, |r| &r.definition);
        self.types
            .iter()
            .find(|t| t.name == name)
            .map(|t| t.form.as_str())
    }
}

/// Functions with their parameters from a table.
fn with_params(
    dir: &Path,
    file: &str,
    mut functions: Vec<Function>,
) -> Result<Vec<Function>, Error> {
    let places = functions.iter().enumerate();
    let place: HashMap<String, usize> = places.map(|(i, f)| (f.name.clone(), i)).collect();
    for row in table::<7>(dir, file)? {
        let at = place
            .get(&row[0])
            .ok_or_else(|| Error(format!("{file}: {} is not a function of its table", row[0])))?;
        functions[*at].params.push(param(row)?);
    }
    Ok(functions)
}

fn removed_function([name, ..]: [String; 4]) -> Function {
    Function {
        name,
        returns: "int".into(),
        code: true,
        chapter: "removed".into(),
        always: false,
        hot: false,
        twin_of: None,
        params: Vec::new(),
    }
}

fn removed_row([name, form, definition, successor]: [String; 4]) -> Removed {
    Removed {
        name,
        form,
        definition,
        successor,
    }
}

fn function(row: [String; 7]) -> Function {
    let [name, returns, result, chapter, when, speed, twin] = row;
    Function {
        name,
        returns,
        code: result == "code",
        chapter,
        always: when == "always",
        hot: speed == "hot",
        twin_of: (twin != "-").then_some(twin),
        params: Vec::new(),
    }
}

fn param(row: [String; 7]) -> Result<Param, Error> {
    let [function, name, c_type, kind, direction, length, null] = row;
    let bad = |what: &str, value: &str| {
        Error(format!(
            "parameters.tsv: {function}, {name}: {what} is '{value}'"
        ))
    };
    let direction = match direction.as_str() {
        "in" => Direction::In,
        "out" => Direction::Out,
        "inout" => Direction::InOut,
        other => return Err(bad("direction", other)),
    };
    let null = match null.as_str() {
        "-" => Null::NoPointer,
        "no" => Null::No,
        "empty" => Null::Empty,
        "yes" => Null::Yes,
        other => return Err(bad("null", other)),
    };
    let length = (length != "-" && length != "*").then_some(length);
    Ok(Param {
        name,
        c_type,
        kind,
        direction,
        length,
        null,
    })
}

/// A number of the tables: decimal, or hexadecimal after `0x`.
pub(crate) fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(crate) fn table<const N: usize>(dir: &Path, file: &str) -> Result<Vec<[String; N]>, Error> {
    let path = dir.join(file);
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Error(format!("cannot read {}: {e}", path.display())))?;
    text.lines()
        .enumerate()
        .skip(1)
        .map(|(i, line)| {
            let cells: Vec<String> = line.split('\t').map(str::to_string).collect();
            let found = cells.len();
            cells.try_into().map_err(|_| {
                Error(format!(
                    "{file}, line {}: {found} columns, but it needs {N}",
                    i + 1
                ))
            })
        })
        .collect()
}
