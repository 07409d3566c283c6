//! User-defined data representations (MPI 5.0, 14.5.3): MPI calls their functions with a state
//! argument, which is ours, and refers to the program's functions and its own argument.
#![allow(non_snake_case)]

use crate::Abi;
use crate::convert::{error_in, error_out};
use crate::functions::functions;
use crate::handle::{Kind, V};
use std::ffi::{c_int, c_void};

/// The functions of a data representation. They live as long as the process: MPI has no call that
/// removes a representation.
struct Representation {
    read: usize,
    write: usize,
    extent: usize,
    extra: *mut c_void,
}

type Extent<K> = unsafe extern "C-unwind" fn(V<K>, *mut i64, *mut c_void) -> c_int;
type Convert<K, N> =
    unsafe extern "C-unwind" fn(*mut c_void, V<K>, N, *mut c_void, i64, *mut c_void) -> c_int;
/// A conversion function as the library calls it.
type Standard<N> =
    unsafe extern "C-unwind" fn(*mut c_void, usize, N, *mut c_void, i64, *mut c_void) -> c_int;

unsafe extern "C-unwind" fn extent<A: Abi>(
    datatype: usize,
    extent: *mut i64,
    state: *mut c_void,
) -> c_int {
    // SAFETY: the state is a Representation, whose function is an extent function.
    unsafe {
        let state = &*state.cast::<Representation>();
        let call: Extent<A::Datatype> = std::mem::transmute(state.extent);
        let datatype = A::Datatype::of_standard(datatype);
        error_in::<A>(call(datatype, extent, state.extra))
    }
}

/// `N` is the width of the count.
unsafe extern "C-unwind" fn convert<A: Abi, N, const WRITE: bool>(
    user: *mut c_void,
    datatype: usize,
    count: N,
    file: *mut c_void,
    position: i64,
    state: *mut c_void,
) -> c_int {
    // SAFETY: the state is a Representation, whose function is a conversion function.
    unsafe {
        let state = &*state.cast::<Representation>();
        let function = if WRITE { state.write } else { state.read };
        let call: Convert<A::Datatype, N> = std::mem::transmute(function);
        let datatype = A::Datatype::of_standard(datatype);
        error_in::<A>(call(user, datatype, count, file, position, state.extra))
    }
}

macro_rules! register {
    ($($name:ident $count:ty;)*) => {$(
        /// Adds a data representation.
        ///
        /// # Safety
        /// `datarep` is null or a text; the functions are null or of their types.
        pub unsafe fn $name<A: Abi>(
            datarep: *mut c_void,
            read: usize,
            write: usize,
            extent_fn: usize,
            extra: *mut c_void,
        ) -> c_int {
            let state = Representation { read, write, extent: extent_fn, extra };
            let state = Box::into_raw(Box::new(state));
            let when = |given: usize, ours: usize| if given == 0 { 0 } else { ours };
            let reading: Standard<$count> = convert::<A, $count, false>;
            let writing: Standard<$count> = convert::<A, $count, true>;
            let measuring: unsafe extern "C-unwind" fn(_, _, _) -> _ = extent::<A>;
            // SAFETY: the caller's promise; the state is of these functions.
            let outcome = unsafe {
                (functions().$name)(
                    datarep,
                    when(read, reading as usize),
                    when(write, writing as usize),
                    when(extent_fn, measuring as usize),
                    state.cast(),
                )
            };
            if outcome != 0 {
                // SAFETY: it was made above, and the library has not kept it.
                drop(unsafe { Box::from_raw(state) });
            }
            error_out::<A>(outcome)
        }
    )*};
}

register! {
    MPI_Register_datarep c_int;
    MPI_Register_datarep_c i64;
}
