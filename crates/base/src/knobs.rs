//! Every knob of the library, declared once: the environment, MPI_T, `kwinfo` and the documentation
//! read this table.
//!
//! Values are read from a lookup function (the process environment in production, a map in tests)
//! exactly once, when a rank or the launcher starts. Nobody else reads the environment;
//! `kw_sys::environment` does it for all, and drops there what a program with more rights than its
//! caller must not believe ([`Kind::File`]).

use crate::rooms::Room;

/// What a knob's text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Text that names a file, a library or a command, or may: it does not count in a program that
    /// runs with more rights than whoever started it (set-user-id).
    File,
    /// Text that nobody else may read: never shown.
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

/// When a knob may be changed through MPI_T (the environment is read when MPI starts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never: whoever starts the ranks says it.
    Never,
    /// Until MPI is initialised.
    BeforeInit,
    /// At any time; from then on it holds.
    Anytime,
}

/// Which ranks must agree on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Each rank has its own.
    Local,
    /// All ranks of a host must have the same.
    Host,
    /// All ranks must have the same.
    Alike,
}

/// For whom a knob or counter is meant (MPI 5.0, 15.3.1: users, tuners, developers of MPI).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever runs programs.
    User,
    /// Whoever tunes them.
    Tuner,
    /// Whoever works on the library.
    Developer,
}

/// One declared knob.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Environment variable, `KW_*`.
    pub name: &'static str,
    /// How its text is read.
    pub kind: Kind,
    /// Default, as one would write it.
    pub default: &'static str,
    /// One sentence for people, unit included.
    pub help: &'static str,
    /// What it does to memory use, or "none".
    pub memory: &'static str,
    /// What it belongs to.
    pub room: Room,
    /// When MPI_T may change it.
    pub when: When,
    /// Who must agree.
    pub reach: Reach,
    /// For whom it is.
    pub audience: Audience,
}

/// What `KW_LOG` takes; each says what those before it say, and more.
pub const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

/// What `KW_PMI` takes.
pub const LAUNCHER_WORDS: &[&str] = &["auto", "pmi1", "pmi2", "pmix"];

impl Kind {
    /// Whether the value is text of any kind.
    pub fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::File | Kind::Secret | Kind::Ports)
    }
}

impl Knob {
    /// Whether the text leaves the choice to the library, and the knob has such a choice.
    pub fn is_auto(&self, text: &str) -> bool {
        text == "auto" && self.default == "auto"
    }
}

macro_rules! knobs {
    ($($id:ident = $name:literal, $kind:expr, $default:literal, $help:literal, $memory:literal,
        $room:ident, $when:ident, $reach:ident, $audience:ident;)*) => {
        /// The declared knobs, in the order they are printed.
        pub const ALL: &[Knob] = {
            use Kind::*;
            &[$(Knob {
                name: $name,
                kind: $kind,
                default: $default,
                help: $help,
                memory: $memory,
                room: Room::$room,
                when: When::$when,
                reach: Reach::$reach,
                audience: Audience::$audience,
            }),*]
        };
        /// Names a knob of [`ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Id { $($id),* }
    };
}

/// The networks that [`Id::Paths`] may name; `kw-networks` opens them.
pub const NETWORKS: [&str; 2] = ["tcp", "udp"];

knobs! {
    Paths = "KW_PATHS", Text, "self,shm,tcp", "Paths that may be used, comma separated: self, shm, tcp, udp; of tcp and udp the one that is named first.", "none", Paths, BeforeInit, Alike, User;
    Spin = "KW_SPIN", Micros, "auto", "How long a waiting thread polls before it sleeps (up to 1 ms longer while a peer of its host fetches what it has sent); auto is 64 times what it costs to wake a thread (kwinfo --choices), about 1 ms. After four such times, and from the first poll on when more ranks than cores share a host, others may run between two polls; with auto a wait does not poll while a program that MPI knows nothing of does nothing but compute on its processor, and lets others run from the first poll on while one computes and waits there.", "none", Progress, Anytime, Local, User;
    EventThread = "KW_EVENT_THREAD", Bool, "yes", "Serve communication while the program computes.", "one thread stack", Progress, Anytime, Local, User;
    Watch = "KW_WATCH", Micros, "50", "How long no thread may have been inside MPI before the event thread takes over. To see that, it looks now and then, twice as long apart each time (up to 64 times this), and never so often that looking takes more than 0.25 % of a processor, which it measures (a quarter of that where ranks share processors). Of a program that was seen to stay away this is expected, and found out without a look, until it comes back sooner so often that this takes as much. Messages that come eagerly are left to the looks.", "none", Progress, Anytime, Local, Tuner;
    Write = "KW_WRITE", Bool, "yes", "Receiver-initiated write protocol (the papers' SR mode); off is NSR.", "none", Protocols, Anytime, Local, Tuner;
    SingleCopy = "KW_SINGLE_COPY", Bool, "yes", "Copy large messages between local ranks with process_vm_readv where the system permits it.", "none", Protocols, Anytime, Local, Tuner;
    EagerShm = "KW_EAGER_SHM", Bytes, "auto", "Largest message sent eagerly over shared memory; auto asks the figures of the host (kwinfo --choices).", "unexpected messages up to this size are buffered", Protocols, Anytime, Local, Tuner;
    EagerTcp = "KW_EAGER_TCP", Bytes, "auto", "Largest message sent eagerly over TCP; auto asks the figures of the host, and the round trip and rate of the connection (kwinfo --choices).", "unexpected messages up to this size are buffered", Protocols, Anytime, Local, Tuner;
    EagerUdp = "KW_EAGER_UDP", Bytes, "auto", "Largest message sent eagerly over UDP; auto asks the figures of the host (kwinfo --choices).", "unexpected messages up to this size are buffered", Protocols, Anytime, Local, Tuner;
    Unexpected = "KW_UNEXPECTED", Bytes, "32M", "How much a rank keeps of messages that came before their receives, their entries included, before it tells their senders to hold; 0 keeps whatever comes.", "up to so much, and what is under way", Matching, Anytime, Local, User;
    KeepFreed = "KW_KEEP_FREED", Bytes, "auto", "How much malloc keeps of what a program has freed, at the end of its heap, in place of giving it back to the system and touching new pages the next time; blocks of up to half as much, and 32 MB, come from the heap. auto is a sixteenth of the host's memory (or of what its control group may use), divided among its ranks; 0 leaves malloc as it is, as does whoever has told it already (MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES, mallopt). Of the GNU C library.", "up to so much of what the program has freed, or 64 MB, if malloc has learnt by itself to keep more", Start, BeforeInit, Local, User;
    HugePages = "KW_HUGE_PAGES", Bool, "no", "Have malloc of the GNU C library (2.35 and later) ask for huge pages, where the system gives them to who asks (transparent_hugepage: madvise) and a huge page for each rank is at most a 256th of the host's memory: mpiexec adds glibc.malloc.hugetlb=1 to GLIBC_TUNABLES of its ranks, unless that says something of it. Programs that go through much memory gain; those that move through it in strides of a power of two lose (docs/programs.md).", "up to a huge page (2 MB on x86-64) more for each rank", Start, Never, Local, User;
    Interfaces = "KW_INTERFACES", Text, "auto", "Interfaces, addresses or networks (10.77.0.0/24) that TCP and UDP listen on, comma separated; what begins with ! is left out (!docker0, !10.0.0.0/8).", "none", Paths, BeforeInit, Local, User;
    Ports = "KW_PORTS", Ports, "auto", "Ports that the ranks of a host listen on, such as 40000-40100, for firewalls; each takes one, over TCP and UDP; auto is what the system gives.", "none", Paths, BeforeInit, Local, User;
    Reliable = "KW_RELIABLE", Bool, "yes", "Make a TCP connection that breaks anew, and lose nothing: what the other side's kernel has not acknowledged is kept. Off, the end of a connection is an error.", "up to 64 KB for each TCP connection, and copies of payloads that wait to be acknowledged", Paths, BeforeInit, Alike, User;
    Stripe = "KW_STRIPE", Bool, "yes", "Send messages of 1 MB and more over all links that two hosts have (TCP).", "a connection more for each further link of a pair of ranks that sends such messages", Paths, BeforeInit, Local, User;
    Host = "KW_HOST", Text, "auto", "Name that decides which ranks share a machine; auto is the machine's own identity.", "none", Paths, BeforeInit, Local, Tuner;
    Ssh = "KW_SSH", File, "ssh -x -T -o BatchMode=yes -o ConnectTimeout=10", "What mpiexec reaches other hosts with: this command, then the host, then what to run there.", "none", Paths, Never, Local, User;
    Cpus = "KW_CPUS", Count, "auto", "Processors that the ranks of one host may use together at most; mpiexec sets it, auto knows no limit but what each rank may use.", "none", Progress, Never, Host, Tuner;
    Pmi = "KW_PMI", Choice(LAUNCHER_WORDS), "auto", "What is spoken with a launcher that speaks several; auto is what stands behind PMI_FD, else PMIx.", "none", Start, Never, Local, User;
    Pmix = "KW_PMIX", File, "auto", "The file of libpmix.so.2; auto is the one that the launcher itself runs on, else what the system's loader finds.", "none", Start, Never, Local, User;
    Rendezvous = "KW_RENDEZVOUS", Text, "", "Where rank 0 of processes that are started one by one is: NAME:PORT.", "none", Start, Never, Local, User;
    Size = "KW_SIZE", Count, "auto", "How many processes meet at the rendezvous; it must be said there.", "none", Start, Never, Alike, User;
    Rank = "KW_RANK", Count, "auto", "Which of them this process is; auto is JOB_COMPLETION_INDEX, else the number that the host's name ends with.", "none", Start, Never, Local, User;
    KeyFile = "KW_KEY_FILE", File, "", "The file of the secret that all processes of a rendezvous know, 16 bytes or more.", "none", Start, Never, Local, User;
    Key = "KW_KEY", Secret, "", "The secret itself, where no file holds it.", "none", Start, Never, Alike, User;
    RendezvousWait = "KW_RENDEZVOUS_WAIT", Count, "60", "Seconds that all processes may take to come to the rendezvous, and after which mpiexec names the ranks that did not call MPI_Init.", "none", Start, Never, Local, User;
    ConnectWait = "KW_CONNECT_WAIT", Count, "60", "Seconds that the other side may take to accept (MPI_Comm_connect), and processes that are spawned to call MPI_Init (MPI_Comm_spawn).", "none", Start, Anytime, Local, User;
    Names = "KW_NAMES", File, "", "The directory where names of services are published (MPI_Publish_name), a file for each that only its user can read; by default .kittiwake/names in the home directory.", "none", Start, Anytime, Local, User;
    Cc = "KW_CC", File, "cc", "The C compiler that mpicc calls.", "none", Start, Never, Local, User;
    Cxx = "KW_CXX", File, "c++", "The C++ compiler that mpicxx calls.", "none", Start, Never, Local, User;
    Fc = "KW_FC", File, "gfortran", "The Fortran compiler that mpifort calls; its modules are made when it is first used.", "none", Start, Never, Local, User;
    Calibrate = "KW_CALIBRATE", Bool, "yes", "Price choices with the figures of the host of rank 0 and of its network that were measured (kwinfo --calibrate; rank 0 of jobs on several hosts), and have mpiexec measure its host at the end of a job of 5 s and more where nobody has; off, starting values hold.", "none", Start, BeforeInit, Local, Tuner;
    Coll = "KW_COLL", File, "", "Rows that choose collective algorithms before those of the built-in table (coll/table.txt), separated by semicolons, the same on all ranks; @FILE stands for the rows of a file.", "none", Collectives, BeforeInit, Alike, Tuner;
    Domains = "KW_DOMAINS", Text, "auto", "Which ranks of a host are close to each other, for collectives in shared memory: auto is the package and the last-level cache that each rank is bound to, where ranks have a core each; none: all are; or numbers of domains, separated by dots, which the ranks of a host take one by one, and from the first again where there are fewer (0.0.1.1).", "none", Collectives, BeforeInit, Alike, Tuner;
    Check = "KW_CHECK", Bool, "no", "Check the program: what the ranks say on every collective call, the types of messages, buffers that two operations use at once (docs/check.md).", "none", Collectives, BeforeInit, Alike, User;
    Backtrace = "KW_BACKTRACE", Bool, "yes", "Say where the program was when SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT killed it, unless it has a handler for that signal; mpiexec prints it for the first rank that dies so.", "64 KB, the stack of the handler", Reports, BeforeInit, Local, User;
    Hang = "KW_HANG", Seconds, "10", "How long a call of MPI may wait until the rank tells mpiexec what it waits for; once all ranks have, mpiexec prints why nothing moves. Under other launchers the rank says so in its log (KW_LOG=info). 0: never.", "none", Reports, Anytime, Local, User;
    Trace = "KW_TRACE", File, "", "The file that mpiexec writes a trace of the job to, as --trace does: what every rank does with MPI over time. Ranks do not get the variable.", "in mpiexec, for each thread of a rank that calls MPI up to 2 MB", Reports, Never, Local, User;
    Stats = "KW_STATS", Bool, "no", "Print this rank's counters on standard error at MPI_Finalize.", "none", Reports, Anytime, Local, User;
    Log = "KW_LOG", Choice(LOG_LEVELS), "warn", "How much the library says on standard error, a line each with rank and host: error, what it finds broken; warn, also settings without effect; info, also what the job is made of, networks that were used and ranks that were lost; debug, also the settings, the launcher, and the path and the algorithms that are chosen; trace, also each step of the protocols of messages but short ones that are sent at once.", "none", Reports, Anytime, Local, User;
}

/// Values of all knobs, by position in [`ALL`].
#[derive(Clone, Debug)]
pub struct Knobs {
    values: Vec<String>,
}

/// A knob whose text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKnob {
    /// The variable.
    pub name: &'static str,
    /// What it held.
    pub text: String,
    /// What it takes.
    pub wants: String,
}

impl std::fmt::Display for BadKnob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} is '{}', but it takes {}",
            self.name, self.text, self.wants
        )
    }
}

impl std::error::Error for BadKnob {}

impl Knobs {
    /// Reads every knob through `lookup`; what is not set keeps its default. The first unreadable
    /// one is an error.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Knobs, BadKnob> {
        let mut values = Vec::with_capacity(ALL.len());
        for k in ALL {
            let text = lookup(k.name).unwrap_or_else(|| k.default.to_string());
            check(k, &text)?;
            values.push(match k.kind {
                Kind::Secret => k.default.to_string(),
                _ => text,
            });
        }
        Ok(Knobs { values })
    }

    /// All defaults.
    pub fn defaults() -> Knobs {
        Knobs {
            values: ALL.iter().map(|k| k.default.to_string()).collect(),
        }
    }

    /// The text of a knob.
    pub fn text(&self, id: Id) -> &str {
        &self.values[id as usize]
    }

    /// The text of the knob at a position of [`ALL`].
    pub fn at(&self, position: usize) -> &str {
        &self.values[position]
    }

    /// Sets the knob at a position of [`ALL`].
    pub fn set_at(&mut self, position: usize, text: &str) -> Result<(), BadKnob> {
        check(&ALL[position], text)?;
        self.values[position] = text.to_string();
        Ok(())
    }

    /// The position of the word of a [`Kind::Choice`] knob.
    pub fn choice(&self, id: Id) -> usize {
        let Kind::Choice(words) = ALL[id as usize].kind else {
            return 0;
        };
        words.iter().position(|w| *w == self.text(id)).unwrap_or(0)
    }

    /// A [`Kind::Bool`] knob.
    pub fn flag(&self, id: Id) -> bool {
        parse_bool(self.text(id)).unwrap_or(false)
    }

    /// A number ([`Kind::Count`], [`Kind::Bytes`] or [`Kind::Micros`]); `None` means `auto`.
    pub fn number(&self, id: Id) -> Option<u64> {
        parse_bytes(self.text(id))
    }

    /// A [`Kind::Ports`] knob: first and last; `None` means `auto`.
    pub fn ports(&self, id: Id) -> Option<(u16, u16)> {
        parse_ports(self.text(id))
    }

    /// A [`Kind::Seconds`] knob; `None` means never.
    pub fn seconds(&self, id: Id) -> Option<std::time::Duration> {
        parse_seconds(self.text(id)).filter(|d| !d.is_zero())
    }

    /// Sets one knob (tests, MPI_T).
    pub fn set(&mut self, id: Id, text: &str) -> Result<(), BadKnob> {
        self.set_at(id as usize, text)
    }
}

fn check(k: &'static Knob, text: &str) -> Result<(), BadKnob> {
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
        false => Err(BadKnob {
            name: k.name,
            text: text.to_string(),
            wants: wants + if k.is_auto("auto") { ", or auto" } else { "" },
        }),
    }
}

/// A sentence about a variable that looks like one of ours and is none: a misspelt knob has no
/// effect.
pub fn misspelt(name: &str) -> Option<String> {
    let known = || ALL.iter().map(|k| k.name);
    if !name.starts_with("KW_") || known().any(|k| k == name) {
        return None;
    }
    let hint = match crate::near::nearest(&name[3..], known().map(|k| &k[3..])) {
        Some(near) => format!("; did you mean KW_{near}?"),
        None => "; kwinfo --knobs lists all".to_string(),
    };
    Some(format!("{name} is no knob, and has no effect{hint}"))
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
        Knobs::read(|_| None).expect("every default reads");
        let k = Knobs::read(|n| (n == "KW_EAGER_TCP").then(|| "64K".into())).unwrap();
        assert_eq!(k.number(Id::EagerTcp), Some(65536));
        assert_eq!(k.number(Id::EagerShm), None);
    }

    #[test]
    fn only_a_knob_that_has_it_takes_auto_and_a_choice_names_its_words() {
        let mut k = Knobs::defaults();
        assert!(k.set(Id::EagerShm, "auto").is_ok());
        assert!(k.set(Id::Watch, "auto").is_err());
        let e = k.set(Id::Log, "loud").unwrap_err();
        assert!(e.to_string().contains("error, warn, info"), "{e}");
        assert_eq!(k.choice(Id::Log), 1);
    }

    #[test]
    fn ports_are_a_range_that_can_be() {
        let mut k = Knobs::defaults();
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
        let k = Knobs::read(|n| (n == "KW_KEY").then(|| "0123456789abcdef".into())).unwrap();
        assert_eq!(k.text(Id::Key), "");
    }

    #[test]
    fn misspelt_knobs_are_named_with_the_nearest() {
        let spim = misspelt("KW_SPIM").unwrap();
        assert!(spim.ends_with("did you mean KW_SPIN?"), "{spim}");
        assert!(
            misspelt("KW_FROBNICATION")
                .unwrap()
                .contains("kwinfo --knobs")
        );
        for known in ["KW_SPIN", "KW_KEY_FILE", "HOME"] {
            assert_eq!(misspelt(known), None);
        }
    }

    #[test]
    fn a_bad_value_names_its_variable() {
        let e = Knobs::read(|n| (n == "KW_WATCH").then(|| "soon".into())).unwrap_err();
        assert_eq!(
            e.to_string(),
            "KW_WATCH is 'soon', but it takes a whole number"
        );
    }
}
