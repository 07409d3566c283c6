//! Subarrays and distributed arrays (MPI 5.0, 5.1.3 and 5.1.4).

use super::{combiner, enter, part, some};
use kw_objects::datatype::Recipe;
use kw_objects::error::{Res, fail};
use kw_objects::handle::TypeH;
use kw_objects::state::Mpi;
use kw_sys::args::{Ints, Out, Width};
use kw_types::layout::{Distribution, Order};

const ORDER_C: i32 = 0xc;
const ORDER_FORTRAN: i32 = 0xf;
const DISTRIBUTE_NONE: i64 = 16;
const DISTRIBUTE_BLOCK: i64 = 17;
const DISTRIBUTE_CYCLIC: i64 = 18;
const DISTRIBUTE_DFLT_DARG: i64 = 19;

pub(super) fn order(value: i32) -> Res<Order> {
    match value {
        ORDER_C => Ok(Order::C),
        ORDER_FORTRAN => Ok(Order::Fortran),
        _ => fail!(Arg: "order is {value}, but must be MPI_ORDER_C or MPI_ORDER_FORTRAN"),
    }
}

fn dimensions(ndims: i32, least: i32) -> Res<usize> {
    if ndims < least {
        return fail!(Arg: "ndims is {ndims}, but must be {least} or more");
    }
    Ok(ndims as usize)
}

/// MPI_Type_create_subarray
pub fn type_create_subarray(
    mpi: &Mpi,
    ndims: i32,
    array_of_sizes: Ints,
    array_of_subsizes: Ints,
    array_of_starts: Ints,
    order: i32,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    // MPICH and Open MPI take none to mean no data.
    let strict = mpi.lock().above.checking;
    let n = dimensions(ndims, strict as i32)?;
    let how = self::order(order)?;
    let large = array_of_sizes.width() == Width::Long;
    let sizes = some("array_of_sizes", array_of_sizes, n)?;
    let subsizes = some("array_of_subsizes", array_of_subsizes, n)?;
    let starts = some("array_of_starts", array_of_starts, n)?;
    let dims: Vec<_> = (0..n).map(|d| (sizes[d], subsizes[d], starts[d])).collect();
    let arrays = [sizes, subsizes, starts].concat();
    let (first, last) = (ndims as i64, order as i64);
    let mut recipe = Recipe {
        combiner: combiner::SUBARRAY,
        ..Recipe::default()
    };
    if large {
        recipe.integers = vec![first, last];
        recipe.counts = arrays;
    } else {
        recipe.integers = [&[first], &arrays[..], &[last]].concat();
    }
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let layout = tables.datatype(oldtype)?.layout.subarray(&dims, how)?;
    recipe.types.push(part(tables, oldtype)?);
    enter(tables, layout, recipe, newtype)
}

pub(super) fn distribution(how: i64, argument: i64) -> Res<Distribution> {
    let argument = (argument != DISTRIBUTE_DFLT_DARG).then_some(argument);
    match how {
        DISTRIBUTE_NONE => Ok(Distribution::None),
        DISTRIBUTE_BLOCK => Ok(Distribution::Block(argument)),
        DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(argument)),
        _ => fail!(Arg: "array_of_distribs holds {how}, which is not an MPI_DISTRIBUTE_ constant"),
    }
}

/// MPI_Type_create_darray
pub fn type_create_darray(
    mpi: &Mpi,
    size: i32,
    rank: i32,
    ndims: i32,
    array_of_gsizes: Ints,
    array_of_distribs: Ints,
    array_of_dargs: Ints,
    array_of_psizes: Ints,
    order: i32,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    let n = dimensions(ndims, 1)?;
    let how = self::order(order)?;
    let large = array_of_gsizes.width() == Width::Long;
    let gsizes = some("array_of_gsizes", array_of_gsizes, n)?;
    let distribs = some("array_of_distribs", array_of_distribs, n)?;
    let dargs = some("array_of_dargs", array_of_dargs, n)?;
    let psizes = some("array_of_psizes", array_of_psizes, n)?;
    let mut dims = Vec::with_capacity(n);
    for d in 0..n {
        dims.push((gsizes[d], distribution(distribs[d], dargs[d])?, psizes[d]));
    }
    let head = [size as i64, rank as i64, ndims as i64];
    let tail = [&distribs[..], &dargs, &psizes, &[order as i64]].concat();
    let mut recipe = Recipe {
        combiner: combiner::DARRAY,
        ..Recipe::default()
    };
    if large {
        recipe.integers = [&head[..], &tail].concat();
        recipe.counts = gsizes;
    } else {
        recipe.integers = [&head[..], &gsizes, &tail].concat();
    }
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let old = &tables.datatype(oldtype)?.layout;
    let layout = old.darray(size as i64, rank as i64, &dims, how)?;
    recipe.types.push(part(tables, oldtype)?);
    enter(tables, layout, recipe, newtype)
}
