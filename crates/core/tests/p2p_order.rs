//! Whatever the protocols and the network's timing: messages match exactly as the standard says (MPI 5.0, 3.5).
//!
//! Three machines over a simulated network that delivers frames of each pair in order but otherwise when it likes, in
//! pieces or whole. Receives name their source, or there is one sender only, so the standard fixes every match; the oracle
//! is two plain lists.

use kw_base::Peer;
use kw_base::counters::Counter;
use kw_core::matching::{Envelope, Pattern};
use kw_core::p2p::table::Choice;
use kw_core::p2p::{Action, FrameBody, Machine, Memory, Mode, ReqKey, Started};
use kw_core::wire::{Header, Kind};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

#[derive(Clone, Debug)]
struct Mem(Rc<RefCell<Vec<u8>>>);

impl Mem {
    fn new(bytes: Vec<u8>) -> Mem {
        Mem(Rc::new(RefCell::new(bytes)))
    }
    fn bytes(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }
}

impl Memory for Mem {
    fn len(&self) -> u64 {
        self.0.borrow().len() as u64
    }
    fn address(&self) -> Option<u64> {
        // Leaks a reference so that "remote memory" can be found again by its number.
        Some(Rc::into_raw(self.0.clone()) as u64)
    }
    fn alloc(len: u64) -> Option<Mem> {
        Some(Mem::new(vec![0; len as usize]))
    }
    fn nothing() -> Mem {
        Mem::new(Vec::new())
    }
    fn write(&self, at: u64, data: &[u8]) {
        let mut m = self.0.borrow_mut();
        let n = data.len().min(m.len().saturating_sub(at as usize));
        m[at as usize..at as usize + n].copy_from_slice(&data[..n]);
    }
    fn copy_to(&self, to: &Mem, len: u64) {
        to.write(0, &self.0.borrow()[..len as usize]);
    }
}

struct Frame {
    from: usize,
    head: Header,
    body: Vec<u8>,
}

struct Net {
    n: usize,
    machines: Vec<Machine<Mem>>,
    wires: Vec<VecDeque<Frame>>,
    landing: Vec<Option<(u64, Mem, Vec<u8>)>>,
    get_works: bool,
    sources: Vec<(u64, Mem)>,
}

impl Net {
    fn new(n: usize, choice: Choice, get_works: bool) -> Net {
        Net {
            n,
            machines: (0..n).map(|_| Machine::new(n, choice)).collect(),
            wires: (0..n * n).map(|_| VecDeque::new()).collect(),
            landing: (0..n * n).map(|_| None).collect(),
            get_works,
            sources: Vec::new(),
        }
    }

    fn act(&mut self, me: usize) {
        for action in std::mem::take(&mut self.machines[me].actions) {
            match action {
                Action::Frame {
                    to,
                    head,
                    body,
                    cookie,
                } => {
                    let body = match body {
                        FrameBody::None => Vec::new(),
                        FrameBody::Extension(b) => b.to_vec(),
                        FrameBody::Payload { buf, len } => buf.bytes()[..len as usize].to_vec(),
                    };
                    assert_eq!(body.len() as u64, head.body_len());
                    self.wires[me * self.n + to.idx()].push_back(Frame {
                        from: me,
                        head,
                        body,
                    });
                    self.machines[me].on_sent(cookie);
                }
                Action::Get {
                    address,
                    into,
                    len,
                    req,
                    ..
                } => {
                    let source = self
                        .sources
                        .iter()
                        .find(|(a, _)| *a == address)
                        .map(|(_, m)| m.clone());
                    if let (true, Some(m)) = (self.get_works, source) {
                        m.copy_to(&into, len);
                        self.machines[me].on_got(req, true);
                    } else {
                        self.machines[me].on_got(req, false);
                    }
                }
                Action::Notice(_) => {}
            }
        }
        if !self.machines[me].actions.is_empty() {
            self.act(me);
        }
    }

    /// Delivers one frame (or the rest of one) of a pair; `false` when there is none.
    fn step(&mut self, wire: usize, piecewise: bool) -> bool {
        let me = wire % self.n;
        if let Some((cookie, buf, body)) = self.landing[wire].take() {
            buf.write(0, &body);
            self.machines[me].on_landed(cookie);
            self.act(me);
            return true;
        }
        let Some(f) = self.wires[wire].pop_front() else {
            return false;
        };
        let payload = matches!(
            f.head.kind,
            Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write
        );
        if payload && piecewise {
            let l = self.machines[me]
                .on_head(Peer(f.from as u32), &f.head)
                .unwrap();
            self.landing[wire] = Some((l.cookie, l.buf, f.body));
        } else {
            self.machines[me]
                .on_frame(Peer(f.from as u32), &f.head, &f.body)
                .unwrap();
        }
        self.act(me);
        true
    }

    fn busy(&self) -> bool {
        self.wires.iter().any(|w| !w.is_empty()) || self.landing.iter().any(|l| l.is_some())
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send {
        from: usize,
        to: usize,
        tag: i32,
        size: usize,
        sync: bool,
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
}

fn op(n: usize) -> impl Strategy<Value = Op> {
    let size = prop_oneof![0usize..8, 8usize..40, 60usize..100];
    let size2 = prop_oneof![4 => Just(100usize), 1 => 0usize..100];
    prop_oneof![
        4 => (0..n, 0..n, 0i32..3, size, prop::bool::weighted(0.1)).prop_map(|(from, to, tag, size, sync)| Op::Send { from, to, tag, size, sync }),
        4 => (0..n, 0..n, prop::option::weighted(0.7, 0i32..3), size2).prop_map(|(me, source, tag, size)| Op::Recv { me, source, any_source: false, tag, size }),
        6 => (0..n * n, any::<bool>()).prop_map(|(wire, piecewise)| Op::Deliver { wire, piecewise }),
    ]
}

struct Posted {
    me: usize,
    want: Pattern,
    key: ReqKey,
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
    let mut net = Net::new(n, choice, get_works);
    let mut posted: Vec<Posted> = Vec::new();
    let mut sent: Vec<Sent> = Vec::new();
    for (serial, op) in ops.into_iter().enumerate() {
        match op {
            Op::Send {
                from,
                to,
                tag,
                size,
                sync,
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
                    context: 2,
                    source: from as u32,
                    tag,
                };
                let mode = if sync {
                    Mode::Synchronous
                } else {
                    Mode::Standard
                };
                let started = net.machines[from].send(Peer(to as u32), env, mode, &buf);
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
                    context: 2,
                    source: (!any_source).then_some(source as u32),
                    tag,
                };
                let key =
                    net.machines[me].recv(want, (!any_source).then_some(Peer(source as u32)), &buf);
                net.act(me);
                posted.push(Posted {
                    me,
                    want,
                    key,
                    buf,
                    expect: None,
                });
            }
            Op::Deliver { wire, piecewise } => {
                net.step(wire, piecewise);
            }
        }
    }
    let mut turn = 0usize;
    while net.busy() {
        turn += 1;
        net.step(turn % (n * n), turn % 3 == 0);
        prop_assert!(turn < 100_000, "the network never empties");
    }
    // Oracle: for each receiver, its receives in order take the first unmatched message that fits.
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
        let done = net.machines[p.me].is_done(p.key);
        prop_assert_eq!(
            done,
            p.expect.is_some(),
            "receive {:?} done: {}",
            p.want,
            done
        );
        if let Some(expect) = &p.expect {
            let out = net.machines[p.me].take(p.key).unwrap();
            let n = expect.len().min(p.buf.len() as usize);
            prop_assert_eq!(out.len as usize, n);
            prop_assert_eq!(out.failure.is_some(), expect.len() > n);
            prop_assert_eq!(&p.buf.bytes()[..n], &expect[..n]);
        } else {
            net.machines[p.me].cancel(p.key);
            net.act(p.me);
            prop_assert!(net.machines[p.me].take(p.key).unwrap().cancelled);
        }
    }
    for (i, s) in sent.iter().enumerate() {
        if let (Started::Request(k), false) = (s.started, free[i]) {
            prop_assert!(
                net.machines[s.from].take(k).is_some(),
                "matched send {i} has not ended"
            );
        }
    }
    let total = |c| net.machines.iter().map(|m| m.counters.get(c)).sum();
    use kw_base::counters::Counter::*;
    Ok((total(WriteSent), total(WriteDropped)))
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
            sync: false,
        });
        ops.push(Op::Deliver {
            wire: 1,
            piecewise: false,
        });
    }
    assert_eq!(run(2, ops, WITH_WRITE, false, false).unwrap(), (10, 0));
}

/// A receive posted while the message is under way: the request crosses it and is dropped by both sides.
#[test]
fn an_announcement_that_crosses_a_message_is_dropped() {
    let ops = vec![
        Op::Send {
            from: 0,
            to: 1,
            tag: 1,
            size: 90,
            sync: false,
        },
        Op::Recv {
            me: 1,
            source: 0,
            any_source: false,
            tag: Some(1),
            size: 100,
        },
        Op::Recv {
            me: 1,
            source: 0,
            any_source: false,
            tag: Some(1),
            size: 100,
        },
        Op::Send {
            from: 0,
            to: 1,
            tag: 1,
            size: 80,
            sync: false,
        },
    ];
    let (written, dropped) = run(2, ops, WITH_WRITE, false, false).unwrap();
    assert_eq!((written, dropped), (0, 2));
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

fn post(net: &mut Net, me: usize) -> ReqKey {
    let want = Pattern {
        context: 2,
        source: Some(1 - me as u32),
        tag: Some(0),
    };
    let from = Some(Peer(1 - me as u32));
    let key = net.machines[me].recv(want, from, &Mem::new(vec![0; 100]));
    net.act(me);
    key
}

fn offer(net: &mut Net, me: usize) {
    let env = Envelope {
        context: 2,
        source: me as u32,
        tag: 0,
    };
    let buf = Mem::new(vec![me as u8; 100]);
    let to = Peer(1 - me as u32);
    if let Started::Request(key) = net.machines[me].send(to, env, Mode::Standard, &buf) {
        net.machines[me].release(key);
    }
    net.act(me);
}

fn deliver_all(net: &mut Net) {
    while net.busy() {
        (0..4).for_each(|wire| {
            net.step(wire, false);
        });
    }
}

fn announced(net: &Net, me: usize) -> u64 {
    net.machines[me].counters.get(Counter::WriteAnnounced)
}

#[test]
fn an_exchange_goes_on_announcing_though_its_announcements_cross_with_offers() {
    let mut net = announcing();
    for _ in 0..20 {
        let keys = [0, 1].map(|me| {
            let key = post(&mut net, me);
            offer(&mut net, me);
            key
        });
        deliver_all(&mut net);
        assert!((0..2).all(|me| net.machines[me].take(keys[me]).is_some()));
    }
    assert_eq!([0, 1].map(|me| announced(&net, me)), [20, 20]);
}

#[test]
fn a_ping_pong_whose_messages_are_quicker_gives_up_announcing() {
    let mut net = announcing();
    for _ in 0..10 {
        for me in [0, 1] {
            offer(&mut net, 1 - me);
            let key = post(&mut net, me);
            deliver_all(&mut net);
            assert!(net.machines[me].take(key).is_some());
        }
    }
    assert_eq!([0, 1].map(|me| announced(&net, me)), [4, 4]);
}
