//! The library exports all of MPI under both names, has the ABI's soname, and never calls itself by
//! MPI_ names.

mod common;

use std::collections::HashSet;
use std::process::Command;

fn tool(name: &str, args: &[&str]) -> String {
    common::output(Command::new(name).args(args).arg(common::library()))
}

#[test]
fn every_function_is_exported_under_both_names() {
    let text = tool("nm", &["-D", "--defined-only"]);
    let symbols: HashSet<&str> = text
        .lines()
        .filter_map(|l| l.split_whitespace().last())
        .collect();
    let api = common::api();
    assert_eq!(api.functions.len(), 664);
    for f in &api.functions {
        assert!(
            symbols.contains(f.name.as_str()),
            "{} is not exported",
            f.name
        );
        let profiled = format!("P{}", f.name);
        assert!(
            symbols.contains(profiled.as_str()),
            "{profiled} is not exported"
        );
    }
    let foreign: Vec<_> = symbols
        .iter()
        .filter(|s| !s.contains("MPI_") && !s.starts_with('_'))
        .collect();
    assert!(
        foreign.is_empty(),
        "the library exports more than MPI: {foreign:?}"
    );
}

#[test]
fn the_soname_is_the_abis() {
    let text = tool("readelf", &["-d"]);
    assert!(text.contains("[libmpi_abi.so.1]"), "{text}");
}

#[test]
fn the_library_never_calls_mpi_by_name() {
    // A relocation against an MPI symbol would let a tool that replaces MPI_X catch the library's
    // own calls.
    let text = tool("readelf", &["-rW"]);
    let own: Vec<&str> = text.lines().filter(|l| l.contains("MPI_")).collect();
    assert!(own.is_empty(), "{own:#?}");
}
