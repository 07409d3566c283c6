//! Elements that an accumulate combines: datatypes whose basic components are all of one predefined
//! datatype (MPI 5.0, 12.3.4).

use kw_objects::datatype::{Datatype, Part, Recipe};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{OpH, TypeH};
use kw_objects::op::Operation;
use kw_objects::state::Tables;
use kw_sys::reduce::{Kernel, Op};
use kw_types::layout::{Basic, basic};
use std::sync::Arc;

/// The common element of the datatype of a `side` (origin, target or result); `None` if it has none
/// at all.
#[inline]
pub fn of(tables: &Tables, side: &str, datatype: TypeH) -> Res<Option<Basic>> {
    let found = tables.datatype(datatype)?;
    if let Some(basic) = found.layout.basic() {
        return Ok(Some(basic));
    }
    of_derived(side, found)
}

fn of_derived(side: &str, found: &Datatype) -> Res<Option<Basic>> {
    if found.layout.size() == 0 {
        return Ok(None);
    }
    let alike = found.recipe.as_ref().and_then(only_component);
    match alike {
        Some(basic) => Ok(Some(basic)),
        None => fail!(Type:
            "{side}_datatype is a datatype of different elements, but the elements of an accumulate must all be of one predefined datatype"),
    }
}

/// The common predefined datatype of all components of a derived one, as it looks in memory.
fn only_component(recipe: &Arc<Recipe>) -> Option<Basic> {
    let mut found = None;
    let mut left = vec![recipe.clone()];
    while let Some(recipe) = left.pop() {
        for part in &recipe.types {
            match part {
                Part::Derived(layout, _) if layout.size() == 0 => {}
                Part::Derived(_, origin) => left.push(origin.recipe().clone()),
                Part::Named(handle) => {
                    // MPI_LB and MPI_UB have no elements.
                    let Some(named) = basic::by_handle(handle.0) else {
                        continue;
                    };
                    if found.is_some_and(|other| other != named.basic) {
                        return None;
                    }
                    found = Some(named.basic);
                }
            }
        }
    }
    found
}

/// The operation of a handle, which must be predefined.
pub fn operation(tables: &Tables, op: OpH) -> Res<Op> {
    match tables.ops.get(op)? {
        Operation::Predefined(op) => Ok(op),
        Operation::User(_) => fail!(Op:
            "op is user-defined, but one-sided communication accepts only predefined operations"),
    }
}

/// Refuses an operation that is not defined for these elements.
#[inline]
pub fn check_defined(tables: &Tables, op: Op, basic: Basic, datatype: TypeH) -> Res {
    let moves = matches!(op, Op::Replace | Op::NoOp);
    let refused = basic == Basic::Char && tables.ops.strict && !moves;
    match Kernel::find(op, basic).filter(|_| !refused) {
        Some(_) => Ok(()),
        None => Err(undefined(op, basic, datatype)),
    }
}

#[cold]
fn undefined(op: Op, basic: Basic, datatype: TypeH) -> Box<Fault> {
    let what = match basic::by_handle(datatype.0) {
        Some(named) => named.name.to_string(),
        None => format!("{basic:?}, the element of the derived datatype"),
    };
    Fault::new(
        Class::Op,
        format!("op is {}, which is not defined for {what}", op.name()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Part {
        let row = basic::NAMED.iter().find(|n| n.name == name);
        Part::Named(TypeH(row.expect("a predefined datatype").handle))
    }

    fn recipe(types: Vec<Part>) -> Arc<Recipe> {
        Arc::new(Recipe {
            types,
            ..Recipe::default()
        })
    }

    #[test]
    fn components_of_one_predefined_datatype_are_found() {
        let pairs = recipe(vec![named("MPI_DOUBLE_INT"), named("MPI_DOUBLE_INT")]);
        assert_eq!(only_component(&pairs), Some(Basic::DoubleInt));
        let mixed = recipe(vec![named("MPI_INT"), named("MPI_DOUBLE")]);
        assert_eq!(only_component(&mixed), None);
        assert_eq!(only_component(&recipe(vec![])), None);
        let ints = recipe(vec![named("MPI_INT"), Part::Named(TypeH::UB)]);
        assert_eq!(only_component(&ints), Some(Basic::I32));
    }
}
