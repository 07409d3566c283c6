//! Reading and setting of a status (MPI 5.0, 3.2.5, 3.8.4 and 13.3).

use kw_objects::error::Res;
use kw_objects::state::Mpi;
use kw_objects::status;
use kw_sys::args::{Out, Status, StatusOut};

fn change(place: StatusOut, change: impl FnOnce(&mut Status)) -> Res {
    let mut status = place.get();
    change(&mut status);
    place.set(status);
    Ok(())
}

/// MPI_Test_cancelled
pub fn test_cancelled(_mpi: &Mpi, status: StatusOut, flag: Out<i32>) -> Res {
    flag.set(status::is_cancelled(&status.get()) as i32);
    Ok(())
}

/// MPI_Status_set_cancelled
pub fn status_set_cancelled(_mpi: &Mpi, status: StatusOut, flag: i32) -> Res {
    change(status, |s| status::set_cancelled(s, flag != 0))
}

/// MPI_Status_set_source
pub fn status_set_source(_mpi: &Mpi, status: StatusOut, source: i32) -> Res {
    change(status, |s| s.source = source)
}

/// MPI_Status_set_tag
pub fn status_set_tag(_mpi: &Mpi, status: StatusOut, tag: i32) -> Res {
    change(status, |s| s.tag = tag)
}

/// MPI_Status_set_error
pub fn status_set_error(_mpi: &Mpi, status: StatusOut, error: i32) -> Res {
    change(status, |s| s.error = error)
}

/// MPI_Status_get_source
pub fn status_get_source(_mpi: &Mpi, status: StatusOut, source: Out<i32>) -> Res {
    source.set(status.get().source);
    Ok(())
}

/// MPI_Status_get_tag
pub fn status_get_tag(_mpi: &Mpi, status: StatusOut, tag: Out<i32>) -> Res {
    tag.set(status.get().tag);
    Ok(())
}

/// MPI_Status_get_error
pub fn status_get_error(_mpi: &Mpi, status: StatusOut, error: Out<i32>) -> Res {
    error.set(status.get().error);
    Ok(())
}
