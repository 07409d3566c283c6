//! The memory to which the recorders of this machine's ranks write, and the variables that tell the
//! recorders about it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

use crate::libraries;
use crate::ranks::Env;
use crate::verdict::Verdict;
use kw_start::profile::{COUNTER, Calls, MAGIC, SIZE, TRACE, UNCOUNTED, VARIABLE, read};
use kw_start::trace;
use kw_sys::{clock, memfd, ticks};

/// The recorder's file.
const LIBRARY: &str = "libkw_profile.so";
/// The variable for libraries that the dynamic linker preloads; the user may have set it, too.
const BEFORE: &str = "LD_PRELOAD";

/// Recorded data.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Sums of calls (`--profile`).
    pub counted: bool,
    /// Their trace (`--trace`).
    pub traced: bool,
}

/// A part for each rank, in the order of their starts.
#[derive(Debug)]
pub struct Memory {
    fd: OwnedFd,
    library: PathBuf,
    counter: bool,
    ranks: BTreeMap<u32, usize>,
    /// Whether sums of calls are requested.
    counted: bool,
    /// Offset of the traces in the file, if there are any.
    traces: Option<usize>,
}

impl Memory {
    /// Memory for this many ranks and this recorded data.
    pub fn new(ranks: usize, what: Recorded) -> Result<Memory, Verdict> {
        let option = if what.traced { "--trace" } else { "--profile" };
        let library = library(option)?;
        let traces = what.traced.then_some(ranks * SIZE);
        let bytes = ranks * (SIZE + if what.traced { trace::SIZE } else { 0 });
        let limit = getrlimit(Resource::Fsize).current;
        if let Some(limit) = limit.filter(|limit| *limit < bytes as u64) {
            return Err(Verdict::new(
                1,
                format!(
                    "{option} needs a file of {bytes} bytes in memory, but the limit of file sizes is {limit} bytes: raise it \
                     (ulimit -f unlimited)"
                ),
            ));
        }
        let failed = |e| Verdict::system(&format!("make the memory of {option}"), e);
        let fd = memfd::create(bytes).map_err(failed)?;
        Ok(Memory {
            fd,
            library,
            counter: ticks::counter_counts_time(),
            ranks: BTreeMap::new(),
            counted: what.counted,
            traces,
        })
    }

    /// The descriptor that ranks inherit.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Gives a rank its part, and puts into its environment what it needs to find it; libraries
    /// that the user preloads come after the recorder.
    pub fn give(&mut self, rank: u32, env: &mut Env) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let number = self.ranks.len();
        let at = (number * SIZE) as u64;
        let put = |at, word: u64| rustix::io::pwrite(&self.fd, &word.to_ne_bytes(), at);
        put(at + COUNTER as u64, self.counter.into())?;
        put(at + UNCOUNTED as u64, (!self.counted).into())?;
        if let Some(traces) = self.traces {
            put(at + TRACE as u64, (traces + number * trace::SIZE) as u64)?;
        }
        put(at, MAGIC)?;
        self.ranks.insert(rank, number);
        let value = format!("{},{number}", self.fd.as_raw_fd());
        env.push((VARIABLE.into(), value.into()));
        libraries::prepend(env, BEFORE, vec![self.library.clone().into()]);
        Ok(())
    }

    /// Calls of a rank until now; empty if it has made none.
    pub fn calls(&self, rank: u32) -> Option<Calls> {
        self.ranks.get(&rank)?;
        let at = |at: usize, to: &mut [u8]| self.counted(rank, at, to);
        read(at, ticks::now(self.counter), clock::now().0)
    }

    /// Whether ticks are those of the processor's counter.
    pub fn has_counter(&self) -> bool {
        self.counter
    }

    /// Reads bytes of a rank's table of calls.
    pub fn counted(&self, rank: u32, at: usize, to: &mut [u8]) -> Option<()> {
        self.read(self.ranks.get(&rank)? * SIZE + at, to)
    }

    /// Offset of a rank's trace.
    fn trace(&self, rank: u32) -> Option<usize> {
        Some(self.traces? + self.ranks.get(&rank)? * trace::SIZE)
    }

    /// Reads bytes of a rank's trace.
    pub fn traced(&self, rank: u32, at: usize, to: &mut [u8]) -> Option<()> {
        self.read(self.trace(rank)? + at, to)
    }

    /// Writes a word of a rank's trace.
    pub fn taken(&self, rank: u32, at: usize, word: u64) {
        if let Some(begin) = self.trace(rank) {
            // the memory exists; otherwise the rank finds its ring full
            let _ = rustix::io::pwrite(&self.fd, &word.to_ne_bytes(), (begin + at) as u64);
        }
    }

    fn read(&self, begin: usize, to: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < to.len() {
            match rustix::io::pread(&self.fd, &mut to[done..], (begin + done) as u64) {
                Ok(n @ 1..) => done += n,
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) | Err(_) => return None,
            }
        }
        Some(())
    }
}

/// The recorder of this installation.
fn library(option: &str) -> Result<PathBuf, Verdict> {
    let home = libraries::home().map_err(|e| Verdict::system("find mpiexec itself", e))?;
    let library = home.join("lib").join(LIBRARY);
    if !library.is_file() {
        let home = home.display();
        return Err(Verdict::new(
            1,
            format!(
                "{option} needs lib/{LIBRARY} of the installation in {home}, which has none; install it whole"
            ),
        ));
    }
    let parts = |b: &u8| b.is_ascii_whitespace() || *b == b':';
    match library.as_os_str().as_bytes().iter().any(parts) {
        true => Err(Verdict::new(
            1,
            format!(
                "{option} cannot load '{}': {BEFORE} does not accept a path with a blank or colon; install Kittiwake elsewhere",
                library.display()
            ),
        )),
        false => Ok(library),
    }
}
