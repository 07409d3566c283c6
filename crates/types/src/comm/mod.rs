//! Groups, context ids and the arithmetic of creating communicators (MPI 5.0, chapter 7). Pure
//! values and functions: the layers above decide which ranks exchange what; this module computes
//! the results from the exchanged values.

mod context;
mod dims;
mod group;
pub mod reorder;
mod spanning;
mod split;

pub use context::{BOOTSTRAP, ContextPool, Proposal, SELF, STRIDE, UNKNOWN, WORLD};
pub use dims::{DimsError, dims_create};
pub use group::{Group, GroupError, Likeness};
pub use spanning::SpanningPool;
pub use split::{Choice, members};
