//! Hooks of requests: the events that a library on top receives, and when, whichever thread
//! completes the request.

use crate::calls::*;
use crate::collectives::own;
use crate::job::{Job, Rank};
use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use kw_mpi::built;
use kw_objects::forms::{Mode, Nonblocking};
use kw_objects::handle::{InfoH, RequestH};
use kw_objects::hook::{Hook, attach};
use kw_objects::{Class, Res};
use kw_sys::callback::RequestHook;
use std::collections::HashMap;

/// Integers in messages that are sent eagerly, and in others.
const LENGTHS: [usize; 2] = [10, 900];

const STARTS: i32 = 0;
const ENDED: i32 = 1;
const GONE: i32 = 2;

/// Events of each hook.
static HEARD: Mutex<Option<HashMap<usize, Vec<i32>>>> = Mutex::new(None);

extern "C" fn note(data: usize, event: i32) {
    let mut heard = HEARD.lock().expect("no thread panics here");
    let heard = heard.get_or_insert_default();
    heard.entry(data).or_default().push(event);
}

/// The hook of a request.
struct Heard(usize);

impl Heard {
    fn of(rank: &Rank, request: RequestH) -> Heard {
        let (heard, result) = Heard::tried(rank, request);
        result.expect("a request that takes a hook");
        heard
    }

    fn tried(rank: &Rank, request: RequestH) -> (Heard, Res) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let data = NEXT.fetch_add(1, Ordering::Relaxed);
        let hook = Hook::new(RequestHook::of(note), data);
        let result = attach(&mut rank.mpi.lock(), request, hook);
        (Heard(data), result)
    }

    fn events(&self) -> Vec<i32> {
        let heard = HEARD.lock().expect("no thread panics here");
        let heard = heard.as_ref().and_then(|all| all.get(&self.0));
        heard.cloned().unwrap_or_default()
    }
}

/// Polls until it is complete.
fn look(rank: &Rank, request: RequestH) {
    let mut flag = 0;
    while flag == 0 {
        built::request_get_status(&rank.mpi, request, out(&mut flag), ignored()).unwrap();
    }
}

#[test]
fn a_hook_hears_of_the_end_before_any_call_says_it() {
    for (way, seed) in (0..5).zip(600..) {
        for len in LENGTHS {
            Job::new(2, seed).run(|rank| {
                let world = rank.world();
                if rank.me == 1 {
                    world.barrier(Form::Blocking).unwrap();
                    return world.send(ints(&own(1, len)), 0, 1).unwrap();
                }
                let mut came = vec![0; len];
                let mut request = world.irecv(room(&mut came), 1, 1);
                let heard = Heard::of(rank, request);
                assert!(rank.test(&mut request).unwrap().is_none());
                assert_eq!(heard.events(), []);
                world.barrier(Form::Blocking).unwrap();
                match way {
                    0 => drop(rank.wait(&mut request).unwrap()),
                    1 => while rank.test(&mut request).unwrap().is_none() {},
                    2 => drop(rank.waitall(&mut [request]).unwrap()),
                    3 => drop(rank.waitsome(&mut [request]).unwrap()),
                    _ => look(rank, request),
                }
                assert_eq!(heard.events(), [ENDED, GONE]);
                assert_eq!(came, own(1, len));
                if way == 4 {
                    rank.release(&mut request);
                }
                assert_eq!(heard.events(), [ENDED, GONE]);
            });
        }
    }
}

#[test]
fn a_hook_hears_of_what_ended_before_it_came() {
    Job::new(1, 610).run(|rank| {
        let world = rank.world();
        let mut nothing = world.irecv(room(&mut []), PROC_NULL, 1);
        let heard = Heard::of(rank, nothing);
        assert_eq!(heard.events(), [ENDED, GONE]);
        rank.wait(&mut nothing).unwrap();
        let mut sent = world.isend_as(Mode::Standard, ints(&[5]), 0, 1);
        let mut came = [0];
        let mut request = world.irecv(room(&mut came), 0, 1);
        look(rank, request);
        assert_eq!(Heard::of(rank, request).events(), [ENDED, GONE]);
        rank.wait(&mut request).unwrap();
        rank.wait(&mut sent).unwrap();
    });
}

#[test]
fn a_hook_hears_of_a_request_that_was_freed_while_it_went_on() {
    for (len, seed) in LENGTHS.into_iter().zip(620..) {
        Job::new(2, seed).run(|rank| {
            let world = rank.world();
            if rank.me == 1 {
                world.barrier(Form::Blocking).unwrap();
                return world.send(ints(&own(1, len)), 0, 1).unwrap();
            }
            let mut came = vec![0; len];
            let mut request = world.irecv(room(&mut came), 1, 1);
            let heard = Heard::of(rank, request);
            rank.release(&mut request);
            assert_eq!(heard.events(), []);
            world.barrier(Form::Blocking).unwrap();
            while heard.events().is_empty() {
                world.iprobe(1, 2);
            }
            assert_eq!(heard.events(), [ENDED, GONE]);
            assert_eq!(came, own(1, len));
        });
    }
}

#[test]
fn a_hook_hears_of_what_was_cancelled_or_has_failed() {
    Job::new(2, 630).run(|rank| {
        let world = rank.world();
        if rank.me == 1 {
            return world.send(ints(&[1, 2, 3]), 0, 1).unwrap();
        }
        let mut came = [0; 2];
        let mut never = world.irecv(room(&mut came), 1, 9);
        let heard = Heard::of(rank, never);
        built::cancel(&rank.mpi, out(&mut never)).unwrap();
        rank.wait(&mut never).unwrap();
        assert_eq!(heard.events(), [ENDED, GONE]);
        let mut short = world.irecv(room(&mut came), 1, 1);
        let heard = Heard::of(rank, short);
        let code = rank.wait(&mut short).expect_err("truncated").code;
        assert_eq!(
            (code, heard.events()),
            (Class::Truncate as i32, vec![ENDED, GONE])
        );
    });
}

#[test]
fn a_hook_hears_of_every_round_of_a_persistent_request() {
    for (len, seed) in LENGTHS.into_iter().zip(640..) {
        Job::new(2, seed).run(|rank| {
            let (world, other) = (rank.world(), 1 - rank.me);
            let (mut mine, mut came) = (own(rank.me, len), vec![0; len]);
            let data = room(&mut mine);
            let mut both = [
                world.recv_init(room(&mut came), other, 6),
                world.send_init(Mode::Synchronous, data, other, 6),
            ];
            let heard = both.map(|request| Heard::of(rank, request));
            for round in 1..4 {
                built::startall(&rank.mpi, 2, array(&mut both)).unwrap();
                rank.waitall(&mut both).unwrap();
                for heard in &heard {
                    assert_eq!(heard.events(), [STARTS, ENDED].repeat(round));
                }
            }
            rank.release(&mut both[0]);
            assert_eq!(heard[0].events().last(), Some(&GONE));
            // the other one is freed while it is active
            built::startall(&rank.mpi, 1, array(&mut both[1..])).unwrap();
            rank.release(&mut both[1]);
            assert_eq!(heard[1].events().last(), Some(&STARTS));
            world.recv(room(&mut came), other, 6).unwrap();
            while heard[1].events().last() != Some(&GONE) {
                world.iprobe(other, 2);
            }
            assert_eq!(heard[1].events()[6..], [STARTS, ENDED, GONE]);
        });
    }
}

#[test]
fn a_hook_of_a_collective_hears_of_its_end() {
    Job::new(3, 650).run(|rank| {
        let world = rank.world();
        let (mine, mut came) = (own(rank.me, 10), vec![0; 10]);
        let mut request = world.iallreduce(ints(&mine).addr, room(&mut came), SUM);
        let heard = Heard::of(rank, request);
        rank.wait(&mut request).unwrap();
        assert_eq!(heard.events(), [ENDED, GONE]);
        let mut request = world.allreduce_init(ints(&mine).addr, room(&mut came), SUM);
        let heard = Heard::of(rank, request);
        for round in 1..3 {
            rank.start(&mut request).unwrap();
            rank.wait(&mut request).unwrap();
            assert_eq!(heard.events(), [STARTS, ENDED].repeat(round));
        }
        rank.release(&mut request);
        assert_eq!(heard.events().last(), Some(&GONE));
    });
}

/// MPI_Isendrecv is two operations, and its hook gets the end of both.
#[test]
fn a_hook_of_a_send_and_a_receive_hears_of_one_end() {
    Job::new(2, 660).run(|rank| {
        let (world, other) = (rank.world(), 1 - rank.me);
        let (mine, mut came) = (own(rank.me, 900), vec![0; 900]);
        let (s, r, mut request) = (ints(&mine), room(&mut came), RequestH::NULL);
        let form = Nonblocking((out(&mut request),));
        built::sendrecv(
            &rank.mpi,
            s.addr,
            s.count,
            s.kind,
            other,
            1,
            r.addr,
            r.count,
            r.kind,
            other,
            1,
            world.handle,
            form,
        )
        .unwrap();
        let heard = Heard::of(rank, request);
        rank.wait(&mut request).unwrap();
        assert_eq!(heard.events(), [ENDED, GONE]);
        assert_eq!(came, own(other, 900));
    });
}

#[test]
fn what_takes_no_hook_says_so_and_lets_it_go() {
    Job::new(1, 670).run(|rank| {
        let (world, mpi) = (rank.world(), &rank.mpi);
        let mut own = RequestH::NULL;
        built::grequest_start(mpi, None, None, None, 0, out(&mut own)).unwrap();
        let mut parts = RequestH::NULL;
        let (mut data, form) = ([0; 4], InfoH::NULL);
        let data = room(&mut data);
        let place = out(&mut parts);
        built::psend_init(mpi, data.addr, 2, 2, INT, 0, 1, world.handle, form, place).unwrap();
        for request in [own, parts, RequestH::NULL, RequestH(77 << 32)] {
            let (heard, result) = Heard::tried(rank, request);
            let code = result.expect_err("no hook").code;
            assert_eq!((code, heard.events()), (Class::Request as i32, vec![GONE]));
        }
        built::grequest_complete(mpi, own).unwrap();
        rank.wait(&mut own).unwrap();
        rank.release(&mut parts);
    });
}
