//! The rank's table in memory provided by its launcher; `kw_start::profile` describes its layout.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;

use kw_base::source_line::{base, is_source_line};
use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_base::sync::{Mutex, OnceLock};
use kw_start::profile::*;
use kw_sys::{clock, environment, ticks};

use crate::trace::ring::Memory;
use crate::{next, source_line};
use kw_start::trace;

/// The table; the mapping exists as long as the process.
#[derive(Debug)]
pub(crate) struct Table {
    base: *mut u8,
    /// Whether ticks are those of the CPU's counter.
    pub counter: bool,
    /// Whether sums of calls are requested.
    pub counts: bool,
    /// Modules are added under this lock, which holds their base addresses.
    modules: Mutex<Vec<usize>>,
    /// Memory for records over time, if they are requested.
    pub trace: Option<Memory>,
}

// SAFETY: an address range of words that are only accessed as atomics or, as modules, under the
// lock.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// Maps a part of a file, if it is long enough.
fn map(fd: i32, at: usize, len: usize) -> Option<*mut u8> {
    // SAFETY: the number may be any descriptor, or none: the queries change nothing. A fresh
    // mapping overlaps nothing.
    let base = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &mut stat) != 0 || (stat.st_size as usize) < at + len {
            return None;
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(
            std::ptr::null_mut(),
            len,
            rights,
            libc::MAP_SHARED,
            fd,
            at as i64,
        )
    };
    (base != libc::MAP_FAILED).then_some(base.cast())
}

/// The table of this process, if it was given one.
pub(crate) fn table() -> Option<&'static Table> {
    static TABLE: OnceLock<Option<Table>> = OnceLock::new();
    TABLE.get_or_init(Table::open).as_ref()
}

impl Table {
    fn open() -> Option<Table> {
        let text = environment::variable(VARIABLE)?;
        let (fd, number) = text.split_once(',')?;
        let (fd, number): (i32, usize) = (fd.parse().ok()?, number.parse().ok()?);
        let at = number.checked_mul(SIZE)?;
        let mut table = Table {
            base: map(fd, at, SIZE)?,
            counter: false,
            counts: true,
            modules: Mutex::new(Vec::new()),
            trace: None,
        };
        if table.word(0).load(Ordering::Relaxed) != MAGIC {
            return None; // a file of the program with this number
        }
        table.counter = table.word(COUNTER).load(Ordering::Relaxed) != 0;
        table.counts = table.word(UNCOUNTED).load(Ordering::Relaxed) == 0;
        let traced = table.word(TRACE).load(Ordering::Relaxed) as usize;
        if traced != 0 {
            let base = map(fd, traced, trace::SIZE);
            // SAFETY: the mapping has this length, and is never unmapped.
            table.trace = base.map(|base| unsafe { Memory::new(base) });
        }
        table.begin();
        Some(table)
    }

    /// Handles the first call of a process; an earlier process of the same rank may have used the
    /// table.
    fn begin(&self) {
        let now = ticks::now(self.counter);
        if self.word(TICKS).load(Ordering::Relaxed) == 0 {
            self.word(NANOSECONDS)
                .store(clock::now().0, Ordering::Relaxed);
            self.word(TICKS).store(now, Ordering::Release);
        }
    }

    /// A word of the table.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= SIZE);
        // SAFETY: all offsets are those of the table's own description, inside the mapping, and
        // multiples of 8; the word is only used as an atomic.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    /// A sheet for a thread, and whether other threads use it, too: the first free one.
    pub fn take_sheet(&self) -> (usize, bool) {
        let sheets = (0..SHEETS - 1).map(|n| SHEETS_AT + n * SHEET);
        // SYNC: the thread that takes the sheet sees what its predecessor has written there.
        let free = |at: &usize| {
            let owner = self.word(at + OWNER);
            owner
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        };
        let last = SHEETS_AT + (SHEETS - 1) * SHEET;
        sheets
            .clone()
            .find(free)
            .map_or((last, true), |at| (at, false))
    }

    /// Releases a thread's sheet, unless it is the shared one.
    pub fn leave_sheet(&self, at: usize) {
        if at == SHEETS_AT + (SHEETS - 1) * SHEET {
            return;
        }
        self.word(at + OWNER).store(0, Ordering::Release);
    }

    /// The row of a sheet for a function and an address: the existing one, a new one, or the row
    /// for several.
    pub fn row(&self, sheet: usize, function: u32, address: usize) -> usize {
        let module = self.module(address);
        let _one = self.modules.lock().unwrap_or_else(|e| e.into_inner());
        let used = self
            .word(sheet + ROWS_USED)
            .load(Ordering::Relaxed)
            .min(ROWS as u64) as usize;
        let at = |n: usize| sheet + ROWS_AT + n * ROW;
        let has = |n: &usize| {
            let both = self.word(at(*n) + 8).load(Ordering::Relaxed);
            both as u32 == function && self.word(at(*n)).load(Ordering::Relaxed) == address as u64
        };
        if let Some(n) = (1..used).find(has) {
            return at(n);
        }
        if used == 0 {
            self.word(at(0) + 8)
                .store(u64::from(NONE) | u64::from(NONE) << 32, Ordering::Relaxed);
        }
        let new = used.max(1);
        if new == ROWS {
            return at(0);
        }
        self.word(at(new)).store(address as u64, Ordering::Relaxed);
        let both = u64::from(function) | u64::from(module) << 32;
        self.word(at(new) + 8).store(both, Ordering::Relaxed);
        // SYNC: the launcher reads rows up to here.
        self.word(sheet + ROWS_USED)
            .store(new as u64 + 1, Ordering::Release);
        at(new)
    }

    /// The number of the program or library that contains an address, or of a place's module.
    fn module(&self, address: usize) -> u32 {
        let info = match is_source_line(address as u64) {
            true => None,
            false => match next::info(address) {
                None => return NONE,
                info => info,
            },
        };
        let base = info.map_or(base(address as u64) as usize, |i| i.dli_fbase as usize);
        let mut known = self.modules.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(n) = known.iter().position(|b| *b == base) {
            return self.first(&known) + n as u32;
        }
        let used = self.word(MODULES_USED).load(Ordering::Relaxed) as usize;
        if used >= MODULES {
            return NONE;
        }
        let path = info.map_or_else(
            || source_line::name(address, MODULE - PATH_AT),
            |i| path(&i),
        );
        let len = path.len().min(MODULE - PATH_AT);
        let at = MODULES_AT + used * MODULE;
        self.word(at).store(base as u64, Ordering::Relaxed);
        self.word(at + 8).store(len as u64, Ordering::Relaxed);
        // SAFETY: the module's place lies inside the mapping, and no other thread writes there: the
        // lock is held, and the launcher reads only modules in use.
        unsafe {
            let to = self.base.add(at + PATH_AT);
            std::ptr::copy_nonoverlapping(path.as_ptr(), to, len);
        }
        known.push(base);
        self.word(MODULES_USED)
            .store(used as u64 + 1, Ordering::Release);
        used as u32
    }

    /// The number of this process's first module: an earlier process may have left some.
    fn first(&self, known: &[usize]) -> u32 {
        (self.word(MODULES_USED).load(Ordering::Relaxed) as usize - known.len()) as u32
    }
}

/// The absolute path of a program or library.
fn path(info: &libc::Dl_info) -> Vec<u8> {
    // SAFETY: the query takes the address of the program's own headers.
    let program = next::info(unsafe { libc::getauxval(libc::AT_PHDR) } as usize);
    if program.is_some_and(|p| p.dli_fbase == info.dli_fbase) {
        if let Ok(path) = std::fs::read_link("/proc/self/exe") {
            return path.as_os_str().as_bytes().to_vec();
        }
    }
    if info.dli_fname.is_null() {
        return Vec::new();
    }
    // SAFETY: the dynamic linker's own name of a loaded file.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }
        .to_bytes()
        .to_vec();
    let whole = std::fs::canonicalize(std::ffi::OsStr::from_bytes(&name));
    whole.map_or(name, |p| p.as_os_str().as_bytes().to_vec())
}

#[cfg(test)]
mod tests;
