//! Commit, duplicate and free datatypes (MPI 5.0, 5.1.9 and 5.1.10).

use super::{combiner, part};
use crate::error::{Class, Res, fail};
use crate::handle::TypeH;
use crate::objects::datatype::{Datatype, Recipe};
use crate::state::Mpi;
use kw_sys::args::Out;
use std::sync::Arc;

/// MPI_Type_commit
pub fn type_commit(mpi: &Mpi, datatype: Out<TypeH>) -> Res {
    mpi.lock().above.datatype_mut(datatype.get())?.committed = true;
    Ok(())
}

/// MPI_Type_dup
pub fn type_dup(mpi: &Mpi, oldtype: TypeH, newtype: Out<TypeH>) -> Res {
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let old = tables.datatype(oldtype)?;
    let (layout, committed) = (old.layout.clone(), old.committed);
    let recipe = Recipe {
        combiner: combiner::DUP,
        types: vec![part(tables, oldtype)?],
        ..Recipe::default()
    };
    let mut dup = Datatype::derived(layout, Arc::new(recipe));
    dup.committed = committed;
    newtype.set(TypeH::from_key(tables.types.derived.insert(dup)));
    Ok(())
}

/// MPI_Type_free
pub fn type_free(mpi: &Mpi, datatype: Out<TypeH>) -> Res {
    let handle = datatype.get();
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let of = tables.datatype(handle)?;
    if of.lasting {
        return fail(
            Class::Type,
            format!("{} is predefined and cannot be freed", of.name),
        );
    }
    handle.key().and_then(|k| tables.types.derived.remove(k));
    datatype.set(TypeH::NULL);
    Ok(())
}
