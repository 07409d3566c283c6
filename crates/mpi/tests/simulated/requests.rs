//! Messages and requests: order, wildcards, completion of one or many, cancelling, probes, buffered
//! sends, errors (MPI 5.0, chapter 3).

use crate::calls::*;
use crate::collectives::own;
use crate::job::{Job, Rank};
use kw_base::sync::atomic::{AtomicBool, Ordering};
use kw_mpi::built;
use kw_objects::forms::{Blocking, Mode, Testing};
use kw_objects::handle::{MessageH, RequestH};
use kw_objects::status::is_cancelled;
use kw_objects::{Class, Res};
use kw_path::sim::{Reach, SimOptions};
use kw_sys::args::Status;

/// Integers in messages that are sent eagerly, and in others.
const SHORT: usize = 10;
const LONG: usize = 900;

fn ints_in(status: &Status) -> usize {
    status.internal[0] as usize / 4
}

fn code<T: std::fmt::Debug>(result: Res<T>) -> i32 {
    result.expect_err("an error").code
}

/// All ranks send to all, in all modes; messages with one source and one tag arrive in order,
/// however they are completed.
fn traffic(seed: u64, options: SimOptions) {
    const EACH: usize = 8;
    let modes = [Mode::Standard, Mode::Synchronous, Mode::Standard];
    Job::new(5, seed).net(options).run(|rank| {
        let (world, n) = (rank.world(), rank.size as usize);
        let mut dice = rank.dice(seed);
        let len = |from: i32, i: usize| [0, 1, SHORT, LONG][(from as usize + i) % 4];
        let what =
            |from: i32, to: i32, i: usize| own(from * 100 + to * 10 + i as i32, len(from, i));
        let mut rooms: Vec<Vec<i32>> = vec![vec![0; LONG]; n * EACH];
        let mut receives = Vec::new();
        // One half names its source, the other takes the first message that arrives.
        let named = rank.me % 2 == 0;
        for (at, space) in rooms.iter_mut().enumerate() {
            let from = if named {
                (at / EACH) as i32
            } else {
                ANY_SOURCE
            };
            receives.push(world.irecv(room(space), from, 3));
        }
        let sent: Vec<Vec<Vec<i32>>> = (0..rank.size)
            .map(|to| (0..EACH).map(|i| what(rank.me, to, i)).collect())
            .collect();
        let mut sends = Vec::new();
        for i in 0..EACH {
            for to in 0..n {
                let mode = modes[dice.between(0, 2) as usize];
                let data = ints(&sent[to][i]);
                sends.push(world.isend_as(mode, data, to as i32, 3));
            }
        }
        let came = complete(rank, &mut receives, seed % 3);
        rank.waitall(&mut sends).unwrap();
        // Receives of one kind are matched in the order they were posted, so that is the order of a
        // source's messages.
        let mut next = vec![0; n];
        for (status, space) in came.iter().zip(&rooms) {
            let from = status.source;
            let i = next[from as usize];
            next[from as usize] += 1;
            assert_eq!(ints_in(status), len(from, i), "{i} from {from}");
            assert_eq!(
                space[..ints_in(status)],
                what(from, rank.me, i),
                "{i} from {from}"
            );
        }
        assert_eq!(next, vec![EACH; n]);
    });
}

/// The statuses of all requests, by one of three ways.
fn complete(rank: &Rank, requests: &mut [RequestH], way: u64) -> Vec<Status> {
    let mut came = vec![Status::default(); requests.len()];
    match way {
        0 => return rank.waitall(requests).unwrap(),
        1 => {
            for _ in 0..requests.len() {
                let (i, status) = rank.waitany(requests).unwrap();
                came[i as usize] = status;
            }
            assert_eq!(rank.waitany(requests).unwrap().0, UNDEFINED);
        }
        _ => {
            let mut left = requests.len();
            while left > 0 {
                let some = rank.waitsome(requests).unwrap().expect("some are active");
                assert!(!some.is_empty());
                left -= some.len();
                for (i, status) in some {
                    came[i as usize] = status;
                }
            }
            assert!(rank.waitsome(requests).unwrap().is_none());
        }
    }
    assert!(requests.iter().all(|r| r.is_null()));
    came
}

#[test]
fn messages_of_one_source_come_in_order_whatever_the_network_does() {
    for seed in 200..209 {
        traffic(seed, SimOptions::default());
    }
}

#[test]
fn messages_come_in_order_where_memory_can_be_read_or_is_refused() {
    for (get, seed) in [
        (Reach::Works, 210),
        (Reach::Denied, 211),
        (Reach::Works, 212),
    ] {
        let options = SimOptions {
            get,
            ..SimOptions::default()
        };
        traffic(seed, options);
    }
}

#[test]
fn test_finds_what_has_ended_and_nothing_else() {
    for seed in 220..224 {
        Job::new(3, seed).run(|rank| {
            let world = rank.world();
            let (next, last) = ((rank.me + 1) % 3, (rank.me + 2) % 3);
            let mut rooms = [[0; SHORT], [0; SHORT]];
            let [a, b] = &mut rooms;
            let mut requests = [world.irecv(room(a), last, 1), world.irecv(room(b), last, 2)];
            assert!(rank.test(&mut requests[1]).unwrap().is_none());
            let (mut index, mut flag, mut came) = (0, 0, Status::default());
            world.send(ints(&own(rank.me, SHORT)), next, 1).unwrap();
            while flag == 0 {
                let (two, place) = (array(&mut requests), status(&mut came));
                let (index, flag) = (out(&mut index), out(&mut flag));
                built::waitany(&rank.mpi, 2, two, index, place, Testing((flag,))).unwrap();
            }
            assert_eq!(
                (index, came.tag, rooms[0]),
                (0, 1, own(last, SHORT)[..].try_into().unwrap())
            );
            assert!(rank.test(&mut requests[1]).unwrap().is_none());
            world.barrier(Form::Blocking).unwrap();
            world.send(ints(&own(rank.me, SHORT)), next, 2).unwrap();
            let mut all = 0;
            while all == 0 {
                let (array_of, place) = (array(&mut requests), out(&mut all));
                let mut statuses = [Status::default(); 2];
                built::waitall(
                    &rank.mpi,
                    2,
                    array_of,
                    array(&mut statuses),
                    Testing((place,)),
                )
                .unwrap();
            }
            assert_eq!(rooms[1], own(last, SHORT)[..]);
        });
    }
}

#[test]
fn a_cancelled_receive_takes_no_message() {
    for seed in 230..234 {
        Job::new(2, seed).run(|rank| {
            let world = rank.world();
            let mut came = [0; SHORT];
            if rank.me == 0 {
                let mut never = world.irecv(room(&mut [0; SHORT]), 1, ANY_TAG);
                built::cancel(&rank.mpi, out(&mut never)).unwrap();
                assert!(is_cancelled(&rank.wait(&mut never).unwrap()));
            }
            world.barrier(Form::Blocking).unwrap();
            match rank.me {
                0 => {
                    let status = world.recv(room(&mut came), 1, 4).unwrap();
                    assert!(!is_cancelled(&status));
                    assert_eq!(came, own(1, SHORT)[..]);
                }
                _ => world.send(ints(&own(1, SHORT)), 0, 4).unwrap(),
            }
        });
    }
}

/// A cancelled receive that its message has reached is received.
#[test]
fn a_receive_is_cancelled_or_received_and_never_both() {
    let mut cancelled = 0;
    for seed in 240..260 {
        let was = AtomicBool::new(false);
        Job::new(2, seed).run(|rank| {
            let world = rank.world();
            if rank.me == 1 {
                world.send(ints(&own(1, LONG)), 0, 4).unwrap();
                return;
            }
            let mut came = vec![0; LONG];
            let mut request = world.irecv(room(&mut came), 1, 4);
            for _ in 0..rank.dice(seed).between(0, 4) {
                world.iprobe(ANY_SOURCE, 9);
            }
            built::cancel(&rank.mpi, out(&mut request)).unwrap();
            if is_cancelled(&rank.wait(&mut request).unwrap()) {
                was.store(true, Ordering::Relaxed);
                world.recv(room(&mut came), 1, 4).unwrap();
            }
            assert_eq!(came, own(1, LONG));
        });
        cancelled += was.load(Ordering::Relaxed) as u32;
    }
    assert!(0 < cancelled && cancelled < 20, "{cancelled} of 20");
}

#[test]
fn persistent_requests_are_started_again_and_again() {
    for seed in 260..264 {
        Job::new(3, seed).run(|rank| {
            let (world, mpi) = (rank.world(), &rank.mpi);
            let (next, last) = ((rank.me + 1) % 3, (rank.me + 2) % 3);
            let (mut mine, mut came) = (vec![0; LONG], vec![0; LONG]);
            let data = room(&mut mine);
            let mut both = [
                world.recv_init(room(&mut came), last, 6),
                world.send_init(Mode::Synchronous, data, next, 6),
            ];
            for round in 0..6 {
                mine.copy_from_slice(&own(rank.me + round, LONG));
                built::startall(mpi, 2, array(&mut both)).unwrap();
                rank.waitall(&mut both).unwrap();
                assert_eq!(came, own(last + round, LONG), "round {round}");
                assert!(both.iter().all(|r| !r.is_null()));
            }
            both.iter_mut().for_each(|r| rank.release(r));
        });
    }
}

#[test]
fn a_matched_probe_takes_its_message_away() {
    for seed in 270..276 {
        Job::new(4, seed).run(|rank| {
            let world = rank.world();
            if rank.me > 0 {
                world.send(ints(&own(rank.me, SHORT)), 0, 1).unwrap();
                world.send(ints(&own(rank.me + 10, LONG)), 0, 1).unwrap();
                return;
            }
            let mut taken = Vec::new();
            for _ in 0..3 {
                taken.push(world.mprobe(ANY_SOURCE, 1));
            }
            // The other messages are received around them, then they are, the last first.
            let mut seen = [0; 4];
            let mut came = vec![0; LONG];
            for _ in 0..3 {
                let status = world.recv(room(&mut came), ANY_SOURCE, 1).unwrap();
                seen[status.source as usize] += ints_in(&status);
            }
            for (mut message, probed) in taken.into_iter().rev() {
                came.fill(0);
                let status = world.mrecv(room(&mut came), &mut message).unwrap();
                assert!(message.is_null());
                assert_eq!(
                    (status.source, ints_in(&status)),
                    (probed.source, ints_in(&probed))
                );
                let (from, len) = (status.source, ints_in(&status));
                let first = if len == SHORT { from } else { from + 10 };
                assert_eq!(came[..len], own(first, len));
                seen[from as usize] += len;
            }
            assert_eq!(seen[1..], [SHORT + LONG; 3]);
        });
    }
}

#[test]
fn buffered_sends_end_at_once_and_detaching_waits_for_them() {
    for seed in 280..284 {
        Job::new(2, seed).run(|rank| {
            let (world, mpi) = (rank.world(), &rank.mpi);
            if rank.me == 1 {
                world.barrier(Form::Blocking).unwrap();
                for i in 0..4 {
                    let mut came = vec![0; LONG];
                    world.recv(room(&mut came), 0, 2).unwrap();
                    assert_eq!(came, own(i, LONG));
                }
                return;
            }
            let mut space = vec![0; 5 * (LONG + 64)];
            let bytes = (space.len() * 4) as i64;
            let (at, data) = (room(&mut space).addr, own(9, 6 * LONG));
            built::buffer_attach(mpi, at, bytes).unwrap();
            for i in 0..4 {
                // Its memory can be used for something else at once.
                let mut mine = own(i, LONG);
                world.bsend(room(&mut mine), 1, 2).unwrap();
                mine.fill(-1);
            }
            assert_eq!(code(world.bsend(ints(&data), 1, 2)), Class::Buffer as i32);
            world.barrier(Form::Blocking).unwrap();
            let (mut address, mut size) = (0usize, 0i64);
            built::buffer_detach(mpi, out(&mut address), long(&mut size)).unwrap();
            assert_eq!((address, size), (at.bits(), bytes));
        });
    }
}

#[test]
fn a_message_longer_than_its_room_is_an_error_and_harms_nothing_else() {
    for (len, seed) in [(SHORT, 290), (LONG, 291), (LONG, 292)] {
        Job::new(2, seed).run(|rank| {
            let world = rank.world();
            if rank.me == 1 {
                world.send(ints(&own(1, len)), 0, 1).unwrap();
                return world.send(ints(&own(2, len)), 0, 1).unwrap();
            }
            let mut came = vec![-5; len];
            let short = room(&mut came).counted(len - 3);
            assert_eq!(code(world.recv(short, 1, 1)), Class::Truncate as i32);
            assert_eq!(came[len - 3..], [-5; 3]);
            world.recv(room(&mut came), 1, 1).unwrap();
            assert_eq!(came, own(2, len));
        });
    }
}

/// MPI 5.0, 3.7.5: if one of several has failed, the statuses tell which.
#[test]
fn of_several_that_end_the_statuses_say_which_failed() {
    Job::new(2, 301).run(|rank| {
        let world = rank.world();
        if rank.me == 1 {
            for i in 0..3 {
                world.send(ints(&own(i, SHORT)), 0, i).unwrap();
            }
            return;
        }
        let mut rooms = [[0; SHORT]; 3];
        let [a, b, c] = &mut rooms;
        let mut requests = [
            world.irecv(room(a), 1, 0),
            world.irecv(room(&mut b[..2]), 1, 1),
            world.irecv(room(c), 1, 2),
        ];
        let mut came = [Status::default(); 3];
        let (three, statuses) = (array(&mut requests), array(&mut came));
        let ended = built::waitall(&rank.mpi, 3, three, statuses, Blocking(()));
        assert_eq!(code(ended), Class::InStatus as i32);
        let errors = came.map(|s| s.error);
        assert_eq!(errors, [0, Class::Truncate as i32, 0]);
        let first = |of| own(of, SHORT);
        assert_eq!([rooms[0].to_vec(), rooms[2].to_vec()], [first(0), first(2)]);
    });
}

#[test]
fn a_synchronous_send_ends_only_when_it_is_received() {
    for seed in 310..314 {
        let posted = AtomicBool::new(false);
        Job::new(2, seed).run(|rank| {
            let world = rank.world();
            if rank.me == 0 {
                let data = own(0, SHORT);
                let mut request = world.isend_as(Mode::Synchronous, ints(&data), 1, 1);
                rank.wait(&mut request).unwrap();
                assert!(
                    posted.load(Ordering::Relaxed),
                    "it ended before the receive was posted"
                );
                return;
            }
            for _ in 0..50 {
                assert!(world.iprobe(ANY_SOURCE, 2).is_none());
            }
            posted.store(true, Ordering::Relaxed);
            world.recv(room(&mut [0; SHORT]), 0, 1).unwrap();
        });
    }
}

#[test]
fn nobody_is_sent_to_and_received_from_at_once() {
    Job::new(1, 321).run(|rank| {
        let world = rank.world();
        let mut came = [4; SHORT];
        world.send(ints(&own(1, SHORT)), PROC_NULL, 1).unwrap();
        let status = world.recv(room(&mut came), PROC_NULL, ANY_TAG).unwrap();
        assert_eq!(
            (status.source, status.tag, ints_in(&status)),
            (PROC_NULL, ANY_TAG, 0)
        );
        assert_eq!(came, [4; SHORT]);
    });
}

#[test]
fn a_ring_of_exchanges_in_place() {
    for (n, seed) in [(1, 330), (2, 331), (5, 332)] {
        Job::new(n, seed).run(|rank| {
            let world = rank.world();
            let mut data = own(rank.me, LONG);
            for _ in 0..rank.size {
                let (next, last) = (
                    (rank.me + 1) % rank.size,
                    (rank.me + rank.size - 1) % rank.size,
                );
                let all = room(&mut data);
                built::sendrecv_replace(
                    &rank.mpi,
                    all.addr,
                    all.count,
                    all.kind,
                    next,
                    1,
                    last,
                    1,
                    world.handle,
                    Blocking((ignored(),)),
                )
                .unwrap();
            }
            assert_eq!(data, own(rank.me, LONG));
        });
    }
}

impl Comm<'_> {
    pub fn iprobe(&self, source: i32, tag: i32) -> Option<Status> {
        let (mut flag, mut came) = (0, Status::default());
        let place = status(&mut came);
        built::iprobe(
            &self.rank.mpi,
            source,
            tag,
            self.handle,
            out(&mut flag),
            place,
        )
        .unwrap();
        (flag != 0).then_some(came)
    }

    fn mprobe(&self, source: i32, tag: i32) -> (MessageH, Status) {
        let (mut message, mut came) = (MessageH::NULL, Status::default());
        let place = status(&mut came);
        built::mprobe(
            &self.rank.mpi,
            source,
            tag,
            self.handle,
            out(&mut message),
            place,
        )
        .unwrap();
        (message, came)
    }

    fn mrecv(&self, data: Data, message: &mut MessageH) -> Res<Status> {
        let mut came = Status::default();
        let (form, mpi) = (Blocking((status(&mut came),)), &self.rank.mpi);
        built::mrecv(mpi, data.addr, data.count, data.kind, out(message), form)?;
        Ok(came)
    }

    fn bsend(&self, data: Data, to: i32, tag: i32) -> Res {
        self.send_as(Mode::Buffered, data, to, tag)
    }
}
