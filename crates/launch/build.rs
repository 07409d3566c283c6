//! Writes the coverage table that `kwinfo --coverage` prints.

use kw_apigen::{Api, Built, Error, coverage, coverage_text, rerun_if_changed, workspace_paths};
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
    let api = Api::read(&api_dir)?;
    let text = coverage_text(&coverage(&api, &Built::scan(&calls, &api)?));
    let file = var("OUT_DIR")?.join("coverage.txt");
    std::fs::write(&file, text).map_err(|e| Error(format!("cannot write {}: {e}", file.display())))
}
