//! When receives are announced, and when messages are written, offered or fetched: two machines
//! over a simulated network.

mod net;

use kw_base::Peer;
use kw_base::counters::Counter;
use kw_proto::endpoint::ReqId;
use kw_proto::matching::{Envelope, Pattern};
use kw_proto::p2p::table::Choice;
use kw_proto::p2p::{Mode, Started};
use net::{Mem, Net};
use std::rc::Rc;

/// Context of point-to-point messages.
const CONTEXT: u32 = 4;

/// A message that asks to be fetched is fetched, whatever its length and the cost lines say, if
/// that is allowed; its receive is not announced.
#[test]
fn a_message_that_asks_to_be_fetched_is() {
    let never = u64::MAX / 2; // allowed, but never the cheapest
    for (get_min, works, fetched) in [(never, true, 1), (never, false, 0), (u64::MAX, true, 0)] {
        for early in [false, true] {
            let choice = Choice {
                eager_max: 200,
                get_min,
                announce_min: 9,
            };
            let mut net = Net::new(2, choice, works);
            let data = Mem::new((0..100).collect());
            net.sources.push((Rc::as_ptr(&data.0) as u64, data.clone()));
            let buf = Mem::new(vec![0; 100]);
            let mut received = None;
            for sends in [!early, early] {
                if sends {
                    let env = Envelope {
                        context: 2,
                        source: 0,
                        tag: 0,
                    };
                    net.machines[0]
                        .sender()
                        .send(Peer(1), env, Mode::Fetched, &data);
                } else {
                    let want = Pattern {
                        context: 2,
                        source: Some(0),
                        tag: Some(0),
                    };
                    received = Some(net.machines[1].receiver().recv_fetched(
                        want,
                        Peer(0),
                        buf.clone(),
                    ));
                }
                (0..2).for_each(|me| net.act(me));
                (0..4).for_each(|wire| while net.step(wire, false) {});
            }
            (0..8).for_each(|turn| while net.step(turn % 4, false) {});
            assert!(net.machines[1].endpoint.requests.is_done(received.unwrap()));
            assert_eq!(buf.bytes(), data.bytes());
            let count = |c| {
                net.machines
                    .iter()
                    .map(|m| m.endpoint.out.counters.get(c))
                    .sum::<u64>()
            };
            assert_eq!(
                count(Counter::GetSent),
                fetched,
                "{get_min} {works} {early}"
            );
            assert_eq!(count(Counter::WriteAnnounced), 0);
        }
    }
}

/// Two ranks that may announce everything from 9 bytes on.
fn announcing() -> Net {
    let choice = Choice {
        eager_max: 8,
        get_min: u64::MAX,
        announce_min: 9,
    };
    Net::new(2, choice, false)
}

fn post(net: &mut Net, me: usize) -> ReqId {
    let want = Pattern {
        context: CONTEXT,
        source: Some(1 - me as u32),
        tag: Some(0),
    };
    let from = Some(Peer(1 - me as u32));
    let key = net.machines[me]
        .receiver()
        .recv(want, from, Mem::new(vec![0; 100]));
    net.act(me);
    key
}

fn offer(net: &mut Net, me: usize) {
    send(net, me, 100);
}

fn send(net: &mut Net, me: usize, len: usize) {
    let env = Envelope {
        context: CONTEXT,
        source: me as u32,
        tag: 0,
    };
    let buf = Mem::new(vec![me as u8; len]);
    let to = Peer(1 - me as u32);
    if let Started::Request(key) = net.machines[me]
        .sender()
        .send(to, env, Mode::Standard, &buf)
    {
        net.machines[me].endpoint.requests.release(key);
    }
    net.act(me);
}

fn count(net: &Net, counter: Counter) -> [u64; 2] {
    [0, 1].map(|me| net.machines[me].endpoint.out.counters.get(counter))
}

/// Both post, both send, and all their frames cross: nothing waits for an answer.
#[test]
fn every_message_of_an_exchange_is_written() {
    let mut net = announcing();
    for _ in 0..20 {
        let keys = [0, 1].map(|me| {
            let key = post(&mut net, me);
            offer(&mut net, me);
            key
        });
        net.deliver_all();
        assert!((0..2).all(|me| net.machines[me].endpoint.requests.take(keys[me]).is_some()));
    }
    assert_eq!(count(&net, Counter::WriteSent), [20, 20]);
}

#[test]
fn the_answers_of_a_ping_pong_that_cross_their_announcements_are_written() {
    let mut net = announcing();
    for _ in 0..10 {
        for me in [0, 1] {
            offer(&mut net, 1 - me);
            let key = post(&mut net, me);
            net.deliver_all();
            assert!(net.machines[me].endpoint.requests.take(key).is_some());
        }
    }
    assert_eq!(count(&net, Counter::WriteSent), [10, 10]);
}

#[test]
fn receives_that_short_messages_take_are_announced_no_more_until_a_long_one_comes() {
    let mut net = announcing();
    let mut pass = |len| {
        let key = post(&mut net, 1);
        send(&mut net, 0, len);
        net.deliver_all();
        assert!(net.machines[1].endpoint.requests.take(key).is_some());
        count(&net, Counter::WriteAnnounced)[1]
    };
    let short: Vec<u64> = (0..8).map(|_| pass(3)).collect();
    assert_eq!(short, [1, 2, 3, 4, 4, 4, 4, 4]);
    assert_eq!([pass(90), pass(90)], [4, 5]);
}
