//! Generates a function for each of MPI's from `api/`.

use kw_apigen::{build_script, profile_wrappers};

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libkw_profile.so");
    build_script(|api, _, words| Ok(vec![("wrappers.rs", profile_wrappers(api, words))]));
}
