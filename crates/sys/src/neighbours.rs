//! Other jobs on this machine: the CPUs that their ranks are bound to, and those that their
//! launchers have claimed for ranks that they will start, as the kernel reports them. Nothing is
//! written to a file, so nothing remains when a job is killed, and no process waits for another.

use std::collections::HashMap;

/// Names of launchers, on every host.
const LAUNCHERS: [&str; 2] = ["mpiexec", "mpirun"];

/// CPUs used or claimed by other jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The CPUs.
    pub cpus: Vec<usize>,
    /// The launcher that took them.
    pub by: Launcher,
    /// Whether they are claimed for ranks that may not have started yet (see
    /// [`crate::process::Guard::claim`]).
    pub claimed: bool,
    /// Whether the launcher is stopped.
    pub stopped: bool,
}

/// A launcher; the older one of two is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launcher {
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
    /// Its process id.
    pub pid: u32,
}

/// One process of the machine.
struct Process {
    parent: u32,
    launcher: bool,
    guard: bool,
    stopped: bool,
    start: u64,
    policy: u32,
}

/// CPUs taken by launchers other than this process and its ancestors. A rank that may use all CPUs
/// of its launcher counts as unbound.
pub fn taken() -> Vec<Taken> {
    let all = processes();
    let mine = ancestors(&all);
    let mut masks: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut taken = Vec::new();
    for (pid, process) in &all {
        let starter = process.parent;
        let Some(launcher) = all.get(&starter).filter(|p| p.launcher) else {
            continue;
        };
        if mine.contains(&starter) {
            continue;
        }
        let whole = masks.entry(starter).or_insert_with(|| mask(starter));
        let (own, claimed) = (mask(*pid), process.is_claim_of(launcher));
        if claimed || own.len() < whole.len() {
            taken.push(Taken {
                cpus: own,
                by: Launcher {
                    start: launcher.start,
                    pid: starter,
                },
                claimed,
                stopped: launcher.stopped,
            });
        }
    }
    taken
}

/// Lets this process run on the CPUs of the closest of its ancestors that are launchers: a rank
/// that is bound to some CPUs starts it, and it starts others.
pub fn run_where_our_launcher_may() {
    let mut pid = std::process::id();
    loop {
        let stat = crate::process::read_at_once(&format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some(process) = parse(&String::from_utf8_lossy(&stat)) else {
            return;
        };
        if process.launcher && pid != std::process::id() {
            // If that is refused it stays where it is.
            let _ = crate::process::run_on(&mask(pid));
            return;
        }
        if process.parent <= 1 {
            return;
        }
        pid = process.parent;
    }
}

/// Launchers that one of these processes has started: their process id, and that of the starter.
pub fn launchers_of(starters: &[u32]) -> Vec<(u32, u32)> {
    let all = processes();
    let of = |(pid, p): (&u32, &Process)| {
        (p.launcher && starters.contains(&p.parent)).then_some((*pid, p.parent))
    };
    let mut found: Vec<_> = all.iter().filter_map(of).collect();
    found.sort_unstable();
    found
}

/// This process and those with the same parent; none if the system does not list children (kernels
/// without CONFIG_PROC_CHILDREN).
pub(crate) fn siblings() -> Vec<u32> {
    let parent = rustix::process::getppid().map_or(0, |p| p.as_raw_nonzero().get());
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let children = |thread: std::fs::DirEntry| std::fs::read(thread.path().join("children")).ok();
    let lists: Vec<_> = threads.flatten().filter_map(children).collect();
    let pids = |list: &Vec<u8>| -> Vec<u32> {
        let list = String::from_utf8_lossy(list);
        list.split_whitespace().flat_map(str::parse).collect()
    };
    lists.iter().flat_map(pids).collect()
}

/// This process as a launcher.
pub fn this_launcher() -> Launcher {
    let stat = std::fs::read("/proc/self/stat").unwrap_or_default();
    let process = parse(&String::from_utf8_lossy(&stat));
    Launcher {
        start: process.map_or(0, |p| p.start),
        pid: std::process::id(),
    }
}

impl Process {
    /// Whether it is a guard that marks the CPUs that its launcher claims. A guard has its
    /// launcher's name until it gives itself one.
    fn is_claim_of(&self, launcher: &Process) -> bool {
        (self.guard || self.launcher) && self.policy != launcher.policy
    }
}

fn processes() -> HashMap<u32, Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return HashMap::new();
    };
    let one = |e: std::fs::DirEntry| {
        let pid: u32 = e.file_name().to_str()?.parse().ok()?;
        let stat = crate::process::read_at_once(&format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse(&String::from_utf8_lossy(&stat))?))
    };
    entries.flatten().filter_map(one).collect()
}

/// `PID (NAME) STATE PARENT ...`, see proc(5); the name may contain anything.
fn parse(stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The state is field 3.
    let field = |n: usize| fields.get(n - 3);
    let number = |n: usize| field(n).and_then(|f| f.parse().ok());
    Some(Process {
        parent: field(4)?.parse().ok()?,
        launcher: LAUNCHERS.contains(&name),
        guard: name == crate::process::GUARD,
        stopped: matches!(fields.first(), Some(&("T" | "t"))),
        start: number(22).unwrap_or(0),
        policy: number(41).unwrap_or(0) as u32,
    })
}

/// This process and its ancestors: a job inside a rank shares that rank's CPUs.
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
    let list = crate::process::status(pid, "Cpus_allowed_list");
    list.map_or(Vec::new(), |list| numbers(&list))
}

/// The numbers in a list such as `0-3,8`.
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
        assert!(p.launcher && p.parent == 7 && !p.stopped);
        assert!(parse("12 (mpiexec) T 7 12 12 0").unwrap().stopped);
        assert!(!parse("12 (a) (mpiexec b) S 7 12").unwrap().launcher);
        assert!(!mask(std::process::id()).is_empty());
        let all = processes();
        assert!(ancestors(&all).len() > 1);
    }

    #[test]
    fn a_guard_marks_the_processors_that_are_claimed() {
        let process = |pid: u32| {
            let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
            parse(&String::from_utf8_lossy(&stat)).unwrap()
        };
        let mut child = std::process::Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (pid, me) = (child.id(), std::process::id());
        let all = mask(me);
        let claims = || {
            let as_guard = Process {
                guard: true,
                ..process(pid)
            };
            as_guard.is_claim_of(&process(me)).then(|| mask(pid))
        };
        assert_eq!(claims(), None);
        for cpus in [&all[..1], &all[..]] {
            crate::process::mark_claim(pid, cpus);
            assert_eq!(claims().as_deref(), Some(cpus));
        }
        crate::process::mark_claim(pid, &[]);
        assert_eq!((claims(), mask(pid)), (None, all));
        drop(child.stdin.take());
        child.wait().unwrap();
        let this = this_launcher();
        assert!(this.pid == me && this.start > 0);
    }
}
