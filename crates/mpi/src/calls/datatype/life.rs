//! Commit, duplicate and free datatypes (MPI 5.0, 5.1.9 and 5.1.10).

use super::{combiner, part};
use crate::calls::attr::{copy_all, delete_all};
use kw_objects::attributes::Owner;
use kw_objects::datatype::{Datatype, Recipe};
use kw_objects::error::{Res, fail};
use kw_objects::handle::TypeH;
use kw_objects::left::Made;
use kw_objects::state::Mpi;
use kw_sys::args::Out;
use std::sync::Arc;

/// MPI_Type_commit
pub fn type_commit(mpi: &Mpi, datatype: Out<TypeH>) -> Res {
    mpi.lock().above.datatype_mut(datatype.get())?.committed = true;
    Ok(())
}

/// MPI_Type_dup: attributes are copied by their keyvals' functions; if one fails there is no
/// duplicate.
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
    let key = tables.types.derived.insert(dup);
    tables.note_made(Made::Type(TypeH::from_key(key)));
    drop(guard);
    let new = TypeH::from_key(key);
    let copied = copy_all(mpi, Owner::Type(oldtype), Owner::Type(new));
    if copied.is_err() {
        // The caller must get the copy function's code.
        let _ = delete_all(mpi, Owner::Type(new));
        mpi.lock().above.types.derived.remove(key);
        newtype.set(TypeH::NULL);
        return copied;
    }
    newtype.set(new);
    Ok(())
}

/// MPI_Type_free
pub fn type_free(mpi: &Mpi, datatype: Out<TypeH>) -> Res {
    let handle = datatype.get();
    let guard = mpi.lock();
    let of = guard.above.datatype(handle)?;
    if of.lasting {
        return fail!(Type: "{} is predefined and cannot be freed", of.name);
    }
    drop(guard);
    delete_all(mpi, Owner::Type(handle))?;
    let types = &mut mpi.lock().above.types;
    handle.key().and_then(|k| types.derived.remove(k));
    datatype.set(TypeH::NULL);
    Ok(())
}
