//! Turns a request into a plan: hosts are chosen, programs found and checked, environments made,
//! with one entry per rank. The helper on another host finds and checks the programs that it
//! starts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::args::{App, Binding, Request};
use crate::hosts::{self, Host};
use crate::inherited_recording;
use crate::java;
use crate::libraries::{self, Libraries};
use crate::ranks::Env;
use crate::slurm;
use crate::trace::shared::Sharing;
use crate::verdict::{CANNOT_EXECUTE, NOT_FOUND, Verdict};
use crate::wrap::Wrap;
use kw_base::settings::{Id, Settings};
use kw_start::pmi::mapping;

/// Variables of other launchers, which would mislead a rank, and of an enclosing job.
const FOREIGN: &[&str] = &[
    "PMI_",
    "PMIX_",
    "OMPI_",
    "MPI_LOCAL",
    "HYDI_",
    "HYDRA_",
    "I_MPI_HYDRA_",
    "MPIEXEC_JOB",
    "MPIEXEC_MARK",
    "MPIEXEC_PROFILE",
];

/// Variables of a session on this machine, which mean nothing on another host; they are passed
/// there only if they are named.
const OF_THIS_MACHINE: &[&str] = &[
    "HOSTNAME",
    "SSH_",
    "XDG_",
    "DBUS_",
    "DISPLAY",
    "XAUTHORITY",
    "TMUX",
    "STY",
    "MAIL",
];

/// One rank to start.
#[derive(Clone, Debug)]
pub struct RankPlan {
    /// Which program of [`Plan::apps`].
    pub app: usize,
    /// Which machine of [`Plan::machines`].
    pub machine: usize,
    /// Processors it is bound to; empty: not bound.
    pub cpus: Vec<usize>,
}

/// One program to start.
#[derive(Clone, Debug)]
pub struct AppPlan {
    /// Absolute path; as named, if it runs only on other hosts.
    pub program: PathBuf,
    /// Program as named, and arguments.
    pub words: Vec<OsString>,
    /// Environment without the variables that differ by rank.
    pub env: Env,
    /// Environment on other hosts, without the variables that differ by rank.
    pub env_away: Env,
    /// Working directory, if it is not ours.
    pub dir: Option<PathBuf>,
    /// The libraries of other ABIs that it finds first.
    pub libraries: Libraries,
    /// Value of `KW_HOST`, if it has one.
    pub host: Option<OsString>,
}

/// A machine that ranks run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name, as the user wrote it if it was named.
    pub name: String,
    /// Whether it is this machine, and we start its ranks.
    pub here: bool,
    /// Whether it stands for some ranks of this machine that a helper here starts
    /// ([`Plan::share_out`]).
    pub shared_out: bool,
}

/// How other hosts are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The command, to which a host and the command for it are appended.
    pub command: Vec<String>,
    /// `mpiexec` there.
    pub helper: PathBuf,
    /// Whether a shell reads the command there, as after ssh.
    pub shell: bool,
}

/// The job to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Programs.
    pub apps: Vec<AppPlan>,
    /// Ranks.
    pub ranks: Vec<RankPlan>,
    /// Machines.
    pub machines: Vec<Machine>,
    /// How other machines are reached.
    pub reach: Reach,
    /// Host number of each rank.
    pub hosts: Vec<u32>,
    /// Label output.
    pub label: bool,
    /// Record which MPI functions the ranks call.
    pub profile: bool,
    /// The file for the recorded calls, if one is requested.
    pub profile_json: Option<PathBuf>,
    /// The file for the trace, if one is recorded.
    pub trace: Option<PathBuf>,
    /// What jobs that write to this trace file agree on.
    pub sharing: Sharing,
    /// End a job that hangs.
    pub end_hung: bool,
    /// Time limit.
    pub timeout: Option<std::time::Duration>,
    /// Print the map.
    pub map: bool,
    /// How to bind; [`crate::bind`] fills in [`RankPlan::cpus`].
    pub bind: Binding,
    /// Commands under which ranks are started.
    pub wraps: Vec<Wrap>,
    /// The rank that gets our standard input: 0, or the debugged one.
    pub reader: usize,
    /// Whether that rank has the terminal.
    pub debug: bool,
}

impl Plan {
    /// Ranks on the same host as `rank`, and how many of them come before it.
    pub fn local(&self, rank: usize) -> (usize, usize) {
        let here = |r: &usize| self.hosts[*r] == self.hosts[rank];
        let all = (0..self.hosts.len()).filter(here).count();
        (all, (0..rank).filter(here).count())
    }

    /// Ranks on a machine.
    pub fn on(&self, machine: usize) -> impl Iterator<Item = usize> {
        let there = move |r: &usize| self.ranks[*r].machine == machine;
        (0..self.ranks.len()).filter(there)
    }

    /// Ranks on this machine.
    pub fn here(&self) -> Vec<usize> {
        let here = |r: &usize| self.machines[self.ranks[*r].machine].here;
        (0..self.ranks.len()).filter(here).collect()
    }
}

impl Plan {
    /// Gives the ranks of this machine to helpers on it, `each` to one, because a single process
    /// cannot open the files for all. They remain ranks of one host.
    pub fn share_out(&mut self, each: usize) {
        for ranks in self.here().chunks(each) {
            let whole = &self.machines[self.ranks[ranks[0]].machine];
            let part = Machine {
                name: whole.name.clone(),
                here: false,
                shared_out: true,
            };
            let number = self.machines.len();
            self.machines.push(part);
            for rank in ranks {
                self.ranks[*rank].machine = number;
            }
        }
    }
}

/// Makes the plan; `ours` is our own environment.
pub fn plan(mut request: Request, mut ours: Env) -> Result<Plan, Verdict> {
    // Not for jobs that ranks start: they would write to the same file.
    let at = ours.iter().position(|(name, _)| name == "KW_TRACE");
    let trace = at.map(|at| ours.swap_remove(at).1);
    request.trace = request.trace.or(trace).filter(|file| !file.is_empty());
    inherited_recording::take_over(&mut request, &mut ours);
    let allocated = request.hosts.is_empty() && use_allocation(&mut request, &ours)?;
    let reach = reach(&request, allocated, &ours)?;
    if let Some(rank) = request.debug {
        debug(&mut request, rank)?;
    }
    let mut base = environment(&request, ours);
    inherited_recording::pass_on(&request, &mut base);
    let machines = machines(&request)?;
    let slots_said = !request.hosts.is_empty() || request.per_host.is_some();
    let alone = request.apps.len() == 1 && slots_said;
    let default = if alone { hosts::total(&machines) } else { 1 };
    let counts: Vec<u32> = request
        .apps
        .iter()
        .map(|a| a.count.unwrap_or(default))
        .collect();
    let order = request.places.order;
    let numbers = request.places.numbers.unwrap_or(order);
    let places = hosts::place(&machines, counts.iter().sum(), order, numbers);
    let machines = machines.into_iter().map(machine).collect::<Vec<_>>();
    let mut places = places.into_iter();
    let (mut apps, mut ranks) = (Vec::new(), Vec::new());
    for ((app, a), n) in request.apps.into_iter().enumerate().zip(counts) {
        let first = ranks.len();
        ranks.extend(places.by_ref().take(n as usize).map(|machine| RankPlan {
            app,
            machine,
            cpus: Vec::new(),
        }));
        let here = |r: &RankPlan| machines[r.machine].here;
        let away = |r: &RankPlan| !machines[r.machine].here;
        let (here, away) = (
            ranks[first..].iter().any(here),
            ranks[first..].iter().any(away),
        );
        let app = app_plan(a, &base, here, away, &request.pass)?;
        // `--wrap` may name an emulator.
        if here && request.wraps.is_empty() {
            libraries::check_architecture(&app.program, &app.words[1..])?;
        }
        apps.push(app);
    }
    check_wraps(&request.wraps, request.debug, &ranks, &machines)?;
    let names: Vec<String> = ranks
        .iter()
        .map(|r| format!("{}\0{}", machines[r.machine].name, host_name(&apps[r.app])))
        .collect();
    Ok(Plan {
        hosts: mapping::number(&names),
        apps,
        ranks,
        machines,
        reach,
        label: request.label,
        profile: request.profile,
        profile_json: request.profile_json.map(PathBuf::from),
        trace: request.trace.map(PathBuf::from),
        sharing: request.sharing,
        end_hung: request.end_hung,
        timeout: request.timeout,
        map: request.map,
        bind: request.bind,
        wraps: request.wraps,
        reader: request.debug.unwrap_or(0) as usize,
        debug: request.debug.is_some(),
    })
}

/// Starts a rank under a debugger. The others wait for it without a time limit.
fn debug(request: &mut Request, rank: u32) -> Result<(), Verdict> {
    let is_there = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| kw_sys::process::executable(&dir.join(name)))
    };
    if !is_there("gdb") {
        // lldb passes no inherited descriptors to the processes it starts, so they cannot be ranks
        return Err(Verdict::misuse(
            "--debug needs gdb, which is not on PATH (lldb -p PID attaches to a running rank)"
                .into(),
        ));
    }
    let wrap = Wrap::parse(&format!("{rank}:gdb -q --args"))?;
    request.wraps.insert(0, wrap);
    request.env.push(("KW_HANG".into(), "0".into()));
    Ok(())
}

/// Refuses commands under which no rank can be started.
fn check_wraps(
    wraps: &[Wrap],
    debug: Option<u32>,
    ranks: &[RankPlan],
    machines: &[Machine],
) -> Result<(), Verdict> {
    let size = ranks.len();
    if let Some((wrap, rank)) = wraps.iter().find_map(|w| Some((w, w.beyond(size as u32)?))) {
        let text = format!(
            "'{}' names rank {rank}, and the job has {size}",
            wrap.text()
        );
        return Err(Verdict::misuse(text));
    }
    let away = |rank: &u32| Some(&machines[ranks[*rank as usize].machine]).filter(|m| !m.here);
    match debug.and_then(|rank| Some((rank, away(&rank)?))) {
        None => Ok(()),
        Some((rank, machine)) => Err(Verdict::misuse(format!(
            "--debug {rank} is for a rank on this machine, and that one runs on {}: start mpiexec there",
            machine.name
        ))),
    }
}

/// The only program of a request, which runs here.
pub fn single(mut request: Request, ours: Env) -> Result<AppPlan, Verdict> {
    let mut base = environment(&request, ours);
    inherited_recording::pass_on(&request, &mut base);
    match request.apps.pop() {
        Some(app) => app_plan(app, &base, true, false, &request.pass),
        None => Err(Verdict::misuse("no program was named".into())),
    }
}

/// Uses the nodes of an allocation of Slurm as the hosts, unless hosts were named.
fn use_allocation(request: &mut Request, env: &Env) -> Result<bool, Verdict> {
    let read = |name: &str| {
        let found = env.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| v.to_string_lossy().into_owned())
    };
    let nodes = slurm::allocation(&read)?;
    let found = nodes.is_some();
    request.hosts = nodes.unwrap_or_default();
    Ok(found)
}

/// The requested hosts in their order; all names of this machine become one, under its own name.
fn machines(request: &Request) -> Result<Vec<Host>, Verdict> {
    let own = kw_sys::host::name();
    if request.hosts.is_empty() {
        return Ok(vec![Host {
            name: own,
            slots: request.per_host.unwrap_or(1),
        }]);
    }
    let all = kw_sys::netif::interfaces()
        .map_err(|e| Verdict::system("list the network interfaces", e))?;
    let addresses: Vec<_> = all.iter().map(|i| i.addr).collect();
    let named = request.hosts.iter().map(|h| Host {
        name: match hosts::is_here(&h.name, &own, &addresses) {
            true => own.clone(),
            false => h.name.clone(),
        },
        slots: request.per_host.unwrap_or(h.slots),
    });
    Ok(match request.per_host {
        Some(_) => hosts::once(named.collect()),
        None => hosts::merged(named.collect()),
    })
}

fn machine(host: Host) -> Machine {
    Machine {
        here: host.name == kw_sys::host::name(),
        shared_out: false,
        name: host.name,
    }
}

/// Our own environment counts here, whatever part of it the ranks get.
fn reach(request: &Request, allocated: bool, env: &Env) -> Result<Reach, Verdict> {
    let named = env.iter().find(|(n, _)| n == "KW_SSH");
    let named = named.map(|(_, v)| v.to_string_lossy().into_owned());
    let settings = Settings::read(|name| named.clone().filter(|_| name == "KW_SSH"));
    let settings = settings.map_err(|e| Verdict::misuse(e.to_string()))?;
    let by_srun = allocated && request.ssh.is_none() && named.is_none();
    let text = match by_srun {
        true => slurm::SRUN,
        false => request.ssh.as_deref().unwrap_or(settings.text(Id::Ssh)),
    };
    let helper = match &request.prefix {
        Some(prefix) => Path::new(prefix).join("bin/mpiexec"),
        None => {
            crate::libraries::own_file().map_err(|e| Verdict::system("find mpiexec itself", e))?
        }
    };
    Ok(Reach {
        command: text.split_whitespace().map(str::to_string).collect(),
        helper,
        shell: !by_srun,
    })
}

fn host_name(app: &AppPlan) -> String {
    let host = app.host.as_deref().unwrap_or(OsStr::new("auto"));
    host.to_string_lossy().into_owned()
}

fn environment(request: &Request, ours: Env) -> Env {
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
pub fn set(env: &mut Env, pair: (OsString, OsString)) {
    env.retain(|(name, _)| *name != pair.0);
    env.push(pair);
}

fn app_plan(
    mut app: App,
    base: &Env,
    here: bool,
    away: bool,
    named: &[OsString],
) -> Result<AppPlan, Verdict> {
    let mut env = base.clone();
    let mut env_away = if away {
        away_only(base, named)
    } else {
        Env::new()
    };
    for pair in app.env {
        set(&mut env, pair.clone());
        set(&mut env_away, pair);
    }
    let dir = app.dir.map(PathBuf::from);
    if let Some(dir) = dir.as_deref().filter(|d| here && !d.is_dir()) {
        return Err(no_directory(dir));
    }
    let host = env
        .iter()
        .find(|(n, _)| n == "KW_HOST")
        .map(|(_, v)| v.clone());
    let program = match here {
        true => find(
            &app.words[0],
            dir.as_deref(),
            &current_dir()?,
            std::env::var_os("PATH"),
        )?,
        false => PathBuf::from(&app.words[0]),
    };
    let libraries = match here {
        true => libraries::serve(&program, &app.words[1..], &mut env)?,
        false => Libraries::default(),
    };
    if here {
        java::serve(&program, &mut app.words, &mut env);
    }
    Ok(AppPlan {
        program,
        libraries,
        words: app.words,
        host,
        env,
        env_away,
        dir,
    })
}

/// The sentence about a missing working directory.
pub fn no_directory(dir: &Path) -> Verdict {
    Verdict::misuse(format!(
        "the working directory '{}' does not exist",
        dir.display()
    ))
}

/// Our current directory.
pub fn current_dir() -> Result<PathBuf, Verdict> {
    std::env::current_dir().map_err(|e| Verdict::system("find the current directory", e))
}

/// An environment without the variables of this machine.
fn away_only(env: &Env, named: &[OsString]) -> Env {
    let ours = |name: &OsStr| {
        OF_THIS_MACHINE
            .iter()
            .any(|f| name.as_bytes().starts_with(f.as_bytes()))
    };
    let goes = |name: &OsString| !ours(name) || named.contains(name);
    env.iter().filter(|(n, _)| goes(n)).cloned().collect()
}

/// The program that a word names: a path (relative to `here`, or to the requested working
/// directory), a name on `path`, or a file in `here`.
pub fn find(
    word: &OsStr,
    dir: Option<&Path>,
    here: &Path,
    path: Option<OsString>,
) -> Result<PathBuf, Verdict> {
    let mut places: Vec<PathBuf> = Vec::new();
    if !word.as_bytes().contains(&b'/') {
        let path = path.unwrap_or_default();
        places.extend(std::env::split_paths(&path).map(|d| here.join(d)));
    }
    places.push(here.to_path_buf());
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
            Verdict::new(NOT_FOUND, format!("program '{word}' does not exist"))
        }
        None => Verdict::new(
            NOT_FOUND,
            format!("program '{word}' was not found on PATH or in this directory"),
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
