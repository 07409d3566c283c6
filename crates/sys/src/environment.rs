//! The environment, as far as it may be trusted.
//!
//! A program with elevated privileges (set-user-ID, file capabilities) must not open files named by
//! the caller: a library would run with those privileges, and a file would be read with them. The
//! kernel reports this when it starts the program (AT_SECURE). Then a setting that names a file, a
//! library or a command ([`Kind::File`]) is ignored, and [`crate::dlopen`] opens nothing, because
//! libraries that are opened read further names from the environment.

use kw_base::settings::{ALL, Kind};
use kw_base::sync::OnceLock;

/// Whether this program runs with elevated privileges.
pub fn is_untrusted() -> bool {
    // SAFETY: it reads what the kernel wrote when the program started.
    (unsafe { libc::getauxval(libc::AT_SECURE) }) != 0
}

/// A variable of the environment; `None` if it is not set, not text, or not to be trusted (which is
/// reported once).
pub fn variable(name: &str) -> Option<String> {
    let text = std::env::var(name).ok()?;
    if !names_file(name) || !is_untrusted() {
        return Some(text);
    }
    static WARNED: OnceLock<()> = OnceLock::new();
    WARNED.get_or_init(warn);
    None
}

/// Takes a variable out of the environment, so that programs which this one starts do not get it.
/// At MPI_Init, as other libraries change the environment when they are initialised.
pub fn take(name: &str) -> Option<String> {
    let text = std::env::var(name).ok()?;
    // SAFETY: MPI_Init is called by the main thread before the program reads the environment in
    // others (MPI 5.0, 11.2.1, leaves that to the caller).
    unsafe { std::env::remove_var(name) };
    Some(text)
}

/// The command line of this program; empty if the system does not tell. Only the GNU C library
/// gives it to libraries; with another one it is read from `/proc`.
pub fn words() -> Vec<String> {
    let given: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match given.is_empty() {
        true => words_of(&std::fs::read("/proc/self/cmdline").unwrap_or_default()),
        false => given,
    }
}

/// The words of a command line as the kernel writes it, each with a zero behind it.
fn words_of(line: &[u8]) -> Vec<String> {
    line.split_inclusive(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word.strip_suffix(b"\0").unwrap_or(word)).into_owned())
        .collect()
}

fn names_file(name: &str) -> bool {
    ALL.iter().any(|k| k.name == name && k.kind == Kind::File)
}

fn warn() {
    let set = ALL.iter().filter(|k| k.kind == Kind::File);
    let set = set.filter(|k| std::env::var_os(k.name).is_some());
    let names: Vec<&str> = set.map(|k| k.name).collect();
    eprintln!(
        "process {} on {}: this program runs with elevated privileges, so {} (names of files, libraries or commands) is ignored",
        std::process::id(),
        crate::host::name(),
        names.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_files_are_known() {
        for name in [
            "KW_PMIX",
            "KW_COLL",
            "KW_KEY_FILE",
            "KW_SSH",
            "KW_CC",
            "KW_CXX",
            "KW_FC",
            "KW_JAVAC",
        ] {
            assert!(names_file(name), "{name}");
        }
        assert!(!names_file("KW_RANK") && !names_file("PMI_FD"));
    }

    #[test]
    fn a_command_line_is_read_as_the_kernel_writes_it() {
        assert_eq!(words_of(b"./a\0b c\0\0"), ["./a", "b c", ""]);
        assert!(words_of(b"").is_empty());
        let line = std::fs::read("/proc/self/cmdline").unwrap();
        assert_eq!(words_of(&line), words());
    }
}
