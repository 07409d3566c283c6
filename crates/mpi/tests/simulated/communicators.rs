//! Creating communicators from others: their members, the order of these, and the separation of
//! messages (MPI 5.0, 7.4).

use crate::calls::*;
use crate::job::{Job, Rank};
use kw_mpi::built;
use kw_mpi::built::comm_idup;
use kw_objects::handle::{CommH, ErrhandlerH, GroupH, InfoH, RequestH};

impl Rank {
    fn some_of(&self, group: GroupH, ranks: &[i32]) -> GroupH {
        let mut new = GroupH::NULL;
        let n = ranks.len() as i32;
        built::group_incl(&self.mpi, group, n, list(ranks), out(&mut new)).expect("a group");
        new
    }
}

fn check_all(comm: &Comm<'_>) {
    comm.check_collectives(Form::Blocking, 30, comm.size - 1);
    comm.check_collectives(Form::Nonblocking, 200, 0);
}

#[test]
fn split_orders_by_key_and_then_by_rank() {
    for seed in 100..103 {
        Job::new(7, seed).hosts(2).run(|rank| {
            let world = rank.world();
            let color = match rank.me {
                3 => UNDEFINED,
                r => r % 3,
            };
            // Keys run against ranks; two are equal.
            let new = world.split(color, -(rank.me / 4));
            let key = |r: i32| (-(r / 4), r);
            let mut members: Vec<i32> = (0..7).filter(|&r| r != 3 && r % 3 == color).collect();
            members.sort_by_key(|&r| key(r));
            let Some(new) = new else {
                return assert_eq!(rank.me, 3);
            };
            let place = members.iter().position(|&r| r == rank.me).unwrap();
            assert_eq!((new.me, new.size), (place as i32, members.len() as i32));
            check_all(&new);
            new.free();
        });
    }
}

#[test]
fn communicators_of_communicators() {
    Job::new(8, 111).run(|rank| {
        let world = rank.world();
        let half = world.split(rank.me / 4, 0).unwrap();
        let turned = half.split(0, -half.me).unwrap();
        assert_eq!(turned.me, 3 - half.me);
        let again = turned.dup();
        for comm in [&half, &turned, &again, &world] {
            check_all(comm);
        }
        again.free();
        turned.free();
        half.free();
    });
}

#[test]
fn only_members_of_a_group_make_its_communicator() {
    for seed in 120..123 {
        Job::new(6, seed).run(|rank| {
            let world = rank.world();
            let group = rank.some_of(world.group(), &[4, 1, 2]);
            let place = [4, 1, 2].iter().position(|&r| r == rank.me);
            // Collective over all: ranks that are in no group get none.
            let all = world.create(group);
            assert_eq!(all.map(|c| c.me), place.map(|p| p as i32));
            // Collective over the group alone.
            if let Some(place) = place {
                let own = world.create_group(group, 7).unwrap();
                assert_eq!((own.me, own.size), (place as i32, 3));
                check_all(&own);
                own.free();
            }
            if let Some(all) = all {
                check_all(&all);
                all.free();
            }
        });
    }
}

/// Overlapping groups are created at the same time, by ranks that arrive in different orders.
#[test]
fn groups_that_overlap_make_communicators_at_the_same_time() {
    for seed in 130..136 {
        Job::new(5, seed).run(|rank| {
            let world = rank.world();
            let all = world.group();
            let mut made = Vec::new();
            for first in 0..5 {
                let members = [first, (first + 1) % 5, (first + 3) % 5];
                if members.contains(&rank.me) {
                    let group = rank.some_of(all, &members);
                    made.push(world.create_group(group, first).unwrap());
                }
            }
            made.iter().for_each(check_all);
            made.into_iter().for_each(Comm::free);
        });
    }
}

#[test]
fn idup_goes_on_while_the_original_is_used() {
    for seed in 140..144 {
        Job::new(4, seed).run(|rank| {
            let world = rank.world();
            let mut new = [CommH::NULL; 3];
            let mut requests = [RequestH::NULL; 3];
            for (new, request) in new.iter_mut().zip(&mut requests) {
                comm_idup(&rank.mpi, world.handle, out(new), out(request)).unwrap();
                world.check_collectives(Form::Blocking, 20, 1);
            }
            rank.waitall(&mut requests).unwrap();
            for handle in new {
                let comm = Comm::of(rank, handle);
                assert_eq!((comm.me, comm.size), (rank.me, 4));
                check_all(&comm);
                comm.free();
            }
        });
    }
}

#[test]
fn a_communicator_is_made_from_a_group_and_a_name() {
    Job::new(5, 151).run(|rank| {
        let group = rank.some_of(rank.world().group(), &[3, 0, 2]);
        if let Some(place) = [3, 0, 2].iter().position(|&r| r == rank.me) {
            let mut new = CommH::NULL;
            let (name, handler) = (text(c"a name"), ErrhandlerH::RETURN);
            let place_of = out(&mut new);
            built::comm_create_from_group(&rank.mpi, group, name, InfoH::NULL, handler, place_of)
                .unwrap();
            let comm = Comm::of(rank, new);
            assert_eq!((comm.me, comm.size), (place as i32, 3));
            check_all(&comm);
            comm.free();
        }
    });
}

/// Same tag, same ranks: only the communicator distinguishes the messages.
#[test]
fn messages_of_two_communicators_do_not_meet() {
    for seed in 160..164 {
        Job::new(3, seed).run(|rank| {
            let world = rank.world();
            let other = world.dup();
            let (next, last) = ((rank.me + 1) % 3, (rank.me + 2) % 3);
            let mut came = [[0; 3]; 2];
            let [a, b] = &mut came;
            // Received in a different order from that of sending.
            let mut requests = [
                other.irecv(room(b), last, 5),
                world.irecv(room(a), ANY_SOURCE, ANY_TAG),
            ];
            world.send(ints(&[rank.me, 0, 1]), next, 5).unwrap();
            other.send(ints(&[rank.me, 1, 1]), next, 5).unwrap();
            rank.waitall(&mut requests).unwrap();
            assert_eq!(came, [[last, 0, 1], [last, 1, 1]]);
            other.free();
        });
    }
}

#[test]
fn groups_are_put_together_and_taken_apart() {
    type Join = fn(&kw_objects::Mpi, GroupH, GroupH, kw_sys::args::Out<GroupH>) -> kw_objects::Res;
    Job::new(6, 171).run(|rank| {
        let all = rank.world().group();
        let (a, b) = (rank.some_of(all, &[5, 3, 1]), rank.some_of(all, &[1, 2, 3]));
        let cases: [(Join, &[i32]); 3] = [
            (built::group_union, &[5, 3, 1, 2]),
            (built::group_intersection, &[3, 1]),
            (built::group_difference, &[5]),
        ];
        for (join, want) in cases {
            let mut new = GroupH::NULL;
            join(&rank.mpi, a, b, out(&mut new)).unwrap();
            let ranks: Vec<i32> = (0..want.len() as i32).collect();
            let (mut there, n) = (vec![0; want.len()], want.len() as i32);
            let place = list_mut(&mut there);
            built::group_translate_ranks(&rank.mpi, new, n, list(&ranks), all, place).unwrap();
            assert_eq!(there, want);
        }
    });
}
