//! `mpiexec --with`: the same command by another installed MPI, for comparison. This process
//! becomes that MPI's mpiexec, with the options in its words.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::{App, Binding, Request, Unit};
use crate::hosts::Order;
use crate::libraries::{self, AbiShim, CompiledFor};
use crate::plan;
use crate::ranks::Env;
use crate::remote;
use crate::verdict::{CANNOT_EXECUTE, NOT_FOUND, Verdict};

/// Family of an mpiexec, which determines how options are written and which programs it can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH and its derivatives other than Intel MPI.
    Mpich,
    /// Intel MPI.
    Intel,
}

/// Properties of a family.
struct Facts {
    family: Family,
    /// The word after `--with`.
    word: &'static str,
    /// The name for people.
    name: &'static str,
    /// Commands that are in the directory of its mpiexec and of no other family's.
    marks: &'static [&'static str],
    /// Its mpiexec in directories that several MPIs share.
    own: &'static str,
    /// Variables that may name its installation.
    roots: &'static [&'static str],
    /// Directories of its commands in distributions.
    usual: &'static [&'static str],
}

const FAMILIES: [Facts; 3] = [
    Facts {
        family: Family::OpenMpi,
        word: "openmpi",
        name: "Open MPI",
        marks: &["ompi_info"],
        own: "mpiexec.openmpi",
        roots: &["OPAL_PREFIX", "MPI_ROOT"],
        usual: &["/usr/lib64/openmpi/bin", "/opt/openmpi/bin"],
    },
    Facts {
        family: Family::Intel,
        word: "intel",
        name: "Intel MPI",
        marks: &["impi_info"],
        own: "mpiexec.intel",
        roots: &["I_MPI_ROOT"],
        usual: &["/opt/intel/oneapi/mpi/latest/bin"],
    },
    Facts {
        family: Family::Mpich,
        word: "mpich",
        name: "MPICH",
        marks: &["mpichversion", "mpivars"],
        own: "mpiexec.mpich",
        roots: &["MPI_ROOT"],
        usual: &["/usr/lib64/mpich/bin", "/opt/mpich/bin"],
    },
];

fn facts(family: Family) -> &'static Facts {
    let found = FAMILIES.iter().find(|facts| facts.family == family);
    found.unwrap_or(&FAMILIES[0])
}

/// Another MPI on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its family.
    pub family: Family,
    /// Its installation directory as it was named: links to it may lead elsewhere.
    pub root: PathBuf,
    /// Its mpiexec.
    pub mpiexec: PathBuf,
    /// Directory of its libraries.
    pub libraries: Vec<PathBuf>,
}

/// Runs the job under the MPI that `--with` names. Returns only if that fails.
pub fn run(request: Request, with: &OsStr, ours: Env) -> Verdict {
    match command(&request, with, ours) {
        Err(verdict) => verdict,
        Ok(mut command) => {
            if request.map {
                let _ = writeln!(
                    std::io::stderr(),
                    "mpiexec: runs {}",
                    command_line(&command)
                );
            }
            let error = command.exec();
            let program = Path::new(command.get_program()).display();
            Verdict::new(CANNOT_EXECUTE, format!("cannot execute {program}: {error}"))
        }
    }
}

fn command(request: &Request, with: &OsStr, ours: Env) -> Result<Command, Verdict> {
    let read = |name: &str| {
        let found = ours.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone())
    };
    let peer = found(with, &read)?;
    let here = plan::current_dir()?;
    for app in &request.apps {
        let dir = app.dir.as_deref().map(Path::new);
        let program = plan::find(&app.words[0], dir, &here, read("PATH"))?;
        fits(&peer, &program)?;
    }
    let mut command = Command::new(&peer.mpiexec);
    command.args(words(&peer, request)?);
    let path = search_path(
        &peer,
        &libraries::installed().shims,
        read("LD_LIBRARY_PATH"),
    );
    match path.is_empty() {
        true => command.env_remove("LD_LIBRARY_PATH"),
        false => command.env("LD_LIBRARY_PATH", path),
    };
    if peer.family == Family::Intel {
        command.env("I_MPI_ROOT", &peer.root);
    }
    Ok(command)
}

/// The MPI that a word after `--with` means: a family, or a directory where one is installed.
fn found(with: &OsStr, read: &dyn Fn(&str) -> Option<OsString>) -> Result<Peer, Verdict> {
    let word = with.to_string_lossy();
    if let Some(facts) = FAMILIES.iter().find(|facts| facts.word == word) {
        return of_family(facts, read).ok_or_else(|| missing(facts));
    }
    let dir = Path::new(with);
    if !word.contains('/') && !dir.is_dir() {
        let text = format!(
            "--with must be openmpi, mpich, intel or an installation directory, not '{word}'"
        );
        return Err(Verdict::misuse(text));
    }
    let places = [dir.join("bin"), dir.to_path_buf()];
    let peer = places.iter().find_map(|bin| {
        let facts = FAMILIES.iter().find(|facts| marked(facts, bin))?;
        Some(peer(facts.family, bin.join("mpiexec")))
    });
    peer.ok_or_else(|| {
        let text = format!(
            "'{word}' contains no mpiexec of Open MPI, MPICH or Intel MPI (recognised by ompi_info, mpichversion or impi_info next to it)"
        );
        Verdict::new(NOT_FOUND, text)
    })
}

fn missing(facts: &Facts) -> Verdict {
    let text = format!(
        "{} is not found: neither {} nor an mpiexec beside {} is on PATH; name its directory with --with DIR",
        facts.name, facts.own, facts.marks[0]
    );
    Verdict::new(NOT_FOUND, text)
}

fn of_family(facts: &Facts, read: &dyn Fn(&str) -> Option<OsString>) -> Option<Peer> {
    let path = read("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let roots = facts.roots.iter().filter_map(|name| read(name));
    places.extend(roots.map(|root| Path::new(&root).join("bin")));
    places.extend(facts.usual.iter().map(PathBuf::from));
    places.iter().find_map(|bin| {
        let own = bin.join(facts.own);
        let file = match kw_sys::process::executable(&own) {
            true => own,
            false => bin.join("mpiexec"),
        };
        let good = file.ends_with(facts.own) || marked(facts, bin);
        good.then(|| peer(facts.family, file))
    })
}

/// Whether a directory has the mpiexec of a family and of no other.
fn marked(facts: &Facts, bin: &Path) -> bool {
    let mark = |name: &&str| kw_sys::process::executable(&bin.join(name));
    mark(&"mpiexec") && facts.marks.iter().any(mark) && !shared(bin)
}

/// Whether several MPIs have their commands there, so that such a command does not identify
/// `mpiexec`.
fn shared(bin: &Path) -> bool {
    FAMILIES.iter().any(|facts| bin.join(facts.own).exists())
}

fn peer(family: Family, mpiexec: PathBuf) -> Peer {
    let root = mpiexec.parent().and_then(Path::parent);
    let root = root.map(PathBuf::from).unwrap_or_default();
    let arch = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let places = ["lib", "lib64", "lib/release", &arch];
    let has_mpi = |dir: &PathBuf| {
        let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names = files.map(|file| file.file_name());
        names.any(|name| name.to_string_lossy().starts_with("libmpi"))
    };
    let dirs = places.iter().map(|place| root.join(place));
    let mut libraries: Vec<PathBuf> = dirs.filter(has_mpi).collect();
    // lib64 may be a link to lib
    libraries.dedup_by_key(|dir| dir.canonicalize().ok());
    Peer {
        family,
        root,
        mpiexec,
        libraries,
    }
}

/// Whether a program can run on a peer.
fn fits(peer: &Peer, program: &Path) -> Result<(), Verdict> {
    let name = facts(peer.family).name;
    let refuse = |why: String| {
        let text = format!("'{}' {why}", program.display());
        Err(Verdict::new(CANNOT_EXECUTE, text))
    };
    let wrappers = peer.root.join("bin");
    let how = format!("compile it with the mpicc in {}", wrappers.display());
    let (abi, needed) = match libraries::compiled_for(program) {
        Err(why) => return refuse(why),
        Ok(None) => return Ok(()),
        Ok(Some(found)) => found,
    };
    let open = peer.family == Family::OpenMpi;
    match abi {
        CompiledFor::OpenMpi if !open => {
            return refuse(format!("was compiled for Open MPI, not for {name}: {how}"));
        }
        CompiledFor::Mpich if open => {
            return refuse(format!(
                "was compiled for MPICH's ABI, not for {name}: {how}"
            ));
        }
        _ => {}
    }
    let lies = |file: &&String| peer.libraries.iter().any(|dir| dir.join(file).exists());
    match needed.iter().find(|file| !lies(file)) {
        Some(file) => refuse(format!(
            "needs {file}, which this {name} does not have: {how}"
        )),
        None => Ok(()),
    }
}

/// Search path of libraries: the peer's first, Kittiwake's never.
fn search_path(peer: &Peer, ours: &[AbiShim], before: Option<OsString>) -> OsString {
    let of_system = |dir: &Path| dir.starts_with("/usr/lib") || dir.starts_with("/usr/lib64");
    let mut dirs: Vec<PathBuf> = peer.libraries.clone();
    if peer.family == Family::Intel {
        dirs.push(peer.root.join("opt/mpi/libfabric/lib"));
    }
    dirs.retain(|dir| !of_system(dir) && dir.is_dir());
    let before = before.unwrap_or_default();
    let own = |dir: &PathBuf| ours.iter().any(|shim| shim.dir == *dir);
    let before = std::env::split_paths(&before).filter(|dir| !dir.as_os_str().is_empty());
    dirs.extend(before.filter(|dir| !own(dir)));
    let words: Vec<OsString> = dirs.into_iter().map(OsString::from).collect();
    words.join(OsStr::new(":"))
}

/// Refuses options that the peer has no equivalent of.
fn can_say(peer: &Peer, request: &Request) -> Result<(), Verdict> {
    let open = peer.family == Family::OpenMpi;
    let asked = [
        ("--rendezvous", request.rendezvous.is_some()),
        ("--rank", request.rank.is_some()),
        ("--end-hung", request.end_hung),
        ("--profile", request.profile),
        ("--trace", request.trace.is_some()),
        ("--wrap", !request.wraps.is_empty()),
        ("--debug", request.debug.is_some()),
        ("-envnone", request.bare && open),
        ("--prefix", request.prefix.is_some() && !open),
    ];
    let Some((option, _)) = asked.iter().find(|(_, asked)| *asked) else {
        return Ok(());
    };
    let name = facts(peer.family).name;
    let text = format!("{option} means nothing to {name}: leave it out with --with");
    Err(Verdict::misuse(text))
}

/// The arguments of the peer's mpiexec.
fn words(peer: &Peer, request: &Request) -> Result<Vec<OsString>, Verdict> {
    can_say(peer, request)?;
    let open = peer.family == Family::OpenMpi;
    let mut out = Words::default();
    if open {
        // defaults of Kittiwake and the others
        out.say(&["--oversubscribe", "--allow-run-as-root"]);
    }
    for words in &request.unheeded {
        out.0.extend(words.iter().map(OsString::from));
    }
    if request.label {
        out.say(&[if open {
            "--tag-output"
        } else {
            "-prepend-rank"
        }]);
    }
    if let Some(time) = request.timeout {
        let seconds = time.as_secs_f64().ceil().to_string();
        match open {
            true => out.say(&["--timeout", &seconds]),
            false => out.say(&["-genv", "MPIEXEC_TIMEOUT", &seconds]),
        }
    }
    let binding = match request.bind {
        Binding::Auto => None,
        Binding::None => Some("none"),
        Binding::Core | Binding::Cores(_) | Binding::Over(_, Unit::Core) => Some("core"),
        Binding::Thread | Binding::Over(_, Unit::Thread) => Some("hwthread"),
        Binding::To(part) | Binding::Over(part, _) => Some(part.word()),
    };
    if let Some(binding) = binding {
        out.say(&["--bind-to", binding]);
    }
    match request.bind {
        Binding::Over(part, _) => out.say(&["--map-by", part.word()]),
        Binding::Cores(n) if open => out.say(&["--map-by", &format!("slot:PE={n}")]),
        _ => {}
    }
    out.hosts(request, open);
    for (name, value) in &request.env {
        out.variable(open, "-genv", name, value);
    }
    for name in &request.pass {
        match open {
            true => out.0.extend(["-x".into(), name.clone()]),
            false => out.0.extend(["-genvlist".into(), name.clone()]),
        }
    }
    if request.bare {
        out.say(&["-genvnone"]);
    }
    for (at, app) in request.apps.iter().enumerate() {
        if at > 0 {
            out.say(&[":"]);
        }
        out.app(app, request, open);
    }
    Ok(out.0)
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn say(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn hosts(&mut self, request: &Request, open: bool) {
        if !request.hosts.is_empty() {
            let hosts = request.hosts.iter();
            let list: Vec<_> = hosts.map(|h| format!("{}:{}", h.name, h.slots)).collect();
            self.say(&[if open { "--host" } else { "-hosts" }, &list.join(",")]);
        }
        match (request.per_host, request.places.order) {
            (Some(n), _) if open => self.say(&["--map-by", &format!("ppr:{n}:node")]),
            (Some(n), _) => self.say(&["-ppn", &n.to_string()]),
            (None, Order::Node) if open => self.say(&["--map-by", "node"]),
            (None, Order::Node) => self.say(&["-ppn", "1"]),
            (None, Order::Slot) => {}
        }
        if let Some(ssh) = &request.ssh {
            match open {
                true => self.say(&["--mca", "plm_rsh_agent", ssh]),
                false => self.say(&["-launcher-exec", ssh]),
            }
        }
        if let Some(prefix) = &request.prefix {
            self.0.extend(["--prefix".into(), prefix.clone()]);
        }
    }

    fn variable(&mut self, open: bool, option: &str, name: &OsStr, value: &OsStr) {
        if !open {
            self.0.extend([option.into(), name.into(), value.into()]);
            return;
        }
        let mut both = name.to_os_string();
        both.push("=");
        both.push(value);
        self.0.extend(["-x".into(), both]);
    }

    fn app(&mut self, app: &App, request: &Request, open: bool) {
        // one rank if no hosts are given, as here: the others may take all processors
        let default = request.hosts.is_empty().then_some(1);
        if let Some(count) = app.count.or(default) {
            self.say(&["-n", &count.to_string()]);
        }
        if let Some(dir) = &app.dir {
            self.0.extend(["-wdir".into(), dir.clone()]);
        }
        for (name, value) in &app.env {
            self.variable(open, "-env", name, value);
        }
        self.0.extend(app.words.iter().cloned());
    }
}

/// A command as one could type it.
fn command_line(command: &Command) -> String {
    let quoted = |word: &OsStr| remote::quoted(&word.to_string_lossy());
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let all: Vec<_> = set.chain(words.map(quoted)).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    fn converted(family: Family, line: &str) -> Result<String, String> {
        let words_in = line.split_whitespace().map(OsString::from).collect();
        let Ok(args::Command::Run(request)) = args::parse(words_in) else {
            return Err(format!("{line} is not a job"));
        };
        let peer = Peer {
            family,
            root: "/opt/peer".into(),
            mpiexec: "/opt/peer/bin/mpiexec".into(),
            libraries: Vec::new(),
        };
        let out = words(&peer, &request).map_err(|v| v.sentence)?;
        let out: Vec<_> = out.iter().map(|w| w.to_string_lossy()).collect();
        Ok(out.join(" "))
    }

    #[test]
    fn options_are_translated_to_those_of_the_other() {
        let always = "--oversubscribe --allow-run-as-root";
        for (line, hydra, open) in [
            ("./a -n 3", "-n 1 ./a -n 3", "-n 1 ./a -n 3"),
            (
                "-n 2 -env A 1 ./a : -n 1 -wdir /tmp ./b",
                "-n 2 -env A 1 ./a : -n 1 -wdir /tmp ./b",
                "-n 2 -x A=1 ./a : -n 1 -wdir /tmp ./b",
            ),
            (
                "-l --bind thread --timeout 1.5 -genv B 2 -x C -n 4 ./a",
                "-prepend-rank -genv MPIEXEC_TIMEOUT 2 --bind-to hwthread -genv B 2 -genvlist C -n 4 ./a",
                "--tag-output --timeout 2 --bind-to hwthread -x B=2 -x C -n 4 ./a",
            ),
            (
                "--hosts a:2,b --map-by node --ssh rsh ./a",
                "-hosts a:2,b:1 -ppn 1 -launcher-exec rsh ./a",
                "--host a:2,b:1 --map-by node --mca plm_rsh_agent rsh ./a",
            ),
            (
                "-ppn 2 --mca btl tcp,self -n 4 ./a",
                "--mca btl tcp,self -ppn 2 -n 4 ./a",
                "--mca btl tcp,self --map-by ppr:2:node -n 4 ./a",
            ),
        ] {
            assert_eq!(converted(Family::Mpich, line).unwrap(), hydra);
            assert_eq!(converted(Family::Intel, line).unwrap(), hydra);
            assert_eq!(
                converted(Family::OpenMpi, line).unwrap(),
                format!("{always} {open}")
            );
        }
    }

    #[test]
    fn what_the_other_does_not_have_is_named() {
        for (family, line, option) in [
            (Family::Mpich, "--end-hung ./a", "--end-hung"),
            (Family::OpenMpi, "--profile ./a", "--profile"),
            (Family::Mpich, "--prefix /opt ./a", "--prefix"),
            (Family::OpenMpi, "-envnone ./a", "-envnone"),
            (Family::Intel, "-n 2 --rendezvous h:1 ./a", "--rendezvous"),
        ] {
            let fault = converted(family, line).unwrap_err();
            assert!(
                fault.starts_with(option) && fault.contains(facts(family).name),
                "{fault}"
            );
        }
    }

    #[test]
    fn our_libraries_are_out_of_the_way() {
        let peer = Peer {
            family: Family::Mpich,
            root: "/usr".into(),
            mpiexec: "/usr/bin/mpiexec.mpich".into(),
            libraries: vec!["/usr/lib/x86_64-linux-gnu".into(), "/".into()],
        };
        let ours = AbiShim {
            file: "libmpi.so.12".into(),
            dir: "/opt/kittiwake/lib/mpich".into(),
        };
        let before = Some("/opt/kittiwake/lib/mpich:/m".into());
        assert_eq!(search_path(&peer, &[ours], before), "/:/m");
    }
}
