//! Damaged traces: any bytes yield a trace or a sentence, and every analysis and export of the
//! trace succeeds.

use kw_fuzz::{config, damaged};
use kw_trace::analysis::analyse;
use kw_trace::example::{self, Stencil};
use kw_trace::export::{self, Form};
use kw_trace::{page, read, summary};
use proptest::prelude::*;

fn seeds() -> Vec<Vec<u8>> {
    let stencil = Stencil {
        grid: (2, 2),
        steps: 1,
        work: 1000,
        slow: 1,
        more: 50,
    };
    vec![example::ring(2, 2), stencil.bytes()]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fuzz_trace(bytes in damaged(seeds())) {
        match read::read(bytes.as_slice()) {
            Err(fault) => prop_assert!(!fault.to_string().is_empty()),
            Ok(trace) => {
                let analysis = analyse(&trace);
                prop_assert!(analysis.critical.time() <= trace.time());
                prop_assert!(analysis.waits.iter().all(|w| w.begin < w.end));
                prop_assert!(!summary::text(&trace, &analysis).is_empty());
                prop_assert!(page::page(&trace, &analysis, "fuzz").len() > 1000);
                let mut out = Vec::new();
                for form in [Form::Json, Form::Csv] {
                    prop_assert!(export::write(&trace, &analysis, form, &mut out).is_ok());
                }
            }
        }
    }
}
