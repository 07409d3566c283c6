//! Generates the shells from `api/`, and the parts that differ by ABI from `api/abi/openmpi.tsv`.

use kw_apigen::{FortranAbi, abi_build_script, fortran_layer};

fn main() {
    abi_build_script("openmpi", |api, abi| {
        fortran_layer(&FortranAbi::of(api, abi))
    });
}
