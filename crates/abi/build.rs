//! Generates the shells from `api/` and from what `kw-mpi` has built.

use kw_apigen::{
    Api, Built, Error, Words, coverage_const, header, rerun_if_changed, shells, workspace_paths,
};
use std::path::PathBuf;

fn main() {
    if let Err(e) = run() {
        println!("cargo::error={e}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Error> {
    let var = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .ok_or_else(|| Error(format!("{name} is not set")))
    };
    let (api_dir, calls) = workspace_paths(&var("CARGO_MANIFEST_DIR")?);
    rerun_if_changed(&api_dir, &calls);
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let api = Api::read(&api_dir)?;
    let built = Built::scan(&calls, &api)?;
    let out = var("OUT_DIR")?;
    let write = |file: &str, text: String| {
        std::fs::write(out.join(file), text).map_err(|e| Error(format!("cannot write {file}: {e}")))
    };
    write("shells.rs", shells(&api, &built)?)?;
    write("coverage.rs", coverage_const(&api, &built))?;
    write("mpi.h", header(&api, &Words::read(&api_dir)?))
}
