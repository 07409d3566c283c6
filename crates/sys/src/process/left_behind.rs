//! Processes that a job left behind, found by a variable in their environment.
//!
//! A process may change while it is examined, in three ways that could hide it:
//!
//! - It is in `execve`. The kernel installs an empty memory first and records where the environment
//!   lies in it later; the start of the program's code is recorded last. Until then nothing is
//!   decided, and the process is examined again.
//! - It calls `execve` between two of our reads, which ends the memory that we read: the data read
//!   is then cut short. A result counts only if the memory was the same before and after, and if
//!   the length of the data is the length that the kernel states.
//! - It starts a child and ends, after the list of processes was read. When a process ends between
//!   the list and its examination, the list is read once more.
//!
//! Only processes whose environment we may read are found: not those of other users, and no
//! set-user-ID programs.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Pause between two examinations of a process that changes.
const PAUSE: Duration = Duration::from_micros(200);

/// Time to wait for a process that the kernel blocks (in a hanging file system). No signal ends it,
/// and its environment cannot be read.
const HELD_UP: Duration = Duration::from_secs(10);

/// Kills every process whose environment contains `tag` (`NAME=value`), as far as we may, and waits
/// until they have ended. Repeats this until there is none, because they may start others.
pub fn sweep(tag: &str) {
    let mut given_up = HashSet::new();
    loop {
        let mut found = tagged(tag);
        found.retain(|pid| !given_up.contains(pid));
        if found.is_empty() {
            return;
        }
        let killed = |pid: &Pid| rustix::process::kill_process(*pid, Signal::KILL) != DENIED;
        let (killed, denied): (Vec<Pid>, Vec<Pid>) = found.into_iter().partition(killed);
        given_up.extend(denied);
        given_up.extend(killed.into_iter().filter(|pid| !wait_for_end(*pid)));
    }
}

const DENIED: rustix::io::Result<()> = Err(rustix::io::Errno::PERM);

/// The processes whose environment contains `tag`, except this one. `guard` is the child of this
/// process that should still live: if this process adopts orphans ([`super::adopt_orphans`]) and
/// has no other child, no process is left, and no other process is examined.
pub fn left_behind(tag: &str, guard: Option<u32>) -> Vec<i32> {
    if guard.is_some_and(|guard| has_other_children(guard) == Some(false)) {
        return Vec::new();
    }
    let pids = tagged(tag);
    pids.iter().map(|p| p.as_raw_nonzero().get()).collect()
}

/// Whether this process has a child besides that one; `None` if the kernel does not tell. No child
/// leaves the lists while they are read, because only the caller waits for children.
fn has_other_children(but: u32) -> Option<bool> {
    let mut other = false;
    for thread in numbers("/proc/self/task") {
        let list = format!("/proc/self/task/{}/children", thread.as_raw_nonzero());
        let list = std::fs::read_to_string(list).ok()?;
        other |= list
            .split_ascii_whitespace()
            .any(|pid| pid.parse() != Ok(but));
    }
    Some(other)
}

/// The processes whose environment contains `tag`, except this one.
fn tagged(tag: &str) -> Vec<Pid> {
    let (mut found, mut examined) = (Vec::new(), HashSet::new());
    loop {
        let new: Vec<Pid> = others().filter(|pid| examined.insert(*pid)).collect();
        let mut ended = false;
        for pid in new {
            match examine(pid, tag) {
                Verdict::Tagged => found.push(pid),
                Verdict::Other => {}
                Verdict::Ended => ended = true,
            }
        }
        if !ended {
            return found;
        }
    }
}

/// Every process except this one.
fn others() -> impl Iterator<Item = Pid> {
    let me = rustix::process::getpid();
    numbers("/proc").filter(move |pid| *pid != me)
}

/// The entries of a folder of `/proc` that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = Pid> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|e| Pid::from_raw(e.file_name().to_str()?.parse().ok()?))
}

/// Result of an examination.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Tagged,
    Other,
    /// It has ended, and may have started another one before.
    Ended,
}

/// Result of one examination of a process.
enum Look {
    Is(Verdict),
    /// It is in `execve`, or was during this examination.
    Changing {
        /// The kernel blocks it there, or nothing about it can ever be known.
        held_up: bool,
    },
}

/// Examines a process until it is known whether its environment contains `tag`.
fn examine(pid: Pid, tag: &str) -> Verdict {
    let mut since = None;
    loop {
        let folder = folder_of(pid);
        match look(&folder, tag) {
            // The thread has ended, and the process goes on with another one.
            Look::Is(Verdict::Ended) if folder_of(pid) != folder => continue,
            Look::Is(verdict) => return verdict,
            Look::Changing { held_up: false } => since = None,
            Look::Changing { held_up: true } => {
                if since.get_or_insert_with(Instant::now).elapsed() > HELD_UP {
                    return Verdict::Other;
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// The folder of a thread of this process that has its memory: the first thread, or, if a program
/// has ended that one alone, another one.
fn folder_of(pid: Pid) -> String {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let first = Image::of(&folder).ok();
    if !first.is_some_and(|i| i.is_zombie() && i.threads > 1) {
        return folder;
    }
    let other = numbers(&format!("{folder}/task")).find(|thread| *thread != pid);
    other.map_or(folder.clone(), |t| {
        format!("{folder}/task/{}", t.as_raw_nonzero())
    })
}

fn look(folder: &str, tag: &str) -> Look {
    let Ok(before) = Image::of(folder) else {
        return Look::Is(Verdict::Ended);
    };
    if before.is_of_kernel() {
        return Look::Is(Verdict::Other);
    }
    let read = std::fs::read(format!("{folder}/environ"));
    match &read {
        Ok(bytes) if contains(bytes, tag) => return Look::Is(Verdict::Tagged),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Look::Is(Verdict::Other),
        _ => {}
    }
    // Processes that have ended have no memory.
    if std::fs::read_link(format!("{folder}/exe")).is_err() {
        return Look::Is(Verdict::Ended);
    }
    let Ok(after) = Image::of(folder) else {
        return Look::Is(Verdict::Ended);
    };
    let bytes = read.map_or(0, |bytes| bytes.len() as u64);
    before.decide(&after, bytes)
}

/// Whether an environment contains a variable with its value.
fn contains(environment: &[u8], tag: &str) -> bool {
    environment.split(|b| *b == 0).any(|v| v == tag.as_bytes())
}

/// Waits until a killed process has ended; `false` if the kernel blocks it.
fn wait_for_end(pid: Pid) -> bool {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let mut since = None;
    loop {
        match Image::of(&folder) {
            Err(_) => return true,
            Ok(image) if image.is_zombie() && image.threads <= 1 => return true,
            Ok(image) if image.state == b'D' => {
                if since.get_or_insert_with(Instant::now).elapsed() > HELD_UP {
                    return false;
                }
            }
            Ok(_) => since = None,
        }
        std::thread::sleep(PAUSE);
    }
}

/// State of a process and of its memory, from `/proc/PID/stat` (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Image {
    state: u8,
    flags: u64,
    threads: u64,
    memory: Memory,
}

/// Addresses in a process' memory. All is 0 in `execve`, as well as without memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    start_code: u64,
    arguments: u64,
    environment: [u64; 2],
}

impl Image {
    fn of(folder: &str) -> io::Result<Image> {
        // The name of a program may be any bytes.
        let stat = super::read_at_once(&format!("{folder}/stat"))?;
        Image::parse(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(stat: &[u8]) -> Option<Image> {
        let name_ends = stat.iter().rposition(|b| *b == b')')?;
        let text = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        // Counted from 1, as proc(5) does; the first after the name is 3. Old kernels end earlier.
        let number = |n: usize| fields.get(n - 3).map_or(Some(0), |f| f.parse().ok());
        Some(Image {
            state: *fields.first()?.as_bytes().first()?,
            flags: number(9)?,
            threads: number(20)?,
            memory: Memory {
                start_code: number(26)?,
                arguments: number(48)?,
                environment: [number(50)?, number(51)?],
            },
        })
    }

    fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Whether it is a thread of the kernel, which has no environment (PF_KTHREAD).
    fn is_of_kernel(&self) -> bool {
        self.flags & 0x20_0000 != 0
    }

    /// Assessment of a process with memory, whose environment of `bytes` bytes does not contain the
    /// tag and was read between two images.
    fn decide(&self, after: &Image, bytes: u64) -> Look {
        if !kernel_states_memory() {
            return Look::Is(Verdict::Other);
        }
        let [start, end] = after.memory.environment;
        let whole = end.checked_sub(start) == Some(bytes);
        let same = self.memory == after.memory;
        match after.memory.start_code != 0 {
            true if same && whole => Look::Is(Verdict::Other),
            // Programs can unmap their environment.
            true => Look::Changing { held_up: same },
            false => Look::Changing {
                held_up: after.state == b'D',
            },
        }
    }
}

/// Whether this kernel reports addresses in memory; some that emulate Linux do not.
fn kernel_states_memory() -> bool {
    Image::of("/proc/self").is_ok_and(|i| i.memory.start_code != 0 && i.memory.environment[1] != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command, Stdio};

    /// A shell with a tag of its own.
    fn shell(name: &str, words: &str) -> (String, Command) {
        let tag = format!("KW_TEST_{name}={}", std::process::id());
        let (name, value) = tag.split_once('=').unwrap();
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", words])
            .env("AGAIN", words)
            .env(name, value)
            .stdin(Stdio::null());
        (tag, command)
    }

    fn pids(child: &Child) -> [i32; 1] {
        [child.id() as i32]
    }

    #[test]
    fn a_process_that_changes_its_program_is_found_all_the_time() {
        let (tag, mut command) = shell("EXECVE", r#"exec /bin/sh -c "$AGAIN""#);
        let mut child = command.spawn().unwrap();
        // Each examination reads the whole of /proc.
        let all = std::env::var_os("CHECK_ALL").is_some_and(|set| !set.is_empty());
        let missed = (0..if all { 1000 } else { 250 })
            .filter(|_| left_behind(&tag, None) != pids(&child))
            .count();
        sweep(&tag);
        child.wait().unwrap();
        assert_eq!((missed, left_behind(&tag, None)), (0, vec![]));
    }

    #[test]
    fn processes_that_end_after_starting_another_one_do_not_escape() {
        for _ in 0..20 {
            let (tag, mut command) = shell("CHAIN", r#"/bin/sh -c "$AGAIN" &"#);
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            let mut first = command.stdout(Stdio::from(writer)).spawn().unwrap();
            drop(command);
            first.wait().unwrap();
            sweep(&tag);
            // Every process of the chain holds the other end, and none is left.
            assert_eq!(at_end(reader), Some(true), "the chain goes on");
        }
    }

    /// Whether a pipe has no more writers; `None` if that cannot be found out.
    fn at_end(reader: OwnedFd) -> Option<bool> {
        rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::NONBLOCK).ok()?;
        match std::fs::File::from(reader).read(&mut [0]) {
            Ok(n) => Some(n == 0),
            Err(e) => (e.kind() == io::ErrorKind::WouldBlock).then_some(false),
        }
    }

    #[test]
    fn children_besides_the_guard_are_seen() {
        let (_, mut command) = shell("CHILDREN", "read word");
        let mut guard = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut other = command.stdin(Stdio::piped()).spawn().unwrap();
        // Other tests have children in the same process: only the presence of one can be tested.
        assert_ne!(has_other_children(guard.id()), Some(false));
        drop((guard.stdin.take(), other.stdin.take()));
        guard.wait().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_found() {
        let python = "import ctypes, threading, time\n\
                      lasting = threading.Thread(target=lambda: time.sleep(3600))\n\
                      lasting.start()\n\
                      print(flush=True)\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let tag = format!("KW_TEST_THREAD={}", std::process::id());
        let (name, value) = tag.split_once('=').unwrap();
        let started = Command::new("python3")
            .args(["-c", python])
            .env(name, value)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            println!("skipped: python3 is not installed");
            return;
        };
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let folder = format!("/proc/{}", child.id());
        while !Image::of(&folder).unwrap().is_zombie() {
            std::thread::yield_now();
        }
        assert_eq!(left_behind(&tag, None), pids(&child));
        sweep(&tag);
        assert!(Image::of(&folder).unwrap().threads <= 1);
        child.wait().unwrap();
    }

    fn image(start_code: u64, environment: [u64; 2], state: u8) -> Image {
        let memory = Memory {
            start_code,
            arguments: 900,
            environment,
        };
        Image {
            state,
            flags: 0,
            threads: 1,
            memory,
        }
    }

    /// Conclusion from two images and a number of bytes: a verdict, or whether it is blocked.
    fn decided(before: Image, after: Image, bytes: u64) -> Result<Verdict, bool> {
        match before.decide(&after, bytes) {
            Look::Is(verdict) => Ok(verdict),
            Look::Changing { held_up } => Err(held_up),
        }
    }

    #[test]
    fn nothing_is_decided_in_execve() {
        let old = image(4096, [1000, 1300], b'R');
        let empty = image(0, [0, 0], b'R');
        // The environment begins, but the kernel has not yet seen its end.
        let begun = image(0, [2000, 2000], b'R');
        let new = image(8192, [2000, 2300], b'R');
        for (before, after, bytes) in [
            (old, empty, 0),
            (empty, empty, 0),
            (empty, begun, 0),
            (begun, begun, 0),
            (begun, new, 300),
            (old, new, 0),
            (old, new, 300),
        ] {
            assert_eq!(
                decided(before, after, bytes),
                Err(false),
                "{before:?} {after:?}"
            );
        }
        assert_eq!(decided(new, new, 300), Ok(Verdict::Other));
        let without = image(8192, [2000, 2000], b'S');
        assert_eq!(decided(without, without, 0), Ok(Verdict::Other));
    }

    #[test]
    fn a_process_that_the_kernel_holds_up_is_waited_for_no_longer_than_stated() {
        let stuck = image(0, [0, 0], b'D');
        assert_eq!(decided(stuck, stuck, 0), Err(true));
        let unmapped = image(4096, [1000, 1300], b'S');
        assert_eq!(decided(unmapped, unmapped, 0), Err(true));
    }

    #[test]
    fn the_name_of_a_program_may_be_anything() {
        let name = b"7 (a) R (\xff\n) ";
        let mut stat = name.to_vec();
        let numbers: Vec<String> = (4..53).map(|n| n.to_string()).collect();
        stat.extend(format!("S {}", numbers.join(" ")).bytes());
        let image = Image::parse(&stat).unwrap();
        let memory = Memory {
            start_code: 26,
            arguments: 48,
            environment: [50, 51],
        };
        assert_eq!((image.state, image.flags, image.threads), (b'S', 9, 20));
        assert_eq!(image.memory, memory);
    }
}
