//! How a job ends: an exit status and, when something went wrong, one sentence.

use kw_base::spawned::{PARENT_PORT, SENTENCE};
use kw_start::pmi::ranks;
use kw_sys::signals;

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Exit status of mpiexec.
    pub status: u8,
    /// One sentence that names the culprit and the cause, without a final newline.
    pub sentence: String,
}

/// Status for a wrong command line and for failures of mpiexec itself.
const OWN_FAULT: u8 = 1;
/// Status when the program cannot be executed, as in shells.
pub const CANNOT_EXECUTE: u8 = 126;
/// Status when the program is not found, as in shells.
pub const NOT_FOUND: u8 = 127;

impl Verdict {
    /// A verdict.
    pub fn new(status: u8, sentence: impl Into<String>) -> Verdict {
        Verdict {
            status,
            sentence: sentence.into(),
        }
    }

    /// Tells the parent processes of this job, if any, for the error that they return.
    pub fn tell_parent(&self) {
        if kw_sys::environment::variable(PARENT_PORT).is_some() {
            let sentence = self.sentence.as_bytes();
            // A parent that has ended, or given this job up, needs no reason.
            let _ = kw_sys::fd::send_now(
                rustix::stdio::stdin(),
                &sentence[..sentence.len().min(SENTENCE)],
            );
        }
    }

    /// Verdict for a wrong command line.
    pub fn misuse(sentence: String) -> Verdict {
        Verdict::new(OWN_FAULT, sentence)
    }

    /// Verdict for an error of the system.
    pub fn system(what: &str, error: impl std::fmt::Display) -> Verdict {
        Verdict::new(OWN_FAULT, format!("cannot {what}: {error}"))
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By exit, with a status.
    Exit(i32),
    /// By a signal; whether it left a core file.
    Signal(i32, bool),
    /// With its host, for an unknown reason.
    Lost,
}

/// Description of the process that ended.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: &'a str,
}

impl std::fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} on {}", self.rank, self.host)
    }
}

/// Verdict for a rank that a signal killed.
pub fn killed(who: Who, signal: i32, core: bool) -> Verdict {
    let name = signals::name(signal);
    let core = if core { ", core dumped" } else { "" };
    Verdict::new(
        128 + (signal as u8 & 127),
        format!("{who} was killed by signal {signal} ({name}{core})"),
    )
}

/// Verdict for a rank that exited; `open`: it had called MPI_Init and not MPI_Finalize.
pub fn exited(who: Who, status: i32, open: bool) -> Verdict {
    let how = if open {
        " without calling MPI_Finalize"
    } else {
        ""
    };
    Verdict::new(
        if status == 0 { 1 } else { status as u8 },
        format!("{who} exited with status {status}{how}"),
    )
}

/// Verdict for a rank that called MPI_Abort, or met an error that ends the job; others did so with
/// the same message.
pub fn aborted(who: Who, others: &[u32], status: i32, message: &str) -> Verdict {
    let why = match message.trim() {
        "" => String::new(),
        m => format!(": {m}"),
    };
    let too = match others {
        [] => String::new(),
        _ => format!(" and {}", ranks(others)),
    };
    Verdict::new(
        match status as u8 {
            0 => 1,
            s => s,
        },
        format!("{who}{too} aborted the job with status {status}{why}"),
    )
}

/// Verdict for a rank that waits for one that will never come.
pub fn stuck(waiting: u32, missing: Who, ended: Option<Ended>) -> Verdict {
    let (status, how) = match ended {
        Some(Ended::Exit(s)) => (s.max(1) as u8, format!("exited with status {s}")),
        Some(Ended::Signal(s, _)) => return killed(missing, s, false),
        Some(Ended::Lost) => (1, "was lost with its host".to_string()),
        None => (1, "called MPI_Finalize".to_string()),
    };
    Verdict::new(
        status,
        format!("{missing} {how} while rank {waiting} waits for it in MPI_Init or MPI_Finalize"),
    )
}

/// Warning about processes that the ranks of a host have left behind. Programs may start processes
/// that are meant to outlive them; more often such processes were forgotten.
pub fn who_stays(host: &str, left: &[i32]) -> String {
    let pids: Vec<String> = left.iter().map(i32::to_string).collect();
    let pids = pids.join(", ");
    format!("mpiexec: processes that ranks have started still run on {host}: {pids}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_rank_host_and_cause() {
        let who = Who {
            rank: 3,
            host: "node7",
        };
        let v = killed(who, 9, false);
        assert_eq!(v.status, 137);
        assert_eq!(
            v.sentence,
            "rank 3 on node7 was killed by signal 9 (SIGKILL)"
        );
        assert_eq!(aborted(who, &[], 0, "").status, 1);
        assert_eq!(
            aborted(who, &[], 7, "no input").sentence,
            "rank 3 on node7 aborted the job with status 7: no input"
        );
        assert_eq!(
            aborted(who, &[4, 5], 7, "no input").sentence,
            "rank 3 on node7 and ranks 4, 5 aborted the job with status 7: no input"
        );
        assert_eq!(exited(who, 0, true).status, 1);
        assert_eq!(exited(who, 5, false).status, 5);
        assert!(
            stuck(0, who, Some(Ended::Exit(0)))
                .sentence
                .contains("rank 0 waits")
        );
    }
}
