//! Writes the coverage table that `kwinfo --coverage` prints.

use kw_apigen::{build_script, coverage, coverage_text};

fn main() {
    build_script(|api, built, _| Ok(vec![("coverage.txt", coverage_text(&coverage(api, built)))]));
}
