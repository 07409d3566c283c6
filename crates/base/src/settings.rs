//! Every setting of the library, declared once: the environment, MPI_T, `kwinfo` and the
//! documentation read this table.
//!
//! Values are read from a lookup function (the process environment in production, a map in tests)
//! exactly once, when a rank or the launcher starts. No other code reads the environment;
//! `kw_sys::environment` does so, and drops values that a program with elevated privileges must not
//! trust ([`Kind::File`]).

use crate::components::Component;

/// Type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Text that may name a file, a library or a command. Ignored in a program with elevated
    /// privileges (set-user-ID).
    File,
    /// Text that is never shown.
    Secret,
    /// `0`/`1`, `no`/`yes`, `off`/`on`, `false`/`true`.
    Bool,
    /// A whole number.
    Count,
    /// Bytes, with optional `K`, `M`, `G` (powers of 1024).
    Bytes,
    /// Microseconds.
    Micros,
    /// Seconds, with a fraction; 0 is never.
    Seconds,
    /// A port, or the first and the last of a range.
    Ports,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// When a setting may be changed through MPI_T (the environment is read when MPI starts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never: set in the environment only.
    Never,
    /// Until MPI is initialised.
    BeforeInit,
    /// At any time, with immediate effect.
    Anytime,
}

/// The ranks that must agree on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Each rank has its own.
    Local,
    /// All ranks of a host must have the same.
    Host,
    /// All ranks must have the same.
    Alike,
}

/// Audience of a setting or counter (MPI 5.0, 15.3.1: users, tuners, MPI developers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users who run programs.
    User,
    /// Users who tune them.
    Tuner,
    /// Developers of the library.
    Developer,
}

/// One declared setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Environment variable, `KW_*`.
    pub name: &'static str,
    /// How its text is read.
    pub kind: Kind,
    /// Default, as text.
    pub default: &'static str,
    /// Description for users, unit included.
    pub help: &'static str,
    /// Effect on memory use, or "none".
    pub memory: &'static str,
    /// Group in which it is listed.
    pub component: Component,
    /// When MPI_T may change it.
    pub when: When,
    /// The ranks that must have the same value.
    pub reach: Reach,
    /// Intended audience.
    pub audience: Audience,
}

/// Values of `KW_LOG`; each level includes those before it.
pub const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

/// Values of `KW_PMI`.
pub const LAUNCHER_WORDS: &[&str] = &["auto", "pmi1", "pmi2", "pmix"];

impl Kind {
    /// Whether the value is text of any kind.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::File | Kind::Secret | Kind::Ports)
    }
}

impl Setting {
    /// Whether the text is `auto` and the setting accepts `auto`.
    pub fn is_auto(&self, text: &str) -> bool {
        text == "auto" && self.default == "auto"
    }
}

macro_rules! settings {
    ($($id:ident = $name:literal, $kind:expr, $default:literal, $help:literal, $memory:literal,
        $component:ident, $when:ident, $reach:ident, $audience:ident;)*) => {
        /// The declared settings, in the order they are printed.
        pub const ALL: &[Setting] = {
            use Kind::*;
            &[$(Setting {
                name: $name,
                kind: $kind,
                default: $default,
                help: $help,
                memory: $memory,
                component: Component::$component,
                when: When::$when,
                reach: Reach::$reach,
                audience: Audience::$audience,
            }),*]
        };
        /// Names a setting of [`ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Id { $($id),* }
    };
}

/// The networks that [`Id::Paths`] may name; `kw-networks` opens them.
pub const NETWORKS: [&str; 2] = ["tcp", "udp"];

settings! {
    Paths = "KW_PATHS", Text, "self,shm,tcp", "Transports that may be used, comma separated: self, shm, tcp, udp. Of tcp and udp, only the first one named is used.", "none", Paths, BeforeInit, Alike, User;
    Spin = "KW_SPIN", Micros, "auto", "How long a waiting thread polls before it sleeps (up to 1 ms longer while a local peer reads data that this rank has sent). auto is 64 times the measured cost of waking a thread, about 1 ms (kwinfo --choices). The thread yields between polls after four wake-up times, or from the first poll on if ranks outnumber cores. With auto, a waiting rank that shares its CPU with an unrelated compute-bound process sleeps at once; if that process also sleeps now and then, the rank yields between polls.", "none", Progress, Anytime, Local, User;
    EventThread = "KW_EVENT_THREAD", Bool, "yes", "Run a progress thread that serves communication while the program computes.", "one thread stack", Progress, Anytime, Local, User;
    Watch = "KW_WATCH", Micros, "50", "How long no thread must have been inside MPI before the progress thread takes over. The progress thread checks this periodically, at intervals that double up to 64 times this value, and uses at most 0.25 % of a CPU for these checks (a quarter of that when ranks share CPUs). When a program has been seen to stay outside MPI for long, the thread takes over without a check until the program returns sooner too often. Eager messages never cause an immediate takeover.", "none", Progress, Anytime, Local, Tuner;
    Write = "KW_WRITE", Bool, "yes", "Use the receiver-initiated write protocol (SR mode in the papers; off is NSR).", "none", Protocols, Anytime, Local, Tuner;
    SingleCopy = "KW_SINGLE_COPY", Bool, "yes", "Copy large messages between local ranks with process_vm_readv where the kernel permits it.", "none", Protocols, Anytime, Local, Tuner;
    EagerShm = "KW_EAGER_SHM", Bytes, "auto", "Largest message sent eagerly over shared memory; auto uses the host's calibration (kwinfo --choices).", "unexpected messages up to this size are buffered", Protocols, Anytime, Local, Tuner;
    EagerTcp = "KW_EAGER_TCP", Bytes, "auto", "Largest message sent eagerly over TCP; auto uses the host's calibration and the round trip and rate of the connection (kwinfo --choices).", "unexpected messages up to this size are buffered", Protocols, Anytime, Local, Tuner;
    EagerUdp = "KW_EAGER_UDP", Bytes, "auto", "Largest message sent eagerly over UDP; auto uses the host's calibration (kwinfo --choices).", "unexpected messages up to this size are buffered", Protocols, Anytime, Local, Tuner;
    Unexpected = "KW_UNEXPECTED", Bytes, "32M", "Maximum bytes of unexpected messages, queue entries included, that a rank buffers before it pauses the senders; 0 is no limit.", "up to this much, plus messages in flight", Matching, Anytime, Local, User;
    KeepFreed = "KW_KEEP_FREED", Bytes, "auto", "Amount of freed heap memory that malloc keeps instead of returning it to the kernel (sets M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of the GNU C library; blocks up to half this size, and at most 32 MB, come from the heap). auto is 1/16 of the host's memory or cgroup limit, divided among the ranks of the host; 0 leaves malloc unchanged. Ignored if MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES or mallopt has set the threshold.", "up to this much freed memory, or 64 MB if malloc has raised its threshold by itself", Start, BeforeInit, Local, User;
    HugePages = "KW_HUGE_PAGES", Bool, "no", "Make malloc of the GNU C library (2.35 and later) request huge pages if transparent_hugepage is madvise and one huge page per rank is at most 1/256 of the host's memory: mpiexec adds glibc.malloc.hugetlb=1 to the ranks' GLIBC_TUNABLES unless it is set there. Programs that touch much memory gain; programs with power-of-two strides lose (docs/programs.md).", "up to one huge page (2 MB on x86-64) more per rank", Start, Never, Local, User;
    Interfaces = "KW_INTERFACES", Text, "auto", "Interfaces, addresses or networks (10.77.0.0/24) that TCP and UDP listen on, comma separated; a leading ! excludes an entry (!docker0, !10.0.0.0/8).", "none", Paths, BeforeInit, Local, User;
    Ports = "KW_PORTS", Ports, "auto", "Range of ports, such as 40000-40100, that the ranks of a host listen on, one port per rank for TCP and UDP; auto lets the kernel choose.", "none", Paths, BeforeInit, Local, User;
    Reliable = "KW_RELIABLE", Bool, "yes", "Reconnect broken TCP connections without losing data: data that the peer's kernel has not acknowledged is kept. If off, a broken connection is an error.", "up to 64 KB per TCP connection, and copies of unacknowledged payloads", Paths, BeforeInit, Alike, User;
    Stripe = "KW_STRIPE", Bool, "yes", "Send messages of 1 MB and more over all links between two hosts (TCP).", "one connection per additional link for each pair of ranks that sends such messages", Paths, BeforeInit, Local, User;
    Host = "KW_HOST", Text, "auto", "Name that identifies the host: ranks with the same name use shared memory; auto uses the machine's identity.", "none", Paths, BeforeInit, Local, Tuner;
    Ssh = "KW_SSH", File, "ssh -x -T -o BatchMode=yes -o ConnectTimeout=10", "Command with which mpiexec reaches other hosts; the host and the program are appended.", "none", Paths, Never, Local, User;
    Cpus = "KW_CPUS", Count, "auto", "Number of CPUs that the ranks of one host may use together; set by mpiexec. auto limits them only by what each rank may use.", "none", Progress, Never, Host, Tuner;
    Pmi = "KW_PMI", Choice(LAUNCHER_WORDS), "auto", "Protocol to use with a launcher that supports several; auto uses the one behind PMI_FD if set, otherwise PMIx.", "none", Start, Never, Local, User;
    Pmix = "KW_PMIX", File, "auto", "Path of libpmix.so.2; auto uses the launcher's own library, otherwise the one the dynamic linker finds.", "none", Start, Never, Local, User;
    Rendezvous = "KW_RENDEZVOUS", Text, "", "Address NAME:PORT of rank 0 when the processes are started one by one.", "none", Start, Never, Local, User;
    Size = "KW_SIZE", Count, "auto", "Number of processes at the rendezvous (required there).", "none", Start, Never, Alike, User;
    Rank = "KW_RANK", Count, "auto", "Rank of this process at the rendezvous; auto uses JOB_COMPLETION_INDEX, otherwise the number at the end of the host name.", "none", Start, Never, Local, User;
    KeyFile = "KW_KEY_FILE", File, "", "File with the secret that all processes of a rendezvous share, 16 bytes or more.", "none", Start, Never, Local, User;
    Key = "KW_KEY", Secret, "", "The secret itself, if there is no file.", "none", Start, Never, Alike, User;
    RendezvousWait = "KW_RENDEZVOUS_WAIT", Count, "60", "Seconds within which all processes must reach the rendezvous, and after which mpiexec names the ranks that have not called MPI_Init.", "none", Start, Never, Local, User;
    ConnectWait = "KW_CONNECT_WAIT", Count, "60", "Seconds to wait for the other side to accept (MPI_Comm_connect) and for spawned processes to call MPI_Init (MPI_Comm_spawn).", "none", Start, Anytime, Local, User;
    Names = "KW_NAMES", File, "", "Directory for published service names (MPI_Publish_name), one file per name, readable only by its owner; default: .kittiwake/names in the home directory.", "none", Start, Anytime, Local, User;
    Cc = "KW_CC", File, "cc", "C compiler used by mpicc.", "none", Start, Never, Local, User;
    Cxx = "KW_CXX", File, "c++", "C++ compiler used by mpicxx.", "none", Start, Never, Local, User;
    Fc = "KW_FC", File, "gfortran", "Fortran compiler used by mpifort; its modules are built on first use.", "none", Start, Never, Local, User;
    Javac = "KW_JAVAC", File, "javac", "Java compiler used by mpijavac.", "none", Start, Never, Local, User;
    Calibrate = "KW_CALIBRATE", Bool, "yes", "Base protocol and algorithm choices on the calibration of rank 0's host and network (kwinfo --calibrate), and let mpiexec calibrate an uncalibrated host after a job of 5 s or more. If off, built-in values are used.", "none", Start, BeforeInit, Local, Tuner;
    Coll = "KW_COLL", File, "", "Rules that select collective algorithms before the built-in table (coll/table.txt), separated by semicolons, the same on all ranks; @FILE reads them from a file.", "none", Collectives, BeforeInit, Alike, Tuner;
    Domains = "KW_DOMAINS", Text, "auto", "Which ranks of a host are close to each other, for shared-memory collectives. auto: same package and last-level cache, if each rank has a core; none: all ranks. Or domain numbers separated by dots (0.0.1.1), assigned to the ranks of a host in order and repeated if there are fewer numbers than ranks.", "none", Collectives, BeforeInit, Alike, Tuner;
    Check = "KW_CHECK", Bool, "no", "Check the program at run time: arguments of collective calls, datatypes of messages, buffers used by two operations at once (docs/debugging.md).", "none", Collectives, BeforeInit, Alike, User;
    Backtrace = "KW_BACKTRACE", Bool, "yes", "Report where the program was when SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT killed it, unless it handles that signal; mpiexec prints the report of the first such rank.", "64 KB for the handler's stack", Reports, BeforeInit, Local, User;
    Hang = "KW_HANG", Seconds, "10", "How long an MPI call may wait before the rank reports to mpiexec what it waits for; when all ranks have reported, mpiexec prints why the job does not progress. Under other launchers each rank logs it (KW_LOG=info). 0 is never.", "none", Reports, Anytime, Local, User;
    Trace = "KW_TRACE", File, "", "File to which mpiexec writes a trace of the job (same as --trace). Not passed to the ranks.", "in mpiexec, up to 2 MB for each thread that calls MPI", Reports, Never, Local, User;
    Stats = "KW_STATS", Bool, "no", "Print this rank's counters to standard error in MPI_Finalize.", "none", Reports, Anytime, Local, User;
    Log = "KW_LOG", Choice(LOG_LEVELS), "warn", "How much the library logs to standard error, one line each with rank and host. error: faults; warn: also settings without effect; info: also the job's layout, networks used and lost ranks; debug: also settings, launcher, transports and algorithms chosen; trace: also each protocol step, except for short messages sent at once.", "none", Reports, Anytime, Local, User;
}

/// Values of all settings, by position in [`ALL`].
#[derive(Clone, Debug)]
pub struct Settings {
    values: Vec<String>,
}

/// A setting with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    /// The variable.
    pub name: &'static str,
    /// Its text.
    pub text: String,
    /// Accepted values.
    pub wants: String,
}

impl std::fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} is '{}', but must be {}",
            self.name, self.text, self.wants
        )
    }
}

impl std::error::Error for InvalidSetting {}

impl Settings {
    /// Reads every setting through `lookup`; settings that are not set, or to nothing, keep their
    /// defaults. The first invalid value is an error.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Settings, InvalidSetting> {
        let mut values = Vec::with_capacity(ALL.len());
        for k in ALL {
            let text = lookup(k.name).filter(|text| !text.trim().is_empty());
            let text = text.unwrap_or_else(|| k.default.to_string());
            check(k, &text)?;
            values.push(match k.kind {
                Kind::Secret => k.default.to_string(),
                _ => text,
            });
        }
        Ok(Settings { values })
    }

    /// All defaults.
    pub fn defaults() -> Settings {
        Settings {
            values: ALL.iter().map(|k| k.default.to_string()).collect(),
        }
    }

    /// The text of a setting.
    pub fn text(&self, id: Id) -> &str {
        &self.values[id as usize]
    }

    /// The text of the setting at a position of [`ALL`].
    pub fn at(&self, position: usize) -> &str {
        &self.values[position]
    }

    /// Sets the setting at a position of [`ALL`].
    pub fn set_at(&mut self, position: usize, text: &str) -> Result<(), InvalidSetting> {
        check(&ALL[position], text)?;
        self.values[position] = text.to_string();
        Ok(())
    }

    /// The position of the word of a [`Kind::Choice`] setting.
    pub fn choice(&self, id: Id) -> usize {
        let Kind::Choice(words) = ALL[id as usize].kind else {
            return 0;
        };
        words.iter().position(|w| *w == self.text(id)).unwrap_or(0)
    }

    /// A [`Kind::Bool`] setting.
    pub fn flag(&self, id: Id) -> bool {
        parse_bool(self.text(id)).unwrap_or(false)
    }

    /// A number ([`Kind::Count`], [`Kind::Bytes`] or [`Kind::Micros`]); `None` means `auto`.
    pub fn number(&self, id: Id) -> Option<u64> {
        parse_bytes(self.text(id))
    }

    /// A [`Kind::Ports`] setting: first and last; `None` means `auto`.
    pub fn ports(&self, id: Id) -> Option<(u16, u16)> {
        parse_ports(self.text(id))
    }

    /// A [`Kind::Seconds`] setting; `None` means never.
    pub fn seconds(&self, id: Id) -> Option<std::time::Duration> {
        parse_seconds(self.text(id)).filter(|d| !d.is_zero())
    }

    /// Sets one setting (tests, MPI_T).
    pub fn set(&mut self, id: Id, text: &str) -> Result<(), InvalidSetting> {
        self.set_at(id as usize, text)
    }
}

fn check(k: &'static Setting, text: &str) -> Result<(), InvalidSetting> {
    if k.is_auto(text) {
        return Ok(());
    }
    let (good, wants) = match k.kind {
        Kind::Text | Kind::File | Kind::Secret => return Ok(()),
        Kind::Bool => (parse_bool(text).is_some(), "yes or no".to_string()),
        Kind::Bytes => (
            parse_bytes(text).is_some(),
            "bytes, such as 4096 or 64K".to_string(),
        ),
        Kind::Count | Kind::Micros => (
            text.trim().parse::<u64>().is_ok(),
            "a whole number".to_string(),
        ),
        Kind::Seconds => (
            parse_seconds(text).is_some(),
            "seconds, such as 10 or 0.5".to_string(),
        ),
        Kind::Ports => (
            parse_ports(text).is_some(),
            "a range of ports from 1 to 65535, such as 40000-40100".to_string(),
        ),
        Kind::Choice(words) => (words.contains(&text), words.join(", ")),
    };
    match good {
        true => Ok(()),
        false => Err(InvalidSetting {
            name: k.name,
            text: text.to_string(),
            wants: wants + if k.is_auto("auto") { ", or auto" } else { "" },
        }),
    }
}

/// Warning about an environment variable `KW_*` that names no setting.
pub fn misspelt(name: &str) -> Option<String> {
    let known = || ALL.iter().map(|k| k.name);
    if !name.starts_with("KW_") || known().any(|k| k == name) {
        return None;
    }
    let hint = match crate::near::nearest(&name[3..], known().map(|k| &k[3..])) {
        Some(near) => format!("; did you mean KW_{near}?"),
        None => "; kwinfo --settings lists all settings".to_string(),
    };
    Some(format!("unknown setting {name} (ignored){hint}"))
}

/// `yes` or `no`, in any of their spellings.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// Seconds, with a fraction; less than a year.
pub fn parse_seconds(text: &str) -> Option<std::time::Duration> {
    let seconds: f64 = text.trim().parse().ok()?;
    let few = (0.0..31_536_000.0).contains(&seconds);
    few.then(|| std::time::Duration::from_secs_f64(seconds))
}

/// A port, or the first and the last of a range.
pub fn parse_ports(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range: (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (0 < range.0 && range.0 <= range.1).then_some(range)
}

/// A number with an optional `K`, `M` or `G`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_readable_and_units_are_understood() {
        Settings::read(|_| None).expect("every default reads");
        let k = Settings::read(|n| (n == "KW_EAGER_TCP").then(|| "64K".into())).unwrap();
        assert_eq!(k.number(Id::EagerTcp), Some(65536));
        assert_eq!(k.number(Id::EagerShm), None);
        let k = Settings::read(|n| (n == "KW_PATHS").then(String::new)).unwrap();
        assert_eq!(k.text(Id::Paths), Settings::defaults().text(Id::Paths));
    }

    #[test]
    fn only_a_setting_that_has_it_takes_auto_and_a_choice_names_its_words() {
        let mut k = Settings::defaults();
        assert!(k.set(Id::EagerShm, "auto").is_ok());
        assert!(k.set(Id::Watch, "auto").is_err());
        let e = k.set(Id::Log, "loud").unwrap_err();
        assert!(e.to_string().contains("error, warn, info"), "{e}");
        assert_eq!(k.choice(Id::Log), 1);
    }

    #[test]
    fn ports_are_a_range_that_can_be() {
        let mut k = Settings::defaults();
        assert_eq!(k.ports(Id::Ports), None);
        for (text, range) in [("40000-40100", (40000, 40100)), ("7000", (7000, 7000))] {
            k.set(Id::Ports, text).unwrap();
            assert_eq!(k.ports(Id::Ports), Some(range));
        }
        for text in ["", "40100-40000", "0-9", "40000-", "1-65536", "many"] {
            let e = k.set(Id::Ports, text).unwrap_err().to_string();
            assert!(e.starts_with(&format!("KW_PORTS is '{text}'")), "{e}");
        }
    }

    #[test]
    fn a_secret_is_not_kept() {
        let k = Settings::read(|n| (n == "KW_KEY").then(|| "0123456789abcdef".into())).unwrap();
        assert_eq!(k.text(Id::Key), "");
    }

    #[test]
    fn misspelt_settings_are_named_with_the_nearest() {
        let spim = misspelt("KW_SPIM").unwrap();
        assert!(spim.ends_with("did you mean KW_SPIN?"), "{spim}");
        assert!(
            misspelt("KW_FROBNICATION")
                .unwrap()
                .contains("kwinfo --settings")
        );
        for known in ["KW_SPIN", "KW_KEY_FILE", "HOME"] {
            assert_eq!(misspelt(known), None);
        }
    }

    #[test]
    fn a_bad_value_names_its_variable() {
        let e = Settings::read(|n| (n == "KW_WATCH").then(|| "soon".into())).unwrap_err();
        assert_eq!(
            e.to_string(),
            "KW_WATCH is 'soon', but must be a whole number"
        );
    }
}
