//! Where another process is: stops its first thread for a moment, as a debugger does, and resumes
//! it. A system call that it sleeps in goes on; nothing that the program can see happens to it.

use std::time::Duration;

/// How long a thread may take to stop: a running one does at once, when it gets a CPU.
const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(1);

/// Position of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadPosition {
    /// The address of its next instruction.
    pub instruction: u64,
    /// The address of the end of its stack.
    pub stack: u64,
}

/// Stops processes and resumes them.
#[derive(Debug, Default)]
pub struct Peeker {
    /// Processes that did not stop in time: they are resumed as soon as they do.
    late: Vec<u32>,
}

impl Peeker {
    /// Result of `look` while the first thread of a process is stopped. `None` if the system does
    /// not allow that, or not on this kind of CPU.
    pub fn look<R>(&mut self, pid: u32, look: impl FnOnce(ThreadPosition) -> R) -> Option<R> {
        self.let_go();
        if !seize(pid) {
            return None;
        }
        let Some(signal) = await_stop(pid) else {
            self.late.push(pid);
            return None;
        };
        let found = place(pid).map(look);
        detach(pid, signal);
        found
    }

    /// Resumes processes that have stopped late. Must be called now and then.
    pub fn let_go(&mut self) {
        self.late.retain(|&pid| {
            let gone = || !std::path::Path::new(&format!("/proc/{pid}")).exists();
            !detach(pid, 0) && !gone()
        });
    }
}

fn seize(pid: u32) -> bool {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: neither request reads or writes memory of this process.
    unsafe {
        let pid = pid as libc::pid_t;
        libc::ptrace(libc::PTRACE_SEIZE, pid, none, none) == 0
            && libc::ptrace(libc::PTRACE_INTERRUPT, pid, none, none) == 0
    }
}

/// Resumes it; a signal that it stopped for is delivered. Returns whether it stood still.
fn detach(pid: u32, signal: i32) -> bool {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the request reads no memory of this process; the signal is passed in the pointer's
    // place.
    unsafe {
        let signal = signal as usize as *mut libc::c_void;
        libc::ptrace(libc::PTRACE_DETACH, pid as libc::pid_t, none, signal) == 0
    }
}

/// Waits until it is stopped; returns the signal that it was about to get, or 0. The end of a
/// process is left to the thread that waits for it.
fn await_stop(pid: u32) -> Option<i32> {
    let mut left = PATIENCE;
    loop {
        let all = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        match wait(pid, all) {
            Some((libc::CLD_TRAPPED | libc::CLD_STOPPED, status)) => {
                wait(pid, libc::WSTOPPED);
                // An event has its number above the signal's.
                return Some(if status >> 8 == 0 { status } else { 0 });
            }
            Some(_) => return None,
            None if left.is_zero() => return None,
            None => {}
        }
        std::thread::sleep(STEP);
        left = left.saturating_sub(STEP);
    }
}

/// State of a child: kind and status.
fn wait(pid: u32, what: libc::c_int) -> Option<(i32, i32)> {
    // SAFETY: the structure is plain data, and the system fills it in.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let how = what | libc::WNOHANG | libc::__WALL;
        let found = libc::waitid(libc::P_PID, pid, &mut info, how);
        (found == 0 && info.si_pid() != 0).then(|| (info.si_code, info.si_status()))
    }
}

#[cfg(target_arch = "x86_64")]
fn place(pid: u32) -> Option<ThreadPosition> {
    // SAFETY: the structure is plain data, which the system fills in whole or not at all.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        let none = std::ptr::null_mut::<libc::c_void>();
        let pid = pid as libc::pid_t;
        let got = libc::ptrace(libc::PTRACE_GETREGS, pid, none, &raw mut registers);
        (got == 0).then_some(ThreadPosition {
            instruction: registers.rip,
            stack: registers.rsp,
        })
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn place(_pid: u32) -> Option<ThreadPosition> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(
        not(target_arch = "x86_64"),
        ignore = "the registers are not read here"
    )]
    fn a_process_goes_on_after_a_look() {
        let mut child = std::process::Command::new("sleep")
            .arg("0.5")
            .spawn()
            .unwrap();
        let mut peeker = Peeker::default();
        let found = peeker.look(child.id(), |place| place);
        // A machine may forbid it.
        if let Some(place) = found {
            assert!(place.instruction != 0 && place.stack != 0);
        }
        assert!(peeker.late.is_empty());
        assert!(child.wait().unwrap().success(), "its sleep was not cut off");
        assert_eq!(peeker.look(child.id(), |place| place), None);
    }
}
