//! A rank that waits for a rank in MPI_Finalize is told once, after everything that rank has sent.

mod net;

use kw_base::{ContextId, Peer};
use kw_proto::endpoint::{Awaits, Failure, ReqId};
use kw_proto::matching::{Envelope, Pattern};
use kw_proto::p2p::table::Choice;
use kw_proto::p2p::{Mode, Started};
use net::{Mem, Net};

const CONTEXT: u32 = 4;

const EAGER_TO_100: Choice = Choice {
    eager_max: 100,
    get_min: u64::MAX,
    announce_min: u64::MAX,
};

fn net(n: usize) -> Net {
    Net::new(n, EAGER_TO_100, false)
}

fn send(net: &mut Net, from: usize, to: usize, mode: Mode, len: usize) -> ReqId {
    let env = Envelope {
        context: CONTEXT,
        source: from as u32,
        tag: 1,
    };
    let buf = Mem::new(vec![1; len]);
    let started = net.machines[from]
        .sender()
        .send(Peer(to as u32), env, mode, &buf);
    net.act(from);
    match started {
        Started::Request(key) => key,
        Started::Done => panic!("the machine says so only of frames that its owner sends"),
    }
}

fn recv(net: &mut Net, me: usize, from: Option<u32>) -> ReqId {
    let want = Pattern {
        context: CONTEXT,
        source: from,
        tag: Some(1),
    };
    let key = net.machines[me]
        .receiver()
        .recv(want, from.map(Peer), Mem::new(vec![0; 1000]));
    net.act(me);
    key
}

fn ask(net: &mut Net, me: usize, peer: u32) {
    let machine = &mut net.machines[me];
    machine.endpoint.ask(Peer(peer));
    net.act(me);
}

fn leave(net: &mut Net, me: usize) {
    let machine = &mut net.machines[me];
    machine.endpoint.leave();
    net.act(me);
}

#[test]
fn a_rank_that_is_asked_answers_when_it_leaves() {
    let mut net = net(2);
    ask(&mut net, 1, 0);
    net.deliver_all();
    assert_eq!(net.machines[1].endpoint.peers.why_left(Peer(0)), None);
    leave(&mut net, 0);
    net.deliver_all();
    let why = net.machines[1].endpoint.peers.why_left(Peer(0)).unwrap();
    assert!(why.starts_with("rank 0 has called MPI_Finalize"), "{why}");
}

#[test]
fn a_peer_is_asked_once() {
    let mut net = net(2);
    ask(&mut net, 1, 0);
    net.deliver_all();
    ask(&mut net, 1, 0);
    assert!(!net.busy());
    leave(&mut net, 0);
    net.deliver_all();
    ask(&mut net, 1, 0);
    assert!(!net.busy());
}

#[test]
fn what_was_sent_before_the_answer_comes_and_what_was_not_waits() {
    let mut net = net(2);
    let lens = [10, 500];
    for len in lens {
        send(&mut net, 0, 1, Mode::Standard, len);
    }
    leave(&mut net, 0);
    ask(&mut net, 1, 0);
    net.deliver_all();
    assert!(net.machines[1].endpoint.peers.why_left(Peer(0)).is_some());
    for len in lens {
        let req = recv(&mut net, 1, Some(0));
        net.deliver_all();
        let outcome = net.machines[1].endpoint.requests.take(req).unwrap();
        assert_eq!((outcome.len, outcome.failure), (len as u64, None));
    }
    let more = recv(&mut net, 1, Some(0));
    assert_eq!(
        net.machines[1].endpoint.requests.awaits(more),
        Awaits::Peer(Peer(0))
    );
    net.machines[1].fail(more, "rank 0 left");
    let failure = net.machines[1]
        .endpoint
        .requests
        .take(more)
        .unwrap()
        .failure;
    let gone = Failure::PeerGone("rank 0 left".into());
    assert_eq!(failure.as_deref(), Some(&gone));
    assert_eq!(net.machines[1].p2p.receiving.posted(), 0);
}

#[test]
fn only_what_the_peer_must_answer_waits_for_it() {
    let mut net = net(3);
    let offered = send(&mut net, 1, 0, Mode::Standard, 500);
    let synchronous = send(&mut net, 1, 0, Mode::Synchronous, 10);
    let eager = send(&mut net, 1, 0, Mode::Standard, 10);
    let any = recv(&mut net, 1, None);
    net.deliver_all();
    let own = net.machines[1].endpoint.requests.open();
    let awaits = |key| net.machines[1].endpoint.requests.awaits(key);
    assert_eq!(awaits(offered), Awaits::Peer(Peer(0)));
    assert_eq!(awaits(synchronous), Awaits::Peer(Peer(0)));
    assert_eq!(awaits(eager), Awaits::NoPeer);
    assert_eq!(awaits(any), Awaits::Anyone(ContextId(CONTEXT)));
    assert_eq!(awaits(own), Awaits::Owner);
}

#[test]
fn who_has_left_is_known() {
    let mut net = net(3);
    for peer in [0, 2] {
        assert!(!net.machines[1].endpoint.peers.has_left(Peer(peer)));
        ask(&mut net, 1, peer);
        leave(&mut net, peer as usize);
        net.deliver_all();
    }
    let peers = &net.machines[1].endpoint.peers;
    assert!([0, 2].iter().all(|&p| peers.has_left(Peer(p))));
}
