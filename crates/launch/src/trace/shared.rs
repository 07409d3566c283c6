//! One file for the traces of a job and of the jobs that its ranks spawn on the same host.
//!
//! All of them append to it; ranks of a spawned job get the next free numbers. The file begins with
//! a packet of constant length, which readers of traces skip:
//!
//! ```text
//! field 4001 of a packet   key (32 digits), number of the next rank (4 bytes, little-endian)
//! ```
//! Each file has a new key. Spawned jobs find it in their environment, followed by the kernel's
//! boot id, so they do not use a file of the same name on another host, or an older one.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use kw_sys::host::boot_id;
use rustix::fs::{FlockOperation, OFlags, fcntl_setfl, flock};

/// Tag and length of the packet; tag and length of its field.
const HEAD: [u8; 6] = [0x0a, 40, 0x8a, 0xfa, 0x01, 36];
const DIGITS: usize = 32;
const NEXT_AT: usize = HEAD.len() + DIGITS;
const LEN: usize = NEXT_AT + 4;

/// The file that a job writes to.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Key and boot id, for spawned jobs; empty if there is none.
    pub word: String,
    /// Whether the file belongs to the parent job.
    pub joins: bool,
}

impl Sharing {
    /// Describes a new file.
    pub fn fresh() -> Sharing {
        let mut key = [0; DIGITS / 2];
        let word = match kw_sys::random::fill(&mut key) {
            Ok(()) => format!("{:032x}-{}", u128::from_ne_bytes(key), boot_id()),
            Err(_) => String::new(),
        };
        Sharing { word, joins: false }
    }

    /// Of the file that the parent's job writes, if it is on this host, in a file system with locks.
    pub fn of_parent(file: &Path, word: &str) -> Option<Sharing> {
        let (_, id) = word.split_once('-')?;
        if id != boot_id() {
            return None;
        }
        // Opening a pipe would wait for a writer.
        let at_once = OFlags::NONBLOCK.bits() as i32;
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(at_once).open(file).ok()?;
        flock(&file, FlockOperation::LockShared).ok()?;
        read_head(&file, word).ok()?;
        let word = word.to_string();
        Some(Sharing { word, joins: true })
    }

    /// An error if another job has begun the file again since this one has joined it.
    pub fn check(&self, file: &File) -> io::Result<()> {
        if self.joins && read_head(file, &self.word).is_err() {
            let text = "another job has begun the file again";
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        Ok(())
    }

    fn key(&self) -> [u8; DIGITS] {
        key_of(&self.word)
    }
}

fn key_of(word: &str) -> [u8; DIGITS] {
    let first = word.as_bytes().first_chunk();
    first.copied().unwrap_or([b'0'; DIGITS])
}

/// The number of the next rank, if the file begins like one with this key.
fn read_head(file: &File, word: &str) -> io::Result<u32> {
    let mut head = [0; LEN];
    file.read_exact_at(&mut head, 0)?;
    let (fixed, next) = head.split_at(NEXT_AT);
    match (
        next.first_chunk(),
        fixed == [&HEAD[..], &key_of(word)].concat(),
    ) {
        (Some(next), true) => Ok(u32::from_le_bytes(*next)),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// Creates a file for a job of `ranks` ranks; an old file is overwritten.
pub fn create(path: &Path, sharing: &Sharing, ranks: u32) -> io::Result<File> {
    let mut file = File::create(path)?;
    let head = [&HEAD[..], &sharing.key(), &ranks.to_le_bytes()].concat();
    // On a full disk no job joins; the failure is reported with its records.
    let _ = file.write_all(&head);
    append(&file);
    Ok(file)
}

/// Opens the file of the parent's job for `ranks` ranks, and returns the number of the first.
pub fn join(path: &Path, sharing: &Sharing, ranks: u32) -> io::Result<(File, u32)> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let first = read_head(&file, &sharing.word)?;
    let next = first.checked_add(ranks).ok_or(ErrorKind::InvalidData)?;
    file.write_all_at(&next.to_le_bytes(), NEXT_AT as u64)?;
    flock(&file, FlockOperation::Unlock)?;
    append(&file);
    Ok((file, first))
}

/// Each write goes to the end of the file. A pipe has no other position.
fn append(file: &File) {
    let _ = fcntl_setfl(file, OFlags::APPEND);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;

    #[test]
    fn jobs_share_a_file_and_their_ranks_have_different_numbers() {
        let path = std::env::temp_dir().join(format!("kw-shared-{}", std::process::id()));
        let ours = Sharing::fresh();
        let first = create(&path, &ours, 3).unwrap();
        let theirs = Sharing::of_parent(&path, &ours.word).unwrap();
        assert!(theirs.joins && theirs.word == ours.word);
        let (second, from) = join(&path, &theirs, 2).unwrap();
        let (_, behind) = join(&path, &theirs, 1).unwrap();
        assert_eq!((from, behind), (3, 5));
        for (mut file, text) in [(&first, "a"), (&second, "b"), (&first, "c")] {
            file.write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(&std::fs::read(&path).unwrap()[LEN..], b"abc");
        theirs.check(&second).unwrap();
        create(&path, &Sharing::fresh(), 1).unwrap();
        assert!(theirs.check(&second).is_err(), "it is another trace now");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_of_another_job_or_host_is_not_joined() {
        let path = std::env::temp_dir().join(format!("kw-other-{}", std::process::id()));
        let (ours, other) = (Sharing::fresh(), Sharing::fresh());
        let there = |word: &str| Sharing::of_parent(&path, word);
        assert_eq!(there(&ours.word), None, "there is no file");
        create(&path, &ours, 1).unwrap();
        assert_eq!(there(&other.word), None);
        let (key, _) = ours.word.split_once('-').unwrap();
        assert_eq!(there(&format!("{key}-another-host")), None);
        assert_eq!(there(key), None);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(there(&ours.word), None);
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path.as_path(), Mode::RWXU).unwrap();
        assert_eq!(there(&ours.word), None, "a pipe without a writer");
        std::fs::remove_file(&path).unwrap();
    }
}
