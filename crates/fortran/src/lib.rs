//! The Fortran layer: MPI's procedures on the C functions of a library. It is compiled once for each
//! ABI: here for the standard one (`libmpifort_abi.so.1`, on any `libmpi_abi.so.1`), in
//! `crates/mpich_fortran` for MPICH's (`libmpifort.so.12`, on this library's `libmpi.so.12`), in
//! `crates/openmpi_fortran` for Open MPI's (`libmpi_mpifh.so.40`, on `libmpi.so.40`).
//!
//! A handle is an INTEGER, `ierror` may be absent (null), a text is passed with its length after
//! all arguments, choice buffers are addresses (mpif.h) or C descriptors (both modules). So most
//! procedures are one under all their names (`kw_apigen::fortran`); `shells` has them, generated.
//! Conversions are by kind of argument: `handle`, `logical`, `text`, `sentinels` (constants with an
//! address), `choice` (buffers, by `descriptor`). `section` is the arithmetic of array sections,
//! `sections` sends and receives them, `pending` copies those of operations that are in flight.
//! `callback` and `attribute` connect the languages; `compiler` reports the program's compiler to
//! MPI; `by_hand` has the procedures of `api/fortran.tsv`, `removed` those that MPI 3.0 removed.
//!
//! The differences between ABIs are generated (`kw_apigen::FortranAbi`): `constants`, the common
//! blocks of `sentinels`, the kinds of `handle`, the choice of `descriptor`, the `variables` of
//! modules. Nothing else here depends on the ABI, on a compiler's run time, or on this C library.
//!
//! The unit tests cover only code that calls no C function: there is no C library to link with.

pub mod constants;
pub mod logical;
pub mod section;
pub mod sentinels;
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
mod compiler;
#[cfg(not(test))]
mod convert;
#[cfg(not(test))]
mod descriptor;
#[cfg(not(test))]
mod handle;
#[cfg(not(test))]
mod pending;
#[cfg(not(test))]
mod removed;
#[cfg(not(test))]
mod sections;
#[cfg(not(test))]
mod shells;
#[cfg(not(test))]
mod split;
#[cfg(not(test))]
mod variables;
