//! Lists the built functions, from `api/built.tsv`.

use kw_apigen::{build_script, built_module};

fn main() {
    build_script(|_, built, _| Ok(vec![("built.rs", built_module(built, "tool"))]));
}
