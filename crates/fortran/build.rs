//! Generates the shells, and what differs by ABI, from `api/`.

use kw_apigen::{FortranAbi, build_script, fortran_layer};

fn main() {
    build_script(|api, _, _| fortran_layer(&FortranAbi::standard(api)));
}
