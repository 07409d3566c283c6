//! Generates the standard ABI's constants, the table of its functions, and the trait of conversions
//! from `api/`.

use kw_apigen::{api_dir, build_script, constants_trait, functions_table, rust_constants};

fn main() {
    build_script(|api, _, _| {
        let dir = api_dir(env!("CARGO_MANIFEST_DIR").as_ref());
        Ok(vec![
            ("constants.rs", rust_constants(api)),
            ("functions.rs", functions_table(api)?),
            ("conversions.rs", constants_trait(&dir)?),
        ])
    });
}
