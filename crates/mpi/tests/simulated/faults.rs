//! Broken connections, and ranks that leave: which operations end with an error, and which
//! continue.

use crate::calls::*;
use crate::collectives::own;
use crate::job::{Job, Rank};
use kw_mpi::built;

const SHORT: usize = 10;
const LONG: usize = 5000;

/// The sentence of the failure.
fn why<T: std::fmt::Debug>(result: kw_objects::Res<T>) -> String {
    format!("{:?}", result.expect_err("the peer is gone"))
}

fn finalize(rank: &Rank) {
    built::finalize(&rank.mpi).expect("MPI_Finalize");
}

#[test]
fn a_torn_connection_ends_what_needs_it_and_nothing_else() {
    for seed in 400..410 {
        Job::new(3, seed).run_to_the_end(|rank| {
            let world = rank.world();
            let mut rooms = [vec![0; LONG], vec![0; LONG]];
            let [a, b] = &mut rooms;
            match rank.me {
                0 => {
                    let mut lost = world.irecv(room(a), 1, 1);
                    let mut kept = world.irecv(room(b), 2, 1);
                    rank.cut(1);
                    assert!(why(rank.wait(&mut lost)).contains("rank 1"));
                    rank.wait(&mut kept).unwrap();
                    assert_eq!(rooms[1], own(2, LONG));
                    assert!(why(world.send(ints(&own(0, SHORT)), 1, 1)).contains("rank 1"));
                }
                1 => {
                    let mut none = world.irecv(room(a), 0, 1);
                    assert!(why(rank.wait(&mut none)).contains("rank 0"));
                }
                _ => world.send(ints(&own(2, LONG)), 0, 1).unwrap(),
            }
        });
    }
}

/// Wherever the transfer is interrupted, the receiver has the whole message, or an error.
#[test]
fn a_connection_torn_in_the_middle_of_a_message() {
    let (mut whole, mut torn) = (0, 0);
    for seed in 420..450 {
        let came_whole = kw_base::sync::atomic::AtomicBool::new(false);
        Job::new(3, seed).run_to_the_end(|rank| {
            let world = rank.world();
            let mut came = vec![0; LONG];
            match rank.me {
                0 => match world.recv(room(&mut came), 1, 1) {
                    Ok(_) => {
                        assert_eq!(came, own(1, LONG));
                        came_whole.store(true, kw_base::sync::atomic::Ordering::Relaxed);
                    }
                    Err(why) => assert!(format!("{why:?}").contains("rank 1"), "{why:?}"),
                },
                1 => drop(world.send(ints(&own(1, LONG)), 0, 1)),
                _ => {
                    // The failure comes after some turns.
                    for _ in 0..rank.dice(seed).between(0, 6) {
                        let mut nothing = world.irecv(room(&mut came), 2, 1);
                        rank.test(&mut nothing).unwrap();
                    }
                    let (a, b) = (kw_base::Peer(0), kw_base::Peer(1));
                    rank.net.cut(a, b);
                }
            }
        });
        match came_whole.into_inner() {
            true => whole += 1,
            false => torn += 1,
        }
    }
    assert!(whole > 0 && torn > 0, "{whole} whole, {torn} torn");
}

#[test]
fn a_collective_over_a_torn_connection_ends_with_an_error() {
    for (form, seed) in FORMS.into_iter().zip(460..) {
        Job::new(2, seed).run_to_the_end(|rank| {
            let world = rank.world();
            let (mine, mut came) = (own(rank.me, LONG), vec![0; LONG]);
            // The other side may notice the broken connection in the barrier, or later.
            let mut result = world.barrier(Form::Blocking);
            if rank.me == 0 {
                rank.cut(1);
            }
            if result.is_ok() {
                result = world.allreduce(form, ints(&mine).addr, room(&mut came), SUM);
            }
            let other = format!("rank {}", 1 - rank.me);
            assert!(why(result).contains(&other));
        });
    }
}

/// A rank that waits for one in MPI_Finalize asks it after a while, and gets an answer.
#[test]
fn a_receive_from_a_rank_that_has_left_ends_with_an_error() {
    for seed in 470..474 {
        Job::new(3, seed).run_to_the_end(|rank| {
            if rank.me == 1 {
                let before = rank.net.now();
                let lost = rank.world().recv(room(&mut [0; SHORT]), 2, 1);
                let text = why(lost);
                assert!(
                    text.contains("rank 2") && text.contains("MPI_Finalize"),
                    "{text}"
                );
                assert!(rank.net.now().since(before).as_millis() >= 100);
            }
            finalize(rank);
        });
    }
}

#[test]
fn a_rank_that_leaves_before_others_have_what_it_sent() {
    for seed in 480..484 {
        Job::new(3, seed).run(|rank| {
            let world = rank.world();
            let mut came = vec![0; LONG];
            match rank.me {
                0 => world.send(ints(&own(0, SHORT)), 1, 1).unwrap(),
                1 => {
                    for _ in 0..200 {
                        let mut none = world.irecv(room(&mut [0; 1]), 1, 9);
                        rank.test(&mut none).unwrap();
                        built::cancel(&rank.mpi, out(&mut none)).unwrap();
                        rank.wait(&mut none).unwrap();
                    }
                    world.recv(room(&mut came[..SHORT]), 0, 1).unwrap();
                    assert_eq!(came[..SHORT], own(0, SHORT));
                }
                _ => {}
            }
        });
    }
}

#[test]
#[should_panic(expected = "never ends")]
fn a_deadlock_is_found() {
    Job::new(2, 490).most_turns(20_000).run(|rank| {
        let world = rank.world();
        world.recv(room(&mut [0; SHORT]), 1 - rank.me, 1).unwrap();
    });
}
