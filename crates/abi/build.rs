//! Generates the shells from `api/`.

use kw_apigen::{build_script, coverage_const, header, shells};

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    build_script(|api, built, words| {
        Ok(vec![
            ("shells.rs", shells(api, built)?),
            ("coverage.rs", coverage_const(api, built)),
            ("mpi.h", header(api, words)),
        ])
    });
}
