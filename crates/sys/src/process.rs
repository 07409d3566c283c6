//! Starting ranks so that none outlives the launcher, and finding processes that a job left behind.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

mod left_behind;

pub use left_behind::{left_behind, sweep};

/// One process to start.
#[derive(Debug)]
pub struct Start<'a> {
    /// Absolute path of the program.
    pub program: &'a Path,
    /// Name under which the program is started (argv[0]).
    pub arg0: &'a OsStr,
    /// Further arguments.
    pub args: &'a [OsString],
    /// The whole environment.
    pub env: &'a [(OsString, OsString)],
    /// Working directory, if not ours.
    pub dir: Option<&'a Path>,
    /// Standard input, output and error.
    pub stdio: [OwnedFd; 3],
    /// Descriptors that stay open in the process under their numbers.
    pub keep: &'a [BorrowedFd<'a>],
    /// CPUs to run on; empty leaves the mask alone.
    pub cpus: &'a [usize],
    /// Soft limit of open files to restore.
    pub files: Option<u64>,
    /// Whether it is put in the foreground of the terminal that is its standard input.
    pub foreground: bool,
}

/// Starts a process in a group of its own. It is killed when the calling thread ends.
pub fn start(s: Start) -> io::Result<u32> {
    let [stdin, stdout, stderr] = s.stdio;
    let keep: Vec<i32> = s.keep.iter().map(|fd| fd.as_raw_fd()).collect();
    let mask = mask_of(s.cpus);
    let (files, foreground) = (s.files, s.foreground);
    let parent = rustix::process::getpid();
    let mut command = Command::new(s.program);
    command
        .arg0(s.arg0)
        .args(s.args)
        .env_clear()
        .envs(s.env.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .process_group(0);
    if let Some(dir) = s.dir {
        command.current_dir(dir);
    }
    // SAFETY: the closure runs between fork and exec and makes system calls only; it allocates
    // nothing.
    unsafe {
        command.pre_exec(move || prepare(&keep, mask.as_ref(), (files, foreground), parent));
    }
    command.spawn().map(|child| child.id())
}

/// Takes the terminal on standard input, if there is one, back from its current owner.
pub fn take_foreground() {
    // SAFETY: plain system calls on a local signal set; failure leaves things as they are.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before = all;
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        libc::tcsetpgrp(0, libc::getpgrp());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}

fn mask_of(cpus: &[usize]) -> Option<rustix::thread::CpuSet> {
    let mut set = rustix::thread::CpuSet::new();
    for &c in cpus
        .iter()
        .filter(|c| **c < rustix::thread::CpuSet::MAX_CPU)
    {
        set.set(c);
    }
    (set.count() > 0).then_some(set)
}

/// Lets this thread run on these CPUs; with none nothing changes.
pub(crate) fn run_on(cpus: &[usize]) -> rustix::io::Result<()> {
    match mask_of(cpus) {
        Some(mask) => rustix::thread::sched_setaffinity(None, &mask),
        None => Ok(()),
    }
}

/// In the child, before exec.
fn prepare(
    keep: &[i32],
    mask: Option<&rustix::thread::CpuSet>,
    (files, foreground): (Option<u64>, bool),
    parent: rustix::process::Pid,
) -> io::Result<()> {
    // SAFETY: plain system calls on numbers and on a local signal set.
    unsafe {
        let lost = |fd: &i32| libc::fcntl(*fd, libc::F_SETFD, 0) == -1;
        if keep.iter().any(lost) || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Err(io::Error::last_os_error());
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        if foreground {
            // a process that is not in it yet may not claim it, unless the signal for that is
            // blocked
            libc::sigfillset(&mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            libc::tcsetpgrp(0, libc::getpid());
        }
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
    if rustix::process::getppid() != Some(parent) {
        return Err(rustix::io::Errno::SRCH.into());
    }
    if let Some(mask) = mask {
        rustix::thread::sched_setaffinity(None, mask)?;
    }
    if let Some(soft) = files {
        let now = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let back = rustix::process::Rlimit {
            current: Some(soft),
            maximum: now.maximum,
        };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, back)?;
    }
    Ok(())
}

/// A file of `/proc` of less than 4 KB, read by one call: [`std::fs::read`] needs many calls for
/// little data of a file whose length is reported as 0.
pub(crate) fn read_at_once(file: &str) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut all = vec![0; 4096];
    let len = std::fs::File::open(file)?.read(&mut all)?;
    all.truncate(len);
    Ok(all)
}

/// The value in `/proc/PID/status` of a process under a name, such as `PPid`.
pub fn status(pid: u32, name: &str) -> Option<String> {
    let all = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let all = String::from_utf8_lossy(&all);
    let value = (all.lines()).find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_string())
}

/// Files that this process may still open (its soft limit, less those that are open).
pub fn spare_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = limit.map_or(usize::MAX, |n| n as usize);
    // If /proc is not mounted the limit itself has to do.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count());
    most.saturating_sub(open)
}

/// Makes orphans of our descendants our children, so that they can be reaped.
pub fn adopt_orphans() {
    // SAFETY: a flag of this process; failure only means that orphans go to init.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    }
}

/// Calls `f` in every child that a fork of this process makes, before anything else there.
pub fn in_children(f: extern "C" fn()) {
    // SAFETY: a function that stays; it runs where only the calling thread is left, and must take
    // no lock.
    unsafe {
        libc::pthread_atfork(None, None, Some(f));
    }
}

/// Calls `f` when this process ends by `exit`, or by returning from `main`.
pub fn at_exit(f: extern "C" fn()) {
    // SAFETY: a function that stays for as long as this library does, whose end calls it, too.
    unsafe {
        libc::atexit(f);
    }
}

/// Most descriptors that are closed one by one, if the kernel closes no range.
const MOST_FILES: libc::c_long = 1 << 20;

/// Name of the guard's process.
pub(crate) const GUARD: &str = "kw-guard";

/// A tiny process that outlives a killed launcher just long enough to kill the processes that it
/// started.
#[derive(Debug)]
pub struct Guard {
    /// Open for as long as the launcher lives; a byte in it means an orderly end.
    line: OwnedFd,
    pid: rustix::process::Pid,
}

/// Starts the guard. Must be called while the process has one thread. `tag` is as in [`sweep`].
pub fn guard(tag: &str) -> io::Result<Guard> {
    let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: the caller promises that this is the only thread, so the child may do anything that a
    // process may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(ours);
            watch(theirs, tag)
        }
        pid => Ok(Guard {
            line: ours,
            // fork returned a positive number
            pid: rustix::process::Pid::from_raw(pid).expect("a child's id is positive"),
        }),
    }
}

/// The guard's whole life.
fn watch(line: OwnedFd, tag: &str) -> ! {
    let number = line.as_raw_fd();
    // SAFETY: plain system calls; the descriptors closed here belong to objects this process never
    // touches again.
    unsafe {
        let name = CString::new(GUARD).unwrap_or_default();
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::dup2(number, 0);
        // By its number: the C library knows the name since glibc 2.34, the kernel since Linux 5.9.
        if libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32) != 0 {
            for other in 1..libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, MOST_FILES) as i32 {
                libc::close(other);
            }
        }
    }
    let mut byte = [0u8];
    let n = loop {
        // SAFETY: descriptor 0 is the pipe; the buffer is one byte long.
        let n = unsafe { libc::read(0, byte.as_mut_ptr().cast(), 1) };
        if n != -1 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break n;
        }
    };
    if n != 1 {
        sweep(tag);
    }
    // SAFETY: ends the process at once, without the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

/// See [`Guard::claim`].
pub(crate) fn mark_claim(pid: u32, cpus: &[usize]) {
    let whole = rustix::thread::sched_getaffinity(None).ok();
    let pid = pid as i32;
    // SAFETY: plain system calls about a child of this process; failure means that others do not
    // see the claim.
    unsafe {
        let own = libc::sched_getscheduler(0);
        let other = if own == libc::SCHED_BATCH {
            libc::SCHED_OTHER
        } else {
            libc::SCHED_BATCH
        };
        let policy = if cpus.is_empty() { own } else { other };
        let mut priority: libc::sched_param = std::mem::zeroed();
        if policy == own {
            libc::sched_getparam(0, &mut priority);
        }
        libc::sched_setscheduler(pid, policy, &priority);
    }
    if let (Some(mask), child) = (mask_of(cpus).or(whole), rustix::process::Pid::from_raw(pid)) {
        let _ = rustix::thread::sched_setaffinity(child, &mask);
    }
}

impl Guard {
    /// The launcher ends in order: the guard ends without doing anything.
    pub fn dismiss(self) {
        let _ = rustix::io::write(&self.line, b"k");
        let _ = rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty());
    }

    /// Makes the guard show other launchers that these CPUs are claimed: it may run on them alone,
    /// and has another scheduling policy than its launcher. With none it claims nothing. Others see
    /// it when this returns (see [`crate::neighbours::taken`]).
    pub fn claim(&self, cpus: &[usize]) {
        mark_claim(self.pid(), cpus);
    }

    /// The guard's process, which is a child of the caller.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }
}

/// Whether this process may execute a file.
pub fn executable(path: &Path) -> bool {
    let Ok(text) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: a NUL-terminated path.
    unsafe { libc::access(text.as_ptr(), libc::X_OK) == 0 }
}
