//! Procedures that `api/fortran.tsv` marks as written by hand, and those that only Fortran has.

use crate::compiler::initialised;
use crate::convert::{Status, answer};
use crate::descriptor::Descriptor;
use crate::handle::*;
use crate::logical::logical;
use crate::shells::*;
use crate::text::{Length, Text};
use std::ffi::{c_char, c_int, c_void};

unsafe extern "C-unwind" {
    fn MPI_Wtime() -> f64;
    fn MPI_Wtick() -> f64;
    fn MPI_Aint_add(base: i64, disp: i64) -> i64;
    fn MPI_Aint_diff(addr1: i64, addr2: i64) -> i64;
}

/// MPI_INIT
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_init_(ierror: *mut c_int) {
    // SAFETY: no arguments of a command line; for `ierror` the caller's promise.
    unsafe {
        let code = MPI_Init(std::ptr::null_mut(), std::ptr::null_mut());
        initialised(ierror, code);
    }
}

/// MPI_INIT_THREAD
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_init_thread_(
    required: *mut c_int,
    provided: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: as for `mpi_init_`.
    unsafe {
        let code = MPI_Init_thread(
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            *required,
            provided,
        );
        initialised(ierror, code);
    }
}

/// MPI_SESSION_INIT
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_session_init_(
    info: *mut c_int,
    errhandler: *mut c_int,
    session: *mut c_int,
    ierror: *mut c_int,
) {
    let mut made = Session(0);
    // SAFETY: the caller's promise.
    unsafe {
        let code = MPI_Session_init(handle(info), handle(errhandler), &raw mut made);
        if code == 0 {
            give(session, made);
        }
        initialised(ierror, code);
    }
}

/// MPI_PCONTROL
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_pcontrol_(level: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { MPI_Pcontrol(*level) };
}

/// MPI_WTIME
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mpi_wtime_() -> f64 {
    // SAFETY: takes nothing.
    unsafe { MPI_Wtime() }
}

/// MPI_WTICK
#[unsafe(no_mangle)]
pub extern "C-unwind" fn mpi_wtick_() -> f64 {
    // SAFETY: takes nothing.
    unsafe { MPI_Wtick() }
}

/// MPI_AINT_ADD
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_aint_add_(base: *mut i64, disp: *mut i64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { MPI_Aint_add(*base, *disp) }
}

/// MPI_AINT_DIFF
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_aint_diff_(addr1: *mut i64, addr2: *mut i64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { MPI_Aint_diff(*addr1, *addr2) }
}

/// MPI_SIZEOF: the size of an element, of any type and rank.
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_sizeof_(
    x: *mut Descriptor,
    size: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        *size = (*x).element as c_int;
        answer(ierror, 0);
    }
}

macro_rules! sizes {
    ($($name:ident $size:literal;)*) => {$(
        /// MPI_SIZEOF for modules that have a procedure for each type.
        ///
        /// # Safety
        /// Arguments of MPI's Fortran interface.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(_: *mut c_void, size: *mut c_int, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe {
                *size = $size;
                answer(ierror, 0);
            }
        }
    )*};
}

sizes! {
    kw_sizeof_1_ 1;
    kw_sizeof_2_ 2;
    kw_sizeof_4_ 4;
    kw_sizeof_8_ 8;
    kw_sizeof_16_ 16;
    kw_sizeof_32_ 32;
}

/// MPI_F_SYNC_REG: the call itself is the whole effect (MPI 5.0, 19.1.8).
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_f_sync_reg_(_: *mut c_void) {}

/// MPI_STATUS_F2F08 and MPI_STATUS_F082F: both are eight INTEGERs.
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_status_f2f08_(
    from: *const Status,
    to: *mut Status,
    ierror: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        std::ptr::copy(from, to, 1);
        answer(ierror, 0);
    }
}

/// Whether two handles are the same.
///
/// # Safety
/// Both are handles.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_comm_eq_(x: *const c_int, y: *const c_int) -> c_int {
    // SAFETY: the caller's promise.
    logical(c_int::from(unsafe { *x == *y }))
}

/// Whether two handles are different.
///
/// # Safety
/// Both are handles.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_comm_ne_(x: *const c_int, y: *const c_int) -> c_int {
    // SAFETY: the caller's promise.
    logical(c_int::from(unsafe { *x != *y }))
}

/// A generalized request's functions, and the program's own variable `extra_state`: a callback sees
/// the variable's value at the time of the call, and may change it, as with MPICH and Open MPI.
struct Generalized {
    query: usize,
    free: usize,
    cancel: usize,
    state: *mut i64,
}

unsafe extern "C-unwind" fn query(state: *mut c_void, status: *mut Status) -> c_int {
    let mut code = 0;
    // SAFETY: C passes the state that was given with the request; the program's function takes
    // these.
    unsafe {
        let of = &mut *state.cast::<Generalized>();
        let call: unsafe extern "C-unwind" fn(*mut i64, *mut Status, *mut c_int) =
            std::mem::transmute(of.query);
        call(of.state, status, &raw mut code);
    }
    code
}

unsafe extern "C-unwind" fn free(state: *mut c_void) -> c_int {
    let mut code = 0;
    // SAFETY: as for `query`; this is the last call of C.
    unsafe {
        let of = Box::from_raw(state.cast::<Generalized>());
        let call: unsafe extern "C-unwind" fn(*mut i64, *mut c_int) = std::mem::transmute(of.free);
        call(of.state, &raw mut code);
    }
    code
}

unsafe extern "C-unwind" fn cancel(state: *mut c_void, complete: c_int) -> c_int {
    let (mut code, mut complete) = (0, logical(complete));
    // SAFETY: as for `query`.
    unsafe {
        let of = &mut *state.cast::<Generalized>();
        let call: unsafe extern "C-unwind" fn(*mut i64, *mut c_int, *mut c_int) =
            std::mem::transmute(of.cancel);
        call(of.state, &raw mut complete, &raw mut code);
    }
    code
}

/// MPI_GREQUEST_START
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_grequest_start_(
    query_fn: usize,
    free_fn: usize,
    cancel_fn: usize,
    extra_state: *mut i64,
    request: *mut c_int,
    ierror: *mut c_int,
) {
    let mut made = Request(0);
    // SAFETY: the caller's promise.
    unsafe {
        let of = Box::into_raw(Box::new(Generalized {
            query: query_fn,
            free: free_fn,
            cancel: cancel_fn,
            state: extra_state,
        }));
        let code = MPI_Grequest_start(
            query as *const () as usize,
            free as *const () as usize,
            cancel as *const () as usize,
            of.cast(),
            &raw mut made,
        );
        match code {
            0 => give(request, made),
            _ => drop(Box::from_raw(of)),
        }
        answer(ierror, code);
    }
}

/// The functions of a data representation and their state; it lives as long as MPI.
struct Representation {
    read: usize,
    write: usize,
    extent: usize,
    state: i64,
}

unsafe extern "C-unwind" fn extent(
    datatype: Datatype,
    extent: *mut i64,
    state: *mut c_void,
) -> c_int {
    let (mut code, mut datatype) = (0, to_fortran(datatype));
    // SAFETY: C passes the registered state; the program's function takes these.
    unsafe {
        let of = &mut *state.cast::<Representation>();
        let call: unsafe extern "C-unwind" fn(*mut c_int, *mut i64, *mut i64, *mut c_int) =
            std::mem::transmute(of.extent);
        call(&raw mut datatype, extent, &raw mut of.state, &raw mut code);
    }
    code
}

type Conversion<N> = unsafe extern "C-unwind" fn(
    *mut c_void,
    *mut c_int,
    *mut N,
    *mut c_void,
    *mut i64,
    *mut i64,
    *mut c_int,
);

unsafe extern "C-unwind" fn convert<N, const WRITE: bool>(
    userbuf: *mut c_void,
    datatype: Datatype,
    mut count: N,
    filebuf: *mut c_void,
    mut position: i64,
    state: *mut c_void,
) -> c_int {
    let (mut code, mut datatype) = (0, to_fortran(datatype));
    // SAFETY: as for `extent`.
    unsafe {
        let of = &mut *state.cast::<Representation>();
        let call: Conversion<N> = std::mem::transmute(if WRITE { of.write } else { of.read });
        call(
            userbuf,
            &raw mut datatype,
            &raw mut count,
            filebuf,
            &raw mut position,
            &raw mut of.state,
            &raw mut code,
        );
    }
    code
}

unsafe extern "C-unwind" {
    fn mpi_conversion_fn_null_();
    fn mpi_conversion_fn_null_c_();
}

macro_rules! representations {
    ($($rust:ident $mpi:ident $count:ty;)*) => {$(
        /// MPI_REGISTER_DATAREP
        ///
        /// # Safety
        /// Arguments of MPI's Fortran interface.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $rust(datarep: *mut c_char, read_fn: usize, write_fn: usize, extent_fn: usize, extra_state: *mut i64, ierror: *mut c_int, datarep_len: Length) {
            // SAFETY: the caller's promise.
            unsafe {
                let name = Text::read(datarep, datarep_len);
                let of = Box::into_raw(Box::new(Representation { read: read_fn, write: write_fn, extent: extent_fn, state: *extra_state }));
                let null = [mpi_conversion_fn_null_ as *const () as usize, mpi_conversion_fn_null_c_ as *const () as usize];
                let or_null = |given: usize, ours: usize| if null.contains(&given) { 0 } else { ours };
                let code = $mpi(
                    name.as_c(),
                    or_null(read_fn, convert::<$count, false> as *const () as usize),
                    or_null(write_fn, convert::<$count, true> as *const () as usize),
                    extent as *const () as usize,
                    of.cast(),
                );
                answer(ierror, code);
            }
        }
    )*};
}

representations! {
    mpi_register_datarep_ MPI_Register_datarep c_int;
    mpi_register_datarep_c_f08_ MPI_Register_datarep_c i64;
}

/// MPI_CONVERSION_FN_NULL and MPI_CONVERSION_FN_NULL_C, which are recognised by their addresses.
pub mod null_conversions {
    macro_rules! null {
        ($($name:ident $code:literal;)*) => {$(
            /// Never called.
            #[unsafe(no_mangle)]
            pub extern "C-unwind" fn $name() -> i32 {
                $code
            }
        )*};
    }
    // they return different values: the linker may merge equal functions
    null! {
        mpi_conversion_fn_null_ 16;
        mpi_conversion_fn_null_c_ 17;
    }
}
