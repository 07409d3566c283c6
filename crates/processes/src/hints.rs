//! Info keys about a program to be started (MPI 5.0, 11.8.4): the standard's, and those of Open MPI
//! and MPICH that mean the same as an option of this `mpiexec`.
//!
//! The file of the key `file` has a line `key = value` for each of these keys; `#` starts a
//! comment. Values in the Info object itself take precedence. `env` may occur there once for each
//! variable.

use crate::start::Program;
use kw_objects::error::{Res, fail};
use kw_objects::info::Info;

/// Keys that mean the same as an option of mpiexec, the best-known first.
const OPTIONS: &[(&str, &[&str])] = &[
    ("--host", &["host", "add-host", "hosts"]),
    ("--hostfile", &["hostfile", "add-hostfile"]),
    ("--ppn", &["ppn", "npernode"]),
    ("--map-by", &["map_by"]),
    ("--rank-by", &["rank_by"]),
    ("--bind", &["bind_to"]),
    ("--prefix", &["prefix", "ompi_prefix"]),
];

/// The keys of one program, with their values.
struct Keys<'a> {
    info: Option<&'a Info>,
    /// Those in the file.
    file: Vec<(String, String)>,
}

impl Keys<'_> {
    /// The values of a key.
    fn all<'b>(&'b self, key: &'b str) -> impl Iterator<Item = &'b str> {
        let own = self.info.and_then(|i| i.get(key));
        let other = self
            .file
            .iter()
            .filter(move |(k, _)| own.is_none() && k == key);
        own.into_iter().chain(other.map(|(_, value)| &**value))
    }

    /// The first of these keys that has a value.
    fn get(&self, names: &[&str]) -> Option<String> {
        let mut found = names.iter().filter_map(|key| self.all(key).next());
        found.next().map(str::to_string)
    }
}

/// Completes a program, whose count is the maximum that may be started.
pub fn apply(program: &mut Program, info: Option<&Info>) -> Res {
    let file = match info.and_then(|i| i.get("file")) {
        Some(name) => read(name)?,
        None => Vec::new(),
    };
    let keys = Keys { info, file };
    for (option, names) in OPTIONS {
        if let Some(value) = keys.get(names) {
            program.options.push((option, value));
        }
    }
    let no = |value: &str| ["false", "no", "0"].contains(&value);
    if keys.get(&["pernode"]).is_some_and(|value| !no(&value)) {
        program.options.push(("--ppn", "1".into()));
    }
    program.wdir = keys.get(&["wdir", "wd"]);
    program.path = keys.get(&["path"]);
    for line in keys.all("env").flat_map(str::lines) {
        if let Some((name, value)) = line.split_once('=') {
            program.env.push((name.trim().into(), value.into()));
        }
    }
    if let Some(set) = keys.get(&["soft"]) {
        program.count = largest(&set, program.count)?;
    }
    Ok(())
}

/// The lines of a file.
fn read(name: &str) -> Res<Vec<(String, String)>> {
    match std::fs::read_to_string(name) {
        Ok(text) => lines(&text, name),
        Err(e) => fail!(InfoValue: "the file '{name}' of the info key file cannot be read: {e}"),
    }
}

fn lines(text: &str, name: &str) -> Res<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return fail!(InfoValue: "line {number} of '{name}', the file of the info key file, is '{line}', but must be 'key = value'");
        };
        pairs.push((key.trim().to_string(), value.trim().to_string()));
    }
    Ok(pairs)
}

/// The largest number in a set that is positive and at most `most`. The set is a list of triplets
/// `a`, `a:b` or `a:b:c`, as in Fortran.
fn largest(set: &str, most: u32) -> Res<u32> {
    let mut best = None;
    for triplet in set.split(',') {
        let Some((first, last, step)) = bounds(triplet) else {
            return fail!(InfoValue: "'{triplet}' of the info key soft ('{set}') is none of a, a:b and a:b:c with numbers that count from a to b");
        };
        best = best.max(largest_of(first, last, step, most.into()));
    }
    match best.and_then(|n| u32::try_from(n).ok()) {
        Some(count) => Ok(count),
        None => {
            fail!(InfoValue: "the info key soft ('{set}') allows no number of processes from 1 to {most}, the maxprocs")
        }
    }
}

/// First number, last number and step of a triplet.
fn bounds(triplet: &str) -> Option<(i64, i64, i64)> {
    let numbers: Option<Vec<i64>> = triplet
        .split(':')
        .map(|n| n.trim().parse::<i32>().ok().map(i64::from))
        .collect();
    let found = match numbers?[..] {
        [a] => (a, a, 1),
        [a, b] => (a, b, 1),
        [a, b, c] => (a, b, c),
        _ => return None,
    };
    let (a, b, step) = found;
    (step != 0 && (b == a || (b > a) == (step > 0))).then_some(found)
}

/// The largest of `first`, `first + step`, ... up to `last` that is from 1 to `most`.
fn largest_of(first: i64, last: i64, step: i64, most: i64) -> Option<i64> {
    let length = (last - first) / step;
    let (low, step) = match step > 0 {
        true => (first, step),
        false => (first + length * step, -step),
    };
    let steps = (most - low).div_euclid(step).min(length);
    let found = low + steps * step;
    (steps >= 0 && found >= 1).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soft(set: &str, most: u32) -> Option<u32> {
        largest(set, most).ok()
    }

    #[test]
    fn soft_takes_the_largest_number_of_the_set_that_maxprocs_allows() {
        assert_eq!(soft("4", 4), Some(4));
        assert_eq!(soft("1:10000:2", 10), Some(9));
        assert_eq!(soft("1:3", 10), Some(3));
        assert_eq!(soft("10:1:-3", 6), Some(4), "10, 7, 4, 1");
        assert_eq!(soft("10:2:-3", 3), None, "10, 7, 4");
        assert_eq!(
            soft("-5:2, 8", 7),
            Some(2),
            "negative numbers count for nothing"
        );
        assert_eq!(soft("2,3,4,5,7", 6), Some(5));
        assert_eq!(soft("0", 6), None);
        assert_eq!(soft("7", 6), None);
        for wrong in [
            "",
            "x",
            "1:",
            "2:1",
            "1:2:-1",
            "1:2:0",
            "1:2:3:4",
            "9999999999",
        ] {
            let why = largest(wrong, 6).unwrap_err();
            assert!(
                why.text
                    .contains(&format!("'{wrong}' of the info key soft")),
                "{}",
                why.text
            );
        }
    }

    /// Every small triplet, compared with its definition.
    #[test]
    fn the_largest_of_a_triplet_is_that_of_its_numbers() {
        for (first, last, most) in
            (-4..9).flat_map(|a| (-4..9).flat_map(move |b| (1..9).map(move |m| (a, b, m))))
        {
            for step in [-3, -2, -1, 1, 2, 3] {
                let Some((a, b, c)) = bounds(&format!("{first}:{last}:{step}")) else {
                    continue;
                };
                let numbers = (0..20).map(|k| a + k * c);
                let inside = numbers.filter(|&n| if c > 0 { n <= b } else { n >= b });
                let wanted = inside.filter(|n| (1..=most).contains(n)).max();
                assert_eq!(
                    largest_of(a, b, c, most),
                    wanted,
                    "{a}:{b}:{c} up to {most}"
                );
            }
        }
    }

    #[test]
    fn what_the_info_says_itself_counts_more_than_its_file() {
        let mut info = Info::default();
        info.set("wdir", "/own");
        info.set("hosts", "one,two");
        let text =
            "# a comment\n\nwdir = /other\nenv=A=1\n env = B = 2\nsoft = 1:9:4\nbind_to= core\n";
        let keys = Keys {
            info: Some(&info),
            file: lines(text, "f").unwrap(),
        };
        assert_eq!(keys.get(&["wdir"]).as_deref(), Some("/own"));
        assert_eq!(
            keys.get(&["host", "add-host", "hosts"]).as_deref(),
            Some("one,two")
        );
        assert_eq!(keys.all("env").collect::<Vec<_>>(), ["A=1", "B = 2"]);
        assert_eq!(keys.get(&["soft"]).as_deref(), Some("1:9:4"));
        let why = lines("wdir /other", "f").unwrap_err();
        assert!(why.text.starts_with("line 1 of 'f'"), "{}", why.text);
    }
}
