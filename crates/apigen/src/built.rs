//! What is built: the functions `pub fn NAME(mpi: &Mpi, ...) -> Res` in the files of `crates/mpi/src/calls`.
//!
//! A file `a.rs` is the module `calls::a`; a file `a/b.rs` is `calls::a::b`, and `a/mod.rs` is `calls::a`.

use crate::{Api, Error, Function};
use std::collections::BTreeMap;
use std::path::Path;

/// One Rust function found.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Found {
    /// Path below `kw_mpi::calls`, such as `p2p::send`.
    path: String,
    /// Parameters after `mpi`.
    params: usize,
}

/// The built functions, by their Rust name.
#[derive(Clone, Debug, Default)]
pub struct Built {
    found: BTreeMap<String, Found>,
}

impl Built {
    /// Reads the sources below `calls`; a function whose parameters do not match C's is an error.
    pub fn scan(calls: &Path, api: &Api) -> Result<Built, Error> {
        let mut built = Built::default();
        built.folder(calls, "")?;
        for f in api.with_removed().filter(|f| f.code) {
            built.check(f)?;
        }
        Ok(built)
    }

    /// Nothing is built (for tests).
    pub fn nothing() -> Built {
        Built::default()
    }

    /// The path below `kw_mpi::calls` of the function that answers `f`, if it is built.
    pub fn path(&self, f: &Function, api: &Api) -> Option<&str> {
        if let Some(found) = self.found.get(&f.rust_name()) {
            return Some(&found.path);
        }
        let base = api.function(f.twin_of.as_ref()?)?;
        self.found
            .get(&base.rust_name())
            .map(|found| found.path.as_str())
    }

    fn check(&self, f: &Function) -> Result<(), Error> {
        let Some(found) = self.found.get(&f.rust_name()) else {
            return Ok(());
        };
        let wants = f.fixed_params().count();
        if found.params == wants {
            return Ok(());
        }
        Err(Error(format!(
            "kw_mpi::calls::{} takes {} parameters after mpi, but {} has {wants}",
            found.path, found.params, f.name
        )))
    }

    fn folder(&mut self, dir: &Path, prefix: &str) -> Result<(), Error> {
        let bad = |e: std::io::Error| Error(format!("cannot read {}: {e}", dir.display()));
        for entry in std::fs::read_dir(dir).map_err(bad)? {
            let path = entry.map_err(bad)?.path();
            let stem = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                self.folder(&path, &format!("{prefix}{stem}::"))?;
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).map_err(bad)?;
                let module = if stem == "mod" {
                    prefix.to_string()
                } else {
                    format!("{prefix}{stem}::")
                };
                self.source(&text, &module)?;
            }
        }
        Ok(())
    }

    fn source(&mut self, text: &str, module: &str) -> Result<(), Error> {
        for (at, _) in text.match_indices("pub fn ") {
            if !text[..at].ends_with('\n') && at != 0 {
                continue;
            }
            let Some((name, params)) = signature(&text[at + "pub fn ".len()..]) else {
                continue;
            };
            let path = format!("{module}{name}");
            if let Some(other) = self.found.insert(
                name.clone(),
                Found {
                    path: path.clone(),
                    params,
                },
            ) {
                return Err(Error(format!(
                    "both {} and {path} claim to be MPI_{name}",
                    other.path
                )));
            }
        }
        Ok(())
    }
}

/// Name and number of parameters after `mpi` of a function whose text starts here; `None` when its first parameter is not
/// `mpi`.
fn signature(text: &str) -> Option<(String, usize)> {
    let open = text.find('(')?;
    let name = text[..open].split('<').next()?.trim().to_string();
    let mut depth = 0i32;
    let mut commas = 0;
    let mut last = ' ';
    let mut inside = String::new();
    for c in text[open..].chars() {
        match c {
            '(' | '[' | '<' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if last != '-' => depth -= 1,
            ',' if depth == 1 => commas += 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if !c.is_whitespace() {
            last = c;
        }
        inside.push(c);
    }
    let inside = inside[1..].trim();
    let is_call = inside.starts_with("mpi:") || inside.starts_with("_mpi:");
    let params = if inside.ends_with(',') {
        commas
    } else {
        commas + 1
    };
    is_call.then_some((name, params - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_whatever_their_layout() {
        assert_eq!(
            signature("barrier(mpi: &Mpi, comm: CommH) -> Res {"),
            Some(("barrier".into(), 1))
        );
        assert_eq!(
            signature(
                "x<'a>(\n    mpi: &'a Mpi,\n    f: Out<Foo<A, B>>,\n    g: fn(A, B) -> C,\n) -> Res"
            ),
            Some(("x".into(), 2))
        );
        assert_eq!(
            signature("flush(_mpi: &Mpi) -> Res"),
            Some(("flush".into(), 0))
        );
        assert_eq!(signature("helper(a: i32) -> Res"), None);
    }
}
