//! Counts of operations and epochs, for counters ([`kw_base::counters`]).

use super::{Window, Windows};
use kw_base::counters::Counter;

/// Counts of a window, or of all of them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tally {
    /// Operations of this rank in reach, and their bytes.
    pub direct: (u64, u64),
    /// Operations of this rank by messages, and their bytes.
    pub sent: (u64, u64),
    /// Operations of others that came as messages.
    pub served: u64,
    /// Epochs in which this rank accesses others.
    pub epochs: u64,
    /// Locks of this rank's memory that were not granted at once.
    pub lock_waits: u64,
}

impl Tally {
    /// An operation of this rank.
    #[inline]
    pub fn operation(&mut self, is_direct: bool, bytes: u64) {
        let of = match is_direct {
            true => &mut self.direct,
            false => &mut self.sent,
        };
        (of.0, of.1) = (of.0 + 1, of.1 + bytes);
    }

    pub fn add(&mut self, other: &Tally) {
        let both = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        self.direct = both(self.direct, other.direct);
        self.sent = both(self.sent, other.sent);
        self.served += other.served;
        self.epochs += other.epochs;
        self.lock_waits += other.lock_waits;
    }
}

impl Window {
    /// The counts of the window, including those of calls without the lock.
    pub(super) fn counted(&self) -> Tally {
        let mut tally = self.tally;
        tally.add(&self.exposure.memory.tally);
        if let Some(reachable) = &self.published.reachable {
            let ((operations, bytes), epochs) = reachable.counted();
            tally.direct = (tally.direct.0 + operations, tally.direct.1 + bytes);
            tally.epochs += epochs;
        }
        tally
    }
}

impl Windows {
    /// The value of a counter of windows; `None`: it is another's.
    pub(crate) fn counter(&self, c: Counter) -> Option<u64> {
        let value: fn(&Tally) -> u64 = match c {
            Counter::WindowDirect => |t| t.direct.0,
            Counter::WindowDirectBytes => |t| t.direct.1,
            Counter::WindowSent => |t| t.sent.0,
            Counter::WindowSentBytes => |t| t.sent.1,
            Counter::WindowServed => |t| t.served,
            Counter::WindowEpochs => |t| t.epochs,
            Counter::WindowLockWaits => |t| t.lock_waits,
            _ => return None,
        };
        let mut all = self.freed;
        let windows = self.all.iter();
        windows.for_each(|(_, window)| all.add(&window.counted()));
        Some(value(&all))
    }
}
