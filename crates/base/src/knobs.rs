//! Every knob of the library, declared once: the environment, MPI_T, `kwinfo` and the documentation read this table.
//!
//! Values are read from a lookup function (the process environment in production, a map in tests) exactly once, when a
//! rank or the launcher starts. Nobody else reads the environment.

/// What a knob's text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// `0`/`1`, `no`/`yes`, `off`/`on`, `false`/`true`.
    Bool,
    /// A whole number.
    Count,
    /// Bytes, with optional `K`, `M`, `G` (powers of 1024).
    Bytes,
    /// Microseconds.
    Micros,
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
}

macro_rules! knobs {
    ($($id:ident = $name:literal, $kind:ident, $default:literal, $help:literal, $memory:literal;)*) => {
        /// The declared knobs, in the order they are printed.
        pub const ALL: &[Knob] = &[$(Knob { name: $name, kind: Kind::$kind, default: $default, help: $help, memory: $memory }),*];
        /// Names a knob of [`ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Id { $($id),* }
    };
}

knobs! {
    Paths = "KW_PATHS", Text, "self,shm,tcp", "Paths that may be used, comma separated, in order of preference.", "none";
    Spin = "KW_SPIN", Micros, "60", "How long a waiting thread polls before it sleeps; when more ranks than cores share a host, others may run between two polls.", "none";
    EventThread = "KW_EVENT_THREAD", Bool, "yes", "Serve communication while the program computes.", "one thread stack";
    Watch = "KW_WATCH", Micros, "50", "How long no thread may have been inside MPI before the event thread takes over.", "none";
    Write = "KW_WRITE", Bool, "yes", "Receiver-initiated write protocol (the papers' SR mode); off is NSR.", "none";
    SingleCopy = "KW_SINGLE_COPY", Bool, "yes", "Copy large messages between local ranks with process_vm_readv where the system permits it.", "none";
    EagerShm = "KW_EAGER_SHM", Bytes, "auto", "Largest message sent eagerly over shared memory; auto asks the cost lines.", "unexpected messages up to this size are buffered";
    EagerTcp = "KW_EAGER_TCP", Bytes, "auto", "Largest message sent eagerly over TCP; auto asks the cost lines.", "unexpected messages up to this size are buffered";
    Interfaces = "KW_INTERFACES", Text, "auto", "Interfaces or addresses that TCP listens on, comma separated.", "none";
    Host = "KW_HOST", Text, "auto", "Name that decides which ranks share a machine; auto is the machine's own identity.", "none";
    Cpus = "KW_CPUS", Count, "auto", "Processors that the ranks of one host may use together; mpiexec sets it, auto counts what this process may use.", "none";
    Coll = "KW_COLL", Text, "", "Rows that choose collective algorithms before those of the built-in table (core/schedule/table.txt), separated by semicolons, the same on all ranks; @FILE stands for the rows of a file.", "none";
    Check = "KW_CHECK", Bool, "no", "Compare what the ranks say on every collective call.", "none";
    Stats = "KW_STATS", Bool, "no", "Print this rank's counters on standard error at MPI_Finalize.", "none";
    Log = "KW_LOG", Text, "warn", "How much the library says on standard error: error, warn, info, debug, trace.", "none";
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
    pub wants: &'static str,
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
    /// Reads every knob through `lookup`; what is not set keeps its default. The first unreadable one is an error.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Knobs, BadKnob> {
        let mut values = Vec::with_capacity(ALL.len());
        for k in ALL {
            let text = lookup(k.name).unwrap_or_else(|| k.default.to_string());
            check(k, &text)?;
            values.push(text);
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

    /// A [`Kind::Bool`] knob.
    pub fn flag(&self, id: Id) -> bool {
        parse_bool(self.text(id)).unwrap_or(false)
    }

    /// A number ([`Kind::Count`], [`Kind::Bytes`] or [`Kind::Micros`]); `None` means `auto`.
    pub fn number(&self, id: Id) -> Option<u64> {
        parse_bytes(self.text(id))
    }

    /// Sets one knob (tests, MPI_T).
    pub fn set(&mut self, id: Id, text: &str) -> Result<(), BadKnob> {
        check(&ALL[id as usize], text)?;
        self.values[id as usize] = text.to_string();
        Ok(())
    }
}

fn check(k: &'static Knob, text: &str) -> Result<(), BadKnob> {
    let bad = |wants| {
        Err(BadKnob {
            name: k.name,
            text: text.to_string(),
            wants,
        })
    };
    match k.kind {
        Kind::Text => Ok(()),
        Kind::Bool if parse_bool(text).is_none() => bad("yes or no"),
        Kind::Bytes if text != "auto" && parse_bytes(text).is_none() => {
            bad("bytes, such as 4096, 64K or auto")
        }
        Kind::Count | Kind::Micros if text != "auto" && text.parse::<u64>().is_err() => {
            bad("a whole number")
        }
        _ => Ok(()),
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
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
    fn a_bad_value_names_its_variable() {
        let e = Knobs::read(|n| (n == "KW_SPIN").then(|| "soon".into())).unwrap_err();
        assert_eq!(
            e.to_string(),
            "KW_SPIN is 'soon', but it takes a whole number"
        );
    }
}
