//! Programs in Java: `mpiexec -n 4 java Program` finds the classes of MPI without further options.
//!
//! They are in `share/java/mpi.jar` of this installation, which is appended to the class path that
//! the user has given; the jar finds its libraries by itself. Java 24 and later would warn of
//! native code, so an option permits it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::libraries;
use crate::plan;
use crate::ranks::Env;

const JAR: &str = "share/java/mpi.jar";
const CLASSPATH: &str = "CLASSPATH";
/// The first version of Java that warns of native code without permission.
const WARNS: u32 = 24;
const ALLOWED: &str = "--enable-native-access=ALL-UNNAMED";
/// Options of `java` that take the next word as their value.
const WITH_VALUE: [&str; 7] = [
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-exports",
    "--add-opens",
    "--add-reads",
];

/// Makes a program find MPI's classes, if it is `java` and this installation has them.
pub fn serve(program: &Path, words: &mut Vec<OsString>, env: &mut Env) {
    if program.file_name() != Some(OsStr::new("java")) {
        return;
    }
    let Some(jar) = libraries::home()
        .ok()
        .map(|home| home.join(JAR))
        .filter(|jar| jar.exists())
    else {
        return;
    };
    let given = env.iter().find(|(name, _)| name == CLASSPATH);
    let given = given.map(|(_, value)| value.clone());
    if let Some(path) = suit(words, given, jar.as_os_str(), version(program)) {
        plan::set(env, (CLASSPATH.into(), path));
    }
}

/// Puts the jar into the command line, or returns the class path for the environment.
fn suit(
    words: &mut Vec<OsString>,
    given: Option<OsString>,
    jar: &OsStr,
    version: Option<u32>,
) -> Option<OsString> {
    let path = match class_path(words) {
        ClassPath::Word(at, option) => {
            let empty = words[at].to_string_lossy()[option..].is_empty();
            words[at] = joined(&words[at], !empty, jar);
            None
        }
        ClassPath::Jar => {
            let mut word = OsString::from("-Xbootclasspath/a:");
            word.push(jar);
            words.insert(1, word);
            None
        }
        ClassPath::Nothing => {
            let given = given.filter(|path| !path.is_empty());
            Some(joined(&given.unwrap_or_else(|| ".".into()), true, jar))
        }
    };
    if version.is_some_and(|version| version >= WARNS) && !words.iter().any(is_allowance) {
        words.insert(1, ALLOWED.into());
    }
    path
}

fn is_allowance(word: &OsString) -> bool {
    word.to_string_lossy().starts_with("--enable-native-access")
}

fn joined(path: &OsStr, separate: bool, jar: &OsStr) -> OsString {
    let mut all = path.to_os_string();
    if separate {
        all.push(":");
    }
    all.push(jar);
    all
}

/// Where a command line names the class path.
#[derive(Debug, PartialEq, Eq)]
enum ClassPath {
    /// In this word, from this character on.
    Word(usize, usize),
    /// In the manifest of a jar (`-jar`).
    Jar,
    /// Nowhere.
    Nothing,
}

/// Searches the options of `java`, which end at the name of the program; the last class path
/// counts.
fn class_path(words: &[OsString]) -> ClassPath {
    const OPTION: &str = "--class-path=";
    let mut found = ClassPath::Nothing;
    let mut at = 1;
    while at < words.len() {
        let word = words[at].to_string_lossy();
        match &*word {
            "-cp" | "-classpath" | "--class-path" if at + 1 < words.len() => {
                found = ClassPath::Word(at + 1, 0);
                at += 1;
            }
            "-jar" => return ClassPath::Jar,
            word if word.starts_with(OPTION) => found = ClassPath::Word(at, OPTION.len()),
            word if WITH_VALUE.contains(&word) => at += 1,
            word if word.starts_with('-') || word.starts_with('@') => {}
            _ => break,
        }
        at += 1;
    }
    found
}

/// The version of a Java, from the file `release` of its installation.
fn version(program: &Path) -> Option<u32> {
    let program = program.canonicalize().ok()?;
    let release = program.parent()?.parent()?.join("release");
    number(&std::fs::read_to_string(release).ok()?)
}

fn number(release: &str) -> Option<u32> {
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    let text = line.trim_matches('"');
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suited(line: &str, given: Option<&str>, version: u32) -> (String, Option<String>) {
        let mut words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let path = suit(
            &mut words,
            given.map(OsString::from),
            OsStr::new("/mpi.jar"),
            Some(version),
        );
        let words: Vec<String> = words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        (
            words.join(" "),
            path.map(|path| path.to_string_lossy().into_owned()),
        )
    }

    #[test]
    fn the_jar_goes_behind_what_the_user_says() {
        let line = |line: &str| suited(line, Some("x"), 17);
        assert_eq!(
            line("java -cp a:b -Xmx1g Main -cp c"),
            ("java -cp a:b:/mpi.jar -Xmx1g Main -cp c".into(), None)
        );
        assert_eq!(
            line("java --class-path=a Main").0,
            "java --class-path=a:/mpi.jar Main"
        );
        assert_eq!(
            line("java -cp a -classpath b Main").0,
            "java -cp a -classpath b:/mpi.jar Main"
        );
        assert_eq!(
            line("java --add-modules -cp Main").1,
            Some("x:/mpi.jar".into())
        );
        assert_eq!(
            line("java -jar a.jar").0,
            "java -Xbootclasspath/a:/mpi.jar -jar a.jar"
        );
    }

    #[test]
    fn without_a_class_path_the_directory_and_the_jar() {
        assert_eq!(
            suited("java Main -cp x", None, 17),
            ("java Main -cp x".into(), Some(".:/mpi.jar".into()))
        );
        assert_eq!(
            suited("java Main", Some("a"), 17).1,
            Some("a:/mpi.jar".into())
        );
        assert_eq!(
            suited("java Main", Some(""), 17).1,
            Some(".:/mpi.jar".into())
        );
    }

    #[test]
    fn a_new_java_gets_the_option_for_native_code() {
        assert_eq!(
            suited("java -cp a Main", None, 25).0,
            "java --enable-native-access=ALL-UNNAMED -cp a:/mpi.jar Main"
        );
        assert_eq!(
            suited("java --enable-native-access=x -cp a Main", None, 25).0,
            "java --enable-native-access=x -cp a:/mpi.jar Main"
        );
    }

    #[test]
    fn versions_of_java() {
        assert_eq!(
            number("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"25.0.2\"\n"),
            Some(25)
        );
        assert_eq!(number("JAVA_VERSION=\"17\""), Some(17));
        assert_eq!(number("JAVA_VERSION=\"\""), None);
    }
}
