//! The few calls of libhwloc 2 that tell the order of cores, found at run time.
//!
//! The library keeps one ABI for all of version 2 (`libhwloc.so.15`); another version is not used.
//! The head of `struct hwloc_obj` is written out here as that ABI has it.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use super::Thread;
use crate::dlopen;

/// The head of `struct hwloc_obj`; the rest is not read.
#[repr(C)]
struct Object {
    kind: c_int,
    subtype: *mut c_char,
    os_index: c_uint,
    name: *mut c_char,
    total_memory: u64,
    attr: *mut c_void,
    depth: c_int,
    logical_index: c_uint,
    next_cousin: *mut Object,
    prev_cousin: *mut Object,
    parent: *mut Object,
}

const PACKAGE: c_int = 1;
const CORE: c_int = 2;
const PU: c_int = 3;
const KEEP_ALL: c_int = 0;
const KEEP_NONE: c_int = 1;

type Topology = *mut c_void;

/// The calls that are used.
struct Calls {
    version: unsafe extern "C" fn() -> c_uint,
    init: unsafe extern "C" fn(*mut Topology) -> c_int,
    filter_all: unsafe extern "C" fn(Topology, c_int) -> c_int,
    filter_caches: unsafe extern "C" fn(Topology, c_int) -> c_int,
    filter: unsafe extern "C" fn(Topology, c_int, c_int) -> c_int,
    load: unsafe extern "C" fn(Topology) -> c_int,
    type_depth: unsafe extern "C" fn(Topology, c_int) -> c_int,
    object: unsafe extern "C" fn(Topology, c_int, c_uint) -> *mut Object,
    destroy: unsafe extern "C" fn(Topology),
}

/// All hardware threads in the order of the machine's tree; `None` without a usable hwloc.
pub(super) fn threads() -> Option<Vec<Thread>> {
    // without the call that it counts CPUs with, hwloc tries forever
    if !crate::cpus::are_known() {
        return None;
    }
    let calls = open()?;
    // SAFETY: the calls were found in libhwloc and have the types of its version 2, which is
    // checked first; the topology lives from init to destroy, and objects are read only in between.
    unsafe {
        if (calls.version)() >> 16 != 2 {
            return None;
        }
        let mut topology: Topology = ptr::null_mut();
        if (calls.init)(&mut topology) != 0 {
            return None;
        }
        (calls.filter_all)(topology, KEEP_NONE);
        (calls.filter_caches)(topology, KEEP_ALL);
        (calls.filter)(topology, PACKAGE, KEEP_ALL);
        (calls.filter)(topology, CORE, KEEP_ALL);
        let found = ((calls.load)(topology) == 0).then(|| walk(&calls, topology));
        (calls.destroy)(topology);
        found.filter(|t| !t.is_empty())
    }
}

/// # Safety
/// `topology` is loaded and the calls are hwloc's.
unsafe fn walk(calls: &Calls, topology: Topology) -> Vec<Thread> {
    let mut threads = Vec::new();
    // SAFETY: as the caller promises; hwloc returns null past the last object, and every object's
    // parent is an object of the same topology or null.
    unsafe {
        let depth = (calls.type_depth)(topology, PU);
        for index in 0.. {
            let pu = (calls.object)(topology, depth, index);
            let Some(pu) = pu.as_ref() else { break };
            let mut at = pu.parent;
            while let Some(object) = at.as_ref().filter(|o| o.kind != CORE) {
                at = object.parent;
            }
            // without cores in the tree every thread is its own
            let core = at.as_ref().map_or(index, |core| core.logical_index);
            while let Some(object) = at.as_ref().filter(|o| o.kind != PACKAGE) {
                at = object.parent;
            }
            let package = at.as_ref().map_or(0, |package| package.logical_index);
            threads.push(Thread {
                cpu: pu.os_index as usize,
                core: core as usize,
                package: package as usize,
            });
        }
    }
    threads
}

fn open() -> Option<Calls> {
    let library = dlopen::open(c"libhwloc.so.15").ok()?;
    // SAFETY: each symbol has the type that hwloc's version 2 declares for it; the version is
    // checked before any other call.
    unsafe {
        Some(Calls {
            version: library.symbol(c"hwloc_get_api_version")?,
            init: library.symbol(c"hwloc_topology_init")?,
            filter_all: library.symbol(c"hwloc_topology_set_all_types_filter")?,
            filter_caches: library.symbol(c"hwloc_topology_set_cache_types_filter")?,
            filter: library.symbol(c"hwloc_topology_set_type_filter")?,
            load: library.symbol(c"hwloc_topology_load")?,
            type_depth: library.symbol(c"hwloc_get_type_depth")?,
            object: library.symbol(c"hwloc_get_obj_by_depth")?,
            destroy: library.symbol(c"hwloc_topology_destroy")?,
        })
    }
}
