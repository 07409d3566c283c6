//! The standard ABI's constants for the libraries that stand on it.

use crate::Api;
use crate::api::number;

/// Rust text: integers as they are, handles and addresses as their values. For a module that has
/// `c_int`.
pub fn rust_constants(api: &Api) -> String {
    let mut out = String::new();
    for c in api.constants.iter().filter(|c| c.c_type != "alias") {
        let ty = match c.c_type.as_str() {
            "int" | "macro" => "c_int",
            "MPI_Offset" => "i64",
            _ => "usize",
        };
        if number(&c.value).is_some() {
            out += &format!("pub const {}: {ty} = {};\n", c.name, c.value);
        }
    }
    out
}
