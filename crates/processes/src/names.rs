//! Names of services (MPI_Publish_name): a file for each in a directory that only its user can
//! read, with the name of the port. Hosts that share the directory, for example a home directory,
//! share the names.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Longest name of a service, in bytes: the name of the file is twice as long.
const LONGEST: usize = 120;

/// Reason why a name cannot be published, looked up or unpublished.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// No such name.
    #[error("no service of this name is published")]
    Unknown,
    /// The name exists already.
    #[error("a service of this name is published already")]
    Taken,
    /// Invalid name.
    #[error("a service name must have 1 to {LONGEST} bytes, not {0}")]
    Length(usize),
    /// An error of the directory.
    #[error("{0}: {1} (KW_NAMES sets the directory of service names)")]
    System(PathBuf, io::Error),
}

/// The names of a user.
#[derive(Clone, Debug)]
pub struct Names(PathBuf);

impl Names {
    /// Names in this directory; `None`: in the user's own.
    pub fn new(dir: Option<&str>) -> Names {
        let home = std::env::var_os("HOME").filter(|h| !h.is_empty());
        Names(match (dir, home) {
            (Some(dir), _) => dir.into(),
            (None, Some(home)) => Path::new(&home).join(".kittiwake/names"),
            (None, None) => format!("/tmp/kittiwake-{}", kw_sys::host::user()).into(),
        })
    }

    fn file(&self, service: &str) -> Result<PathBuf, NameError> {
        let len = service.len();
        if !(1..=LONGEST).contains(&len) {
            return Err(NameError::Length(len));
        }
        Ok(self.0.join(kw_sys::unix::hex(service.as_bytes())))
    }

    fn fault(&self, e: io::Error) -> NameError {
        NameError::System(self.0.clone(), e)
    }

    /// Publishes a port.
    pub fn publish(&self, service: &str, port: &str) -> Result<(), NameError> {
        let file = self.file(service)?;
        let mut dirs = DirBuilder::new();
        dirs.recursive(true).mode(0o700);
        dirs.create(&self.0).map_err(|e| self.fault(e))?;
        // It appears with its whole contents, or not at all.
        let new = file.with_extension(std::process::id().to_string());
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut f| f.write_all(port.as_bytes()));
        let linked = written.and_then(|()| fs::hard_link(&new, &file));
        let _ = fs::remove_file(&new);
        linked.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => NameError::Taken,
            _ => self.fault(e),
        })
    }

    /// The port that is published under a name.
    pub fn look_up(&self, service: &str) -> Result<String, NameError> {
        fs::read_to_string(self.file(service)?).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => NameError::Unknown,
            _ => self.fault(e),
        })
    }

    /// Unpublishes a name, if it stands for this port.
    pub fn take_back(&self, service: &str, port: &str) -> Result<(), NameError> {
        if self.look_up(service)? != port {
            return Err(NameError::Unknown);
        }
        fs::remove_file(self.file(service)?).map_err(|e| self.fault(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_published_once_found_and_taken_back() {
        let dir = std::env::temp_dir().join(format!("kittiwake-names-{}", std::process::id()));
        let names = Names::new(dir.to_str());
        assert!(matches!(names.look_up("ocean/1"), Err(NameError::Unknown)));
        names.publish("ocean/1", "port 7").unwrap();
        assert!(matches!(
            names.publish("ocean/1", "port 8"),
            Err(NameError::Taken)
        ));
        assert_eq!(names.look_up("ocean/1").unwrap(), "port 7");
        assert!(names.take_back("ocean/1", "port 8").is_err());
        names.take_back("ocean/1", "port 7").unwrap();
        assert!(matches!(
            names.take_back("ocean/1", "port 7"),
            Err(NameError::Unknown)
        ));
        assert!(matches!(names.look_up(""), Err(NameError::Length(0))));
        fs::remove_dir_all(dir).unwrap();
    }
}
