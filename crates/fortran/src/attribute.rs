//! Attributes between the languages (MPI 5.0, 19.3.7).
//!
//! A value set by Fortran is an integer, and C gets a pointer to it: so it is kept in a cell of the
//! library. A value set by C is a pointer, and Fortran gets its address. A value set by MPI is a
//! pointer in C and a value in Fortran. Cells are recognised by their addresses; the delete
//! function of a key created by Fortran frees them (those under keys of C stay: C may have copied
//! the pointer).

use crate::constants::*;
use crate::convert::answer;
use crate::handle::*;
use crate::logical::{UNSET, logical, set_logical, truth};
use crate::shells::*;
use kw_base::sync::Mutex;
use std::collections::HashSet;
use std::ffi::{c_int, c_void};

static CELLS: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

fn cells<R>(work: impl FnOnce(&mut HashSet<usize>) -> R) -> R {
    let mut cells = CELLS.lock().unwrap_or_else(|e| e.into_inner());
    work(cells.get_or_insert_default())
}

/// A cell with a value that Fortran set.
fn cell(value: i64) -> *mut c_void {
    let at = Box::into_raw(Box::new(value));
    cells(|cells| cells.insert(at as usize));
    at.cast()
}

fn is_cell(at: *mut c_void) -> bool {
    cells(|cells| cells.contains(&(at as usize)))
}

fn free_cell(at: *mut c_void) {
    if cells(|cells| cells.remove(&(at as usize))) {
        // SAFETY: a box that `cell` made and that has not been freed.
        drop(unsafe { Box::from_raw(at.cast::<i64>()) });
    }
}

/// Fortran's form of an attribute value in C.
fn value(at: *mut c_void) -> i64 {
    match is_cell(at) {
        // SAFETY: a cell holds an integer.
        true => unsafe { *at.cast::<i64>() },
        false => at as i64,
    }
}

/// Fortran's form of an attribute, by its key.
fn value_of(key: c_int, at: *mut c_void) -> i64 {
    // MPI_WIN_SIZE is an address-sized integer, MPI_WIN_BASE an address, the others are integers
    match key {
        MPI_TAG_UB
        | MPI_IO
        | MPI_HOST
        | MPI_WTIME_IS_GLOBAL
        | MPI_APPNUM
        | MPI_LASTUSEDCODE
        | MPI_UNIVERSE_SIZE
        | MPI_WIN_DISP_UNIT
        | MPI_WIN_CREATE_FLAVOR
        | MPI_WIN_MODEL => {
            // SAFETY: MPI's attributes point at their values.
            i64::from(unsafe { *at.cast::<c_int>() })
        }
        // SAFETY: as above.
        MPI_WIN_SIZE => unsafe { *at.cast::<i64>() },
        MPI_WIN_BASE => at as i64,
        _ => value(at),
    }
}

/// A key created by Fortran: its functions and their state. It is never freed, because C may call
/// them as long as there are attributes under the key.
struct Key {
    copy: usize,
    delete: usize,
    state: i64,
    /// Attributes are default integers (MPI 5.0, 16.1).
    old: bool,
}

type Copy = unsafe extern "C-unwind" fn(
    *mut c_int,
    *mut c_int,
    *mut i64,
    *mut i64,
    *mut i64,
    *mut c_int,
    *mut c_int,
);
type Delete = unsafe extern "C-unwind" fn(*mut c_int, *mut c_int, *mut i64, *mut i64, *mut c_int);

/// C's copy function of every key created by Fortran.
unsafe extern "C-unwind" fn copy<H: Handle>(
    old: H,
    mut keyval: c_int,
    state: *mut c_void,
    val_in: *mut c_void,
    val_out: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    let (mut code, mut copies, mut out) = (0, logical(0), 0i64);
    // SAFETY: C passes the state that was given with the key; the program's function takes these.
    unsafe {
        let key = &*state.cast::<Key>();
        if DUPS.iter().any(|dup| *dup as usize == key.copy) {
            // an address remains C's
            *val_out = if is_cell(val_in) {
                cell(value(val_in))
            } else {
                val_in
            };
            *flag = 1;
            return 0;
        }
        let call: Copy = std::mem::transmute(key.copy);
        let (mut number, mut state, mut given) = (to_fortran(old), key.state, value(val_in));
        call(
            &raw mut number,
            &raw mut keyval,
            &raw mut state,
            &raw mut given,
            &raw mut out,
            &raw mut copies,
            &raw mut code,
        );
        *flag = truth(&raw const copies);
        if code == 0 && *flag != 0 {
            // a function of default integers sets the low half
            *val_out = cell(if key.old {
                i64::from(out as c_int)
            } else {
                out
            });
        }
    }
    code
}

/// C's delete function of every key created by Fortran.
unsafe extern "C-unwind" fn delete<H: Handle>(
    of: H,
    mut keyval: c_int,
    val: *mut c_void,
    state: *mut c_void,
) -> c_int {
    let mut code = 0;
    // SAFETY: as for `copy`.
    unsafe {
        let key = &*state.cast::<Key>();
        let call: Delete = std::mem::transmute(key.delete);
        let (mut number, mut state, mut given) = (to_fortran(of), key.state, value(val));
        call(
            &raw mut number,
            &raw mut keyval,
            &raw mut given,
            &raw mut state,
            &raw mut code,
        );
    }
    if code == 0 {
        free_cell(val);
    }
    code
}

macro_rules! keys {
    ($($ty:ident: $create:ident $rust_create:ident, $set:ident $rust_set:ident, $get:ident $rust_get:ident;)*) => {$(
        /// Creates a key.
        ///
        /// # Safety
        /// Arguments of MPI's Fortran interface.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $rust_create(copy_fn: usize, delete_fn: usize, keyval: *mut c_int, extra_state: *mut i64, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe {
                let key = Box::new(Key { copy: copy_fn, delete: delete_fn, state: *extra_state, old: false });
                let functions = (copy::<$ty> as *const () as usize, delete::<$ty> as *const () as usize);
                let code = $create(functions.0, functions.1, keyval, Box::into_raw(key).cast());
                answer(ierror, code);
            }
        }

        /// Sets an attribute.
        ///
        /// # Safety
        /// Arguments of MPI's Fortran interface.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $rust_set(of: *mut c_int, keyval: *mut c_int, val: *mut i64, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe {
                let made = cell(*val);
                let code = $set(handle::<$ty>(of), c_keyval(*keyval), made);
                if code != 0 {
                    free_cell(made);
                }
                answer(ierror, code);
            }
        }

        /// Returns an attribute.
        ///
        /// # Safety
        /// Arguments of MPI's Fortran interface.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $rust_get(of: *mut c_int, keyval: *mut c_int, val: *mut i64, flag: *mut c_int, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe {
                let (mut at, mut found) = (std::ptr::null_mut::<c_void>(), UNSET);
                let code = $get(handle::<$ty>(of), c_keyval(*keyval), (&raw mut at).cast(), &raw mut found);
                if code == 0 && found != 0 && found != UNSET {
                    *val = value_of(*keyval, at);
                }
                set_logical(flag, found);
                answer(ierror, code);
            }
        }
    )*};
}

keys! {
    Comm: MPI_Comm_create_keyval mpi_comm_create_keyval_, MPI_Comm_set_attr mpi_comm_set_attr_, MPI_Comm_get_attr mpi_comm_get_attr_;
    Datatype: MPI_Type_create_keyval mpi_type_create_keyval_, MPI_Type_set_attr mpi_type_set_attr_, MPI_Type_get_attr mpi_type_get_attr_;
    Win: MPI_Win_create_keyval mpi_win_create_keyval_, MPI_Win_set_attr mpi_win_set_attr_, MPI_Win_get_attr mpi_win_get_attr_;
}

/// Creates a key whose attributes are default integers.
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_keyval_create_(
    copy_fn: usize,
    delete_fn: usize,
    keyval: *mut c_int,
    extra_state: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let key = Box::new(Key {
            copy: copy_fn,
            delete: delete_fn,
            state: i64::from(*extra_state),
            old: true,
        });
        let functions = (
            copy::<Comm> as *const () as usize,
            delete::<Comm> as *const () as usize,
        );
        let code =
            MPI_Comm_create_keyval(functions.0, functions.1, keyval, Box::into_raw(key).cast());
        answer(ierror, code);
    }
}

/// Sets an attribute that is a default integer.
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_attr_put_(
    comm: *mut c_int,
    keyval: *mut c_int,
    val: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: the caller's promise.
    let mut wide = i64::from(unsafe { *val });
    // SAFETY: the caller's promise.
    unsafe { mpi_comm_set_attr_(comm, keyval, &raw mut wide, ierror) };
}

/// Returns an attribute as a default integer.
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_attr_get_(
    comm: *mut c_int,
    keyval: *mut c_int,
    val: *mut c_int,
    flag: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut wide = i64::from(*val);
        mpi_comm_get_attr_(comm, keyval, &raw mut wide, flag, ierror);
        *val = wide as c_int;
    }
}

macro_rules! predefined {
    ($($null:ident $dup:ident $delete:ident $val:ty;)*) => {$(
        /// Copies no attribute.
        ///
        /// # Safety
        /// Arguments of a copy function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $null(_: *mut c_int, _: *mut c_int, _: *mut $val, _: *mut $val, _: *mut $val, flag: *mut c_int, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe {
                *flag = logical(0);
                answer(ierror, 0);
            }
        }

        /// Copies an attribute unchanged.
        ///
        /// # Safety
        /// Arguments of a copy function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $dup(_: *mut c_int, _: *mut c_int, _: *mut $val, val_in: *mut $val, val_out: *mut $val, flag: *mut c_int, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe {
                *val_out = *val_in;
                *flag = logical(1);
                answer(ierror, 0);
            }
        }

        /// Deletes nothing.
        ///
        /// # Safety
        /// Arguments of a delete function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $delete(_: *mut c_int, _: *mut c_int, _: *mut $val, _: *mut $val, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe { answer(ierror, 0) };
        }
    )*
        /// Procedures that copy attributes unchanged, as the program sees them.
        static DUPS: [unsafe extern "C-unwind" fn(); 4] = [$(dup::$dup),*];

        /// Foreign values: their addresses are the program's.
        mod dup {
            unsafe extern "C-unwind" {
                $(pub fn $dup();)*
            }
        }
    };
}

predefined! {
    mpi_comm_null_copy_fn_ mpi_comm_dup_fn_ mpi_comm_null_delete_fn_ i64;
    mpi_type_null_copy_fn_ mpi_type_dup_fn_ mpi_type_null_delete_fn_ i64;
    mpi_win_null_copy_fn_ mpi_win_dup_fn_ mpi_win_null_delete_fn_ i64;
    mpi_null_copy_fn_ mpi_dup_fn_ mpi_null_delete_fn_ c_int;
}
