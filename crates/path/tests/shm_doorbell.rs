//! Ranks that sleep at every opportunity lose no wake-up: not for frames, not for space.

#[path = "common/pair.rs"]
mod pair;

use kw_base::{Peer, Tick};
use kw_path::shm::Doorbell;
use kw_path::{Body, Destination, Down, Inbound, Path, Sent, ShmPath};
use kw_proto::wire::{Header, Kind};
use kw_sys::buf::Buf;
use kw_sys::doorbell::Mode;
use pair::pair;
use rustix::event::{PollFd, PollFlags};

#[derive(Default)]
struct Count {
    came: usize,
    sent: usize,
}

impl Inbound for Count {
    fn on_frame(&mut self, _from: Peer, _head: &Header, _body: &[u8]) {
        self.came += 1;
    }
    fn on_head(&mut self, _from: Peer, head: &Header) -> Destination {
        Destination {
            cookie: 0,
            buf: Buf::alloc(head.len as usize),
            at: 0,
        }
    }
    fn on_body(&mut self, _from: Peer, _cookie: u64) {
        self.came += 1;
    }
    fn on_sent(&mut self, _to: Peer, _cookie: u64) {
        self.sent += 1;
    }
    fn on_down(&mut self, _down: Down, _clean: bool) {}
}

fn nap(bell: &Doorbell, mode: Mode) {
    if mode == Mode::Futex {
        bell.sleep(None);
        return;
    }
    let fd = bell.fd().expect("made before");
    let mut set = [PollFd::new(&fd, PollFlags::IN)];
    rustix::event::poll(&mut set, None).expect("poll");
    bell.clear();
}

struct Plan {
    modes: [Mode; 2],
    oversubscribed: bool,
    size: u64,
    burst: usize,
    rounds: usize,
}

/// Every round both ranks send a burst and wait for the other's, asleep whenever nothing moves.
fn rank(mut path: ShmPath, me: u32, plan: &Plan) {
    let (bell, mode) = (path.doorbell(), plan.modes[me as usize]);
    path.share_fences(plan.oversubscribed);
    bell.fd().expect("a socket");
    let buf = Buf::alloc(plan.size as usize);
    let (mut count, mut queued) = (Count::default(), 0);
    for round in 1..=plan.rounds {
        for _ in 0..plan.burst {
            queued += usize::from(send(&mut path, me, &buf) == Sent::Queued);
        }
        while count.came < round * plan.burst || count.sent < queued {
            if path.poll(Tick(0), &mut count) {
                continue;
            }
            assert!(bell.arm(mode), "one thread a rank");
            if path.poll(Tick(0), &mut count) {
                bell.disarm();
            } else {
                nap(&bell, mode);
            }
        }
    }
    assert!(!path.pending());
}

fn send(path: &mut ShmPath, me: u32, buf: &Buf) -> Sent {
    let (from, len) = (0, buf.len());
    let head = Header {
        kind: Kind::Eager,
        context: 0,
        source: me,
        tag: 0,
        len,
        token: 0,
    };
    path.send(Peer(1 - me), &head, Body::Payload { buf, from, len }, 1)
        .expect("the peer lives")
}

fn run(size: u64, burst: usize, rounds: usize) {
    for (modes, oversubscribed) in [
        ([Mode::Futex, Mode::Futex], false),
        ([Mode::Futex, Mode::Futex], true),
        ([Mode::Futex, Mode::Fd], true),
        ([Mode::Fd, Mode::Fd], false),
    ] {
        let plan = Plan {
            modes,
            oversubscribed,
            size,
            burst,
            rounds,
        };
        let [a, b] = pair();
        std::thread::scope(|s| {
            s.spawn(|| rank(b, 1, &plan));
            rank(a, 0, &plan);
        });
    }
}

#[test]
fn a_ping_pong_asleep_loses_no_wake_up() {
    run(8, 1, 2000);
}

#[test]
fn a_sender_asleep_for_want_of_cells_is_rung() {
    run(700, 300, 20);
}

#[test]
fn a_sender_asleep_for_want_of_room_for_payload_is_rung() {
    run(700_001, 3, 20);
}
