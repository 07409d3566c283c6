//! Two ranks, a connection that breaks anywhere and any number of times, and streams that must
//! arrive once.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// One direction of a connection: the bytes that the sender's kernel and the receiver's kernel
/// hold.
#[derive(Default)]
struct Pipe {
    flying: VecDeque<u8>,
    arrived: VecDeque<u8>,
}

impl Pipe {
    fn land(&mut self, n: usize) {
        let some = self.flying.drain(..n.min(self.flying.len()));
        self.arrived.extend(some);
    }
}

/// One rank: its half of the link each way.
#[derive(Default)]
struct End {
    kept: RetransmitBuffer<Vec<u8>>,
    /// Bytes not handed over yet.
    queue: VecDeque<u8>,
    received: Vec<u8>,
    /// All that was ever to be sent.
    sent: Vec<u8>,
    cookie: u64,
    completed: Vec<u64>,
}

fn byte(i: usize) -> u8 {
    (i as u32).wrapping_mul(2654435761).rotate_left(9) as u8
}

impl End {
    fn say(&mut self, n: usize, salt: usize) {
        let from = self.sent.len() + salt;
        let bytes: Vec<u8> = (from..from + n).map(byte).collect();
        self.sent.extend(&bytes);
        self.queue.extend(&bytes);
    }

    /// Hands up to `n` bytes to the connection: old ones first, new ones copied or lent; if they
    /// are `quick`, half of the bytes in flight have arrived by the time that they are kept.
    fn send(&mut self, n: usize, lend: bool, quick: bool, pipe: &mut Pipe) {
        if self.kept.is_behind() {
            let bytes = match self.kept.next() {
                Some(Run::Bytes(b)) => b[..n.min(b.len())].to_vec(),
                Some(Run::Lent { from, at, len }) => {
                    from[at as usize..at as usize + n.min(len as usize)].to_vec()
                }
                None => panic!("behind, and nothing to send"),
            };
            pipe.flying.extend(&bytes);
            self.kept.advance(bytes.len() as u64);
            return;
        }
        let n = n.min(self.queue.len());
        let bytes: Vec<u8> = self.queue.drain(..n).collect();
        pipe.flying.extend(&bytes);
        let mut known = 0;
        if quick {
            pipe.land(pipe.flying.len().div_ceil(2));
            let acked = self.kept.sent() + n as u64 - pipe.flying.len() as u64;
            let completed = &mut self.completed;
            known = self.kept.skip(n as u64, acked, |c| completed.push(c)) as usize;
        }
        let bytes = &bytes[known..];
        if !lend || bytes.is_empty() {
            return self.kept.copy(bytes);
        }
        let mut padded = vec![0; 3];
        padded.extend(bytes);
        self.kept.lend(padded, 3, bytes.len() as u64);
        self.cookie += 1;
        assert!(!self.kept.finish(self.cookie));
    }

    /// The kernel's report of unacknowledged bytes.
    fn look(&mut self, pipe: &Pipe) {
        let acked = self.kept.sent() - pipe.flying.len() as u64;
        self.kept.release(acked, |c| self.completed.push(c));
    }

    fn own(&mut self) {
        let read = |from: &Vec<u8>, at: u64, to: &mut [u8]| {
            to.copy_from_slice(&from[at as usize..at as usize + to.len()]);
        };
        let owed = self.kept.owed();
        self.kept.own(read, |c| self.completed.push(c));
        assert!(!self.kept.owes() && (owed == 0 || self.kept.owed() == 0));
    }
}

fn take(pipe: &mut Pipe, n: usize, end: &mut End) {
    let n = n.min(pipe.arrived.len());
    end.received.extend(pipe.arrived.drain(..n));
}

/// The connection breaks: bytes in flight are lost, received ones are read; then each side tells
/// how many it has.
fn cut(ends: &mut [End; 2], pipes: &mut [Pipe; 2]) {
    for from in 0..2 {
        pipes[from].flying.clear();
        take(&mut pipes[from], usize::MAX, &mut ends[1 - from]);
    }
    for from in 0..2 {
        let received = ends[1 - from].received.len() as u64;
        let End {
            kept, completed, ..
        } = &mut ends[from];
        assert!(kept.resume(received, |c| completed.push(c)), "{kept:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Say(usize),
    Send(usize, bool, bool),
    Fly(usize),
    Take(usize),
    Look,
    Own,
    Cut,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let one = prop_oneof![
        (1usize..5000).prop_map(Step::Say),
        (1usize..3000, any::<bool>()).prop_map(|(n, lend)| Step::Send(n, lend, false)),
        (1usize..3000, any::<bool>()).prop_map(|(n, lend)| Step::Send(n, lend, true)),
        (1usize..4000).prop_map(Step::Fly),
        (1usize..4000).prop_map(Step::Take),
        Just(Step::Look),
        Just(Step::Own),
        Just(Step::Cut),
    ];
    (0usize..2, one)
}

proptest! {
    #[test]
    fn both_streams_arrive_once_whatever_is_cut(steps in prop::collection::vec(step(), 1..300)) {
        let (mut ends, mut pipes) = <([End; 2], [Pipe; 2])>::default();
        for (me, s) in steps {
            match s {
                Step::Say(n) => ends[me].say(n, me * 77),
                Step::Send(n, lend, quick) => ends[me].send(n, lend, quick, &mut pipes[me]),
                Step::Fly(n) => pipes[me].land(n),
                Step::Take(n) => take(&mut pipes[me], n, &mut ends[1 - me]),
                Step::Look => ends[me].look(&pipes[me]),
                Step::Own => ends[me].own(),
                Step::Cut => cut(&mut ends, &mut pipes),
            }
        }
        for _ in 0..10_000 {
            for me in 0..2 {
                ends[me].send(usize::MAX, false, false, &mut pipes[me]);
                pipes[me].land(usize::MAX);
                take(&mut pipes[me], usize::MAX, &mut ends[1 - me]);
            }
            if ends.iter().all(|e| e.queue.is_empty() && !e.kept.is_behind()) {
                break;
            }
        }
        for me in 0..2 {
            ends[me].look(&pipes[me]);
            prop_assert!(ends[me].kept.is_empty() && !ends[me].kept.owes());
            prop_assert_eq!(&ends[1 - me].received, &ends[me].sent);
            let all: Vec<u64> = (1..=ends[me].cookie).collect();
            prop_assert_eq!(&ends[me].completed, &all, "every lender is told once, in order");
        }
    }
}

#[test]
fn what_was_released_or_never_sent_cannot_be_resumed() {
    let mut kept = RetransmitBuffer::<Vec<u8>>::default();
    kept.copy(&[1; 100]);
    kept.release(40, |_| {});
    assert!(!kept.resume(39, |_| {}) && !kept.resume(101, |_| {}));
    assert!(kept.resume(40, |_| {}) && kept.is_behind());
    assert_eq!(kept.next(), Some(Run::Bytes(&[1; 60][..])));
}

#[test]
fn memory_of_released_copies_is_used_again() {
    let mut kept = RetransmitBuffer::<Vec<u8>>::default();
    for _ in 0..1000 {
        kept.copy(&[7; 60_000]);
        kept.release(kept.sent(), |_| {});
    }
    assert!(kept.pieces.len() <= 1 && kept.is_empty());
}
