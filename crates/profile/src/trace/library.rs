//! Notes of the library while it runs, through its MPI_T (MPI 5.0, chapter 15): rendezvous requests
//! that it has sent, or that arrived too early (events), and a few sums from time to time
//! (performance variables).
//!
//! The library delivers events in any thread, between two calls or inside of one; the next call
//! that ends, in any thread, writes them to its ring. Sums are read when a call of the first thread
//! ends and the last read was [`EVERY`] ago.

use std::ffi::{CStr, c_char, c_int, c_void};

use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicBool, Ordering};
use kw_start::trace::*;
use kw_sys::clock;

use crate::next;

/// Nanoseconds between two reads of the sums.
const EVERY: u64 = 10_000_000;
/// Most events that wait for the end of a call.
const MOST: usize = 1 << 16;

/// Events that are not written yet, and whether there are any.
static EVENTS: Mutex<Vec<Record>> = Mutex::new(Vec::new());
static PENDING: AtomicBool = AtomicBool::new(false);

/// Whether there are events to write.
#[inline(always)]
pub(super) fn is_pending() -> bool {
    // SYNC: a thread that misses one being added leaves it to the next call.
    PENDING.load(Ordering::Relaxed)
}

/// Takes the events.
#[cold]
pub(super) fn take(thread: u16, out: &mut Vec<Record>) {
    let mut events = EVENTS.lock().unwrap_or_else(|e| e.into_inner());
    PENDING.store(false, Ordering::Relaxed);
    out.extend(events.drain(..).map(|r| Record { thread, ..r }));
}

/// The variables that make one sum: their names and classes (of the standard ABI).
type Sum = &'static [(&'static CStr, c_int)];

/// Sums of messages.
const SUMS: [Sum; SUMMED] = [
    &[
        (c"self_bytes", AGGREGATE),
        (c"shm_bytes", AGGREGATE),
        (c"tcp_bytes", AGGREGATE),
        (c"udp_bytes", AGGREGATE),
    ],
    &[(c"unexpected", COUNTER)],
    &[(c"unexpected_bytes", AGGREGATE)],
    &[(c"unexpected_waiting", LEVEL)],
    &[(c"event_looks", COUNTER), (c"event_takeovers", COUNTER)],
];
/// Sums of access to files.
const FILES: [Sum; SUMMED] = [
    &[(c"file_read_bytes", AGGREGATE)],
    &[(c"file_write_bytes", AGGREGATE)],
    &[(c"file_calls", COUNTER)],
    &[(c"file_for_others", AGGREGATE)],
    &[(c"file_time", AGGREGATE)],
];
const LEVEL: c_int = 2;
const COUNTER: c_int = 7;
const AGGREGATE: c_int = 8;
const INFO_NULL: usize = 0x130;
const THREAD_SAFE: c_int = 0x0f;

type Init = unsafe extern "C-unwind" fn(c_int, *mut c_int) -> c_int;
type Index = unsafe extern "C-unwind" fn(*const c_char, *mut c_int) -> c_int;
type ClassIndex = unsafe extern "C-unwind" fn(*const c_char, c_int, *mut c_int) -> c_int;
type Alloc = unsafe extern "C-unwind" fn(c_int, *mut c_void, usize, *mut usize) -> c_int;
type Heard = unsafe extern "C-unwind" fn(usize, usize, c_int, *mut c_void);
type Register = unsafe extern "C-unwind" fn(usize, c_int, usize, *mut c_void, Heard) -> c_int;
type Element = unsafe extern "C-unwind" fn(usize, c_int, *mut c_void) -> c_int;
type Time = unsafe extern "C-unwind" fn(usize, *mut i64) -> c_int;
type Session = unsafe extern "C-unwind" fn(*mut usize) -> c_int;
type Variable =
    unsafe extern "C-unwind" fn(usize, c_int, *mut c_void, *mut usize, *mut c_int) -> c_int;
type Start = unsafe extern "C-unwind" fn(usize, usize) -> c_int;
type Read = unsafe extern "C-unwind" fn(usize, usize, *mut c_void) -> c_int;

/// A function of this library, for a program of any ABI; of this type.
///
/// # Safety
/// The function has this type.
unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    assert!(size_of::<F>() == size_of::<usize>());
    match next::of_library(name) {
        0 => None,
        // SAFETY: the caller's promise.
        found => Some(unsafe { std::mem::transmute_copy::<usize, F>(&found) }),
    }
}

/// Queries in the event callback.
#[derive(Clone, Copy)]
struct Ask {
    element: Element,
    time: Time,
}

static ASK: Mutex<Option<Ask>> = Mutex::new(None);

/// A session of MPI_T, and its queries.
#[derive(Clone, Copy, Debug)]
struct Asking {
    index: ClassIndex,
    alloc: Variable,
    start: Start,
    read: Read,
    session: usize,
}

impl Asking {
    /// # Safety
    /// MPI_T has been initialised.
    unsafe fn new() -> Option<Asking> {
        // SAFETY: as in `begin`.
        unsafe {
            let session: Session = function(c"PMPI_T_pvar_session_create")?;
            let mut asking = Asking {
                index: function(c"PMPI_T_pvar_get_index")?,
                alloc: function(c"PMPI_T_pvar_handle_alloc")?,
                start: function(c"PMPI_T_pvar_start")?,
                read: function(c"PMPI_T_pvar_read")?,
                session: 0,
            };
            (session(&mut asking.session) == 0).then_some(asking)
        }
    }

    /// A handle of a variable, which counts from now on.
    fn handle(&self, (name, class): &(&CStr, c_int)) -> Option<usize> {
        let (mut at, mut handle, mut count) = (0, 0, 0);
        let no_object = std::ptr::null_mut();
        // SAFETY: as in `begin`.
        unsafe {
            let good = (self.index)(name.as_ptr(), *class, &mut at) == 0
                && (self.alloc)(self.session, at, no_object, &mut handle, &mut count) == 0;
            // a variable that is never stopped is marked as continuous
            let _ = good && *class != LEVEL && (self.start)(self.session, handle) == 0;
            good.then_some(handle)
        }
    }

    /// The value of a variable; 0 if it cannot be read.
    fn value(&self, handle: usize) -> u64 {
        let mut value = 0u64;
        // SAFETY: the session and its handle; all these variables are of this type.
        match unsafe { (self.read)(self.session, handle, (&raw mut value).cast()) } {
            0 => value,
            _ => 0,
        }
    }
}

/// Time of access to files, and of communication of collective access.
const FILE_TIMES: [(&CStr, c_int); 2] = [
    (c"file_time", AGGREGATE),
    (c"file_exchange_time", AGGREGATE),
];

/// Their handles, once MPI is initialised.
static WATCHED: Mutex<Option<(Asking, [Option<usize>; 2])>> = Mutex::new(None);

/// Handles the initialisation of MPI: the time spent on files counts from now on, if it did not
/// before (a program may begin several sessions). Without effect if the library is another one, or
/// the user has turned MPI_T off.
#[cold]
pub(crate) fn watch_files() -> Option<()> {
    let mut watched = WATCHED.lock().unwrap_or_else(|e| e.into_inner());
    if watched.is_some() {
        return None;
    }
    // SAFETY: as in `begin`.
    let asking = unsafe {
        let init: Init = function(c"PMPI_T_init_thread")?;
        let mut provided = 0;
        match init(0, &mut provided) {
            0 => Asking::new()?,
            _ => return None,
        }
    };
    let handles = FILE_TIMES.each_ref().map(|sum| asking.handle(sum));
    *watched = Some((asking, handles));
    Some(())
}

/// Nanoseconds of access to files, and of communication of collective access, so far.
#[cold]
pub(crate) fn file_times() -> [u64; 2] {
    let watched = WATCHED.lock().unwrap_or_else(|e| e.into_inner());
    match &*watched {
        None => [0; 2],
        Some((asking, handles)) => handles.map(|h| h.map_or(0, |h| asking.value(h))),
    }
}

/// The sums of a process.
#[derive(Debug)]
pub(super) struct Sums {
    asking: Asking,
    handles: [Vec<usize>; SUMMED],
    files: [Vec<usize>; SUMMED],
    /// Time of the last read: ticks, nanoseconds.
    at: (u64, u64),
    /// Ticks of the next read.
    pub next: u64,
}

/// Handles the initialisation of MPI. `None` if the library is another one, or the user has turned
/// MPI_T off.
#[cold]
pub(super) fn begin(ticks: u64) -> Option<Box<Sums>> {
    // SAFETY: functions of these names have these types in the standard ABI, with handles as words;
    // the pointers are to values that live during the call.
    unsafe {
        let init: Init = function(c"PMPI_T_init_thread")?;
        let mut provided = 0;
        if init(0, &mut provided) != 0 {
            return None;
        }
        for (name, kind) in [
            (c"rendezvous_begun", Kind::Offered),
            (c"rendezvous_waits", Kind::Awaited),
        ] {
            listen(name, kind);
        }
        sums(ticks)
    }
}

/// Requests events of a kind.
///
/// # Safety
/// MPI_T has been initialised.
unsafe fn listen(name: &CStr, kind: Kind) -> Option<()> {
    // SAFETY: as in `begin`.
    unsafe {
        let index: Index = function(c"PMPI_T_event_get_index")?;
        let alloc: Alloc = function(c"PMPI_T_event_handle_alloc")?;
        let register: Register = function(c"PMPI_T_event_register_callback")?;
        let ask = Ask {
            element: function(c"PMPI_T_event_read")?,
            time: function(c"PMPI_T_event_get_timestamp")?,
        };
        *ASK.lock().unwrap_or_else(|e| e.into_inner()) = Some(ask);
        let (mut at, mut handle) = (0, 0);
        let good = index(name.as_ptr(), &mut at) == 0
            && alloc(at, std::ptr::null_mut(), INFO_NULL, &mut handle) == 0;
        let word = usize::from(kind.number()) as *mut c_void;
        (good && register(handle, THREAD_SAFE, INFO_NULL, word, heard) == 0).then_some(())
    }
}

/// Handles an event, in any thread. Only for messages of the program, which use every fourth
/// context.
unsafe extern "C-unwind" fn heard(event: usize, _: usize, _: c_int, kind: *mut c_void) {
    let Some(ask) = *ASK.lock().unwrap_or_else(|e| e.into_inner()) else {
        return;
    };
    let (mut ranks, mut bytes, mut time) = ([0 as c_int; 3], 0i64, 0i64);
    // SAFETY: the requested events have three ints and an MPI_Count.
    let good = unsafe {
        let int =
            |n: usize, to: &mut c_int| (ask.element)(event, n as c_int, (&raw mut *to).cast());
        let ints = ranks.iter_mut().enumerate().all(|(n, to)| int(n, to) == 0);
        ints && (ask.element)(event, 3, (&raw mut bytes).cast()) == 0
            && (ask.time)(event, &mut time) == 0
    };
    let [peer, context, tag] = ranks;
    if good && context % 4 == 0 {
        keep(Record {
            begin: time as u64,
            kind: kind as usize as u8,
            flags: NANOSECONDS,
            peer,
            tag,
            bytes: bytes as u64,
            ..Record::EMPTY
        });
    }
}

fn keep(event: Record) {
    let mut events = EVENTS.lock().unwrap_or_else(|e| e.into_inner());
    if events.len() < MOST {
        events.push(event);
    }
    PENDING.store(true, Ordering::Relaxed);
}

/// # Safety
/// MPI_T has been initialised.
unsafe fn sums(ticks: u64) -> Option<Box<Sums>> {
    // SAFETY: the caller's promise.
    let asking = unsafe { Asking::new()? };
    let handle = |sum| asking.handle(sum);
    let handles = |sums: [Sum; SUMMED]| sums.map(|all| all.iter().filter_map(handle).collect());
    Some(Box::new(Sums {
        asking,
        handles: handles(SUMS),
        files: handles(FILES),
        at: (ticks, clock::now().0),
        next: ticks,
    }))
}

impl Sums {
    /// Reads the sums if it is time, or `always`; those of files are recorded once there are any.
    #[cold]
    pub fn look(&mut self, ticks: u64, always: bool) -> [Option<Record>; 2] {
        let now = clock::now().0;
        let gone = now.saturating_sub(self.at.1);
        let ticked = ticks.saturating_sub(self.at.0);
        // the number of ticks in that time is known from two reads
        let more = u128::from(ticked) * u128::from(EVERY) / u128::from(gone.max(1));
        self.next = ticks.saturating_add((more as u64).clamp(EVERY / 64, EVERY * 64));
        if gone < EVERY / 2 && !always {
            return [None, None];
        }
        self.at = (ticks, now);
        let sum = |all: &Vec<usize>| all.iter().map(|h| self.asking.value(*h)).sum();
        let files: [u64; SUMMED] = self.files.each_ref().map(sum);
        let any = files.iter().any(|&n| n != 0);
        [
            Some(Record::of_sums(
                Kind::Sums,
                now,
                self.handles.each_ref().map(sum),
            )),
            any.then(|| Record::of_sums(Kind::Files, now, files)),
        ]
    }
}
