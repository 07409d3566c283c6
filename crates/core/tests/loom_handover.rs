//! Model of the hand-over between a thread of the program, the event thread and a peer, in every interleaving.
//!
//! What is modelled: the lane (a mutex), the roles and duties (the real table, [`kw_core::duty`]), the doorbell's word with
//! its arm/ring race, and the places to sleep: a futex and a parking place where only memory is shared, or a nest with a bed above it
//! where there are sockets. What is checked: every thread ends, and the message is handled, by whomever. A lost wake-up
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
    fn arm(&self, mode: u32) {
        self.0.store(mode, Ordering::SeqCst);
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
    }

    fn disarm(&self) {
        self.0.store(0, Ordering::Release);
    }

    fn is_armed(&self, mode: u32) -> bool {
        self.0.load(Ordering::Acquire) == mode
    }

    /// Who must be woken.
    fn ring(&self) -> u32 {
        // SYNC: doorbell.
        fence(Ordering::SeqCst);
        match self.0.load(Ordering::Relaxed) {
            AWAKE => AWAKE,
            _ => self.0.swap(AWAKE, Ordering::AcqRel),
        }
    }
}

const AWAKE: u32 = 0;
const FUTEX: u32 = 1;
const FD: u32 = 2;

/// Where threads of a rank sleep: an epoll set with the doorbell in it, and one above it; `CALLER` is how a thread in MPI
/// sleeps, in that set or in a futex.
#[derive(Default)]
struct Place<const CALLER: u32> {
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

impl<const CALLER: u32> Place<CALLER> {
    fn change(&self, change: impl FnOnce(&mut Sets)) {
        change(&mut self.sets.lock().unwrap());
        self.woken.notify_all();
    }

    fn clear(&self) {
        self.word.disarm();
        self.change(|s| s.ready = false);
    }

    /// Somebody has something for us.
    fn ring(&self) {
        match self.word.ring() {
            AWAKE => {}
            FUTEX => self.change(|_| {}),
            _ => self.change(|s| s.ready = true),
        }
    }

    /// A timer of ours goes off: sleeps in the nest end, and nothing has come.
    fn alarm(&self) {
        self.change(|s| s.ready = true);
    }

    /// A thread in MPI sleeps, armed.
    fn sleep(&self) {
        let mut s = self.sets.lock().unwrap();
        if CALLER == FUTEX {
            // Wakes only when somebody wakes it.
            if self.word.is_armed(FUTEX) {
                drop(self.woken.wait(s).unwrap());
            }
            return;
        }
        while !s.ready {
            s = self.woken.wait(s).unwrap();
        }
    }

    /// It is awake; with the lane.
    fn wake_up(&self) {
        match CALLER {
            FUTEX => self.word.disarm(),
            _ => self.clear(),
        }
    }

    /// The event thread sleeps: off duty, or on duty and armed.
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

    fn rouse(&self) {
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
struct Rank<const CALLER: u32> {
    lane: Mutex<State>,
    /// The message was, for who looks on.
    handled: Condvar,
    place: Place<CALLER>,
    inbox: AtomicBool,
    /// The program is believed to stay away when it leaves.
    believed: bool,
}

impl<const CALLER: u32> Rank<CALLER> {
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
            self.place.word.disarm();
        }
        s
    }

    /// It leaves MPI.
    fn leave(&self, mut s: MutexGuard<'_, State>) {
        if s.role != Role::Free || !s.busy {
            return;
        }
        if self.believed && self.can_hand_over(&mut s) {
            drop(s);
            return self.place.hand_over();
        }
        let (next, kick) = s.duty.on(Event::Left);
        s.duty = next;
        drop(s);
        if kick {
            self.place.rouse();
        }
    }

    fn can_hand_over(&self, s: &mut State) -> bool {
        let next = s.duty.on(Event::LeftAsBefore).0;
        if next != Duty::Serving || s.duty == Duty::Serving {
            return false;
        }
        self.place.word.arm(FD);
        if self.drain(s) {
            self.place.word.disarm();
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
            self.place.word.arm(CALLER);
            if self.drain(&mut s) {
                self.place.word.disarm();
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
            self.place.clear();
        }
        while self.drain(&mut s) {}
        if !s.busy {
            (s.role, s.duty) = (Role::Free, Duty::Idle);
            return;
        }
        self.place.word.arm(FD);
        if self.drain(&mut s) {
            self.place.word.disarm();
            return;
        }
        drop(s);
        self.place.doze();
    }

    fn stop(&self) {
        self.lane.lock().unwrap().closing = true;
        self.place.rouse();
    }
}

fn model<const CALLER: u32>(
    believed: bool,
    program: impl Fn(&Rank<CALLER>) + Send + Sync + Copy + 'static,
) {
    let mut builder = loom::model::Builder::new();
    // With two, nobody notices when whoever arms the bed forgets that the sleeper may be up already.
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let rank = Arc::new(Rank::<CALLER> {
            believed,
            ..Rank::default()
        });
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

fn start<const CALLER: u32>(rank: &Rank<CALLER>) {
    let mut s = rank.enter();
    s.busy = true;
    rank.leave(s);
}

/// Isend, compute, Wait: whoever handles the message, the wait ends.
fn wait_after_computing<const CALLER: u32>(rank: &Rank<CALLER>) {
    start(rank);
    rank.wait();
}

/// Isend, Test, compute, Wait: the event thread is displaced in the middle.
fn test_while_computing<const CALLER: u32>(rank: &Rank<CALLER>) {
    start(rank);
    let mut s = rank.enter();
    rank.drain(&mut s);
    rank.leave(s);
    rank.wait();
}

#[test]
fn loom_a_wait_after_computing_always_ends() {
    model(false, wait_after_computing::<FUTEX>);
    model(false, wait_after_computing::<FD>);
}

#[test]
fn loom_a_displaced_event_thread_comes_back() {
    model(false, test_while_computing::<FUTEX>);
}

#[test]
fn loom_a_wait_after_a_hand_over_always_ends() {
    model(true, wait_after_computing::<FUTEX>);
    model(true, wait_after_computing::<FD>);
}

#[test]
fn loom_a_duty_is_handed_over_asleep_and_taken_back() {
    model(true, test_while_computing::<FUTEX>);
    model(true, test_while_computing::<FD>);
}

/// Isend, and nothing more: the event thread handles the message.
#[test]
fn loom_what_is_handed_over_asleep_is_done() {
    model(true, |rank: &Rank<FD>| {
        start(rank);
        let mut s = rank.lane.lock().unwrap();
        while s.busy {
            s = rank.handled.wait(s).unwrap();
        }
    });
}
