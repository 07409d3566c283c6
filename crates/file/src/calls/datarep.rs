//! User-defined data representations (MPI 5.0, 14.5.3).

use crate::calls::view::registered;
use crate::representation::{Convert, Registered};
use kw_objects::error::{Res, fail};
use kw_objects::state::Mpi;
use kw_sys::args::Text;
use kw_sys::callback::{DatarepConvert, DatarepConvertCount, DatarepExtent};
use std::sync::Arc;

/// MPI_MAX_DATAREP_STRING
const MAX_DATAREP: usize = 128;

fn register(
    mpi: &Mpi,
    datarep: Text,
    (read, write): (Option<Convert>, Option<Convert>),
    extent: Option<DatarepExtent>,
    extra: usize,
) -> Res {
    let name = datarep.to_text().unwrap_or_default();
    if name.is_empty() || name.len() >= MAX_DATAREP {
        return fail!(Arg: "datarep has {} characters, but must have 1 to {}", name.len(), MAX_DATAREP - 1);
    }
    let mut guard = mpi.lock();
    let taken = ["native", "internal", "external32"].contains(&name.as_str())
        || registered(&guard.above).iter().any(|r| r.name == name);
    if taken {
        return fail!(DupDatarep: "datarep is '{name}', which is defined already");
    }
    let made = Registered {
        name,
        read,
        write,
        extent,
        extra,
    };
    guard.above.representations.push(Arc::new(made));
    Ok(())
}

/// MPI_Register_datarep
pub fn register_datarep(
    mpi: &Mpi,
    datarep: Text,
    read_conversion_fn: Option<DatarepConvert>,
    write_conversion_fn: Option<DatarepConvert>,
    dtype_file_extent_fn: Option<DatarepExtent>,
    extra_state: usize,
) -> Res {
    let both = (
        read_conversion_fn.map(Convert::Int),
        write_conversion_fn.map(Convert::Int),
    );
    register(mpi, datarep, both, dtype_file_extent_fn, extra_state)
}

/// MPI_Register_datarep_c
pub fn register_datarep_c(
    mpi: &Mpi,
    datarep: Text,
    read_conversion_fn: Option<DatarepConvertCount>,
    write_conversion_fn: Option<DatarepConvertCount>,
    dtype_file_extent_fn: Option<DatarepExtent>,
    extra_state: usize,
) -> Res {
    let both = (
        read_conversion_fn.map(Convert::Count),
        write_conversion_fn.map(Convert::Count),
    );
    register(mpi, datarep, both, dtype_file_extent_fn, extra_state)
}
