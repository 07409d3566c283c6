//! The figures of this host and of its network: measuring the host, and the files that keep them.
//!
//! The calibration files are the library's only named files: `calibration-HOST` and `network-HOST`
//! in `kittiwake/` in `$XDG_CACHE_HOME`, or in `~/.cache`. Each is replaced as a whole by a rename,
//! so readers see either the old or the new one; a file that is torn, foreign, of another version
//! or another machine is ignored. A program with elevated privileges neither reads nor writes them.

mod cpu_pair;
mod file;
mod measure;

pub use file::{Refusal, path};
pub use measure::measure;

use kw_base::Calibration;
use kw_base::calibration::{Part, Subject};
use kw_base::settings::{Id, Settings};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The figures that the settings allow to be used: those of the host's files, or the built-in
/// values.
pub fn known(settings: &Settings) -> Calibration {
    let mut all = Calibration::START;
    if settings.flag(Id::Calibrate) {
        for part in Part::ALL {
            match load(part) {
                Ok(figures) => all = all.with_part(part, &figures),
                Err(why) => tracing::debug!("the built-in prices are used: {why}"),
            }
        }
    }
    all
}

/// Reads one of the host's files: its parameters, defaults for the rest.
pub fn load(part: Part) -> Result<Calibration, Refusal> {
    file::load(part, &path(part)?, subject)
}

/// Writes one of the host's files; returns its path.
pub fn store(part: Part, figures: &Calibration) -> Result<PathBuf, Refusal> {
    let path = path(part)?;
    file::store(&path, &figures.text(part, &subject()))?;
    Ok(path)
}

/// Writes a file of this host below a directory of caches other than the user's.
pub fn store_below(cache: &Path, part: Part, figures: &Calibration) -> Result<(), Refusal> {
    let text = figures.text(part, &subject());
    file::store(&file::path_below(cache, part), &text)
}

/// Writes a file that marks the measured figures as not to be used: the built-in values are used
/// instead, and no process measures again unasked. Returns its path.
pub fn discard(part: Part) -> Result<PathBuf, Refusal> {
    let path = path(part)?;
    file::store(&path, &Calibration::discarded(part, &subject()))?;
    Ok(path)
}

/// Whether one of the host's files is marked so.
pub fn is_discarded(part: Part) -> bool {
    path(part).is_ok_and(|path| file::is_discarded(part, &path, subject))
}

/// Key of calibrations measured here.
fn subject() -> Subject {
    Subject {
        build: format!("{} {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH),
        host: crate::host::name(),
        processors: processors(),
    }
}

/// Number of the machine's CPUs, and their kind.
fn processors() -> String {
    let named = |line: &String| line.starts_with("model name") || line.starts_with("CPU part");
    // The file is as long as there are CPUs; the first of them has the name.
    let text = File::open("/proc/cpuinfo").map(BufReader::new);
    let kind = text
        .ok()
        .and_then(|text| text.lines().map_while(Result::ok).find(named));
    let kind = kind.as_deref().and_then(|line| line.split_once(':'));
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    format!("{} {}", online.trim(), kind.map_or("", |(_, k)| k.trim()))
}
