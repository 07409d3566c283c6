//! Generates the shells, and the parts that differ by ABI, from `api/`.

use kw_apigen::{FortranAbi, build_script, fortran_layer};

fn main() {
    build_script(|api, _, _| fortran_layer(&FortranAbi::standard(api)));
}
