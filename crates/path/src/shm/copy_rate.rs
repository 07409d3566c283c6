//! Which way long payload takes between two ranks of a host: through the receiver's pool, copied in
//! by one side and out by the other, or fetched by its receiver in one system call.
//!
//! Two copies by processors that share a cache are quicker than one by the kernel, which looks up
//! every page. Between others each line that is written has to be taken from the other side first,
//! and the two are many times slower. Where the processors lie nobody tells a process in a virtual
//! machine, and it changes while it runs (`kw_sys::nontemporal`). So each side looks how long its
//! own copies take, and says so beside its counter; while both together are slow,
//! [`CopyRate::fetches`], and now and then the area is tried again.
//!
//! The first touch of a page, in the pool or in the user's memory, costs several times its copy and
//! says nothing about processors; nor does a copy during which the thread lost its core. So a slow
//! copy counts only when this thread was not interrupted since the slow copy before.

use std::sync::atomic::{AtomicU32, Ordering};

use kw_base::{Calibration, Tick};
use kw_sys::threads;

use super::segment::{Control, SLOT};

/// Rates are nanoseconds for so many bytes.
const UNIT: u64 = 64 << 10;
/// A shorter piece says nothing: what it costs is the first lines.
const LONG_COPY: u64 = SLOT as u64;
/// A shorter fetch says nothing: what it costs is the call.
const LONG_FETCH: u64 = 32 << 10;
/// Of so many pieces one is looked at: the clock costs as much as a kilobyte.
const SAMPLE_EVERY: u32 = 8;
/// So many looks, and the way is judged; until then every piece is looked at.
const PROOF: u32 = 8;
/// A rate beyond it says that the thread lost its core.
const ABSURD: u64 = 200_000;
/// Fetches until the area is tried again: at first, and at most. It doubles with every trial that
/// fails.
const RETRY_AFTER: (u32, u32) = (16, 1024);
/// Looks in a row that found the area quick, and a trial that failed is forgotten.
const FORGIVEN: u32 = 256;

/// See the module. One for each peer.
#[derive(Debug)]
pub struct CopyRate {
    clock: fn() -> Tick,
    /// How long this rank's fetches take.
    fetch: u32,
    fetches: bool,
    /// [`CopyRate::slow`] and [`CopyRate::fetches`] have changed since somebody asked.
    changed: bool,
    /// What the way through the area takes: the slower of both copies, which go on at once; both of
    /// them where ranks share cores.
    through: u32,
    crowded: bool,
    /// Pieces since one was looked at.
    unseen: u32,
    /// Looks since the way was chosen.
    looks: u32,
    /// Fetches until the area is tried again.
    left: u32,
    patience: u32,
    /// How often the thread that made the last slow copy was interrupted, until then.
    interrupted: Option<u64>,
}

impl CopyRate {
    /// Nothing was copied yet; copies are measured by this clock.
    pub fn new(clock: fn() -> Tick) -> CopyRate {
        CopyRate {
            clock,
            fetch: fetch_rate(&Calibration::START),
            fetches: false,
            changed: false,
            through: 0,
            crowded: false,
            unseen: 0,
            looks: 0,
            left: 0,
            patience: RETRY_AFTER.0,
            interrupted: None,
        }
    }

    /// What a fetch takes by the figures of the host, until this rank has fetched.
    pub fn set_host(&mut self, host: &Calibration) {
        self.fetch = fetch_rate(host);
    }

    /// Says whether ranks share cores.
    pub fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// The beginning of a copy of a piece, where it is to be looked at.
    #[inline]
    pub fn begin(&mut self) -> Option<Tick> {
        self.unseen += 1;
        (self.unseen >= SAMPLE_EVERY || self.looks < PROOF).then(self.clock)
    }

    /// A piece of `len` bytes was copied; `mine` is the rate that this side of the area shows,
    /// `ways` are both directions.
    #[cold]
    pub fn copied(&mut self, begin: Tick, len: u64, mine: &AtomicU32, ways: [&Control; 2]) {
        if len < LONG_COPY {
            return;
        }
        self.unseen = 0;
        let each = rate(begin, (self.clock)(), len);
        if self.is_slow(each) && self.was_interrupted(threads::interruptions()) {
            return;
        }
        self.looks = self.looks.saturating_add(1);
        learn_shown(mine, each);
        self.judge(
            slower(ways.map(|way| &way.fill_rate)),
            slower(ways.map(|way| &way.drain_rate)),
        );
    }

    /// Whether a copy is so slow that it speaks for fetching.
    fn is_slow(&self, each: u64) -> bool {
        each * 4 > u64::from(self.fetch) * 3
    }

    /// Whether this thread may have been interrupted since the slow copy before; `times`: how often
    /// until now.
    fn was_interrupted(&mut self, times: u64) -> bool {
        self.interrupted.replace(times) != Some(times)
    }

    /// Chooses by what both sides show: the slower of the two directions in filling, and in
    /// draining.
    fn judge(&mut self, fill: u32, drain: u32) {
        if self.fetches || self.looks < PROOF {
            return;
        }
        self.through = match self.crowded {
            true => fill + drain,
            false => fill.max(drain),
        };
        if u64::from(self.through) * 2 > u64::from(self.fetch) * 3 {
            (self.fetches, self.changed, self.looks) = (true, true, 0);
            self.left = self.patience;
            self.patience = (self.patience * 2).min(RETRY_AFTER.1);
        } else if self.looks > FORGIVEN {
            self.patience = RETRY_AFTER.0;
        }
    }

    /// `len` bytes were fetched.
    pub fn fetched(&mut self, begin: Tick, len: u64) {
        if len < LONG_FETCH {
            return;
        }
        self.fetch = learn(self.fetch, rate(begin, (self.clock)(), len));
        if self.fetches {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                (self.fetches, self.changed, self.looks) = (false, true, 0);
            }
        }
    }

    /// Nanoseconds that a byte takes through the area, where that is known to be slow.
    pub fn slow(&self) -> Option<f64> {
        self.fetches.then(|| f64::from(self.through) / UNIT as f64)
    }

    /// Whether [`CopyRate::slow`] has changed since this was asked.
    #[inline]
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}

/// What a fetch takes, where the host allows it.
fn fetch_rate(host: &Calibration) -> u32 {
    let line = host.fetch().or(Calibration::START.fetch());
    line.map_or(0, |line| line.at(UNIT) as u32)
}

fn slower(rates: [&AtomicU32; 2]) -> u32 {
    // SYNC: a rate is one number.
    let [a, b] = rates.map(|rate| rate.load(Ordering::Relaxed));
    a.max(b)
}

fn learn_shown(shown: &AtomicU32, each: u64) {
    // SYNC: a rate is one number, and only its owner writes it.
    let known = shown.load(Ordering::Relaxed);
    shown.store(learn(known, each), Ordering::Relaxed);
}

/// Nanoseconds for [`UNIT`] bytes.
fn rate(begin: Tick, end: Tick, len: u64) -> u64 {
    end.0.saturating_sub(begin.0) * UNIT / len
}

/// A rate after one more copy. No copy is quick by chance, so what is quicker by far counts at
/// once.
fn learn(known: u32, each: u64) -> u32 {
    if each > ABSURD {
        return known;
    }
    let each = each as u32;
    if known == 0 || each < known / 2 {
        return each;
    }
    (known / 4) * 3 + each / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: u32 = 1_500;
    const SLOW: u32 = 15_000;

    /// A clock on which every fetch takes 5 us.
    fn clock() -> Tick {
        Tick(5_000)
    }

    /// Copies of pieces, all as slow as that on both sides, until the way has been judged or
    /// nothing is looked at any more.
    fn copy(copy_rate: &mut CopyRate, rate: u32) {
        for _ in 0..PROOF {
            copy_rate.looks += 1;
            copy_rate.judge(rate, rate);
        }
    }

    fn fetch(copy_rate: &mut CopyRate, times: u32) {
        for _ in 0..times {
            copy_rate.fetched(Tick(0), UNIT);
        }
    }

    #[test]
    fn payload_is_fetched_while_copies_are_slow() {
        let mut copy_rate = CopyRate::new(clock);
        copy(&mut copy_rate, QUICK);
        assert!(copy_rate.slow().is_none() && !copy_rate.take_changed());
        copy(&mut copy_rate, SLOW);
        assert!(copy_rate.take_changed() && !copy_rate.take_changed());
        let slow = copy_rate.slow().expect("copies are slow");
        assert!(slow > Calibration::START.fetch().unwrap().tb * 1.5);
        // Tried again, slow still: the next trial is later.
        fetch(&mut copy_rate, RETRY_AFTER.0);
        assert!(copy_rate.slow().is_none() && copy_rate.take_changed());
        copy(&mut copy_rate, SLOW);
        fetch(&mut copy_rate, RETRY_AFTER.0);
        assert!(copy_rate.slow().is_some());
        fetch(&mut copy_rate, RETRY_AFTER.0);
        assert!(copy_rate.slow().is_none());
        // Quick at last.
        copy(&mut copy_rate, QUICK);
        assert!(copy_rate.slow().is_none());
    }

    #[test]
    fn one_look_proves_nothing() {
        let mut copy_rate = CopyRate {
            looks: PROOF - 1,
            ..CopyRate::new(clock)
        };
        copy_rate.judge(SLOW, SLOW);
        assert!(copy_rate.slow().is_none());
    }

    #[test]
    fn slow_copies_with_interruptions_between_them_prove_nothing() {
        let mut copy_rate = CopyRate::new(clock);
        assert!(copy_rate.is_slow(u64::from(SLOW)) && !copy_rate.is_slow(u64::from(QUICK)));
        assert!(
            copy_rate.was_interrupted(100),
            "nobody knows what was before"
        );
        assert!(copy_rate.was_interrupted(108));
        assert!(
            !copy_rate.was_interrupted(108),
            "all that was copied was touched before"
        );
        assert!(copy_rate.was_interrupted(109));
    }

    #[test]
    fn what_is_quicker_by_far_counts_at_once() {
        let copy = |known, ns| learn(known, rate(Tick(1000), Tick(1000 + ns), UNIT));
        assert_eq!(copy(0, 9000), 9000);
        assert_eq!(copy(9000, 1000), 1000);
        assert!((1000..4000).contains(&copy(1000, 9000)));
        assert_eq!(copy(1000, 10 * ABSURD), 1000);
    }
}
