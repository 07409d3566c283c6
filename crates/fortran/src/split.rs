//! Copies of array sections used by split collective accesses to files, from the `_begin` function
//! to the `_end` function. A file has one such access at a time (MPI 5.0, 14.4.5).

use crate::handle::File;
use crate::sections::Copied;
use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::c_int;

static ENTRIES: Mutex<Vec<(File, Vec<Copied>)>> = Mutex::new(Vec::new());
/// Number of copies: usually none, and then an `_end` function searches no further.
static HOW_MANY: AtomicUsize = AtomicUsize::new(0);

fn with(work: impl FnOnce(&mut Vec<(File, Vec<Copied>)>)) {
    let mut entries = ENTRIES.lock().unwrap_or_else(|e| e.into_inner());
    work(&mut entries);
    HOW_MANY.store(entries.len(), Ordering::Relaxed);
}

/// Notes that an access has begun. An earlier one on the same file has ended: otherwise MPI would
/// have refused this one.
#[inline(always)]
pub fn begun(code: c_int, file: File) {
    if code == 0 && HOW_MANY.load(Ordering::Relaxed) > 0 {
        with(|entries| entries.retain(|(of, _)| *of != file));
    }
}

/// Adds copies that it uses.
pub fn keep(file: File, copies: Vec<Copied>) {
    if !copies.is_empty() {
        with(|entries| entries.push((file, copies)));
    }
}

/// Handles the return of an `_end` function: data that was read goes into its section. After an
/// error the copies stay until the next access to the file, because this may not have been the
/// function that ends this access, and the access continues then.
#[inline(always)]
pub fn ended(code: c_int, file: File) {
    if code == 0 && HOW_MANY.load(Ordering::Relaxed) > 0 {
        ended_well(file);
    }
}

#[cold]
fn ended_well(file: File) {
    with(|entries| {
        let copies = entries.iter().filter(|(of, _)| *of == file);
        copies.for_each(|(_, copies)| copies.iter().for_each(Copied::scatter));
        entries.retain(|(of, _)| *of != file);
    });
}
