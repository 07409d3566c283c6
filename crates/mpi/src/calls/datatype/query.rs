//! Size, extent, name, address of datatypes and data (MPI 5.0, 5.1.5 to 5.1.8, 7.8, 19.1.9).

use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::TypeH;
use kw_objects::state::Mpi;
use kw_sys::args::{Out, OutInt, OutText, Text};
use kw_sys::buf::Addr;

/// MPI_MAX_OBJECT_NAME
const MAX_OBJECT_NAME: usize = 128;

/// MPI_Type_size
pub fn type_size(mpi: &Mpi, datatype: TypeH, size: OutInt) -> Res {
    size.set(mpi.lock().above.datatype(datatype)?.layout.size() as i64);
    Ok(())
}

/// MPI_Type_size_x
pub fn type_size_x(mpi: &Mpi, datatype: TypeH, size: OutInt) -> Res {
    type_size(mpi, datatype, size)
}

/// MPI_Type_get_extent
pub fn type_get_extent(mpi: &Mpi, datatype: TypeH, lb: OutInt, extent: OutInt) -> Res {
    let guard = mpi.lock();
    let layout = &guard.above.datatype(datatype)?.layout;
    lb.set(layout.lb());
    extent.set(layout.extent());
    Ok(())
}

/// MPI_Type_get_extent_x
pub fn type_get_extent_x(mpi: &Mpi, datatype: TypeH, lb: OutInt, extent: OutInt) -> Res {
    type_get_extent(mpi, datatype, lb, extent)
}

/// MPI_Type_get_true_extent
pub fn type_get_true_extent(
    mpi: &Mpi,
    datatype: TypeH,
    true_lb: OutInt,
    true_extent: OutInt,
) -> Res {
    let guard = mpi.lock();
    let layout = &guard.above.datatype(datatype)?.layout;
    true_lb.set(layout.true_lb());
    true_extent.set(layout.true_extent());
    Ok(())
}

/// MPI_Type_get_true_extent_x
pub fn type_get_true_extent_x(
    mpi: &Mpi,
    datatype: TypeH,
    true_lb: OutInt,
    true_extent: OutInt,
) -> Res {
    type_get_true_extent(mpi, datatype, true_lb, true_extent)
}

/// MPI_Type_get_name
pub fn type_get_name(mpi: &Mpi, datatype: TypeH, type_name: OutText, resultlen: Out<i32>) -> Res {
    let guard = mpi.lock();
    let name = if datatype.is_null() {
        "MPI_DATATYPE_NULL"
    } else {
        &guard.above.datatype(datatype)?.name
    };
    resultlen.set(type_name.set(name.as_bytes(), MAX_OBJECT_NAME) as i32);
    Ok(())
}

/// MPI_Type_set_name
pub fn type_set_name(mpi: &Mpi, datatype: TypeH, type_name: Text) -> Res {
    let Some(mut name) = type_name.to_text() else {
        return fail(Class::Arg, "type_name is a null pointer");
    };
    if name.len() >= MAX_OBJECT_NAME {
        let end = (0..MAX_OBJECT_NAME)
            .rev()
            .find(|&i| name.is_char_boundary(i));
        name.truncate(end.unwrap_or(0));
    }
    mpi.lock().above.datatype_mut(datatype)?.name = name;
    Ok(())
}

/// MPI_Get_address
pub fn get_address(_mpi: &Mpi, location: Addr, address: OutInt) -> Res {
    address.set(location.bits() as i64);
    Ok(())
}
