//! What no running job needs: starts of large jobs in virtual time, machines that we do not have,
//! and fitted models that judge which algorithm each collective uses. No crate of the library
//! depends on this one; its command is `kwsim`.
#![forbid(unsafe_code)]

pub mod choices;
pub mod machine;
pub mod model;
pub mod start;
pub mod start_table;
