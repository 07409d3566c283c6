//! Work before and after each call.
//!
//! A thread writes into a sheet of its own, so threads do not meet. The row of a call is found by the
//! address that it returns to and the function's number, in an index of the thread's own. A call
//! that another one makes (from a function of the program that MPI calls) belongs to that one.

use std::ffi::{c_int, c_void};

use crate::amount::{Sizes, type_freed};
use crate::caller::{self, Found};
use crate::entry::{Entered, entered};
use crate::language;
use crate::next::Next;
use crate::table::{Table, table};
use crate::trace::act::Act;
use crate::trace::{Tracer, library, what};
use kw_base::place::is_place;
use kw_base::sync::OnceLock;
use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_start::profile::{BEGIN, END, FILE_TIMES, ROW, ROWS_AT, SHEET, SHEETS_AT, SINCE, UNDER_WAY};
use kw_sys::ticks;

/// Places of a thread's index, a power of two; more than rows of a sheet.
const PLACES: usize = 2048;

/// Meaning of a call beyond itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Nothing.
    Passes,
    /// MPI begins.
    Begins,
    /// MPI ends.
    Ends,
    /// A datatype goes.
    FreesType,
}

/// A place of the index: a return address with a function, and what is known of it.
#[derive(Clone, Copy, Default)]
struct Place {
    key: u64,
    /// Where the row stands in the table (a multiple of 8), or twice the distance to the caller's
    /// own return address, and 1 more; [`ASKED`] where a language is asked.
    known: usize,
}

/// What is known of a call in a language: no distance is 0.
const ASKED: usize = 1;

/// Where calls are summed up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// Nowhere: not requested.
    Nowhere,
    /// In a sheet of the thread's own.
    Own,
    /// In a sheet where other threads write, too.
    Shared,
}

/// A thread's state. Only its thread uses it.
pub(crate) struct Thread {
    /// The stack of the call in flight, 0 when there is none; of a thread that records nothing the
    /// highest address.
    outer: usize,
    table: Option<&'static Table>,
    sheet: usize,
    sums: Sums,
    used: usize,
    index: Box<[Place; PLACES]>,
    pub sizes: Sizes,
    /// Null where calls are not traced.
    tracer: *mut Tracer,
}

/// The state of threads that record nothing. It is never written.
struct Off(Thread);
// SAFETY: it is never changed: its `outer` says so before anything else is looked at.
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
            index: Box::new([Place::default(); PLACES]),
            sizes: Sizes::default(),
            tracer: std::ptr::null_mut(),
        })
    };
    (&raw const OFF.get_or_init(make).0).cast_mut()
}

/// Bytes of an element of a datatype; 0 in a thread that records nothing.
#[inline(always)]
pub(crate) fn size_of(datatype: usize) -> u64 {
    // SAFETY: the thread's own state, which nobody else has. The reference ends before this returns,
    // and the only function that is called meanwhile is the library's PMPI_Type_size, which does not
    // lead back into this crate.
    let thread = unsafe { (*entered()).thread.as_mut() };
    let recording = thread.filter(|t| t.table.is_some());
    recording.map_or(0, |t| t.sizes.of(datatype))
}

/// The state goes with the thread; the sheet is the next one's.
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
    // SAFETY: the child's only thread; what it had before stays.
    unsafe { (*entered()).thread = off() }
}

/// The first call of a thread.
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
                index: Box::new([Place::default(); PLACES]),
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

/// A call is in flight; whatever ends it, it is not any more.
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
            // SYNC: the launcher reads words as they are.
            let word = self.table.word(thread.sheet + UNDER_WAY);
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for UnderWay {
    /// An exception of the program's passes.
    fn drop(&mut self) {
        self.end();
        // SAFETY: the thread's own state and its tracer, which live as long as the thread.
        if let Some(tracer) = unsafe { (*self.thread).tracer.as_mut() } {
            tracer.leave(ticks::now(self.table.counter));
        }
    }
}

/// Records a call. `run` calls the next function at this address, with this place for statuses;
/// `bytes` says what it was about, `act` what a trace tells of it.
///
/// # Safety
/// The function was entered by its symbol.
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
    // SAFETY: as above; nobody else has a reference now.
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

/// The program says that a phase begins.
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
    // SYNC: sums, which the launcher reads at any time, each by itself.
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
        // SYNC: the launcher reads words as they are; half of this is a wrong time for a moment.
        table
            .word(self.sheet + SINCE)
            .store(begin, Ordering::Relaxed);
        table
            .word(self.sheet + UNDER_WAY)
            .store(row as u64, Ordering::Relaxed);
    }

    /// The lookup if the first entry of the index does not match: for a call through the Fortran
    /// layer, continues to the program, and for one in Java to its place.
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
                site = language::place();
                if !is_place(site as u64) {
                    return self.sheet + ROWS_AT;
                }
                continue;
            }
            stack += known >> 1;
            site = caller::at(stack);
        }
    }

    /// Fills a place of the index in; whether there was room.
    #[cold]
    fn learn(&mut self, at: usize, site: usize, stack: usize, function: u32) -> bool {
        let Some(table) = self.table.filter(|_| self.used < PLACES / 4 * 3) else {
            return false;
        };
        let found = match is_place(site as u64) {
            true => Found::Program,
            false => caller::find(site, stack),
        };
        let known = match found {
            Found::Program => table.row(self.sheet, function, site),
            Found::Through(distance) => distance << 1 | 1,
            Found::Language => ASKED,
        };
        self.used += 1;
        self.index[at % PLACES] = Place {
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

/// Where a key stands in the index, unless that is taken.
#[inline(always)]
fn first(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize % PLACES
}
