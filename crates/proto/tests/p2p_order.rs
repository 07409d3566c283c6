//! Whatever the protocols and the network's timing: messages match exactly as the standard says
//! (MPI 5.0, 3.5).
//!
//! Three machines over a simulated network that delivers frames of each pair in order but otherwise
//! when it likes, in pieces or whole. Receives name their source, or there is one sender only, so
//! the standard fixes every match; the reference is two plain lists.

mod net;

use kw_base::Peer;
use kw_base::counters::Counter;
use kw_proto::endpoint::{Found, Memory, ReqId};
use kw_proto::matching::{Envelope, Pattern};
use kw_proto::p2p::table::Choice;
use kw_proto::p2p::{Mode, Started};
use net::{Mem, Net};
use proptest::prelude::*;
use std::rc::Rc;

/// Context of point-to-point messages.
const CONTEXT: u32 = 4;
/// Context of collectives.
const COLLECTIVE: u32 = 5;

#[derive(Clone, Debug)]
enum Op {
    Send {
        from: usize,
        to: usize,
        tag: i32,
        size: usize,
        mode: Mode,
    },
    Recv {
        me: usize,
        source: usize,
        any_source: bool,
        tag: Option<i32>,
        size: usize,
    },
    Deliver {
        wire: usize,
        piecewise: bool,
    },
    /// Cancels the receive that was posted this many receives ago, if it is not matched.
    Cancel {
        ago: usize,
    },
    /// A rank has waited for long.
    LosePatience {
        me: usize,
    },
}

fn op(n: usize) -> impl Strategy<Value = Op> {
    let size = prop_oneof![0usize..8, 8usize..40, 60usize..100];
    let size2 = prop_oneof![4 => Just(100usize), 1 => 0usize..100];
    let mode = prop_oneof![7 => Just(Mode::Standard), 1 => Just(Mode::Synchronous), 2 => Just(Mode::Fetched)];
    prop_oneof![
        4 => (0..n, 0..n, 0i32..3, size, mode).prop_map(|(from, to, tag, size, mode)| Op::Send { from, to, tag, size, mode }),
        4 => (0..n, 0..n, prop::option::weighted(0.7, 0i32..3), size2).prop_map(|(me, source, tag, size)| Op::Recv { me, source, any_source: false, tag, size }),
        6 => (0..n * n, any::<bool>()).prop_map(|(wire, piecewise)| Op::Deliver { wire, piecewise }),
        1 => (0usize..6).prop_map(|ago| Op::Cancel { ago }),
        1 => (0..n).prop_map(|me| Op::LosePatience { me }),
    ]
}

/// Result of a receive.
enum Receive {
    /// It took its message from the network.
    Direct(Found),
    Request(ReqId),
}

struct Posted {
    me: usize,
    want: Pattern,
    receive: Receive,
    buf: Mem,
    expect: Option<Vec<u8>>,
}

struct Sent {
    from: usize,
    to: usize,
    tag: i32,
    payload: Vec<u8>,
    started: Started,
}

fn run(
    n: usize,
    ops: Vec<Op>,
    choice: Choice,
    get_works: bool,
    one_sender: bool,
) -> Result<(u64, u64), TestCaseError> {
    run_over(Net::new(n, choice, get_works), ops, one_sender)
}

fn run_over(net: Net, ops: Vec<Op>, one_sender: bool) -> Result<(u64, u64), TestCaseError> {
    use kw_base::counters::Counter::*;
    let counted = run_counting(net, ops, one_sender, &[WriteSent, WriteDropped])?;
    Ok((counted[0], counted[1]))
}

/// Runs them, and returns the sums of the counters of all ranks.
fn run_counting(
    mut net: Net,
    ops: Vec<Op>,
    one_sender: bool,
    counters: &[Counter],
) -> Result<Vec<u64>, TestCaseError> {
    let mut posted: Vec<Posted> = Vec::new();
    let mut sent: Vec<Sent> = Vec::new();
    for (serial, op) in ops.into_iter().enumerate() {
        match op {
            Op::Send {
                from,
                to,
                tag,
                size,
                mode,
            } => {
                let (from, to) = if one_sender { (0, 1) } else { (from, to) };
                let mut payload = vec![serial as u8; size];
                payload
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, b)| *b = b.wrapping_add(i as u8).wrapping_mul(31));
                let buf = Mem::new(payload.clone());
                net.sources.push((Rc::as_ptr(&buf.0) as u64, buf.clone()));
                let env = Envelope {
                    context: net.context,
                    source: from as u32,
                    tag,
                };
                let started = net.machines[from]
                    .sender()
                    .send(Peer(to as u32), env, mode, &buf);
                net.act(from);
                sent.push(Sent {
                    from,
                    to,
                    tag,
                    payload,
                    started,
                });
            }
            Op::Recv {
                me,
                source,
                any_source,
                tag,
                size,
            } => {
                let (me, source) = if one_sender { (1, 0) } else { (me, source) };
                let any_source = any_source || one_sender && serial % 3 == 0;
                let buf = Mem::new(vec![0; size]);
                let want = Pattern {
                    context: net.context,
                    source: (!any_source).then_some(source as u32),
                    tag: tag.or((net.context == COLLECTIVE).then_some(0)),
                };
                let from = (!any_source).then_some(source);
                let receive = match from.and_then(|f| net.take_next(me, f, want, &buf)) {
                    Some(found) => Receive::Direct(found),
                    None => {
                        let from = from.map(|f| Peer(f as u32));
                        Receive::Request(net.machines[me].receiver().recv(want, from, buf.clone()))
                    }
                };
                net.act(me);
                posted.push(Posted {
                    me,
                    want,
                    receive,
                    buf,
                    expect: None,
                });
            }
            Op::Deliver { wire, piecewise } => {
                net.step(wire, piecewise);
            }
            Op::LosePatience { me } => {
                net.machines[me].sender().offer_deferred();
                net.act(me);
            }
            Op::Cancel { ago } => {
                let Some(at) = posted.len().checked_sub(ago + 1) else {
                    continue;
                };
                let Receive::Request(key) = posted[at].receive else {
                    continue;
                };
                let me = &mut net.machines[posted[at].me];
                me.cancel(key);
                let requests = &mut me.endpoint.requests;
                if requests.peek(key).is_some_and(|outcome| outcome.cancelled) {
                    requests.take(key);
                    posted.remove(at);
                }
            }
        }
    }
    net.deliver_all();
    net.offer_deferred();
    // Reference: for each receiver, its receives in order take the first unmatched message that
    // fits.
    let mut free: Vec<bool> = vec![true; sent.len()];
    for p in posted.iter_mut() {
        let fits = |s: &Sent| {
            s.to == p.me
                && p.want.source.is_none_or(|x| x == s.from as u32)
                && p.want.tag.is_none_or(|t| t == s.tag)
        };
        if let Some(i) = (0..sent.len()).find(|&i| free[i] && fits(&sent[i])) {
            free[i] = false;
            p.expect = Some(sent[i].payload.clone());
        }
    }
    for p in &posted {
        let key = match p.receive {
            Receive::Request(key) => key,
            Receive::Direct(found) => {
                let expect = p.expect.as_ref().expect("a message that was never sent");
                prop_assert_eq!(found.len as usize, expect.len());
                prop_assert_eq!(&p.buf.bytes()[..expect.len()], &expect[..]);
                continue;
            }
        };
        let done = net.machines[p.me].endpoint.requests.is_done(key);
        prop_assert_eq!(
            done,
            p.expect.is_some(),
            "receive {:?} done: {}",
            p.want,
            done
        );
        if let Some(expect) = &p.expect {
            let out = net.machines[p.me].endpoint.requests.take(key).unwrap();
            let n = expect.len().min(p.buf.len() as usize);
            prop_assert_eq!(out.len as usize, n);
            prop_assert_eq!(out.failure.is_some(), expect.len() > n);
            prop_assert_eq!(&p.buf.bytes()[..n], &expect[..n]);
        } else {
            net.machines[p.me].cancel(key);
            net.act(p.me);
            prop_assert!(
                net.machines[p.me]
                    .endpoint
                    .requests
                    .take(key)
                    .unwrap()
                    .cancelled
            );
        }
    }
    clear(&mut net, &sent, &free)?;
    for (i, s) in sent.iter().enumerate() {
        if let Started::Request(k) = s.started {
            prop_assert!(
                net.machines[s.from].endpoint.requests.take(k).is_some(),
                "send {i} has not ended"
            );
        }
    }
    let total = |&c: &Counter| {
        net.machines
            .iter()
            .map(|m| m.endpoint.out.counters.get(c))
            .sum()
    };
    Ok(counters.iter().map(total).collect())
}

/// Finds by probes the messages that were not received, kept back or not: each rank gets all of
/// its.
fn clear(net: &mut Net, sent: &[Sent], free: &[bool]) -> Result<(), TestCaseError> {
    let any = Pattern {
        context: net.context,
        source: None,
        tag: None,
    };
    for me in 0..net.n {
        let mut left: Vec<&Sent> = (0..sent.len())
            .filter(|&i| free[i] && sent[i].to == me)
            .map(|i| &sent[i])
            .collect();
        while !left.is_empty() {
            let Some((message, found)) = net.machines[me].receiver().take_message(any, None) else {
                net.act(me);
                prop_assert!(net.busy(), "{} message(s) never come", left.len());
                net.deliver_all();
                continue;
            };
            // Messages of collectives with different tags may overtake each other.
            let any_tag = net.context == CONTEXT;
            let is_it =
                |s: &&Sent| s.from as u32 == found.source && (any_tag || s.tag == found.tag);
            let first = left.iter().position(is_it);
            let expect = left.remove(first.unwrap());
            prop_assert_eq!(found.tag, expect.tag);
            let buf = Mem::new(vec![0; found.len as usize]);
            let key = net.machines[me]
                .receiver()
                .recv_message(message, &buf)
                .unwrap();
            net.act(me);
            net.deliver_all();
            prop_assert!(net.machines[me].endpoint.requests.take(key).is_some());
            prop_assert_eq!(&buf.bytes(), &expect.payload);
        }
        prop_assert!(
            net.machines[me]
                .receiver()
                .take_message(any, None)
                .is_none()
        );
    }
    Ok(())
}

const WITH_WRITE: Choice = Choice {
    eager_max: 8,
    get_min: u64::MAX,
    announce_min: 9,
};
const WITH_GET: Choice = Choice {
    eager_max: 8,
    get_min: 60,
    announce_min: u64::MAX,
};
const WITH_BOTH: Choice = Choice {
    eager_max: 8,
    get_min: 60,
    announce_min: 9,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn write_keeps_the_order(ops in prop::collection::vec(op(3), 0..80)) {
        run(3, ops, WITH_WRITE, false, false)?;
    }

    #[test]
    fn get_keeps_the_order(ops in prop::collection::vec(op(3), 0..80), works: bool) {
        run(3, ops, WITH_GET, works, false)?;
    }

    #[test]
    fn all_protocols_with_wildcard_sources_keep_the_order(ops in prop::collection::vec(op(2), 0..80)) {
        run(2, ops, WITH_BOTH, true, true)?;
    }

    /// The order test with receives from named sources that bypass the queues when possible.
    #[test]
    fn messages_that_are_taken_from_the_path_keep_the_order(
        ops in prop::collection::vec(op(2), 0..80), slow: bool, one_sender: bool
    ) {
        let mut net = Net::new(2, WITH_BOTH, true).open(WITH_BOTH);
        net.slow = slow;
        run_over(net, ops, one_sender)?;
    }

    /// The order test with almost no room for unexpected messages: senders are paused all the time.
    #[test]
    fn messages_that_are_kept_back_keep_the_order(
        ops in prop::collection::vec(op(3), 0..80), mark in 1u64..2000, slow: bool, works: bool
    ) {
        let mut net = Net::new(3, WITH_BOTH, works);
        net.machines.iter_mut().for_each(|m| m.set_mark(mark));
        net.slow = slow;
        run_over(net, ops, false)?;
    }

    #[test]
    fn messages_that_are_kept_back_keep_the_order_with_wildcard_sources(
        ops in prop::collection::vec(op(2), 0..80), mark in 1u64..2000, slow: bool
    ) {
        let mut net = Net::new(2, WITH_BOTH, false);
        net.machines.iter_mut().for_each(|m| m.set_mark(mark));
        net.slow = slow;
        run_over(net, ops, true)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Collectives name tag and source in each receive, and may withhold messages, whatever
    /// mistakes their callers make.
    #[test]
    fn messages_that_are_deferred_keep_the_order(
        ops in prop::collection::vec(op(3), 0..120), slow: bool, open: bool
    ) {
        let mut net = Net::new(3, WITH_WRITE, false);
        if open {
            net = net.open(WITH_WRITE);
        }
        (net.slow, net.context) = (slow, COLLECTIVE);
        run_over(net, ops, false)?;
    }
}

/// The papers' availability rate: with receives posted early, every large message is written.
#[test]
fn early_receives_make_every_large_message_a_write() {
    let mut ops = Vec::new();
    for _ in 0..10 {
        ops.push(Op::Recv {
            me: 1,
            source: 0,
            any_source: false,
            tag: Some(1),
            size: 100,
        });
        ops.push(Op::Deliver {
            wire: 2,
            piecewise: false,
        });
        ops.push(Op::Send {
            from: 0,
            to: 1,
            tag: 1,
            size: 90,
            mode: Mode::Standard,
        });
        ops.push(Op::Deliver {
            wire: 1,
            piecewise: false,
        });
    }
    assert_eq!(run(2, ops, WITH_WRITE, false, false).unwrap(), (10, 0));
}

/// Collectives' long messages wait for the announcement of their receive, and are never offered,
/// once the sender knows that the receiver announces receives of that length; behind a short one of
/// the same tag they are offered.
#[test]
fn a_long_message_of_a_collective_waits_for_its_announcement() {
    let count = |ops: Vec<Op>| {
        let mut net = Net::new(2, WITH_WRITE, false);
        net.context = COLLECTIVE;
        run_counting(net, ops, false, &[Counter::WriteSent, Counter::RndvOffered]).unwrap()
    };
    let send = |tag| long_send(tag, Mode::Standard);
    let recv = |tag| Op::Recv {
        me: 1,
        source: 0,
        any_source: false,
        tag: Some(tag),
        size: 90,
    };
    let there = || Op::Deliver {
        wire: 2,
        piecewise: false,
    };
    // The receiver has announced one before.
    let known = || vec![recv(1), there(), send(1), recv(2), there()];
    let and = |more: Vec<Op>| known().into_iter().chain(more).collect();
    assert_eq!(count(known()), [1, 0]);
    let late = vec![send(2), send(3), send(3), recv(3), recv(3)];
    assert_eq!(count(and(late)), [4, 0]);
    let short = Op::Send {
        from: 0,
        to: 1,
        tag: 3,
        size: 3,
        mode: Mode::Standard,
    };
    assert_eq!(count(and(vec![short, send(3), recv(3), recv(3)]))[1], 1);
}

fn long_send(tag: i32, mode: Mode) -> Op {
    Op::Send {
        from: 0,
        to: 1,
        tag,
        size: 90,
        mode,
    }
}

fn long_recv(tag: i32) -> Op {
    Op::Recv {
        me: 1,
        source: 0,
        any_source: false,
        tag: Some(tag),
        size: 100,
    }
}

/// Writes and dropped announcements of two ranks that announce.
fn writes(ops: Vec<Op>) -> (u64, u64) {
    run(2, ops, WITH_WRITE, false, false).unwrap()
}

#[test]
fn an_announcement_that_crosses_an_offer_answers_it() {
    let standard = Mode::Standard;
    let ops = vec![
        long_send(1, standard),
        long_recv(1),
        long_recv(1),
        long_send(1, standard),
    ];
    assert_eq!(writes(ops), (2, 0));
}

#[test]
fn an_announcement_that_crosses_other_messages_holds() {
    let short = |tag| Op::Send {
        from: 0,
        to: 1,
        tag,
        size: 3,
        mode: Mode::Standard,
    };
    let there = Op::Deliver {
        wire: 2,
        piecewise: false,
    };
    let standard = Mode::Standard;
    // Of another tag: it does not matter.
    let ops = vec![
        short(2),
        long_recv(1),
        there.clone(),
        long_send(1, standard),
    ];
    assert_eq!(writes(ops), (1, 0));
    // Of the same tag: it takes the receive.
    let ops = vec![
        short(1),
        long_recv(1),
        there.clone(),
        long_send(1, standard),
    ];
    assert_eq!(writes(ops), (0, 1));
    // More of them than are remembered.
    let mut ops: Vec<Op> = (0..100).map(|_| short(2)).collect();
    ops.extend([long_recv(1), there, long_send(1, standard)]);
    assert_eq!(writes(ops), (0, 1));
}

/// A synchronous send must know that its receive was not cancelled meanwhile.
#[test]
fn an_announcement_does_not_answer_a_synchronous_offer() {
    let ops = vec![long_send(1, Mode::Synchronous), long_recv(1)];
    assert_eq!(writes(ops), (0, 1));
}

/// The sender takes its message for the cancelled receive's; the receiver keeps it, and it goes to
/// the next receive.
#[test]
fn payload_for_a_cancelled_receive_finds_its_message() {
    let [announcement, offer] = [2, 1].map(|wire| Op::Deliver {
        wire,
        piecewise: false,
    });
    let cancel = Op::Cancel { ago: 0 };
    let standard = Mode::Standard;
    let mut ops = vec![
        long_send(1, standard),
        long_recv(1),
        cancel,
        announcement,
        offer.clone(),
    ];
    assert_eq!(writes(ops.clone()), (1, 0));
    // Also where the next receive is there already when the payload comes,
    ops.push(long_recv(1));
    assert_eq!(writes(ops.clone()), (1, 0));
    // and where it comes after that.
    ops.insert(5, offer);
    assert_eq!(writes(ops), (1, 0));
}
