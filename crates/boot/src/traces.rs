//! Traces of launchers in the environment of their processes, and advice for their users.

use super::detect::Env;
use super::{BootError, Misuse};

/// Traces of a launcher.
struct Trace {
    /// Its name, for messages.
    name: &'static str,
    /// The variable that holds the job's size.
    size: &'static str,
    /// The variable that holds the rank.
    rank: &'static str,
    /// How Kittiwake's programs are started there; `@` stands for the number of processes.
    instead: &'static str,
}

const OURS: &str = "start the program with Kittiwake's own 'mpiexec -n @ PROGRAM'";
const SRUN: &str = "start the program with 'srun --mpi=pmi2 -n @ PROGRAM' (or --mpi=pmix)";

const TRACES: &[Trace] = &[
    Trace {
        name: "Open MPI's mpiexec",
        size: "OMPI_COMM_WORLD_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
        instead: OURS,
    },
    Trace {
        name: "Intel MPI's or MPICH's mpiexec",
        size: "PMI_SIZE",
        rank: "PMI_RANK",
        instead: OURS,
    },
    Trace {
        name: "Intel MPI's mpiexec",
        size: "I_MPI_HYDRA_LOCAL_SIZE",
        rank: "I_MPI_HYDRA_LOCAL_RANK",
        instead: OURS,
    },
    Trace {
        name: "a mpiexec of the MPICH family",
        size: "MPI_LOCALNRANKS",
        rank: "MPI_LOCALRANKID",
        instead: OURS,
    },
    Trace {
        name: "MVAPICH's mpirun_rsh",
        size: "MPIRUN_NPROCS",
        rank: "MPIRUN_RANK",
        instead: OURS,
    },
    Trace {
        name: "Cray's PALS",
        size: "PALS_LOCAL_SIZE",
        rank: "PALS_RANKID",
        instead: OURS,
    },
    Trace {
        name: "Cray's ALPS",
        size: "ALPS_APP_DEPTH_SIZE",
        rank: "ALPS_APP_PE",
        instead: OURS,
    },
    Trace {
        name: "Flux",
        size: "FLUX_JOB_SIZE",
        rank: "FLUX_TASK_RANK",
        instead: "start the program with 'flux run -o pmi=simple -n @ PROGRAM'",
    },
    Trace {
        name: "IBM's jsrun",
        size: "JSM_NAMESPACE_SIZE",
        rank: "JSM_NAMESPACE_RANK",
        instead: OURS,
    },
    Trace {
        name: "Slurm's srun",
        size: "SLURM_STEP_NUM_TASKS",
        rank: "SLURM_PROCID",
        instead: SRUN,
    },
];

/// A launcher whose traces were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    name: &'static str,
    /// The variable that showed it.
    variable: &'static str,
    value: String,
    /// Processes of the job, if that is known.
    size: Option<u64>,
    instead: &'static str,
}

impl Launched {
    /// The launcher's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Advice if a program cannot run under this launcher; `why` comes before the alternative.
    pub fn refuse(&self, why: &str) -> BootError {
        Misuse::Foreign(self.clone(), why.into()).into()
    }

    /// The advice, in one sentence.
    pub(super) fn sentence(&self, why: &str) -> String {
        let count = self.size.map_or("N".to_string(), |n| n.to_string());
        format!(
            "this process was started by {} ({} is {}), {why} {}, or unset {} to run a process alone",
            self.name,
            self.variable,
            self.value,
            self.instead.replace('@', &count),
            self.variable
        )
    }
}

/// A launcher that started more than one process.
pub fn several(env: Env) -> Option<Launched> {
    let seen = |t: &Trace| {
        let (variable, value) = many(env, t)?;
        let size = number(env, t.size).filter(|n| *n > 1);
        Some(launched(t, variable, value, size))
    };
    TRACES.iter().find_map(seen).or_else(|| srun(env))
}

/// The launcher behind a PMIx server.
pub fn pmix(env: Env) -> Launched {
    let size = number(env, "OMPI_COMM_WORLD_SIZE").or_else(|| number(env, "SLURM_STEP_NUM_TASKS"));
    let (name, instead) = if env("SLURM_STEP_ID").is_some() && env("PRTE_LAUNCHED").is_none() {
        (
            "Slurm's srun",
            "start the program with 'srun --mpi=pmi2 -n @ PROGRAM'",
        )
    } else if env("OMPI_COMM_WORLD_SIZE").is_some() {
        ("Open MPI's mpiexec", OURS)
    } else if env("PRTE_LAUNCHED").is_some() {
        ("PRRTE's prterun", OURS)
    } else {
        ("a PMIx launcher", OURS)
    };
    Launched {
        name,
        variable: "PMIX_NAMESPACE",
        value: env("PMIX_NAMESPACE").unwrap_or_default(),
        size,
        instead,
    }
}

fn launched(t: &Trace, variable: &'static str, value: String, size: Option<u64>) -> Launched {
    Launched {
        name: t.name,
        variable,
        value,
        size,
        instead: t.instead,
    }
}

fn number(env: Env, name: &str) -> Option<u64> {
    env(name)?.trim().parse().ok()
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
fn srun(env: Env) -> Option<Launched> {
    let tasks = number(env, "SLURM_NTASKS").filter(|n| *n > 1)?;
    let in_step = env("SLURM_STEP_ID").is_some() && env("SLURM_PROCID").is_some();
    let t = TRACES.iter().find(|t| t.rank == "SLURM_PROCID")?;
    in_step.then(|| launched(t, "SLURM_NTASKS", tasks.to_string(), Some(tasks)))
}
