//! Windows of ranks of one process over the simulated network, from seeds: frames are late, wait in
//! queues and come in pieces. Whatever the order in which ranks go on, memory ends as the memory
//! model says (MPI 5.0, 12.7).

mod dice;
mod simulated;

use dice::Dice;
use kw_base::{ContextId, Peer};
use kw_engine::windows::{At, Extent, LockMode, Memory, NewWindow, WinId, WindowError};
use kw_engine::{Engine, Started};
use kw_path::sim::{SimNet, SimOptions};
use kw_sys::buf::Buf;
use kw_sys::reduce::Op;
use kw_types::comm::Group;
use kw_types::layout::{Basic, Layout, basic};
use simulated::ranks;
use std::sync::Arc;

const CONTEXT: ContextId = ContextId(4);

fn layout(handle: usize) -> Arc<Layout> {
    Arc::new(Layout::named(basic::by_handle(handle).expect("a datatype")))
}

fn int64() -> Arc<Layout> {
    layout(0x258)
}

fn byte() -> Arc<Layout> {
    layout(0x247)
}

/// Ranks with a window each.
struct Job {
    _net: SimNet,
    engines: Vec<Engine>,
    windows: Vec<WinId>,
    memory: Vec<Buf>,
    dice: Dice,
}

impl Job {
    fn new(n: u32, bytes: usize, seed: u64) -> Job {
        let mut dice = Dice(seed * 7919 + 1);
        let write = dice.below(2) == 0;
        let (net, mut engines) = ranks(n, seed, SimOptions::default(), write);
        let memory: Vec<Buf> = (0..n).map(|_| Buf::alloc(bytes)).collect();
        let extent = Extent {
            size: bytes as u64,
            unit: 8,
        };
        let group = Arc::new(Group::range(Peer(0), n));
        // Conflicts found are ignored: a check changes no effect of operations.
        let checks = seed % 3 == 0;
        let mut windows = Vec::new();
        for (me, engine) in engines.iter_mut().enumerate() {
            let new = NewWindow {
                context: CONTEXT,
                group: group.clone(),
                me: me as u32,
                memory: Memory::Own(memory[me].clone()),
                targets: vec![extent; n as usize],
                checks,
            };
            let Engine {
                parts, messages, ..
            } = engine;
            windows.push(parts.windows.create(messages, new));
        }
        Job {
            _net: net,
            engines,
            windows,
            memory,
            dice,
        }
    }

    fn size(&self) -> usize {
        self.engines.len()
    }

    fn progress(&mut self) {
        for engine in &mut self.engines {
            engine.progress();
        }
    }

    /// The result of `call` on a rank's window.
    fn on<T>(
        &mut self,
        rank: usize,
        call: impl FnOnce(
            &mut kw_engine::windows::Windows,
            &mut kw_engine::Messages,
            WinId,
        ) -> Result<T, WindowError>,
    ) -> T {
        let engine = &mut self.engines[rank];
        let result = call(
            &mut engine.parts.windows,
            &mut engine.messages,
            self.windows[rank],
        );
        engine.look_after_sending();
        result.expect("a call in its epoch")
    }

    fn has_ended(&mut self, rank: usize, started: &Started) -> bool {
        match started {
            Started::Done => true,
            Started::Request(req) => match self.engines[rank].messages.requests_mut().take(*req) {
                None => false,
                Some(outcome) => {
                    assert_eq!(outcome.failure, None);
                    true
                }
            },
        }
    }

    fn wait(&mut self, rank: usize, started: Started) {
        for _ in 0..100_000 {
            if self.has_ended(rank, &started) {
                return;
            }
            self.progress();
        }
        panic!("rank {rank} waits for ever");
    }

    /// All ranks in some order.
    fn shuffled(&mut self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.size()).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, self.dice.below(i + 1));
        }
        all
    }

    /// A fence of all ranks: the sums are what a reduction gives.
    fn fence(&mut self) {
        let n = self.size();
        let mut expected = vec![0; n];
        for rank in self.shuffled() {
            let counts = self.on(rank, |w, m, id| w.fence(m, id, true));
            (0..n).for_each(|to| expected[to] += counts[to]);
            (0..self.dice.below(3)).for_each(|_| self.progress());
        }
        let mut ends = Vec::new();
        for rank in self.shuffled() {
            let end = self.on(rank, |w, m, id| w.fence_end(m, id, expected[rank]));
            ends.push((rank, end));
        }
        for (rank, end) in ends {
            self.wait(rank, end);
        }
    }

    fn number(&self, rank: usize, at: u64) -> i64 {
        let mut word = [0; 8];
        self.memory[rank].read(8 * at, &mut word);
        i64::from_ne_bytes(word)
    }
}

fn of(number: i64) -> Buf {
    let buf = Buf::alloc(8);
    buf.write(0, &number.to_ne_bytes());
    buf
}

fn value(buf: &Buf) -> i64 {
    let mut word = [0; 8];
    buf.read(0, &mut word);
    i64::from_ne_bytes(word)
}

/// Every rank adds to numbers of every rank, under locks of both kinds; now and then it fetches the
/// old values, which no two ranks may see alike.
fn additions(seed: u64) {
    let mut job = Job::new(3, 64, seed);
    let (n, long) = (job.size(), int64());
    let mut sums = vec![[0i64; 8]; n];
    let mut seen: Vec<(usize, u64, Buf)> = Vec::new();
    let mut open: Vec<(usize, usize, Started)> = Vec::new();
    for _ in 0..120 {
        let me = job.dice.below(n);
        let waiting = open.iter().position(|o| o.0 == me);
        if let Some(i) = waiting {
            // The rank waits for its unlock.
            let (rank, _, started) = open.remove(i);
            match job.has_ended(rank, &started) {
                true => {}
                false => open.push((rank, 0, started)),
            }
            job.progress();
            continue;
        }
        let rank = job.dice.below(n);
        let mode = [LockMode::Shared, LockMode::Exclusive][job.dice.below(2)];
        let lock = job.on(me, |w, m, id| w.lock(m, id, rank as u32, mode, true));
        job.wait_unless_deadlock(me, lock, &mut open);
        for _ in 0..=job.dice.below(5) {
            let (at, more) = (job.dice.below(7) as u64, job.dice.below(100) as i64);
            sums[rank][at as usize] += more;
            let to = At {
                rank: rank as u32,
                disp: at as i64,
                count: 1,
                layout: &long,
            };
            let operand = of(more);
            match job.dice.below(3) {
                0 => {
                    let counter = At { disp: 7, ..to };
                    sums[rank][7] += 1;
                    let old = Buf::alloc(8);
                    job.on(me, |w, m, id| {
                        let data = (&of(1), &old);
                        w.get_accumulate(m, id, data, counter, Op::Sum, Basic::I64)
                    });
                    seen.push((rank, 7, old));
                }
                1 => job.on(me, |w, m, id| w.flush(m, id, None).map(|_| ())),
                _ => {}
            }
            job.on(me, |w, m, id| {
                w.accumulate(m, id, &operand, to, Op::Sum, Basic::I64)
            });
        }
        let unlock = job.on(me, |w, m, id| w.unlock(m, id, rank as u32));
        open.push((me, rank, unlock));
    }
    for (rank, _, started) in open {
        job.wait(rank, started);
    }
    for (rank, sums) in sums.iter().enumerate() {
        for (at, &sum) in sums.iter().enumerate() {
            assert_eq!(
                job.number(rank, at as u64),
                sum,
                "seed {seed}: {at} of {rank}"
            );
        }
        let of_rank = seen.iter().filter(|s| s.0 == rank);
        let mut tickets: Vec<i64> = of_rank.map(|s| value(&s.2)).collect();
        tickets.sort();
        let all: Vec<i64> = (0..tickets.len() as i64).collect();
        assert_eq!(tickets, all, "seed {seed}: tickets of rank {rank}");
    }
}

impl Job {
    /// Waits for a lock while others, which may hold it, end what they wait for.
    fn wait_unless_deadlock(
        &mut self,
        me: usize,
        lock: Started,
        open: &mut Vec<(usize, usize, Started)>,
    ) {
        for _ in 0..100_000 {
            if self.has_ended(me, &lock) {
                return;
            }
            self.progress();
            for (rank, to, started) in std::mem::take(open) {
                if !self.has_ended(rank, &started) {
                    open.push((rank, to, started));
                }
            }
        }
        panic!("rank {me} waits for a lock for ever");
    }
}

#[test]
fn sums_under_locks_are_whole_and_tickets_differ() {
    for seed in 1..60 {
        additions(seed);
    }
}

/// Read, add one, write, under exclusive locks: no addition is lost.
#[test]
fn an_exclusive_lock_is_held_by_one_rank() {
    #[derive(Clone, Copy)]
    enum At2 {
        Outside,
        Reading,
        Unlocking,
    }
    for seed in 1..40 {
        let mut job = Job::new(4, 8, seed);
        let (n, long) = (job.size(), int64());
        let place = At {
            rank: 0,
            disp: 0,
            count: 1,
            layout: &long,
        };
        let rooms: Vec<Buf> = (0..n).map(|_| Buf::alloc(8)).collect();
        let mut states = vec![(At2::Outside, Started::Done); n];
        let (mut left, mut steps) = (vec![10; n], 0);
        while left.iter().any(|&l| l != 0) {
            steps += 1;
            assert!(steps < 1_000_000, "seed {seed}: locks are never granted");
            let me = job.dice.below(n);
            let (at, started) = states[me];
            if !job.has_ended(me, &started) {
                job.engines[me].progress();
                continue;
            }
            states[me] = match at {
                At2::Outside if left[me] == 0 => {
                    job.engines[me].progress();
                    (At2::Outside, Started::Done)
                }
                At2::Outside => {
                    let mode = LockMode::Exclusive;
                    let lock = job.on(me, |w, m, id| w.lock(m, id, 0, mode, true));
                    if let Started::Request(_) = lock {
                        // The rank's own lock: it is waited for before anything else.
                        while !job.has_ended(me, &lock) {
                            for other in 0..n {
                                job.engines[other].progress();
                                let (at, started) = states[other];
                                if other != me && job.has_ended(other, &started) {
                                    states[other] = step_on(&mut job, other, at, place, &rooms);
                                    left[other] -= matches!(at, At2::Unlocking) as i32;
                                }
                            }
                        }
                    }
                    job.on(me, |w, m, id| w.get(m, id, &rooms[me], place));
                    let flush = job.on(me, |w, m, id| w.flush(m, id, Some(0)));
                    (At2::Reading, flush)
                }
                _ => {
                    left[me] -= matches!(at, At2::Unlocking) as i32;
                    step_on(&mut job, me, at, place, &rooms)
                }
            };
        }
        assert_eq!(job.number(0, 0), 10 * n as i64, "seed {seed}");

        fn step_on(
            job: &mut Job,
            me: usize,
            at: At2,
            place: At<'_>,
            rooms: &[Buf],
        ) -> (At2, Started) {
            match at {
                At2::Reading => {
                    let next = of(value(&rooms[me]) + 1);
                    job.on(me, |w, m, id| w.put(m, id, &next, place));
                    let unlock = job.on(me, |w, m, id| w.unlock(m, id, 0));
                    (At2::Unlocking, unlock)
                }
                At2::Unlocking | At2::Outside => (At2::Outside, Started::Done),
            }
        }
    }
}

/// Between fences each rank writes, short or long, to places of its own in the memory of all, in
/// pieces or in a row, and reads what others wrote in the epoch before.
#[test]
fn what_a_fence_has_ended_is_there() {
    for seed in 1..40 {
        let most = 20_000;
        let mut job = Job::new(3, 3 * most, seed);
        let (n, bytes) = (job.size(), byte());
        job.fence();
        let mut written = vec![vec![0u8; 3 * most]; n];
        for round in 1..5u8 {
            let before = written.clone();
            let mut reads = Vec::new();
            for me in job.shuffled() {
                for to in 0..n {
                    let from = me * most;
                    let len = [1, 800, 9_000, most][job.dice.below(4)];
                    let reads_back = job.dice.below(3) == 0;
                    if reads_back {
                        let into = Buf::alloc(len);
                        let at = At {
                            rank: to as u32,
                            disp: (from / 8) as i64,
                            count: len as u64,
                            layout: &bytes,
                        };
                        job.on(me, |w, m, id| w.get(m, id, &into, at));
                        reads.push((to, from / 8 * 8, into));
                        continue;
                    }
                    let data = vec![round * 16 + me as u8; len];
                    let buf = Buf::alloc(len);
                    buf.write(0, &data);
                    let gaps = job.dice.below(2) == 0 && 2 * len <= most;
                    let spread = match gaps {
                        true => Arc::new(bytes.resized(0, 2).expect("a layout")),
                        false => bytes.clone(),
                    };
                    let at = At {
                        rank: to as u32,
                        disp: (from / 8) as i64,
                        count: len as u64,
                        layout: &spread,
                    };
                    job.on(me, |w, m, id| w.put(m, id, &buf, at));
                    let step = 1 + gaps as usize;
                    for i in 0..len {
                        written[to][from / 8 * 8 + i * step] = data[i];
                    }
                    // The buffer may not change before the fence, and outlives it by itself.
                    (0..job.dice.below(3)).for_each(|_| job.progress());
                }
            }
            job.fence();
            for (rank, all) in written.iter().enumerate() {
                let mut now = vec![0; all.len()];
                job.memory[rank].read(0, &mut now);
                assert!(
                    now == *all,
                    "seed {seed}, round {round}: memory of rank {rank}"
                );
            }
            for (rank, from, into) in reads {
                let mut got = vec![0; into.len() as usize];
                into.read(0, &mut got);
                assert!(
                    got == before[rank][from..from + got.len()],
                    "seed {seed}, round {round}: read of rank {rank}"
                );
            }
        }
    }
}

/// Each rank writes to the next one, which posts late or early.
#[test]
fn what_is_completed_is_there_after_the_wait() {
    for seed in 1..40 {
        let mut job = Job::new(4, 16_000, seed);
        let (n, bytes) = (job.size(), byte());
        for round in 1..5u8 {
            let mut ends = Vec::new();
            let len = [3, 5000, 16_000][job.dice.below(3)];
            for me in job.shuffled() {
                let (next, last) = ((me + 1) % n, (me + n - 1) % n);
                job.on(me, |w, m, id| w.post(m, id, &[last as u32]));
                let start = job.on(me, |w, m, id| w.start(m, id, &[next as u32]));
                assert_eq!(start, Started::Done);
                let buf = Buf::alloc(len);
                buf.write(0, &vec![round * 16 + me as u8; len]);
                let to = At {
                    rank: next as u32,
                    disp: 0,
                    count: len as u64,
                    layout: &bytes,
                };
                job.on(me, |w, m, id| w.put(m, id, &buf, to));
                let complete = job.on(me, |w, m, id| w.complete(m, id));
                ends.push((me, complete, buf));
            }
            for me in job.shuffled() {
                let wait = job.on(me, |w, m, id| w.wait(m, id));
                job.wait(me, wait);
                let mut now = vec![0; len];
                job.memory[me].read(0, &mut now);
                let by = round * 16 + ((me + n - 1) % n) as u8;
                assert!(now.iter().all(|&b| b == by), "seed {seed}: rank {me}");
            }
            for (me, complete, _) in ends {
                job.wait(me, complete);
            }
        }
    }
}

/// An origin that puts without a flush keeps going: it is not held up forever by answers that it
/// has not received.
#[test]
fn requests_end_however_much_went_before_without_an_answer() {
    let mut job = Job::new(2, 64, 3);
    let long = int64();
    job.on(0, |w, m, id| w.lock_all(m, id, true));
    let to = At {
        rank: 1,
        disp: 0,
        count: 1,
        layout: &long,
    };
    for i in 0..20_000 {
        let span = job.on(0, |w, m, id| w.put(m, id, &of(i), to));
        let Job {
            engines, windows, ..
        } = &mut job;
        let Engine {
            parts, messages, ..
        } = &mut engines[0];
        let done = parts.windows.request(messages, windows[0], span);
        assert_eq!(done, Started::Done);
    }
    let into = Buf::alloc(8);
    let span = job.on(0, |w, m, id| w.get(m, id, &into, to));
    let Engine {
        parts, messages, ..
    } = &mut job.engines[0];
    let request = parts.windows.request(messages, job.windows[0], span);
    job.wait(0, request);
    assert_eq!(value(&into), 19_999);
    let unlock = job.on(0, |w, m, id| w.unlock_all(m, id));
    job.wait(0, unlock);
}

/// The data may be shorter than its place.
#[test]
fn a_put_writes_as_much_as_there_is() {
    for (len, seed) in [(12, 1), (12_000, 2)] {
        let mut job = Job::new(2, 48_000, seed);
        let long = int64();
        let spread = Arc::new(long.resized(0, 16).expect("a layout"));
        let bytes = Buf::alloc(len);
        bytes.write(0, &vec![7; len]);
        for (layout, far) in [(&long, 1), (&spread, 2)] {
            job.memory[1].write(0, &vec![0; 48_000]);
            job.on(0, |w, m, id| w.lock_all(m, id, true));
            let to = At {
                rank: 1,
                disp: 0,
                count: 2_000,
                layout,
            };
            job.on(0, |w, m, id| w.put(m, id, &bytes, to));
            let unlock = job.on(0, |w, m, id| w.unlock_all(m, id));
            job.wait(0, unlock);
            let mut now = vec![0; 48_000];
            job.memory[1].read(0, &mut now);
            let written = now.iter().filter(|&&b| b == 7).count();
            let last = now.iter().rposition(|&b| b == 7).expect("some");
            let before = (len - 1) / 8 * 8 * far + (len - 1) % 8;
            assert_eq!((written, last), (len, before));
        }
    }
}
