//! Counters as performance variables (MPI 5.0, 15.3.7).
//!
//! The library counts once and never resets; each handle shows its own view: the growth of the
//! counter while the handle was started, or the largest level since then. So each tool starts,
//! stops and resets only its own view.
//!
//! | class | started and stopped | written and reset | shows |
//! | --- | --- | --- | --- |
//! | counter, aggregate | yes | yes | sum of what was counted while started |
//! | highwatermark | yes | yes | largest level while started, beginning with the level then |
//! | level, state | no: continuous | no | the value now |

use super::{MPI_INT, MPI_UNSIGNED_LONG_LONG, refuse, unknown};
use crate::error::{Fault, Res, ToolClass};
use crate::handle::{PvarH, PvarSessionH, TypeH};
use crate::state::{Guard, State};
use kw_base::counters::{ALL, Class, Counter, Row};
use kw_base::{Key, Slab};
use kw_engine::Inner;

/// Current values of the counters, with or without an engine.
pub trait Values {
    /// The value of a counter.
    fn now(&self, c: Counter) -> u64;
    /// The largest value of a level since the last query, for a row of [`Class::Peak`].
    fn peak(&mut self, c: Counter) -> u64;
}

impl<T> Values for Inner<T> {
    fn now(&self, c: Counter) -> u64 {
        self.counter(c)
    }

    fn peak(&mut self, c: Counter) -> u64 {
        self.engine.as_mut().map_or(0, |e| e.take_peak(c))
    }
}

/// Value shown by a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pvar {
    session: Key,
    counter: Counter,
    started: bool,
    /// Growth before the last start.
    value: u64,
    /// The counter at the last start.
    base: u64,
}

/// Sessions and handles.
#[derive(Debug, Default)]
pub struct Pvars {
    sessions: Slab<()>,
    handles: Slab<Pvar>,
    /// Counters when the job was left.
    last: Vec<u64>,
}

/// Datatype of a counter's value.
pub fn datatype(row: &Row) -> TypeH {
    match row.class {
        Class::State(_) => MPI_INT,
        _ => MPI_UNSIGNED_LONG_LONG,
    }
}

/// MPI_T_PVAR_CLASS_*.
pub fn class(row: &Row) -> i32 {
    match row.class {
        Class::State(_) => 1,
        Class::Level => 2,
        Class::Peak(_) => 5,
        Class::Count => 7,
        Class::Sum => 8,
    }
}

/// Whether a variable cannot be started and stopped; such a variable cannot be written or reset
/// either.
pub fn is_continuous(row: &Row) -> bool {
    matches!(row.class, Class::Level | Class::State(_))
}

fn is_peak(c: Counter) -> bool {
    matches!(c.row().class, Class::Peak(_))
}

impl Pvars {
    /// A new session.
    pub fn create(&mut self) -> PvarSessionH {
        PvarSessionH::from_key(self.sessions.insert(()))
    }

    /// Frees a session and its handles.
    pub fn free_session(&mut self, session: PvarSessionH) -> Res {
        let key = self.session(session)?;
        self.sessions.remove(key);
        for k in self.of(key) {
            self.handles.remove(k);
        }
        Ok(())
    }

    /// Handles the end of the last user of the tool interface.
    pub fn forget(&mut self) {
        let keys: Vec<_> = self.handles.iter().map(|(k, _)| k).collect();
        keys.into_iter().for_each(|k| {
            self.handles.remove(k);
        });
        let keys: Vec<_> = self.sessions.iter().map(|(k, _)| k).collect();
        keys.into_iter().for_each(|k| {
            self.sessions.remove(k);
        });
    }

    fn session(&self, session: PvarSessionH) -> Res<Key> {
        let found = session.key().filter(|k| self.sessions.get(*k).is_some());
        found.ok_or_else(|| {
            Fault::tool(
                ToolClass::InvalidSession,
                format!("{:#x} names no performance session (freed?)", session.0),
            )
        })
    }

    /// The handles of a session.
    fn of(&self, session: Key) -> Vec<Key> {
        let all = self.handles.iter().filter(|(_, p)| p.session == session);
        all.map(|(k, _)| k).collect()
    }

    /// One handle of a session.
    fn one(&self, session: PvarSessionH, handle: PvarH) -> Res<Key> {
        let session = self.session(session)?;
        let key = handle.key().filter(|k| {
            let found = self.handles.get(*k);
            found.is_some_and(|p| p.session == session)
        });
        key.ok_or_else(|| unknown(PvarH::WHAT, handle.0))
    }

    /// One handle of a session, or all for which `fits` holds.
    fn some(
        &self,
        session: PvarSessionH,
        handle: PvarH,
        fits: impl Fn(&Pvar) -> bool,
    ) -> Res<Vec<Key>> {
        if handle != PvarH::ALL {
            return Ok(vec![self.one(session, handle)?]);
        }
        let mut all = self.of(self.session(session)?);
        all.retain(|k| self.handles.get(*k).is_some_and(&fits));
        Ok(all)
    }

    /// A new handle; it shows its built-in value until it is started.
    pub fn alloc(
        &mut self,
        values: &mut impl Values,
        session: PvarSessionH,
        counter: Counter,
    ) -> Res<PvarH> {
        let session = self.session(session)?;
        let mut pvar = Pvar {
            session,
            counter,
            started: false,
            value: 0,
            base: 0,
        };
        pvar.reset(self.now(values, counter), self.level(values, counter));
        Ok(PvarH::from_key(self.handles.insert(pvar)))
    }

    /// Frees a handle.
    pub fn free(&mut self, session: PvarSessionH, handle: PvarH) -> Res {
        let key = self.one(session, handle)?;
        self.handles.remove(key);
        Ok(())
    }

    /// Starts a variable, or all of the session that can be started.
    pub fn start(&mut self, v: &mut impl Values, session: PvarSessionH, handle: PvarH) -> Res {
        let fits = |p: &Pvar| !is_continuous(p.counter.row()) && !p.started;
        self.start_stop(v, session, handle, fits, Pvar::start)
    }

    /// Stops a variable, or all of the session that are started.
    pub fn stop(&mut self, v: &mut impl Values, session: PvarSessionH, handle: PvarH) -> Res {
        let fits = |p: &Pvar| !is_continuous(p.counter.row()) && p.started;
        self.start_stop(v, session, handle, fits, Pvar::stop)
    }

    fn start_stop(
        &mut self,
        values: &mut impl Values,
        session: PvarSessionH,
        handle: PvarH,
        fits: impl Fn(&Pvar) -> bool,
        act: impl Fn(&mut Pvar, u64, u64),
    ) -> Res {
        for key in self.some(session, handle, fits)? {
            self.hand_out_peaks(values);
            let Some(p) = self.handles.get(key).copied() else {
                continue;
            };
            if is_continuous(p.counter.row()) {
                let text = format!("{} is continuous", p.counter.row().name);
                return refuse(ToolClass::PvarNoStartstop, text);
            }
            let (now, level) = (self.now(values, p.counter), self.level(values, p.counter));
            if let Some(p) = self.handles.get_mut(key) {
                act(p, now, level);
            }
        }
        Ok(())
    }

    /// The value that a handle shows, and its counter.
    pub fn read(
        &mut self,
        values: &mut impl Values,
        session: PvarSessionH,
        handle: PvarH,
    ) -> Res<(Counter, u64)> {
        let key = self.one(session, handle)?;
        self.hand_out_peaks(values);
        let Some(p) = self.handles.get(key) else {
            return Err(unknown(PvarH::WHAT, handle.0));
        };
        Ok((p.counter, p.shows(self.now(values, p.counter))))
    }

    /// Reads and resets at once.
    pub fn read_reset(
        &mut self,
        values: &mut impl Values,
        session: PvarSessionH,
        handle: PvarH,
    ) -> Res<(Counter, u64)> {
        let (counter, value) = self.read(values, session, handle)?;
        if is_continuous(counter.row()) {
            let text = format!("{} cannot be reset", counter.row().name);
            return refuse(ToolClass::PvarNoAtomic, text);
        }
        self.reset(values, session, handle)?;
        Ok((counter, value))
    }

    /// Sets a variable to its built-in value, or all of the session that can be set.
    pub fn reset(&mut self, values: &mut impl Values, session: PvarSessionH, handle: PvarH) -> Res {
        let fits = |p: &Pvar| !is_continuous(p.counter.row());
        for key in self.some(session, handle, fits)? {
            let counter = self.writable(key)?;
            self.hand_out_peaks(values);
            let (now, level) = (self.now(values, counter), self.level(values, counter));
            if let Some(p) = self.handles.get_mut(key) {
                p.reset(now, level);
            }
        }
        Ok(())
    }

    /// Checks whether a variable may be written, before the caller has its value.
    pub fn check_write(&self, session: PvarSessionH, handle: PvarH) -> Res {
        let key = self.one(session, handle)?;
        self.writable(key).map(drop)
    }

    /// Writes the value that a handle shows.
    pub fn write(
        &mut self,
        values: &mut impl Values,
        session: PvarSessionH,
        handle: PvarH,
        value: u64,
    ) -> Res {
        let key = self.one(session, handle)?;
        let counter = self.writable(key)?;
        self.hand_out_peaks(values);
        let now = self.now(values, counter);
        if let Some(p) = self.handles.get_mut(key) {
            (p.value, p.base) = (value, now);
        }
        Ok(())
    }

    fn writable(&self, key: Key) -> Res<Counter> {
        match self.handles.get(key) {
            Some(p) if !is_continuous(p.counter.row()) => Ok(p.counter),
            Some(p) => refuse(
                ToolClass::PvarNoWrite,
                format!("{} cannot be written or reset", p.counter.row().name),
            ),
            None => refuse(ToolClass::InvalidHandle, "the handle was freed"),
        }
    }

    /// Gives the largest levels since the last call to all started handles.
    fn hand_out_peaks(&mut self, values: &mut impl Values) {
        for c in (0..ALL.len())
            .filter_map(Counter::at)
            .filter(|c| is_peak(*c))
        {
            let peak = values.peak(c);
            let keys: Vec<Key> = self.handles.iter().map(|(k, _)| k).collect();
            for k in keys {
                if let Some(p) = self.handles.get_mut(k)
                    && p.counter == c
                    && p.started
                {
                    p.value = p.value.max(peak);
                }
            }
        }
    }

    /// A counter, which does not return to zero when the engine is gone: the next engine continues
    /// it.
    fn now(&self, values: &impl Values, c: Counter) -> u64 {
        let before = self.last.get(c as usize).copied().unwrap_or(0);
        match c.row().class {
            _ if is_continuous(c.row()) => values.now(c),
            Class::Peak(_) => before.max(values.now(c)),
            _ => before + values.now(c),
        }
    }

    /// The level that a highwatermark watches.
    fn level(&self, values: &impl Values, c: Counter) -> u64 {
        match c.row().class {
            Class::Peak(level) => values.now(level),
            _ => 0,
        }
    }

    /// Keeps the values of the counters when the job is left.
    pub fn leave(&mut self, values: &mut impl Values) {
        self.hand_out_peaks(values);
        let all = (0..ALL.len()).filter_map(Counter::at);
        self.last = all.map(|c| self.now(values, c)).collect();
    }
}

impl Pvar {
    fn start(&mut self, now: u64, level: u64) {
        if self.started {
            return;
        }
        self.started = true;
        self.base = now;
        if is_peak(self.counter) {
            self.value = self.value.max(level);
        }
    }

    fn stop(&mut self, now: u64, _level: u64) {
        self.value = self.shows(now);
        self.started = false;
    }

    fn reset(&mut self, now: u64, level: u64) {
        self.base = now;
        self.value = level;
    }

    fn shows(&self, now: u64) -> u64 {
        match self.counter.row().class {
            Class::Level | Class::State(_) => now,
            Class::Count | Class::Sum if self.started => {
                self.value.wrapping_add(now.wrapping_sub(self.base))
            }
            Class::Count | Class::Sum | Class::Peak(_) => self.value,
        }
    }
}

/// Does something with the variables while the counters can be read.
pub fn with<R>(guard: &mut Guard<'_>, f: impl FnOnce(&mut Pvars, &mut State) -> Res<R>) -> Res<R> {
    // Both are behind the lock; the variables are taken out of it meanwhile.
    let mut pvars = std::mem::take(&mut guard.above.tool.pvars);
    let done = f(&mut pvars, guard);
    guard.above.tool.pvars = pvars;
    done
}

/// Freezes the values that tools see when the job is left.
pub fn leave(guard: &mut Guard<'_>) {
    // This cannot fail.
    let _ = with(guard, |p, v| {
        p.leave(v);
        Ok(())
    });
    let inner: &mut State = guard;
    if let Some(engine) = &inner.engine {
        inner.above.tool.cvars.leave(engine.settings());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Fake {
        sent: u64,
        waiting: u64,
        most: u64,
    }

    impl Fake {
        fn wait(&mut self, n: u64) {
            self.waiting = n;
            self.most = self.most.max(n);
        }
    }

    impl Values for Fake {
        fn now(&self, c: Counter) -> u64 {
            match c {
                Counter::EagerSent => self.sent,
                Counter::UnexpectedWaiting => self.waiting,
                _ => 0,
            }
        }

        fn peak(&mut self, c: Counter) -> u64 {
            match c {
                Counter::UnexpectedWaitingPeak => std::mem::replace(&mut self.most, self.waiting),
                _ => 0,
            }
        }
    }

    #[test]
    fn a_counter_counts_only_while_it_is_started_and_each_handle_has_its_own() {
        let (mut f, mut p) = (Fake::default(), Pvars::default());
        let s = p.create();
        let a = p.alloc(&mut f, s, Counter::EagerSent).unwrap();
        let b = p.alloc(&mut f, s, Counter::EagerSent).unwrap();
        f.sent = 5;
        p.start(&mut f, s, a).unwrap();
        f.sent = 8;
        p.start(&mut f, s, PvarH::ALL).unwrap();
        f.sent = 10;
        assert_eq!(p.read(&mut f, s, a).unwrap().1, 5);
        assert_eq!(p.read(&mut f, s, b).unwrap().1, 2);
        p.stop(&mut f, s, a).unwrap();
        f.sent = 20;
        assert_eq!(p.read(&mut f, s, a).unwrap().1, 5);
        assert_eq!(p.read_reset(&mut f, s, b).unwrap().1, 12);
        assert_eq!(p.read(&mut f, s, b).unwrap().1, 0);
        p.write(&mut f, s, b, 100).unwrap();
        f.sent = 21;
        assert_eq!(p.read(&mut f, s, b).unwrap().1, 101);
        p.leave(&mut f);
        f.sent = 0;
        assert_eq!(p.read(&mut f, s, b).unwrap().1, 101);
        f.sent = 4;
        assert_eq!(p.read(&mut f, s, b).unwrap().1, 105);
        p.leave(&mut f);
        f.sent = 0;
        assert_eq!(p.read(&mut f, s, b).unwrap().1, 105);
    }

    #[test]
    fn a_highwatermark_begins_with_the_level_and_sees_what_was_between_two_reads() {
        let (mut f, mut p) = (Fake::default(), Pvars::default());
        let s = p.create();
        f.wait(9);
        f.wait(2);
        let h = p.alloc(&mut f, s, Counter::UnexpectedWaitingPeak).unwrap();
        p.start(&mut f, s, h).unwrap();
        assert_eq!(p.read(&mut f, s, h).unwrap().1, 2);
        f.wait(7);
        f.wait(1);
        assert_eq!(p.read(&mut f, s, h).unwrap().1, 7);
        p.reset(&mut f, s, h).unwrap();
        assert_eq!(p.read(&mut f, s, h).unwrap().1, 1);
        p.stop(&mut f, s, h).unwrap();
        f.wait(50);
        assert_eq!(p.read(&mut f, s, h).unwrap().1, 1);
    }

    #[test]
    fn what_is_continuous_is_neither_started_nor_written() {
        let (mut f, mut p) = (Fake::default(), Pvars::default());
        let s = p.create();
        let h = p.alloc(&mut f, s, Counter::UnexpectedWaiting).unwrap();
        let code = |r: Res| r.unwrap_err().code;
        let no = |c: ToolClass| c as i32;
        assert_eq!(code(p.start(&mut f, s, h)), no(ToolClass::PvarNoStartstop));
        assert_eq!(code(p.reset(&mut f, s, h)), no(ToolClass::PvarNoWrite));
        assert_eq!(
            code(p.read_reset(&mut f, s, h).map(drop)),
            no(ToolClass::PvarNoAtomic)
        );
        assert!(p.start(&mut f, s, PvarH::ALL).is_ok());
        let other = p.create();
        assert_eq!(
            code(p.start(&mut f, other, h)),
            no(ToolClass::InvalidHandle)
        );
        p.free_session(s).unwrap();
        assert_eq!(code(p.start(&mut f, s, h)), no(ToolClass::InvalidSession));
    }
}
