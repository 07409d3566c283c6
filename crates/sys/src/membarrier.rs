//! A full fence between processes whose price the infrequent side pays (membarrier(2)).
//!
//! If one side stores A and then reads B, and the other stores B and then reads A, one of them must
//! see the other's store: both need a full fence in between. A rank that sends does its half with
//! every message; a rank that falls asleep does its half seldom. So the sleeper makes the kernel
//! execute a fence on all CPUs of the others ([`fence_all`]), and they need no instruction for it
//! if they have registered ([`register`]).
//!
//! The kernel interrupts all CPUs on which such processes run and serves one call at a time: that is
//! for ranks that seldom sleep, and not for those that share CPUs.

use kw_base::sync::atomic::{Ordering, fence};

/// Lets [`fence_all`] of any process reach this one; `false`: the kernel cannot do that. May be
/// called again.
#[cfg(not(loom))]
pub fn register() -> bool {
    use rustix::thread::{MembarrierCommand, membarrier};
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// A full fence here and, as if they all made one at some moment during this call, in every
/// registered process.
#[cfg(not(loom))]
pub fn fence_all() {
    use rustix::thread::{MembarrierCommand, membarrier};
    // Without that system call no process is registered, and all execute fences themselves.
    let _ = membarrier(MembarrierCommand::GlobalExpedited);
    fence(Ordering::SeqCst);
}

/// Models have no kernel: every thread executes fences.
#[cfg(loom)]
pub fn register() -> bool {
    false
}

/// Models have no kernel: an ordinary fence.
#[cfg(loom)]
pub fn fence_all() {
    fence(Ordering::SeqCst);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use kw_base::sync::atomic::{AtomicBool, AtomicU64};
    use kw_base::sync::compiler_fence;

    /// The pattern that the doorbell rests on, as often as the time allows: never do both miss the
    /// other's store.
    #[test]
    fn one_of_two_sides_sees_the_other() {
        if !register() {
            return;
        }
        const ROUNDS: u64 = 20_000;
        let (news, asleep) = (AtomicU64::new(0), AtomicU64::new(0));
        let (seen, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|s| {
            s.spawn(|| {
                for round in 1..=ROUNDS {
                    news.store(round, Ordering::Release);
                    compiler_fence();
                    if asleep.load(Ordering::Relaxed) == round {
                        seen.store(round, Ordering::Relaxed);
                    }
                }
                stop.store(true, Ordering::Release);
            });
            while !stop.load(Ordering::Acquire) {
                let round = news.load(Ordering::Relaxed) + 1;
                asleep.store(round, Ordering::Relaxed);
                fence_all();
                if news.load(Ordering::Relaxed) < round {
                    // Missed: so the other side, when it comes to this round, sees that this side
                    // sleeps.
                    while news.load(Ordering::Acquire) <= round && !stop.load(Ordering::Acquire) {
                        std::hint::spin_loop();
                    }
                    assert!(seen.load(Ordering::Relaxed) >= round || round > ROUNDS);
                }
            }
        });
    }
}
