//! Virtual topologies (MPI 5.0, chapter 8): grids.

use crate::calls::coll::check::{self, CheckedArguments};
use crate::calls::comm_make::Parent;
use crate::calls::mapping;
use kw_objects::Topology;
use kw_objects::comm::{PROC_NULL, UNDEFINED};
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::CommH;
use kw_objects::state::Mpi;
use kw_objects::topology::Cart;
use kw_sys::args::{Ints, Out};
use kw_types::comm::dims_create as fill_dims;
use std::sync::Arc;

/// MPI_Topo_test
pub fn topo_test(mpi: &Mpi, comm: CommH, status: Out<i32>) -> Res {
    let guard = mpi.lock();
    let topology = guard.above.comms.get(comm)?.topology.as_deref();
    status.set(topology.map_or(UNDEFINED, Topology::status));
    Ok(())
}

/// MPI_Dims_create
pub fn dims_create(_mpi: &Mpi, nnodes: i32, ndims: i32, dims: Ints) -> Res {
    if nnodes < 1 {
        return fail!(Arg: "nnodes is {nnodes}, but must be positive");
    }
    let mut values = array(ndims, dims, "dims")?;
    let filled = fill_dims(nnodes as i64, &mut values);
    filled.or_else(|e| fail(Class::Dims, e.to_string()))?;
    for (i, d) in values.into_iter().enumerate() {
        dims.set(i, d);
    }
    Ok(())
}

/// MPI_Cart_create
pub fn cart_create(
    mpi: &Mpi,
    comm_old: CommH,
    ndims: i32,
    dims: Ints,
    periods: Ints,
    reorder: i32,
    comm_cart: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm_old, "comm_old")?;
    let size = parent.members.group.size();
    let fits = grid(ndims, dims, periods).and_then(|cart| Ok((fitting(&cart, size)?, cart)));
    let (places, cart) = check::agree_on(mpi, comm_old, "cart_create", fits, |(_, cart)| {
        let periods = cart.periods.iter().map(|&p| p as i64);
        let numbers: Vec<i64> = cart.dims.iter().copied().chain(periods).collect();
        checked_arguments(
            &numbers,
            format!("dims {:?}, periods {:?}", cart.dims, cart.periods),
            reorder,
        )
    })?;
    let place = match reorder {
        0 => mapping::kept(&parent, places),
        _ => mapping::of_grid(&parent, &cart),
    };
    let topology = Some(Arc::new(Topology::Cart(cart)));
    parent.split_into(mapping::color(place), place, topology, comm_cart)
}

/// Arguments that must be the same on all ranks that create a topology.
pub(crate) fn checked_arguments(numbers: &[i64], text: String, reorder: i32) -> CheckedArguments {
    let reorders = reorder != 0;
    let text = format!(" with {text} and reorder {}", reorders as i32);
    CheckedArguments::same(&[&[reorders as i64], numbers].concat(), text)
}

/// Checks that the grid is not larger than the communicator.
fn fitting(cart: &Cart, size: u32) -> Res<i32> {
    let places = cart.dims.iter().try_fold(1i64, |p, &d| p.checked_mul(d));
    match places {
        Some(places) if places <= size as i64 => Ok(places as i32),
        _ => {
            fail!(Dims: "the grid {:?} has more places than the {size} processes of the communicator", cart.dims)
        }
    }
}

/// MPI_Cart_map
pub fn cart_map(
    mpi: &Mpi,
    comm: CommH,
    ndims: i32,
    dims: Ints,
    periods: Ints,
    newrank: Out<i32>,
) -> Res {
    let parent = Parent::intra(mpi, comm, "comm")?;
    let cart = grid(ndims, dims, periods)?;
    fitting(&cart, parent.members.group.size())?;
    newrank.set(mapping::of_grid(&parent, &cart));
    Ok(())
}

/// MPI_Cartdim_get
pub fn cartdim_get(mpi: &Mpi, comm: CommH, ndims: Out<i32>) -> Res {
    ndims.set(mpi.lock().above.comms.cart(comm)?.0.dims.len() as i32);
    Ok(())
}

/// MPI_Cart_get
pub fn cart_get(
    mpi: &Mpi,
    comm: CommH,
    maxdims: i32,
    dims: Ints,
    periods: Ints,
    coords: Ints,
) -> Res {
    let guard = mpi.lock();
    let (cart, rank) = guard.above.comms.cart(comm)?;
    let n = room(maxdims, cart)?;
    let mine = cart.coords(rank);
    for i in 0..n {
        dims.set(i, cart.dims[i]);
        periods.set(i, cart.periods[i] as i64);
        coords.set(i, mine[i]);
    }
    Ok(())
}

/// MPI_Cart_rank
pub fn cart_rank(mpi: &Mpi, comm: CommH, coords: Ints, rank: Out<i32>) -> Res {
    let guard = mpi.lock();
    let (cart, _) = guard.above.comms.cart(comm)?;
    let at = array(cart.dims.len() as i32, coords, "coords")?;
    let Some(found) = cart.rank(&at) else {
        return fail!(Arg: "coords are {at:?}, outside the grid {:?}", cart.dims);
    };
    rank.set(found as i32);
    Ok(())
}

/// MPI_Cart_coords
pub fn cart_coords(mpi: &Mpi, comm: CommH, rank: i32, maxdims: i32, coords: Ints) -> Res {
    let guard = mpi.lock();
    let (cart, _) = guard.above.comms.cart(comm)?;
    if rank < 0 || rank as i64 >= cart.size() {
        return fail!(Rank: "rank is {rank}, but the grid has {} places", cart.size());
    }
    let n = room(maxdims, cart)?;
    let at = cart.coords(rank as i64);
    for (i, &c) in at.iter().enumerate().take(n) {
        coords.set(i, c);
    }
    Ok(())
}

/// MPI_Cart_shift
pub fn cart_shift(
    mpi: &Mpi,
    comm: CommH,
    direction: i32,
    disp: i32,
    rank_source: Out<i32>,
    rank_dest: Out<i32>,
) -> Res {
    let guard = mpi.lock();
    let (cart, rank) = guard.above.comms.cart(comm)?;
    if direction < 0 || direction as usize >= cart.dims.len() {
        return fail!(Arg: "direction is {direction}, but the grid has {} dimensions", cart.dims.len());
    }
    let neighbor = |by: i64| {
        let found = cart.shifted(rank, direction as usize, by);
        found.map_or(PROC_NULL, |r| r as i32)
    };
    rank_source.set(neighbor(-(disp as i64)));
    rank_dest.set(neighbor(disp as i64));
    Ok(())
}

/// MPI_Cart_sub
pub fn cart_sub(mpi: &Mpi, comm: CommH, remain_dims: Ints, newcomm: Out<CommH>) -> Res {
    let guard = mpi.lock();
    let (cart, rank) = guard.above.comms.cart(comm)?;
    let keep = array(cart.dims.len() as i32, remain_dims, "remain_dims")?;
    let at = cart.coords(rank);
    let mut sub = Cart {
        dims: Vec::new(),
        periods: Vec::new(),
    };
    let (mut color, mut key) = (0, 0);
    for (i, &keep) in keep.iter().enumerate() {
        if keep != 0 {
            sub.dims.push(cart.dims[i]);
            sub.periods.push(cart.periods[i]);
            key = key * cart.dims[i] + at[i];
        } else {
            color = color * cart.dims[i] + at[i];
        }
    }
    drop(guard);
    check::agree_on(mpi, comm, "cart_sub", Ok(()), |()| {
        let kept: Vec<i64> = keep.iter().map(|&k| (k != 0) as i64).collect();
        CheckedArguments::same(&kept, format!(" with remain_dims {kept:?}"))
    })?;
    let parent = Parent::intra(mpi, comm, "comm")?;
    let topology = Some(Arc::new(Topology::Cart(sub)));
    parent.split_into(color as i32, key as i32, topology, newcomm)
}

fn grid(ndims: i32, dims: Ints, periods: Ints) -> Res<Cart> {
    let dims = array(ndims, dims, "dims")?;
    if let Some(i) = dims.iter().position(|&d| d < 1) {
        return fail!(Dims: "dims[{i}] is {}, but must be positive", dims[i]);
    }
    let periods = array(ndims, periods, "periods")?;
    Ok(Cart {
        dims,
        periods: periods.into_iter().map(|p| p != 0).collect(),
    })
}

fn array(n: i32, values: Ints, name: &str) -> Res<Vec<i64>> {
    if n < 0 {
        return fail!(Dims: "ndims is {n}, but must not be negative");
    }
    if n > 0 && values.is_null() {
        return fail!(Arg: "{name} is null, but there are {n} dimensions");
    }
    Ok(values.to_vec(n as usize))
}

/// Number of requested dimensions; fewer than there are is an error of the caller.
fn room(maxdims: i32, cart: &Cart) -> Res<usize> {
    let n = cart.dims.len();
    if maxdims < 0 || (maxdims as usize) < n {
        return fail!(Arg: "maxdims is {maxdims}, but the grid has {n} dimensions");
    }
    Ok(n)
}
