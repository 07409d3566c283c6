//! Results of the simulator for schedules small enough to compute by hand.

mod choices;

use super::run::{Call, run};
use super::{Machine, Unreadable};
use kw_coll::cost::{Prices, first_piece};
use kw_coll::{RECV, SEND, SHM_BUFFERS, Schedule, ShmBuffer, Slice};

/// A machine on which nothing costs anything: `hosts` hosts of two cores.
fn free(hosts: u32) -> Machine {
    Machine {
        name: "free".into(),
        hosts,
        sockets: 1,
        caches: 1,
        cores: 2,
        network: false,
        prices: Prices {
            eager: 1000.0,
            net_eager: 1000.0,
            sockets: 1.0,
            cache: 1e18,
            ..Prices::default()
        },
        ranks: Vec::new(),
    }
}

fn time(machine: &Machine, per_host: u32, schedules: Vec<Schedule>) -> f64 {
    let call = Call {
        schedules,
        unit: 1,
        footprint: 0,
        per_host,
    };
    run(machine, &call, 1).unwrap().time
}

fn schedule(emit: impl FnOnce(&mut Schedule)) -> Schedule {
    let mut s = Schedule::default();
    emit(&mut s);
    s
}

fn sends(to: u32, bytes: u64) -> Schedule {
    schedule(|s| {
        s.send(to, Slice::whole(SEND, bytes));
    })
}

fn receives(from: &[u32], bytes: u64) -> Schedule {
    schedule(|s| {
        for &from in from {
            s.recv(from, Slice::whole(RECV, bytes));
        }
        s.fence();
    })
}

#[test]
fn a_short_message_costs_its_parts() {
    let mut m = free(1);
    let p = &mut m.prices;
    (p.send, p.send_byte, p.cache_line, p.way) = (100.0, 1.0, 40.0, 5.0);
    (p.recv, p.recv_byte) = (200.0, 2.0);
    let both = vec![sends(1, 10), receives(&[0], 10)];
    assert_eq!(time(&m, 2, both), 110.0 + 45.0 + (40.0 + 220.0));
}

#[test]
fn a_long_message_is_copied_by_both_at_once() {
    let mut m = free(1);
    (m.prices.cache_line, m.prices.long_byte) = (10.0, 0.5);
    // Announced and read, answered, the first piece, the line that it comes with and its reader
    // waits for, and all of it.
    let expected = 20.0 + 10.0 + first_piece(100_000.0) * 0.5 + 20.0 + 50_000.0;
    let both = vec![sends(1, 100_000), receives(&[0], 100_000)];
    assert_eq!(time(&m, 2, both), expected);
}

#[test]
fn messages_into_one_host_take_turns_on_its_link() {
    let mut m = free(3);
    (m.prices.link, m.prices.latency) = (2.0, 1000.0);
    let all = vec![receives(&[1, 2], 500), sends(0, 500), sends(0, 500)];
    assert_eq!(time(&m, 1, all), 1000.0 + 2.0 * 1000.0);
}

#[test]
fn ranks_of_one_core_run_one_after_the_other() {
    let mut m = free(1);
    (m.cores, m.prices.copy, m.prices.switch) = (1, 1.0, 7.0);
    let copies = schedule(|s| s.copy(Slice::whole(SEND, 100), Slice::whole(RECV, 100)));
    let all = vec![copies.clone(), copies.clone(), copies];
    assert_eq!(time(&m, 3, all), 300.0 + 2.0 * 3.0 * 7.0);
}

#[test]
fn readers_of_one_line_wait_for_each_other() {
    let mut m = free(1);
    (m.cores, m.prices.cache_line, m.prices.reader) = (8, 50.0, 20.0);
    let watches = schedule(|s| {
        s.shm_buffer = ShmBuffer::Short;
        s.watch(0, 1);
    });
    let raises = schedule(|s| {
        s.shm_buffer = ShmBuffer::Short;
        s.raise(1);
    });
    let all = vec![raises, watches.clone(), watches.clone(), watches];
    assert_eq!(time(&m, 4, all), 50.0 + 2.0 * 20.0);
}

#[test]
fn a_shm_buffer_is_read_at_the_price_of_its_distance() {
    let mut m = free(1);
    (m.sockets, m.cores) = (2, 1);
    (m.prices.read, m.prices.far_read) = (1.0, 3.0);
    let shm_buffer = Slice {
        buf: SHM_BUFFERS,
        at: 64,
        len: 1000,
    };
    let reads = schedule(|s| {
        s.shm_buffer = ShmBuffer::Long;
        s.watch(0, 1);
        s.copy(shm_buffer, Slice::whole(RECV, 1000));
    });
    let shows = schedule(|s| {
        s.shm_buffer = ShmBuffer::Long;
        s.raise(1);
    });
    assert_eq!(time(&m, 2, vec![shows, reads]), 3000.0);
}

#[test]
fn who_waits_for_ever_is_named() {
    let call = Call {
        schedules: vec![receives(&[1], 1), Schedule::default()],
        unit: 1,
        footprint: 0,
        per_host: 2,
    };
    let why = run(&free(1), &call, 1).unwrap_err();
    assert_eq!(why.to_string(), "rank 0 never leaves step 1");
}

#[test]
fn the_descriptions_are_well_formed() {
    let names: Vec<String> = Machine::all().into_iter().map(|m| m.name).collect();
    assert_eq!(names.len(), 8);
}

#[test]
fn a_description_without_a_source_or_a_row_is_refused() {
    let text = "ranks\t2x2\tsaid\nhosts\t1\tsaid\n";
    assert_eq!(Machine::parse("x", text), Err(Unreadable::Missing("call")));
    assert_eq!(Machine::parse("x", "hosts\t1\t\n"), Err(Unreadable::Row(1)));
}

#[test]
fn a_description_that_says_a_thing_twice_is_refused() {
    let text = "# a host\nhosts\t1\tsaid\nhosts\t2\tsaid\n";
    let again = Unreadable::Again(3, "hosts".into());
    assert_eq!(again.to_string(), "line 3 repeats hosts");
    assert_eq!(Machine::parse("x", text), Err(again));
}
