//! `mpiexec`: see the library of this crate.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::ExitCode;

use kw_launch::args::{self, Command};
use kw_launch::verdict::Verdict;
use kw_launch::{bind, helper, job, join, libraries, peer, plan};
use kw_sys::neighbours;

fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(verdict) => {
            // standard error may be closed or full: then there is nobody to tell
            let _ = writeln!(std::io::stderr(), "mpiexec: {}", verdict.sentence);
            ExitCode::from(verdict.status)
        }
    }
}

/// The status to exit with, when all that had to be said has been said.
fn run() -> Result<u8, Verdict> {
    let request = match args::parse(std::env::args_os().skip(1).collect())? {
        Command::Run(request) => *request,
        Command::Print(text) => return print(&text),
        Command::Help => return helper::run().map(|()| 0),
    };
    let environment = std::env::vars_os().collect();
    if let Some(with) = request.with.clone() {
        return Err(peer::run(request, &with, environment));
    }
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
    let mut plan = plan::plan(request, environment)?;
    for app in &plan.apps {
        if let Some(sentence) = libraries::missing(&app.program, &app.libraries) {
            let _ = writeln!(std::io::stderr(), "mpiexec: {sentence}");
        }
    }
    let usable = kw_sys::cpus::usable();
    let here = plan.here();
    let turn = bind::may_bind(plan.bind, here.len(), usable).then(neighbours::turn);
    let cores = kw_sys::topology::cores;
    let shares = bind::bind(plan.bind, here.len(), usable, cores, neighbours::bound)?;
    for (rank, cpus) in here.into_iter().zip(shares) {
        let r = &mut plan.ranks[rank];
        if plan.map {
            let (host, app) = (&plan.machines[r.machine].name, &plan.apps[r.app]);
            let line = bind::line(rank as u32, host, &cpus, &app.program, &app.libraries);
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        r.cpus = cpus;
    }
    job::run(plan, usable, turn)
}

fn print(text: &str) -> Result<u8, Verdict> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Verdict::system("write standard output", e))?;
    Ok(0)
}
