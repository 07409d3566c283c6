//! The commands `mpiexec`, `kwinfo`, `kwtrace` and `kwsim` in one program, which acts as the
//! command by whose name it was called: as separate programs, they would hold the same code four
//! times.
//!
//! `make install` installs it as `mpiexec`, with a link for every other name. Under an unknown name
//! it is `mpiexec`; the first words `--as NAME` select a command (for a second process of `kwinfo`,
//! and for the scripts of a wheel, which holds no links).
#![forbid(unsafe_code)]

mod kwinfo;
mod kwsim;
mod kwtrace;
mod mpiexec;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use kw_launch::libraries::AS;

/// A command. Its arguments begin with its name.
type Command = fn(Vec<OsString>) -> ExitCode;

/// All of them, by name. The first is the default.
const COMMANDS: [(&str, Command); 4] = [
    ("mpiexec", mpiexec::main),
    ("kwinfo", kwinfo::main),
    ("kwtrace", kwtrace::main),
    ("kwsim", kwsim::main),
];

fn main() -> ExitCode {
    let (command, words) = meant(std::env::args_os().collect());
    command(words)
}

/// The command that a command line selects, and its arguments.
fn meant(mut words: Vec<OsString>) -> (Command, Vec<OsString>) {
    let named = |word: &OsString| {
        let name = Path::new(word).file_name()?;
        COMMANDS.into_iter().find(|(n, _)| name == *n)
    };
    let selected = match words.get(1) {
        Some(word) if word == AS => words.get(2).and_then(named),
        _ => None,
    };
    if selected.is_some() {
        words.drain(1..3);
    }
    let (name, command) = selected
        .or_else(|| words.first().and_then(named))
        .unwrap_or(COMMANDS[0]);
    match words.first_mut() {
        Some(first) if selected.is_some() => *first = name.into(),
        _ => {}
    }
    (command, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the command that these words select, and its arguments.
    fn of(line: &str) -> (&'static str, String) {
        let (command, words) = meant(line.split_whitespace().map(OsString::from).collect());
        let is = |(_, c): &&(&str, Command)| std::ptr::fn_addr_eq(*c, command);
        let (name, _) = COMMANDS.iter().find(is).unwrap();
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        (*name, words.join(" "))
    }

    #[test]
    fn the_name_says_which_command_it_is() {
        let line = |name: &'static str, words: &str| (name, words.to_string());
        assert_eq!(
            of("/a/bin/kwinfo --doctor"),
            line("kwinfo", "/a/bin/kwinfo --doctor")
        );
        assert_eq!(of("kwsim"), line("kwsim", "kwsim"));
        for other in ["mpiexec -n 2 a", "mpirun -n 2 a", "kittiwake -n 2 a"] {
            assert_eq!(of(other), line("mpiexec", other));
        }
        assert_eq!(of(""), line("mpiexec", ""));
    }

    #[test]
    fn the_first_words_say_it_where_no_link_is() {
        let line = |name: &'static str, words: &str| (name, words.to_string());
        assert_eq!(
            of("/a/mpiexec --as kwinfo --doctor"),
            line("kwinfo", "kwinfo --doctor")
        );
        assert_eq!(of("kwinfo --as /b/kwtrace"), line("kwtrace", "kwtrace"));
        // mpiexec's message about an unknown option
        for other in ["mpiexec --as", "mpiexec --as a", "mpiexec -n 2 --as kwinfo"] {
            assert_eq!(of(other), line("mpiexec", other));
        }
    }
}
