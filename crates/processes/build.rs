//! Lists the functions that are built, as `api/built.tsv` says.

use kw_apigen::{build_script, built_module};

fn main() {
    build_script(|_, built, _| Ok(vec![("built.rs", built_module(built, "processes"))]));
}
