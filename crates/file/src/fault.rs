//! Errors of files, in one sentence and with the standard's class (MPI 5.0, 14.7).

use crate::transfer::Trouble;
use kw_objects::error::{Class, Fault};
use std::io::{Error, ErrorKind};
use std::path::Path;

/// The class of an error of the system.
pub fn class_of(error: &Error) -> Class {
    match error.kind() {
        ErrorKind::NotFound => Class::NoSuchFile,
        ErrorKind::AlreadyExists => Class::FileExists,
        ErrorKind::PermissionDenied => Class::Access,
        ErrorKind::ReadOnlyFilesystem => Class::ReadOnly,
        ErrorKind::StorageFull | ErrorKind::FileTooLarge => Class::NoSpace,
        ErrorKind::QuotaExceeded => Class::Quota,
        ErrorKind::ExecutableFileBusy | ErrorKind::ResourceBusy => Class::FileInUse,
        ErrorKind::IsADirectory | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
            Class::BadFile
        }
        ErrorKind::OutOfMemory => Class::NoMem,
        ErrorKind::Unsupported => Class::UnsupportedOperation,
        _ => Class::Io,
    }
}

/// The system's text of an error, without the number that Rust adds.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_string(),
        None => text,
    }
}

/// The fault of a failed operation on a whole file.
pub fn failed(rank: u32, what: &str, path: &Path, error: &Error) -> Box<Fault> {
    let text = format!(
        "rank {rank} cannot {what} '{}': {}",
        path.display(),
        reason(error)
    );
    Fault::new(class_of(error), text)
}

/// The fault of a failed access.
pub fn access_failed(rank: u32, path: &Path, trouble: &Trouble) -> Box<Fault> {
    let Trouble {
        writes,
        at,
        len,
        error,
    } = trouble;
    let what = if *writes { "write" } else { "read" };
    let text = format!(
        "rank {rank} cannot {what} {len} bytes at offset {at} of '{}': {}",
        path.display(),
        reason(error)
    );
    Fault::new(class_of(error), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_rank_path_offset_and_reason() {
        let trouble = Trouble {
            writes: true,
            at: 4096,
            len: 100,
            error: Error::from_raw_os_error(28),
        };
        let fault = access_failed(3, Path::new("/data/a"), &trouble);
        assert_eq!(fault.code, Class::NoSpace as i32);
        let expected =
            "rank 3 cannot write 100 bytes at offset 4096 of '/data/a': No space left on device";
        assert_eq!(fault.text, expected);
    }
}
