//! Numbers of messages of receives that complete in any order.

use super::*;

/// A communicator that no other test uses: numbers of messages are counted for the whole process.
fn comm(number: u32) -> &'static Comm {
    Box::leak(Box::new(Comm::of_all_ranks(number)))
}

fn wanted(comm: &'static Comm, source: i32, tag: i32) -> Wanted {
    Wanted { comm, source, tag }
}

fn message(source: i32, tag: i32) -> Record {
    Record {
        source,
        tag,
        ..Record::EMPTY
    }
}

/// Completes a receive; returns source and number of the messages that become known.
fn complete(all: &mut Receives, at: u32, source: i32, tag: i32) -> Vec<(i32, u64)> {
    let mut out = Vec::new();
    all.complete(at, message(source, tag), &mut out);
    out.iter().map(|r| (r.source, r.n)).collect()
}

#[test]
fn messages_are_numbered_in_the_order_of_their_receives() {
    let (mut all, comm) = (Receives::new(), comm(1001));
    let first = all.post(wanted(comm, 3, 7), 10, None);
    let second = all.post(wanted(comm, 3, 7), 20, None);
    assert_eq!(complete(&mut all, second, 3, 7), []);
    assert_eq!(complete(&mut all, first, 3, 7), [(3, 0), (3, 1)]);
}

#[test]
fn a_receive_from_any_source_holds_up_those_behind_it_that_it_could_have_taken() {
    let (mut all, comm) = (Receives::new(), comm(1002));
    let any = all.post(wanted(comm, ANY, ANY), 10, None);
    let fixed = all.post(wanted(comm, 3, 7), 20, None);
    assert_eq!(complete(&mut all, fixed, 3, 7), []);
    assert_eq!(complete(&mut all, any, 4, 7), [(4, 0), (3, 0)]);
}

#[test]
fn receives_of_other_tags_sources_or_communicators_hold_up_nothing() {
    let (mut all, one, other) = (Receives::new(), comm(1003), comm(1004));
    all.post(wanted(one, 3, 8), 10, None);
    all.post(wanted(one, 4, 7), 11, None);
    all.post(wanted(other, 3, 7), 12, None);
    let fixed = all.post(wanted(one, 3, 7), 20, None);
    assert_eq!(complete(&mut all, fixed, 3, 7), [(3, 0)]);
}

#[test]
fn a_cancelled_receive_lets_those_behind_it_go_on() {
    let (mut all, comm) = (Receives::new(), comm(1005));
    let first = all.post(wanted(comm, ANY, 7), 10, None);
    let second = all.post(wanted(comm, 3, 7), 20, None);
    assert_eq!(complete(&mut all, second, 3, 7), []);
    let mut out = Vec::new();
    all.cancelled(first, &mut out);
    assert_eq!(out.iter().map(|r| r.n).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_message_that_was_probed_for_keeps_its_number() {
    let (mut all, comm) = (Receives::new(), comm(1006));
    let probe = all.post(wanted(comm, ANY, 7), 10, None);
    let mut out = Vec::new();
    let n = all.number_of(probe, message(3, 7), &mut out);
    assert_eq!((n, out.len()), (0, 0));
    let behind = all.post(wanted(comm, 3, 7), 20, None);
    let matched = all.post(wanted(comm, 3, 7), 30, Some(n));
    assert_eq!(complete(&mut all, behind, 3, 7), [(3, 1)]);
    assert_eq!(complete(&mut all, matched, 3, 7), [(3, 0)]);
}

#[test]
fn after_a_message_that_nobody_saw_no_number_is_certain() {
    let (mut all, comm) = (Receives::new(), comm(1007));
    all.post_request(5, wanted(comm, 3, 7), 10, None);
    all.free_request(5); // MPI_Request_free of a receive in flight
    assert!(all.is_broken());
    let next = all.post(wanted(comm, 3, 7), 20, None);
    assert_eq!(complete(&mut all, next, 3, 7), [(3, NONE)]);
}

#[test]
fn the_end_tells_what_still_waits() {
    let (mut all, comm) = (Receives::new(), comm(1008));
    all.post(wanted(comm, ANY, 7), 10, None);
    let second = all.post(wanted(comm, 3, 7), 20, None);
    assert_eq!(complete(&mut all, second, 3, 7), []);
    let mut out = Vec::new();
    all.end(&mut out);
    assert_eq!(out.iter().map(|r| r.source).collect::<Vec<_>>(), [3]);
    assert_eq!(all.waiting, 0);
}

#[test]
fn entries_are_used_again() {
    let (mut all, comm) = (Receives::new(), comm(1009));
    for n in 0..100 {
        let at = all.post(wanted(comm, 3, 7), 10, None);
        assert_eq!(complete(&mut all, at, 3, 7), [(3, n)]);
    }
    assert_eq!(all.entries.len(), 1);
}
