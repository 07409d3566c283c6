//! Versions of the standard and the library; MPI_Pcontrol. Callable at any time (MPI 5.0, 9.1 and
//! 15.2).

use kw_objects::{Mpi, Res};
use kw_sys::args::{Out, OutText};

/// MPI_MAX_LIBRARY_VERSION_STRING
const MAX_LIBRARY_VERSION: usize = 8192;

/// The standard this library follows: 5.0.
pub fn get_version(_mpi: &Mpi, version: Out<i32>, subversion: Out<i32>) -> Res {
    version.set(5);
    subversion.set(0);
    Ok(())
}

/// Name and version of this library.
pub fn get_library_version(_mpi: &Mpi, version: OutText, length: Out<i32>) -> Res {
    length.set(version.set(kw_base::LIBRARY.as_bytes(), MAX_LIBRARY_VERSION) as i32);
    Ok(())
}

/// Without effect: profiling is left to tools that replace MPI_Pcontrol.
pub fn pcontrol(_mpi: &Mpi, level: i32) -> Res {
    let _ = level;
    Ok(())
}
