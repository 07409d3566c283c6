//! Tools that no running job needs: starts of large jobs in virtual time, and simulation of
//! other machines, which evaluates the choice of collective algorithms. No crate of the library
//! depends on this one; its command is `kwsim`.
#![forbid(unsafe_code)]

pub mod machine;
pub mod start;
pub mod start_table;
