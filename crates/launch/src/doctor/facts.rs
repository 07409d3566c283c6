//! The system's answers about itself: collected here, judged in [`super::checks`].

use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use kw_base::calibration::Part;
use kw_base::settings::{self, Settings};
use kw_sys::netif::Interface;
use kw_sys::{control_group, cpus, huge_pages, memfd, pidfd, process_vm};
use rustix::process::{Resource, getrlimit};

use crate::libraries;

/// Time limit for the resolver.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of clock readings that are timed.
const READINGS: u32 = 10_000;
/// The option with which a second process of this program reads a word of the first.
pub const READER: &str = "--doctor-reads";
/// Launchers that jobs may be started by.
const LAUNCHERS: [&str; 6] = [
    "srun",
    "prterun",
    "mpiexec.hydra",
    "flux",
    "orterun",
    "aprun",
];
/// Compilers, their wrappers, and ssh: commands that other commands call.
const COMMANDS: [&str; 5] = ["cc", "c++", "gfortran", "ssh", "gdb"];
/// Files of an installation that some feature needs.
const INSTALLED: [&str; 6] = [
    "bin/mpiexec",
    "bin/mpicc",
    "include/mpi.h",
    "lib/libmpi_abi.so.1",
    "lib/mpich/libmpi.so.12",
    "lib/openmpi/libmpi.so.40",
];

/// Answer of the resolver for this host's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// These addresses.
    To(Vec<IpAddr>),
    /// An error, in the resolver's words.
    No(String),
    /// No answer in time.
    Silent,
}

/// Whether a process can read the memory of another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Copying {
    /// It can.
    Works,
    /// The kernel refuses, with this error.
    Refused(String),
    /// It could not be tried, for this reason.
    Untried(String),
}

/// All facts that the checks use.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Name of this host.
    pub host: String,
    /// The distribution, as it names itself.
    pub system: String,
    /// The kernel and its version.
    pub kernel: String,
    /// The C library and its version.
    pub libc: String,
    /// Whether the C library has what some features need (glibc 2.35).
    pub libc_has_all: bool,
    /// The processor's name.
    pub processor: String,
    /// Processors that ranks may run on; `None`: the system does not say.
    pub allowed: Option<usize>,
    /// CPU time that a control group allows, in processors.
    pub quota: Option<f64>,
    /// Frequency governor of the processors.
    pub governor: Option<String>,
    /// Bytes of memory that may be used.
    pub memory: u64,
    /// Result of the attempt to make a shared segment.
    pub segment: Result<(), String>,
    /// Size limit of a file in bytes, `u64::MAX` without a limit.
    pub most_of_file: u64,
    /// Limit of a process's address space in bytes, `u64::MAX` without a limit.
    pub most_of_addresses: u64,
    /// Copies between processes.
    pub copying: Copying,
    /// Yama's setting (0 to 3), if the kernel has Yama.
    pub ptrace_scope: Option<u32>,
    /// Whether a filter of system calls is on.
    pub filtered: bool,
    /// Soft and hard limit of open files of this process; `None`: unlimited.
    pub files: (Option<u64>, Option<u64>),
    /// Limit of the user's processes and threads, which does not apply to root.
    pub processes: Option<u64>,
    /// Processes and threads that a control group allows.
    pub tasks: Option<u64>,
    /// Limit of locked memory of a process in bytes.
    pub locked: Option<u64>,
    /// Whether the end of another process can be watched.
    pub watch: bool,
    /// Whether the kernel fences other processes (membarrier).
    pub fence: bool,
    /// The kernel's clock source.
    pub clock: String,
    /// Whether the processor's counter runs at a constant rate.
    pub counter: bool,
    /// Cost of a clock reading in nanoseconds.
    pub clock_price: u64,
    /// The kernel's policy for huge pages.
    pub huge_pages: huge_pages::Policy,
    /// The addresses of interfaces that are up.
    pub interfaces: Vec<Interface>,
    /// This host's name.
    pub resolved: Resolved,
    /// Launchers on PATH.
    pub launchers: Vec<String>,
    /// Other commands with their paths.
    pub commands: Vec<(&'static str, Option<PathBuf>)>,
    /// Directory of this installation.
    pub home: Option<PathBuf>,
    /// Files that are missing in it.
    pub missing: Vec<String>,
    /// The mpiexec and the mpicc on PATH that precede this installation's.
    pub before: Vec<PathBuf>,
    /// A directory of LD_LIBRARY_PATH with another library of the standard ABI.
    pub other_library: Option<PathBuf>,
    /// Unknown variables and invalid values: sentences.
    pub variables: Vec<String>,
    /// The calibration of this host: its file, or why there is none; and whether it exists.
    pub figures: Result<(PathBuf, bool), String>,
}

impl Facts {
    /// Collects the facts. Takes as long as the resolver does, and some milliseconds.
    pub fn gather() -> Facts {
        let home = libraries::home().ok();
        let missing = |f: &&&str| home.as_ref().is_none_or(|h| !h.join(f).exists());
        Facts {
            host: kw_sys::host::name(),
            system: system(),
            kernel: kernel(),
            libc: libc(),
            libc_has_all: kw_sys::host::glibc() >= Some(libraries::CHEAP_AUDIT),
            processor: processor(),
            allowed: cpus::are_known().then(|| cpus::allowed().len()),
            quota: cpus::quota().map(|q| q.amount),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory: kw_sys::mem::usable(),
            segment: segment(),
            most_of_file: memfd::most_of_file(),
            most_of_addresses: memfd::most_of_addresses(),
            copying: copying(),
            ptrace_scope: line("/proc/sys/kernel/yama/ptrace_scope").and_then(|s| s.parse().ok()),
            filtered: status("Seccomp").is_some_and(|mode| mode != "0"),
            files: limits(Resource::Nofile),
            processes: limits(Resource::Nproc)
                .0
                .filter(|_| kw_sys::host::user() != 0),
            tasks: tasks(),
            locked: limits(Resource::Memlock).0,
            watch: watches(),
            fence: kw_sys::membarrier::register(),
            clock: line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .unwrap_or_default(),
            counter: kw_sys::ticks::counter_counts_time(),
            clock_price: clock_price(),
            huge_pages: huge_pages::Policy::here(),
            interfaces: kw_sys::netif::interfaces().unwrap_or_default(),
            resolved: resolve(kw_sys::host::name()),
            launchers: LAUNCHERS
                .map(String::from)
                .into_iter()
                .filter(|l| on_path(l).is_some())
                .collect(),
            commands: COMMANDS.map(|c| (c, on_path(c))).to_vec(),
            missing: INSTALLED
                .iter()
                .filter(missing)
                .map(|f| f.to_string())
                .collect(),
            before: home.as_deref().map(before).unwrap_or_default(),
            other_library: home.as_deref().and_then(other_library),
            home,
            variables: variables(),
            figures: figures(),
        }
    }
}

/// The first line of a file, if it can be read.
fn line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_string())
}

/// The value of a name in this process's /proc/self/status.
fn status(name: &str) -> Option<String> {
    kw_sys::process::status(std::process::id(), name).filter(|value| !value.is_empty())
}

/// The value of a name in lines of `name SEPARATOR value`.
fn value(text: &str, name: &str, separator: &str) -> Option<String> {
    let found = text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().trim_matches('"').to_string())
    });
    found.filter(|v| !v.is_empty())
}

fn system() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    value(&text, "PRETTY_NAME", "=").unwrap_or_else(|| "a system without a name".into())
}

fn kernel() -> String {
    let own = rustix::system::uname();
    let words = [own.sysname(), own.release(), own.machine()];
    words.map(|w| w.to_string_lossy().into_owned()).join(" ")
}

fn libc() -> String {
    match kw_sys::host::glibc() {
        Some((major, minor)) => format!("glibc {major}.{minor}"),
        None => "a C library other than glibc".into(),
    }
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names = ["model name", "Model", "cpu model", "uarch"];
    let found = names.iter().find_map(|name| value(&text, name, ":"));
    found.unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

fn segment() -> Result<(), String> {
    use std::os::fd::AsFd;
    const LEN: usize = 1 << 20;
    let made = memfd::create(LEN).and_then(|fd| memfd::Mapping::of(fd.as_fd(), LEN, LEN));
    made.map(drop).map_err(|e| e.to_string())
}

/// Makes a second process of this program read a word of this one, as ranks do.
fn copying() -> Copying {
    let word = Box::new(u64::from_ne_bytes(*b"kwdoctor"));
    let address = std::ptr::from_ref(&*word) as u64;
    let Ok([own, as_word, kwinfo]) = crate::libraries::own_words("kwinfo") else {
        return Copying::Untried("the path of this program is unknown".into());
    };
    let reader = Command::new(own)
        .args([&as_word, &kwinfo, READER])
        .arg(format!("{}:{address}", std::process::id()))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match reader {
        Err(e) => Copying::Untried(e.to_string()),
        Ok(out) => match String::from_utf8_lossy(&out.stdout).trim() {
            answer if answer == word.to_string() => Copying::Works,
            "" => Copying::Untried("the second process said nothing".into()),
            answer => Copying::Refused(answer.to_string()),
        },
    }
}

/// Output of the second process that is to read at `PID:ADDRESS`: the word, or an error.
pub fn read_for_first(place: &str) -> String {
    let numbers = place.split_once(':');
    let numbers = numbers.and_then(|(pid, at)| Some((pid.parse().ok()?, at.parse().ok()?)));
    let Some((pid, address)) = numbers else {
        return format!("'{place}' is not a place in a process");
    };
    match process_vm::read_word(pid, address) {
        Ok(word) => word.to_string(),
        Err(errno) => std::io::Error::from_raw_os_error(errno).to_string(),
    }
}

/// Whether the end of a process can be watched, tried on this process.
fn watches() -> bool {
    let watched = pidfd::Ends::new().ok().and_then(|mut ends| {
        let own = ends.own()?;
        Some(ends.watch(0, own))
    });
    watched == Some(pidfd::Watched::Yes)
}

fn limits(of: Resource) -> (Option<u64>, Option<u64>) {
    let now = getrlimit(of);
    (now.current, now.maximum)
}

/// The lowest limit of tasks in the control groups.
fn tasks() -> Option<u64> {
    fn read(dir: &Path) -> Option<f64> {
        let text = std::fs::read_to_string(dir.join("pids.max")).ok()?;
        text.trim().parse().ok()
    }
    control_group::tightest("pids", read, read).map(|l| l.amount as u64)
}

fn clock_price() -> u64 {
    let start = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(kw_sys::clock::now());
    }
    start.elapsed().as_nanos() as u64 / u64::from(READINGS)
}

fn resolve(name: String) -> Resolved {
    let (tell, hear) = mpsc::channel();
    // A resolver that hangs keeps its thread; this process ends without it.
    std::thread::spawn(move || {
        let found = (name.as_str(), 0).to_socket_addrs();
        let found = found.map(|all| all.map(|a| a.ip()).collect::<Vec<_>>());
        let _ = tell.send(found);
    });
    match hear.recv_timeout(PATIENCE) {
        Ok(Ok(mut all)) => {
            all.dedup();
            Resolved::To(all)
        }
        Ok(Err(e)) => Resolved::No(e.to_string()),
        Err(_) => Resolved::Silent,
    }
}

/// The first command of this name on PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|dir| dir.join(name));
    all.find(|file| file.is_file() && kw_sys::process::executable(file))
}

/// Commands of others that come before ours on PATH.
fn before(home: &Path) -> Vec<PathBuf> {
    let bin = home.join("bin");
    let ours = |file: &Path| {
        let real = file.canonicalize().unwrap_or_else(|_| file.into());
        real.starts_with(&bin)
    };
    let first = ["mpiexec", "mpicc"].into_iter().filter_map(on_path);
    first.filter(|file| !ours(file)).collect()
}

/// Another library of the standard ABI that programs would load.
fn other_library(home: &Path) -> Option<PathBuf> {
    let name = "libmpi_abi.so.1";
    let own = home.join("lib").join(name).canonicalize().ok();
    let path = std::env::var_os("LD_LIBRARY_PATH")?;
    let mut all = std::env::split_paths(&path).map(|dir| dir.join(name));
    let first = all.find(|file| file.is_file())?;
    (first.canonicalize().ok() != own).then_some(first)
}

fn variables() -> Vec<String> {
    let bad = Settings::read(kw_sys::environment::variable).err();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = names.filter_map(|name| settings::misspelt(&name));
    bad.map(|b| b.to_string())
        .into_iter()
        .chain(unknown)
        .collect()
}

fn figures() -> Result<(PathBuf, bool), String> {
    use kw_sys::calibration;
    let path = calibration::path(Part::Host).map_err(|why| why.to_string())?;
    let there = calibration::load(Part::Host).is_ok();
    match there || may_be_written(&path) {
        true => Ok((path, there)),
        false => Err(format!("{} cannot be written", path.display())),
    }
}

/// Whether a file could be created at a path, judged by the nearest existing directory above it.
fn may_be_written(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let above = path.ancestors().skip(1).find(|dir| dir.exists());
    above.is_some_and(|dir| dir.is_dir() && access(dir, Access::WRITE_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_names() {
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nEMPTY=\n";
        let found = value(text, "PRETTY_NAME", "=");
        assert_eq!(found.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(value(text, "EMPTY", "="), None);
        assert_eq!(value(text, "VERSION", "="), None);
    }

    #[test]
    fn what_another_process_is_asked_must_be_a_place() {
        assert_eq!(read_for_first("7"), "'7' is not a place in a process");
        let word = 4711u64;
        let place = format!(
            "{}:{}",
            std::process::id(),
            std::ptr::from_ref(&word) as u64
        );
        assert_eq!(read_for_first(&place), "4711");
    }

    #[test]
    fn a_file_can_be_made_where_the_directory_above_allows_it() {
        let here = std::env::temp_dir().join("kittiwake-none/deeper/file");
        assert!(may_be_written(&here));
        assert!(!may_be_written(Path::new("/proc/version/none")));
    }
}
