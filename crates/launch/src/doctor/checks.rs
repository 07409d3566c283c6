//! What follows from the facts of a machine: one finding for each matter. Pure; tests lie about the
//! facts.

use std::path::Path;

use kw_sys::huge_pages::Policy;

use super::Finding;
use super::facts::{Copying, Facts, Resolved};
use crate::ranks::RANK_FILES;

/// Threads of a rank: the program's own, and the event thread.
const RANK_THREADS: u64 = 2;
/// Ranks for each processor that a machine should have room for: oversubscribed jobs are usual.
const RANKS_PER_PROCESSOR: u64 = 16;
/// Bytes of shared memory below which only jobs of a few ranks have room.
const LEAST_OF_FILE: u64 = 64 << 20;
/// Nanoseconds above which a reading of the clock is a system call.
const SLOW_CLOCK: u64 = 150;
/// Bytes of a packet of ordinary Ethernet.
const ETHERNET: usize = 1500;

/// The findings, in the order that they are printed.
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

/// The lines above the findings: what machine that is.
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
            "this program does not know its own file (is /proc mounted?): programs of MPICH's and Open MPI's ABI \
             do not find their libraries by themselves; mount /proc, or set LD_LIBRARY_PATH",
        ),
        Some(home) if f.missing.is_empty() => Finding::ok(what, shown(home)),
        Some(home) => Finding::fault(
            what,
            format!(
                "{} lacks {}; install Kittiwake anew",
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
                "{}: without glibc 2.35, programs of MPICH and Open MPI that look for their MPI by a path of their own are \
                 refused (docs/binaries.md), and KW_HUGE_PAGES does nothing",
                f.libc
            ),
        ),
    }
}

fn path(f: &Facts) -> Finding {
    let what = "commands on PATH";
    let Some(home) = &f.home else {
        return Finding::ok(what, "not compared with the installation");
    };
    if f.before.is_empty() {
        return Finding::ok(what, "no other MPI's mpiexec or mpicc comes before these");
    }
    let found: Vec<String> = f.before.iter().map(|p| shown(p)).collect();
    Finding::note(
        what,
        format!(
            "{} of another MPI or installation come first: its mpiexec may start a program of Kittiwake as so many \
             jobs of one rank, and its mpicc compiles for another library; put {}/bin first in PATH",
            list(&found),
            home.display()
        ),
    )
}

fn library(f: &Facts) -> Finding {
    let what = "other libraries";
    match &f.other_library {
        None => Finding::ok(what, "LD_LIBRARY_PATH leads to no other libmpi_abi.so.1"),
        Some(other) => Finding::note(
            what,
            format!(
                "LD_LIBRARY_PATH leads to {}: programs of the standard ABI that were linked without a path run on that \
                 library; take its directory out of LD_LIBRARY_PATH",
                other.display()
            ),
        ),
    }
}

fn variables(f: &Facts) -> Finding {
    let what = "KW_ variables";
    match &f.variables[..] {
        [] => Finding::ok(what, "all are knobs, and hold values of theirs"),
        faults => Finding::fault(what, format!("{}; correct or unset", faults.join("; "))),
    }
}

fn processors(f: &Facts) -> Finding {
    let what = "processors";
    let Some(allowed) = f.allowed else {
        return Finding::note(
            what,
            "the system does not say which may be used (a sandbox?): ranks are not bound, and may wander between \
             processors; allow sched_getaffinity",
        );
    };
    match f.quota {
        Some(quota) if quota < allowed as f64 => Finding::note(
            what,
            format!(
                "a control group allows {quota:.2} processors' worth of time on {allowed} processors: with more ranks \
                 none is bound, and all stand still when the quota of a period is used up; give the group more \
                 (cpu.max; docker run --cpus) or start no more ranks than that"
            ),
        ),
        _ => Finding::ok(what, format!("{allowed}, without a quota below that")),
    }
}

fn speed(f: &Facts) -> Finding {
    let what = "processor speed";
    match f.governor.as_deref() {
        Some("powersave" | "conservative") => Finding::note(
            what,
            format!(
                "the governor is {}: processors may take milliseconds to become fast after a rank has waited; as root: \
                 cpupower frequency-set -g performance",
                f.governor.as_deref().unwrap_or_default()
            ),
        ),
        Some(other) => Finding::ok(what, format!("governor {other}")),
        None => Finding::ok(what, "not for this system to choose"),
    }
}

fn memory(f: &Facts) -> Finding {
    let (what, mb) = ("memory", f.memory >> 20);
    match f.most_of_addresses {
        u64::MAX => Finding::ok(
            what,
            format!("{mb} MB may be used, addresses without a limit"),
        ),
        most => Finding::note(
            what,
            format!(
                "{mb} MB may be used, but a process may have only {} MB of addresses: segments are made smaller, and \
                 long jobs may run out; ulimit -v unlimited",
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
                "no memfd could be made and mapped ({why}): ranks of one host cannot share memory; allow memfd_create \
                 and mmap (a filter of a container?), or say KW_PATHS=self,tcp"
            ),
        ),
        (Ok(()), most) if most < LEAST_OF_FILE => Finding::note(
            what,
            format!(
                "files may have {} MB only, and shared memory counts as a file: jobs of more ranks than fit are \
                 refused; ulimit -f unlimited",
                most >> 20
            ),
        ),
        (Ok(()), _) => Finding::ok(what, "memfd works; nothing of /dev/shm is used"),
    }
}

fn copying(f: &Facts) -> Finding {
    let what = "single copy";
    let costs = "long messages between ranks of this host are copied twice, through shared memory";
    let scope = match f.ptrace_scope {
        Some(scope @ 1..) => format!(
            " (kernel.yama.ptrace_scope is {scope}; as root: sysctl kernel.yama.ptrace_scope=0)"
        ),
        _ => " (a container's filter? docker run --cap-add SYS_PTRACE, or --security-opt seccomp=unconfined)".into(),
    };
    match &f.copying {
        Copying::Works => Finding::ok(
            what,
            "one process reads the memory of another (process_vm_readv)",
        ),
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
            format!("up to {most}: mpiexec starts {ranks} ranks here by itself"),
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
                "at most {most}, threads included: no more than {ranks} ranks start, each with its event thread; raise \
                 the limit ({by})"
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
        format!("{most}; Kittiwake locks none, so this counts for programs with mlock only"),
    )
}

fn watch(f: &Facts) -> Finding {
    let what = "ends of ranks";
    match f.watch {
        true => Finding::ok(what, "noticed at once (pidfd)"),
        false => Finding::note(
            what,
            "processes cannot watch each other (no /proc, or no pidfd_open: Linux before 5.3, a filter): a rank that \
             waits for one that was killed is told by the launcher only; mount /proc, allow pidfd_open",
        ),
    }
}

fn fence(f: &Facts) -> Finding {
    let what = "cheap wake-ups";
    match f.fence {
        true => Finding::ok(what, "the kernel fences other processes (membarrier)"),
        false => Finding::note(
            what,
            "no membarrier (Linux before 4.16, a filter): every message through shared memory executes a fence; allow \
             membarrier",
        ),
    }
}

fn filter(f: &Facts) -> Finding {
    let what = "filter of calls";
    match f.filtered {
        false => Finding::ok(what, "none (seccomp)"),
        true => Finding::ok(
            what,
            "one is on (seccomp), as containers have it; what it refuses stands here",
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
        false => Finding::ok(what, format!("{source}, {} ns a reading", f.clock_price)),
        true => Finding::note(
            what,
            format!(
                "{source}, {} ns a reading: each is a system call, and every wait reads it; have the kernel keep time \
                 by the processor's counter (boot with tsc=reliable, or choose another clock source of the virtual \
                 machine)",
                f.clock_price
            ),
        ),
    }
}

fn huge_pages(f: &Facts) -> Finding {
    let what = "huge pages";
    match f.huge_pages {
        Policy::Everybody => Finding::ok(what, "for everybody"),
        Policy::WhoAsks => Finding::ok(what, "for who asks; KW_HUGE_PAGES=yes has ranks ask"),
        Policy::Nobody => Finding::note(
            what,
            "none: KW_HUGE_PAGES does nothing, and some programs that go through much memory take longer \
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
            Some(mtu) if mtu != ETHERNET => format!("{} {} (packets of {mtu})", i.name, i.addr),
            _ => format!("{} {}", i.name, i.addr),
        })
        .collect();
    match usable.is_empty() {
        false => Finding::ok(what, format!("{}; KW_INTERFACES chooses", list(&usable))),
        true => Finding::note(
            what,
            "none but loopback has an address: no job reaches other hosts; jobs on this one need none",
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
    let what = "name of this host";
    let host = &f.host;
    match &f.resolved {
        Resolved::To(all) if !all.is_empty() => {
            Finding::ok(what, format!("{host} is {}", list(all)))
        }
        Resolved::To(_) => unresolved(host, "the resolver knows no address"),
        Resolved::No(why) => unresolved(host, why),
        Resolved::Silent => Finding::note(
            what,
            format!(
                "the resolver has not answered for '{host}': ssh and rendezvous wait for it at every start; correct \
                 /etc/resolv.conf, or write the name into /etc/hosts"
            ),
        ),
    }
}

fn unresolved(host: &str, why: &str) -> Finding {
    Finding::note(
        "name of this host",
        format!(
            "'{host}' is not resolved ({why}): jobs here need no name, but other hosts that are told this one do not \
             find it; write it into /etc/hosts or the site's DNS"
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
                "{}; all can start programs of Kittiwake (docs/launchers.md)",
                list(&f.launchers)
            ),
        ),
    }
}

/// A command of others: its name, who misses it where it is not there, what to install.
const COMMANDS: [(&str, &str, &str); 5] = [
    (
        "cc",
        "mpicc compiles nothing",
        "a C compiler (Debian: gcc and libc6-dev), or name one in KW_CC",
    ),
    (
        "c++",
        "mpicxx compiles nothing",
        "a C++ compiler (Debian: g++), or name one in KW_CXX",
    ),
    (
        "gfortran",
        "mpifort compiles nothing",
        "gfortran, or name another compiler in KW_FC",
    ),
    (
        "ssh",
        "mpiexec reaches no other host",
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
                "not on PATH: {costs}; compiled programs run on this host without it; install {remedy}"
            ),
        ),
    }
}

fn figures(f: &Facts) -> Finding {
    let what = "figures of host";
    match &f.figures {
        Ok((path, true)) => Finding::ok(what, format!("measured, in {}", path.display())),
        Ok((path, false)) => Finding::ok(
            what,
            format!(
                "not measured yet: a job of five seconds or kwinfo --calibrate does that, and keeps them in {}",
                path.display()
            ),
        ),
        Err(why) => Finding::note(
            what,
            format!(
                "cannot be kept ({why}): jobs choose their algorithms by starting values; name a directory in \
                 XDG_CACHE_HOME"
            ),
        ),
    }
}

#[cfg(test)]
mod tests;
