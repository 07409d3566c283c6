//! How a datatype was made (MPI 5.0, 5.1.13).

use super::combiner;
use crate::calls::datatype::f90::{f90_handle, is_f90};
use kw_objects::datatype::{Datatype, Part, Recipe};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::TypeH;
use kw_objects::left::Made;
use kw_objects::state::{Mpi, Tables};
use kw_sys::args::{Array, Ints, Out, OutInt};
use std::sync::Arc;

fn envelope(mpi: &Mpi, datatype: TypeH) -> Res<([i64; 4], i32)> {
    let guard = mpi.lock();
    Ok(match &guard.above.datatype(datatype)?.recipe {
        None => ([0; 4], combiner::NAMED),
        Some(r) => (
            [
                r.integers.len() as i64,
                r.addresses.len() as i64,
                r.counts.len() as i64,
                r.types.len() as i64,
            ],
            r.combiner,
        ),
    })
}

/// MPI_Type_get_envelope
pub fn type_get_envelope(
    mpi: &Mpi,
    datatype: TypeH,
    num_integers: OutInt,
    num_addresses: OutInt,
    num_datatypes: OutInt,
    combiner: Out<i32>,
) -> Res {
    let (counts, kind) = envelope(mpi, datatype)?;
    num_integers.set(counts[0]);
    num_addresses.set(counts[1]);
    num_datatypes.set(counts[3]);
    combiner.set(kind);
    Ok(())
}

/// MPI_Type_get_envelope_c
pub fn type_get_envelope_c(
    mpi: &Mpi,
    datatype: TypeH,
    num_integers: OutInt,
    num_addresses: OutInt,
    num_large_counts: OutInt,
    num_datatypes: OutInt,
    combiner: Out<i32>,
) -> Res {
    let (counts, kind) = envelope(mpi, datatype)?;
    num_integers.set(counts[0]);
    num_addresses.set(counts[1]);
    num_large_counts.set(counts[2]);
    num_datatypes.set(counts[3]);
    combiner.set(kind);
    Ok(())
}

fn recipe(tables: &Tables, datatype: TypeH) -> Res<Arc<Recipe>> {
    tables.datatype(datatype)?.recipe.clone().ok_or_else(|| {
        Fault::new(
            Class::Type,
            "a predefined datatype has no contents (its combiner is MPI_COMBINER_NAMED)",
        )
    })
}

fn room(name: &str, max: i64, n: usize) -> Res {
    if max < n as i64 {
        return fail!(Arg: "{name} is {max}, but there are {n}");
    }
    Ok(())
}

/// Writes the parts that do not depend on width, and the handles: derived parts get new ones.
fn give(
    tables: &mut Tables,
    recipe: &Recipe,
    integers: Ints,
    addresses: Ints,
    types: Array<TypeH>,
) {
    for (i, x) in recipe.integers.iter().enumerate() {
        integers.set(i, *x);
    }
    for (i, x) in recipe.addresses.iter().enumerate() {
        addresses.set(i, *x);
    }
    for (i, part) in recipe.types.iter().enumerate() {
        types.set(i, handle_of(tables, part));
    }
}

fn handle_of(tables: &mut Tables, part: &Part) -> TypeH {
    match part {
        Part::Named(handle) => *handle,
        Part::Derived(_, origin) if is_f90(origin.recipe()) => {
            f90_handle(&tables.types, origin.recipe())
        }
        Part::Derived(layout, origin) => {
            let again = Datatype::derived(layout.clone(), origin.recipe().clone());
            let handle = TypeH::from_key(tables.types.derived.insert(again));
            tables.note_made(Made::Type(handle));
            handle
        }
    }
}

/// MPI_Type_get_contents
pub fn type_get_contents(
    mpi: &Mpi,
    datatype: TypeH,
    max_integers: i64,
    max_addresses: i64,
    max_datatypes: i64,
    array_of_integers: Ints,
    array_of_addresses: Ints,
    array_of_datatypes: Array<TypeH>,
) -> Res {
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let recipe = recipe(tables, datatype)?;
    if !recipe.counts.is_empty() {
        return fail!(Type: "the datatype was made by a large-count constructor; use MPI_Type_get_contents_c");
    }
    room("max_integers", max_integers, recipe.integers.len())?;
    room("max_addresses", max_addresses, recipe.addresses.len())?;
    room("max_datatypes", max_datatypes, recipe.types.len())?;
    give(
        tables,
        &recipe,
        array_of_integers,
        array_of_addresses,
        array_of_datatypes,
    );
    Ok(())
}

/// MPI_Type_get_contents_c
pub fn type_get_contents_c(
    mpi: &Mpi,
    datatype: TypeH,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    array_of_integers: Ints,
    array_of_addresses: Ints,
    array_of_large_counts: Ints,
    array_of_datatypes: Array<TypeH>,
) -> Res {
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let recipe = recipe(tables, datatype)?;
    room("max_integers", max_integers, recipe.integers.len())?;
    room("max_addresses", max_addresses, recipe.addresses.len())?;
    room("max_large_counts", max_large_counts, recipe.counts.len())?;
    room("max_datatypes", max_datatypes, recipe.types.len())?;
    for (i, x) in recipe.counts.iter().enumerate() {
        array_of_large_counts.set(i, *x);
    }
    give(
        tables,
        &recipe,
        array_of_integers,
        array_of_addresses,
        array_of_datatypes,
    );
    Ok(())
}
