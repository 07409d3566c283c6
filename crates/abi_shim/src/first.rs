//! Reports errors in the set-up of a process before MPI is used in it.

use crate::Abi;
use crate::functions::{STAMP, functions};
use std::ffi::{CStr, c_int};

/// Libraries of other ABIs: if one is in the process, some part of it calls that library.
const LIBRARIES: [&CStr; 6] = [
    c"libmpi.so.12",
    c"libmpich.so.12",
    c"libmpi.so.40",
    c"libmpi.so.20",
    c"libmpi.so.80",
    c"libmpi.so.1",
];

/// Alternative name of an ABI's library in some distributions.
fn same(a: &CStr, b: &CStr) -> bool {
    let mpich = [c"libmpi.so.12", c"libmpich.so.12"];
    a == b || mpich.contains(&a) && mpich.contains(&b)
}

/// Called before MPI is initialised: ends a process in which it cannot work.
pub fn first<A: Abi>() {
    let own = A::LIBRARY.to_string_lossy();
    if functions().stamp != STAMP {
        end(&format!(
            "{own} and libmpi_abi.so.1 are of different versions of Kittiwake: reinstall both"
        ));
    }
    for other in LIBRARIES.iter().filter(|name| !same(name, A::LIBRARY)) {
        // SAFETY: a name; nothing is loaded.
        let loaded = unsafe { libc::dlopen(other.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !loaded.is_null() {
            let other = other.to_string_lossy();
            end(&format!(
                "this program uses both {other} and {own}, whose handles differ: build all parts for the same MPI"
            ));
        }
    }
}

/// Prints a sentence and ends the process.
pub fn end(sentence: &str) -> ! {
    eprintln!("process {}: {sentence}", std::process::id());
    std::process::exit(1)
}

/// The result of a function that the ABI's own libraries have beyond MPI, and this one does not
/// have.
#[cold]
pub fn refuse<A: Abi>(name: &str, code: c_int) -> c_int {
    eprintln!(
        "process {}: {name} is not an MPI function and not in Kittiwake's {}: it returns MPI_ERR_UNSUPPORTED_OPERATION",
        std::process::id(),
        A::LIBRARY.to_string_lossy()
    );
    code
}
