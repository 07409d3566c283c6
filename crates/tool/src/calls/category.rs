//! Categories (MPI 5.0, 15.3.9).

use super::{by_name, give, need, open, say};
use kw_objects::error::{Res, ToolClass};
use kw_objects::state::Mpi;
use kw_objects::tool::category::{Category, all};
use kw_objects::tool::{refuse, row};
use kw_sys::args::{Array, Out, OutText, Text};

/// The categories never change after the first query.
const STAMP: i32 = 1;

/// MPI_T_category_get_num
pub fn t_category_get_num(mpi: &Mpi, num_cat: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    need(num_cat, "num_cat")?.set(all().len() as i32);
    Ok(())
}

fn at(mpi: &Mpi, index: i32) -> Res<Category> {
    let _guard = open(mpi)?;
    let mut all = all();
    let i = row(index, all.len())?;
    Ok(all.swap_remove(i))
}

/// MPI_T_category_get_info
pub fn t_category_get_info(
    mpi: &Mpi,
    cat_index: i32,
    name: OutText,
    name_len: Out<i32>,
    desc: OutText,
    desc_len: Out<i32>,
    num_cvars: Out<i32>,
    num_pvars: Out<i32>,
    num_categories: Out<i32>,
) -> Res {
    let found = at(mpi, cat_index)?;
    say(&found.name, name, name_len)?;
    say(&found.help, desc, desc_len)?;
    give(num_cvars, found.cvars.len() as i32);
    give(num_pvars, found.pvars.len() as i32);
    give(num_categories, found.below.len() as i32);
    Ok(())
}

/// MPI_T_category_get_num_events
pub fn t_category_get_num_events(mpi: &Mpi, cat_index: i32, num_events: Out<i32>) -> Res {
    let found = at(mpi, cat_index)?;
    need(num_events, "num_events")?.set(found.events.len() as i32);
    Ok(())
}

/// MPI_T_category_get_index
pub fn t_category_get_index(mpi: &Mpi, name: Text, cat_index: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    let place = need(cat_index, "cat_index")?;
    place.set(by_name(name, |n| all().iter().position(|c| c.name == n))?);
    Ok(())
}

/// MPI_T_category_get_cvars
pub fn t_category_get_cvars(mpi: &Mpi, cat_index: i32, len: i32, indices: Array<i32>) -> Res {
    list(&at(mpi, cat_index)?.cvars, len, indices)
}

/// MPI_T_category_get_pvars
pub fn t_category_get_pvars(mpi: &Mpi, cat_index: i32, len: i32, indices: Array<i32>) -> Res {
    list(&at(mpi, cat_index)?.pvars, len, indices)
}

/// MPI_T_category_get_events
pub fn t_category_get_events(mpi: &Mpi, cat_index: i32, len: i32, indices: Array<i32>) -> Res {
    list(&at(mpi, cat_index)?.events, len, indices)
}

/// MPI_T_category_get_categories
pub fn t_category_get_categories(mpi: &Mpi, cat_index: i32, len: i32, indices: Array<i32>) -> Res {
    list(&at(mpi, cat_index)?.below, len, indices)
}

/// Writes as many as fit.
fn list(rows: &[usize], len: i32, indices: Array<i32>) -> Res {
    let Ok(room) = usize::try_from(len) else {
        return refuse(ToolClass::Invalid, format!("len is {len}"));
    };
    if room > 0 && indices.is_null() {
        return refuse(ToolClass::Invalid, "indices is a null pointer");
    }
    for (i, row) in rows.iter().take(room).enumerate() {
        indices.set(i, *row as i32);
    }
    Ok(())
}

/// MPI_T_category_changed
pub fn t_category_changed(mpi: &Mpi, update_number: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    need(update_number, "update_number")?.set(STAMP);
    Ok(())
}
