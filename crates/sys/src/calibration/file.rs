//! The files of a host's figures: where they are, reading them, replacing them.

use kw_base::Calibration;
use kw_base::calibration::{Disbelieved, Part, Subject};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Upper limit of the length of such a file, bytes.
const LONGEST: u64 = 4096;

/// Why the file cannot be used: one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

fn refused(what: &str, path: &Path, why: impl fmt::Display) -> Refusal {
    Refusal(format!("cannot {what} {}: {why}", path.display()))
}

/// Path of this host's file with such figures, whether or not it exists.
pub fn path(part: Part) -> Result<PathBuf, Refusal> {
    if crate::environment::is_untrusted() {
        let why = "a program with elevated privileges does not use this file";
        return Err(Refusal(why.into()));
    }
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let home = || variable("HOME").map(|home| home.join(".cache"));
    let cache = variable("XDG_CACHE_HOME").filter(|p| p.is_absolute());
    let cache = cache.or_else(home).filter(|p| p.is_absolute());
    let why = "neither XDG_CACHE_HOME nor HOME names a directory";
    let cache = cache.ok_or_else(|| Refusal(why.into()))?;
    Ok(path_below(&cache, part))
}

/// Path of the same file below this directory of caches.
pub fn path_below(cache: &Path, part: Part) -> PathBuf {
    let plain = |c: char| {
        if c.is_alphanumeric() || "-._".contains(c) {
            c
        } else {
            '_'
        }
    };
    let host: String = crate::host::name().chars().map(plain).collect();
    let what = match part {
        Part::Host => "calibration",
        Part::Network => "network",
    };
    cache.join(format!("kittiwake/{what}-{host}"))
}

/// Reads a file that was measured of this subject; the subject is asked for only if there is a
/// file.
pub fn load(
    part: Part,
    path: &Path,
    subject: impl FnOnce() -> Subject,
) -> Result<Calibration, Refusal> {
    let text = read(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Refusal(format!("there is no {}", path.display())),
        _ => refused("read", path, e),
    })?;
    Calibration::parse(part, &text, &subject()).map_err(|why| refused("believe", path, why))
}

/// Whether a file of this subject marks its figures as discarded.
pub fn is_discarded(part: Part, path: &Path, subject: impl FnOnce() -> Subject) -> bool {
    let parsed = |text: String| Calibration::parse(part, &text, &subject());
    read(path).is_ok_and(|text| parsed(text) == Err(Disbelieved::Discarded))
}

/// A pipe in place of the file does not block.
fn read(path: &Path) -> io::Result<String> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = file.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces the file as a whole, or leaves it as it is.
pub fn store(path: &Path, text: &str) -> Result<(), Refusal> {
    let failed = |e: io::Error| refused("write", path, e);
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(refused("write", path, "it has no directory"));
    };
    fs::create_dir_all(directory).map_err(failed)?;
    // Processes that measure at the same time, on any host, have one each.
    let own = format!(".{}.{:x}", name.to_string_lossy(), crate::clock::now().0);
    let own = directory.join(format!("{own}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o644).open(&own);
    let written = made.and_then(|file| fill(file, text, &own, path));
    written.map_err(|e| {
        let _ = fs::remove_file(&own);
        failed(e)
    })
}

fn fill(mut file: File, text: &str, own: &Path, path: &Path) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(own, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        Subject {
            build: "1".into(),
            host: "h".into(),
            processors: "2".into(),
        }
    }

    /// A directory that is gone afterwards.
    struct TempDir(PathBuf);

    impl TempDir {
        fn new(name: &str) -> TempDir {
            let name = format!("kw-calibration-{name}-{}", std::process::id());
            TempDir(std::env::temp_dir().join(name))
        }

        fn file(&self) -> PathBuf {
            self.0.join("kittiwake/calibration-h")
        }

        fn names(&self) -> Vec<String> {
            let all = fs::read_dir(self.0.join("kittiwake")).unwrap().flatten();
            all.map(|e| e.file_name().to_string_lossy().into())
                .collect()
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn some() -> Calibration {
        Calibration::measured(|f| 200_000 + f as u64)
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_else_is_left() {
        let place = TempDir::new("replaced");
        let path = place.file();
        assert!(load(Part::Host, &path, subject).is_err());
        store(&path, "torn").unwrap();
        let why = load(Part::Host, &path, subject).unwrap_err().to_string();
        assert!(
            why.starts_with("cannot believe") && why.contains("calibration-h"),
            "{why}"
        );
        store(&path, &some().text(Part::Host, &subject())).unwrap();
        assert_eq!(load(Part::Host, &path, subject), Ok(some()));
        assert_eq!(place.names(), ["calibration-h"]);
    }

    #[test]
    fn discarded_figures_are_not_used_until_others_replace_them() {
        let place = TempDir::new("discarded");
        let path = place.file();
        assert!(!is_discarded(Part::Host, &path, subject));
        store(&path, &Calibration::discarded(Part::Host, &subject())).unwrap();
        let why = load(Part::Host, &path, subject).unwrap_err().to_string();
        assert!(why.contains("were discarded"), "{why}");
        assert!(is_discarded(Part::Host, &path, subject));
        store(&path, &some().text(Part::Host, &subject())).unwrap();
        assert!(!is_discarded(Part::Host, &path, subject));
        assert_eq!(load(Part::Host, &path, subject), Ok(some()));
    }

    #[test]
    fn who_measure_at_once_all_leave_a_whole_file() {
        let place = TempDir::new("at-once");
        let write = |_| {
            let path = place.file();
            kw_base::sync::thread::spawn(move || {
                for _ in 0..50 {
                    store(&path, &some().text(Part::Host, &subject())).unwrap();
                    assert_eq!(load(Part::Host, &path, subject), Ok(some()));
                }
            })
        };
        let writers: Vec<_> = (0..4).map(write).collect();
        writers.into_iter().for_each(|w| w.join().unwrap());
        assert_eq!(place.names(), ["calibration-h"]);
    }

    #[test]
    fn what_cannot_be_written_is_reported_and_leaves_nothing() {
        let place = TempDir::new("unwritable");
        fs::create_dir_all(&place.0).unwrap();
        fs::write(
            place.0.join("kittiwake"),
            "a file where the directory should be",
        )
        .unwrap();
        let why = store(&place.file(), "text").unwrap_err().to_string();
        assert!(why.starts_with("cannot write"), "{why}");
        let there: Vec<_> = fs::read_dir(&place.0).unwrap().flatten().collect();
        assert_eq!(there.len(), 1);
        // A directory in its place stays, and the file that was to replace it is removed.
        let other = TempDir::new("directory");
        fs::create_dir_all(other.file()).unwrap();
        assert!(store(&other.file(), "text").is_err());
        assert_eq!(other.names(), ["calibration-h"]);
        assert!(load(Part::Host, &other.file(), subject).is_err());
    }
}
