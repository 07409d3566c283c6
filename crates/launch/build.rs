//! Writes the coverage table that `kwinfo --coverage` prints.

use kw_apigen::{Fortran, api_dir, build_script, coverage, coverage_text};

fn main() {
    build_script(|api, built, _| {
        let fortran = Fortran::read(&api_dir(env!("CARGO_MANIFEST_DIR").as_ref()), api)?;
        let rows = coverage(api, &fortran, built);
        Ok(vec![("coverage.txt", coverage_text(&rows))])
    });
}
