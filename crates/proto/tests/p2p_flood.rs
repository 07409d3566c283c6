//! Receivers that keep too much tell their senders to pause, and never if the program may need a
//! message that is kept back.

mod net;

use kw_base::Peer;
use kw_base::counters::Counter;
use kw_proto::endpoint::ReqId;
use kw_proto::matching::{Envelope, Pattern};
use kw_proto::p2p::table::Choice;
use kw_proto::p2p::{Mode, Started};
use net::{Mem, Net};

/// The context of point-to-point messages, and that of collectives beside it.
const CONTEXT: u32 = 4;
const COLLECTIVES: u32 = 5;
const MARK: u64 = 10_000;
/// More than any receiver may keep here.
const MANY: usize = 1000;

const EAGER: Choice = Choice {
    eager_max: 100,
    get_min: u64::MAX,
    announce_min: u64::MAX,
};

fn keeps_back(net: &Net, me: usize) -> bool {
    let machine = &net.machines[me];
    machine.p2p.sending.keeps_back(&machine.endpoint.peers)
}

fn net(n: usize) -> Net {
    let mut net = Net::new(n, EAGER, false);
    net.slow = true;
    net.machines.iter_mut().for_each(|m| m.set_mark(MARK));
    net
}

fn send_in(net: &mut Net, context: u32, from: usize, to: usize, tag: i32) -> ReqId {
    let source = from as u32;
    let env = Envelope {
        context,
        source,
        tag,
    };
    let buf = Mem::new(vec![tag as u8; 8]);
    let started = net.machines[from]
        .sender()
        .send(Peer(to as u32), env, Mode::Standard, &buf);
    net.act(from);
    match started {
        Started::Request(key) => key,
        Started::Done => panic!("the machine says so only of frames that its owner sends"),
    }
}

fn send(net: &mut Net, from: usize, to: usize, tag: i32) -> ReqId {
    send_in(net, CONTEXT, from, to, tag)
}

fn flood(net: &mut Net, from: usize, to: usize) -> Vec<ReqId> {
    let sent = (0..MANY).map(|_| send(net, from, to, 1)).collect();
    net.deliver_all();
    sent
}

fn want(source: Option<u32>, tag: i32) -> Pattern {
    Pattern {
        context: CONTEXT,
        source,
        tag: Some(tag),
    }
}

fn receive(net: &mut Net, me: usize, source: Option<u32>, tag: i32) -> ReqId {
    let buf = Mem::new(vec![0; 8]);
    let key = net.machines[me]
        .receiver()
        .recv(want(source, tag), source.map(Peer), buf.clone());
    net.act(me);
    net.deliver_all();
    key
}

fn kept(net: &Net, me: usize) -> u64 {
    net.machines[me].p2p.receiving.waiting()
}

fn pauses(net: &Net, me: usize) -> u64 {
    net.machines[me]
        .endpoint
        .out
        .counters
        .get(Counter::PausesSent)
}

fn drained(net: &mut Net, me: usize, from: u32, messages: usize) {
    for i in 0..messages {
        let key = receive(net, me, Some(from), 1);
        assert!(
            net.machines[me].endpoint.requests.take(key).is_some(),
            "message {i}"
        );
    }
}

#[test]
fn a_flooded_rank_keeps_about_the_mark_and_gets_everything() {
    let mut net = net(2);
    let sent = flood(&mut net, 0, 1);
    assert!(kept(&net, 1) < 3 * MARK / 280, "{} kept", kept(&net, 1));
    assert_eq!(pauses(&net, 1), 1);
    assert!(keeps_back(&net, 0));
    drained(&mut net, 1, 0, MANY);
    assert!(!keeps_back(&net, 0) && !net.machines[0].p2p.sending.is_stalled());
    assert!(
        sent.iter()
            .all(|&k| net.machines[0].endpoint.requests.is_done(k))
    );
    assert!(pauses(&net, 1) > 5, "it is told again and again");
}

#[test]
fn a_posted_receive_lets_its_sender_go_and_no_other() {
    let mut net = net(3);
    for from in [0, 2] {
        flood(&mut net, from, 1);
        send(&mut net, from, 1, 2);
    }
    assert_eq!(pauses(&net, 1), 2);
    let key = receive(&mut net, 1, Some(2), 2);
    assert!(net.machines[1].endpoint.requests.take(key).is_some());
    assert!(!keeps_back(&net, 2) && keeps_back(&net, 0));
    let key = receive(&mut net, 1, None, 2);
    assert!(net.machines[1].endpoint.requests.take(key).is_some());
    assert!(!keeps_back(&net, 0));
}

#[test]
fn while_a_receive_is_posted_no_sender_that_could_satisfy_it_is_paused() {
    let mut net = net(3);
    let wanted = receive(&mut net, 1, Some(0), 2);
    flood(&mut net, 0, 1);
    flood(&mut net, 2, 1);
    assert!(kept(&net, 1) > MANY as u64);
    assert!(!keeps_back(&net, 0) && keeps_back(&net, 2));
    send(&mut net, 0, 1, 2);
    net.deliver_all();
    assert!(net.machines[1].endpoint.requests.take(wanted).is_some());
}

#[test]
fn each_probe_in_vain_lets_a_portion_through() {
    let mut net = net(2);
    flood(&mut net, 0, 1);
    send(&mut net, 0, 1, 2);
    let (mut before, mut probes) = (kept(&net, 1), 0);
    while net.machines[1]
        .receiver()
        .probe(want(None, 2), None)
        .is_none()
    {
        net.act(1);
        net.deliver_all();
        let now = kept(&net, 1);
        assert!(now > before && now - before < MARK / 100, "{before} {now}");
        (before, probes) = (now, probes + 1);
    }
    assert!(probes > 10, "{probes}");
}

#[test]
fn a_program_that_waits_for_something_else_lets_a_portion_through() {
    let mut net = net(2);
    flood(&mut net, 0, 1);
    let before = kept(&net, 1);
    net.machines[1].receiver().let_through();
    net.act(1);
    net.deliver_all();
    assert!(kept(&net, 1) > before && keeps_back(&net, 0));
}

#[test]
fn what_collectives_send_is_not_kept_back() {
    let mut net = net(2);
    flood(&mut net, 0, 1);
    let key = send_in(&mut net, COLLECTIVES, 0, 1, 9);
    net.deliver_all();
    assert!(net.machines[0].endpoint.requests.is_done(key) && keeps_back(&net, 0));
    let before = pauses(&net, 1);
    for _ in 0..MANY {
        send_in(&mut net, COLLECTIVES, 1, 0, 9);
    }
    net.deliver_all();
    assert_eq!((pauses(&net, 0), pauses(&net, 1)), (0, before));
}

#[test]
fn a_send_that_is_kept_back_can_be_cancelled_and_freed() {
    let mut net = net(2);
    let sent = flood(&mut net, 0, 1);
    let last = send(&mut net, 0, 1, 2);
    net.machines[0].cancel(last);
    assert!(
        net.machines[0]
            .endpoint
            .requests
            .take(last)
            .unwrap()
            .cancelled
    );
    sent.iter()
        .for_each(|&k| net.machines[0].endpoint.requests.release(k));
    drained(&mut net, 1, 0, MANY);
    assert!(!keeps_back(&net, 0));
    assert_eq!(
        (kept(&net, 1), net.machines[0].endpoint.requests.active()),
        (0, 0)
    );
}

#[test]
fn who_is_gone_pauses_nobody_and_is_paused_by_nobody() {
    let mut net = net(2);
    let sent = flood(&mut net, 0, 1);
    net.machines[0].on_gone(Peer(1), "cut");
    net.machines[1].on_gone(Peer(0), "cut");
    assert!(!keeps_back(&net, 0) && !net.machines[1].p2p.receiving.is_pausing());
    assert!(
        sent.iter()
            .all(|&k| net.machines[0].endpoint.requests.is_done(k))
    );
}

#[test]
fn without_a_mark_everything_is_kept() {
    let mut net = net(2);
    net.machines.iter_mut().for_each(|m| m.set_mark(0));
    flood(&mut net, 0, 1);
    assert_eq!((kept(&net, 1), pauses(&net, 1)), (MANY as u64, 0));
}
