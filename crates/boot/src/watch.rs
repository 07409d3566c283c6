//! A thread that ends this process when its launcher, which would end the rest of the job, has
//! exited.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::BootError;
use kw_base::sync::Arc;
use kw_base::sync::atomic::{AtomicBool, Ordering};
use kw_sys::threads;

/// Grace period: a launcher that ends a job closes the connection and kills its ranks; the kill
/// says more than this thread could, so it gets time to arrive first.
const KILL: Duration = Duration::from_millis(300);

/// Bytes of stack of the thread.
const STACK: usize = 256 << 10;

/// The thread's end of it.
#[derive(Debug)]
pub(super) struct Watch {
    over: Arc<AtomicBool>,
}

impl Watch {
    /// From now on the process ends with `sentence` and status 1 when the other end of the
    /// connection is closed.
    pub(super) fn start(connection: BorrowedFd, sentence: String) -> Result<Watch, BootError> {
        let watched = connection
            .try_clone_to_owned()
            .map_err(BootError::system("watch the launcher"))?;
        let over = Arc::new(AtomicBool::new(false));
        let theirs = over.clone();
        let watch = move || {
            kw_sys::fd::wait_for_hang_up(&watched);
            // SYNC: launcher-over
            if !theirs.load(Ordering::Acquire) {
                std::thread::sleep(KILL);
                eprintln!("{sentence}");
                kw_sys::host::leave(1);
            }
        };
        threads::spawn("kw-launcher", STACK, watch)
            .map_err(BootError::system("watch the launcher"))?;
        Ok(Watch { over })
    }

    /// The end of the connection is expected from now on.
    pub(super) fn over(&self) {
        // SYNC: launcher-over
        self.over.store(true, Ordering::Release);
    }
}
