//! Registrations for events, and their delivery (MPI 5.0, 15.3.8).
//!
//! Every event comes from one source, in the order in which the owner of the lock noticed it; the
//! clock counts nanoseconds. The tool's functions are called without the lock, by one thread at a
//! time: a thread of the program that leaves MPI, one that is about to sleep inside MPI, or the
//! progress thread, as far as the functions promise to be safe there (`kw_engine::Safety`).

use super::{refuse, unknown};
use crate::error::{Res, ToolClass};
use crate::handle::{InstanceH, RegistrationH};
use crate::state::{Guard, Tables};
use kw_base::events::{ALL, Event, EventRecord, Wanted};
use kw_base::{Slab, Tick};
use kw_engine::{ProgressLock, Safety};
use kw_sys::callback::{ToolEvent, ToolEventDropped, ToolEventFree};

/// The levels of safety, by the value of the ABI (MPI_T_CB_REQUIRE_*).
const LEVELS: [(i32, Safety); 4] = [
    (0x00, Safety::None),
    (0x03, Safety::Restricted),
    (0x0f, Safety::ThreadSafe),
    (0x3f, Safety::SignalSafe),
];

/// The level of a value of MPI_T_cb_safety.
pub fn level(value: i32) -> Res<usize> {
    match LEVELS.iter().position(|l| l.0 == value) {
        Some(i) => Ok(i),
        None => refuse(
            ToolClass::Invalid,
            format!("cb_safety is {value:#x}, which is not a safety level"),
        ),
    }
}

/// A function of a tool, and its argument.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The callback.
    pub call: ToolEvent,
    /// Its argument.
    pub data: usize,
}

/// One registration.
#[derive(Debug)]
struct Registration {
    event: Event,
    /// Callbacks, by level.
    functions: [Option<Function>; LEVELS.len()],
    dropped: Option<ToolEventDropped>,
    /// Final callback, once the tool has freed it.
    freed: Option<Farewell>,
}

/// Callback for the end of a registration.
#[derive(Clone, Copy, Debug)]
pub struct Farewell {
    handle: RegistrationH,
    call: Option<ToolEventFree>,
    data: usize,
}

/// An event while tools are notified.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// Time.
    pub at: Tick,
    /// Kind of event.
    pub record: EventRecord,
}

/// Registrations and instances.
#[derive(Debug, Default)]
pub struct Events {
    registrations: Slab<Registration>,
    instances: Slab<Instance>,
    /// Whether a thread is calling functions of tools.
    telling: bool,
}

/// One call to make.
struct Call {
    function: Function,
    registration: RegistrationH,
}

impl Registration {
    /// The highest level that has a function.
    fn promise(&self) -> Option<Safety> {
        let last = self.functions.iter().rposition(|f| f.is_some());
        last.filter(|_| self.freed.is_none()).map(|i| LEVELS[i].1)
    }

    /// The function whose promise is sufficient for a place, and no stronger than needed.
    fn function(&self, place: Safety) -> Option<Function> {
        let enough = LEVELS.iter().zip(&self.functions);
        let mut enough = enough.filter(|(l, _)| l.1 >= place);
        enough
            .find_map(|(_, f)| *f)
            .filter(|_| self.freed.is_none())
    }
}

impl Events {
    /// A new registration.
    pub fn alloc(&mut self, event: Event) -> RegistrationH {
        RegistrationH::from_key(self.registrations.insert(Registration {
            event,
            functions: [None; LEVELS.len()],
            dropped: None,
            freed: None,
        }))
    }

    fn registration(&mut self, handle: RegistrationH) -> Res<&mut Registration> {
        let found = handle.key().and_then(|k| self.registrations.get_mut(k));
        found
            .filter(|r| r.freed.is_none())
            .ok_or_else(|| unknown(RegistrationH::WHAT, handle.0))
    }

    /// Whether a handle names a registration.
    pub fn check(&mut self, handle: RegistrationH) -> Res {
        self.registration(handle).map(drop)
    }

    /// Sets or removes the function of a level.
    pub fn set_function(
        &mut self,
        handle: RegistrationH,
        level: usize,
        f: Option<Function>,
    ) -> Res {
        self.registration(handle)?.functions[level] = f;
        Ok(())
    }

    /// Whether a level has a function.
    pub fn has_function(&mut self, handle: RegistrationH, level: usize) -> Res<bool> {
        Ok(self.registration(handle)?.functions[level].is_some())
    }

    /// Sets or removes the function for dropped events.
    pub fn set_dropped(&mut self, handle: RegistrationH, f: Option<ToolEventDropped>) -> Res {
        self.registration(handle)?.dropped = f;
        Ok(())
    }

    /// Frees a registration. Returns the callback to call now; none while a tool's callback runs:
    /// the caller of that callback does the rest.
    pub fn free(
        &mut self,
        handle: RegistrationH,
        call: Option<ToolEventFree>,
        data: usize,
    ) -> Res<Option<Farewell>> {
        let telling = self.telling;
        let farewell = Farewell { handle, call, data };
        self.registration(handle)?.freed = Some(farewell);
        if telling {
            return Ok(None);
        }
        self.remove(handle);
        Ok(Some(farewell))
    }

    fn remove(&mut self, handle: RegistrationH) {
        if let Some(k) = handle.key() {
            self.registrations.remove(k);
        }
    }

    /// Handles the end of the last user of the tool interface.
    pub fn forget(&mut self) {
        let keys: Vec<_> = self.registrations.iter().map(|(k, _)| k).collect();
        keys.into_iter().for_each(|k| {
            self.registrations.remove(k);
        });
    }

    /// The instance of a handle.
    pub fn instance(&self, handle: InstanceH) -> Res<Instance> {
        let found = handle.key().and_then(|k| self.instances.get(k));
        found
            .copied()
            .ok_or_else(|| unknown(InstanceH::WHAT, handle.0))
    }

    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        for (_, r) in self.registrations.iter() {
            if r.promise().is_some() {
                wanted.add(r.event);
            }
        }
        wanted
    }

    /// The weakest promise of all tools.
    fn promise(&self) -> Safety {
        let all = self.registrations.iter().filter_map(|(_, r)| r.promise());
        all.min().unwrap_or(Safety::SignalSafe)
    }

    fn calls(&self, event: Event, place: Safety) -> Vec<Call> {
        let all = self.registrations.iter().filter(|(_, r)| r.event == event);
        let call = |(k, r): (_, &Registration)| {
            Some(Call {
                function: r.function(place)?,
                registration: RegistrationH::from_key(k),
            })
        };
        all.filter_map(call).collect()
    }

    fn droppers(&self, event: Event, place: Safety) -> Vec<(ToolEventDropped, Call)> {
        let call = |c: Call| {
            let r = c.registration.key().and_then(|k| self.registrations.get(k));
            Some((r?.dropped?, c))
        };
        let all = self.calls(event, place).into_iter();
        all.filter_map(call).collect()
    }
}

impl Farewell {
    /// Notifies the tool. Without the lock.
    pub fn say(self) {
        if let Some(f) = self.call {
            f.call(self.handle.0, LEVELS[0].0, self.data);
        }
    }
}

/// Makes the engine record the events that some tool wants. Called when a function was set or
/// removed.
pub fn ask(guard: &mut Guard<'_>) {
    let events = &guard.above.tool.events;
    let (wanted, promise) = (events.wanted(), events.promise());
    guard.set_tools(wanted, promise, hand_out);
}

/// Notifies the tools of all recorded events. Without the lock, in one thread at a time.
fn hand_out(lock: &ProgressLock<Tables>, place: Safety) {
    lock.look().above.tool.events.telling = true;
    while tell_next(lock, place) {}
    tell_dropped(lock, place);
    let mut guard = lock.look();
    let events = &mut guard.above.tool.events;
    events.telling = false;
    let gone = events.registrations.iter().filter_map(|(_, r)| r.freed);
    let gone: Vec<Farewell> = gone.collect();
    gone.iter().for_each(|f| events.remove(f.handle));
    drop(guard);
    gone.into_iter().for_each(Farewell::say);
}

/// Handles the oldest event; returns `false` if there is none.
fn tell_next(lock: &ProgressLock<Tables>, place: Safety) -> bool {
    let mut guard = lock.look();
    let Some((at, record)) = guard.event_queue().and_then(|n| n.pop()) else {
        return false;
    };
    let events = &mut guard.above.tool.events;
    let instance = InstanceH::from_key(events.instances.insert(Instance { at, record }));
    let calls = events.calls(record.event, place);
    drop(guard);
    for c in calls {
        if is_live(lock, &c) {
            let f = c.function;
            f.call
                .call(instance.0, c.registration.0, required(place), f.data);
        }
    }
    let mut guard = lock.look();
    if let Some(k) = instance.key() {
        guard.above.tool.events.instances.remove(k);
    }
    true
}

/// Whether a function that was called just before has freed this registration.
fn is_live(lock: &ProgressLock<Tables>, call: &Call) -> bool {
    let mut guard = lock.look();
    let events = &mut guard.above.tool.events;
    events.check(call.registration).is_ok()
}

fn tell_dropped(lock: &ProgressLock<Tables>, place: Safety) {
    for position in 0..ALL.len() {
        let mut guard = lock.look();
        let count = guard.event_queue().map_or(0, |n| n.take_dropped(position));
        if count == 0 {
            continue;
        }
        let Some(event) = Event::at(position) else {
            continue;
        };
        let calls = guard.above.tool.events.droppers(event, place);
        drop(guard);
        for (f, c) in calls {
            let (safety, data) = (required(place), c.function.data);
            f.call(count as i64, c.registration.0, 0, safety, data);
        }
    }
}

/// The value of MPI_T_cb_safety that a place requires.
fn required(place: Safety) -> i32 {
    LEVELS.iter().find(|l| l.1 == place).map_or(0, |l| l.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C-unwind" fn nothing(_: usize, _: usize, _: i32, _: usize) {}

    fn function(data: usize) -> Function {
        let call = ToolEvent::of(nothing);
        Function { call, data }
    }

    #[test]
    fn the_least_promise_that_is_enough_is_taken_and_all_together_promise_the_least() {
        let mut e = Events::default();
        let a = e.alloc(Event::PeerLost);
        assert_eq!(e.promise(), Safety::SignalSafe);
        assert!(!e.wanted().has(Event::PeerLost));
        e.set_function(a, 1, Some(function(0x1000))).unwrap();
        e.set_function(a, 3, Some(function(0x3000))).unwrap();
        let b = e.alloc(Event::PeerLost);
        e.set_function(b, 2, Some(function(0x2000))).unwrap();
        assert!(e.wanted().has(Event::PeerLost));
        assert_eq!(e.promise(), Safety::ThreadSafe);
        let at = |e: &Events, place| -> Vec<usize> {
            let calls = e.calls(Event::PeerLost, place);
            calls.iter().map(|c| c.function.data).collect()
        };
        assert_eq!(at(&e, Safety::None), [0x1000, 0x2000]);
        assert_eq!(at(&e, Safety::ThreadSafe), [0x3000, 0x2000]);
        assert!(e.free(a, None, 0).unwrap().is_some());
        assert_eq!(at(&e, Safety::None), [0x2000]);
        assert!(e.check(a).is_err());
    }

    #[test]
    fn what_is_freed_while_functions_run_stays_until_they_have_ended() {
        let mut e = Events::default();
        let a = e.alloc(Event::PeerLost);
        e.telling = true;
        assert!(e.free(a, None, 0).unwrap().is_none());
        assert!(e.check(a).is_err());
        assert_eq!(e.registrations.len(), 1);
    }
}
