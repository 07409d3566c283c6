//! Contents of a status in terms of a datatype (MPI 5.0, 3.2.5, 5.1.11, 13.3).

use kw_objects::datatype::checked_count;
use kw_objects::error::{Class, Fault, Res};
use kw_objects::handle::TypeH;
use kw_objects::state::Mpi;
use kw_sys::args::{OutInt, Status, StatusOut};

/// MPI_UNDEFINED
pub(crate) const UNDEFINED: i64 = -32766;

fn bytes(status: &Status) -> u64 {
    status.internal[0] as u32 as u64 | (status.internal[1] as u32 as u64) << 32
}

fn given(status: StatusOut) -> Res<Status> {
    if status.is_ignored() {
        return Err(Fault::new(
            Class::Arg,
            "status is MPI_STATUS_IGNORE, but must be a status",
        ));
    }
    Ok(status.get())
}

/// MPI_Get_count
pub fn get_count(mpi: &Mpi, status: StatusOut, datatype: TypeH, count: OutInt) -> Res {
    let bytes = bytes(&given(status)?);
    let size = mpi.lock().above.datatype(datatype)?.layout.size();
    count.set(match (bytes, size) {
        (0, _) => 0,
        (_, 0) => UNDEFINED,
        _ if bytes % size != 0 => UNDEFINED,
        _ => (bytes / size) as i64,
    });
    Ok(())
}

/// MPI_Get_elements
pub fn get_elements(mpi: &Mpi, status: StatusOut, datatype: TypeH, count: OutInt) -> Res {
    let bytes = bytes(&given(status)?);
    let elements = mpi
        .lock()
        .above
        .datatype(datatype)?
        .layout
        .elements_in(bytes);
    count.set(elements.map_or(UNDEFINED, |n| n as i64));
    Ok(())
}

/// MPI_Get_elements_x
pub fn get_elements_x(mpi: &Mpi, status: StatusOut, datatype: TypeH, count: OutInt) -> Res {
    get_elements(mpi, status, datatype, count)
}

/// MPI_Status_set_elements
pub fn status_set_elements(mpi: &Mpi, status: StatusOut, datatype: TypeH, count: i64) -> Res {
    let mut new = given(status)?;
    let elements = checked_count("count", count)?;
    let bytes = mpi
        .lock()
        .above
        .datatype(datatype)?
        .layout
        .bytes_of(elements);
    let bytes = bytes.ok_or_else(|| {
        Fault::new(
            Class::Count,
            format!("count is {count}, but the datatype cannot hold that many elements"),
        )
    })?;
    new.internal[0] = bytes as u32 as i32;
    new.internal[1] = (bytes >> 32) as u32 as i32;
    status.set(new);
    Ok(())
}

/// MPI_Status_set_elements_x
pub fn status_set_elements_x(mpi: &Mpi, status: StatusOut, datatype: TypeH, count: i64) -> Res {
    status_set_elements(mpi, status, datatype, count)
}
