//! Functions whose parameters do not determine the meaning of their values
//! (`api/abi/exceptions.tsv`).
#![allow(non_snake_case)]

use crate::Abi;
use crate::constants::*;
use crate::convert::error_out;
pub use crate::datarep::*;
use crate::functions::functions;
use crate::handle::{Handles, Kind, V};
pub use crate::keyval::*;
use kw_base::sync::atomic::{AtomicI32, Ordering};
use std::ffi::{c_int, c_void};

/// Predefined attributes whose values are constants of the ABI, and where the program finds them.
static PLACES: [(c_int, AtomicI32); 5] = [
    (MPI_IO, AtomicI32::new(0)),
    (MPI_HOST, AtomicI32::new(0)),
    (MPI_LASTUSEDCODE, AtomicI32::new(0)),
    (MPI_WIN_CREATE_FLAVOR, AtomicI32::new(0)),
    (MPI_WIN_MODEL, AtomicI32::new(0)),
];

/// Conversion of the value of such an attribute.
fn constant<A: Abi>(keyval: c_int, value: c_int) -> c_int {
    match keyval {
        MPI_LASTUSEDCODE => error_out::<A>(value),
        MPI_WIN_CREATE_FLAVOR => A::win_flavor_out(value),
        MPI_WIN_MODEL => A::win_model_out(value),
        _ => A::rank_out(value),
    }
}

/// Puts the value of such an attribute where the program finds it.
///
/// # Safety
/// `value` and `flag` were written by the standard function.
unsafe fn attribute<A: Abi>(keyval: c_int, value: *mut c_void, flag: *mut c_int) {
    let known = PLACES.iter().find(|p| p.0 == keyval);
    // SAFETY: the caller's promise; values of these attributes are addresses of integers.
    unsafe {
        if let Some((_, place)) = known.filter(|_| *flag != 0) {
            let value: *mut *mut c_int = value.cast();
            place.store(constant::<A>(keyval, **value), Ordering::Relaxed);
            *value = place.as_ptr();
        }
    }
}

macro_rules! attributes {
    ($($name:ident $kind:ident;)*) => {$(
        /// The value of an attribute.
        ///
        /// # Safety
        /// `value` and `flag` are null or have room for their values.
        pub unsafe fn $name<A: Abi>(of: V<A::$kind>, keyval: c_int, value: *mut c_void, flag: *mut c_int) -> c_int {
            let keyval = A::keyval_in(keyval);
            // SAFETY: the caller's promise.
            unsafe {
                let outcome = (functions().$name)(A::$kind::to_standard(of), keyval, value, flag);
                if outcome == 0 {
                    attribute::<A>(keyval, value, flag);
                }
                error_out::<A>(outcome)
            }
        }
    )*};
}

attributes! {
    MPI_Attr_get Comm;
    MPI_Comm_get_attr Comm;
    MPI_Win_get_attr Win;
}

/// Converts the constants among the integers that made a datatype (MPI 5.0, 5.1.13). Constructors
/// with large counts keep only these and a few others among the integers.
///
/// # Safety
/// `ints` has the integers of that datatype.
unsafe fn contents<A: Abi>(combiner: c_int, ints: *mut c_int, n: i64, large: bool) {
    if ints.is_null() || n <= 0 {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        match combiner {
            MPI_COMBINER_SUBARRAY => {
                let last = if large { 1 } else { 1 + 3 * i64::from(*ints) };
                if last < n {
                    let order = ints.add(last as usize);
                    *order = A::order_out(*order);
                }
            }
            MPI_COMBINER_DARRAY => {
                let dims = i64::from(*ints.add(2));
                let first = if large { 3 } else { 3 + dims };
                for i in first..(first + dims).min(n) {
                    let at = ints.add(i as usize);
                    *at = A::distribution_out(*at);
                }
                for i in first + dims..(first + 2 * dims).min(n) {
                    let at = ints.add(i as usize);
                    *at = A::distribution_argument_out(*at);
                }
                if first + 3 * dims < n {
                    let order = ints.add((first + 3 * dims) as usize);
                    *order = A::order_out(*order);
                }
            }
            _ => {}
        }
    }
}

/// Constructor of a datatype.
///
/// # Safety
/// The arrays have the stated number of elements.
pub unsafe fn MPI_Type_get_contents<A: Abi>(
    datatype: V<A::Datatype>,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut i64,
    datatypes: *mut V<A::Datatype>,
) -> c_int {
    let datatype = A::Datatype::to_standard(datatype);
    let f = functions();
    // SAFETY: the caller's promise; the results of the envelope have places.
    unsafe {
        let mut types = Handles::<A::Datatype>::room(datatypes, i64::from(max_datatypes));
        let outcome = (f.MPI_Type_get_contents)(
            datatype,
            max_integers,
            max_addresses,
            max_datatypes,
            integers,
            addresses,
            types.place(),
        );
        if outcome == 0 {
            types.write();
            let (mut n, mut combiner) = ([0; 3], 0);
            let [ints, addresses, types] = &mut n;
            (f.MPI_Type_get_envelope)(datatype, ints, addresses, types, &raw mut combiner);
            contents::<A>(combiner, integers, i64::from(n[0]), false);
        }
        error_out::<A>(outcome)
    }
}

/// Constructor of a datatype, with large counts.
///
/// # Safety
/// The arrays have the stated number of elements.
pub unsafe fn MPI_Type_get_contents_c<A: Abi>(
    datatype: V<A::Datatype>,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    integers: *mut c_int,
    addresses: *mut i64,
    large_counts: *mut i64,
    datatypes: *mut V<A::Datatype>,
) -> c_int {
    let datatype = A::Datatype::to_standard(datatype);
    let f = functions();
    // SAFETY: the caller's promise; the results of the envelope have places.
    unsafe {
        let mut types = Handles::<A::Datatype>::room(datatypes, max_datatypes);
        let outcome = (f.MPI_Type_get_contents_c)(
            datatype,
            max_integers,
            max_addresses,
            max_large_counts,
            max_datatypes,
            integers,
            addresses,
            large_counts,
            types.place(),
        );
        if outcome == 0 {
            types.write();
            let (mut n, mut combiner) = ([0i64; 4], 0);
            let [ints, addresses, counts, types] = &mut n;
            (f.MPI_Type_get_envelope_c)(
                datatype,
                ints,
                addresses,
                counts,
                types,
                &raw mut combiner,
            );
            contents::<A>(combiner, integers, n[0], n[2] > 0);
        }
        error_out::<A>(outcome)
    }
}

/// The version of the standard ABI that the program uses: none.
///
/// # Safety
/// Both places are null or have room for an integer.
pub unsafe fn MPI_Abi_get_version<A: Abi>(abi_major: *mut c_int, abi_minor: *mut c_int) -> c_int {
    for place in [abi_major, abi_minor] {
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place.write(-1) };
        }
    }
    0
}

/// Copies a status to another language's form, which is the same.
///
/// # Safety
/// Each pointer is null or points at a status.
pub unsafe fn copy_status<A: Abi>(from: *const A::Status, to: *mut A::Status) -> c_int {
    if from.is_null() || to.is_null() {
        return error_out::<A>(MPI_ERR_ARG);
    }
    // SAFETY: the caller's promise.
    unsafe { to.write_unaligned(from.read_unaligned()) };
    0
}

unsafe extern "C" {
    fn kw_MPI_Request_hook(request: usize, hook: usize, data: usize) -> c_int;
}

/// Passes a hook of the Fortran layer of this ABI on (`crates/abi/src/hook.rs`).
///
/// # Safety
/// The same as there.
pub unsafe fn request_hook<A: Abi>(request: V<A::Request>, hook: usize, data: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { kw_MPI_Request_hook(A::Request::to_standard(request), hook, data) }
}
