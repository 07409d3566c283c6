//! Tools that no running job needs: starts of large jobs in virtual time, simulation of other
//! machines, and fitted models that evaluate the choice of collective algorithms. No crate of the
//! library depends on this one; its command is `kwsim`.
#![forbid(unsafe_code)]

pub mod choices;
pub mod machine;
pub mod model;
pub mod start;
pub mod start_table;
