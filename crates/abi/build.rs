//! Generates the shells from `api/`.

use kw_apigen::{build_script, coverage_const, header, shells, standard_table};

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // The table of functions has our own, whatever else the process has under these names.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    build_script(|api, built, words| {
        Ok(vec![
            ("shells.rs", shells(api, built)?),
            ("table.rs", standard_table(api)),
            ("coverage.rs", coverage_const(api, built)),
            ("mpi.h", header(api, words)),
        ])
    });
}
