//! Findings from the facts of a machine, one for each matter. Pure, so tests can make up the facts.

use std::path::Path;

use kw_sys::huge_pages::Policy;

use super::facts::{Copying, Facts, Resolved};
use super::{Finding, Grade};
use crate::ranks::RANK_FILES;

/// Threads of a rank: the program's own, and the event thread.
const RANK_THREADS: u64 = 2;
/// Ranks per processor that a machine should have room for: oversubscribed jobs are usual.
const RANKS_PER_PROCESSOR: u64 = 16;
/// Bytes of shared memory below which only jobs of a few ranks have room.
const LEAST_OF_FILE: u64 = 64 << 20;
/// Nanoseconds above which a reading of the clock is a system call.
const SLOW_CLOCK: u64 = 150;
/// Bytes of a packet of ordinary Ethernet.
const ETHERNET: usize = 1500;

/// Grade and text of a finding.
type Found = (Grade, String);

/// All is well.
macro_rules! ok {
    ($($text:tt)+) => { (Grade::Ok, format!($($text)+)) };
}

/// Something costs time or is missing.
macro_rules! note {
    ($($text:tt)+) => { (Grade::Note, format!($($text)+)) };
}

/// Programs do not run.
macro_rules! fault {
    ($($text:tt)+) => { (Grade::Fault, format!($($text)+)) };
}

/// Matters and their checks, in the order in which they are printed.
const CHECKS: [(&str, fn(&Facts) -> Found); 21] = [
    ("installation", installation),
    ("commands on PATH", path),
    ("other libraries", library),
    ("KW_ variables", variables),
    ("C library", c_library),
    ("CPUs", processors),
    ("CPU speed", speed),
    ("memory", memory),
    ("shared memory", segment),
    ("single copy", copying),
    ("open files", files),
    ("processes", threads),
    ("locked memory", locked),
    ("death of ranks", watch),
    ("membarrier", fence),
    ("seccomp filter", filter),
    ("clock", clock),
    ("huge pages", huge_pages),
    ("interfaces", interfaces),
    ("host name", name),
    ("other launchers", launchers),
];

/// The findings, in the order in which they are printed.
pub fn all(facts: &Facts) -> Vec<Finding> {
    let found = CHECKS.iter().map(|(what, check)| (*what, check(facts)));
    let commands = COMMANDS.iter().map(|row| (row.0, command(facts, row)));
    let last = ("calibration", figures(facts));
    let all = found.chain(commands).chain([last]);
    all.map(|(what, (grade, text))| Finding::of(what, grade, text))
        .collect()
}

/// The lines above the findings, which describe the machine.
pub fn heading(f: &Facts) -> String {
    format!(
        "Kittiwake {} on {}: {}, {}, {}\n{}, {} MB of memory, program for {}",
        env!("CARGO_PKG_VERSION"),
        f.host,
        f.system,
        f.kernel,
        f.libc,
        f.processor,
        f.memory >> 20,
        std::env::consts::ARCH,
    )
}

fn list<T: std::fmt::Display>(all: &[T]) -> String {
    let words: Vec<String> = all.iter().map(T::to_string).collect();
    words.join(", ")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn installation(f: &Facts) -> Found {
    match &f.home {
        None => note!(
            "the path of this program is unknown (is /proc mounted?): mpiexec cannot set the library path for programs \
             compiled for MPICH or Open MPI; mount /proc, or set LD_LIBRARY_PATH"
        ),
        Some(home) if f.missing.is_empty() => ok!("{}", shown(home)),
        Some(home) => fault!(
            "{} lacks {}; reinstall Kittiwake",
            home.display(),
            list(&f.missing)
        ),
    }
}

fn c_library(f: &Facts) -> Found {
    match f.libc_has_all {
        true => ok!("{}", f.libc),
        false => note!(
            "{}, but glibc 2.35 is needed to run programs with a built-in path to MPICH or Open MPI \
             (docs/programs.md) and for KW_HUGE_PAGES",
            f.libc
        ),
    }
}

fn path(f: &Facts) -> Found {
    let Some(home) = &f.home else {
        return ok!("not checked: the installation is unknown");
    };
    if f.before.is_empty() {
        return ok!("no mpiexec or mpicc of another MPI precedes Kittiwake's");
    }
    let found: Vec<String> = f.before.iter().map(|p| shown(p)).collect();
    note!(
        "{} of another MPI or installation precede Kittiwake's: its mpiexec may start N independent single-rank jobs, \
         and its mpicc compiles for another library; put {}/bin first in PATH",
        list(&found),
        home.display()
    )
}

fn library(f: &Facts) -> Found {
    match &f.other_library {
        None => ok!("no other libmpi_abi.so.1 on LD_LIBRARY_PATH"),
        Some(other) => note!(
            "LD_LIBRARY_PATH contains {}: programs of the standard ABI that were linked without an rpath use that \
             library; remove its directory from LD_LIBRARY_PATH",
            other.display()
        ),
    }
}

fn variables(f: &Facts) -> Found {
    match &f.variables[..] {
        [] => ok!("all names and values are valid"),
        faults => fault!("{}; correct or unset", faults.join("; ")),
    }
}

fn processors(f: &Facts) -> Found {
    let Some(allowed) = f.allowed else {
        return note!(
            "the CPUs that may be used are unknown (a sandbox?): ranks are not bound and may migrate; allow \
             sched_getaffinity"
        );
    };
    match f.quota {
        Some(quota) if quota < allowed as f64 => note!(
            "the cgroup's quota is {quota:.2} CPUs, on {allowed} CPUs: if ranks exceed the quota, none is bound, and all are \
             stopped when the quota of a period is used up; raise it (cpu.max; docker run --cpus) or start fewer \
             ranks"
        ),
        _ => ok!("{allowed}, no quota below that"),
    }
}

fn speed(f: &Facts) -> Found {
    match f.governor.as_deref() {
        Some("powersave" | "conservative") => note!(
            "the governor is {}: after a wait a CPU may take milliseconds to reach full speed; as root: cpupower \
             frequency-set -g performance",
            f.governor.as_deref().unwrap_or_default()
        ),
        Some(other) => ok!("governor {other}"),
        None => ok!("not controlled by this system"),
    }
}

fn memory(f: &Facts) -> Found {
    let mb = f.memory >> 20;
    match f.most_of_addresses {
        u64::MAX => ok!("{mb} MB, no limit of address space"),
        most => note!(
            "{mb} MB, but a process is limited to {} MB of addresses: shared segments are smaller, and large jobs may \
             run out of addresses; ulimit -v unlimited",
            most >> 20
        ),
    }
}

fn segment(f: &Facts) -> Found {
    match (&f.segment, f.most_of_file) {
        (Err(why), _) => fault!(
            "a memfd cannot be created and mapped ({why}): ranks of one host cannot share memory; allow memfd_create \
             and mmap (a container's seccomp filter?), or set KW_PATHS=self,tcp"
        ),
        (Ok(()), most) if most < LEAST_OF_FILE => note!(
            "files are limited to {} MB, and shared memory is a file: jobs with more ranks than fit are refused; \
             ulimit -f unlimited",
            most >> 20
        ),
        (Ok(()), _) => ok!("memfd works; /dev/shm is not used"),
    }
}

fn copying(f: &Facts) -> Found {
    let costs = "long messages between ranks of this host are copied twice, through shared memory";
    let scope = match f.ptrace_scope {
        Some(scope @ 1..) => format!(
            " (kernel.yama.ptrace_scope is {scope}; as root: sysctl kernel.yama.ptrace_scope=0)"
        ),
        _ => " (a container's seccomp filter? docker run --cap-add SYS_PTRACE, or --security-opt seccomp=unconfined)".into(),
    };
    match &f.copying {
        Copying::Works => ok!("process_vm_readv works"),
        Copying::Refused(why) => {
            note!("process_vm_readv is refused, {why}: {costs}; allow it{scope}")
        }
        Copying::Untried(why) => {
            note!("not tried, {why}; where process_vm_readv is refused, {costs}")
        }
    }
}

/// How many ranks a machine should have room for.
fn usual_ranks(f: &Facts) -> u64 {
    RANKS_PER_PROCESSOR * f.allowed.unwrap_or(1) as u64
}

fn files(f: &Facts) -> Found {
    let Some(most) = f.files.1 else {
        return ok!("no limit");
    };
    let ranks = most / RANK_FILES as u64;
    match ranks < usual_ranks(f) {
        false => ok!("up to {most}: enough for {ranks} ranks on this host"),
        true => note!(
            "at most {most}: mpiexec needs a helper for each {ranks} ranks here, and ranks close and open \
             connections more often; raise the hard limit (ulimit -Hn, /etc/security/limits.conf, docker run \
             --ulimit nofile=65536)"
        ),
    }
}

fn threads(f: &Facts) -> Found {
    let tightest = [
        (f.processes, "ulimit -u"),
        (
            f.tasks,
            "pids.max of a control group; docker run --pids-limit",
        ),
    ];
    let tightest = tightest.into_iter().filter_map(|(n, by)| Some((n?, by)));
    let Some((most, by)) = tightest.min_by_key(|(n, _)| *n) else {
        return ok!("no limit");
    };
    let ranks = most / RANK_THREADS;
    match ranks < usual_ranks(f) {
        false => ok!("up to {most}, threads included"),
        true => note!(
            "at most {most}, threads included: no more than {ranks} ranks start, each with its progress thread; \
             raise the limit ({by})"
        ),
    }
}

fn locked(f: &Facts) -> Found {
    let most = match f.locked {
        None => "no limit".to_string(),
        Some(bytes) => format!("{} KB", bytes >> 10),
    };
    ok!("{most}; Kittiwake locks no memory, so this matters only for programs that call mlock")
}

fn watch(f: &Facts) -> Found {
    match f.watch {
        true => ok!("noticed at once (pidfd)"),
        false => note!(
            "ranks cannot watch each other (no /proc, or no pidfd_open: Linux before 5.3, or a filter): only the launcher \
             notices that a rank was killed; mount /proc, allow pidfd_open"
        ),
    }
}

fn fence(f: &Facts) -> Found {
    match f.fence {
        true => ok!("works: messages to a rank that is awake need no fence"),
        false => note!(
            "membarrier is refused (Linux before 4.16, or a filter): every message over shared memory executes a fence; \
             allow membarrier"
        ),
    }
}

fn filter(f: &Facts) -> Found {
    match f.filtered {
        false => ok!("none"),
        true => ok!("active, as in containers; what it refuses is listed here"),
    }
}

fn clock(f: &Facts) -> Found {
    let source = match f.clock.as_str() {
        "" => "not named",
        named => named,
    };
    match f.clock_price > SLOW_CLOCK && !f.counter {
        false => ok!("{source}, {} ns per reading", f.clock_price),
        true => note!(
            "{source}, {} ns per reading: each is a system call, and every wait reads the clock; make the kernel use \
             the CPU's counter (boot with tsc=reliable, or choose another clock source for the virtual machine)",
            f.clock_price
        ),
    }
}

fn huge_pages(f: &Facts) -> Found {
    match f.huge_pages {
        Policy::Always => ok!("for all programs"),
        Policy::Madvise => ok!("on request (madvise); KW_HUGE_PAGES=yes requests them"),
        Policy::Never => note!(
            "none: KW_HUGE_PAGES has no effect, and some programs that touch much memory are slower \
             (docs/programs.md); as root: echo madvise >/sys/kernel/mm/transparent_hugepage/enabled"
        ),
    }
}

fn interfaces(f: &Facts) -> Found {
    let usable: Vec<String> = f
        .interfaces
        .iter()
        .filter(|i| !i.loopback && !link_local(&i.addr))
        .map(|i| match kw_sys::netif::mtu(&i.name) {
            Some(mtu) if mtu != ETHERNET => format!("{} {} (MTU {mtu})", i.name, i.addr),
            _ => format!("{} {}", i.name, i.addr),
        })
        .collect();
    match usable.is_empty() {
        false => ok!("{}; KW_INTERFACES selects", list(&usable)),
        true => note!(
            "only loopback has an address: jobs cannot reach other hosts; jobs on this host are not affected"
        ),
    }
}

fn link_local(address: &std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(a) => a.is_link_local(),
        std::net::IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn name(f: &Facts) -> Found {
    let host = &f.host;
    match &f.resolved {
        Resolved::To(all) if !all.is_empty() => {
            ok!("{host} is {}", list(all))
        }
        Resolved::To(_) => unresolved(host, "it has no address"),
        Resolved::No(why) => unresolved(host, why),
        Resolved::Silent => note!(
            "the resolver does not answer for '{host}': ssh and the rendezvous wait for it at every start; correct \
             /etc/resolv.conf, or add the name to /etc/hosts"
        ),
    }
}

fn unresolved(host: &str, why: &str) -> Found {
    note!(
        "'{host}' cannot be resolved ({why}): jobs on this host do not need the name, but other hosts cannot find this \
         one by it; add it to /etc/hosts or the site's DNS"
    )
}

fn launchers(f: &Facts) -> Found {
    match f.launchers.is_empty() {
        true => ok!("none on PATH; mpiexec needs none"),
        false => ok!(
            "{}; each can start Kittiwake programs (docs/launchers.md)",
            list(&f.launchers)
        ),
    }
}

/// A command that is not part of Kittiwake: its name, what does not work without it, what to install.
const COMMANDS: [(&str, &str, &str); 5] = [
    (
        "cc",
        "mpicc does not work",
        "a C compiler (Debian: gcc and libc6-dev), or name one in KW_CC",
    ),
    (
        "c++",
        "mpicxx does not work",
        "a C++ compiler (Debian: g++), or name one in KW_CXX",
    ),
    (
        "gfortran",
        "mpifort does not work",
        "gfortran, or name another compiler in KW_FC",
    ),
    (
        "ssh",
        "mpiexec cannot start ranks on other hosts",
        "ssh (Debian: openssh-client), or name another command in KW_SSH",
    ),
    ("gdb", "mpiexec --debug does not work", "gdb"),
];

fn command(f: &Facts, (name, costs, remedy): &(&str, &str, &str)) -> Found {
    let found = f.commands.iter().find(|(n, _)| n == name);
    match found.and_then(|(_, at)| at.as_ref()) {
        Some(at) => ok!("{}", shown(at)),
        None => note!(
            "not on PATH: {costs}; compiled programs run on this host nevertheless; install {remedy}"
        ),
    }
}

fn figures(f: &Facts) -> Found {
    match &f.figures {
        Ok((path, true)) => ok!("measured, in {}", path.display()),
        Ok((path, false)) => ok!(
            "not measured yet: kwinfo --calibrate, or a job of 5 s, measures and saves it in {}",
            path.display()
        ),
        Err(why) => note!(
            "cannot be saved ({why}): jobs choose algorithms by built-in values; set XDG_CACHE_HOME to a writable \
             directory"
        ),
    }
}

#[cfg(test)]
mod tests;
