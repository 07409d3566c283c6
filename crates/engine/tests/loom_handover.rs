//! Model of the hand-over between a thread of the program, the event thread and a peer, in every interleaving.
//!
//! What is modelled: the lane (a mutex), the roles and duties (the real table, [`kw_engine::duty`]), the doorbell's word with
//! its arm/ring race, and the places to sleep: a futex and a parking place where only memory is shared, or a nest with a bed above it
//! where there are sockets. What is checked: every thread ends, and the message is handled, by whomever. A lost wake-up
//! is a deadlock of the model, which loom reports. Run with `make loom`.
#![cfg(loom)]

use kw_engine::duty::{Duty, Event};
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

impl Default for State {
    fn default() -> State {
        State {
            duty: Duty::Idle,
            role: Role::Free,
            busy: false,
            closing: false,
            taken: false,
        }
    }
}

/// The doorbell's word.
#[derive(Default)]
struct Word(AtomicU32);

impl Word {
    fn arm(&self) {
        self.0.store(1, Ordering::SeqCst);
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
    }

    fn disarm(&self) {
        self.0.store(0, Ordering::Release);
    }

    fn is_armed(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    /// Whether a sleeper must be woken.
    fn ring(&self) -> bool {
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::AcqRel) != 0
    }
}

/// Where threads of a rank sleep.
trait Place: Default + Send + Sync + 'static {
    /// Whether the event thread can be given its duty asleep.
    const SHARED: bool;
    fn word(&self) -> &Word;
    /// Somebody has something for us.
    fn ring(&self);
    /// A timer of ours goes off: sleeps end, and nothing has come.
    fn alarm(&self) {}
    /// A thread in MPI sleeps, armed.
    fn sleep(&self);
    /// The event thread sleeps: off duty, or on duty and armed.
    fn rest(&self);
    fn doze(&self);
    /// Whoever was armed is awake; with the lane.
    fn wake_up(&self);
    fn rouse(&self, duty: Duty);
    fn hand_over(&self) {}
    fn take_back(&self) {}
}

/// A futex, and a parking place for the event thread.
#[derive(Default)]
struct Futex {
    word: Word,
    place: Mutex<()>,
    woken: Condvar,
    /// As `thread::park`.
    token: Mutex<bool>,
    unparked: Condvar,
}

impl Place for Futex {
    const SHARED: bool = false;

    fn word(&self) -> &Word {
        &self.word
    }

    fn ring(&self) {
        if self.word.ring() {
            let _place = self.place.lock().unwrap();
            self.woken.notify_all();
        }
    }

    /// Sleeps only while the word is set, and wakes only when somebody wakes it.
    fn sleep(&self) {
        let place = self.place.lock().unwrap();
        if self.word.is_armed() {
            drop(self.woken.wait(place).unwrap());
        }
    }

    fn rest(&self) {
        let mut token = self.token.lock().unwrap();
        while !*token {
            token = self.unparked.wait(token).unwrap();
        }
        *token = false;
    }

    fn doze(&self) {
        self.sleep();
    }

    fn wake_up(&self) {
        self.word.disarm();
    }

    fn rouse(&self, duty: Duty) {
        if !matches!(duty, Duty::Serving | Duty::Displaced) {
            *self.token.lock().unwrap() = true;
            self.unparked.notify_all();
        }
        if duty != Duty::Idle {
            self.word.arm();
            self.ring();
        }
    }
}

/// An epoll set with the doorbell in it, and one above it.
#[derive(Default)]
struct Nested {
    word: Word,
    watching: AtomicBool,
    sets: Mutex<Sets>,
    woken: Condvar,
}

#[derive(Default)]
struct Sets {
    /// Something in the nest can be read.
    ready: bool,
    /// The bed wakes when the nest is ready, once.
    armed: bool,
    /// The bed's own bell.
    rung: bool,
}

impl Nested {
    fn change(&self, change: impl FnOnce(&mut Sets)) {
        change(&mut self.sets.lock().unwrap());
        self.woken.notify_all();
    }

    fn clear(&self) {
        self.word.disarm();
        self.change(|s| s.ready = false);
    }
}

impl Place for Nested {
    const SHARED: bool = true;

    fn word(&self) -> &Word {
        &self.word
    }

    fn ring(&self) {
        if self.word.ring() {
            self.change(|s| s.ready = true);
        }
    }

    fn alarm(&self) {
        self.change(|s| s.ready = true);
    }

    fn sleep(&self) {
        let mut s = self.sets.lock().unwrap();
        while !s.ready {
            s = self.woken.wait(s).unwrap();
        }
    }

    fn rest(&self) {
        let mut s = self.sets.lock().unwrap();
        while !s.rung && !(s.armed && s.ready) {
            s = self.woken.wait(s).unwrap();
        }
        s.rung = false;
        if s.armed && s.ready {
            s.armed = false;
            drop(s);
            self.watching.swap(false, Ordering::AcqRel);
        }
    }

    fn doze(&self) {
        self.hand_over();
        self.rest();
    }

    fn wake_up(&self) {
        self.clear();
    }

    fn rouse(&self, _: Duty) {
        self.change(|s| s.rung = true);
    }

    fn hand_over(&self) {
        if !self.watching.swap(true, Ordering::AcqRel) {
            self.change(|s| s.armed = true);
        }
    }

    fn take_back(&self) {
        if self.watching.load(Ordering::Relaxed) && self.watching.swap(false, Ordering::AcqRel) {
            self.change(|s| s.armed = false);
        }
    }
}

#[derive(Default)]
struct Rank<P> {
    lane: Mutex<State>,
    /// The message was, for who looks on.
    handled: Condvar,
    place: P,
    inbox: AtomicBool,
}

impl<P: Place> Rank<P> {
    fn drain(&self, s: &mut State) -> bool {
        // As a ring's consumer: it loads, and remembers by itself what it has taken.
        let came = !s.taken && self.inbox.load(Ordering::Acquire);
        s.taken |= came;
        s.busy &= !came;
        self.handled.notify_all();
        came
    }

    /// A thread of the program enters MPI.
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut s = self.lane.lock().unwrap();
        if s.duty == Duty::Serving {
            s.duty = s.duty.on(Event::Entered).0;
            s.role = Role::Free;
            self.place.word().disarm();
        }
        s
    }

    /// It leaves MPI.
    fn leave(&self, mut s: MutexGuard<'_, State>) {
        if s.role != Role::Free || !s.busy {
            return;
        }
        if P::SHARED && self.can_hand_over(&mut s) {
            drop(s);
            return self.place.hand_over();
        }
        let before = s.duty;
        let (next, kick) = before.on(Event::Left);
        s.duty = next;
        drop(s);
        if kick {
            self.place.rouse(before);
        }
    }

    fn can_hand_over(&self, s: &mut State) -> bool {
        let next = s.duty.on(Event::LeftAsBefore).0;
        if next != Duty::Serving || s.duty == Duty::Serving {
            return false;
        }
        self.place.word().arm();
        if self.drain(s) {
            self.place.word().disarm();
            return false;
        }
        (s.duty, s.role) = (next, Role::Event);
        true
    }

    /// A blocking wait, after its spin.
    fn wait(&self) {
        let mut s = self.enter();
        s.role = Role::Caller;
        self.place.take_back();
        while s.busy {
            if self.drain(&mut s) {
                break;
            }
            self.place.word().arm();
            if self.drain(&mut s) {
                self.place.word().disarm();
                break;
            }
            drop(s);
            self.place.sleep();
            s = self.lane.lock().unwrap();
            self.place.wake_up();
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
                    self.place.rest();
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
        if s.role != Role::Event {
            s.role = Role::Event;
        } else {
            self.place.wake_up();
        }
        while self.drain(&mut s) {}
        if !s.busy {
            (s.role, s.duty) = (Role::Free, Duty::Idle);
            return;
        }
        self.place.word().arm();
        if self.drain(&mut s) {
            self.place.word().disarm();
            return;
        }
        drop(s);
        self.place.doze();
    }

    fn stop(&self) {
        self.lane.lock().unwrap().closing = true;
        self.place.rouse(Duty::Off);
    }
}

fn model<P: Place>(program: impl Fn(&Rank<P>) + Send + Sync + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    // With two, nobody notices when whoever arms the bed forgets that the sleeper may be up already.
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let rank = Arc::new(Rank::<P>::default());
        let (event, peer) = (rank.clone(), rank.clone());
        let event = thread::spawn(move || event.event_thread());
        let peer = thread::spawn(move || {
            peer.place.alarm();
            peer.inbox.store(true, Ordering::Release);
            peer.place.ring();
        });
        program(&rank);
        peer.join().unwrap();
        assert!(!rank.lane.lock().unwrap().busy, "the message was handled");
        rank.stop();
        event.join().unwrap();
    });
}

fn start<P: Place>(rank: &Rank<P>) {
    let mut s = rank.enter();
    s.busy = true;
    rank.leave(s);
}

/// Isend, compute, Wait: whoever handles the message, the wait ends.
fn wait_after_computing<P: Place>(rank: &Rank<P>) {
    start(rank);
    rank.wait();
}

/// Isend, Test, compute, Wait: the event thread is displaced in the middle.
fn test_while_computing<P: Place>(rank: &Rank<P>) {
    start(rank);
    let mut s = rank.enter();
    rank.drain(&mut s);
    rank.leave(s);
    rank.wait();
}

#[test]
fn loom_a_wait_after_computing_always_ends() {
    model(wait_after_computing::<Futex>);
}

#[test]
fn loom_a_displaced_event_thread_comes_back() {
    model(test_while_computing::<Futex>);
}

#[test]
fn loom_a_wait_after_a_hand_over_always_ends() {
    model(wait_after_computing::<Nested>);
}

#[test]
fn loom_a_duty_is_handed_over_asleep_and_taken_back() {
    model(test_while_computing::<Nested>);
}

/// Isend, and nothing more: the event thread handles the message.
#[test]
fn loom_what_is_handed_over_asleep_is_done() {
    model(|rank: &Rank<Nested>| {
        start(rank);
        let mut s = rank.lane.lock().unwrap();
        while s.busy {
            s = rank.handled.wait(s).unwrap();
        }
    });
}
