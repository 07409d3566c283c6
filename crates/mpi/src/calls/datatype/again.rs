//! A derived datatype rebuilt from other predefined ones: its layout in a file whose data
//! representation gives elements another size (MPI 5.0, 14.3 and 14.5). Displacements that count
//! extents follow the new elements, displacements in bytes stay the same.

use super::array::{distribution, order};
use super::combiner as made_by;
use super::f90::is_f90;
use super::indexed::blocks;
use kw_objects::datatype::{Part, Recipe};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::TypeH;
use kw_types::layout::{Layout, basic};
use std::collections::HashMap;
use std::sync::Arc;

/// Function that returns another layout for a predefined datatype, given its layout in memory. The
/// handle is null if it was made by MPI_Type_create_f90_...
pub type Leaf<'a> = dyn Fn(TypeH, &Layout) -> Res<Layout> + 'a;

/// A recipe whose parts are being rebuilt, and the finished ones.
struct Open {
    recipe: Arc<Recipe>,
    parts: Vec<Layout>,
}

impl Open {
    fn new(recipe: &Arc<Recipe>) -> Open {
        Open {
            recipe: recipe.clone(),
            parts: Vec::new(),
        }
    }
}

/// The datatype that has this layout in memory and was made by this recipe, built from the
/// predefined ones that `leaf` returns. Chains of recipes may be longer than the stack is deep.
pub fn made_again(layout: &Layout, recipe: &Arc<Recipe>, leaf: &Leaf<'_>) -> Res<Layout> {
    if is_f90(recipe) {
        return leaf(TypeH::NULL, layout);
    }
    let mut made: HashMap<*const Recipe, Layout> = HashMap::new();
    let mut open = vec![Open::new(recipe)];
    loop {
        let Some(last) = open.last_mut() else {
            return fail(Class::Intern, "a datatype is made of nothing");
        };
        let layout = match last.recipe.types.get(last.parts.len()) {
            Some(Part::Named(handle)) => leaf(*handle, &named(*handle)?)?,
            Some(Part::Derived(layout, origin)) if is_f90(origin.recipe()) => {
                leaf(TypeH::NULL, layout)?
            }
            Some(Part::Derived(_, origin)) => match made.get(&Arc::as_ptr(origin.recipe())) {
                Some(layout) => layout.clone(),
                None => {
                    let inner = Open::new(origin.recipe());
                    open.push(inner);
                    continue;
                }
            },
            None => {
                let layout = put_together(&last.recipe, &last.parts)?;
                made.insert(Arc::as_ptr(&last.recipe), layout.clone());
                open.pop();
                if open.is_empty() {
                    return Ok(layout);
                }
                layout
            }
        };
        if let Some(last) = open.last_mut() {
            last.parts.push(layout);
        }
    }
}

fn named(handle: TypeH) -> Res<Layout> {
    match (handle, basic::by_handle(handle.0)) {
        (_, Some(named)) => Ok(Layout::named(named)),
        (TypeH::LB, None) => Ok(Layout::lower_marker()),
        (TypeH::UB, None) => Ok(Layout::upper_marker()),
        (_, None) => fail(Class::Intern, "a datatype is made of one that is not there"),
    }
}

/// The arguments of the constructor, in its order; for a large-count constructor, the counts.
struct Arguments<'a> {
    integers: &'a [i64],
    addresses: &'a [i64],
}

impl<'a> Arguments<'a> {
    /// `integers` come first; how many of the counts are that, where there are counts.
    fn of(recipe: &'a Recipe, integers: usize) -> Arguments<'a> {
        let (counts, apart) = (&recipe.counts, integers.min(recipe.counts.len()));
        match counts.is_empty() {
            true => Arguments {
                integers: &recipe.integers,
                addresses: &recipe.addresses,
            },
            false => Arguments {
                integers: &counts[..apart],
                addresses: &counts[apart..],
            },
        }
    }
}

/// Calls the constructor of a recipe with other parts.
fn put_together(recipe: &Recipe, parts: &[Layout]) -> Res<Layout> {
    let first = || {
        let none = || Fault::new(Class::Intern, "a datatype is made of no other");
        parts.first().ok_or_else(none)
    };
    // For arrays: the number of elements.
    let n = match recipe.counts.is_empty() {
        true => recipe.integers.first(),
        false => recipe.counts.first(),
    };
    let n = n.map_or(0, |&n| n as usize);
    let all = Arguments::of(recipe, usize::MAX).integers;
    let made = match recipe.combiner {
        made_by::DUP => Ok(first()?.clone()),
        made_by::CONTIGUOUS => first()?.contiguous_of(n as u64),
        made_by::VECTOR => {
            let old = first()?;
            old.hvector(n as u64, all[1] as u64, old.scaled(all[2])?)
        }
        made_by::HVECTOR => {
            let Arguments {
                integers,
                addresses,
            } = Arguments::of(recipe, 2);
            first()?.hvector(n as u64, integers[1] as u64, addresses[0])
        }
        made_by::RESIZED => {
            let bounds = Arguments::of(recipe, 0).addresses;
            first()?.resized(bounds[0], bounds[1])
        }
        made_by::INDEXED => {
            let lens = all[1..=n].iter().copied();
            first()?.hindexed(&blocks(first()?, &all[n + 1..], lens, true)?)
        }
        made_by::HINDEXED => {
            let Arguments {
                integers,
                addresses,
            } = Arguments::of(recipe, n + 1);
            let lens = integers[1..].iter().copied();
            first()?.hindexed(&blocks(first()?, addresses, lens, false)?)
        }
        made_by::INDEXED_BLOCK => {
            let lens = std::iter::repeat(all[1]);
            first()?.hindexed(&blocks(first()?, &all[2..], lens, true)?)
        }
        made_by::HINDEXED_BLOCK => {
            let Arguments {
                integers,
                addresses,
            } = Arguments::of(recipe, 2);
            let lens = std::iter::repeat(integers[1]);
            first()?.hindexed(&blocks(first()?, addresses, lens, false)?)
        }
        made_by::STRUCT => {
            let Arguments {
                integers,
                addresses,
            } = Arguments::of(recipe, n + 1);
            let lens = integers[1..].iter();
            let members: Vec<(i64, u64, &Layout)> = (addresses.iter().zip(lens).zip(parts))
                .map(|((&at, &len), of)| (at, len as u64, of))
                .collect();
            Layout::structure(&members)
        }
        made_by::SUBARRAY => return subarray(recipe, first()?),
        made_by::DARRAY => return darray(recipe, first()?),
        other => {
            return fail!(Intern: "a datatype was made by combiner {other}, which is none");
        }
    };
    Ok(made?)
}

fn subarray(recipe: &Recipe, old: &Layout) -> Res<Layout> {
    let n = recipe.integers[0] as usize;
    let arrays = match recipe.counts.is_empty() {
        true => &recipe.integers[1..=3 * n],
        false => &recipe.counts[..],
    };
    let dims: Vec<_> = (0..n)
        .map(|d| (arrays[d], arrays[n + d], arrays[2 * n + d]))
        .collect();
    let how = recipe.integers.last().map_or(0, |&how| how as i32);
    Ok(old.subarray(&dims, order(how)?)?)
}

fn darray(recipe: &Recipe, old: &Layout) -> Res<Layout> {
    let [size, rank, n] = [0, 1, 2].map(|i| recipe.integers[i]);
    let n = n as usize;
    let (gsizes, rest) = match recipe.counts.is_empty() {
        true => recipe.integers[3..].split_at(n),
        false => (&recipe.counts[..], &recipe.integers[3..]),
    };
    let mut dims = Vec::with_capacity(n);
    for d in 0..n {
        dims.push((
            gsizes[d],
            distribution(rest[d], rest[n + d])?,
            rest[2 * n + d],
        ));
    }
    Ok(old.darray(size, rank, &dims, order(rest[3 * n] as i32)?)?)
}
