//! `mpiexec`: see `kw_launch`.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use kw_base::spawned::PARENT_PORT;
use kw_launch::args::{self, Command};
use kw_launch::verdict::Verdict;
use kw_launch::{helper, job, join, libraries, plan};

/// Runs it with these arguments, the first of which is its name.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(words) {
        Ok(status) => ExitCode::from(status),
        Err(verdict) => {
            // standard error may be closed or full: then the message is lost
            let _ = writeln!(std::io::stderr(), "mpiexec: {}", verdict.sentence);
            verdict.tell_parent();
            ExitCode::from(verdict.status)
        }
    }
}

/// The exit status, after all messages have been printed.
fn run(words: Vec<OsString>) -> Result<u8, Verdict> {
    let request = match args::parse(words.into_iter().skip(1).collect())? {
        Command::Run(request) => *request,
        Command::Print(text) => return print(&text),
        Command::Help => return helper::run().map(|()| 0),
    };
    let environment = std::env::vars_os().collect();
    for words in &request.unheeded {
        let option = words.join(" ");
        let _ = writeln!(
            std::io::stderr(),
            "mpiexec: {option} has no meaning here, and is ignored"
        );
    }
    if request.rendezvous.is_some() {
        return Err(join::join(request, environment));
    }
    if std::env::var_os(PARENT_PORT).is_some() {
        kw_sys::neighbours::run_where_our_launcher_may();
    }
    let plan = plan::plan(request, environment)?;
    for app in &plan.apps {
        let other_mpi = libraries::other_mpi_first(&app.program, &app.env);
        let missing = libraries::missing(&app.program, &app.libraries);
        for sentence in other_mpi.into_iter().chain(missing) {
            let _ = writeln!(std::io::stderr(), "mpiexec: {sentence}");
        }
    }
    job::run(plan, kw_sys::cpus::usable())
}

fn print(text: &str) -> Result<u8, Verdict> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Verdict::system("write standard output", e))?;
    Ok(0)
}
