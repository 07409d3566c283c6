//! Findings about invented machines.

use super::*;
use kw_sys::netif::Interface;
use std::path::PathBuf;

/// A machine that lacks nothing.
fn sound() -> Facts {
    let interface = |name: &str, addr: [u8; 4]| Interface {
        name: name.into(),
        addr: addr.into(),
        loopback: name == "lo",
    };
    Facts {
        host: "kestrel".into(),
        system: "Debian GNU/Linux 12 (bookworm)".into(),
        kernel: "Linux 6.1 x86_64".into(),
        libc: "glibc 2.36".into(),
        libc_has_all: true,
        processor: "a processor".into(),
        allowed: Some(4),
        quota: None,
        governor: Some("performance".into()),
        memory: 8 << 30,
        segment: Ok(()),
        most_of_file: u64::MAX,
        most_of_addresses: u64::MAX,
        copying: Copying::Works,
        ptrace_scope: Some(0),
        filtered: false,
        files: (Some(1024), Some(1 << 20)),
        processes: None,
        tasks: None,
        locked: Some(8 << 20),
        watch: true,
        fence: true,
        clock: "tsc".into(),
        counter: true,
        clock_price: 25,
        huge_pages: Policy::Madvise,
        interfaces: vec![
            interface("lo", [127, 0, 0, 1]),
            interface("none0", [10, 0, 0, 7]),
        ],
        resolved: Resolved::To(vec![[10, 0, 0, 7].into()]),
        launchers: vec!["srun".into()],
        commands: COMMANDS
            .map(|(name, ..)| (name, Some(PathBuf::from("/usr/bin").join(name))))
            .to_vec(),
        home: Some("/opt/kittiwake".into()),
        missing: Vec::new(),
        before: Vec::new(),
        other_library: None,
        variables: Vec::new(),
        figures: Ok((
            "/home/ann/.cache/kittiwake/calibration-kestrel".into(),
            true,
        )),
    }
}

/// The findings other than ok about a sound machine with one change.
fn findings(change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = sound();
    change(&mut facts);
    let all = super::all(&facts).into_iter();
    all.filter(|f| f.grade != Grade::Ok).collect()
}

/// The only finding that such a change leads to; it must have this matter and grade, and contain
/// these words.
fn one(what: &str, grade: Grade, words: &[&str], change: impl FnOnce(&mut Facts)) {
    let found = findings(change);
    let [f] = &found[..] else {
        panic!("one finding of {what}: {found:?}");
    };
    assert_eq!((f.what.as_str(), f.grade), (what, grade), "{f:?}");
    for word in words {
        assert!(f.text.contains(word), "'{word}' in {f:?}");
    }
    // the cost comes before the remedy
    assert!(f.text.contains([';', ',']), "{f:?}");
}

#[test]
fn a_sound_machine_has_nothing_to_report() {
    assert_eq!(findings(|_| {}), []);
}

#[test]
fn every_matter_has_a_finding_of_its_own() {
    let mut names: Vec<String> = super::all(&sound()).into_iter().map(|f| f.what).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn the_heading_says_which_machine() {
    let text = heading(&sound());
    for word in ["kestrel", "bookworm", "6.1", "glibc 2.36", "8192 MB"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn an_installation_that_lacks_a_file_is_a_fault() {
    one(
        "installation",
        Grade::Fault,
        &["/opt/kittiwake", "include/mpi.h"],
        |f| {
            f.missing = vec!["include/mpi.h".into()];
        },
    );
    one("installation", Grade::Note, &["/proc"], |f| f.home = None);
}

#[test]
fn another_mpi_that_comes_first_is_named() {
    one(
        "commands on PATH",
        Grade::Note,
        &["/usr/bin/mpiexec", "/opt/kittiwake/bin"],
        |f| {
            f.before = vec!["/usr/bin/mpiexec".into()];
        },
    );
    one(
        "other libraries",
        Grade::Note,
        &["/opt/mpich/lib/libmpi_abi.so.1"],
        |f| {
            f.other_library = Some("/opt/mpich/lib/libmpi_abi.so.1".into());
        },
    );
}

#[test]
fn an_unknown_variable_is_a_fault() {
    one("KW_ variables", Grade::Fault, &["KW_SPIM", "unset"], |f| {
        f.variables = vec!["KW_SPIM is not a setting (ignored)".into()];
    });
}

#[test]
fn a_quota_counts_only_below_the_processors() {
    assert_eq!(findings(|f| f.quota = Some(4.0)), []);
    one("CPUs", Grade::Note, &["1.50", "on 4", "cpu.max"], |f| {
        f.quota = Some(1.5)
    });
    one("CPUs", Grade::Note, &["sched_getaffinity"], |f| {
        f.allowed = None
    });
}

#[test]
fn limits_of_memory_are_distinguished() {
    one(
        "memory",
        Grade::Note,
        &["512 MB of addresses", "ulimit -v"],
        |f| f.most_of_addresses = 512 << 20,
    );
    one("shared memory", Grade::Note, &["1 MB", "ulimit -f"], |f| {
        f.most_of_file = 1 << 20
    });
    one(
        "shared memory",
        Grade::Fault,
        &["not permitted", "KW_PATHS"],
        |f| {
            f.segment = Err("Operation not permitted".into());
        },
    );
}

#[test]
fn who_forbids_single_copies_is_named() {
    let refused = || Copying::Refused("Operation not permitted".into());
    one(
        "single copy",
        Grade::Note,
        &["ptrace_scope is 1", "twice"],
        |f| {
            f.copying = refused();
            f.ptrace_scope = Some(1);
        },
    );
    one("single copy", Grade::Note, &["SYS_PTRACE", "twice"], |f| {
        f.copying = refused()
    });
    one("single copy", Grade::Note, &["not tried"], |f| {
        f.copying = Copying::Untried("no second process".into());
    });
}

#[test]
fn few_files_and_few_processes_count_by_the_ranks_they_leave_room_for() {
    one(
        "open files",
        Grade::Note,
        &["at most 64", "ulimit -Hn"],
        |f| f.files = (Some(64), Some(64)),
    );
    assert_eq!(findings(|f| f.files = (Some(64), None)), []);
    one(
        "processes",
        Grade::Note,
        &["no more than 25 ranks", "ulimit -u"],
        |f| {
            f.processes = Some(50);
            f.tasks = Some(60);
        },
    );
    one(
        "processes",
        Grade::Note,
        &["no more than 20 ranks", "pids.max"],
        |f| f.tasks = Some(40),
    );
    assert_eq!(findings(|f| f.tasks = Some(4096)), []);
}

#[test]
fn an_older_c_library_lacks_features() {
    one(
        "C library",
        Grade::Note,
        &["glibc 2.31", "KW_HUGE_PAGES"],
        |f| (f.libc, f.libc_has_all) = ("glibc 2.31".into(), false),
    );
}

#[test]
fn a_kernel_that_lacks_a_call_costs() {
    one("death of ranks", Grade::Note, &["pidfd_open"], |f| {
        f.watch = false
    });
    one("membarrier", Grade::Note, &["membarrier"], |f| {
        f.fence = false
    });
    one("huge pages", Grade::Note, &["madvise"], |f| {
        f.huge_pages = Policy::Never
    });
}

#[test]
fn a_clock_is_slow_only_without_a_counter() {
    assert_eq!(findings(|f| f.clock_price = 900), []);
    one("clock", Grade::Note, &["hpet", "900 ns"], |f| {
        (f.clock, f.clock_price, f.counter) = ("hpet".into(), 900, false);
    });
    one("CPU speed", Grade::Note, &["powersave"], |f| {
        f.governor = Some("powersave".into())
    });
}

#[test]
fn a_host_without_network_or_name_is_warned_what_that_costs() {
    one("interfaces", Grade::Note, &["other hosts"], |f| {
        f.interfaces.truncate(1)
    });
    one("interfaces", Grade::Note, &["other hosts"], |f| {
        f.interfaces[1].addr = [169, 254, 0, 7].into()
    });
    one(
        "host name",
        Grade::Note,
        &["'kestrel'", "/etc/hosts"],
        |f| f.resolved = Resolved::Silent,
    );
    one("host name", Grade::Note, &["Name or service"], |f| {
        f.resolved = Resolved::No("Name or service not known".into());
    });
    one("host name", Grade::Note, &["no address"], |f| {
        f.resolved = Resolved::To(Vec::new())
    });
}

#[test]
fn a_missing_command_is_missed_by_who_calls_it() {
    for (at, (name, costs, _)) in COMMANDS.iter().enumerate() {
        one(name, Grade::Note, &[costs, "install"], |f| {
            f.commands[at].1 = None
        });
    }
}

#[test]
fn figures_that_cannot_be_kept_are_reported() {
    one("calibration", Grade::Note, &["XDG_CACHE_HOME"], |f| {
        f.figures = Err("neither XDG_CACHE_HOME nor HOME names a directory".into());
    });
}
