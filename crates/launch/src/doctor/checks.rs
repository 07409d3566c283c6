//! Findings from the facts of a machine, one for each matter. Pure, so tests can make up the facts.

use std::path::Path;

use kw_sys::huge_pages::Policy;

use super::Finding;
use super::facts::{Copying, Facts, Resolved};
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

/// The findings, in the order in which they are printed.
pub fn all(facts: &Facts) -> Vec<Finding> {
    let one = [
        installation,
        path,
        library,
        variables,
        c_library,
        processors,
        speed,
        memory,
        segment,
        copying,
        files,
        threads,
        locked,
        watch,
        fence,
        filter,
        clock,
        huge_pages,
        interfaces,
        name,
        launchers,
    ];
    let mut findings: Vec<Finding> = one.iter().map(|check| check(facts)).collect();
    findings.extend(COMMANDS.iter().map(|row| command(facts, row)));
    findings.push(figures(facts));
    findings
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

fn installation(f: &Facts) -> Finding {
    let what = "installation";
    match &f.home {
        None => Finding::note(
            what,
            "the path of this program is unknown (is /proc mounted?): mpiexec cannot set the library path for programs \
             compiled for MPICH or Open MPI; mount /proc, or set LD_LIBRARY_PATH",
        ),
        Some(home) if f.missing.is_empty() => Finding::ok(what, shown(home)),
        Some(home) => Finding::fault(
            what,
            format!(
                "{} lacks {}; reinstall Kittiwake",
                home.display(),
                list(&f.missing)
            ),
        ),
    }
}

fn c_library(f: &Facts) -> Finding {
    let what = "C library";
    match f.libc_has_all {
        true => Finding::ok(what, &f.libc),
        false => Finding::note(
            what,
            format!(
                "{}, but glibc 2.35 is needed to run programs with a built-in path to MPICH or Open MPI \
                 (docs/programs.md) and for KW_HUGE_PAGES",
                f.libc
            ),
        ),
    }
}

fn path(f: &Facts) -> Finding {
    let what = "commands on PATH";
    let Some(home) = &f.home else {
        return Finding::ok(what, "not checked: the installation is unknown");
    };
    if f.before.is_empty() {
        return Finding::ok(
            what,
            "no mpiexec or mpicc of another MPI precedes Kittiwake's",
        );
    }
    let found: Vec<String> = f.before.iter().map(|p| shown(p)).collect();
    Finding::note(
        what,
        format!(
            "{} of another MPI or installation precede Kittiwake's: its mpiexec may start N independent single-rank jobs, \
             and its mpicc compiles for another library; put {}/bin first in PATH",
            list(&found),
            home.display()
        ),
    )
}

fn library(f: &Facts) -> Finding {
    let what = "other libraries";
    match &f.other_library {
        None => Finding::ok(what, "no other libmpi_abi.so.1 on LD_LIBRARY_PATH"),
        Some(other) => Finding::note(
            what,
            format!(
                "LD_LIBRARY_PATH contains {}: programs of the standard ABI that were linked without an rpath use that \
                 library; remove its directory from LD_LIBRARY_PATH",
                other.display()
            ),
        ),
    }
}

fn variables(f: &Facts) -> Finding {
    let what = "KW_ variables";
    match &f.variables[..] {
        [] => Finding::ok(what, "all names and values are valid"),
        faults => Finding::fault(what, format!("{}; correct or unset", faults.join("; "))),
    }
}

fn processors(f: &Facts) -> Finding {
    let what = "CPUs";
    let Some(allowed) = f.allowed else {
        return Finding::note(
            what,
            "the CPUs that may be used are unknown (a sandbox?): ranks are not bound and may migrate; allow \
             sched_getaffinity",
        );
    };
    match f.quota {
        Some(quota) if quota < allowed as f64 => Finding::note(
            what,
            format!(
                "the cgroup's quota is {quota:.2} CPUs, on {allowed} CPUs: if ranks exceed the quota, none is bound, and all are \
                 stopped when the quota of a period is used up; raise it (cpu.max; docker run --cpus) or start fewer \
                 ranks"
            ),
        ),
        _ => Finding::ok(what, format!("{allowed}, no quota below that")),
    }
}

fn speed(f: &Facts) -> Finding {
    let what = "CPU speed";
    match f.governor.as_deref() {
        Some("powersave" | "conservative") => Finding::note(
            what,
            format!(
                "the governor is {}: after a wait a CPU may take milliseconds to reach full speed; as root: cpupower \
                 frequency-set -g performance",
                f.governor.as_deref().unwrap_or_default()
            ),
        ),
        Some(other) => Finding::ok(what, format!("governor {other}")),
        None => Finding::ok(what, "not controlled by this system"),
    }
}

fn memory(f: &Facts) -> Finding {
    let (what, mb) = ("memory", f.memory >> 20);
    match f.most_of_addresses {
        u64::MAX => Finding::ok(what, format!("{mb} MB, no limit of address space")),
        most => Finding::note(
            what,
            format!(
                "{mb} MB, but a process is limited to {} MB of addresses: shared segments are smaller, and large jobs may \
                 run out of addresses; ulimit -v unlimited",
                most >> 20
            ),
        ),
    }
}

fn segment(f: &Facts) -> Finding {
    let what = "shared memory";
    match (&f.segment, f.most_of_file) {
        (Err(why), _) => Finding::fault(
            what,
            format!(
                "a memfd cannot be created and mapped ({why}): ranks of one host cannot share memory; allow memfd_create \
                 and mmap (a container's seccomp filter?), or set KW_PATHS=self,tcp"
            ),
        ),
        (Ok(()), most) if most < LEAST_OF_FILE => Finding::note(
            what,
            format!(
                "files are limited to {} MB, and shared memory is a file: jobs with more ranks than fit are refused; \
                 ulimit -f unlimited",
                most >> 20
            ),
        ),
        (Ok(()), _) => Finding::ok(what, "memfd works; /dev/shm is not used"),
    }
}

fn copying(f: &Facts) -> Finding {
    let what = "single copy";
    let costs = "long messages between ranks of this host are copied twice, through shared memory";
    let scope = match f.ptrace_scope {
        Some(scope @ 1..) => format!(
            " (kernel.yama.ptrace_scope is {scope}; as root: sysctl kernel.yama.ptrace_scope=0)"
        ),
        _ => " (a container's seccomp filter? docker run --cap-add SYS_PTRACE, or --security-opt seccomp=unconfined)".into(),
    };
    match &f.copying {
        Copying::Works => Finding::ok(what, "process_vm_readv works"),
        Copying::Refused(why) => Finding::note(
            what,
            format!("process_vm_readv is refused, {why}: {costs}; allow it{scope}"),
        ),
        Copying::Untried(why) => Finding::note(
            what,
            format!("not tried, {why}; where process_vm_readv is refused, {costs}"),
        ),
    }
}

/// How many ranks a machine should have room for.
fn usual_ranks(f: &Facts) -> u64 {
    RANKS_PER_PROCESSOR * f.allowed.unwrap_or(1) as u64
}

fn files(f: &Facts) -> Finding {
    let what = "open files";
    let Some(most) = f.files.1 else {
        return Finding::ok(what, "no limit");
    };
    let ranks = most / RANK_FILES as u64;
    match ranks < usual_ranks(f) {
        false => Finding::ok(
            what,
            format!("up to {most}: enough for {ranks} ranks on this host"),
        ),
        true => Finding::note(
            what,
            format!(
                "at most {most}: mpiexec needs a helper for each {ranks} ranks here, and ranks close and open \
                 connections more often; raise the hard limit (ulimit -Hn, /etc/security/limits.conf, docker run \
                 --ulimit nofile=65536)"
            ),
        ),
    }
}

fn threads(f: &Facts) -> Finding {
    let what = "processes";
    let tightest = [
        (f.processes, "ulimit -u"),
        (
            f.tasks,
            "pids.max of a control group; docker run --pids-limit",
        ),
    ];
    let tightest = tightest.into_iter().filter_map(|(n, by)| Some((n?, by)));
    let Some((most, by)) = tightest.min_by_key(|(n, _)| *n) else {
        return Finding::ok(what, "no limit");
    };
    let ranks = most / RANK_THREADS;
    match ranks < usual_ranks(f) {
        false => Finding::ok(what, format!("up to {most}, threads included")),
        true => Finding::note(
            what,
            format!(
                "at most {most}, threads included: no more than {ranks} ranks start, each with its progress thread; \
                 raise the limit ({by})"
            ),
        ),
    }
}

fn locked(f: &Facts) -> Finding {
    let most = match f.locked {
        None => "no limit".to_string(),
        Some(bytes) => format!("{} KB", bytes >> 10),
    };
    Finding::ok(
        "locked memory",
        format!(
            "{most}; Kittiwake locks no memory, so this matters only for programs that call mlock"
        ),
    )
}

fn watch(f: &Facts) -> Finding {
    let what = "death of ranks";
    match f.watch {
        true => Finding::ok(what, "noticed at once (pidfd)"),
        false => Finding::note(
            what,
            "ranks cannot watch each other (no /proc, or no pidfd_open: Linux before 5.3, or a filter): only the launcher \
             notices that a rank was killed; mount /proc, allow pidfd_open",
        ),
    }
}

fn fence(f: &Facts) -> Finding {
    let what = "membarrier";
    match f.fence {
        true => Finding::ok(
            what,
            "works: messages to a rank that is awake need no fence",
        ),
        false => Finding::note(
            what,
            "membarrier is refused (Linux before 4.16, or a filter): every message over shared memory executes a fence; \
             allow membarrier",
        ),
    }
}

fn filter(f: &Facts) -> Finding {
    let what = "seccomp filter";
    match f.filtered {
        false => Finding::ok(what, "none"),
        true => Finding::ok(
            what,
            "active, as in containers; what it refuses is listed here",
        ),
    }
}

fn clock(f: &Facts) -> Finding {
    let what = "clock";
    let source = match f.clock.as_str() {
        "" => "not named",
        named => named,
    };
    match f.clock_price > SLOW_CLOCK && !f.counter {
        false => Finding::ok(what, format!("{source}, {} ns per reading", f.clock_price)),
        true => Finding::note(
            what,
            format!(
                "{source}, {} ns per reading: each is a system call, and every wait reads the clock; make the kernel use \
                 the CPU's counter (boot with tsc=reliable, or choose another clock source for the virtual machine)",
                f.clock_price
            ),
        ),
    }
}

fn huge_pages(f: &Facts) -> Finding {
    let what = "huge pages";
    match f.huge_pages {
        Policy::Always => Finding::ok(what, "for all programs"),
        Policy::Madvise => Finding::ok(
            what,
            "on request (madvise); KW_HUGE_PAGES=yes requests them",
        ),
        Policy::Never => Finding::note(
            what,
            "none: KW_HUGE_PAGES has no effect, and some programs that touch much memory are slower \
             (docs/programs.md); as root: echo madvise >/sys/kernel/mm/transparent_hugepage/enabled",
        ),
    }
}

fn interfaces(f: &Facts) -> Finding {
    let what = "interfaces";
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
        false => Finding::ok(what, format!("{}; KW_INTERFACES selects", list(&usable))),
        true => Finding::note(
            what,
            "only loopback has an address: jobs cannot reach other hosts; jobs on this host are not affected",
        ),
    }
}

fn link_local(address: &std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(a) => a.is_link_local(),
        std::net::IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn name(f: &Facts) -> Finding {
    let what = "host name";
    let host = &f.host;
    match &f.resolved {
        Resolved::To(all) if !all.is_empty() => {
            Finding::ok(what, format!("{host} is {}", list(all)))
        }
        Resolved::To(_) => unresolved(host, "it has no address"),
        Resolved::No(why) => unresolved(host, why),
        Resolved::Silent => Finding::note(
            what,
            format!(
                "the resolver does not answer for '{host}': ssh and the rendezvous wait for it at every start; correct \
                 /etc/resolv.conf, or add the name to /etc/hosts"
            ),
        ),
    }
}

fn unresolved(host: &str, why: &str) -> Finding {
    Finding::note(
        "host name",
        format!(
            "'{host}' cannot be resolved ({why}): jobs on this host do not need the name, but other hosts cannot find this \
             one by it; add it to /etc/hosts or the site's DNS"
        ),
    )
}

fn launchers(f: &Facts) -> Finding {
    let what = "other launchers";
    match f.launchers.is_empty() {
        true => Finding::ok(what, "none on PATH; mpiexec needs none"),
        false => Finding::ok(
            what,
            format!(
                "{}; each can start Kittiwake programs (docs/launchers.md)",
                list(&f.launchers)
            ),
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

fn command(f: &Facts, (name, costs, remedy): &(&str, &str, &str)) -> Finding {
    let found = f.commands.iter().find(|(n, _)| n == name);
    match found.and_then(|(_, at)| at.as_ref()) {
        Some(at) => Finding::ok(name, shown(at)),
        None => Finding::note(
            name,
            format!(
                "not on PATH: {costs}; compiled programs run on this host nevertheless; install {remedy}"
            ),
        ),
    }
}

fn figures(f: &Facts) -> Finding {
    let what = "calibration";
    match &f.figures {
        Ok((path, true)) => Finding::ok(what, format!("measured, in {}", path.display())),
        Ok((path, false)) => Finding::ok(
            what,
            format!(
                "not measured yet: kwinfo --calibrate, or a job of 5 s, measures and saves it in {}",
                path.display()
            ),
        ),
        Err(why) => Finding::note(
            what,
            format!(
                "cannot be saved ({why}): jobs choose algorithms by built-in values; set XDG_CACHE_HOME to a writable \
                 directory"
            ),
        ),
    }
}

#[cfg(test)]
mod tests;
