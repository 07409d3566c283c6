//! Options of other launchers that mpiexec does not have: those that mean the same as one of
//! mpiexec's own, those without a meaning here, and those for which mpiexec says what to write
//! instead. `docs/launchers.md` has a table of them, which a test reads.

/// Meaning of another launcher's option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The same as these words; `{}` is its value.
    Same(&'static [&'static str]),
    /// Without effect; it has this many values. The user is told.
    Nothing(usize),
    /// Not supported: the user is told what to write.
    Instead(&'static str),
}

use Foreign::{Instead, Nothing, Same};

/// Names without their leading hyphens: one or two hyphens are accepted.
const ALL: &[(&[&str], Foreign)] = &[
    (&["pernode"], Same(&["-ppn", "1"])),
    (&["npernode", "ntasks-per-node"], Same(&["-ppn", "{}"])),
    (&["ntasks"], Same(&["-n", "{}"])),
    (&["nodelist"], Same(&["--hosts", "{}"])),
    (&["chdir"], Same(&["-wdir", "{}"])),
    (&["bynode", "rr"], Same(&["--map-by", "node"])),
    (&["byslot"], Same(&["--map-by", "slot"])),
    (&["bycore"], Same(&["--map-by", "core"])),
    (&["bysocket"], Same(&["--map-by", "socket"])),
    (&["bind-to-core"], Same(&["--bind", "core"])),
    (&["bind-to-socket"], Same(&["--bind", "socket"])),
    (&["bind-to-none"], Same(&["--bind", "none"])),
    (
        &["cpus-per-rank", "cpus-per-proc", "cpus-per-task"],
        Same(&["--map-by", ":PE={}"]),
    ),
    (
        &["report-bindings", "display-map", "display-devel-map"],
        Same(&["--map"]),
    ),
    (&["mca", "gmca", "prtemca", "pmixmca"], Nothing(2)),
    (
        &[
            "iface",
            "rmk",
            "bootstrap",
            "launcher",
            "demux",
            "ranks-per-proc",
            "usize",
            "tune",
            "am",
            "personality",
            "mpi",
            "display",
        ],
        Nothing(1),
    ),
    (
        &[
            "nooversubscribe",
            "use-hwthread-cpus",
            "timestamp-output",
            "merge-stderr-to-stdout",
            "enable-recovery",
            "quiet",
            "q",
            "print-all-exitcodes",
            "display-allocation",
            "report-state-on-timeout",
            "get-stack-traces",
            "exclusive",
        ],
        Nothing(0),
    ),
    (
        &["rankfile", "rf"],
        Instead(
            "--bind none --wrap '0:taskset -c 0-3' --wrap '1:taskset -c 4-7' for single processors, --hosts with --map-by for hosts",
        ),
    ),
    (
        &["app", "configfile"],
        Instead("the programs on the command line, with ' : ' between them"),
    ),
    (
        &[
            "output-filename",
            "output",
            "outfile-pattern",
            "errfile-pattern",
        ],
        Instead(
            "sh -c 'exec PROGRAM >out.$PMI_RANK 2>&1' in place of PROGRAM, or --label to tell lines apart",
        ),
    ),
    (
        &["cpu-set", "cpu-list"],
        Instead("taskset -c LIST mpiexec ..."),
    ),
    (&["nolocal"], Instead("the other hosts in --hosts")),
    (&["xterm"], Instead("--wrap 'RANKS:xterm -e'")),
    (&["gdb", "tv", "debugger"], Instead("--debug RANK")),
    (
        &["s", "stdin"],
        Instead("nothing: standard input goes to rank 0, or to that of --debug RANK"),
    ),
    (
        &["envlist", "genvlist", "export"],
        Instead("-envnone -x NAME -x NAME; without -envnone all variables are passed on"),
    ),
    (
        &["npersocket"],
        Instead("-ppn N --map-by socket, with N for all sockets of a host together"),
    ),
    (
        &["cpu-bind"],
        Instead("--bind core, thread, socket or none"),
    ),
    (
        &["distribution", "m"],
        Instead("--map-by slot (block) or --map-by node (cyclic)"),
    ),
    (&["nodes"], Instead("--hosts or --hostfile")),
    (&["time"], Instead("--timeout SECONDS")),
    (
        &["with"],
        Instead(
            "kwlab exec openmpi -n 4 ./program, which starts the launcher of Open MPI, MPICH (mpich) or Intel MPI (impi)",
        ),
    ),
    (&["path"], Instead("-genv PATH DIRECTORY:$PATH")),
];

/// Meaning of such an option, if it is known.
pub fn find(name: &str) -> Option<Foreign> {
    let bare = name.strip_prefix("--").or_else(|| name.strip_prefix('-'))?;
    let found = ALL.iter().find(|(names, _)| names.contains(&bare));
    found.map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options;

    #[test]
    fn no_option_is_ours_and_foreign() {
        for name in ALL.iter().flat_map(|(names, _)| *names) {
            for dashes in ["-", "--"] {
                let word = format!("{dashes}{name}");
                assert!(options::find(&word).is_none(), "{word}");
            }
        }
    }
}
