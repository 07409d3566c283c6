//! Indexed and struct datatypes (MPI 5.0, 5.1.2). The width of the arrays tells the large-count
//! twins apart.

use super::{combiner, enter, lengths, part, positive, some};
use kw_objects::datatype::{Recipe, checked_count};
use kw_objects::error::Res;
use kw_objects::handle::TypeH;
use kw_objects::state::Mpi;
use kw_sys::args::{Array, Ints, Out, Width};
use kw_types::layout::{Layout, Mismatch};
use std::sync::Arc;

/// Blocks `(displacement, length)`; displacements count extents of the old type when `in_extents`.
pub(super) fn blocks(
    old: &Layout,
    at: &[i64],
    len: impl Iterator<Item = i64>,
    in_extents: bool,
) -> Result<Vec<(i64, u64)>, Mismatch> {
    at.iter()
        .zip(len)
        .map(|(&at, len)| {
            let at = if in_extents { old.scaled(at)? } else { at };
            Ok((at, len as u64))
        })
        .collect()
}

fn recipe(
    combiner: i32,
    large: bool,
    head: &[i64],
    lens: &[i64],
    at: &[i64],
    in_extents: bool,
) -> Recipe {
    let mut recipe = Recipe {
        combiner,
        ..Recipe::default()
    };
    if large {
        recipe.counts = [head, lens, at].concat();
    } else if in_extents {
        recipe.integers = [head, lens, at].concat();
    } else {
        recipe.integers = [head, lens].concat();
        recipe.addresses = at.to_vec();
    }
    recipe
}

fn indexed(
    mpi: &Mpi,
    count: i64,
    lens: Ints,
    at: Ints,
    in_extents: bool,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    let n = checked_count("count", count)? as usize;
    let large = lens.width() == Width::Long;
    let lens = lengths("array_of_blocklengths", lens, n)?;
    let at = some("array_of_displacements", at, n)?;
    let kind = if in_extents {
        combiner::INDEXED
    } else {
        combiner::HINDEXED
    };
    let mut recipe = recipe(kind, large, &[count], &lens, &at, in_extents);
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let old = &tables.datatype(oldtype)?.layout;
    let layout = old.hindexed(&blocks(old, &at, lens.iter().copied(), in_extents)?)?;
    recipe.types.push(part(tables, oldtype)?);
    enter(tables, layout, recipe, newtype)
}

/// `large`: whether addresses are large counts, which their width does not tell.
fn block(
    mpi: &Mpi,
    count: i64,
    len: i64,
    at: Ints,
    (in_extents, large): (bool, bool),
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    let n = checked_count("count", count)? as usize;
    positive("blocklength", len)?;
    let large = large || in_extents && at.width() == Width::Long;
    let at = some("array_of_displacements", at, n)?;
    let kind = if in_extents {
        combiner::INDEXED_BLOCK
    } else {
        combiner::HINDEXED_BLOCK
    };
    let mut recipe = recipe(kind, large, &[count, len], &[], &at, in_extents);
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let old = &tables.datatype(oldtype)?.layout;
    let layout = old.hindexed(&blocks(old, &at, std::iter::repeat(len), in_extents)?)?;
    recipe.types.push(part(tables, oldtype)?);
    enter(tables, layout, recipe, newtype)
}

/// Functions with the lengths of the blocks, or one for all; their datatype is made by `$make` from
/// these and `$how`, which tells the functions apart.
macro_rules! functions {
    ($($name:ident, $doc:literal, $len:ident: $type:ty, $make:ident, $how:expr;)*) => {$(
        #[doc = concat!("MPI_Type_", $doc)]
        pub fn $name(mpi: &Mpi, count: i64, $len: $type, array_of_displacements: Ints, oldtype: TypeH, newtype: Out<TypeH>) -> Res {
            $make(mpi, count, $len, array_of_displacements, $how, oldtype, newtype)
        }
    )*};
}

functions! {
    type_indexed, "indexed", array_of_blocklengths: Ints, indexed, true;
    type_create_hindexed, "create_hindexed", array_of_blocklengths: Ints, indexed, false;
    type_create_indexed_block, "create_indexed_block", blocklength: i64, block, (true, false);
    type_create_hindexed_block, "create_hindexed_block", blocklength: i64, block, (false, false);
    type_create_hindexed_block_c, "create_hindexed_block_c", blocklength: i64, block, (false, true);
}

/// MPI_Type_create_struct
pub fn type_create_struct(
    mpi: &Mpi,
    count: i64,
    array_of_blocklengths: Ints,
    array_of_displacements: Ints,
    array_of_types: Array<TypeH>,
    newtype: Out<TypeH>,
) -> Res {
    let n = checked_count("count", count)? as usize;
    let large = array_of_blocklengths.width() == Width::Long;
    let lens = lengths("array_of_blocklengths", array_of_blocklengths, n)?;
    let at = some("array_of_displacements", array_of_displacements, n)?;
    let mut recipe = recipe(combiner::STRUCT, large, &[count], &lens, &at, false);
    let mut guard = mpi.lock();
    let tables = &mut guard.above;
    let mut layouts: Vec<Arc<Layout>> = Vec::with_capacity(n);
    for handle in array_of_types.to_vec(n) {
        layouts.push(tables.datatype(handle)?.layout.clone());
        recipe.types.push(part(tables, handle)?);
    }
    let members: Vec<(i64, u64, &Layout)> = layouts
        .iter()
        .zip(at.iter().zip(&lens))
        .map(|(of, (at, len))| (*at, *len as u64, &**of))
        .collect();
    let layout = Layout::structure(&members)?;
    enter(tables, layout, recipe, newtype)
}
