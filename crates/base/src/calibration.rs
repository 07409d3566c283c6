//! What was measured of a host: the figures that choices are priced with, and the two texts that
//! carry them, the file of a host (`kw_sys::calibration`) and the word that the ranks of a job
//! agree on (`kw_start`).
//!
//! Each figure is one row of a table: its name, its unit, the value that holds where nothing was
//! measured, and the values that are believed. What a choice makes of a figure stands with the
//! choice (`kw_proto::p2p::prices`).

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

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Picoseconds.
    Picos,
    /// Picoseconds for 1024 bytes.
    PicosPerKb,
}

impl Unit {
    /// As files name it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Picos => "ps",
            Unit::PicosPerKb => "ps/KB",
        }
    }

    /// A value for people.
    pub fn show(self, value: u64) -> String {
        match (self, value) {
            (_, 0) => "none".into(),
            (Unit::Picos, _) => format!("{:.3} us", value as f64 / 1e6),
            (Unit::PicosPerKb, _) => format!("{:.1} GB/s", 1024.0 * 1000.0 / value as f64),
        }
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name in the file.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What holds where nothing was measured: a value of a virtual machine with two cores.
    pub start: u64,
    /// What is believed; zero besides, for what the host does not have.
    pub range: RangeInclusive<u64>,
    /// What it is.
    pub help: &'static str,
}

macro_rules! figures {
    ($($id:ident = $name:literal, $unit:ident, $start:literal, $range:expr, $help:literal;)*) => {
        /// Names a figure.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Figure { $($id),* }

        /// How many figures there are.
        const FIGURES: usize = [$(Figure::$id),*].len();

        /// The figures, in the order in which they are written.
        pub const ALL: [(Figure, Row); FIGURES] = [$((Figure::$id, Row {
            name: $name,
            unit: Unit::$unit,
            start: $start,
            range: $range,
            help: $help,
        })),*];
    };
}

figures! {
    CopyNear = "copy-near", PicosPerKb, 22_528, 2_000..=2_000_000, "Copying 64 KB that a core has in its caches.";
    Keep = "keep", PicosPerKb, 61_440, 4_000..=4_000_000, "Keeping a long message that comes early: memory for it, and the copy out of it.";
    LineCore = "line-core", Picos, 0, 2_000..=5_000_000, "A cache line from one hardware thread to another of its core.";
    LinePackage = "line-package", Picos, 45_000, 2_000..=5_000_000, "A cache line from one core to another of its package.";
    LineHost = "line-host", Picos, 0, 2_000..=5_000_000, "A cache line from one package to another.";
    StreamCore = "stream-core", PicosPerKb, 0, 2_000..=4_000_000, "Long data through an area that two hardware threads of a core share.";
    StreamPackage = "stream-package", PicosPerKb, 22_528, 2_000..=4_000_000, "The same between two cores of a package.";
    StreamHost = "stream-host", PicosPerKb, 0, 2_000..=4_000_000, "The same between two packages.";
    FetchCall = "fetch-call", Picos, 1_300_000, 50_000..=100_000_000, "A call of process_vm_readv.";
    FetchRate = "fetch-rate", PicosPerKb, 69_632, 4_000..=4_000_000, "What each kilobyte adds to it.";
    Wake = "wake", Picos, 15_000_000, 500_000..=1_000_000_000, "From a futex wake until the thread that slept runs, on another core.";
}

/// The figures of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calibration {
    values: [u64; FIGURES],
    measured: bool,
}

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration::START
    }
}

/// For whom a file of figures holds: whatever else says another of these was measured elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// Version of the library.
    pub build: String,
    /// The host's name.
    pub host: String,
    /// Its kind of processor and how many it has.
    pub processors: String,
}

/// First line of a file of figures.
const TITLE: &str = "kittiwake calibration 1";
/// Its last one: a file without it is torn.
const END: &str = "end";
/// The word of the figures that were not measured.
const UNMEASURED: &str = "-";

impl Calibration {
    /// What holds where nothing was measured.
    pub const START: Calibration = Calibration {
        values: starts(),
        measured: false,
    };

    /// Figures that were measured. What is larger than what is believed was not measured well: its
    /// starting value holds.
    pub fn measured(value: impl Fn(Figure) -> u64) -> Calibration {
        let mut values = [0; FIGURES];
        for ((figure, row), slot) in ALL.iter().zip(&mut values) {
            *slot = match value(*figure) {
                0 => 0,
                v if v > *row.range.end() => row.start,
                v => v.max(*row.range.start()),
            };
        }
        Calibration {
            values,
            measured: true,
        }
    }

    /// Whether the host was measured.
    pub fn is_measured(&self) -> bool {
        self.measured
    }

    /// A figure in its unit; zero: the host has no such thing.
    pub fn value(&self, figure: Figure) -> u64 {
        self.values[figure as usize]
    }

    /// A figure in nanoseconds, or nanoseconds a byte; `None`: the host has no such thing.
    fn get(&self, figure: Figure) -> Option<f64> {
        let per = match ALL[figure as usize].1.unit {
            Unit::Picos => 1e3,
            Unit::PicosPerKb => 1024e3,
        };
        let value = self.value(figure);
        (value != 0).then_some(value as f64 / per)
    }

    /// As [`Calibration::get`]; what the host does not have is as it was elsewhere.
    pub fn get_or_start(&self, figure: Figure) -> f64 {
        let start = || Calibration::START.get(figure).unwrap_or(0.0);
        self.get(figure).unwrap_or_else(start)
    }

    /// The first figure of these that the host has: the largest distance of those that there are.
    fn first(&self, of: [Figure; 3]) -> f64 {
        let there = of.into_iter().find_map(|f| self.get(f));
        there.unwrap_or_else(|| self.get_or_start(of[1]))
    }

    /// Nanoseconds that a cache line takes over the largest distance on the host: ranks move.
    pub fn line_between(&self) -> f64 {
        self.first([Figure::LineHost, Figure::LinePackage, Figure::LineCore])
    }

    /// Nanoseconds a byte takes through a shared area over the largest distance on the host.
    pub fn stream_between(&self) -> f64 {
        let all = [
            Figure::StreamHost,
            Figure::StreamPackage,
            Figure::StreamCore,
        ];
        self.first(all)
    }

    /// Bytes fetched from another process, where the host allows it.
    pub fn fetch(&self) -> Option<Line> {
        Some(Line {
            t0: self.get(Figure::FetchCall)?,
            tb: self.get(Figure::FetchRate)?,
        })
    }

    /// As one word without white space, commas or slashes, for [`Calibration::from_word`].
    pub fn word(&self) -> String {
        if !self.measured {
            return UNMEASURED.into();
        }
        let values: Vec<String> = self.values.iter().map(u64::to_string).collect();
        values.join(".")
    }

    /// What [`Calibration::word`] has written; `None` when it is something else.
    pub fn from_word(word: &str) -> Option<Calibration> {
        if word == UNMEASURED {
            return Some(Calibration::START);
        }
        let values: Option<Vec<u64>> = word.split('.').map(|v| v.parse().ok()).collect();
        Calibration::believed(values?.try_into().ok()?)
    }

    fn believed(values: [u64; FIGURES]) -> Option<Calibration> {
        let mut rows = ALL.iter().zip(&values);
        let good = rows.all(|((_, row), v)| *v == 0 || row.range.contains(v));
        good.then_some(Calibration {
            values,
            measured: true,
        })
    }

    /// The text of a host's file.
    pub fn text(&self, subject: &Subject) -> String {
        let mut text = format!("{TITLE}\n{}", subject.lines());
        for ((_, row), value) in ALL.iter().zip(&self.values) {
            text += &format!("{} {value} {}\n", row.name, row.unit.name());
        }
        text + END + "\n"
    }

    /// Reads the text of a host's file; an error says why it is not believed.
    pub fn parse(text: &str, subject: &Subject) -> Result<Calibration, String> {
        let text = text.strip_prefix(TITLE).and_then(|t| t.strip_prefix('\n'));
        let text = text.ok_or("it is no file of figures of this version")?;
        let text = text.strip_suffix(&format!("{END}\n"));
        let text = text.ok_or("it is not whole")?;
        let rows = text.strip_prefix(&subject.lines());
        let rows = rows.ok_or("it was measured on another host, or by another version")?;
        let lines: Vec<&str> = rows.lines().collect();
        let row = |((_, row), line): (&(Figure, Row), &&str)| {
            let value = line.strip_prefix(row.name)?.strip_prefix(' ')?;
            let value = value.strip_suffix(row.unit.name())?.strip_suffix(' ')?;
            value.parse().ok()
        };
        let values: Option<Vec<u64>> = ALL.iter().zip(&lines).map(row).collect();
        let values = values.filter(|_| lines.len() == FIGURES);
        let values = values.and_then(|v| v.try_into().ok());
        let all = values.and_then(Calibration::believed);
        all.ok_or_else(|| "its figures cannot be".into())
    }
}

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
        let all = some();
        assert_eq!(
            Calibration::parse(&all.text(&subject()), &subject()),
            Ok(all)
        );
        for c in [all, Calibration::START] {
            assert_eq!(Calibration::from_word(&c.word()), Some(c));
            assert!(!c.word().contains([' ', ',', '/', ':']));
        }
        assert!(
            all.word().len() < 128,
            "it fits into a value of any launcher"
        );
    }

    #[test]
    fn torn_foreign_and_impossible_files_are_not_believed() {
        let whole = some().text(&subject());
        for end in 0..whole.len() {
            assert!(Calibration::parse(&whole[..end], &subject()).is_err());
        }
        let other = Subject {
            build: "1.1".into(),
            ..subject()
        };
        let why = Calibration::parse(&whole, &other).unwrap_err();
        assert!(why.contains("another version"), "{why}");
        for (from, to) in [
            ("copy-near", "copy-far"),
            ("ps\n", "s\n"),
            (" 100", " 1e9"),
            ("end", "\nend"),
        ] {
            let text = whole.replacen(from, to, 1);
            assert!(Calibration::parse(&text, &subject()).is_err(), "{text}");
        }
        let wild = whole.replacen("copy-near 100000", "copy-near 1", 1);
        assert!(Calibration::parse(&wild, &subject()).is_err());
        for word in ["", "--", "1.2.3", "x", &format!("{}.7", some().word())] {
            assert_eq!(Calibration::from_word(word), None, "{word}");
        }
    }

    #[test]
    fn what_is_measured_is_believed() {
        for wild in [0, 1, u64::MAX] {
            let c = Calibration::measured(|_| wild);
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
