//! Threads of the library's own. The program's signals are not for them: a signal that the
//! program's threads all block must wait until one of them takes it, and a handler must run on a
//! thread that the program made. So every thread here starts with all signals blocked except those
//! that are the thread's own fault.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Signals that an instruction causes: they come to the thread that executes it, and blocked ones
/// kill without a message.
const OWN: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Starts a thread that takes no signal; `stack` is in bytes.
pub fn spawn<T: Send + 'static>(
    name: &str,
    stack: usize,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let builder = Builder::new().name(name.to_string()).stack_size(stack);
    with_signals_blocked(|| builder.spawn(body))
}

/// Calls `body`; threads that start meanwhile take no signal.
pub fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: local signal sets; the first is filled before it is used, the second by the first
    // call.
    let before = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&mut all);
        for number in OWN {
            libc::sigdelset(&mut all, number);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        before
    };
    let result = body();
    // SAFETY: the set was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}

/// The shortest turn on a CPU that the kernel gives.
const SHORT_TURN: u64 = 100_000;

/// Asks the kernel for short turns for the calling thread: if the kernel supports such requests
/// (Linux 6.12), it then lets this thread run as soon as it wakes, beside threads with longer turns
/// (`sched(7)`, a custom slice), for no more of the CPU than before. Without that a thread that
/// wakes beside a computation may have to wait until the computation's turn ends, several
/// milliseconds.
pub fn ask_for_short_turns() {
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the kernel writes at most `size` bytes into a local struct of which all bytes may be
    // zero, and reads as many of it; both calls are about the calling thread.
    unsafe {
        let mut wishes: libc::sched_attr = std::mem::zeroed();
        if libc::syscall(libc::SYS_sched_getattr, 0, &mut wishes, size, 0) != 0 {
            return;
        }
        if [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&(wishes.sched_policy as i32)) {
            wishes.sched_runtime = SHORT_TURN;
            libc::syscall(libc::SYS_sched_setattr, 0, &wishes, 0);
        }
    }
}

/// Whether the program has threads besides the calling one. The library's own do not count: their
/// names begin with `kw-`.
pub fn are_others() -> bool {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return true;
    };
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    tasks.flatten().any(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        task.file_name() != *own && !name.starts_with("kw-")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_ours_are_nobody() {
        assert!(are_others(), "the test harness has threads");
    }

    fn wishes() -> libc::sched_attr {
        let size = size_of::<libc::sched_attr>() as u32;
        // SAFETY: a local struct, all bytes of which may be zero, that the call fills.
        unsafe {
            let mut now: libc::sched_attr = std::mem::zeroed();
            assert_eq!(
                libc::syscall(libc::SYS_sched_getattr, 0, &mut now, size, 0),
                0
            );
            now
        }
    }

    /// A kernel that does not support such requests returns zero.
    #[test]
    fn a_thread_with_short_turns_has_its_priority_as_before() {
        let body = || {
            let before = wishes();
            ask_for_short_turns();
            (before, wishes())
        };
        let (before, after) = spawn("test", 64 << 10, body).unwrap().join().unwrap();
        assert_eq!(before.sched_policy, after.sched_policy);
        assert_eq!(before.sched_nice, after.sched_nice);
        assert!([0, SHORT_TURN].contains(&after.sched_runtime));
    }

    fn blocks(number: i32) -> bool {
        // SAFETY: a local signal set that the call fills.
        unsafe {
            let mut now: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut now);
            libc::sigismember(&now, number) == 1
        }
    }

    #[test]
    fn our_threads_take_no_signal_of_the_program() {
        let theirs = || [libc::SIGUSR1, libc::SIGALRM, libc::SIGTERM, libc::SIGSEGV].map(blocks);
        let before = theirs();
        let thread = spawn("test", 64 << 10, theirs).unwrap();
        assert_eq!(thread.join().unwrap(), [true, true, true, false]);
        assert_eq!(theirs(), before, "the caller's own signals are as before");
    }
}
