//! Other jobs on this machine: which processors their ranks are bound to, as the kernel says it.
//! Nothing is written down anywhere, so nothing is left behind when a job is killed.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

/// What launchers are called, on every host.
const LAUNCHERS: [&str; 2] = ["mpiexec", "mpirun"];
/// What they bind their abstract socket to while they choose processors and start ranks on them.
const TURN: &[u8] = b"kittiwake-binding";
/// How long one waits for another one's turn to end.
const TURN_LIMIT: Duration = Duration::from_secs(1);

/// Held while ranks are bound: two jobs that start at once do not choose the same processors. It
/// ends with its process.
#[derive(Debug)]
pub struct Turn {
    _socket: Option<OwnedFd>,
}

/// Waits for the turn, but not for long: then, or where it cannot be had, all go on without.
pub fn turn() -> Turn {
    let until = crate::clock::now() + TURN_LIMIT;
    loop {
        match try_turn() {
            Err(Errno::ADDRINUSE) if crate::clock::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            got => return Turn { _socket: got.ok() },
        }
    }
}

fn try_turn() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(TURN)?)?;
    Ok(socket)
}

/// One process of the machine.
struct Process {
    parent: u32,
    launcher: bool,
}

/// Processors that the ranks of other jobs are bound to, ascending. A rank that may use all that
/// its launcher may is not bound.
pub fn bound() -> Vec<usize> {
    let all = processes();
    let mine = ancestors(&all);
    let mut masks: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut taken = Vec::new();
    for (pid, process) in &all {
        let starter = process.parent;
        let launched = all.get(&starter).is_some_and(|p| p.launcher);
        if !launched || mine.contains(&starter) {
            continue;
        }
        let whole = masks.entry(starter).or_insert_with(|| mask(starter));
        let own = mask(*pid);
        if own.len() < whole.len() {
            taken.extend(own);
        }
    }
    taken.sort_unstable();
    taken.dedup();
    taken
}

fn processes() -> HashMap<u32, Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return HashMap::new();
    };
    let one = |e: std::fs::DirEntry| {
        let pid = e.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(e.path().join("stat")).ok()?;
        Some((pid, parse(&String::from_utf8_lossy(&stat))?))
    };
    entries.flatten().filter_map(one).collect()
}

/// `PID (NAME) STATE PARENT ...`; the name may hold anything.
fn parse(stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    Some(Process {
        parent: rest.split_whitespace().nth(1)?.parse().ok()?,
        launcher: LAUNCHERS.contains(&name),
    })
}

/// This process and those that it comes from: a job inside a rank shares that rank's processors.
fn ancestors(all: &HashMap<u32, Process>) -> Vec<u32> {
    let mut line = vec![std::process::id()];
    while let Some(p) = line.last().and_then(|pid| all.get(pid)) {
        if line.contains(&p.parent) {
            break;
        }
        line.push(p.parent);
    }
    line
}

fn mask(pid: u32) -> Vec<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let list = lines.find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    list.map_or(Vec::new(), |l| numbers(l.trim()))
}

/// `0-3,8`: what it names.
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        assert_eq!(numbers("0-2,7"), [0, 1, 2, 7]);
        assert_eq!(numbers(""), Vec::<usize>::new());
        let p = parse("12 (mpiexec) S 7 12 12 0").unwrap();
        assert!(p.launcher && p.parent == 7);
        assert!(!parse("12 (a) (mpiexec b) S 7 12").unwrap().launcher);
        assert!(!mask(std::process::id()).is_empty());
        let all = processes();
        assert!(ancestors(&all).len() > 1);
    }

    #[test]
    fn only_one_has_the_turn() {
        let mine = try_turn();
        assert!(mine.is_err() || matches!(try_turn(), Err(Errno::ADDRINUSE)));
    }
}
