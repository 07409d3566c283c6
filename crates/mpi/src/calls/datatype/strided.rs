//! Contiguous and strided datatypes, resizing, duplication (MPI 5.0, 5.1.2, 5.1.7, 5.1.10).

use super::{combiner, enter, part, positive};
use kw_objects::datatype::{Recipe, checked_count};
use kw_objects::error::{Class, Fault, Res};
use kw_objects::handle::TypeH;
use kw_objects::state::Mpi;
use kw_sys::args::Out;
use kw_types::layout::{Layout, Mismatch};

/// Scalar arguments as contents: large-count constructors keep them all as counts, the others as
/// integers and addresses.
fn scalars(kind: i32, large: bool, integers: &[i64], addresses: &[i64]) -> Recipe {
    let mut recipe = Recipe {
        combiner: kind,
        ..Recipe::default()
    };
    if large {
        recipe.counts = [integers, addresses].concat();
    } else {
        recipe.integers = integers.to_vec();
        recipe.addresses = addresses.to_vec();
    }
    recipe
}

fn make(
    mpi: &Mpi,
    oldtype: TypeH,
    mut recipe: Recipe,
    newtype: Out<TypeH>,
    build: impl FnOnce(&Layout) -> Result<Layout, Mismatch>,
) -> Res {
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let layout = build(&tables.datatype(oldtype)?.layout)?;
    recipe.types.push(part(tables, oldtype)?);
    enter(tables, layout, recipe, newtype)
}

fn contiguous(mpi: &Mpi, large: bool, count: i64, oldtype: TypeH, newtype: Out<TypeH>) -> Res {
    let n = checked_count("count", count)?;
    let recipe = scalars(combiner::CONTIGUOUS, large, &[count], &[]);
    make(mpi, oldtype, recipe, newtype, |old| old.contiguous_of(n))
}

/// MPI_Type_contiguous
pub fn type_contiguous(mpi: &Mpi, count: i64, oldtype: TypeH, newtype: Out<TypeH>) -> Res {
    contiguous(mpi, false, count, oldtype, newtype)
}

/// MPI_Type_contiguous_c
pub fn type_contiguous_c(mpi: &Mpi, count: i64, oldtype: TypeH, newtype: Out<TypeH>) -> Res {
    contiguous(mpi, true, count, oldtype, newtype)
}

fn vector(mpi: &Mpi, large: bool, dims: [i64; 3], oldtype: TypeH, newtype: Out<TypeH>) -> Res {
    let (n, len) = (
        checked_count("count", dims[0])?,
        positive("blocklength", dims[1])?,
    );
    let recipe = scalars(combiner::VECTOR, large, &dims, &[]);
    make(mpi, oldtype, recipe, newtype, |old| {
        old.hvector(n, len, old.scaled(dims[2])?)
    })
}

/// MPI_Type_vector
pub fn type_vector(
    mpi: &Mpi,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    vector(mpi, false, [count, blocklength, stride], oldtype, newtype)
}

/// MPI_Type_vector_c
pub fn type_vector_c(
    mpi: &Mpi,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    vector(mpi, true, [count, blocklength, stride], oldtype, newtype)
}

fn hvector(mpi: &Mpi, large: bool, dims: [i64; 3], oldtype: TypeH, newtype: Out<TypeH>) -> Res {
    let (n, len) = (
        checked_count("count", dims[0])?,
        positive("blocklength", dims[1])?,
    );
    let recipe = scalars(combiner::HVECTOR, large, &dims[..2], &dims[2..]);
    make(mpi, oldtype, recipe, newtype, |old| {
        old.hvector(n, len, dims[2])
    })
}

/// MPI_Type_create_hvector
pub fn type_create_hvector(
    mpi: &Mpi,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    hvector(mpi, false, [count, blocklength, stride], oldtype, newtype)
}

/// MPI_Type_create_hvector_c
pub fn type_create_hvector_c(
    mpi: &Mpi,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    hvector(mpi, true, [count, blocklength, stride], oldtype, newtype)
}

fn resized(
    mpi: &Mpi,
    large: bool,
    oldtype: TypeH,
    lb: i64,
    extent: i64,
    newtype: Out<TypeH>,
) -> Res {
    let recipe = scalars(combiner::RESIZED, large, &[], &[lb, extent]);
    make(mpi, oldtype, recipe, newtype, |old| old.resized(lb, extent))
}

/// MPI_Type_create_resized
pub fn type_create_resized(
    mpi: &Mpi,
    oldtype: TypeH,
    lb: i64,
    extent: i64,
    newtype: Out<TypeH>,
) -> Res {
    resized(mpi, false, oldtype, lb, extent, newtype)
}

/// MPI_Type_create_resized_c
pub fn type_create_resized_c(
    mpi: &Mpi,
    oldtype: TypeH,
    lb: i64,
    extent: i64,
    newtype: Out<TypeH>,
) -> Res {
    resized(mpi, true, oldtype, lb, extent, newtype)
}

/// MPI_Type_get_value_index: the predefined pair of a value's and an index's datatype,
/// MPI_DATATYPE_NULL if there is none.
pub fn type_get_value_index(
    mpi: &Mpi,
    value_type: TypeH,
    index_type: TypeH,
    pair_type: Out<TypeH>,
) -> Res {
    let guard = mpi.lock();
    for (name, handle) in [("value_type", value_type), ("index_type", index_type)] {
        if guard.above.datatype(handle)?.recipe.is_some() {
            return Err(Fault::new(
                Class::Type,
                format!("{name} must be a predefined datatype, but is a derived one"),
            ));
        }
    }
    let found = PAIRS
        .iter()
        .find(|row| row.0 == value_type.0 && row.1 == index_type.0);
    pair_type.set(found.map_or(TypeH::NULL, |row| TypeH(row.2)));
    Ok(())
}

/// Value, index and pair: MPI_FLOAT_INT and so on (MPI 5.0, 6.9.4).
const PAIRS: &[(usize, usize, usize)] = &[
    (0x210, 0x209, 0x228),
    (0x214, 0x209, 0x229),
    (0x20a, 0x209, 0x22a),
    (0x209, 0x209, 0x22b),
    (0x208, 0x209, 0x22c),
    (0x220, 0x209, 0x22d),
    (0x21a, 0x21a, 0x230),
    (0x21c, 0x21c, 0x231),
    (0x219, 0x219, 0x232),
];
