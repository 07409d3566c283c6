//! Detects the launcher of this process. Reads only environment variables, given as a function, so
//! that tests can supply them.
//!
//! A launcher we can talk to wins. Without one, traces of a launcher that started more than one
//! process stop us: a job must never run as N independent single-rank jobs. Traces of a job of one
//! process, or of an enclosing batch script, are ignored.
//!
//! | what is there | what we do |
//! | --- | --- |
//! | `PMI_FD` | PMI-2 in a job step of Slurm, else PMI-1 |
//! | `PMIX_NAMESPACE`, `PMIX_RANK` | PMIx |
//! | traces of another launcher (`traces`), of several processes | one sentence, and the command that would work |
//! | none of these | rank 0 of 1 |
//!
//! `KW_PMI` (`pmi1`, `pmi2`, `pmix`) selects the protocol if the launcher speaks several.

use super::traces::{self, Launched};
use super::{BootError, LauncherFault};

/// Reads a variable.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A launcher behind an inherited descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The descriptor.
    pub fd: i32,
    /// This rank.
    pub rank: u32,
    /// Ranks in the job.
    pub size: u32,
}

/// The launcher that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A launcher that speaks PMI-1.
    Pmi1(Wire),
    /// A launcher that speaks PMI-2.
    Pmi2(Wire, &'static str),
    /// A launcher that speaks PMIx.
    Pmix(Launched),
    /// Started by hand.
    Alone,
}

/// Finds the launcher.
pub fn detect(env: Env) -> Result<Found, BootError> {
    let wanted = env("KW_PMI").filter(|w| w != "auto");
    if let (Some(fd), true) = (env("PMI_FD"), wanted.as_deref() != Some("pmix")) {
        let wire = wire(env, &fd)?;
        // Slurm's own server is the innermost one if no other launcher has left traces
        let others = ["HYDI_CONTROL_FD", "MPIEXEC_JOB", "I_MPI_HYDRA_LOCAL_RANK"];
        let in_slurm = env("SLURM_STEP_ID").is_some() && !others.iter().any(|n| env(n).is_some());
        return Ok(match (wanted.as_deref(), in_slurm) {
            (None, true) => Found::Pmi2(wire, "Slurm's srun"),
            (Some("pmi2"), _) => Found::Pmi2(wire, "a PMI-2 launcher"),
            _ => Found::Pmi1(wire),
        });
    }
    if env("PMIX_NAMESPACE").is_some() && env("PMIX_RANK").is_some() {
        return Ok(Found::Pmix(traces::pmix(env)));
    }
    match traces::several(env) {
        Some(launched) => Err(launched.refuse("which Kittiwake cannot talk to:")),
        None => Ok(Found::Alone),
    }
}

fn wire(env: Env, fd: &str) -> Result<Wire, BootError> {
    let number = |name: &'static str, text: Option<String>| {
        let text = text.unwrap_or_default();
        text.trim()
            .parse::<u32>()
            .map_err(|_| LauncherFault::Number {
                fd: fd.into(),
                name,
                text,
            })
    };
    let (rank, size) = (
        number("PMI_RANK", env("PMI_RANK").or_else(|| env("PMI_ID")))?,
        number("PMI_SIZE", env("PMI_SIZE"))?,
    );
    let fd = number("PMI_FD", Some(fd.to_string()))? as i32;
    if rank >= size {
        return Err(LauncherFault::Rank { rank, size }.into());
    }
    Ok(Wire { fd, rank, size })
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
            ("OMPI_COMM_WORLD_SIZE", "4"),
        ];
        let want = Wire {
            fd: 7,
            rank: 2,
            size: 4,
        };
        assert_eq!(with(&pairs).unwrap(), Found::Pmi1(want));
        let more = |name, value| with(&[&pairs[..], &[(name, value)]].concat()).unwrap();
        assert_eq!(
            more("SLURM_STEP_ID", "0"),
            Found::Pmi2(want, "Slurm's srun")
        );
        assert_eq!(
            more("KW_PMI", "pmi2"),
            Found::Pmi2(want, "a PMI-2 launcher")
        );
        assert_eq!(more("KW_PMI", "auto"), Found::Pmi1(want));
        let pmix = [("PMIX_NAMESPACE", "prterun-x"), ("PMIX_RANK", "0")];
        assert!(matches!(with(&pmix).unwrap(), Found::Pmix(_)));
    }

    #[test]
    fn foreign_launchers_are_named_with_what_would_work() {
        let slurm = "srun --mpi=pmi2 -n 4 PROGRAM";
        for (pairs, who, what) in [
            (
                &[("OMPI_COMM_WORLD_SIZE", "4")][..],
                "Open MPI",
                "mpiexec -n 4",
            ),
            (&[("PMI_RANK", "3")], "MPICH", "mpiexec -n N"),
            (
                &[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")],
                "Slurm",
                slurm,
            ),
            (
                &[
                    ("SLURM_STEP_ID", "0"),
                    ("SLURM_NTASKS", "4"),
                    ("SLURM_PROCID", "0"),
                ],
                "Slurm",
                slurm,
            ),
            (
                &[("FLUX_TASK_RANK", "1")],
                "Flux",
                "flux run -o pmi=simple -n N",
            ),
            (&[("JSM_NAMESPACE_SIZE", "2")], "jsrun", "mpiexec -n 2"),
            (&[("PALS_RANKID", "9")], "PALS", "mpiexec -n N"),
            (&[("MPI_LOCALNRANKS", "2")], "MPICH family", "mpiexec -n 2"),
        ] {
            let e = with(pairs).unwrap_err().to_string();
            assert!(e.contains(who) && e.contains(what), "{e}");
        }
    }

    #[test]
    fn nonsense_from_a_launcher_is_refused() {
        assert!(with(&[("PMI_FD", "x"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]).is_err());
        assert!(with(&[("PMI_FD", "5"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")]).is_err());
        assert!(with(&[("PMI_FD", "5")]).is_err());
    }
}
