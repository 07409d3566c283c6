//! The Fortran library: `libmpifort_abi.so.1`, on the C functions of any `libmpi_abi.so.1`.
//!
//! Handles are INTEGERs, statuses are C's, `ierror` may be absent (null), a text has its length
//! behind all arguments, choice buffers are addresses (mpif.h) or C descriptors (both modules). So
//! most procedures are one under all their names (`kw_apigen::fortran`); `shells` has them,
//! generated. Conversions are by kind of argument: `handle`, `logical`, `text`,
//! `special` (constants with an address), `choice`. `section` is the arithmetic of array
//! sections, `sections` sends and receives them, `pending` copies those of operations that are
//! under way. `callback` and `attribute` are what crosses between the languages; `by_hand`
//! are the procedures of `api/fortran.tsv`.
//!
//! The unit tests are those of what calls no C function: there is no C library to link with.
//! Nothing here knows a compiler's run time, nor this C library: only the standard ABI.

pub mod logical;
pub mod section;
pub mod special;
pub mod text;

#[cfg(not(test))]
mod attribute;
#[cfg(not(test))]
mod by_hand;
#[cfg(not(test))]
mod callback;
#[cfg(not(test))]
mod choice;
#[cfg(not(test))]
mod convert;
#[cfg(not(test))]
mod handle;
#[cfg(not(test))]
mod pending;
#[cfg(not(test))]
mod sections;
#[cfg(not(test))]
mod shells;
