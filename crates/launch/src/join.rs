//! `mpiexec --rendezvous NAME:PORT`: this process becomes one rank of a job whose other ranks are
//! started elsewhere, each by a command of its own. The options are passed to the library as
//! variables.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::args::Request;
use crate::plan::{self, AppPlan};
use crate::ranks::Env;
use crate::verdict::{CANNOT_EXECUTE, Verdict};

/// Becomes the program; returns only with an error. `ours` is our own environment.
pub fn join(request: Request, ours: Env) -> Verdict {
    match one(request, ours) {
        Ok(app) => become_program(&app),
        Err(verdict) => verdict,
    }
}

fn one(mut request: Request, ours: Env) -> Result<AppPlan, Verdict> {
    if let Some(why) = amiss(&request) {
        return Err(Verdict::misuse(format!("--rendezvous {why}")));
    }
    let size = request.apps.first().and_then(|a| a.count);
    let values = [
        ("KW_RENDEZVOUS", request.rendezvous.take()),
        ("KW_SIZE", size.map(|n| n.to_string().into())),
        ("KW_RANK", request.rank.map(|r| r.to_string().into())),
    ];
    let set = values.into_iter().filter_map(|(n, v)| Some((n.into(), v?)));
    request.env.extend(set);
    plan::single(request, ours)
}

/// Options that cannot be combined with it.
fn amiss(request: &Request) -> Option<&'static str> {
    if request.apps.len() != 1 {
        return Some("starts one process: one program, without a colon");
    }
    let none = Request::default();
    let understood = Request {
        hosts: none.hosts,
        per_host: none.per_host,
        places: none.places,
        ssh: none.ssh,
        prefix: none.prefix,
        bind: none.bind,
        label: none.label,
        map: none.map,
        profile: none.profile,
        profile_json: none.profile_json,
        trace: none.trace,
        sharing: none.sharing,
        end_hung: none.end_hung,
        timeout: none.timeout,
        ..request.clone()
    };
    (understood != *request).then_some(
        "is replaced by the program, so hosts, binding, labels, profile and time limits are not supported",
    )
}

fn become_program(app: &AppPlan) -> Verdict {
    let mut command = Command::new(&app.program);
    if let Some((name, arguments)) = app.words.split_first() {
        command.arg0(name).args(arguments);
    }
    command.env_clear();
    command.envs(app.env.iter().map(|(n, v)| (n, v)));
    if let Some(dir) = &app.dir {
        command.current_dir(dir);
    }
    let why = command.exec();
    let program = app.program.display();
    Verdict::new(
        CANNOT_EXECUTE,
        format!("'{program}' cannot be executed: {why}"),
    )
}
