//! Replacement of requested libraries by ours.

use std::fs;
use std::path::{Path, PathBuf};

/// The libraries of an installation, by directory. Each directory is an ABI's; the last one, the
/// standard ABI's, is below the others.
pub struct Redirects {
    dirs: Vec<(PathBuf, Vec<String>)>,
    /// The directory of the other ABI for which the process was compiled, if it is known by now.
    in_use: Option<usize>,
}

impl Redirects {
    /// Contents of an installation's library directory and below.
    pub fn below(lib: &Path) -> Redirects {
        let names = |dir: &Path, starts: &str| -> Vec<String> {
            let files = fs::read_dir(dir).into_iter().flatten().flatten();
            let names = files.filter_map(|file| file.file_name().into_string().ok());
            names
                .filter(|name| name.starts_with(starts) && name.contains(".so"))
                .collect()
        };
        let abi = |name: &str| {
            let dir = lib.join(name);
            let names = names(&dir, "lib");
            (dir, names)
        };
        Redirects {
            dirs: vec![
                abi("mpich"),
                abi("openmpi"),
                (lib.to_path_buf(), names(lib, "libmpi_abi.so.")),
            ],
            in_use: None,
        }
    }

    /// Our file for a library that is requested by name or by path, if we have one.
    pub fn instead_of(&mut self, asked: &Path) -> Option<PathBuf> {
        let name = asked.file_name()?.to_str()?;
        if !name.starts_with("libmpi") && !name.starts_with("libopen-") {
            return None;
        }
        // a name without a version does not tell the ABI: the file behind it may
        let real = asked.canonicalize().ok().filter(|_| asked.is_absolute());
        let real = real.as_deref().and_then(Path::file_name);
        let real = real.and_then(|real| real.to_str());
        let at = self.versioned(name).or_else(|| self.versioned(real?));
        let (at, name) = at.or_else(|| self.unversioned(name))?;
        if at + 1 < self.dirs.len() {
            self.in_use = Some(at);
        }
        Some(self.dirs[at].0.join(name))
    }

    /// The directory and the name of a library of this version, or of a later one of the same ABI:
    /// `libmpi.so.40.30.4` is a `libmpi.so.40`.
    fn versioned(&self, name: &str) -> Option<(usize, String)> {
        let (_, version) = name.split_once(".so.")?;
        let abi = name.len() - version.len() + version.find('.').unwrap_or(version.len());
        self.lookup(&name[..abi])
    }

    /// The library that a process means by a name without a version: that of the ABI that it uses
    /// already.
    fn unversioned(&self, name: &str) -> Option<(usize, String)> {
        let found = self.dirs.get(self.in_use?)?.1.iter().find(|n| *n == name)?;
        Some((self.in_use?, found.clone()))
    }

    fn lookup(&self, name: &str) -> Option<(usize, String)> {
        let mut dirs = self.dirs.iter().enumerate();
        dirs.find_map(|(at, (_, names))| {
            let found = names.iter().find(|n| *n == name)?;
            Some((at, found.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirects() -> Redirects {
        let of = |dir: &str, names: &[&str]| {
            let names = names.iter().map(|n| n.to_string()).collect();
            (PathBuf::from(dir), names)
        };
        Redirects {
            dirs: vec![
                of("/k/mpich", &["libmpi.so", "libmpi.so.12", "libmpich.so.12"]),
                of(
                    "/k/openmpi",
                    &["libmpi.so", "libmpi.so.40", "libopen-pal.so.40"],
                ),
                of("/k", &["libmpi_abi.so.1"]),
            ],
            in_use: None,
        }
    }

    fn found(redirects: &mut Redirects, asked: &str) -> Option<String> {
        let path = redirects.instead_of(Path::new(asked))?;
        Some(path.to_str().unwrap().into())
    }

    #[test]
    fn libraries_of_an_abi_that_we_have() {
        for (asked, ours) in [
            ("libmpi.so.12", Some("/k/mpich/libmpi.so.12")),
            ("libmpich.so.12.2.1", Some("/k/mpich/libmpich.so.12")),
            ("/conda/lib/libmpi.so.40", Some("/k/openmpi/libmpi.so.40")),
            (
                "libopen-pal.so.40.30.2",
                Some("/k/openmpi/libopen-pal.so.40"),
            ),
            ("/opt/libmpi_abi.so.1", Some("/k/libmpi_abi.so.1")),
            ("libmpi.so.20", None),
            ("libmpi.so.120", None),
            ("libmpi.so.1", None),
            ("libmpi.so", None),
            ("libmpfr.so.6", None),
            ("libc.so.6", None),
            ("", None),
        ] {
            assert_eq!(found(&mut redirects(), asked).as_deref(), ours, "{asked}");
        }
    }

    #[test]
    fn a_name_without_a_version_is_of_the_abi_in_use() {
        let mut redirects = redirects();
        assert_eq!(found(&mut redirects, "libmpi.so"), None);
        for name in ["libmpi.so.40", "libmpi_abi.so.1"] {
            found(&mut redirects, name).unwrap();
        }
        assert_eq!(
            found(&mut redirects, "libmpi.so").unwrap(),
            "/k/openmpi/libmpi.so"
        );
        assert_eq!(found(&mut redirects, "libmpi_cxx.so"), None);
    }

    #[test]
    fn a_path_without_a_version_is_of_the_abi_of_its_file() {
        let dir = std::env::temp_dir().join(format!("kw-audit-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let link = dir.join("libmpi.so");
        let _ = fs::remove_file(&link);
        fs::write(dir.join("libmpi.so.12.3.4"), "").unwrap();
        std::os::unix::fs::symlink("libmpi.so.12.3.4", &link).unwrap();
        let ours = found(&mut redirects(), link.to_str().unwrap());
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(ours.as_deref(), Some("/k/mpich/libmpi.so.12"));
    }
}
