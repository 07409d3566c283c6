//! Jobs that hang, and jobs that only seem to, with the conclusion about each.

use crate::*;

const WORLD: u32 = 0;

fn world(size: u32, calls: i32) -> Comm {
    Comm {
        context: WORLD,
        calls,
        name: "MPI_COMM_WORLD".into(),
        senders: (0..size).collect(),
        members: (0..size).collect(),
    }
}

fn of(kind: Kind, peer: Option<Rank>, tag: Option<i32>) -> Wait {
    let (source, context, bytes) = (peer, WORLD, 8);
    Wait {
        kind,
        peer,
        source,
        tag,
        context,
        bytes,
    }
}

fn recv(peer: Rank, tag: i32) -> Wait {
    of(Kind::Receive, Some(peer), Some(tag))
}

fn send(peer: Rank, tag: i32) -> Wait {
    of(Kind::Send, Some(peer), Some(tag))
}

fn step(peer: Rank, number: i32) -> Wait {
    Wait {
        context: WORLD + 1,
        ..of(Kind::Collective, Some(peer), Some(number))
    }
}

/// A rank of three in a call, after this many collective calls.
fn waits(call: &str, waits: &[Wait], calls: i32) -> Report {
    Report {
        waited: 10_000,
        quiet: true,
        call: call.into(),
        waits: waits.to_vec(),
        comms: vec![world(3, calls)],
        ..Report::default()
    }
}

fn state_of(report: Report) -> RankState {
    RankState {
        state: State::Waits(Box::new(report)),
        site: "a.c:7".into(),
    }
}

fn not_waiting(what: &str) -> RankState {
    RankState {
        state: State::NotWaiting(what.into()),
        site: "a.c:99".into(),
    }
}

fn text_of(all: &[RankState]) -> String {
    let text = page(all, &analyze(all));
    assert!(text.ends_with('\n'));
    text.lines().last().unwrap().trim().to_string()
}

fn all(reports: impl IntoIterator<Item = Report>) -> Vec<RankState> {
    reports.into_iter().map(state_of).collect()
}

#[test]
fn two_that_receive_first() {
    let job = all([
        waits("MPI_Recv", &[recv(1, 7)], 0),
        waits("MPI_Recv", &[recv(0, 7)], 0),
    ]);
    assert_eq!(
        text_of(&job),
        "deadlock: 0 -> 1 -> 0, each in MPI_Recv, tag 7, on MPI_COMM_WORLD at a.c:7."
    );
}

#[test]
fn a_cycle_of_three_is_reported_from_its_lowest_rank() {
    let next = |r: u32| waits("MPI_Ssend", &[send((r + 1) % 3, 1)], 0);
    let text = text_of(&all((0..3).map(next)));
    assert!(
        text.starts_with("deadlock: 0 -> 1 -> 2 -> 0, each in MPI_Ssend, tag 1"),
        "{text}"
    );
}

#[test]
fn a_circle_of_messages_goes_before_the_collective_that_waits_for_it() {
    let mut ranks: Vec<Report> = (0..3)
        .map(|r| waits("MPI_Recv", &[recv((r + 1) % 3, 7)], 0))
        .collect();
    ranks.push(waits("MPI_Barrier", &[step(0, 1)], 1));
    let text = text_of(&all(ranks));
    assert!(
        text.starts_with("deadlock: 0 -> 1 -> 2 -> 0, each in MPI_Recv"),
        "{text}"
    );
}

#[test]
fn a_wrong_tag_is_named() {
    let mut a = waits("MPI_Recv", &[recv(1, 7)], 0);
    a.early.push(Early {
        from: 1,
        source: 1,
        tag: 8,
        context: WORLD,
        bytes: 8,
        partitioned: false,
    });
    let job = all([a, waits("MPI_Recv", &[recv(0, 7)], 0)]);
    let text = text_of(&job);
    let hint = "; a message of rank 1 with tag 8 on MPI_COMM_WORLD is unexpected at rank 0: the receive has tag 7.";
    assert!(text.ends_with(hint), "{text}");
}

#[test]
fn a_partitioned_send_without_a_partitioned_receive_is_named() {
    let early = |partitioned, tag| Early {
        from: 1,
        source: 1,
        tag,
        context: WORLD,
        bytes: 32,
        partitioned,
    };
    let text = |kind, early| {
        let mut a = waits("MPI_Wait", &[of(kind, Some(1), Some(7))], 0);
        a.early.push(early);
        let all = all([a, waits("MPI_Recv", &[recv(0, 7)], 0)]);
        page(&all, &analyze(&all))
    };
    let page = text(Kind::Receive, early(true, 7));
    let hint = "; a partitioned send (MPI_Psend_init) of rank 1 with tag 7 on MPI_COMM_WORLD is unexpected at rank 0: only a receive made by MPI_Precv_init matches it.\n";
    assert!(page.ends_with(hint), "{page}");
    let page = text(Kind::PartReceive, early(false, 7));
    let line = "a message of rank 1, tag 7, on MPI_COMM_WORLD, 32 bytes: a receive made by MPI_Precv_init matches only sends made by MPI_Psend_init\n";
    assert!(page.contains(line), "{page}");
    let page = text(Kind::PartReceive, early(true, 8));
    assert!(page.contains("32 bytes: the receive has tag 7\n"), "{page}");
}

#[test]
fn of_partitioned_communication_nothing_is_proven() {
    let wants = [
        (
            Kind::PartReceive,
            "waits for a partitioned send (MPI_Psend_init) of rank 1, tag 7, on",
        ),
        (
            Kind::PartSend,
            "waits for rank 1 to receive its partitioned send by MPI_Precv_init, tag 7, on",
        ),
        (
            Kind::Ready,
            "waits for partitions of its send to rank 1 to be made ready by MPI_Pready, tag 7, on",
        ),
    ];
    for (kind, what) in wants {
        let a = waits("MPI_Wait", &[of(kind, Some(1), Some(7))], 0);
        let text = text_of(&all([a, waits("MPI_Recv", &[recv(0, 7)], 0)]));
        assert!(
            text.starts_with("not proven to be a deadlock: rank 0 is in MPI_Wait"),
            "{text}"
        );
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn another_communicator_is_named() {
    let mut a = waits("MPI_Recv", &[recv(1, 7)], 0);
    a.early.push(Early {
        from: 1,
        source: 1,
        tag: 7,
        context: 64,
        bytes: 8,
        partitioned: false,
    });
    a.comms.push(Comm {
        context: 64,
        name: "rows".into(),
        ..Comm::default()
    });
    let text = text_of(&all([a, waits("MPI_Recv", &[recv(0, 7)], 0)]));
    assert!(
        text.ends_with("on rows is unexpected at rank 0: the receive is on MPI_COMM_WORLD."),
        "{text}"
    );
}

#[test]
fn a_rank_that_does_not_come_to_a_barrier() {
    let barrier = |peer| waits("MPI_Barrier", &[step(peer, 1)], 1);
    let job = all([barrier(1), barrier(2), waits("MPI_Recv", &[recv(0, 5)], 0)]);
    assert_eq!(
        text_of(&job),
        "deadlock: ranks 0-1 wait in MPI_Barrier on MPI_COMM_WORLD at a.c:7 for rank 2, which is in MPI_Recv at a.c:7 and \
         waits for a message of rank 0, tag 5, on MPI_COMM_WORLD."
    );
}

#[test]
fn different_collectives() {
    let bcast = waits("MPI_Bcast", &[step(1, 4)], 4);
    let job = all([bcast.clone(), waits("MPI_Reduce", &[step(0, 4)], 4), bcast]);
    assert_eq!(
        text_of(&job),
        "deadlock: ranks 0,2 call MPI_Bcast at a.c:7 and rank 1 calls MPI_Reduce at a.c:7 as the same collective of \
         MPI_COMM_WORLD."
    );
}

#[test]
fn a_receive_from_a_rank_that_has_finished() {
    let finished = RankState {
        state: State::Finished,
        site: String::new(),
    };
    // Its last messages may be in flight; otherwise the library ends the receive.
    let text = text_of(&[state_of(waits("MPI_Recv", &[recv(1, 0)], 0)), finished]);
    assert_eq!(text, "not proven to be a deadlock: rank 1 has finished.");
}

#[test]
fn any_of_nobody() {
    let mut a = waits("MPI_Waitany", &[recv(1, 0), recv(2, 0)], 0);
    a.any = true;
    let rest = |peer| waits("MPI_Recv", &[recv(peer, 3)], 0);
    let text = text_of(&all([a, rest(0), rest(0)]));
    assert!(
        text.contains("rank 0 is in MPI_Waitany") && text.contains("only ranks 1-2 can serve it"),
        "{text}"
    );
}

#[test]
fn a_probe_of_anybody_when_all_others_wait() {
    let probe = of(Kind::Probe, None, Some(1));
    let job = all([
        waits("MPI_Probe", &[probe], 0),
        waits("MPI_Recv", &[recv(0, 3)], 0),
        waits("MPI_Recv", &[recv(0, 3)], 0),
    ]);
    let text = text_of(&job);
    assert!(
        text.contains("rank 0 is in MPI_Probe at a.c:7 and waits for a message of any rank, tag 1"),
        "{text}"
    );
}

#[test]
fn a_send_to_a_rank_in_a_barrier() {
    let job = all([
        waits("MPI_Send", &[send(1, 2)], 0),
        waits("MPI_Barrier", &[step(0, 1)], 1),
        waits("MPI_Barrier", &[step(0, 1)], 1),
    ]);
    let text = text_of(&job);
    assert!(
        text.contains("ranks 1-2 wait in MPI_Barrier")
            && text.contains("for rank 0, which is in MPI_Send"),
        "{text}"
    );
}

#[test]
fn a_receive_from_oneself() {
    let text = text_of(&all([waits("MPI_Recv", &[recv(0, 2)], 0)]));
    assert!(
        text.starts_with("deadlock: 0 -> 0, each in MPI_Recv, tag 2"),
        "{text}"
    );
}

#[test]
fn two_are_stuck_while_a_third_computes() {
    let mut job = all([
        waits("MPI_Recv", &[recv(1, 7)], 0),
        waits("MPI_Recv", &[recv(0, 7)], 0),
    ]);
    job.push(not_waiting("running"));
    assert!(text_of(&job).starts_with("deadlock: 0 -> 1 -> 0"));
}

const GRID: u32 = 64;

fn window() -> Comm {
    Comm {
        context: GRID,
        name: "window 'grid'".into(),
        ..world(3, 0)
    }
}

/// A rank that waits for the lock at a rank of the window.
fn locking(target: u32) -> Report {
    let wait = Wait {
        context: GRID,
        source: Some(target),
        ..of(Kind::Lock, None, None)
    };
    let mut report = waits("MPI_Win_lock", &[wait], 0);
    report.comms.push(window());
    report
}

/// A rank's knowledge of the lock at rank 1.
fn knows(count: Option<u32>, holders: &[Rank]) -> Lock {
    Lock {
        context: GRID,
        target: 1,
        count,
        holders: holders.to_vec(),
    }
}

/// The conclusion if ranks have reported this about their locks.
fn text_of_locks(reports: [Report; 3], locks: [Vec<Lock>; 3]) -> String {
    let reports = reports.into_iter().zip(locks);
    let mut states = all(reports.map(|(report, locks)| Report { locks, ..report }));
    name_holders(&mut states);
    text_of(&states)
}

#[test]
fn a_lock_that_is_held_by_who_waits_for_the_one_that_wants_it() {
    let rest = |peer| waits("MPI_Recv", &[recv(peer, 3)], 0);
    let held = knows(Some(1), &[0]);
    for locks in [
        [vec![], vec![held.clone()], vec![]],
        // Rank 1 only sees that some rank does.
        [vec![knows(None, &[0])], vec![knows(Some(1), &[])], vec![]],
    ] {
        assert_eq!(
            text_of_locks([rest(2), rest(0), locking(1)], locks),
            "deadlock: 0 -> 2 -> 0: rank 0 is in MPI_Recv at a.c:7 and waits for a message of rank 2, tag 3, on \
             MPI_COMM_WORLD; rank 2 is in MPI_Win_lock at a.c:7 and waits for the lock at rank 1 of window 'grid', which rank \
             0 holds."
        );
    }
}

#[test]
fn a_lock_with_a_holder_that_nobody_knows_proves_nothing() {
    let rest = |peer| waits("MPI_Recv", &[recv(peer, 3)], 0);
    for lock in [knows(Some(2), &[0]), knows(None, &[0]), knows(Some(0), &[])] {
        let text = text_of_locks([rest(2), rest(0), locking(1)], [vec![], vec![lock], vec![]]);
        assert!(text.starts_with("not proven to be a deadlock"), "{text}");
    }
}

#[test]
fn a_lock_of_another_window_with_the_same_context_is_not_meant() {
    let mut wants = locking(1);
    wants.comms[1].members = vec![2];
    let rest = |peer| waits("MPI_Recv", &[recv(peer, 3)], 0);
    let locks = [vec![], vec![knows(Some(1), &[0])], vec![]];
    let text = text_of_locks([rest(2), rest(0), wants], locks);
    assert!(text.starts_with("not proven to be a deadlock"), "{text}");
}

#[test]
fn ranks_that_have_not_posted_or_completed() {
    let wait = |kind, peer| Wait {
        context: GRID,
        ..of(kind, Some(peer), None)
    };
    let mut starts = waits("MPI_Win_complete", &[wait(Kind::Post, 1)], 0);
    let mut exposes = waits("MPI_Win_wait", &[wait(Kind::Complete, 0)], 0);
    starts.comms.push(window());
    exposes.comms.push(window());
    let text = text_of(&all([starts, exposes]));
    assert!(
        text.contains("rank 0 is in MPI_Win_complete at a.c:7 and waits for rank 1 to call MPI_Win_post, on window 'grid'")
            && text.contains("rank 1 is in MPI_Win_wait at a.c:7 and waits for rank 0 to call MPI_Win_complete, on window"),
        "{text}"
    );
}

// Cases that only look like a hang.

#[test]
fn a_rank_that_computes_is_no_deadlock() {
    let mut job = all([
        waits("MPI_Recv", &[recv(2, 7)], 0),
        waits("MPI_Recv", &[recv(0, 7)], 0),
    ]);
    job.push(not_waiting("running, 40 s of CPU time"));
    assert_eq!(
        text_of(&job),
        "not a deadlock: rank 2 does not wait in MPI (running, 40 s of CPU time) at a.c:99; rank 0 has waited for it for \
         10.0 s."
    );
}

#[test]
fn a_message_under_way_is_no_deadlock() {
    let mut a = waits("MPI_Recv", &[recv(1, 7)], 0);
    a.quiet = false;
    let text = text_of(&all([a, waits("MPI_Recv", &[recv(0, 7)], 0)]));
    assert!(
        text.starts_with("not proven to be a deadlock: rank 0") && text.contains("under way"),
        "{text}"
    );
}

#[test]
fn another_thread_may_send() {
    let mut a = waits("MPI_Recv", &[recv(1, 7)], 0);
    a.threads = true;
    let text = text_of(&all([a, waits("MPI_Recv", &[recv(0, 7)], 0)]));
    assert!(
        text.starts_with("not proven to be a deadlock: rank 0") && text.contains("threads"),
        "{text}"
    );
}

#[test]
fn one_of_any_is_enough() {
    let mut a = waits("MPI_Waitany", &[recv(1, 0), recv(2, 0)], 0);
    a.any = true;
    let mut job = all([a.clone(), waits("MPI_Recv", &[recv(0, 3)], 0)]);
    job.push(not_waiting(""));
    assert!(text_of(&job).starts_with("not a deadlock: rank 2"));
    a.any = false;
    job[0] = state_of(a);
    assert!(
        text_of(&job).starts_with("deadlock: 0 -> 1 -> 0"),
        "all of them are needed"
    );
}

#[test]
fn a_rank_that_polls_may_do_something_else() {
    let mut a = waits("MPI_Test", &[recv(1, 7)], 0);
    a.polls = true;
    let text = text_of(&all([a, waits("MPI_Recv", &[recv(0, 7)], 0)]));
    assert!(
        text.contains("calls MPI_Test at a.c:7 again and again"),
        "{text}"
    );
}

#[test]
fn a_collective_in_the_background_goes_on_while_its_rank_waits_for_something_else() {
    let mut a = waits("MPI_Recv", &[recv(1, 7)], 1);
    let job = |a: Report| all([a, waits("MPI_Barrier", &[step(0, 1)], 1)]);
    a.runs = vec![Run {
        context: WORLD + 1,
        number: 1,
        waits: Vec::new(),
    }];
    assert!(
        text_of(&job(a.clone())).starts_with("not proven"),
        "its part is done"
    );
    a.runs[0].waits = vec![step(1, 2)];
    assert!(
        text_of(&job(a)).starts_with("deadlock"),
        "its part waits for a call that never comes"
    );
}

#[test]
fn a_rank_of_another_communicator_is_not_missing() {
    let barrier = |peer| {
        let mut a = waits("MPI_Barrier", &[step(peer, 1)], 1);
        a.comms[0].members = vec![0, 1];
        a
    };
    let job = all([
        barrier(1),
        waits("MPI_Recv", &[recv(0, 5)], 0),
        waits("MPI_Recv", &[recv(0, 5)], 0),
    ]);
    assert!(
        text_of(&job).contains("ranks 0") || text_of(&job).contains("for rank 1, which"),
        "{}",
        text_of(&job)
    );
    assert!(!text_of(&job).contains("rank 2"));
}

#[test]
fn hundreds_of_ranks_are_a_page() {
    let size = 512;
    let ring = (0..size).map(|r| {
        let mut report = waits("MPI_Recv", &[recv((r + 1) % size, 7)], 0);
        report.comms = vec![world(size, 0)];
        report.waited += u64::from(r);
        report
    });
    let job = all(ring);
    let text = page(&job, &analyze(&job));
    assert!(text.lines().count() < 10, "{text}");
    assert!(
        text.contains("ranks 0-511: in MPI_Recv for 10.0 to 10.5 s"),
        "{text}"
    );
    assert!(
        text.contains("0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> ... (512 ranks) -> 0"),
        "{text}"
    );
    let apart = all((0..size).map(|r| waits("MPI_Recv", &[recv(0, r as i32)], 0)));
    assert!(page(&apart, &analyze(&apart)).lines().count() < 60);
}

#[test]
fn what_was_reported_twice_stands() {
    let first = waits("MPI_Recv", &[recv(1, 7)], 0);
    let second = Report {
        round: 2,
        waited: 11_000,
        ..first.clone()
    };
    assert!(second.stands(&first));
    assert!(!Report { mark: 1, ..second }.stands(&first));
}
