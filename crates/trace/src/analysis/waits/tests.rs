//! Traces whose waits are known.

use super::*;
use crate::example::{Made, Maker};

/// Class, waiting rank, awaited rank, time.
fn found(maker: &Maker) -> Vec<(Class, u32, u32, u64)> {
    let trace = maker.trace();
    let one = |w: &Wait| {
        (
            w.class,
            trace.rank_of(w.call),
            trace.rank_of(w.cause),
            w.time(),
        )
    };
    waits(&trace).iter().map(one).collect()
}

#[test]
fn a_receiver_waits_for_a_late_sender() {
    let mut maker = Maker::new(2);
    maker.call(0, Made::new("MPI_Send", 70, 75, "").sends(1, 1, 0, 8));
    maker.call(
        1,
        Made::new("MPI_Recv", 10, 80, "").receives(1, 0, 0, 8, 10),
    );
    assert_eq!(found(&maker), [(Class::LateSender, 1, 0, 60)]);
}

#[test]
fn nobody_waits_for_a_message_that_is_there() {
    let mut maker = Maker::new(2);
    maker.call(0, Made::new("MPI_Send", 5, 8, "").sends(1, 1, 0, 8));
    maker.call(
        1,
        Made::new("MPI_Recv", 10, 80, "").receives(1, 0, 0, 8, 10),
    );
    assert_eq!(found(&maker), []);
}

#[test]
fn a_wait_for_several_is_one_for_the_last() {
    let mut maker = Maker::new(3);
    maker.call(0, Made::new("MPI_Send", 30, 35, "").sends(1, 2, 0, 8));
    maker.call(1, Made::new("MPI_Send", 50, 55, "").sends(2, 2, 0, 8));
    let wait = Made::new("MPI_Waitall", 10, 60, "").receives(1, 0, 0, 8, 2);
    maker.call(2, wait.receives(2, 1, 0, 8, 2));
    assert_eq!(found(&maker), [(Class::LateSender, 2, 1, 40)]);
}

#[test]
fn a_message_that_lay_there_makes_it_the_wrong_order() {
    let mut maker = Maker::new(3);
    maker.call(0, Made::new("MPI_Send", 70, 75, "").sends(1, 2, 0, 8));
    maker.call(1, Made::new("MPI_Send", 5, 8, "").sends(2, 2, 0, 8));
    maker.call(
        2,
        Made::new("MPI_Recv", 10, 80, "").receives(1, 0, 0, 8, 10),
    );
    maker.call(
        2,
        Made::new("MPI_Recv", 81, 82, "").receives(2, 1, 0, 8, 81),
    );
    assert_eq!(found(&maker), [(Class::WrongOrder, 2, 0, 60)]);
}

#[test]
fn a_receive_that_was_posted_before_is_in_no_wrong_order() {
    let mut maker = Maker::new(3);
    maker.call(0, Made::new("MPI_Send", 70, 75, "").sends(1, 2, 0, 8));
    maker.call(1, Made::new("MPI_Send", 5, 8, "").sends(2, 2, 0, 8));
    maker.call(
        2,
        Made::new("MPI_Recv", 10, 80, "").receives(1, 0, 0, 8, 10),
    );
    maker.call(2, Made::new("MPI_Wait", 81, 82, "").receives(2, 1, 0, 8, 3));
    assert_eq!(found(&maker), [(Class::LateSender, 2, 0, 60)]);
}

#[test]
fn a_sender_waits_for_a_late_receiver() {
    let mut maker = Maker::new(2);
    maker.call(
        0,
        Made::new("MPI_Ssend", 10, 100, "").sends(1, 1, 0, 1 << 20),
    );
    maker.call(
        1,
        Made::new("MPI_Recv", 60, 101, "").receives(1, 0, 0, 1 << 20, 60),
    );
    assert_eq!(found(&maker), [(Class::LateReceiver, 0, 1, 50)]);
}

#[test]
fn the_root_of_a_reduction_waits_for_the_last() {
    let mut maker = Maker::new(3);
    for (rank, begin) in [(0, 10), (1, 40), (2, 90)] {
        let call = Made::new("MPI_Reduce", begin, 100, "").collective(0, 8);
        maker.call(rank, call.int("root", 0));
    }
    assert_eq!(found(&maker), [(Class::EarlyReduce, 0, 2, 80)]);
}

#[test]
fn all_wait_for_the_root_of_a_broadcast() {
    let mut maker = Maker::new(3);
    for (rank, begin) in [(0, 50), (1, 40), (2, 90)] {
        let call = Made::new("MPI_Bcast", begin, 100, "").collective(0, 8);
        maker.call(rank, call.int("root", 0));
    }
    assert_eq!(found(&maker), [(Class::LateBroadcast, 1, 0, 10)]);
}

#[test]
fn members_wait_for_the_last_one() {
    for (function, class) in [
        ("MPI_Barrier", Class::Barrier),
        ("MPI_Alltoall", Class::AllToAll),
    ] {
        let mut maker = Maker::new(3);
        for (rank, begin) in [(0, 50), (1, 40), (2, 90)] {
            maker.call(rank, Made::new(function, begin, 100, "").collective(0, 8));
        }
        assert_eq!(found(&maker), [(class, 0, 2, 40), (class, 1, 2, 50)]);
    }
}

#[test]
fn in_a_scan_each_waits_for_those_before_it() {
    let mut maker = Maker::new(4);
    // places 3, 2, 1, 0
    for (rank, begin) in [(0, 10), (1, 90), (2, 40), (3, 60)] {
        let call = Made::new("MPI_Scan", begin, 100, "").collective(0, 8);
        maker.call(rank, call.int("place", 3 - i64::from(rank)));
    }
    assert_eq!(
        found(&maker),
        [(Class::EarlyScan, 0, 1, 80), (Class::EarlyScan, 2, 3, 20)]
    );
}

#[test]
fn in_a_neighbourhood_each_waits_for_those_it_receives_from() {
    let mut maker = Maker::new(4);
    // rank 0 receives from 1 and 2, rank 1 from 2, rank 2 from itself, rank 3 from no rank
    for (rank, source) in [(0, 2), (0, 1), (1, 2), (2, 2)] {
        maker.neighbor(rank, source);
    }
    for (rank, begin) in [(0, 10), (1, 50), (2, 40), (3, 90)] {
        let call = Made::new("MPI_Neighbor_alltoallv_c", begin, 100, "");
        maker.call(rank, call.collective(0, 8));
    }
    assert_eq!(found(&maker), [(Class::LateNeighbor, 0, 1, 40)]);
}

#[test]
fn nobody_waits_for_neighbours_that_are_not_known() {
    let mut maker = Maker::new(2);
    for (rank, begin) in [(0, 10), (1, 50)] {
        let call = Made::new("MPI_Neighbor_allgather", begin, 100, "");
        maker.call(rank, call.collective(0, 8));
    }
    assert_eq!(found(&maker), []);
}

#[test]
fn a_probe_waits_for_a_late_sender() {
    let mut maker = Maker::new(2);
    maker.call(0, Made::new("MPI_Send", 5, 8, "").sends(1, 1, 0, 8));
    maker.call(0, Made::new("MPI_Send", 70, 75, "").sends(2, 1, 0, 8));
    let probe = |begin, end| {
        let probe = Made::new("MPI_Probe", begin, end, "");
        probe
            .text("comm", "MPI_COMM_WORLD")
            .int("source", 0)
            .int("tag", 0)
    };
    let receive =
        |flow, begin, end| Made::new("MPI_Recv", begin, end, "").receives(flow, 0, 0, 8, begin);
    maker.call(1, probe(10, 12)); // it is there
    maker.call(1, receive(1, 12, 13));
    maker.call(1, probe(20, 77));
    maker.call(1, probe(78, 79)); // once more
    maker.call(1, receive(2, 80, 81));
    assert_eq!(found(&maker), [(Class::LateSender, 1, 0, 50)]);
}

#[test]
fn what_begins_a_collective_does_not_wait() {
    let mut maker = Maker::new(2);
    for (rank, begin) in [(0, 50), (1, 90)] {
        maker.call(
            rank,
            Made::new("MPI_Ibarrier", begin, 100, "").collective(0, 0),
        );
    }
    assert_eq!(found(&maker), []);
}

#[test]
fn waits_are_summed_by_place() {
    let trace = crate::read::read(crate::example::ring(4, 3).as_slice()).unwrap();
    let waits = waits(&trace);
    let sums = sums(&trace, &waits);
    let all: u64 = sums.iter().map(|s| s.time).sum();
    assert_eq!(all, waits.iter().map(|w| w.time()).sum::<u64>());
    assert!(sums.windows(2).all(|p| p[0].time >= p[1].time));
}
