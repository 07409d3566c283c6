//! Generates the shells, the conversions and the predefined objects from `api/` and
//! `api/abi/openmpi.tsv`.

fn main() {
    kw_apigen::abi_build_script("openmpi", kw_apigen::abi_layer);
}
