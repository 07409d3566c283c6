//! Who started this process? Reads only environment variables, given as a function, so that tests can lie.
//!
//! A launcher we can talk to wins. Without one, traces of a launcher that started more than one process stop us: a job must
//! never run as N times rank 0 of 1. Traces of a job of one process, or of an enclosing batch script, are ignored.

use super::BootError;

/// Reads a variable.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A launcher that speaks PMI-1 over an inherited descriptor.
    Pmi1 {
        /// The descriptor.
        fd: i32,
        /// This rank.
        rank: u32,
        /// Ranks in the job.
        size: u32,
    },
    /// Started by hand.
    Alone,
}

/// Traces of a launcher: its name, the variable that holds the job's size, the one that holds the rank.
struct Trace {
    name: &'static str,
    size: &'static str,
    rank: &'static str,
}

const TRACES: &[Trace] = &[
    Trace {
        name: "Open MPI's mpiexec",
        size: "OMPI_COMM_WORLD_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
    },
    Trace {
        name: "Intel MPI's or MPICH's mpiexec",
        size: "PMI_SIZE",
        rank: "PMI_RANK",
    },
    Trace {
        name: "Intel MPI's mpiexec",
        size: "I_MPI_HYDRA_LOCAL_SIZE",
        rank: "I_MPI_HYDRA_LOCAL_RANK",
    },
    Trace {
        name: "a mpiexec of the MPICH family",
        size: "MPI_LOCALNRANKS",
        rank: "MPI_LOCALRANKID",
    },
    Trace {
        name: "MVAPICH's mpirun_rsh",
        size: "MPIRUN_NPROCS",
        rank: "MPIRUN_RANK",
    },
    Trace {
        name: "Cray's PALS",
        size: "PALS_LOCAL_SIZE",
        rank: "PALS_RANKID",
    },
    Trace {
        name: "Cray's ALPS",
        size: "ALPS_APP_DEPTH_SIZE",
        rank: "ALPS_APP_PE",
    },
    Trace {
        name: "Flux",
        size: "FLUX_JOB_SIZE",
        rank: "FLUX_TASK_RANK",
    },
    Trace {
        name: "IBM's jsrun",
        size: "JSM_NAMESPACE_SIZE",
        rank: "JSM_NAMESPACE_RANK",
    },
    Trace {
        name: "Slurm's srun",
        size: "SLURM_STEP_NUM_TASKS",
        rank: "SLURM_PROCID",
    },
];

/// Decides.
pub fn detect(env: Env) -> Result<Found, BootError> {
    if let Some(fd) = env("PMI_FD") {
        return pmi1(env, &fd);
    }
    for t in TRACES {
        if let Some((name, value)) = many(env, t) {
            let n = env(t.size).and_then(|s| s.parse().ok()).filter(|n| *n > 1);
            return refuse(t.name, name, &value, n);
        }
    }
    slurm(env)?;
    if let Some(space) = env("PMIX_NAMESPACE").filter(|_| env("OMPI_COMM_WORLD_SIZE").is_none()) {
        return refuse("a PMIx launcher", "PMIX_NAMESPACE", &space, None);
    }
    Ok(Found::Alone)
}

/// The variable that shows that this launcher started more than one process.
fn many(env: Env, t: &Trace) -> Option<(&'static str, String)> {
    let shows = |name: &'static str, least: u64| {
        let value = env(name)?;
        (value.trim().parse::<u64>().ok()? >= least).then_some((name, value))
    };
    shows(t.size, 2).or_else(|| shows(t.rank, 1))
}

/// `srun` of several tasks: in a step (not in the batch script itself, which is one process).
fn slurm(env: Env) -> Result<(), BootError> {
    let tasks = env("SLURM_NTASKS").and_then(|n| n.parse::<u32>().ok());
    match (tasks, env("SLURM_STEP_ID")) {
        (Some(n), Some(_)) if n > 1 && env("SLURM_PROCID").is_some() => {
            refuse("Slurm's srun", "SLURM_NTASKS", &n.to_string(), Some(n)).map(|_| ())
        }
        _ => Ok(()),
    }
}

fn refuse(who: &str, name: &str, value: &str, n: Option<u32>) -> Result<Found, BootError> {
    let count = n.map_or("N".to_string(), |n| n.to_string());
    Err(BootError(format!(
        "this process was started by {who} ({name} is {value}), which Kittiwake cannot talk to; start the program with \
         Kittiwake's own 'mpiexec -n {count} PROGRAM', or unset {name} to run a process alone"
    )))
}

fn pmi1(env: Env, fd: &str) -> Result<Found, BootError> {
    let number = |name: &str, text: Option<String>| {
        let text = text.unwrap_or_default();
        text.trim().parse::<u32>().map_err(|_| {
            BootError(format!(
                "the launcher set PMI_FD to {fd}, but {name} to '{text}', which is no number"
            ))
        })
    };
    let (rank, size) = (
        number("PMI_RANK", env("PMI_RANK").or_else(|| env("PMI_ID")))?,
        number("PMI_SIZE", env("PMI_SIZE"))?,
    );
    let fd = number("PMI_FD", Some(fd.to_string()))? as i32;
    if rank >= size {
        return Err(BootError(format!(
            "the launcher says this is rank {rank} of {size} (PMI_RANK, PMI_SIZE), which cannot be"
        )));
    }
    Ok(Found::Pmi1 { fd, rank, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Found, BootError> {
        detect(&|name| {
            let hit = pairs.iter().find(|(n, _)| *n == name);
            hit.map(|(_, v)| v.to_string())
        })
    }

    #[test]
    fn by_hand_and_jobs_of_one_run_alone() {
        assert_eq!(with(&[]).unwrap(), Found::Alone);
        let one = [("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")];
        assert_eq!(with(&one).unwrap(), Found::Alone);
        let script = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!(with(&script).unwrap(), Found::Alone);
    }

    #[test]
    fn a_launcher_we_talk_to_wins() {
        let pairs = [
            ("PMI_FD", "7"),
            ("PMI_RANK", "2"),
            ("PMI_SIZE", "4"),
            ("SLURM_STEP_NUM_TASKS", "4"),
        ];
        let want = Found::Pmi1 {
            fd: 7,
            rank: 2,
            size: 4,
        };
        assert_eq!(with(&pairs).unwrap(), want);
    }

    #[test]
    fn foreign_launchers_are_named() {
        for (pairs, who) in [
            (&[("OMPI_COMM_WORLD_SIZE", "4")][..], "Open MPI"),
            (&[("PMI_RANK", "3")], "MPICH"),
            (
                &[("PMIX_NAMESPACE", "prterun-x"), ("PMIX_RANK", "0")],
                "PMIx",
            ),
            (
                &[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")],
                "Slurm",
            ),
            (
                &[
                    ("SLURM_STEP_ID", "0"),
                    ("SLURM_NTASKS", "2"),
                    ("SLURM_PROCID", "0"),
                ],
                "Slurm",
            ),
            (&[("FLUX_TASK_RANK", "1")], "Flux"),
            (&[("JSM_NAMESPACE_SIZE", "2")], "jsrun"),
            (&[("PALS_RANKID", "9")], "PALS"),
            (&[("MPI_LOCALNRANKS", "2")], "MPICH family"),
        ] {
            let e = with(pairs).unwrap_err().to_string();
            assert!(e.contains(who) && e.contains("mpiexec -n"), "{e}");
        }
    }

    #[test]
    fn nonsense_from_a_launcher_is_refused() {
        assert!(with(&[("PMI_FD", "x"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]).is_err());
        assert!(with(&[("PMI_FD", "5"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")]).is_err());
        assert!(with(&[("PMI_FD", "5")]).is_err());
    }
}
