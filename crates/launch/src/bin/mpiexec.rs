//! `mpiexec`: see the library of this crate.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use kw_launch::args::{self, Command};
use kw_launch::verdict::Verdict;
use kw_launch::{bind, job, plan};

fn main() -> ExitCode {
    match run() {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(verdict)) | Err(verdict) => {
            // standard error may be closed or full: then there is nobody to tell
            let _ = writeln!(std::io::stderr(), "mpiexec: {}", verdict.sentence);
            ExitCode::from(verdict.status)
        }
    }
}

fn run() -> Result<Option<Verdict>, Verdict> {
    let request = match args::parse(std::env::args_os().skip(1).collect())? {
        Command::Run(request) => request,
        Command::Print(text) => return print(&text),
    };
    let mut plan = plan::plan(request, std::env::vars_os().collect())?;
    let usable = kw_sys::cpus::usable();
    bind::bind(&mut plan, usable, kw_sys::topology::cores)?;
    if plan.map {
        let _ = write!(
            std::io::stderr(),
            "{}",
            bind::map(&plan, &kw_sys::host::name())
        );
    }
    job::run(plan, usable)
}

fn print(text: &str) -> Result<Option<Verdict>, Verdict> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Verdict::system("write standard output", e))?;
    Ok(None)
}
