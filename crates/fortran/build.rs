//! Generates the shells from `api/`.

use kw_apigen::{Fortran, api_dir, build_script, fortran_shells};

fn main() {
    build_script(|api, _, _| {
        let dir = api_dir(env!("CARGO_MANIFEST_DIR").as_ref());
        let fortran = Fortran::read(&dir, api)?;
        Ok(vec![("shells.rs", fortran_shells(api, &fortran)?)])
    });
}
