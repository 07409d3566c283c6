//! `kwinfo --job`: makes a running mpiexec print where every rank is, or what its job chooses.

use kw_sys::signals;

/// The signal that asks, with the number of a [`Question`]. It has no effect on a process that does
/// not wait for it (yet).
pub const QUESTION: i32 = signals::URG;

/// Kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Where every rank is, and what it has called so far.
    Ranks = 0,
    /// The choices of the job.
    Choices = 1,
}

/// Asks the mpiexec with this process id; returns what to tell the user.
pub fn ask(pid: u32, question: Question) -> Result<String, String> {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = comm.trim();
    if !["mpiexec", "mpirun"].contains(&name) {
        let what = if name.is_empty() {
            "there is none"
        } else {
            name
        };
        return Err(format!("process {pid} is not an mpiexec: {what}"));
    }
    if !waits_for_questions(pid) {
        return Err(format!(
            "{name} (process {pid}) is still starting its job: ask again"
        ));
    }
    let what = match question {
        Question::Ranks => "where every rank is",
        Question::Choices => "what its job chooses",
    };
    let process = i32::try_from(pid).map_err(|_| format!("{pid} is not a process id"))?;
    match signals::send(process, QUESTION, question as i32) {
        Ok(()) => Ok(format!(
            "{name} (process {pid}) prints on its standard error {what}\n"
        )),
        Err(e) => Err(format!("process {pid} cannot be queried: {e}")),
    }
}

/// Whether a process keeps the signal pending until it reads it; otherwise the question would be
/// lost.
fn waits_for_questions(pid: u32) -> bool {
    let blocked =
        kw_sys::process::status(pid, "SigBlk").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    blocked.is_some_and(|mask| mask & 1 << (QUESTION - 1) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_not_taken_the_signal_does_not_wait_for_questions() {
        // Not this process: its C library blocks all signals for a moment when a thread begins.
        let mut other = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(!waits_for_questions(other.id()));
        drop(other.stdin.take());
        other.wait().unwrap();
        assert!(!waits_for_questions(u32::MAX));
    }

    #[test]
    fn others_are_not_asked() {
        let ask = |pid| ask(pid, Question::Ranks).unwrap_err();
        let own = ask(std::process::id());
        assert!(own.contains("is not an mpiexec"), "{own}");
        assert!(ask(u32::MAX).contains("there is none"));
    }
}
