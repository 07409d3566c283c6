//! Calibration of a host and of its network: the parameters that choices are priced with, and their
//! text formats, that of the host's two files (`kw_sys::calibration`) and that of the value on
//! which the ranks of a job agree (`kw_start`).
//!
//! Each parameter is one row of a table: its name, unit, default, and plausible range. The module
//! that uses a parameter documents what it derives from it (`kw_proto::p2p::prices`).

use std::ops::RangeInclusive;

/// `t0 + tb n` nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// Nanoseconds for nothing.
    pub t0: f64,
    /// Nanoseconds a byte.
    pub tb: f64,
}

impl Line {
    /// Nanoseconds for `n` bytes.
    pub fn at(&self, n: u64) -> f64 {
        self.t0 + self.tb * n as f64
    }
}

/// Unit of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Picoseconds.
    Picos,
    /// Picoseconds for 1024 bytes.
    PicosPerKb,
    /// 1024 bytes.
    Kb,
}

impl Unit {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Picos => "ps",
            Unit::PicosPerKb => "ps/KB",
            Unit::Kb => "KB",
        }
    }

    /// A value for people.
    pub fn show(self, value: u64) -> String {
        match (self, value) {
            (_, 0) => "none".into(),
            (Unit::Picos, _) => format!("{:.3} us", value as f64 / 1e6),
            (Unit::Kb, _) => format!("{:.1} MB", value as f64 / 1024.0),
            (Unit::PicosPerKb, ..1_024_000) => {
                format!("{:.1} GB/s", 1024.0 * 1000.0 / value as f64)
            }
            (Unit::PicosPerKb, _) => format!("{:.1} MB/s", 1024e6 / value as f64),
        }
    }
}

/// Group of parameters that are measured and stored together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The host.
    Host,
    /// The network to other hosts, as connections of jobs found it.
    Network,
}

impl Part {
    /// Both, in the order of their figures.
    pub const ALL: [Part; 2] = [Part::Host, Part::Network];

    /// The rows of its figures.
    pub fn rows(self) -> &'static [(Figure, Row)] {
        &ALL[self.figures()]
    }

    /// Their positions among all.
    fn figures(self) -> std::ops::Range<usize> {
        match self {
            Part::Host => 0..Figure::NetTrip as usize,
            Part::Network => Figure::NetTrip as usize..FIGURES,
        }
    }

    /// First line of its file.
    fn title(self) -> &'static str {
        match self {
            Part::Host => "kittiwake calibration 6",
            Part::Network => "kittiwake network 1",
        }
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name in the file.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Default if it was not measured: the value of a virtual machine with two cores.
    pub start: u64,
    /// Plausible range; zero is also accepted and means that the host has no such thing.
    pub range: RangeInclusive<u64>,
    /// Its description.
    pub help: &'static str,
}

macro_rules! figures {
    ($($id:ident = $name:literal, $unit:ident, $start:literal, $range:expr, $help:literal;)*) => {
        /// Names a figure.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Figure { $($id),* }

        impl Figure {
            /// Its row.
            pub fn row(self) -> &'static Row {
                &ALL[self as usize].1
            }
        }

        /// How many figures there are.
        const FIGURES: usize = [$(Figure::$id),*].len();

        /// The figures, in the order in which they are written.
        pub static ALL: [(Figure, Row); FIGURES] = [$((Figure::$id, Row {
            name: $name,
            unit: Unit::$unit,
            start: $start,
            range: $range,
            help: $help,
        })),*];
    };
}

figures! {
    CopyNear = "copy-near", PicosPerKb, 22_528, 2_000..=2_000_000, "Copying 64 KB within a core's caches.";
    Keep = "keep", PicosPerKb, 61_440, 4_000..=4_000_000, "Buffering a long unexpected message: allocating memory, and the copy out of it.";
    CombineNear = "combine-near", PicosPerKb, 17_408, 1_000..=2_000_000, "Adding 64 KB of doubles within a core's caches.";
    Cache = "cache", Kb, 32_768, 64..=67_108_864, "Size of a package's last-level caches together, as reported by the kernel.";
    Memory = "memory", PicosPerKb, 51_200, 500..=2_000_000, "Copying data that exceeds the last-level cache on all cores that share it: a kilobyte of all together.";
    LineCore = "line-core", Picos, 0, 2_000..=5_000_000, "A cache line from one hardware thread to another of its core.";
    LineCache = "line-cache", Picos, 0, 2_000..=5_000_000, "A cache line from one core to another that shares its last-level cache, if a package has several.";
    LinePackage = "line-package", Picos, 45_000, 2_000..=5_000_000, "A cache line from one core to another of its package: one that does not share its last-level cache, if there is such a one.";
    LineHost = "line-host", Picos, 0, 2_000..=5_000_000, "A cache line from one package to another.";
    StreamCore = "stream-core", PicosPerKb, 0, 2_000..=4_000_000, "Long data through memory shared by two hardware threads of a core.";
    StreamCache = "stream-cache", PicosPerKb, 0, 2_000..=4_000_000, "Long data between two cores that share a last-level cache, if a package has several.";
    StreamPackage = "stream-package", PicosPerKb, 33_792, 2_000..=4_000_000, "Long data between two cores of a package that do not share one, if there are such.";
    StreamHost = "stream-host", PicosPerKb, 0, 2_000..=4_000_000, "Long data between two packages.";
    ShortMessage = "short-message", PicosPerKb, 33_792, 2_000..=4_000_000, "A short message between two cores of a package: the copy into memory that they share and the copy out of it, one after the other.";
    FetchCall = "fetch-call", Picos, 1_300_000, 50_000..=100_000_000, "A call of process_vm_readv.";
    FetchRate = "fetch-rate", PicosPerKb, 69_632, 4_000..=4_000_000, "Each kilobyte of such a call.";
    FetchBoth = "fetch-both", PicosPerKb, 38_298, 2_000..=4_000_000, "Each kilobyte of a message of which its receiver reads one half and its sender writes the other.";
    Wake = "wake", Picos, 15_000_000, 500_000..=1_000_000_000, "From a futex wake until the sleeping thread runs, on another core.";
    NetTrip = "net-round-trip", Picos, 24_000_000, 500_000..=1_000_000_000_000, "Round trip between two hosts, without the work of both. Assumed if no job has measured it.";
    NetByte = "net-rate", PicosPerKb, 870_400, 8_000..=1_024_000_000, "Bandwidth of the network between two hosts. Assumed (10 Gb/s) if no job has measured it.";
}

/// The figures of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calibration {
    values: [u64; FIGURES],
    /// Whether each [`Part`] was measured.
    measured: [bool; 2],
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration::START
    }
}

/// Key of a calibration file: a file with another key was measured elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// Version of the library.
    pub build: String,
    /// The host's name.
    pub host: String,
    /// Its kind of CPU and how many it has.
    pub processors: String,
}

/// Last line of a file of figures: one without it is torn.
const END: &str = "end";
/// The line of a file in place of its figures: jobs that used them were slower than without.
const DISCARDED: &str = "discarded";
/// Marks figures that were not measured.
const UNMEASURED: &str = "-";

impl Calibration {
    /// The defaults.
    pub const START: Calibration = Calibration {
        values: starts(),
        measured: [false; 2],
    };
    /// A cache line, the largest distance first.
    pub const LINES: [Figure; 4] = [
        Figure::LineHost,
        Figure::LinePackage,
        Figure::LineCache,
        Figure::LineCore,
    ];
    /// A cache line within a package, if it has several cores; the figure that is used first.
    pub const LINES_NEAR: [Figure; 4] = [
        Figure::LinePackage,
        Figure::LineCache,
        Figure::LineHost,
        Figure::LineCore,
    ];
    /// Without a measured line transfer within a last-level cache, the package's value is used.
    pub const LINES_CACHE: [Figure; 4] = [
        Figure::LineCache,
        Figure::LinePackage,
        Figure::LineHost,
        Figure::LineCore,
    ];
    /// Figures by the same rule for bytes through a shared area.
    pub const STREAMS_NEAR: [Figure; 4] = [
        Figure::StreamPackage,
        Figure::StreamCache,
        Figure::StreamHost,
        Figure::StreamCore,
    ];
    /// The value within a last-level cache.
    pub const STREAMS_CACHE: [Figure; 4] = [
        Figure::StreamCache,
        Figure::StreamPackage,
        Figure::StreamHost,
        Figure::StreamCore,
    ];
    /// A byte through a shared area, the largest distance first.
    pub const STREAMS: [Figure; 4] = [
        Figure::StreamHost,
        Figure::StreamPackage,
        Figure::StreamCache,
        Figure::StreamCore,
    ];

    /// Calibration of a measured host. A value outside its plausible range was mismeasured and is
    /// replaced by the default.
    pub fn measured(value: impl Fn(Figure) -> u64) -> Calibration {
        Calibration::START.with(Part::Host, value)
    }

    /// This calibration with the network's values: picoseconds per round trip, and picoseconds per
    /// 1024 bytes; zero means unknown and is replaced by the default.
    pub fn with_network(self, round_trip: u64, byte: u64) -> Calibration {
        self.with(Part::Network, |f| match f {
            Figure::NetTrip => round_trip,
            _ => byte,
        })
    }

    fn with(mut self, part: Part, value: impl Fn(Figure) -> u64) -> Calibration {
        for (figure, row) in part.rows() {
            self.values[*figure as usize] = match value(*figure) {
                0 => 0,
                v if v > *row.range.end() => row.start,
                v => v.max(*row.range.start()),
            };
        }
        self.measured[part as usize] = true;
        self
    }

    /// This calibration with one group of parameters taken from `other`.
    pub fn with_part(mut self, part: Part, of: &Calibration) -> Calibration {
        self.values[part.figures()].copy_from_slice(&of.values[part.figures()]);
        self.measured[part as usize] = of.measured[part as usize];
        self
    }

    /// Whether the host was measured.
    pub fn is_measured(&self) -> bool {
        self.has(Part::Host)
    }

    /// Whether that group was measured.
    pub fn has(&self, part: Part) -> bool {
        self.measured[part as usize]
    }

    /// Whether this very figure was measured; one that the host does not have was not.
    pub fn has_measured(&self, figure: Figure) -> bool {
        let part = Part::ALL
            .into_iter()
            .find(|p| p.figures().contains(&(figure as usize)));
        part.is_some_and(|p| self.has(p)) && self.value(figure) != 0
    }

    /// A figure in its unit; zero: the host has no such thing.
    pub fn value(&self, figure: Figure) -> u64 {
        self.values[figure as usize]
    }

    /// A figure in nanoseconds, nanoseconds a byte, or bytes; `None`: the host has no such thing.
    pub fn get(&self, figure: Figure) -> Option<f64> {
        let value = self.value(figure) as f64;
        let value = match ALL[figure as usize].1.unit {
            Unit::Picos => value / 1e3,
            Unit::PicosPerKb => value / 1024e3,
            Unit::Kb => value * 1024.0,
        };
        (value > 0.0).then_some(value)
    }

    /// Like [`Calibration::get`]; a figure that the host does not have is as it was elsewhere.
    pub fn get_or_start(&self, figure: Figure) -> f64 {
        let start = || Calibration::START.get(figure).unwrap_or(0.0);
        self.get(figure).unwrap_or_else(start)
    }

    /// The first of these figures that the host has: the one for the largest distance that exists
    /// there.
    fn first(&self, of: [Figure; 4]) -> f64 {
        let there = of.into_iter().find_map(|f| self.get(f));
        // The built-in value is that of a package.
        let package = || of.into_iter().find_map(|f| Calibration::START.get(f));
        there.or_else(package).unwrap_or(0.0)
    }

    /// Nanoseconds that a cache line takes from one core to another of its package.
    pub fn line_near(&self) -> f64 {
        self.first(Calibration::LINES_NEAR)
    }

    /// Nanoseconds that a cache line takes from one core to another that shares its last-level cache.
    pub fn line_cache(&self) -> f64 {
        self.first(Calibration::LINES_CACHE)
    }

    /// Nanoseconds a byte takes through an area that two such cores share.
    pub fn stream_cache(&self) -> f64 {
        self.first(Calibration::STREAMS_CACHE)
    }

    /// Nanoseconds a byte takes through an area that two cores of a package share.
    pub fn stream_near(&self) -> f64 {
        self.first(Calibration::STREAMS_NEAR)
    }

    /// Nanoseconds that a cache line takes over the largest distance on the host: ranks move.
    pub fn line_between(&self) -> f64 {
        self.first(Calibration::LINES)
    }

    /// Nanoseconds a byte takes through a shared area over the largest distance on the host.
    pub fn stream_between(&self) -> f64 {
        self.first(Calibration::STREAMS)
    }

    /// Nanoseconds a byte of a short message takes, in and out, over the largest distance on the host:
    /// as much more than within a package as a byte of long data. Without such a figure, as long as
    /// that byte.
    pub fn short_message_between(&self) -> f64 {
        let long = self.stream_between();
        self.get(Figure::ShortMessage)
            .map_or(long, |short| short * long / self.stream_near())
    }

    /// Bytes fetched from another process, where the host allows it.
    pub fn fetch(&self) -> Option<Line> {
        Some(Line {
            t0: self.get(Figure::FetchCall)?,
            tb: self.get(Figure::FetchRate)?,
        })
    }

    /// The same if the sender writes a part of them at the same time.
    pub fn fetch_both(&self) -> Option<Line> {
        Some(Line {
            tb: self.get(Figure::FetchBoth)?,
            ..self.fetch()?
        })
    }

    /// As one word without white space, commas or slashes, for [`Calibration::from_word`]: the
    /// host's calibration, an underscore, and those of the network.
    pub fn word(&self) -> String {
        let part = |part: Part| {
            let values: Vec<String> = self.values[part.figures()]
                .iter()
                .map(u64::to_string)
                .collect();
            match self.has(part) {
                true => values.join("."),
                false => UNMEASURED.into(),
            }
        };
        Part::ALL.map(part).join("_")
    }

    /// Parses the output of [`Calibration::word`]; `None` if it is invalid.
    pub fn from_word(word: &str) -> Option<Calibration> {
        let (host, network) = word.split_once('_')?;
        let mut all = Calibration::START;
        for (part, word) in Part::ALL.into_iter().zip([host, network]) {
            if word != UNMEASURED {
                let values: Option<Vec<u64>> = word.split('.').map(|v| v.parse().ok()).collect();
                all = all.believed(part, &values?)?;
            }
        }
        Some(all)
    }

    /// This calibration with one group replaced, if the values are valid.
    fn believed(self, part: Part, values: &[u64]) -> Option<Calibration> {
        let rows = part.rows();
        let mut both = rows.iter().zip(values);
        let good = both.all(|((_, row), v)| *v == 0 || row.range.contains(v));
        let first = part.figures().start;
        (good && rows.len() == values.len())
            .then(|| self.with(part, |figure| values[figure as usize - first]))
    }

    /// The text of a host's file.
    pub fn text(&self, part: Part, subject: &Subject) -> String {
        let mut text = format!("{}\n{}", part.title(), subject.lines());
        for (figure, row) in part.rows() {
            let value = self.value(*figure);
            text += &format!("{} {value} {}\n", row.name, row.unit.name());
        }
        text + END + "\n"
    }

    /// The text of a host's file that marks its figures as not to be used.
    pub fn discarded(part: Part, subject: &Subject) -> String {
        format!("{}\n{}{DISCARDED}\n{END}\n", part.title(), subject.lines())
    }

    /// Parses the text of a host's file: the parameters of that group, defaults for the others.
    pub fn parse(part: Part, text: &str, subject: &Subject) -> Result<Calibration, Disbelieved> {
        let text = text.strip_prefix(part.title());
        let text = text.and_then(|t| t.strip_prefix('\n'));
        let text = text.ok_or(Disbelieved::Format)?;
        let text = text.strip_suffix(&format!("{END}\n"));
        let text = text.ok_or(Disbelieved::Torn)?;
        let rows = text.strip_prefix(&subject.lines());
        let rows = rows.ok_or(Disbelieved::Subject)?;
        if rows.strip_suffix('\n') == Some(DISCARDED) {
            return Err(Disbelieved::Discarded);
        }
        let lines: Vec<&str> = rows.lines().collect();
        let row = |((_, row), line): (&(Figure, Row), &&str)| {
            let value = line.strip_prefix(row.name)?.strip_prefix(' ')?;
            let value = value.strip_suffix(row.unit.name())?.strip_suffix(' ')?;
            value.parse().ok()
        };
        let names = part.rows();
        let values: Option<Vec<u64>> = names.iter().zip(&lines).map(row).collect();
        let values = values.filter(|_| lines.len() == names.len());
        let all = values.and_then(|v| Calibration::START.believed(part, &v));
        all.ok_or(Disbelieved::Figures)
    }
}

/// Why a file of figures is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disbelieved {
    /// It is not such a file, or one of another version.
    Format,
    /// Its end is missing.
    Torn,
    /// It was measured on something else.
    Subject,
    /// Its figures were discarded: the choices by them were slower than those by the defaults.
    Discarded,
    /// No host has such figures.
    Figures,
}

impl std::fmt::Display for Disbelieved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Disbelieved::Format => "it is not a calibration file of this version",
            Disbelieved::Torn => "it is incomplete",
            Disbelieved::Subject => "it was measured on another host, or by another version",
            Disbelieved::Discarded => {
                "its values were discarded, because jobs were slower with them than with the built-in values"
            }
            Disbelieved::Figures => "its values are invalid",
        })
    }
}

impl std::error::Error for Disbelieved {}

impl Subject {
    fn lines(&self) -> String {
        let one = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let [build, host, kind] = [&self.build, &self.host, &self.processors].map(|t| one(t));
        format!("version {build}\nhost {host}\nprocessors {kind}\n")
    }
}

const fn starts() -> [u64; FIGURES] {
    let mut values = [0; FIGURES];
    let mut i = 0;
    while i < FIGURES {
        values[i] = ALL[i].1.start;
        i += 1;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject {
            build: "1.0".into(),
            host: "a".into(),
            processors: "2 of  some\nkind".into(),
        }
    }

    fn some() -> Calibration {
        Calibration::measured(|f| 100_000 + f as u64)
    }

    #[test]
    fn what_is_written_is_read() {
        let all = some().with_network(100_000_000, 8_700_000);
        for part in Part::ALL {
            let read = Calibration::parse(part, &all.text(part, &subject()), &subject());
            assert_eq!(read, Ok(Calibration::START.with_part(part, &all)));
        }
        let network = Calibration::START.with_part(Part::Network, &all);
        for c in [all, some(), network, Calibration::START] {
            assert_eq!(Calibration::from_word(&c.word()), Some(c));
            assert!(!c.word().contains([' ', ',', '/', ':']));
        }
        assert!(
            all.word().len() < 160,
            "it fits into a value of any launcher"
        );
    }

    #[test]
    fn torn_foreign_and_impossible_files_are_not_believed() {
        let whole = some().text(Part::Host, &subject());
        let parse = |text: &str, of: &Subject| Calibration::parse(Part::Host, text, of);
        assert!(Calibration::parse(Part::Network, &whole, &subject()).is_err());
        for end in 0..whole.len() {
            assert!(parse(&whole[..end], &subject()).is_err());
        }
        let other = Subject {
            build: "1.1".into(),
            ..subject()
        };
        let why = parse(&whole, &other);
        assert_eq!(why, Err(Disbelieved::Subject));
        for (from, to) in [
            ("copy-near", "copy-far"),
            ("ps\n", "s\n"),
            (" 100", " 1e9"),
            ("end", "\nend"),
        ] {
            let text = whole.replacen(from, to, 1);
            assert!(parse(&text, &subject()).is_err(), "{text}");
        }
        let wild = whole.replacen("copy-near 100000", "copy-near 1", 1);
        assert!(parse(&wild, &subject()).is_err());
        let more = format!("{}.7", some().word());
        for word in [
            "", "-", "--", "1.2.3", "x", "-_1", "-_1.1", "1_-", "-_-_-", &more,
        ] {
            assert_eq!(Calibration::from_word(word), None, "{word}");
        }
    }

    #[test]
    fn a_file_of_discarded_figures_says_so_and_only_of_its_own_host() {
        let text = Calibration::discarded(Part::Host, &subject());
        let parse = |text: &str, of: &Subject| Calibration::parse(Part::Host, text, of);
        assert_eq!(parse(&text, &subject()), Err(Disbelieved::Discarded));
        let other = Subject {
            processors: "4 of another kind".into(),
            ..subject()
        };
        assert_eq!(parse(&text, &other), Err(Disbelieved::Subject));
        let torn = &text[..text.len() - 1];
        assert_eq!(parse(torn, &subject()), Err(Disbelieved::Torn));
    }

    #[test]
    fn what_is_measured_is_believed() {
        for wild in [0, 1, u64::MAX] {
            let c = Calibration::measured(|_| wild).with_network(wild, wild);
            assert_eq!(Calibration::from_word(&c.word()), Some(c));
            assert!(c.line_between() > 0.0 && c.stream_between() > 0.0);
        }
        assert!(Calibration::measured(|_| 0).fetch().is_none());
    }

    #[test]
    fn starting_values_are_in_their_ranges() {
        for (figure, row) in &ALL {
            assert!(
                row.start == 0 || row.range.contains(&row.start),
                "{figure:?}"
            );
            assert_eq!(Calibration::START.value(*figure), row.start);
        }
    }
}
