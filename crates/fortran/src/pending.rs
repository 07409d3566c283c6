//! Copies of sections whose operations are under way, by their requests.
//!
//! A request that is completed from C, and not by a procedure of this library, leaves its copy
//! where it is: C's functions know nothing of it.

use crate::constants::{MPI_REQUEST_NULL, MPI_STATUS_IGNORE};
use crate::handle::{Datatype, Request, to_fortran};
use crate::sections::Copied;
use crate::shells::MPI_Request_get_status;
use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;

struct Entry {
    copies: Vec<Copied>,
    /// Arrays that C may use.
    _arrays: Vec<Vec<Datatype>>,
    persistent: bool,
    /// A persistent request was started, and is not known to be complete.
    started: bool,
}

static ENTRIES: Mutex<Option<HashMap<Request, Entry>>> = Mutex::new(None);
/// How many there are: most programs have none, and their waits look no further.
static HOW_MANY: AtomicUsize = AtomicUsize::new(0);

fn with<R>(work: impl FnOnce(&mut HashMap<Request, Entry>) -> R) -> R {
    let mut entries = ENTRIES.lock().unwrap_or_else(|e| e.into_inner());
    let entries = entries.get_or_insert_default();
    let result = work(entries);
    HOW_MANY.store(entries.len(), Ordering::Relaxed);
    result
}

fn is_empty() -> bool {
    HOW_MANY.load(Ordering::Relaxed) == 0
}

/// A request whose operation uses copies.
pub fn add(request: Request, copies: Vec<Copied>, arrays: Vec<Vec<Datatype>>, persistent: bool) {
    let entry = Entry {
        copies,
        _arrays: arrays,
        persistent,
        started: false,
    };
    with(|entries| entries.insert(request, entry));
}

/// Requests as they were, if it matters.
#[inline(always)]
pub fn copy(requests: &[Request]) -> Vec<Request> {
    if is_empty() {
        Vec::new()
    } else {
        requests.to_vec()
    }
}

/// Persistent requests are about to start: what they send is read now.
#[inline(always)]
pub fn start(requests: &[Request]) {
    if !is_empty() {
        start_some(requests);
    }
}

#[cold]
fn start_some(requests: &[Request]) {
    with(|entries| {
        for request in requests {
            if let Some(entry) = entries.get_mut(request) {
                entry.started = true;
                entry.copies.iter_mut().for_each(Copied::gather);
            }
        }
    });
}

/// Requests may be complete: what they received goes into its section.
#[inline(always)]
pub fn settle(was: &[Request], is: &[Request]) {
    if !is_empty() {
        settle_some(was, is);
    }
}

#[cold]
fn settle_some(was: &[Request], is: &[Request]) {
    with(|entries| {
        for (was, is) in was.iter().zip(is) {
            let Some(entry) = entries.get_mut(was) else {
                continue;
            };
            if entry.persistent {
                if entry.started && is_complete(*was) {
                    entry.started = false;
                    entry.copies.iter().for_each(Copied::scatter);
                }
            } else if to_fortran(*is) == MPI_REQUEST_NULL {
                entry.copies.iter().for_each(Copied::scatter);
                entries.remove(was);
            }
        }
    });
}

fn is_complete(request: Request) -> bool {
    let mut flag = 0;
    // SAFETY: the status is ignored.
    unsafe {
        MPI_Request_get_status(request, &raw mut flag, MPI_STATUS_IGNORE as *mut _) == 0
            && flag != 0
    }
}

/// Requests are freed. What is still under way keeps its copies: MPI may use them to the end.
#[inline(always)]
pub fn forget(was: &[Request], _is: &[Request]) {
    if !is_empty() {
        forget_some(was);
    }
}

#[cold]
fn forget_some(was: &[Request]) {
    with(|entries| {
        for request in was {
            match entries.remove(request) {
                Some(entry) if !entry.persistent || entry.started => std::mem::forget(entry),
                _ => {}
            }
        }
    });
}
