//! The table through which libraries of other ABIs call the functions of this one.
//!
//! Such a library defines MPI_Send itself, so it cannot ask the dynamic linker for ours. The table
//! is one symbol of `libmpi_abi`. Its first word identifies its set of functions.

use super::functions;
use crate::{Api, Function};

/// The name of the table's symbol.
const SYMBOL: &str = "kw_MPI_functions";

/// Contents of the table: every function with a shell, and those that return a value.
pub(super) fn entries(api: &Api) -> impl Iterator<Item = &Function> {
    let values = api.functions.iter().filter(|f| !f.code);
    functions(api).chain(values)
}

/// Differs whenever a function, its place or its parameters do.
pub(super) fn stamp(api: &Api) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for f in entries(api) {
        let params = f.params.iter().map(|p| p.c_type.as_str());
        for byte in [f.name.as_str()]
            .into_iter()
            .chain(params)
            .flat_map(str::bytes)
        {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// Rust text for `kw-abi`: the table, for a module that has all functions and `Entry` in scope.
pub fn standard_table(api: &Api) -> String {
    let names: Vec<String> = entries(api)
        .map(|f| format!("Entry({} as *const ())", f.name))
        .collect();
    format!(
        "/// The functions of this library, for libraries of other ABIs.\n#[unsafe(export_name = \"{SYMBOL}\")]\npub static FUNCTIONS: Table<{}> = Table {{ stamp: {}, entries: [{}] }};\n",
        names.len(),
        stamp(api),
        names.join(", ")
    )
}
