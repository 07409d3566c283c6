//! How an mpiexec is started for processes that are spawned: the one of this library, on the host
//! of the root.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use kw_base::spawned::{PARENT, PARENT_PORT};

/// Processes of one program.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Program {
    /// Name or path.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Number of processes that are started.
    pub count: u32,
    /// Number that the program requests at most (`maxprocs`); `soft` can make `count` smaller.
    pub most: u32,
    /// Working directory.
    pub wdir: Option<String>,
    /// Directories in which the program is searched.
    pub path: Option<String>,
    /// Variables of the environment.
    pub env: Vec<(String, String)>,
    /// Options of mpiexec for the whole job, each with its value.
    pub options: Vec<(&'static str, String)>,
}

/// Variables that an mpiexec, or another launcher, set for this process alone.
const OWN: [&str; 12] = [
    "PMI_",
    "PMIX_",
    "MPIEXEC_",
    "OMPI_",
    "PRTE_",
    "HYDI_",
    "KW_RENDEZVOUS",
    "KW_SIZE",
    "KW_RANK",
    "KW_KEY",
    "KW_TRACE",
    "KW_PROFILE",
];

/// The arguments of mpiexec.
pub fn arguments(programs: &[Program]) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let options = || programs.iter().flat_map(|p| &p.options);
    let binding = ["--host", "--hostfile", "--bind", "--map-by"];
    if !options().any(|(name, _)| binding.contains(name)) {
        // They share the processors with their parents, and have them while the parents wait.
        args.extend(["--bind".into(), "none".into()]);
    }
    let mut given = Vec::new();
    for (name, value) in options() {
        // Of several programs the first that gives an option for the job determines it.
        if !given.contains(name) {
            args.extend([name.into(), value.into()]);
            given.push(*name);
        }
    }
    for (i, program) in programs.iter().enumerate() {
        if i > 0 {
            args.push(":".into());
        }
        args.extend(["-n".into(), program.count.to_string().into()]);
        if let Some(dir) = &program.wdir {
            args.extend(["--wdir".into(), dir.into()]);
        }
        for (name, value) in &program.env {
            args.extend(["--env".into(), format!("{name}={value}").into()]);
        }
        args.push(command(program));
        args.extend(program.args.iter().map(OsString::from));
    }
    args
}

/// The program, searched in `path`.
fn command(program: &Program) -> OsString {
    let dirs = program.path.iter().flat_map(|p| p.split([':', ';', ',']));
    let mut found = dirs.map(|dir| Path::new(dir).join(&program.command));
    match found.find(|p| p.is_file()) {
        Some(path) => path.into(),
        None => program.command.clone().into(),
    }
}

/// The mpiexec beside this library, or the one on PATH.
fn mpiexec() -> PathBuf {
    let library = PathBuf::from(kw_sys::callers::own_file());
    let beside = library.parent().and_then(Path::parent);
    let own = beside.map(|dir| dir.join("bin/mpiexec"));
    own.filter(|p| p.is_file())
        .unwrap_or_else(|| "mpiexec".into())
}

/// Starts the processes for `parent`; they find the port in their environment. The mpiexec reads its
/// standard input, whose other end is returned (see [`kw_base::spawned`]).
pub fn start(
    programs: &[Program],
    port: &str,
    parent: &str,
) -> Result<(Child, UnixStream), String> {
    let mpiexec = mpiexec();
    let failed = |e| {
        format!(
            "{} cannot be started: {e}; the mpiexec of this library starts processes under every launcher, so put it beside the library (bin/mpiexec) or on PATH",
            mpiexec.display()
        )
    };
    let (line, theirs) = UnixStream::pair().map_err(failed)?;
    let own = |name: &str| OWN.iter().any(|own| name.starts_with(own));
    let mut command = Command::new(&mpiexec);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(own) {
            command.env_remove(name);
        }
    }
    command
        .args(arguments(programs))
        .env(PARENT_PORT, port)
        .env(PARENT, parent)
        // An interrupt from a terminal or of a notebook's cell is for the parent; they end with it.
        .process_group(0)
        .stdin(OwnedFd::from(theirs));
    Ok((command.spawn().map_err(failed)?, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_become_the_arguments_of_one_mpiexec() {
        let first = Program {
            command: "./solver".into(),
            args: vec!["-x".into(), "a b".into()],
            count: 2,
            most: 2,
            wdir: Some("/data".into()),
            path: None,
            env: vec![("A".into(), "1".into())],
            options: vec![("--host", "one,two".into())],
        };
        let second = Program {
            command: "viewer".into(),
            count: 1,
            options: vec![("--host", "three".into()), ("--ppn", "2".into())],
            ..Program::default()
        };
        let args = arguments(&[first, second]);
        let args: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
        let wanted =
            "--host one,two --ppn 2 -n 2 --wdir /data --env A=1 ./solver -x|a b|: -n 1 viewer";
        let wanted: Vec<&str> = wanted
            .split('|')
            .flat_map(|part| match part {
                "a b" => vec![part],
                _ => part.split(' ').collect(),
            })
            .collect();
        assert_eq!(args, wanted);
        let alone = arguments(&[Program {
            command: "viewer".into(),
            count: 3,
            ..Program::default()
        }]);
        assert_eq!(alone, ["--bind", "none", "-n", "3", "viewer"]);
    }

    #[test]
    fn a_program_is_looked_for_where_the_info_says() {
        let program = |path: &str| Program {
            command: "sh".into(),
            path: Some(path.into()),
            ..Program::default()
        };
        assert_eq!(command(&program("/nowhere:/bin")), "/bin/sh");
        assert_eq!(command(&program("/nowhere")), "sh");
    }
}
