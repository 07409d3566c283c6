//! Values of any length and content over launchers that store short words (see
//! [`kw_start::pmi::text`]), and answers read from a descriptor: the common part of PMI-1 and
//! PMI-2.

use std::fs::File;
use std::io::{ErrorKind, Read};

use super::detect::Wire;
use super::launcher::as_text;
use super::{BootError, LauncherFault, Misuse};
use kw_start::pmi::{PmiError, text};

/// A launcher that stores words.
pub(super) trait Words {
    /// Longest key and longest value that it is sure to accept, in bytes.
    fn room(&self) -> (usize, usize);
    /// Stores a word.
    fn put_word(&mut self, key: String, value: String) -> Result<(), BootError>;
    /// The value under a key, verbatim.
    fn word(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError>;

    /// Stores a value, over several keys if it is too long for one.
    fn put_value(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        let (longest, most) = self.room();
        for (key, value) in text::split(key, value.as_bytes(), most) {
            if key.len() > longest {
                return Err(LauncherFault::LongKey { longest, key }.into());
            }
            self.put_word(key, value)?;
        }
        Ok(())
    }

    /// Reads a value.
    fn value(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError> {
        let key = text::encode(key.as_bytes());
        let Some(word) = self.word(from, &key)? else {
            return Ok(None);
        };
        let bytes = match text::stored(&word).map_err(strange)? {
            text::Stored::Whole(v) => v,
            text::Stored::Pieces(n) => self.pieces(from, &key, n)?,
        };
        as_text(&key, bytes).map(Some)
    }

    /// Joins the pieces of a value.
    fn pieces(&mut self, from: u32, key: &str, count: usize) -> Result<Vec<u8>, BootError> {
        let mut word = String::new();
        for piece in 0..count {
            let key = format!("{key}.{piece}");
            let found = self.word(from, &key)?;
            let of = count;
            word += &found.ok_or(LauncherFault::LostPiece { key, piece, of })?;
        }
        text::decode(&word).map_err(strange)
    }
}

/// The launcher did not keep to its protocol.
pub(super) fn strange(e: PmiError) -> BootError {
    LauncherFault::Malformed(e).into()
}

/// A descriptor to the launcher of our own.
pub(super) fn adopt(wire: Wire) -> Result<File, BootError> {
    let Wire { fd, rank, .. } = wire;
    let stream = kw_sys::fd::adopt(fd).map_err(|cause| Misuse::NotStarted { fd, rank, cause })?;
    match kw_sys::fd::is_hung_up(&stream) {
        true => Err(LauncherFault::NotTakenBack.into()),
        false => Ok(stream),
    }
}

/// Message of a rank whose launcher exits while it runs.
pub(super) fn launcher_gone(rank: u32) -> String {
    let host = kw_sys::host::name();
    format!("rank {rank} on {host}: the job has ended because its launcher has exited")
}

fn gone() -> BootError {
    LauncherFault::Gone.into()
}

/// Sends a line.
pub(super) fn say(stream: &File, text: &str) -> Result<(), BootError> {
    kw_sys::fd::send_all(stream, text.as_bytes()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => gone(),
        _ => BootError::system("reach the launcher")(e),
    })
}

/// Reads some more, at least one byte.
pub(super) fn hear<'a>(mut stream: &File, some: &'a mut [u8]) -> Result<&'a [u8], BootError> {
    loop {
        match stream.read(some) {
            Ok(0) => return Err(gone()),
            Ok(n) => return Ok(&some[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Err(gone()),
            Err(e) => return Err(BootError::system("hear the launcher")(e)),
        }
    }
}
