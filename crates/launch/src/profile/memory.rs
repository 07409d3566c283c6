//! The memory that the recorders of this machine's ranks write to, and the variables that bring them
//! there.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

use crate::libraries;
use crate::ranks::Env;
use crate::verdict::Verdict;
use kw_start::profile::{COUNTER, Calls, MAGIC, SIZE, VARIABLE, read};
use kw_sys::{clock, memfd, ticks};

/// The recorder's file.
const LIBRARY: &str = "libkw_profile.so";
/// What the dynamic linker loads before everything else, which the user may have set, too.
const BEFORE: &str = "LD_PRELOAD";

/// A part for each rank, in the order of their starts.
#[derive(Debug)]
pub struct Memory {
    fd: OwnedFd,
    library: PathBuf,
    counter: bool,
    ranks: BTreeMap<u32, usize>,
}

impl Memory {
    /// For so many ranks.
    pub fn new(ranks: usize) -> Result<Memory, Verdict> {
        let library = library()?;
        let bytes = ranks * SIZE;
        let limit = getrlimit(Resource::Fsize).current;
        if let Some(limit) = limit.filter(|limit| *limit < bytes as u64) {
            return Err(Verdict::new(
                1,
                format!(
                    "--profile needs a file of {bytes} bytes in memory, but the limit of file sizes is {limit} bytes: raise it \
                     (ulimit -f unlimited)"
                ),
            ));
        }
        let failed = |e| Verdict::system("make the memory of --profile", e);
        let fd = memfd::create(bytes).map_err(failed)?;
        Ok(Memory {
            fd,
            library,
            counter: ticks::counter_counts_time(),
            ranks: BTreeMap::new(),
        })
    }

    /// The descriptor that ranks get.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Gives a rank its part, and puts into its environment what it needs to find it; what the user
    /// has loaded before the program comes behind.
    pub fn give(&mut self, rank: u32, env: &mut Env) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let number = self.ranks.len();
        let at = (number * SIZE) as u64;
        let put = |at, word: u64| rustix::io::pwrite(&self.fd, &word.to_ne_bytes(), at);
        put(at + COUNTER as u64, self.counter.into())?;
        put(at, MAGIC)?;
        self.ranks.insert(rank, number);
        let value = format!("{},{number}", self.fd.as_raw_fd());
        env.push((VARIABLE.into(), value.into()));
        libraries::prepend(env, BEFORE, vec![self.library.clone().into()]);
        Ok(())
    }

    /// What a rank has called until now; nothing where it has called nothing.
    pub fn calls(&self, rank: u32) -> Option<Calls> {
        let begin = self.ranks.get(&rank)? * SIZE;
        let at = |at: usize, to: &mut [u8]| {
            let mut done = 0;
            while done < to.len() {
                let from = (begin + at + done) as u64;
                match rustix::io::pread(&self.fd, &mut to[done..], from) {
                    Ok(n @ 1..) => done += n,
                    Err(rustix::io::Errno::INTR) => {}
                    Ok(0) | Err(_) => return None,
                }
            }
            Some(())
        };
        read(at, ticks::now(self.counter), clock::now().0)
    }
}

/// The recorder of this installation.
fn library() -> Result<PathBuf, Verdict> {
    let home = libraries::home().map_err(|e| Verdict::system("find mpiexec itself", e))?;
    let library = home.join("lib").join(LIBRARY);
    if !library.is_file() {
        let home = home.display();
        return Err(Verdict::new(
            1,
            format!(
                "--profile needs lib/{LIBRARY} of the installation in {home}, which has none; install it whole"
            ),
        ));
    }
    let parts = |b: &u8| b.is_ascii_whitespace() || *b == b':';
    match library.as_os_str().as_bytes().iter().any(parts) {
        true => Err(Verdict::new(
            1,
            format!(
                "--profile cannot load '{}': {BEFORE} takes no path with a blank or a colon; install Kittiwake elsewhere",
                library.display()
            ),
        )),
        false => Ok(library),
    }
}
