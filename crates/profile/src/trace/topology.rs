//! Ranks from which a process receives in a neighbourhood collective (MPI 5.0, section 8.6), as
//! reported by MPI for the topology of a communicator, which is queried once, when it is created or
//! first seen.

use std::ffi::{CStr, c_int};

use super::abi::Abi;
use crate::next;

/// Words in each of which a communicator, an int or the address of an int is passed, in every ABI.
type Of2 = unsafe extern "C-unwind" fn(usize, usize) -> c_int;
type Of3 = unsafe extern "C-unwind" fn(usize, usize, usize) -> c_int;
type Of4 = unsafe extern "C-unwind" fn(usize, usize, usize, usize) -> c_int;
type Of5 = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize) -> c_int;
type Of7 = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize) -> c_int;

/// The function of this name, past all tools.
fn function(name: &CStr) -> Option<usize> {
    Some(next::find(name)).filter(|f| *f != 0)
}

/// Ranks in the communicator from which the rank in `place` receives, in any order and perhaps more
/// than once; itself and MPI_PROC_NULL may be among them. None without a topology.
///
/// # Safety
/// `comm` is a communicator, and not between groups.
pub(super) unsafe fn sources(abi: &Abi, comm: usize, place: c_int) -> Vec<c_int> {
    // SAFETY: the caller's promise.
    unsafe { ask(abi, comm, place).unwrap_or_default() }
}

unsafe fn ask(abi: &Abi, comm: usize, place: c_int) -> Option<Vec<c_int>> {
    let mut kind: c_int = 0;
    // SAFETY: the caller's promise; the function has these parameters.
    let code = unsafe {
        let topology: Of2 = std::mem::transmute(function(c"PMPI_Topo_test")?);
        topology(comm, &raw mut kind as usize)
    };
    let [cart, graph, _] = abi.topologies;
    if code != 0 || !abi.topologies.contains(&kind) {
        return None;
    }
    // SAFETY: the communicator has this topology.
    unsafe {
        match kind {
            k if k == cart => grid(comm),
            k if k == graph => neighbors(comm, place as usize),
            _ => distributed(comm),
        }
    }
}

/// The neighbours in every direction of a Cartesian topology.
unsafe fn grid(comm: usize) -> Option<Vec<c_int>> {
    let mut dimensions: c_int = 0;
    let mut all = Vec::new();
    // SAFETY: the caller's promise; the functions have these parameters.
    unsafe {
        let count: Of2 = std::mem::transmute(function(c"PMPI_Cartdim_get")?);
        let shift: Of5 = std::mem::transmute(function(c"PMPI_Cart_shift")?);
        if count(comm, &raw mut dimensions as usize) != 0 {
            return None;
        }
        for d in 0..dimensions as usize {
            let mut both: [c_int; 2] = [0; 2];
            let [from, to] = both.each_mut().map(|r| std::ptr::from_mut(r) as usize);
            if shift(comm, d, 1, from, to) == 0 {
                all.extend(both);
            }
        }
    }
    Some(all)
}

/// The neighbours in a graph.
unsafe fn neighbors(comm: usize, place: usize) -> Option<Vec<c_int>> {
    let mut n: c_int = 0;
    // SAFETY: the caller's promise; the functions have these parameters, and the array has the room.
    unsafe {
        let count: Of3 = std::mem::transmute(function(c"PMPI_Graph_neighbors_count")?);
        let list: Of4 = std::mem::transmute(function(c"PMPI_Graph_neighbors")?);
        if count(comm, place, &raw mut n as usize) != 0 {
            return None;
        }
        let mut all = vec![0; n.max(0) as usize];
        let code = list(comm, place, all.len(), all.as_mut_ptr() as usize);
        (code == 0).then_some(all)
    }
}

/// The sources in a distributed graph.
unsafe fn distributed(comm: usize) -> Option<Vec<c_int>> {
    let mut counts: [c_int; 3] = [0; 3];
    // SAFETY: the caller's promise; the functions have these parameters, and the arrays have the room.
    unsafe {
        let count: Of4 = std::mem::transmute(function(c"PMPI_Dist_graph_neighbors_count")?);
        let list: Of7 = std::mem::transmute(function(c"PMPI_Dist_graph_neighbors")?);
        let [into, out, weighted] = counts.each_mut().map(|n| std::ptr::from_mut(n) as usize);
        if count(comm, into, out, weighted) != 0 {
            return None;
        }
        let [into, out] = [counts[0], counts[1]].map(|n| n.max(0) as usize);
        let mut lists = [into, into, out, out].map(|n| vec![0 as c_int; n]);
        let [a, b, c, d] = lists.each_mut().map(|l| l.as_mut_ptr() as usize);
        let code = list(comm, into, a, b, out, c, d);
        let [sources, ..] = lists;
        (code == 0).then_some(sources)
    }
}
