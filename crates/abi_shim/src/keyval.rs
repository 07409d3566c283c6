//! Functions of the program that MPI calls with a state argument: those of attributes and of
//! generalized requests. The state is ours, and refers to the program's functions and its own
//! argument.
#![allow(non_snake_case)]

use crate::Abi;
use crate::convert::{error_in, error_out};
use crate::functions::functions;
use crate::handle::{HandlePlace, Kind, V};
use crate::status::{Standard, Status};
use std::ffi::{c_int, c_void};

/// State of a keyval. It lives as long as the process: MPI does not report when the last attribute
/// with a freed keyval is gone.
struct Keyval {
    copy: usize,
    delete: usize,
    extra: *mut c_void,
}

type Copy<K> = unsafe extern "C-unwind" fn(
    V<K>,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
type Delete<K> = unsafe extern "C-unwind" fn(V<K>, c_int, *mut c_void, *mut c_void) -> c_int;

unsafe extern "C-unwind" fn copy<A: Abi, K: Kind>(
    of: usize,
    keyval: c_int,
    state: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the state is a Keyval, whose function is a copy function.
    unsafe {
        let state = &*state.cast::<Keyval>();
        let call: Copy<K> = std::mem::transmute(state.copy);
        let of = K::of_standard(of);
        error_in::<A>(call(
            of,
            A::keyval_out(keyval),
            state.extra,
            value,
            copied,
            flag,
        ))
    }
}

unsafe extern "C-unwind" fn delete<A: Abi, K: Kind>(
    of: usize,
    keyval: c_int,
    value: *mut c_void,
    state: *mut c_void,
) -> c_int {
    // SAFETY: the state is a Keyval, whose function is a delete function.
    unsafe {
        let state = &*state.cast::<Keyval>();
        let call: Delete<K> = std::mem::transmute(state.delete);
        error_in::<A>(call(
            K::of_standard(of),
            A::keyval_out(keyval),
            value,
            state.extra,
        ))
    }
}

/// Creates a keyval by the standard function `create`.
///
/// # Safety
/// The functions are null or of their types; `keyval` is null or has room for an integer.
unsafe fn make<A: Abi, K: Kind>(
    create: unsafe extern "C-unwind" fn(usize, usize, *mut c_int, *mut c_void) -> c_int,
    copy_fn: usize,
    delete_fn: usize,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> c_int {
    let state = Box::into_raw(Box::new(Keyval {
        copy: copy_fn,
        delete: delete_fn,
        extra,
    }));
    let when = |given: usize, ours: usize| if given == 0 { 0 } else { ours };
    let copying: unsafe extern "C-unwind" fn(_, _, _, _, _, _) -> _ = copy::<A, K>;
    let deleting: unsafe extern "C-unwind" fn(_, _, _, _) -> _ = delete::<A, K>;
    let (copying, deleting) = (copying as usize, deleting as usize);
    // SAFETY: the caller's promise.
    unsafe {
        let outcome = create(
            when(copy_fn, copying),
            when(delete_fn, deleting),
            keyval,
            state.cast(),
        );
        if outcome == 0 {
            *keyval = A::keyval_out(*keyval);
        } else {
            drop(Box::from_raw(state));
        }
        error_out::<A>(outcome)
    }
}

macro_rules! keyvals {
    ($($name:ident $kind:ident;)*) => {$(
        /// Creates a keyval.
        ///
        /// # Safety
        /// The functions are null or of their types; `keyval` is null or has room for an integer.
        pub unsafe fn $name<A: Abi>(copy_fn: usize, delete_fn: usize, keyval: *mut c_int, extra: *mut c_void) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { make::<A, A::$kind>(functions().$name, copy_fn, delete_fn, keyval, extra) }
        }
    )*};
}

keyvals! {
    MPI_Keyval_create Comm;
    MPI_Comm_create_keyval Comm;
    MPI_Type_create_keyval Datatype;
    MPI_Win_create_keyval Win;
}

/// Copies an attribute unchanged: MPI_DUP_FN and its relatives of other kinds of handles.
///
/// # Safety
/// `copied` and `flag` have room for their values.
pub unsafe fn copy_as_it_is(value: *mut c_void, copied: *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        *copied.cast() = value;
        *flag = 1;
    }
    0
}

/// State of a generalized request, until it is freed.
struct Grequest {
    query: usize,
    free: usize,
    cancel: usize,
    extra: *mut c_void,
}

unsafe extern "C-unwind" fn query<A: Abi>(state: *mut c_void, status: *mut Standard) -> c_int {
    // SAFETY: the state is a Grequest, whose function is a query function; MPI gives a status.
    unsafe {
        let state = &*state.cast::<Grequest>();
        let call: unsafe extern "C-unwind" fn(*mut c_void, *mut A::Status) -> c_int =
            std::mem::transmute(state.query);
        let mut theirs: A::Status = (*status).other(0);
        let code = call(state.extra, &raw mut theirs);
        *status = theirs.standard();
        error_in::<A>(code)
    }
}

unsafe extern "C-unwind" fn free<A: Abi>(state: *mut c_void) -> c_int {
    // SAFETY: the state is a Grequest, which is not used after this call.
    unsafe {
        let state = Box::from_raw(state.cast::<Grequest>());
        if state.free == 0 {
            return 0;
        }
        let call: unsafe extern "C-unwind" fn(*mut c_void) -> c_int =
            std::mem::transmute(state.free);
        error_in::<A>(call(state.extra))
    }
}

unsafe extern "C-unwind" fn cancel<A: Abi>(state: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: the state is a Grequest, whose function is a cancel function.
    unsafe {
        let state = &*state.cast::<Grequest>();
        let call: unsafe extern "C-unwind" fn(*mut c_void, c_int) -> c_int =
            std::mem::transmute(state.cancel);
        error_in::<A>(call(state.extra, complete))
    }
}

/// Starts a generalized request.
///
/// # Safety
/// The functions are null or of their types; `request` is null or has room for a handle.
pub unsafe fn MPI_Grequest_start<A: Abi>(
    query_fn: usize,
    free_fn: usize,
    cancel_fn: usize,
    extra: *mut c_void,
    request: *mut V<A::Request>,
) -> c_int {
    let state = Box::into_raw(Box::new(Grequest {
        query: query_fn,
        free: free_fn,
        cancel: cancel_fn,
        extra,
    }));
    let querying: unsafe extern "C-unwind" fn(_, _) -> _ = query::<A>;
    let freeing: unsafe extern "C-unwind" fn(_) -> _ = free::<A>;
    let cancelling: unsafe extern "C-unwind" fn(_, _) -> _ = cancel::<A>;
    let when = |given: usize, ours: usize| if given == 0 { 0 } else { ours };
    // SAFETY: the caller's promise.
    unsafe {
        let mut place = HandlePlace::<A::Request>::new(request);
        let outcome = (functions().MPI_Grequest_start)(
            when(query_fn, querying as usize),
            freeing as usize,
            when(cancel_fn, cancelling as usize),
            state.cast(),
            place.place(),
        );
        if outcome != 0 {
            drop(Box::from_raw(state));
        }
        place.give();
        error_out::<A>(outcome)
    }
}
