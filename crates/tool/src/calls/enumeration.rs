//! Enumerations (MPI 5.0, 15.3.5).

use super::{give, open, say};
use kw_objects::error::{Res, ToolClass};
use kw_objects::handle::EnumH;
use kw_objects::state::Mpi;
use kw_objects::tool::{enumeration, refuse};
use kw_sys::args::{Out, OutText};

/// MPI_T_enum_get_info
pub fn t_enum_get_info(
    mpi: &Mpi,
    enumtype: EnumH,
    num: Out<i32>,
    name: OutText,
    name_len: Out<i32>,
) -> Res {
    let _guard = open(mpi)?;
    let found = enumeration(enumtype)?;
    say(found.name, name, name_len)?;
    give(num, found.items.len() as i32);
    Ok(())
}

/// MPI_T_enum_get_item
pub fn t_enum_get_item(
    mpi: &Mpi,
    enumtype: EnumH,
    indx: i32,
    value: Out<i32>,
    name: OutText,
    name_len: Out<i32>,
) -> Res {
    let _guard = open(mpi)?;
    let found = enumeration(enumtype)?;
    let item = usize::try_from(indx).ok().and_then(|i| found.items.get(i));
    let Some(item) = item else {
        let n = found.items.len();
        let text = format!("indx is {indx}, but the enumeration has {n} items");
        return refuse(ToolClass::InvalidItem, text);
    };
    say(item, name, name_len)?;
    give(value, indx);
    Ok(())
}
