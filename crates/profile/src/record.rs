//! Work before and after each call.
//!
//! A thread writes into a sheet of its own, so threads do not contend. The row of a call is found
//! by its return address and the function's number, in an index of the thread's own. A call made
//! inside another one (by a function of the program that MPI calls) counts as part of that one.

use std::ffi::{c_int, c_void};

use crate::amount::{Sizes, type_freed};
use crate::caller::{self, Found};
use crate::entry::{Entered, entered};
use crate::next::Next;
use crate::source_line;
use crate::table::{Table, table};
use crate::trace::act::Act;
use crate::trace::{Tracer, library, what};
use kw_base::source_line::is_source_line;
use kw_base::sync::OnceLock;
use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_start::profile::{BEGIN, END, FILE_TIMES, ROW, ROWS_AT, SHEET, SHEETS_AT, SINCE, UNDER_WAY};
use kw_sys::ticks;

/// Slots of a thread's index, a power of two; more than the rows of a sheet.
const PLACES: usize = 2048;

/// Meaning of a call beyond itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing.
    Passes,
    /// MPI_Init or its relatives.
    Begins,
    /// MPI_Finalize.
    Ends,
    /// A datatype is freed.
    FreesType,
}

/// A slot of the index: a return address with a function, and what is known about it.
#[derive(Clone, Copy, Default)]
struct IndexSlot {
    key: u64,
    /// Offset of the row in the table (a multiple of 8); or twice the distance to the caller's own
    /// return address, plus 1; or [`ASKED`] if a language is asked.
    known: usize,
}

/// Mark of a call whose place a language reports: no distance is 0.
const ASKED: usize = 1;

/// Destination of a thread's sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// Nowhere: not requested.
    Nowhere,
    /// In a sheet of the thread's own.
    Own,
    /// In a sheet that other threads use, too.
    Shared,
}

/// A thread's state. Only its thread uses it.
pub(crate) struct Thread {
    /// Stack pointer of the call in flight, 0 if there is none; in a thread that records nothing,
    /// the highest address.
    outer: usize,
    table: Option<&'static Table>,
    sheet: usize,
    sums: Sums,
    used: usize,
    index: Box<[IndexSlot; PLACES]>,
    pub sizes: Sizes,
    /// Null if calls are not traced.
    tracer: *mut Tracer,
}

/// The state of threads that record nothing. It is never written.
struct Off(Thread);
// SAFETY: it is never changed, because its `outer` is examined first and ends every access.
unsafe impl Sync for Off {}
// SAFETY: as above.
unsafe impl Send for Off {}

fn off() -> *mut Thread {
    static OFF: OnceLock<Off> = OnceLock::new();
    let make = || {
        Off(Thread {
            outer: usize::MAX,
            table: None,
            sheet: 0,
            sums: Sums::Nowhere,
            used: 0,
            index: Box::new([IndexSlot::default(); PLACES]),
            sizes: Sizes::default(),
            tracer: std::ptr::null_mut(),
        })
    };
    (&raw const OFF.get_or_init(make).0).cast_mut()
}

/// Bytes of an element of a datatype; 0 in a thread that records nothing.
#[inline(always)]
pub(crate) fn size_of(datatype: usize) -> u64 {
    // SAFETY: the thread's own state, which no other thread has. The reference ends before this
    // returns, and the only function that is called meanwhile is the library's PMPI_Type_size,
    // which does not lead back into this crate.
    let thread = unsafe { (*entered()).thread.as_mut() };
    let recording = thread.filter(|t| t.table.is_some());
    recording.map_or(0, |t| t.sizes.of(datatype))
}

/// Frees the state at the end of the thread; the next thread gets the sheet.
extern "C" fn thread_ends(state: *mut c_void) {
    // SAFETY: the state that `begin` made for this thread, and its tracer; from now on the thread has
    // none.
    unsafe {
        (*entered()).thread = off();
        let thread = Box::from_raw(state.cast::<Thread>());
        if !thread.tracer.is_null() {
            drop(Box::from_raw(thread.tracer));
        }
        if let Some(table) = thread.table {
            table.leave_sheet(thread.sheet);
        }
    }
}

/// Trace of a thread with a sheet of its own.
fn tracer(table: &Table, sheet: usize, shared: bool) -> *mut Tracer {
    match table.trace.filter(|_| !shared) {
        None => std::ptr::null_mut(),
        Some(memory) => {
            let number = (sheet - SHEETS_AT) / SHEET;
            Box::into_raw(Box::new(Tracer::new(memory, number)))
        }
    }
}

/// A child of a fork is not the rank.
extern "C" fn in_child() {
    // SAFETY: this is the child's only thread; its former state remains.
    unsafe { (*entered()).thread = off() }
}

/// Handles the first call of a thread.
#[cold]
#[inline(never)]
fn begin(here: *mut Entered) -> *mut Thread {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    let thread = match table() {
        None => off(),
        Some(table) => {
            let (sheet, shared) = table.take_sheet();
            let sums = match (table.counts, shared) {
                (false, _) => Sums::Nowhere,
                (true, false) => Sums::Own,
                (true, true) => Sums::Shared,
            };
            let thread = Box::into_raw(Box::new(Thread {
                outer: 0,
                table: Some(table),
                sheet,
                sums,
                used: 0,
                index: Box::new([IndexSlot::default(); PLACES]),
                sizes: Sizes::default(),
                tracer: tracer(table, sheet, shared),
            }));
            let key = KEY.get_or_init(|| {
                kw_sys::process::in_children(in_child);
                let mut key = 0;
                // SAFETY: the key is made once; its destructor gets what was set.
                unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) };
                key
            });
            // SAFETY: the key was made, and keeps the state until the thread ends.
            unsafe { libc::pthread_setspecific(*key, thread.cast_const().cast()) };
            thread
        }
    };
    // SAFETY: this thread's own memory.
    unsafe { (*here).thread = thread };
    thread
}

/// Marks a call as being in flight until this is dropped, however the call ends.
struct UnderWay {
    thread: *mut Thread,
    table: &'static Table,
}

impl UnderWay {
    #[inline(always)]
    fn end(&self) {
        // SAFETY: the thread's own state, which lives as long as the thread.
        let thread = unsafe { &mut *self.thread };
        thread.outer = 0;
        if thread.sums == Sums::Own {
            // SYNC: the launcher reads each word at any time.
            let word = self.table.word(thread.sheet + UNDER_WAY);
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for UnderWay {
    /// Handles an exception of the program that passes through.
    fn drop(&mut self) {
        self.end();
        // SAFETY: the thread's own state and its tracer, which live as long as the thread.
        if let Some(tracer) = unsafe { (*self.thread).tracer.as_mut() } {
            tracer.leave(ticks::now(self.table.counter));
        }
    }
}

/// Records a call. `run` calls the next function at this address, with this place for statuses;
/// `bytes` returns the bytes it transfers, `act` what a trace records about it.
///
/// # Safety
/// The function was entered through its symbol.
#[inline(always)]
pub(crate) unsafe fn call(
    function: u32,
    event: Event,
    next: &Next,
    status: usize,
    run: impl FnOnce(usize, usize) -> c_int,
    bytes: impl FnOnce() -> u64,
    act: impl Fn() -> Act,
) -> c_int {
    let here = entered();
    // SAFETY: this thread's own memory, which the symbol has filled in.
    let (site, stack, mut thread) = unsafe { ((*here).site, (*here).stack, (*here).thread) };
    let next = next.get();
    if thread.is_null() {
        thread = begin(here);
    }
    // SAFETY: a thread's state lives as long as the thread.
    let (outer, table) = unsafe { ((*thread).outer, (*thread).table) };
    // Stacks grow down: calls from inside are below. Frames left by a jump do not.
    let (false, Some(table)) = (stack < outer, table) else {
        return run(next, status);
    };
    // SAFETY: as above; there is no other reference now.
    let row = unsafe { (*thread).enter(site, stack, function) };
    // SAFETY: as above.
    let tracer = unsafe { (*thread).tracer };
    let mut written = status;
    if !tracer.is_null() {
        // SAFETY: as above.
        unsafe {
            let row = (row - (*thread).sheet - ROWS_AT) / ROW;
            written = (*tracer).prepare(&act, what(function, row), status);
        }
    }
    let begin = ticks::now(table.counter);
    if !tracer.is_null() {
        // SAFETY: as above.
        unsafe { (*tracer).open(begin) };
    }
    if event == Event::Begins {
        let none = table.word(BEGIN).load(Ordering::Relaxed) == 0;
        if none {
            table.word(BEGIN).store(begin, Ordering::Relaxed);
        }
    }
    if event == Event::Ends && table.counts {
        for (n, time) in library::file_times().into_iter().enumerate() {
            table
                .word(FILE_TIMES + 8 * n)
                .store(time, Ordering::Relaxed);
        }
    }
    // SAFETY: as above.
    unsafe { (*thread).under_way(table, row, begin) };
    let under_way = UnderWay { thread, table };
    let code = run(next, written);
    let end = ticks::now(table.counter);
    under_way.end();
    std::mem::forget(under_way);
    match event {
        Event::Ends => table.word(END).store(end, Ordering::Relaxed),
        Event::FreesType => type_freed(),
        Event::Begins if table.counts => drop(library::watch_files()),
        Event::Passes | Event::Begins => {}
    }
    let bytes = if code == 0 { Some(bytes()) } else { None };
    // SAFETY: as above.
    let sums = unsafe { (*thread).sums };
    if sums != Sums::Nowhere {
        for (at, more) in [
            (16, 1),
            (24, end.saturating_sub(begin)),
            (32, bytes.unwrap_or(0)),
        ] {
            add(table.word(row + at), more, sums == Sums::Shared);
        }
    }
    if !tracer.is_null() {
        // SAFETY: as above.
        unsafe { (*tracer).close(&act, code == 0, end, bytes) };
    }
    code
}

/// Records the start of a phase of the program.
pub(crate) fn phase(level: c_int) {
    let here = entered();
    // SAFETY: this thread's own memory; its state and its tracer live as long as the thread.
    unsafe {
        let mut thread = (*here).thread;
        if thread.is_null() {
            thread = begin(here);
        }
        if let (Some(tracer), Some(table)) = ((*thread).tracer.as_mut(), (*thread).table) {
            tracer.phase(level, ticks::now(table.counter));
        }
    }
}

#[inline(always)]
fn add(word: &AtomicU64, more: u64, shared: bool) {
    // SYNC: each word is a sum, which the launcher reads at any time, by itself.
    match shared {
        false => word.store(
            word.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        ),
        true => drop(word.fetch_add(more, Ordering::Relaxed)),
    }
}

impl Thread {
    /// The row of a call.
    #[inline(always)]
    fn enter(&mut self, site: usize, stack: usize, function: u32) -> usize {
        self.outer = stack;
        let key = key(site, function);
        let place = self.index[first(key)];
        match place.key == key && place.known & 1 == 0 {
            true => place.known,
            false => self.look(site, stack, function),
        }
    }

    #[inline(always)]
    fn under_way(&self, table: &Table, row: usize, begin: u64) {
        if self.sums != Sums::Own {
            return;
        }
        let row = row - self.sheet;
        // SYNC: the launcher reads each word at any time; between the two stores a time is wrong
        // for a moment.
        table
            .word(self.sheet + SINCE)
            .store(begin, Ordering::Relaxed);
        table
            .word(self.sheet + UNDER_WAY)
            .store(row as u64, Ordering::Relaxed);
    }

    /// The lookup if the first slot of the index does not match: follows a call through the Fortran
    /// layer to the program, and one in Java to its place.
    #[inline(never)]
    fn look(&mut self, mut site: usize, mut stack: usize, function: u32) -> usize {
        loop {
            let key = key(site, function);
            let mut at = first(key);
            while self.index[at % PLACES].key != key {
                if self.index[at % PLACES].known == 0 && self.index[at % PLACES].key == 0 {
                    if !self.learn(at, site, stack, function) {
                        return self.sheet + ROWS_AT;
                    }
                    break;
                }
                at = (at + 1) % PLACES;
            }
            let known = self.index[at % PLACES].known;
            if known & 1 == 0 {
                return known;
            }
            if known == ASKED {
                site = source_line::place();
                if !is_source_line(site as u64) {
                    return self.sheet + ROWS_AT;
                }
                continue;
            }
            stack += known >> 1;
            site = caller::at(stack);
        }
    }

    /// Fills a slot of the index; returns whether there was room.
    #[cold]
    fn learn(&mut self, at: usize, site: usize, stack: usize, function: u32) -> bool {
        let Some(table) = self.table.filter(|_| self.used < PLACES / 4 * 3) else {
            return false;
        };
        let found = match is_source_line(site as u64) {
            true => Found::Program,
            false => caller::find(site, stack),
        };
        let known = match found {
            Found::Program => table.row(self.sheet, function, site),
            Found::Through(distance) => distance << 1 | 1,
            Found::Language => ASKED,
        };
        self.used += 1;
        self.index[at % PLACES] = IndexSlot {
            key: key(site, function),
            known,
        };
        true
    }
}

#[inline(always)]
fn key(site: usize, function: u32) -> u64 {
    (site as u64) << 16 | u64::from(function) + 1
}

/// The slot of a key in the index, unless all are taken.
#[inline(always)]
fn first(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize % PLACES
}
