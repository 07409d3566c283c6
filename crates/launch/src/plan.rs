//! From a request to what is to be started: programs found and checked, environments made, one entry a rank.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::args::{App, Binding, Request};
use crate::verdict::{CANNOT_EXECUTE, NOT_FOUND, Verdict};
use kw_core::pmi::mapping;

/// Variables of other launchers, which would lead a rank astray, and of ours from an enclosing job.
const FOREIGN: &[&str] = &[
    "PMI_",
    "PMIX_",
    "OMPI_",
    "MPI_LOCAL",
    "HYDI_",
    "HYDRA_",
    "I_MPI_HYDRA_",
    "MPIEXEC_JOB",
];

/// One rank to start.
#[derive(Clone, Debug)]
pub struct RankPlan {
    /// Which program of [`Plan::apps`].
    pub app: usize,
    /// Processors it is bound to; empty: not bound.
    pub cpus: Vec<usize>,
}

/// One program to start.
#[derive(Clone, Debug)]
pub struct AppPlan {
    /// Absolute path.
    pub program: PathBuf,
    /// Program as named, and arguments.
    pub words: Vec<OsString>,
    /// Environment without what differs by rank.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory.
    pub dir: Option<PathBuf>,
    /// Value of `KW_HOST`, if it has one.
    pub host: Option<OsString>,
}

/// The job to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Programs.
    pub apps: Vec<AppPlan>,
    /// Ranks.
    pub ranks: Vec<RankPlan>,
    /// Host number of each rank.
    pub hosts: Vec<u32>,
    /// Label output.
    pub label: bool,
    /// Print the map.
    pub map: bool,
    /// How to bind; [`crate::bind`] fills in [`RankPlan::cpus`].
    pub bind: Binding,
}

impl Plan {
    /// Ranks on the same host as `rank`, and how many of them come before it.
    pub fn local(&self, rank: usize) -> (usize, usize) {
        let here = |r: &usize| self.hosts[*r] == self.hosts[rank];
        let all = (0..self.hosts.len()).filter(here).count();
        (all, (0..rank).filter(here).count())
    }
}

/// Makes the plan; `ours` is our own environment.
pub fn plan(request: Request, ours: Vec<(OsString, OsString)>) -> Result<Plan, Verdict> {
    let base = environment(&request, ours);
    let mut apps = Vec::new();
    let mut ranks = Vec::new();
    for (app, a) in request.apps.into_iter().enumerate() {
        let one = RankPlan {
            app,
            cpus: Vec::new(),
        };
        ranks.extend(std::iter::repeat_n(one, a.count as usize));
        apps.push(app_plan(a, &base)?);
    }
    let names: Vec<String> = ranks.iter().map(|r| host_name(&apps[r.app])).collect();
    Ok(Plan {
        hosts: mapping::number(&names),
        apps,
        ranks,
        label: request.label,
        map: request.map,
        bind: request.bind,
    })
}

fn host_name(app: &AppPlan) -> String {
    let host = app.host.as_deref().unwrap_or(OsStr::new("auto"));
    host.to_string_lossy().into_owned()
}

fn environment(request: &Request, ours: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let foreign = |name: &OsStr| {
        FOREIGN
            .iter()
            .any(|f| name.as_bytes().starts_with(f.as_bytes()))
    };
    let keep = |name: &OsStr| !request.bare || request.pass.iter().any(|p| p == name);
    let mut env: Vec<_> = ours
        .into_iter()
        .filter(|(name, _)| !foreign(name) && keep(name))
        .collect();
    for pair in &request.env {
        set(&mut env, pair.clone());
    }
    env
}

/// Sets a variable.
pub fn set(env: &mut Vec<(OsString, OsString)>, pair: (OsString, OsString)) {
    env.retain(|(name, _)| *name != pair.0);
    env.push(pair);
}

fn app_plan(app: App, base: &[(OsString, OsString)]) -> Result<AppPlan, Verdict> {
    let mut env = base.to_vec();
    for pair in app.env {
        set(&mut env, pair);
    }
    let dir = app.dir.map(PathBuf::from);
    if let Some(dir) = dir.as_deref().filter(|d| !d.is_dir()) {
        return Err(Verdict::misuse(format!(
            "the working directory '{}' is not there",
            dir.display()
        )));
    }
    let host = env
        .iter()
        .find(|(n, _)| n == "KW_HOST")
        .map(|(_, v)| v.clone());
    Ok(AppPlan {
        program: find(&app.words[0], dir.as_deref())?,
        words: app.words,
        host,
        env,
        dir,
    })
}

/// The program a word names: a path (from here, or from the working directory asked for), a name on PATH, or a file here.
fn find(word: &OsStr, dir: Option<&Path>) -> Result<PathBuf, Verdict> {
    let here =
        std::env::current_dir().map_err(|e| Verdict::system("find the current directory", e))?;
    let mut places: Vec<PathBuf> = Vec::new();
    if !word.as_bytes().contains(&b'/') {
        let path = std::env::var_os("PATH").unwrap_or_default();
        places.extend(std::env::split_paths(&path).map(|d| here.join(d)));
    }
    places.push(here.clone());
    places.extend(dir.map(|d| here.join(d)));
    let found: Vec<PathBuf> = places
        .iter()
        .map(|d| d.join(word))
        .filter(|p| p.exists())
        .collect();
    let good = found
        .iter()
        .find(|p| p.is_file() && kw_sys::process::executable(p));
    good.cloned().ok_or_else(|| missing(word, &found))
}

fn missing(word: &OsStr, found: &[PathBuf]) -> Verdict {
    let word = word.to_string_lossy();
    match found.first() {
        None if word.contains('/') => {
            Verdict::new(NOT_FOUND, format!("there is no program '{word}'"))
        }
        None => Verdict::new(
            NOT_FOUND,
            format!("there is no program '{word}' on PATH or in this directory"),
        ),
        Some(p) if p.is_dir() => Verdict::new(
            CANNOT_EXECUTE,
            format!("'{word}' is a directory, not a program"),
        ),
        Some(_) => Verdict::new(
            CANNOT_EXECUTE,
            format!(
                "'{word}' is not executable (chmod +x, or name its interpreter: mpiexec -n 2 python3 {word})"
            ),
        ),
    }
}
