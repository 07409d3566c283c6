//! Functions of the C++ bindings for programs and libraries that were compiled as C++ with Open MPI
//! 4's mpi.h: those of `libmpi_cxx.so.40` that are not inline there. They are hardly ever called,
//! but all such files refer to them.
//!
//! An object of the bindings is the address of its class's functions, followed by the handle.

use crate::objects::ompi_mpi_comm_null;
use crate::shells::{MPI_Type_free, MPI_Win_free};
use kw_abi_shim::first::end;
use std::ffi::c_void;

/// An object of the bindings.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    class: *const c_void,
    handle: usize,
}

/// MPI::Comm::Comm(): no communicator. The derived class sets the class.
///
/// # Safety
/// There is room for an object.
#[unsafe(export_name = "_ZN3MPI4CommC2Ev")]
pub unsafe extern "C-unwind" fn comm(this: *mut Object) {
    // SAFETY: the caller's promise.
    unsafe { (*this).handle = &raw const ompi_mpi_comm_null as usize };
}

/// MPI::Datatype::Free()
///
/// # Safety
/// It is a datatype.
#[unsafe(export_name = "_ZN3MPI8Datatype4FreeEv")]
pub unsafe extern "C-unwind" fn datatype_free(this: *mut Object) {
    // SAFETY: the caller's promise; an error goes to the error handler.
    let _ = unsafe { MPI_Type_free(&raw mut (*this).handle) };
}

/// MPI::Win::Free()
///
/// # Safety
/// It is a window.
#[unsafe(export_name = "_ZN3MPI3Win4FreeEv")]
pub unsafe extern "C-unwind" fn win_free(this: *mut Object) {
    // SAFETY: the caller's promise; an error goes to the error handler.
    let _ = unsafe { MPI_Win_free(&raw mut (*this).handle) };
}

/// The function that MPI::Op::Init passes to MPI_Op_create: it would call the program's C++
/// function.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ompi_mpi_cxx_op_intercept() {}

/// Function by which MPI::Op::Init tells which C++ function that is.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ompi_op_set_cxx_callback(_op: usize, _function: usize) {
    end(
        "Kittiwake does not have MPI::Op::Init of the C++ bindings, which MPI 3.0 removed: use MPI_Op_create",
    );
}
