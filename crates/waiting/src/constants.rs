//! Constants of waiting, with the reason for each and where it was measured.
//!
//! Times of the machine are not among them: they come from its calibration (the time to wake a
//! thread), and most constants multiply one of those. "Scheduler" marks constants that follow from
//! how Linux divides the time of *one* CPU among the threads on it; "built-in" marks those that
//! were chosen by their order of magnitude and not measured one by one. No constant is a number of
//! CPUs; the tests of this crate run 1 to 64. Measurements are in `docs/decisions.md`.

use std::time::Duration;

/// Blocking calls.
pub mod wait {
    use super::Duration;

    /// A wait that ends within this many wake-up times polls without yielding: its answer is likely
    /// to arrive at once. Built-in.
    pub const WAKES_ALONE: u32 = 4;
    /// A wait that has lasted for this many wake-up times sleeps: being woken prolongs it by less
    /// than 2 %. Follows from that bound.
    pub const WAKES: u32 = 64;
    /// No wait polls longer unless `KW_SPIN` says so. Limits the effect of a wrong calibration.
    pub const LONGEST_POLLING: Duration = Duration::from_millis(2);
    /// Polls between two readings of the clock, which costs as much as some polls. Built-in.
    pub const LOOKS_PER_CLOCK: u32 = 64;
    /// Rounds of polling one peer before every path is polled. Built-in.
    pub const ROUNDS_OF_ONE: u32 = 32;
    /// Rounds of polling before the threads that wait for shared memory are served. Built-in.
    pub const ROUNDS_FOR_OTHERS: u32 = 8;
    /// Rounds of polling after something has come before others may run, for a rank with a CPU of
    /// its own: a rank that adds to this one's memory in a loop comes back within some, and a yield
    /// takes longer than the round trip of its message. Built-in.
    pub const ROUNDS_AFTER_DATA: u32 = 64;
    /// Rounds of polling before the CPU is told that this is a spin loop, so that an immediate
    /// answer is seen immediately. Built-in.
    pub const ROUNDS_AT_FULL_SPEED: u32 = 64;
    /// A wait that has slept and is not over polls for this part of the time before it sleeps again.
    /// Built-in.
    pub const AFTER_SLEEP: u32 = 4;
    /// After this time a wait is checked: the ranks it depends on are asked whether they have left,
    /// at the cost of one short message for each pair of ranks. Bounds that cost, not a speed.
    pub const CHECKED_AFTER: Duration = Duration::from_millis(100);
    /// Longest sleep without polling: a lost wake-up would cost this much, and is counted.
    pub const LONGEST_SLEEP: Duration = Duration::from_secs(1);
    /// A sleep that ends this much later than its limit was not ended by the clock alone.
    pub const LATE: Duration = Duration::from_millis(50);
    /// Sleep while a path still has something to send and may not be able to wake the rank. Built-in.
    pub const SHORT_SLEEP: Duration = Duration::from_millis(1);
    /// A thread that waits for a message to be read by its receiver polls at most this long; a
    /// longer wait is worth a wake-up. Built-in.
    pub const LONGEST_FETCH: Duration = Duration::from_millis(1);
    /// A blocking receive polls for its message, before it becomes a request, for the time of this
    /// many frames through memory, if each rank has a CPU, but no longer than a thread takes to
    /// wake up: if the answer of a ping-pong arrives just too late, the request costs as much as
    /// the message again (`docs/decisions.md`).
    pub const FRAMES_AT_ONCE: f64 = 28.0;
    /// Rounds in which the thread that polls leaves the lock to the threads that want it. Built-in.
    pub const ROUNDS_TO_LET_IN: u32 = if cfg!(loom) { 1 } else { 10_000 };
    /// One in this many of [`ROUNDS_TO_LET_IN`] yields. Built-in.
    pub const ROUNDS_PER_YIELD: u32 = 64;
}

/// Other processes on the CPU of a rank that has one of its own.
pub mod co_scheduled {
    use super::Duration;

    /// Others that had the CPU for this long, while a wait let them run, have computed and not
    /// waited. Scheduler: it gives a thread that computes at least 700 us (its base slice on 1 CPU,
    /// more on 2 and up to 2.8 ms from 8 CPUs on).
    pub const COMPUTED: Duration = Duration::from_micros(500);
    /// A CPU-bound process is recognised after this much computation. Scheduler: one or two slices.
    pub const LEARNT: Duration = Duration::from_millis(2);
    /// Others only compute if their time in shorter stretches is less than this part. Built-in.
    pub const PART_SHORT: u32 = 16;
    /// Older observations do not count. Built-in: some thirty slices.
    pub const REMEMBERED: Duration = Duration::from_millis(100);
    /// This many waits after a computation yield from the first poll on. Built-in.
    pub const WAITS_SHARED: u32 = 256;
    /// This many waits sleep at once next to a CPU-bound process. If all did, a rank would be woken for
    /// every message of a stream. Built-in.
    pub const WAITS_ASLEEP: u32 = 32;
}

/// Other programs next to ranks that share CPUs.
pub mod other_programs {
    use super::Duration;
    pub use super::co_scheduled::{COMPUTED, LEARNT};

    /// This many waits after this rank has sent something count as waits after a send: a root
    /// receives from many ranks, then sends to them. Built-in: while a root receives from more ranks
    /// one by one, the rest of its waits only yield.
    pub const WAITS_AFTER_SEND: u32 = 64;
    /// How long waits sleep at once, at first and at most; then one polls again. Scheduler: that costs
    /// two slices, so 2 % of the time in the long run.
    pub const ASLEEP: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(320)];
    /// With more ranks on the host than this their CPU times are not read. Reading one takes 0.4 us, and
    /// all are read in each stretch of [`COMPUTED`]: bounds the cost to 1 %.
    pub const MOST_RANKS: usize = 16;
}

/// Test calls without success.
pub mod test_calls {
    use super::Duration;

    /// On shared CPUs, one in this many unsuccessful polls reads the clock. Built-in.
    pub const ROW_SHARED: u32 = 4;
    /// The number if each rank has a CPU. Built-in.
    pub const ROW_ALONE: u32 = 1024;
    /// A program that is away for longer between two polls, on average, computes meanwhile. (A loop
    /// of C around `MPI_Test` takes 0.1 us, one of Python 1 us.)
    pub const AWAY: Duration = Duration::from_micros(1);
    /// A row yields after the time for which a wait polls alone, which is some wake-ups, divided by
    /// this. A process switch costs a tenth of the result. Built-in.
    pub const YIELDS_OF_ALONE: u32 = 6;
    /// Shortest and longest sleep: the system's timers are not more precise, and the program may
    /// poll for something other than messages. Scheduler: its timer slack is 50 us.
    pub const NAPS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
    /// How often the system is asked about other programs. Built-in.
    pub const ASK_EVERY: Duration = Duration::from_millis(10);
    /// Another program runs on this CPU when this thread waited for it for more than this part of
    /// the time. Built-in.
    pub const PART_TAKEN: u32 = 10;
    /// How often long rows are checked like a wait that lasts. Bounds the cost of asking.
    pub const CHECKED_EVERY: Duration = Duration::from_millis(10);
}

/// The progress thread.
pub mod progress_thread {
    use super::Duration;

    /// The shortest interval of its checks, whatever `KW_WATCH` says: below it checks would cost more
    /// than the thread's budget at any time. Built-in.
    pub const LEAST_WATCH: Duration = Duration::from_micros(10);
    /// The part of a CPU's time that may be spent on its checks, as a divisor: 0.25 %. A bound that is
    /// promised, not a speed.
    pub const SHARE: u32 = 400;
    /// The divisor for a rank that shares its CPU with others that spend as much: NPB's SP and BT and
    /// LULESH lost 2 to 3 % when each of them spent 0.5 %.
    pub const SHARE_OVERSUBSCRIBED: u32 = 1600;
    /// No check is further away than this, however much was spent: others may wait for what it would
    /// move. At the most that a check may cost (30 us with a wake-up of 15 us) this is 0.03 % of a
    /// CPU's time.
    pub const LONGEST_PAUSE: Duration = Duration::from_millis(100);
    /// Wake-ups that may be spent in advance: some ten checks, so that a rank that was quiet for
    /// long is served at once. Built-in.
    pub const ADVANCE: u32 = 13;
    /// How often a program may come back at once, when the budget is spent, before it is taken for
    /// one that calls MPI all the time. `docs/decisions.md`, "Overlap in every run".
    pub const TRUST: u8 = 2;
    /// A phase outside MPI counts only if it lasted at least this many times the cost of the
    /// hand-over, which bounds the overhead to 1 %. The same fraction of the time for which a program
    /// sleeps in MPI is available for unsuccessful hand-overs.
    pub const STAY: u32 = 100;
    /// A transfer that occupies the network for at least this many wake-ups is worth the wake-ups
    /// that it needs. `docs/decisions.md`, "Overlap in every run".
    pub const WORTH: u32 = 32;
    /// A check costs at most this many wake-ups: a longer measurement includes time of other
    /// processes or of the kernel's network code.
    pub const LOOK: u32 = 2;
    /// Cost of a hand-over and its return, in hand-overs.
    pub const BOTH_WAYS: u32 = 2;
    /// The largest part of a wake-up that both may cost.
    pub const PART_OF_WAKE: u32 = 2;
    /// Quiet checks with nothing pending before the thread sleeps for good. Built-in.
    pub const NOTHING_TICKS: u32 = if cfg!(loom) { 2 } else { 20 };
    /// The interval of checks grows to this many times `KW_WATCH` while they find no long stay
    /// outside MPI; the budget may have them further apart. Built-in.
    pub const LIVELY_FACTOR: u32 = 64;
    /// Cost of a wake-up for the computation beside it, relative to the CPU time that it was seen to
    /// use: caches and the switch itself come on top (13 to 27 us lost for 13 to 18 us used;
    /// `docs/decisions.md`, "What a wake-up costs").
    pub const LOST_FOR_USED: (u32, u32) = (3, 2);
    /// Number of times that a thread which leaves polls again, because something has come
    /// meanwhile, before it wakes the progress thread for that. Built-in.
    pub const HAND_OVER_TRIES: u32 = 2;
}

/// Collectives of ranks that share CPUs.
pub mod collectives {
    /// Number of times that others run before a rank returns from a long exchange, unless one of
    /// them is seen to compute: ranks that exchange data wait for each other now and then.
    /// Built-in.
    pub const TURNS: u32 = 2;
    /// Bytes of a call after which a rank compares the placement of ranks. Built-in.
    pub const LONG_CALL: u64 = 16 << 10;
    /// Number of shorter calls after which it does. Built-in.
    pub const SHORT_CALLS: u32 = 16;
}

/// Placement of ranks that share CPUs.
pub mod placement {
    use super::Duration;

    /// How often a rank compares the placement of the ranks. Built-in.
    pub const EVERY: Duration = Duration::from_millis(2);
    /// A note is valid for this long, in units of 2^20 ns: a rank that computes or sleeps for
    /// longer takes no part. Scheduler: some slices, so that a rank which waits its turn still
    /// does.
    pub const FRESH: u64 = 32;
}
