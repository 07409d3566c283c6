//! Work of every shell around its call: checks that MPI is initialised, and handles errors.
//!
//! The successful path is inlined and costs two loads and two branches; everything else is cold. An
//! exception thrown by a function of the program (an error handler, a reduction) unwinds through
//! the shell to its caller; a panic of the library ends the job there.

use crate::report;
use kw_base::sync::OnceLock;
use kw_objects::{Class, Fault, Mpi, Res, Scope};
use std::ffi::c_int;

/// The only global of the process: MPI.
static MPI: OnceLock<Mpi> = OnceLock::new();

/// MPI in this process.
pub fn mpi() -> &'static Mpi {
    MPI.get_or_init(|| {
        kw_sys::process::in_children(forked);
        kw_sys::process::at_exit(ended);
        let mpi = Mpi::new();
        mpi.lock().above.life.when_open = Some(kw_processes::meet_parent);
        mpi
    })
}

extern "C" fn forked() {
    if let Some(mpi) = MPI.get() {
        mpi.over_in_child();
    }
}

extern "C" fn ended() {
    if let Some(mpi) = MPI.get() {
        kw_mpi::end_process(mpi);
    }
}

/// Runs a function that needs MPI to be initialised and not finalised.
#[inline(always)]
pub fn run(name: &'static str, scope: Scope, body: impl FnOnce(&'static Mpi) -> Res) -> c_int {
    match MPI.get() {
        Some(mpi) if mpi.is_active() => guarded(mpi, name, scope, body),
        _ => report::outside(name),
    }
}

/// Runs a function that may be called at any time.
#[inline(always)]
pub fn run_always(
    name: &'static str,
    scope: Scope,
    body: impl FnOnce(&'static Mpi) -> Res,
) -> c_int {
    guarded(mpi(), name, scope, body)
}

/// Runs a function of the tool interface: its errors are returned, no handler is called (MPI 5.0,
/// 15.3).
pub fn run_tool(name: &'static str, _: Scope, body: impl FnOnce(&'static Mpi) -> Res) -> c_int {
    match watched(mpi(), name, body) {
        Ok(()) => 0,
        Err(fault) => report::tool_code(&fault),
    }
}

#[inline(always)]
fn guarded(
    mpi: &'static Mpi,
    name: &'static str,
    scope: Scope,
    body: impl FnOnce(&'static Mpi) -> Res,
) -> c_int {
    match watched(mpi, name, body) {
        Ok(()) => 0,
        Err(fault) => report::failed(mpi, name, scope, fault),
    }
}

/// Ends the job on a panic of the library. An exception of the program's own passes through.
struct Watch {
    mpi: &'static Mpi,
    name: &'static str,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report::panicked(self.mpi, self.name);
        }
    }
}

#[inline(always)]
fn watched(mpi: &'static Mpi, name: &'static str, body: impl FnOnce(&'static Mpi) -> Res) -> Res {
    let watch = Watch { mpi, name };
    let result = body(mpi);
    std::mem::forget(watch);
    result
}

/// Checks that an output argument has a place.
#[inline(always)]
pub fn not_null(address: usize, name: &'static str) -> Res {
    if address == 0 {
        Err(null(name))
    } else {
        Ok(())
    }
}

/// Checks that an array with elements has a place.
#[inline(always)]
pub fn not_null_when(count: i64, address: usize, name: &'static str) -> Res {
    if address == 0 && count > 0 {
        Err(null(name))
    } else {
        Ok(())
    }
}

#[cold]
fn null(name: &str) -> Box<Fault> {
    Fault::new(Class::Arg, format!("{name} is a null pointer"))
}

/// The result of a function that is not built.
#[cold]
pub fn unbuilt() -> Res {
    Err(Fault::new(
        Class::UnsupportedOperation,
        "not built yet in this version of Kittiwake",
    ))
}
