//! Values that any thread finds by a handle of the program, without a lock.
//!
//! A handle is a word that the caller of MPI passes, like an [`Addr`](crate::buf::Addr), and comes
//! with the same promise: the program does not free an object while another of its calls uses it
//! (MPI 5.0, 2.5.1 and 12.2.6). So [`Published::withdraw`], called when the object is freed, does
//! not wait. A handle that was withdrawn, or never published, is not found.

use kw_base::sync::Arc;
use kw_base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr;

/// Handles that are found at once, if their low bits differ. Others are not found here: the caller
/// must look them up in another way.
pub const ROWS: usize = 64;

/// The handle of a free row.
const FREE: usize = 0;

#[derive(Debug)]
struct Row<T> {
    handle: AtomicUsize,
    /// From an `Arc`, while the row is not free.
    value: AtomicPtr<T>,
}

/// See the module. Handles are not 0.
#[derive(Debug)]
pub struct Published<T> {
    rows: [Row<T>; ROWS],
}

impl<T> Default for Published<T> {
    fn default() -> Self {
        let row = |_| Row {
            handle: AtomicUsize::new(FREE),
            value: AtomicPtr::new(ptr::null_mut()),
        };
        Published {
            rows: std::array::from_fn(row),
        }
    }
}

impl<T: Send + Sync> Published<T> {
    /// The value of a handle.
    #[inline(always)]
    pub fn get(&self, handle: usize) -> Option<&T> {
        let row = &self.rows[handle % ROWS];
        // SYNC: published
        if row.handle.load(Ordering::Acquire) != handle {
            return None;
        }
        // SAFETY: it is null, or from an `Arc` that the row owns. `withdraw` gives that up only
        // when the program frees an object that it no longer uses, by the promise of the handle.
        unsafe { row.value.load(Ordering::Relaxed).as_ref() }
    }

    /// Publishes a value under a handle; returns whether its row was free. One thread at a time.
    pub fn publish(&self, handle: usize, value: Arc<T>) -> bool {
        let row = &self.rows[handle % ROWS];
        if row.handle.load(Ordering::Relaxed) != FREE {
            return false;
        }
        let value = Arc::into_raw(value).cast_mut();
        row.value.store(value, Ordering::Relaxed);
        // SYNC: published
        row.handle.store(handle, Ordering::Release);
        true
    }

    /// The program frees this handle: from now on it is not found. One thread at a time.
    pub fn withdraw(&self, handle: usize) {
        let row = &self.rows[handle % ROWS];
        if row.handle.load(Ordering::Relaxed) == handle {
            row.empty();
        }
    }
}

impl<T> Row<T> {
    fn empty(&self) {
        self.handle.store(FREE, Ordering::Relaxed);
        let value = self.value.swap(ptr::null_mut(), Ordering::Relaxed);
        if !value.is_null() {
            // SAFETY: `publish` made it from an `Arc`, and only this call takes it back.
            drop(unsafe { Arc::from_raw(value) });
        }
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        self.rows.iter().for_each(Row::empty);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_found_until_it_is_withdrawn() {
        let table = Published::default();
        let one = Arc::new("one");
        assert_eq!(table.get(5), None);
        assert_eq!(table.get(0), None, "no handle");
        assert!(table.publish(5, one.clone()));
        assert_eq!((table.get(5), table.get(5 + ROWS)), (Some(&"one"), None));
        assert!(!table.publish(5 + ROWS, Arc::new("two")), "the same row");
        table.withdraw(5 + ROWS);
        assert_eq!(table.get(5), Some(&"one"));
        table.withdraw(5);
        assert_eq!((table.get(5), Arc::strong_count(&one)), (None, 1));
        assert!(table.publish(5 + ROWS, one.clone()));
        assert_eq!((table.get(5), table.get(5 + ROWS)), (None, Some(&"one")));
        drop(table);
        assert_eq!(Arc::strong_count(&one), 1);
    }
}
