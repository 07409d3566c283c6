//! Ranks that wait on 1 to 64 CPUs, in virtual time: alone, with more ranks than CPUs, with idle ranks,
//! with programs that test, with progress threads, next to processes that compute.

mod machine;
mod progress_thread;
mod rank;

use Step::{Call, Compute, Finish, Receive, Send, Start, TestFor};
use kw_waiting::constants::progress_thread::{ADVANCE, SHARE};
use machine::{Id, Machine, SLICE, WAKE};
use progress_thread::ProgressThread;
use rank::{Hog, Rank, Shared, Step, WINDOW};
use std::time::Duration;

const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

const CPUS: [usize; 5] = [1, 2, 4, 16, 64];
/// Longer than any of these programs takes, unless it makes no progress.
const MOST: Duration = Duration::from_secs(60);

/// A host on which these programs run, a rank each, next to `hogs` computing processes.
fn host(cpus: usize, programs: Vec<Vec<Step>>, hogs: usize) -> (Machine<Shared>, Vec<Id>) {
    let ranks = programs.len();
    let mut machine = Machine::new(cpus, Shared::new(ranks, ranks > cpus));
    let threads: Vec<Id> = (programs.into_iter().enumerate())
        .map(|(me, program)| machine.start(me % cpus, Rank::new(me, program)))
        .collect();
    let helpers = (0..ranks).map(|me| machine.start(me % cpus, ProgressThread::new(me)));
    machine.shared.progress_threads = helpers.collect();
    machine.shared.threads = threads.clone();
    for hog in 0..hogs {
        // Slices of different CPUs begin at different times.
        let from = Some(us(7919 * hog as u64 % 3000));
        machine.start(hog % cpus, Hog { from });
    }
    (machine, threads)
}

/// Every rank sends to the next one and receives from the one before, after this computation, in each
/// of these rounds.
fn circle(ranks: usize, rounds: usize, compute: Duration) -> Vec<Vec<Step>> {
    let one = |me: usize| {
        let (next, before) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
        let round = [Compute(compute), Send(next), Receive(before)];
        round.into_iter().cycle().take(3 * rounds).collect()
    };
    (0..ranks).map(one).collect()
}

/// Time of each round.
fn time(cpus: usize, ranks: usize, rounds: usize, compute: Duration, hogs: usize) -> Duration {
    let (mut machine, threads) = host(cpus, circle(ranks, rounds, compute), hogs);
    let total = machine.run(&threads, MOST).expect("the ranks end");
    total / rounds as u32
}

#[test]
fn ranks_with_a_cpu_each_never_sleep_while_answers_come_soon() {
    for cpus in CPUS {
        let (mut machine, threads) = host(cpus, circle(cpus, 100, us(5)), 0);
        machine.run(&threads, MOST).expect("the ranks end");
        assert!(machine.shared.sleeps.iter().all(|n| *n == 0), "{cpus}");
    }
}

#[test]
fn more_ranks_than_cpus_cost_their_share_and_a_change_of_threads() {
    for cpus in CPUS {
        for times in [2, 4] {
            let alone = time(cpus, cpus, 100, us(20), 0);
            let shared = time(cpus, times * cpus, 100, us(20), 0);
            // A poll, a yield and a change for each rank of the CPU.
            let most = (alone + us(10)) * times as u32;
            assert!(
                shared <= most,
                "{cpus} x{times}: {shared:?}, {alone:?} alone"
            );
        }
    }
}

#[test]
fn idle_ranks_use_no_cpu() {
    for cpus in CPUS {
        for ranks in [cpus.max(2), 2 * cpus] {
            // Rank 0 computes; all others wait for it.
            let seconds = Duration::from_secs(1);
            let mut programs = vec![vec![Receive(0)]; ranks];
            programs[0] = vec![Compute(seconds)];
            programs[0].extend((1..ranks).map(Send));
            let (mut machine, threads) = host(cpus, programs, 0);
            machine.run(&threads, MOST).expect("the ranks end");
            let idle: Duration = threads[1..].iter().map(|&id| machine.used(id)).sum();
            let each = idle / (ranks as u32 - 1);
            assert!(each < seconds / 100, "{cpus}, {ranks} ranks: {each:?}");
        }
    }
}

#[test]
fn a_program_that_tests_leaves_its_cpu_to_the_rank_that_it_waits_for() {
    for cpus in CPUS {
        let work = Duration::from_millis(50);
        let ranks = 2 * cpus;
        // Every rank of the second half tests for the message of one that computes on its CPU.
        let one = |me: usize| match me < cpus {
            true => vec![Compute(work), Send(me + cpus)],
            false => vec![TestFor(me - cpus)],
        };
        let (mut machine, threads) = host(cpus, (0..ranks).map(one).collect(), 0);
        let took = machine.run(&threads, MOST).expect("the ranks end");
        assert!(took < work * 7 / 4, "{cpus}: {took:?}");
    }
}

#[test]
fn ranks_with_a_cpu_each_wait_for_computing_processes_for_less_than_a_slice() {
    for cpus in [2, 4, 16] {
        for hogs in [cpus, 4 * cpus] {
            let took = time(cpus, cpus, 1000, us(5), hogs);
            assert!(took < SLICE / 4, "{cpus}, {hogs} processes: {took:?}");
            assert!(took > us(10), "they share their CPUs");
        }
    }
}

#[test]
fn a_flood_next_to_computing_processes_moves_half_a_window_in_each_slice() {
    for cpus in [1, 2, 4] {
        for each in [0, 1, 4] {
            let n = 20_000;
            let programs = vec![vec![Send(1); n], vec![Receive(0); n]];
            let (mut machine, threads) = host(cpus, programs, each * cpus);
            let total = machine.run(&threads, MOST).expect("the ranks end");
            let slices = (n as u32).div_ceil(WINDOW / 2) * (each as u32 + 1);
            assert!(total < SLICE * slices, "{cpus}, {each}: {total:?}");
        }
    }
}

#[test]
fn transfers_go_on_while_the_program_computes() {
    let (pieces, each, compute) = (64, us(60), Duration::from_millis(5));
    for cpus in CPUS {
        for hogs in [0, cpus] {
            let one = [Start(pieces, each), Compute(compute), Finish];
            let program: Vec<Step> = one.into_iter().cycle().take(3 * 40).collect();
            let (mut machine, threads) = host(cpus, vec![program; cpus], hogs);
            let total = machine.run(&threads, MOST).expect("the ranks end");
            let most = compute + pieces * (WAKE + us(5));
            assert!(total / 40 < most, "{cpus}, {hogs}: {:?}", total / 40);
        }
    }
}

#[test]
fn a_progress_thread_that_gains_nothing_costs_no_more_than_its_budget() {
    for cpus in CPUS {
        for ranks in [cpus, 2 * cpus] {
            // One call after the other, while a message is awaited that arrives late.
            let calls = 20_000;
            let mut program = vec![Start(1, Duration::from_secs(1))];
            program.extend((0..calls).flat_map(|_| [Compute(us(10)), Call]));
            let (mut machine, threads) = host(cpus, vec![program; ranks], 0);
            let total = machine.run(&threads, MOST).expect("the ranks end");
            let helpers = machine.shared.progress_threads.clone();
            for helper in helpers {
                let used = machine.used(helper);
                let most = total / SHARE + WAKE * (2 * ADVANCE);
                assert!(used < most, "{cpus}, {ranks} ranks: {used:?} of {total:?}");
                assert!(!used.is_zero(), "it checks");
            }
        }
    }
}

#[test]
fn more_ranks_than_cpus_wait_for_computing_processes_for_less_than_a_slice() {
    for cpus in [1, 2, 4, 16] {
        let took = time(cpus, 2 * cpus, 1000, us(5), cpus);
        assert!(took < SLICE / 4, "{cpus}: {took:?}");
    }
}

/// The sender computes before every message, so for the receiver on its CPU it looks like a process
/// that only computes.
#[test]
fn the_receiver_of_a_stream_is_not_woken_for_every_message() {
    let n = 20_000;
    let send = [Compute(us(7)), Send(1)];
    let send: Vec<Step> = send.into_iter().cycle().take(2 * n).collect();
    let (mut machine, threads) = host(1, vec![send, vec![Receive(0); n]], 0);
    let total = machine.run(&threads, MOST).expect("the ranks end");
    let slept = machine.shared.sleeps[1];
    assert!(slept < n as u32 / 10, "it slept {slept} times");
    assert!(total < us(10) * n as u32, "{total:?}");
}
