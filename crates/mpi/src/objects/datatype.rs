//! Datatype objects: layout, contents for MPI_Type_get_contents, name, attributes.

use crate::error::{Class, Res, fail};
use crate::handle::TypeH;
use crate::state::Tables;
use kw_core::layout::Layout;
use kw_sys::buf::{Addr, Buf};
use std::sync::Arc;

impl Tables {
    /// The layout of a committed datatype.
    pub fn layout(&self, datatype: TypeH) -> Res<&Arc<Layout>> {
        fail(
            Class::Type,
            format!("datatype {:#x} is not known", datatype.0),
        )
    }

    /// The message buffer that `(addr, count, datatype)` describes; checks count, datatype, commitment and null buffers.
    pub fn buf(&self, addr: Addr, count: i64, datatype: TypeH) -> Res<Buf> {
        if count < 0 {
            return fail(
                Class::Count,
                format!("count is {count}, but must not be negative"),
            );
        }
        Ok(Buf::typed(addr, count as u64, self.layout(datatype)?))
    }
}
