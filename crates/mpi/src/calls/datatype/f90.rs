//! Datatypes by precision and range, and by size (MPI 5.0, 19.1.9).

use super::combiner;
use kw_objects::datatype::{Datatype, Recipe, Types};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::TypeH;
use kw_objects::state::Mpi;
use kw_sys::args::Out;
use kw_types::layout::{Layout, basic};
use std::sync::Arc;

const UNDEFINED: i32 = -32766;
const TYPECLASS_INTEGER: i32 = 192;
const TYPECLASS_REAL: i32 = 193;
const TYPECLASS_COMPLEX: i32 = 194;

/// Decimal digits, decimal exponent range, MPI_REAL..., MPI_COMPLEX... of the same kind.
const REALS: &[(i32, i32, usize, usize)] = &[
    (6, 37, 0x2d2, 0x2db),
    (15, 307, 0x2da, 0x2e3),
    (33, 4931, 0x2e2, 0x2eb),
];

/// Decimal exponent range, MPI_INTEGER...
const INTEGERS: &[(i32, usize)] = &[(2, 0x2c1), (4, 0x2c9), (9, 0x2d1), (18, 0x2d9), (38, 0x2e1)];

/// Class, size in bytes, datatype.
const SIZES: &[(i32, i32, usize)] = &[
    (TYPECLASS_INTEGER, 1, 0x2c1),
    (TYPECLASS_INTEGER, 2, 0x2c9),
    (TYPECLASS_INTEGER, 4, 0x2d1),
    (TYPECLASS_INTEGER, 8, 0x2d9),
    (TYPECLASS_INTEGER, 16, 0x2e1),
    (TYPECLASS_REAL, 2, 0x2ca),
    (TYPECLASS_REAL, 4, 0x2d2),
    (TYPECLASS_REAL, 8, 0x2da),
    (TYPECLASS_REAL, 16, 0x2e2),
    (TYPECLASS_COMPLEX, 4, 0x2d3),
    (TYPECLASS_COMPLEX, 8, 0x2db),
    (TYPECLASS_COMPLEX, 16, 0x2e3),
    (TYPECLASS_COMPLEX, 32, 0x2eb),
];

/// Whether MPI_Type_create_f90_... made it: such datatypes are predefined, and there is one for
/// each set of arguments.
pub(crate) fn is_f90(recipe: &Recipe) -> bool {
    (combiner::F90_REAL..=combiner::F90_INTEGER).contains(&recipe.combiner)
}

/// The handle of a datatype made by MPI_Type_create_f90_...
pub(crate) fn f90_handle(types: &Types, recipe: &Recipe) -> TypeH {
    let mut key = [recipe.combiner, 0, 0];
    for (place, x) in key[1..].iter_mut().zip(&recipe.integers) {
        *place = *x as i32;
    }
    let found = types.f90.iter().find(|(k, _)| *k == key);
    found.map_or(TypeH::NULL, |(_, handle)| *handle)
}

fn parameterised(
    mpi: &Mpi,
    combiner: i32,
    arguments: &[i32],
    like: Option<usize>,
    newtype: Out<TypeH>,
) -> Res {
    let Some(like) = like.and_then(basic::by_handle) else {
        return fail!(Arg: "no Fortran kind has precision and range {arguments:?}");
    };
    let mut key = [combiner, 0, 0];
    key[1..=arguments.len()].copy_from_slice(arguments);
    let mut guard = mpi.lock();
    let types = &mut guard.above.types;
    if let Some((_, handle)) = types.f90.iter().find(|(k, _)| *k == key) {
        newtype.set(*handle);
        return Ok(());
    }
    let recipe = Recipe {
        combiner,
        integers: arguments.iter().map(|&x| x as i64).collect(),
        ..Recipe::default()
    };
    let mut made = Datatype::derived(Arc::new(Layout::named(like)), Arc::new(recipe));
    made.committed = true;
    made.lasting = true;
    let handle = TypeH::from_key(types.derived.insert(made));
    types.f90.push((key, handle));
    newtype.set(handle);
    Ok(())
}

/// The smallest real kind with at least these digits and this range.
fn real(p: i32, r: i32) -> Res<Option<&'static (i32, i32, usize, usize)>> {
    if p == UNDEFINED && r == UNDEFINED {
        return Err(Fault::new(
            Class::Arg,
            "p and r are both MPI_UNDEFINED, but one must be given",
        ));
    }
    Ok(REALS.iter().find(|row| p <= row.0 && r <= row.1))
}

/// MPI_Type_create_f90_real
pub fn type_create_f90_real(mpi: &Mpi, p: i32, r: i32, newtype: Out<TypeH>) -> Res {
    let like = real(p, r)?.map(|row| row.2);
    parameterised(mpi, combiner::F90_REAL, &[p, r], like, newtype)
}

/// MPI_Type_create_f90_complex
pub fn type_create_f90_complex(mpi: &Mpi, p: i32, r: i32, newtype: Out<TypeH>) -> Res {
    let like = real(p, r)?.map(|row| row.3);
    parameterised(mpi, combiner::F90_COMPLEX, &[p, r], like, newtype)
}

/// MPI_Type_create_f90_integer
pub fn type_create_f90_integer(mpi: &Mpi, r: i32, newtype: Out<TypeH>) -> Res {
    let like = INTEGERS.iter().find(|row| r <= row.0).map(|row| row.1);
    parameterised(mpi, combiner::F90_INTEGER, &[r], like, newtype)
}

/// MPI_Type_match_size
pub fn type_match_size(_mpi: &Mpi, typeclass: i32, size: i32, datatype: Out<TypeH>) -> Res {
    let found = SIZES.iter().find(|row| row.0 == typeclass && row.1 == size);
    match found {
        Some(row) => {
            datatype.set(TypeH(row.2));
            Ok(())
        }
        None => fail!(Arg: "typeclass {typeclass} has no datatype of {size} bytes"),
    }
}
