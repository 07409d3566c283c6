//! A thread that runs nonblocking operations on one file in the order in which they were started.
//! It is created for the first of them and ends with the file.

use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// An operation.
pub type Job = Box<dyn FnOnce() + Send>;

/// A thread, created when it is needed.
#[derive(Debug)]
pub struct Worker {
    name: &'static str,
    thread: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
    left: Arc<AtomicUsize>,
}

impl Worker {
    /// Creates the state without a thread.
    pub fn new(name: &'static str) -> Worker {
        Worker {
            name,
            thread: Mutex::new(None),
            left: Arc::default(),
        }
    }

    /// Whether all operations have ended.
    pub fn is_idle(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Runs an operation after the earlier ones. If no thread can be created, runs it now.
    pub fn run(&self, job: Job) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (sender, jobs) = channel::<Job>();
            let left = self.left.clone();
            let work = move || {
                for job in jobs {
                    job();
                    left.fetch_sub(1, Ordering::AcqRel);
                }
            };
            let made = kw_sys::threads::with_signals_blocked(|| {
                std::thread::Builder::new()
                    .name(self.name.into())
                    .spawn(work)
            });
            *thread = made.ok().map(|handle| (sender, handle));
        }
        match &*thread {
            Some((sender, _)) => {
                self.left.fetch_add(1, Ordering::AcqRel);
                if let Err(back) = sender.send(job) {
                    self.left.fetch_sub(1, Ordering::AcqRel);
                    back.0();
                }
            }
            None => job(),
        }
    }

    /// Waits until all operations have ended, and ends the thread.
    pub fn end(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((sender, handle)) = thread {
            drop(sender);
            // The thread itself has reported a panic.
            let _ = handle.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_run_in_their_order_and_end_waits_for_them() {
        let worker = Worker::new("test");
        let seen = Arc::new(Mutex::new(Vec::new()));
        for i in 0..100 {
            let seen = seen.clone();
            worker.run(Box::new(move || seen.lock().expect("the list").push(i)));
        }
        worker.end();
        assert!(worker.is_idle());
        assert!(seen.lock().expect("the list").iter().copied().eq(0..100));
    }
}
