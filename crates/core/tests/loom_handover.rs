//! Model of the hand-over between a thread of the program, the event thread and a peer, in every interleaving.
//!
//! What is modelled: the lane (a mutex), the roles and duties (the real table, [`kw_core::duty`]), the doorbell's word with
//! its arm/ring race, parking. What is checked: every thread ends, and the message is handled, by whomever. A lost wake-up
//! is a deadlock of the model, which loom reports. Run with `make loom`.
#![cfg(loom)]

use kw_core::duty::{Duty, Event};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
use loom::thread;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Free,
    Caller,
    Event,
}

struct State {
    duty: Duty,
    role: Role,
    /// The program's request goes on.
    busy: bool,
    closing: bool,
    /// The message was taken from the inbox.
    taken: bool,
}

/// A word and a place to sleep: the futex.
struct Bell {
    word: AtomicU32,
    place: Mutex<()>,
    woken: Condvar,
}

impl Bell {
    fn arm(&self) {
        self.word.store(1, Ordering::SeqCst);
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
    }

    fn disarm(&self) {
        self.word.store(0, Ordering::Release);
    }

    fn ring(&self) {
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) != 0 && self.word.swap(0, Ordering::AcqRel) != 0 {
            let _place = self.place.lock().unwrap();
            self.woken.notify_all();
        }
    }

    /// As a futex: sleeps only while the word is set, and wakes only when somebody wakes it.
    fn sleep(&self) {
        let place = self.place.lock().unwrap();
        if self.word.load(Ordering::Acquire) == 1 {
            drop(self.woken.wait(place).unwrap());
        }
    }
}

struct Rank {
    lane: Mutex<State>,
    bell: Bell,
    inbox: AtomicBool,
    /// The event thread's parking place (a token, as `thread::park`).
    token: Mutex<bool>,
    unparked: Condvar,
}

impl Rank {
    fn drain(&self, s: &mut State) -> bool {
        // As a ring's consumer: it loads, and remembers by itself what it has taken.
        let came = !s.taken && self.inbox.load(Ordering::Acquire);
        s.taken |= came;
        s.busy &= !came;
        came
    }

    fn unpark(&self) {
        *self.token.lock().unwrap() = true;
        self.unparked.notify_all();
    }

    fn park(&self) {
        let mut token = self.token.lock().unwrap();
        while !*token {
            token = self.unparked.wait(token).unwrap();
        }
        *token = false;
    }

    /// A thread of the program enters MPI.
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut s = self.lane.lock().unwrap();
        if s.duty == Duty::Serving {
            s.duty = s.duty.on(Event::Entered).0;
            s.role = Role::Free;
            self.bell.disarm();
        }
        s
    }

    /// It leaves MPI.
    fn leave(&self, mut s: MutexGuard<'_, State>) {
        if s.role == Role::Free && s.busy {
            let before = s.duty;
            let (next, kick) = before.on(Event::Left);
            s.duty = next;
            if kick {
                self.kick(before);
            }
        }
    }

    fn kick(&self, before: Duty) {
        if before == Duty::Idle {
            self.unpark();
        } else {
            self.bell.arm();
            self.bell.ring();
        }
    }

    /// A blocking wait, after its spin.
    fn wait(&self) {
        let mut s = self.enter();
        s.role = Role::Caller;
        while s.busy {
            if self.drain(&mut s) {
                break;
            }
            self.bell.arm();
            if self.drain(&mut s) {
                self.bell.disarm();
                break;
            }
            drop(s);
            self.bell.sleep();
            s = self.lane.lock().unwrap();
            self.bell.disarm();
        }
        s.role = Role::Free;
        self.leave(s);
    }

    fn event_thread(&self) {
        loop {
            let mut s = self.lane.lock().unwrap();
            if s.closing {
                return;
            }
            match s.duty {
                Duty::Off => return,
                Duty::Idle => {
                    drop(s);
                    self.park();
                }
                Duty::Watching => {
                    let event = match (s.role, s.busy) {
                        (Role::Caller, _) => Event::Waiter,
                        (_, false) => Event::Nothing,
                        _ => Event::Quiet,
                    };
                    s.duty = s.duty.on(event).0;
                }
                Duty::Serving => self.serve(s),
                Duty::Displaced => s.duty = s.duty.on(Event::Woken).0,
            }
        }
    }

    fn serve(&self, mut s: MutexGuard<'_, State>) {
        s.role = Role::Event;
        while self.drain(&mut s) {}
        if !s.busy {
            s.role = Role::Free;
            s.duty = Duty::Idle;
            return;
        }
        self.bell.arm();
        if self.drain(&mut s) {
            self.bell.disarm();
            return;
        }
        drop(s);
        self.bell.sleep();
        let s = self.lane.lock().unwrap();
        if s.role == Role::Event {
            self.bell.disarm();
        }
    }

    fn stop(&self) {
        self.lane.lock().unwrap().closing = true;
        self.unpark();
        self.bell.arm();
        self.bell.ring();
    }
}

fn model(program: impl Fn(&Rank) + Send + Sync + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let rank = Arc::new(Rank {
            lane: Mutex::new(State {
                duty: Duty::Idle,
                role: Role::Free,
                busy: false,
                closing: false,
                taken: false,
            }),
            bell: Bell {
                word: AtomicU32::new(0),
                place: Mutex::new(()),
                woken: Condvar::new(),
            },
            inbox: AtomicBool::new(false),
            token: Mutex::new(false),
            unparked: Condvar::new(),
        });
        let (event, peer) = (rank.clone(), rank.clone());
        let event = thread::spawn(move || event.event_thread());
        let peer = thread::spawn(move || {
            peer.inbox.store(true, Ordering::Release);
            peer.bell.ring();
        });
        program(&rank);
        peer.join().unwrap();
        assert!(!rank.lane.lock().unwrap().busy, "the message was handled");
        rank.stop();
        event.join().unwrap();
    });
}

fn start(rank: &Rank) {
    let mut s = rank.enter();
    s.busy = true;
    rank.leave(s);
}

/// Isend, compute, Wait: whoever handles the message, the wait ends.
#[test]
fn loom_a_wait_after_computing_always_ends() {
    model(|rank| {
        start(rank);
        rank.wait();
    });
}

/// Isend, Test, compute, Wait: the event thread is displaced in the middle.
#[test]
fn loom_a_displaced_event_thread_comes_back() {
    model(|rank| {
        start(rank);
        let mut s = rank.enter();
        rank.drain(&mut s);
        rank.leave(s);
        rank.wait();
    });
}
