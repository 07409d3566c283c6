//! Generates the shells, the conversions and the predefined handles from `api/` and
//! `api/abi/mpich.tsv`.

fn main() {
    kw_apigen::abi_build_script("mpich", kw_apigen::abi_layer);
}
