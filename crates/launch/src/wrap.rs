//! Commands under which ranks are started: `--wrap`, `--debug`.
//!
//! `mpiexec -n 4 --wrap 1,3:'valgrind --log-file=rank.%r' ./program` starts ranks 1 and 3 as
//! `valgrind --log-file=rank.1 ./program`. The program and its libraries are found in the same way
//! as without the option.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::plan;
use crate::ranks::{Begin, Env};
use crate::verdict::Verdict;

/// A command, and its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    /// The ranks; all if none are named.
    ranks: Vec<RangeInclusive<u32>>,
    words: Vec<String>,
    /// The option as the user wrote it.
    text: String,
}

impl Wrap {
    /// Reads `[RANKS:]COMMAND`: ranks such as `0,4-7`, and a command that is split into words as by
    /// a shell.
    pub fn parse(text: &str) -> Result<Wrap, Verdict> {
        let (ranks, command) = match text.split_once(':') {
            Some((ranks, command)) if ranks.chars().all(|c| "0123456789,-".contains(c)) => {
                (ranges(ranks)?, command)
            }
            _ => (Vec::new(), text),
        };
        let words = shell_words::split(command)
            .map_err(|e| Verdict::misuse(format!("--wrap '{command}': {e}")))?;
        if words.is_empty() {
            return Err(Verdict::misuse(format!(
                "--wrap '{text}' names no command; for example: --wrap 0,2-3:'valgrind -q'"
            )));
        }
        Ok(Wrap {
            ranks,
            words,
            text: text.into(),
        })
    }

    /// The option as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a rank is started under it.
    pub fn is_for(&self, rank: u32) -> bool {
        self.ranks.is_empty() || self.ranks.iter().any(|r| r.contains(&rank))
    }

    /// A rank that it names and that a job of this size does not have.
    pub fn beyond(&self, size: u32) -> Option<u32> {
        let last = self.ranks.iter().map(|r| *r.end()).max()?;
        (last >= size).then_some(last)
    }

    /// The words that start a program under it: `%r` is the rank.
    pub fn around(&self, rank: u32, program: &Path, arguments: &[OsString]) -> Vec<OsString> {
        let replaced = |word: &String| OsString::from(word.replace("%r", &rank.to_string()));
        let own = self.words.iter().map(replaced);
        own.chain([program.as_os_str().to_os_string()])
            .chain(arguments.iter().cloned())
            .collect()
    }
}

fn ranges(text: &str) -> Result<Vec<RangeInclusive<u32>>, Verdict> {
    let range = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..=last)
    };
    let all: Option<Vec<_>> = text.split(',').map(range).collect();
    all.ok_or_else(|| {
        Verdict::misuse(format!(
            "'{text}' names no ranks; ranks are written as 0,4-7"
        ))
    })
}

/// The words that start a rank under its commands, if it has any.
pub fn wrapped(wraps: &[Wrap], rank: &Begin, env: &mut Env) -> Option<Vec<OsString>> {
    let mut words: Option<Vec<OsString>> = None;
    for wrap in wraps.iter().rev().filter(|w| w.is_for(rank.rank)) {
        let inner = words.take();
        let inner = inner.as_deref().map(|w| (Path::new(&w[0]), &w[1..]));
        let (program, arguments) = inner.unwrap_or((rank.program, &rank.words[1..]));
        let all = wrap.around(rank.rank, program, arguments);
        suit(&all[0], env);
        words = Some(all);
    }
    words
}

/// The file of a command on this machine.
pub fn find(command: &OsStr, dir: Option<&Path>) -> Result<PathBuf, Verdict> {
    plan::find(
        command,
        dir,
        &plan::current_dir()?,
        std::env::var_os("PATH"),
    )
}

/// Removes what a command cannot cope with: valgrind replaces functions of the C library, and fails
/// when an auditor has loaded a second C library.
fn suit(command: &OsStr, env: &mut Env) {
    let name = Path::new(command).file_name();
    if name.is_some_and(|name| name.to_string_lossy().starts_with("valgrind")) {
        env.retain(|(name, _)| name != "LD_AUDIT");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_words() {
        let wrap = Wrap::parse("0,4-7:perf record -o 'my file.%r'").unwrap();
        let of = |ranks: &[u32]| ranks.iter().map(|r| wrap.is_for(*r)).collect::<Vec<_>>();
        assert_eq!(
            of(&[0, 1, 3, 4, 7, 8]),
            [true, false, false, true, true, false]
        );
        let words = wrap.around(4, Path::new("/bin/a"), &["x".into()]);
        assert_eq!(words, ["perf", "record", "-o", "my file.4", "/bin/a", "x"]);
        assert_eq!((wrap.beyond(8), wrap.beyond(7)), (None, Some(7)));
        let all = Wrap::parse("C:/a/b").unwrap();
        assert!(all.is_for(99) && all.beyond(1).is_none() && all.words == ["C:/a/b"]);
    }

    #[test]
    fn mistakes_get_one_sentence() {
        for (text, part) in [
            ("", "names no command"),
            ("3:", "names no command"),
            ("3-1:gdb", "names no ranks"),
            ("1,,2:gdb", "names no ranks"),
            (":gdb", "names no ranks"),
            ("a 'b", "--wrap 'a 'b'"),
        ] {
            let e = Wrap::parse(text).unwrap_err().sentence;
            assert!(e.contains(part) && !e.contains('\n'), "{text}: {e}");
        }
    }

    #[test]
    fn no_auditor_goes_with_valgrind() {
        let before: Env = vec![("LD_AUDIT".into(), "a".into()), ("A".into(), "b".into())];
        for (command, left) in [("/usr/bin/valgrind", 1), ("gdb", 2)] {
            let mut env = before.clone();
            suit(OsStr::new(command), &mut env);
            assert_eq!(env.len(), left, "{command}");
        }
    }
}
