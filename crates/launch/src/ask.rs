//! `kwinfo --job`: has an mpiexec that runs say where every rank is.

use rustix::process::{Pid, Signal, kill_process};

/// The signal that asks. It does nothing to a process that does not wait for it.
pub const QUESTION: i32 = kw_sys::signals::URG;

/// Asks the mpiexec with this process id; what to say about that.
pub fn ask(pid: u32) -> Result<String, String> {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = comm.trim();
    if !["mpiexec", "mpirun"].contains(&name) {
        let what = if name.is_empty() {
            "there is none"
        } else {
            name
        };
        return Err(format!("process {pid} is no mpiexec: {what}"));
    }
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let asked = process.map(|p| kill_process(p, Signal::URG));
    match asked {
        Some(Ok(())) => Ok(format!(
            "{name} (process {pid}) prints on its standard error where every rank is\n"
        )),
        Some(Err(e)) => Err(format!("process {pid} cannot be asked: {e}")),
        None => Err(format!("{pid} is no process id")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_not_asked() {
        let own = ask(std::process::id()).unwrap_err();
        assert!(own.contains("is no mpiexec"), "{own}");
        assert!(ask(u32::MAX).unwrap_err().contains("there is none"));
    }
}
