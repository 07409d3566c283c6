//! Writes the coverage table that `kwinfo --coverage` prints, and the names of the functions that
//! `mpiexec --profile` reports.

use kw_apigen::{Fortran, api_dir, build_script, coverage, coverage_text, profile_names};

fn main() {
    build_script(|api, built, words| {
        let fortran = Fortran::read(&api_dir(env!("CARGO_MANIFEST_DIR").as_ref()), api)?;
        let rows = coverage(api, &fortran, built);
        Ok(vec![
            ("coverage.txt", coverage_text(&rows)),
            ("functions.rs", profile_names(api, words)),
        ])
    });
}
