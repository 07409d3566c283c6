//! Copies of array sections that split collective accesses to files use, from the `_begin` function
//! to the `_end` function. A file has one such access at a time (MPI 5.0, 14.4.5).

use crate::handle::File;
use crate::sections::Copied;
use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::c_int;

static ENTRIES: Mutex<Vec<(File, Vec<Copied>)>> = Mutex::new(Vec::new());
/// How many there are: mostly none, and then an `_end` function looks no further.
static HOW_MANY: AtomicUsize = AtomicUsize::new(0);

fn with(work: impl FnOnce(&mut Vec<(File, Vec<Copied>)>)) {
    let mut entries = ENTRIES.lock().unwrap_or_else(|e| e.into_inner());
    work(&mut entries);
    HOW_MANY.store(entries.len(), Ordering::Relaxed);
}

/// An access has begun. One that was begun before on the same file has ended: MPI would have refused
/// this one.
#[inline(always)]
pub fn begun(code: c_int, file: File) {
    if code == 0 && HOW_MANY.load(Ordering::Relaxed) > 0 {
        with(|entries| entries.retain(|(of, _)| *of != file));
    }
}

/// It uses these copies.
pub fn keep(file: File, copies: Vec<Copied>) {
    if !copies.is_empty() {
        with(|entries| entries.push((file, copies)));
    }
}

/// An `_end` function has returned: what was read goes into its section. After an error the copies
/// stay until the next access of the file: it may be that this was not the function that ends this
/// access, which goes on.
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
