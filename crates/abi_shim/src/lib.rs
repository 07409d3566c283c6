//! Common parts of the ABI shims: programs that were compiled for another MPI run on this one
//! through a shim library (`mpich_abi`, `openmpi_abi`).
//!
//! A shim has an [`Abi`]: its kinds of handles, its status, its constants. Everything that follows
//! from these is here, generic over it: handles and arrays of them ([`handle`]), statuses
//! ([`status`]), constants and their places ([`convert`]), texts ([`text`]), functions of the
//! program that MPI calls ([`callback`], [`keyval`], [`datarep`]), and the functions whose
//! parameters do not determine the meaning of their values ([`by_hand`]). The shim's own functions
//! are generated (`kw_apigen::abi_shells`): each converts the program's values to those of the
//! standard ABI, calls the standard function through the table of `libmpi_abi` ([`functions`]), and
//! converts the results back.
//!
//! Calls of standard functions cannot be tested here: there is no library to link with. The shims
//! are tested with whole programs (`tests/abi_shims`).

pub mod abi;
pub mod address;
pub mod by_hand;
pub mod callback;
pub mod constants;
pub mod convert;
pub mod datarep;
pub mod equal;
pub mod first;
pub mod functions;
pub mod handle;
pub mod keyval;
pub mod peers;
pub mod status;
pub mod text;

pub use abi::{Abi, Constants};
pub use address::Address;
pub use kw_base::Key;

/// What every shim consists of: its [`Abi`] `Here`, made of its modules `handle` and `status` and of
/// the generated conversions; the generated functions; and the hook of its Fortran layer.
#[macro_export]
macro_rules! shim {
    ($(#[doc = $doc:literal])* library $library:literal, errors from $first:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct Here;

        impl $crate::Abi for Here {
            type Comm = handle::Comm;
            type Datatype = handle::Datatype;
            type File = handle::File;
            type Request = handle::Request;
            type Session = handle::Session;
            type Win = handle::Win;
            type Status = status::Status;
            const LIBRARY: &'static CStr = $library;
            const FIRST_ADDED: c_int = $first;
        }

        include!(concat!(env!("OUT_DIR"), "/constants.rs"));

        #[cfg(not(test))]
        #[allow(
            missing_docs,
            non_snake_case,
            non_upper_case_globals,
            unused_mut,
            clippy::missing_safety_doc,
            clippy::undocumented_unsafe_blocks,
            clippy::unnecessary_cast
        )]
        mod shells {
            //! The generated functions (`kw_apigen::abi_shells`, run by the build script).
            //!
            //! # Safety
            //! Each is called from C under the promises of its prototype: a pointer that may not be
            //! null points to the object that MPI requires, arrays have the number of elements that
            //! their count says.
            include!(concat!(env!("OUT_DIR"), "/shells.rs"));

            /// Registers a hook of the Fortran layer of this ABI for a request's operations.
            ///
            /// # Safety
            /// That of `kw_MPI_Request_hook` (`crates/abi/src/hook.rs`).
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn kw_abi_shim_Request_hook(
                request: $crate::handle::V<super::handle::Request>,
                hook: usize,
                data: usize,
            ) -> std::ffi::c_int {
                // SAFETY: the caller's promise.
                unsafe { $crate::by_hand::request_hook::<super::Here>(request, hook, data) }
            }
        }
    };
}

#[cfg(test)]
mod toy;
