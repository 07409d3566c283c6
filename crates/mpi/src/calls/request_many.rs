//! Completion of several requests (MPI 5.0, 3.7.5).
//!
//! An array is traversed up to three times: to check that all handles are valid, to check whether
//! they have ended, to take their results. To wait for all means to wait for one after the other
//! and to take its result, so a thread is woken no more often than necessary and nothing is
//! allocated.

use crate::calls::coll::{lock_serving, wait_serving};
use crate::calls::request::{ask, conclude, doubt, look, wait_until_ended};
use kw_engine::{ReqId, WaitOn};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::forms::{Blocking, Peeking, Testing};
use kw_objects::handle::RequestH;
use kw_objects::request::{Ended, Pending, finish, finish_plain, is_active, pending};
use kw_objects::state::{Guard, Mpi, State, Tables};
use kw_objects::status::EMPTY;
use kw_sys::args::{Array, Ints, Out, Status, StatusOut};

/// MPI_UNDEFINED
const UNDEFINED: i32 = -32766;

/// The caller's requests.
#[derive(Clone, Copy)]
struct List {
    handles: Array<RequestH>,
    n: usize,
}

impl List {
    fn new(count: i32, handles: Array<RequestH>) -> Res<List> {
        if count < 0 {
            return fail!(Count: "count is {count}, but must not be negative");
        }
        if count > 0 && handles.is_null() {
            return fail!(Arg: "array_of_requests is a null pointer, but count is {count}");
        }
        Ok(List {
            handles,
            n: count as usize,
        })
    }

    /// Number of requests that are neither null nor inactive; an error for a handle that names no
    /// request.
    fn active(self, tables: &Tables) -> Res<usize> {
        let mut active = 0;
        for i in 0..self.n {
            active += is_active(tables, self.handles.get(i))? as usize;
        }
        Ok(active)
    }

    /// Whether the request at `i` is active and has ended.
    fn ended(self, state: &State, i: usize) -> bool {
        let handle = self.handles.get(i);
        pending(state, handle).is_none() && is_active(&state.above, handle).unwrap_or(true)
    }

    /// The first that is active and has ended.
    fn first(self, state: &State) -> Option<usize> {
        (0..self.n).find(|&i| self.ended(state, i))
    }

    fn all(self, state: &State) -> bool {
        (0..self.n).all(|i| pending(state, self.handles.get(i)).is_none())
    }

    /// The requests to wait for until any has ended; empty if any event may end one.
    fn ids(self, state: &State) -> Vec<ReqId> {
        let mut ids = Vec::with_capacity(self.n);
        for i in 0..self.n {
            match pending(state, self.handles.get(i)) {
                Some(Pending::On(id, _)) => ids.push(id),
                Some(Pending::Anything) => return Vec::new(),
                None => {}
            }
        }
        ids
    }

    /// Completes those that nothing else can complete, because ranks have left.
    fn doubt_each(self, state: &mut State) {
        (0..self.n).for_each(|i| doubt(state, self.handles.get(i)));
    }

    /// The requests, once none of them can end otherwise.
    fn doubt_all(self, state: &mut State) {
        let ids = self.ids(state);
        if let (false, Some(engine)) = (ids.is_empty(), &mut state.engine) {
            engine.doubt(WaitOn {
                requests: &ids,
                ..WaitOn::default()
            });
        }
    }

    /// One that is active and has ended (one must be active): a form that waits, waits for it.
    fn any<'a, F: Form>(self, mpi: &'a Mpi, mut guard: Guard<'a>) -> (Guard<'a>, Option<usize>) {
        if !F::WAITS {
            let found = guard.poll(|s| self.first(s), |s| self.doubt_all(s));
            return (guard, found);
        }
        let mut found = self.first(&guard);
        if found.is_none() {
            let ids = self.ids(&guard);
            let on = WaitOn {
                requests: &ids,
                from: None,
                ..WaitOn::default()
            };
            guard = wait_serving(mpi, guard, on, |s| {
                found = self.first(s);
                found.is_some()
            });
        }
        (guard, found)
    }

    /// Takes the result of the request at `i`, which has ended.
    fn conclude(self, guard: Guard<'_>, i: usize, status: StatusOut) -> Res {
        let replace = |null| self.handles.set(i, null);
        conclude(guard, self.handles.get(i), replace, status)
    }
}

/// The results of several requests on their way to the caller: statuses keep their error unless one
/// failed.
struct Harvest {
    statuses: Array<Status>,
    /// Position in `statuses` of the next result.
    at: usize,
    /// Generalized requests whose functions must be called, with their positions.
    asks: Vec<(usize, Ended)>,
    failed: Option<Box<Fault>>,
}

impl Harvest {
    fn new(statuses: Array<Status>) -> Harvest {
        Harvest {
            statuses,
            at: 0,
            asks: Vec::new(),
            failed: None,
        }
    }

    /// Takes the result of one operation that has succeeded; returns whether it was one.
    #[inline]
    fn take_plain(&mut self, state: &mut State, list: List, i: usize) -> bool {
        let Some(status) = finish_plain(state, list.handles.get(i)) else {
            return false;
        };
        list.handles.set(i, RequestH::NULL);
        self.tell(self.at, status);
        self.at += 1;
        true
    }

    /// Takes the result of a request that has ended.
    fn take(&mut self, state: &mut State, list: List, i: usize) {
        let handle = list.handles.get(i);
        let ended = finish(state, handle).unwrap_or_else(|fault| Ended {
            status: Status {
                error: fault.code,
                ..EMPTY
            },
            fault: Some(fault),
            gone: false,
            ask: None,
        });
        if ended.gone {
            list.handles.set(i, RequestH::NULL);
        }
        if ended.ask.is_some() {
            self.asks.push((self.at, ended));
        } else {
            self.put(self.at, ended);
        }
        self.at += 1;
    }

    fn put(&mut self, at: usize, ended: Ended) {
        if let Some(fault) = ended.fault {
            self.fail(fault);
        }
        self.tell(at, ended.status);
    }

    /// Writes a status for the caller.
    #[inline]
    fn tell(&self, at: usize, status: Status) {
        if self.statuses.is_null() {
            return;
        }
        let error = match self.failed {
            Some(_) => status.error,
            None => self.statuses.get(at).error,
        };
        self.statuses.set(at, Status { error, ..status });
    }

    /// Notes the first failure; from then on the statuses have errors, those before it MPI_SUCCESS.
    #[cold]
    fn fail(&mut self, fault: Box<Fault>) {
        if self.failed.is_some() {
            return;
        }
        self.failed = Some(fault);
        if self.statuses.is_null() {
            return;
        }
        for i in 0..self.at {
            let status = self.statuses.get(i);
            self.statuses.set(i, Status { error: 0, ..status });
        }
    }

    /// Calls the user's functions of generalized requests, with the lock released.
    fn done(mut self, guard: Guard<'_>) -> Res {
        drop(guard);
        for (at, mut ended) in std::mem::take(&mut self.asks) {
            ask(&mut ended);
            self.put(at, ended);
        }
        match self.failed {
            None => Ok(()),
            Some(mut fault) => {
                fault.text = format!("{} (the statuses say which requests failed)", fault.text);
                fault.code = Class::InStatus as i32;
                Err(fault)
            }
        }
    }
}

/// Where a form reports whether requests have ended: nowhere, or in a flag.
pub trait Flag {
    /// Reports it.
    fn say(&self, ended: bool);
}

impl Flag for () {
    fn say(&self, _: bool) {}
}

impl Flag for (Out<i32>,) {
    fn say(&self, ended: bool) {
        self.0.set(ended as i32);
    }
}

/// A form of MPI_Waitall, MPI_Waitany and MPI_Waitsome.
pub trait Form {
    /// Whether the call waits; otherwise it checks once.
    const WAITS: bool;
    /// Whether the call completes the requests; otherwise it only reads their statuses.
    const TAKES: bool;

    /// Reports whether requests have ended.
    fn say(&self, ended: bool);
}

impl Form for Blocking<()> {
    const WAITS: bool = true;
    const TAKES: bool = true;

    fn say(&self, _: bool) {}
}

impl<F: Flag> Form for Testing<F> {
    const WAITS: bool = false;
    const TAKES: bool = true;

    fn say(&self, ended: bool) {
        self.0.say(ended);
    }
}

impl<F: Flag> Form for Peeking<F> {
    const WAITS: bool = false;
    const TAKES: bool = false;

    fn say(&self, ended: bool) {
        self.0.say(ended);
    }
}

fn lock<F: Form>(mpi: &Mpi) -> Guard<'_> {
    match F::WAITS {
        true => mpi.lock(),
        false => lock_serving(mpi),
    }
}

/// Returns the results of all requests or, for the functions that return number and indices, of
/// those that have ended.
fn results<'a, F: Form>(
    mpi: &'a Mpi,
    mut guard: Guard<'a>,
    list: List,
    some: Option<(Out<i32>, Ints)>,
    statuses: Array<Status>,
) -> Res {
    let mut harvest = Harvest::new(statuses);
    for i in 0..list.n {
        if let Some((_, indices)) = some {
            if !list.ended(&guard, i) {
                continue;
            }
            indices.set(harvest.at, i as i64);
        }
        if F::TAKES {
            harvest.take(&mut guard, list, i);
        } else {
            guard = look(mpi, guard, list.handles.get(i), statuses.place(harvest.at))?;
            harvest.at += 1;
        }
    }
    if let Some((outcount, _)) = some {
        outcount.set(harvest.at as i32);
    }
    harvest.done(guard)
}

/// Waits for one request after the other, and takes its result.
fn wait_for_all<'a>(
    mpi: &'a Mpi,
    mut guard: Guard<'a>,
    list: List,
    statuses: Array<Status>,
) -> Res {
    let mut harvest = Harvest::new(statuses);
    for i in 0..list.n {
        if !harvest.take_plain(&mut guard, list, i) {
            guard = wait_until_ended(mpi, guard, list.handles.get(i));
            harvest.take(&mut guard, list, i);
        }
    }
    harvest.done(guard)
}

/// MPI_Waitall
pub fn waitall<F: Form>(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    array_of_statuses: Array<Status>,
    form: F,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let mut guard = lock::<F>(mpi);
    list.active(&guard.above)?;
    if F::WAITS {
        return wait_for_all(mpi, guard, list, array_of_statuses);
    }
    let all = guard.poll(|s| list.all(s).then_some(()), |s| list.doubt_each(s));
    form.say(all.is_some());
    if all.is_none() {
        return Ok(());
    }
    results::<F>(mpi, guard, list, None, array_of_statuses)
}

/// MPI_Waitany
pub fn waitany<F: Form>(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    index: Out<i32>,
    status: StatusOut,
    form: F,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let guard = lock::<F>(mpi);
    let active = list.active(&guard.above)?;
    index.set(UNDEFINED);
    form.say(active == 0);
    if active == 0 {
        status.set(EMPTY);
        return Ok(());
    }
    let (guard, Some(i)) = list.any::<F>(mpi, guard) else {
        return Ok(());
    };
    form.say(true);
    index.set(i as i32);
    match F::TAKES {
        true => list.conclude(guard, i, status),
        false => look(mpi, guard, list.handles.get(i), status).map(drop),
    }
}

/// MPI_Waitsome
pub fn waitsome<F: Form>(
    mpi: &Mpi,
    incount: i32,
    array_of_requests: Array<RequestH>,
    outcount: Out<i32>,
    array_of_indices: Ints,
    array_of_statuses: Array<Status>,
    _form: F,
) -> Res {
    let list = List::new(incount, array_of_requests)?;
    let guard = lock::<F>(mpi);
    if list.active(&guard.above)? == 0 {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    let (guard, _) = list.any::<F>(mpi, guard);
    let some = Some((outcount, array_of_indices));
    results::<F>(mpi, guard, list, some, array_of_statuses)
}
