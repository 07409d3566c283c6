//! Datatypes (MPI 5.0, chapter 5): constructors, life, queries, names, addresses, counting
//! elements.
//!
//! A constructor and its large-count twin differ in the later result of MPI_Type_get_contents, so
//! both exist here if the arguments alone do not show which one was called.

pub mod again;
pub mod array;
pub mod contents;
pub mod elements;
pub mod f90;
pub mod indexed;
pub mod life;
pub mod query;
pub mod strided;

use kw_objects::datatype::{Datatype, Origin, Part, Recipe};
use kw_objects::error::{Class, Fault, Res};
use kw_objects::handle::TypeH;
use kw_objects::left::Made;
use kw_objects::state::Tables;
use kw_sys::args::{Ints, Out};
use kw_types::layout::Layout;
use std::sync::Arc;

/// The combiners of the ABI.
pub(crate) mod combiner {
    pub const NAMED: i32 = 101;
    pub const DUP: i32 = 102;
    pub const CONTIGUOUS: i32 = 103;
    pub const VECTOR: i32 = 104;
    pub const HVECTOR: i32 = 105;
    pub const INDEXED: i32 = 106;
    pub const HINDEXED: i32 = 107;
    pub const INDEXED_BLOCK: i32 = 108;
    pub const HINDEXED_BLOCK: i32 = 109;
    pub const STRUCT: i32 = 110;
    pub const SUBARRAY: i32 = 111;
    pub const DARRAY: i32 = 112;
    pub const F90_REAL: i32 = 113;
    pub const F90_COMPLEX: i32 = 114;
    pub const F90_INTEGER: i32 = 115;
    pub const RESIZED: i32 = 116;
}

/// An existing datatype as part of a recipe.
fn part(tables: &Tables, handle: TypeH) -> Res<Part> {
    let of = tables.datatype(handle)?;
    Ok(match &of.recipe {
        None => Part::Named(handle),
        Some(recipe) => Part::Derived(of.layout.clone(), Origin::new(recipe.clone())),
    })
}

/// Enters a derived datatype into the table.
fn enter(tables: &mut Tables, layout: Layout, recipe: Recipe, newtype: Out<TypeH>) -> Res {
    let made = Datatype::derived(Arc::new(layout), Arc::new(recipe));
    let handle = TypeH::from_key(tables.types.derived.insert(made));
    tables.note_made(Made::Type(handle));
    newtype.set(handle);
    Ok(())
}

/// A non-negative argument of this name.
fn positive(name: &str, value: i64) -> Res<u64> {
    u64::try_from(value).map_err(|_| {
        Fault::new(
            Class::Arg,
            format!("{name} is {value}, but must not be negative"),
        )
    })
}

/// `n` elements of an array argument, none of them negative.
fn lengths(name: &str, array: Ints, n: usize) -> Res<Vec<i64>> {
    let lengths = some(name, array, n)?;
    match lengths.iter().position(|&x| x < 0) {
        Some(i) => Err(Fault::new(
            Class::Arg,
            format!("{name}[{i}] is {}, but must not be negative", lengths[i]),
        )),
        None => Ok(lengths),
    }
}

/// `n` elements of an array argument that is required if `n` is not 0.
fn some(name: &str, array: Ints, n: usize) -> Res<Vec<i64>> {
    if array.is_null() && n > 0 {
        return Err(Fault::new(
            Class::Arg,
            format!("{name} is a null pointer, but should have {n} elements"),
        ));
    }
    Ok(array.to_vec(n))
}
