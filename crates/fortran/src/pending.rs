//! Copies of sections whose operations are in flight.
//!
//! Kittiwake's C library reports the begin and end of an operation, whichever thread completes its
//! request ([`hook`]). Another library does not: there the copies are in a table by their requests,
//! and the data received by a request that C functions complete stays in its copy.

use crate::constants::{MPI_REQUEST_NULL, MPI_STATUS_IGNORE, REQUEST_HOOK};
use crate::handle::{Datatype, Request, to_fortran};
use crate::sections::Copied;
use crate::shells::MPI_Request_get_status;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use kw_base::sync::{Mutex, OnceLock};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};

/// Copies used by an operation.
struct Used {
    copies: Vec<Copied>,
    /// Arrays that C may use.
    _arrays: Vec<Vec<Datatype>>,
}

impl Used {
    /// Copies the data to send, now.
    fn starts(&mut self) {
        self.copies.iter_mut().for_each(Copied::gather);
    }

    /// Copies received data into its section.
    fn ended(&self) {
        self.copies.iter().for_each(Copied::scatter);
    }
}

type Hook = unsafe extern "C" fn(*mut c_void, c_int);
type SetHook = unsafe extern "C" fn(Request, Hook, *mut c_void) -> c_int;

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The function by which Kittiwake's C library takes a hook (`crates/abi/src/hook.rs`).
fn set_hook() -> Option<SetHook> {
    static FOUND: OnceLock<Option<SetHook>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: null means: among the libraries that this one sees. The name ends with a zero.
        let found = unsafe { dlsym(std::ptr::null_mut(), REQUEST_HOOK.as_ptr()) };
        // SAFETY: only our libraries have the name, for a function of this type.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, SetHook>(found) })
    })
}

/// Called while an operation begins or ends; calls no MPI.
///
/// # Safety
/// `data` is of a [`Used`] that [`add`] has given away, and is not used meanwhile.
unsafe extern "C" fn hook(data: *mut c_void, event: c_int) {
    let used: *mut Used = data.cast();
    // SAFETY: the caller's promise. The last event gives it back.
    unsafe {
        match event {
            0 => (*used).starts(),
            1 => (*used).ended(),
            _ => drop(Box::from_raw(used)),
        }
    }
}

/// Adds a request whose operation uses copies.
pub fn add(request: Request, copies: Vec<Copied>, arrays: Vec<Vec<Datatype>>, persistent: bool) {
    let used = Used {
        copies,
        _arrays: arrays,
    };
    if let Some(set_hook) = set_hook() {
        let data = Box::into_raw(Box::new(used));
        // SAFETY: it belongs to the hook now; the library reports when it no longer needs it.
        unsafe { set_hook(request, hook, data.cast()) };
        return;
    }
    let entry = Entry {
        used,
        persistent,
        started: false,
    };
    with(|entries| entries.insert(request, entry));
}

struct Entry {
    used: Used,
    persistent: bool,
    /// Whether a persistent request was started, and is not known to be complete.
    started: bool,
}

static ENTRIES: Mutex<Option<HashMap<Request, Entry>>> = Mutex::new(None);
/// Their number: zero with Kittiwake's C library, and then waits search no further.
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

/// Requests as they were before the call, if they matter.
#[inline(always)]
pub fn copy(requests: &[Request]) -> Vec<Request> {
    if is_empty() {
        Vec::new()
    } else {
        requests.to_vec()
    }
}

/// Handles persistent requests that are about to start: data to send is copied now.
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
                entry.used.starts();
            }
        }
    });
}

/// Handles requests that may be complete: received data goes into its section.
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
                    entry.used.ended();
                }
            } else if to_fortran(*is) == MPI_REQUEST_NULL {
                entry.used.ended();
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

/// Handles freed requests. Active operations keep their copies: MPI may use them to the end.
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
