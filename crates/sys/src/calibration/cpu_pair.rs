//! Transfers between two CPUs of a host: a cache line, long data, memory that one reads of the
//! other, a wake-up.
//!
//! Data is in the state in which messages find it: the other CPU has just written it, so the only
//! copy is in its cache or, for long data, beyond that.

use super::measure::{SHARE, STACK, best, median, per_kb, touch, touched};
use crate::buf::Buf;
use crate::nontemporal::NontemporalCopier;
use crate::region::Region;
use crate::{clock, cpus, futex, nontemporal, process_vm, threads};
use kw_base::pool;
use kw_base::sync::Arc;
use kw_base::sync::atomic::{AtomicU32, Ordering};
use kw_base::sync::thread;
use std::cell::Cell;
use std::time::Duration;

/// Bytes of a core's own cache if the system does not tell: the area that two CPUs share is twice
/// as long, as the working sets of long messages are.
const OWN: usize = 1 << 20;
/// The own caches for which messages are measured on both sides, bytes.
const OWNS: (usize, usize) = (256 << 10, 4 << 20);
/// Bytes of a short read of the other's memory.
const FETCH_SHORT: u64 = 4 << 10;
/// Bytes of a short message.
const SHORT: u64 = pool::SLOT as u64;
/// Bytes of a piece, as for long messages.
const PIECE: u64 = pool::piece_of(1 << 20);
/// Most pieces that may be filled and not drained.
const AHEAD: u32 = 4;
/// Rounds of a batch.
const ROUNDS: u32 = 50;
/// Polls of a word before others may run.
const LOOKS: u32 = 20_000;

/// Line transfer between two CPUs: picoseconds, and picoseconds per 1024 bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Between {
    pub(super) line: u64,
    pub(super) stream: u64,
}

/// A word in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct Word(AtomicU32);

impl Word {
    pub(super) fn get(&self) -> u32 {
        // SYNC: orders reads after the other thread's writes before it set the word.
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, value: u32) {
        // SYNC: publishes what this thread wrote before.
        self.0.store(value, Ordering::Release);
    }

    /// Polls until the word is good.
    fn until(&self, good: impl Fn(u32) -> bool) -> u32 {
        let mut looks = 0u32;
        loop {
            let value = self.get();
            if good(value) {
                return value;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// Memory shared by two threads.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) mine: Word,
    pub(super) theirs: Word,
}

/// The word that ends the other thread.
pub(super) const OVER: u32 = u32::MAX;

/// Runs `body` while another thread, on that CPU, runs `other` with the same words. `None`: no such
/// thread can be started.
fn beside<T>(
    cpu: usize,
    other: impl FnOnce(&Shared) + Send + 'static,
    body: impl FnOnce(&Shared) -> T,
) -> Option<T> {
    let shared = Arc::new(Shared::default());
    let theirs = shared.clone();
    let thread = threads::spawn("kw-calibrate", STACK, move || {
        cpus::stay_on(cpu);
        other(&theirs);
    });
    let thread = thread.ok()?;
    let result = body(&shared);
    shared.mine.set(OVER);
    futex::wake(&shared.mine.0);
    thread.join().ok()?;
    Some(result)
}

pub(super) fn between(cpu: usize) -> Option<Between> {
    Some(Between {
        line: line(cpu)?,
        stream: stream(cpu)?,
    })
}

/// One-way time of a word that goes to another CPU and back.
fn line(cpu: usize) -> Option<u64> {
    let answer = |shared: &Shared| {
        let mut seen = 0;
        while seen != OVER {
            seen = shared.mine.until(|v| v != seen);
            shared.theirs.set(seen);
        }
    };
    beside(cpu, answer, |shared| {
        let mut turn = 0;
        best(|| {
            for _ in 0..ROUNDS {
                turn += 1;
                shared.mine.set(turn);
                shared.theirs.until(|v| v == turn);
            }
            2 * u64::from(ROUNDS)
        })
    })
}

/// A region's pieces take turns.
fn part(region: Region<'_>, number: u32) -> Region<'_> {
    let pieces = region.len() / PIECE;
    region.part(u64::from(number) % pieces * PIECE, PIECE)
}

/// Bytes of a core's own cache, as far as messages are measured on both sides of it.
fn own() -> usize {
    let (least, most) = OWNS;
    cpus::own_cache().unwrap_or(OWN).clamp(least, most)
}

/// Bytes of the messages whose rates are measured: within the own cache of a core, and beyond it.
/// The methods for a long message compete at all these sizes, so each is measured at the same ones.
fn lengths() -> [u64; 2] {
    let own = own() as u64;
    [own / 2, own * 2].map(|len| (len / PIECE).max(1) * PIECE)
}

/// The mean of a figure for messages of all [`lengths`].
fn mean(figure: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let each: Option<Vec<u64>> = lengths().into_iter().map(figure).collect();
    let each = each?;
    Some(each.iter().sum::<u64>() / each.len() as u64)
}

/// Copies into a shared area by one CPU while another one copies the data out; the mean of the
/// rates of all [`lengths`].
fn stream(cpu: usize) -> Option<u64> {
    mean(|len| stream_of(cpu, len))
}

/// The same for messages of one length, which this CPU writes before it sends each.
fn stream_of(cpu: usize, len: u64) -> Option<u64> {
    let area = touched(2 * own())?;
    let theirs = area.clone();
    let drain = move |shared: &Shared| {
        let to = touched(len as usize);
        let regions = to.as_ref().and_then(Buf::region).zip(theirs.region());
        let Some((to, whole)) = regions else {
            shared.theirs.set(OVER);
            return;
        };
        for done in 0.. {
            if shared.mine.until(|filled| filled > done) == OVER {
                return;
            }
            nontemporal::fetch(part(whole, done), part(to, done));
            shared.theirs.set(done + 1);
        }
    };
    let fill = |shared: &Shared| {
        let message = touched(len as usize)?;
        let (from, whole) = message.region().zip(area.region())?;
        let mut filled = 0;
        let mut copier = NontemporalCopier::default();
        let mut send = || {
            for _ in 0..len / PIECE {
                shared
                    .theirs
                    .until(|done| filled < done.saturating_add(AHEAD));
                copier.copy(part(from, filled), part(whole, filled));
                filled += 1;
                shared.mine.set(filled);
            }
            shared.theirs.until(|done| done >= filled);
        };
        // Waits until the other thread has its memory, which may take longer than a figure may.
        send();
        let picos = least(|| touch(&message), send);
        Some(per_kb(picos, len))
    };
    beside(cpu, drain, fill)?
}

/// The copy of a short message into a shared area and the copy out of it, one after the other, in
/// picoseconds per 1024 bytes; `line`: the time of the word that tells of it.
pub(super) fn short_message(cpu: usize, line: u64) -> Option<u64> {
    let areas = [touched(2 * own())?, touched(2 * own())?];
    let theirs = areas.clone();
    let answer = move |shared: &Shared| {
        let Some(mut side) = Side::new([&theirs[1], &theirs[0]]) else {
            shared.theirs.set(OVER);
            return;
        };
        let mut seen = 0;
        loop {
            seen = shared.mine.until(|v| v != seen);
            if seen == OVER {
                return;
            }
            side.take(seen);
            side.give(seen);
            shared.theirs.set(seen);
        }
    };
    let ask = |shared: &Shared| {
        let mut side = Side::new([&areas[0], &areas[1]])?;
        let mut turn = 0;
        let picos = median(|| {
            for _ in 0..ROUNDS {
                turn += 1;
                side.give(turn);
                shared.mine.set(turn);
                shared.theirs.until(|v| v == turn || v == OVER);
                side.take(turn);
            }
            2 * u64::from(ROUNDS)
        });
        Some(per_kb(picos.saturating_sub(line), SHORT))
    };
    beside(cpu, answer, ask)?
}

/// One of two CPUs that exchange short messages: its message, the area that it writes and the one
/// that it reads.
struct Side<'a> {
    message: Buf,
    areas: [Region<'a>; 2],
    copier: NontemporalCopier,
}

impl<'a> Side<'a> {
    fn new(areas: [&'a Buf; 2]) -> Option<Side<'a>> {
        let [out, into] = areas.map(Buf::region);
        Some(Side {
            message: touched(SHORT as usize)?,
            areas: [out?, into?],
            copier: NontemporalCopier::default(),
        })
    }

    /// The part of an area for this message: every third one, as for messages.
    fn at(area: Region<'a>, turn: u32) -> Region<'a> {
        let places = area.len() / (3 * SHORT);
        area.part(u64::from(turn) % places * 3 * SHORT, SHORT)
    }

    fn give(&mut self, turn: u32) {
        if let Some(message) = self.message.region() {
            self.copier.copy(message, Side::at(self.areas[0], turn));
        }
    }

    fn take(&self, turn: u32) {
        if let Some(message) = self.message.region() {
            nontemporal::fetch(Side::at(self.areas[1], turn), message);
        }
    }
}

/// Picoseconds of the shortest run of `timed`, before each of which `before` is called.
fn least(mut before: impl FnMut(), mut timed: impl FnMut()) -> u64 {
    let end = clock::now() + SHARE;
    let mut least = u64::MAX;
    loop {
        before();
        let begin = clock::now();
        timed();
        let now = clock::now();
        least = least.min((now.0 - begin.0) * 1000);
        if now >= end {
            return least.max(1);
        }
    }
}

/// A call of process_vm_readv and the addition for each kilobyte of [`lengths`], if the system
/// allows it. As in use, another CPU has just written the data that is fetched: its cache has the
/// only copy.
pub(super) fn fetch(other: Option<usize>) -> Option<(u64, u64)> {
    let short = fetch_of(other, FETCH_SHORT)?;
    let rate = mean(|len| {
        let picos = fetch_of(other, len)?.saturating_sub(short);
        Some(per_kb(picos, len - FETCH_SHORT))
    })?;
    let call = short.saturating_sub(rate * (FETCH_SHORT >> 10));
    Some((call.max(1), rate))
}

/// Picoseconds of a call for a message of this length.
fn fetch_of(other: Option<usize>, len: u64) -> Option<u64> {
    let from = touched(len as usize)?;
    let to = touched(len as usize)?;
    fetch_once(&from, &to, len)?;
    let theirs = from.clone();
    let dirty = move |shared: &Shared| {
        let mut seen = 0;
        loop {
            seen = shared.mine.until(|v| v != seen);
            if seen == OVER {
                return;
            }
            touch(&theirs);
            shared.theirs.set(seen);
        }
    };
    // It was allowed a moment ago; if it is refused now, the figure is brought into its range.
    let call = || {
        let _ = fetch_once(&from, &to, len);
    };
    let by_other = other.and_then(|cpu| {
        beside(cpu, dirty, |shared| {
            let mut turn = 0;
            let write = || {
                turn += 1;
                shared.mine.set(turn);
                shared.theirs.until(|v| v == turn);
            };
            least(write, call)
        })
    });
    by_other.or_else(|| Some(least(|| (), call)))
}

/// What each kilobyte of a message of [`lengths`] takes beyond a call of `call` picoseconds, if this
/// CPU reads one half of it while the other CPU, which has just written it, writes the other half.
pub(super) fn fetch_both(other: usize, call: u64) -> Option<u64> {
    mean(|len| Some(per_kb(both_of(other, len)?.saturating_sub(call), len)))
}

/// Picoseconds until both halves of a message of this length are in place.
fn both_of(other: usize, len: u64) -> Option<u64> {
    let (from, to) = (touched(len as usize)?, touched(len as usize)?);
    let address = |buf: &Buf| Some(buf.region()?.bits() as u64 + len / 2);
    let (source, place) = (address(&from)?, address(&to)?);
    // SAFETY: the memory of `to`, which lives as long as this function or the other thread.
    let store = move || unsafe { process_vm::store(process_vm::pid(), source, place, len / 2) };
    store().ok()?;
    fetch_once(&from, &to, len / 2)?;
    let (theirs, keep) = (from.clone(), to.clone());
    let write = move |shared: &Shared| {
        let _keep = keep;
        // An odd number asks for the message, the next one for its second half.
        let mut seen = 0;
        loop {
            seen = shared.mine.until(|v| v != seen);
            match seen {
                OVER => return,
                seen if seen % 2 == 1 => touch(&theirs),
                // As in `fetch_of`.
                _ => {
                    let _ = store();
                }
            }
            shared.theirs.set(seen);
        }
    };
    beside(other, write, |shared| {
        let turn = Cell::new(0);
        let next = || {
            turn.set(turn.get() + 1);
            shared.mine.set(turn.get());
            turn.get()
        };
        let done = |turn| shared.theirs.until(|v| v == turn);
        let message = || {
            done(next());
        };
        least(message, || {
            let half = next();
            let _ = fetch_once(&from, &to, len / 2);
            done(half);
        })
    })
}

fn fetch_once(from: &Buf, to: &Buf, len: u64) -> Option<()> {
    let address = from.region()?.bits() as u64;
    process_vm::fetch(process_vm::pid(), address, to, 0, len).ok()?;
    Some(())
}

/// Time from a wake-up until a thread that slept on another CPU runs.
pub(super) fn wake(cpu: usize) -> Option<u64> {
    let sleep = |shared: &Shared| {
        let mut seen = 0;
        while seen != OVER {
            shared.theirs.set(seen);
            let word = &shared.mine;
            while word.get() == seen {
                futex::wait(&word.0, seen, None);
            }
            seen = word.get();
        }
    };
    let times = beside(cpu, sleep, |shared| {
        let end = clock::now() + SHARE;
        let mut times = Vec::new();
        while clock::now() < end && (times.len() as u32) < 100 {
            let turn = times.len() as u32 + 1;
            // Long enough for it to fall asleep.
            let asleep = clock::now() + Duration::from_micros(50);
            while clock::now() < asleep {
                std::hint::spin_loop();
            }
            let begin = clock::now();
            shared.mine.set(turn);
            futex::wake(&shared.mine.0);
            shared.theirs.until(|v| v == turn);
            times.push((clock::now().0 - begin.0) * 1000);
        }
        times
    });
    let mut times = times?;
    times.sort_unstable();
    times.get(times.len() / 4).copied()
}
