//! Handling of errors: error handlers, the sentence on standard error, the end of the job (MPI 5.0,
//! 9.3).

use kw_objects::error::CLASSES;
use kw_objects::error::ToolClass;
use kw_objects::{Class, Fault, Handler, Mpi, Scope};
use std::ffi::c_int;

/// Calls the error handler of the fault's object, or of `scope` if the fault names none. Returns
/// the code for the caller. A user's handler may not return: C++ programs throw exceptions there.
/// No lock is held meanwhile.
#[cold]
#[inline(never)]
pub fn failed(mpi: &Mpi, name: &str, scope: Scope, fault: Box<Fault>) -> c_int {
    let scope = if fault.scope == Scope::Call {
        scope
    } else {
        fault.scope
    };
    match mpi.handler(scope) {
        Handler::Return => {
            note(mpi, name, &fault);
            fault.code
        }
        Handler::User { function, handle } if fault.asked_for => {
            function.call(handle, fault.code);
            0
        }
        Handler::User { function, handle } => {
            note(mpi, name, &fault);
            function.call(handle, fault.code);
            fault.code
        }
        Handler::Fatal | Handler::Abort => fatal(mpi, name, &fault),
    }
}

/// Handles the call of a function before initialisation or after finalisation that needs MPI:
/// prints the sentence and ends this process (the initial error handler is MPI_ERRORS_ARE_FATAL;
/// there are no peers to tell).
#[cold]
#[inline(never)]
pub fn outside(name: &str) -> c_int {
    if crate::shell::mpi().is_forked() {
        forked(name);
    }
    eprintln!(
        "process {} on {}: {name} was called before MPI was initialised or after it was finalised (MPI_ERR_OTHER)",
        std::process::id(),
        kw_sys::host::name()
    );
    kw_sys::host::leave(Class::Other as c_int)
}

/// Handles a call in a child of fork: prints the error and ends the child. Its buffers of standard
/// streams are its parent's.
fn forked(name: &str) -> ! {
    eprintln!(
        "process {} on {}: {name} was called in a child that a process of the job made with fork(), but only that process may \
         call MPI (MPI_ERR_OTHER)",
        std::process::id(),
        kw_sys::host::name()
    );
    kw_sys::host::leave_at_once(Class::Other as c_int)
}

/// The code of a fault of the tool interface.
#[cold]
pub fn tool_code(fault: &Fault) -> c_int {
    const NOT_SUPPORTED: c_int = Class::UnsupportedOperation as c_int;
    const ARG: c_int = Class::Arg as c_int;
    match fault.code {
        NOT_SUPPORTED => ToolClass::NotSupported as c_int,
        ARG => ToolClass::Invalid as c_int,
        code => code,
    }
}

/// Handles a panic of the library, whose message is on standard error already. Ends the job.
#[cold]
pub fn panicked(mpi: &Mpi, name: &str) {
    let text = format!("internal error of Kittiwake in {name}, described above; please report it");
    fatal(mpi, name, &Fault::new(Class::Intern, text))
}

fn note(mpi: &Mpi, name: &str, fault: &Fault) {
    let text = format!("{name}: {}", fault.text);
    mpi.lock().above.codes.note(fault.code, &text);
}

fn fatal(mpi: &Mpi, name: &str, fault: &Fault) -> ! {
    kw_mpi::end_job(mpi, exit_code(fault.code), &sentence(name, fault))
}

fn exit_code(code: c_int) -> c_int {
    if (1..256).contains(&code) { code } else { 1 }
}

/// The rank and host are added by the printer: the launcher, or `end_job` without one.
fn sentence(name: &str, fault: &Fault) -> String {
    let class = CLASSES.iter().find(|c| c.0 == fault.code);
    let class = class.map_or_else(|| format!("code {}", fault.code), |c| c.1.into());
    format!("{name}: {} ({class})", fault.text)
}
