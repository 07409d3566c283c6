//! Completion of several requests (MPI 5.0, 3.7.5).
//!
//! An array is walked up to three times: are all handles good, have they ended, take what they left. To wait for all
//! means to wait for one after the other, so a thread is woken no oftener than it must be and nothing is allocated.

use crate::calls::coll::{lock_serving, wait_serving};
use crate::calls::request::{ask, conclude, doubt, look, wait_until_ended};
use crate::error::{Class, Fault, Res, fail};
use crate::handle::RequestH;
use crate::objects::request::{Ended, Pending, finish, is_active, pending};
use crate::objects::status::EMPTY;
use crate::state::{Guard, Mpi, State, Tables};
use kw_engine::{ReqId, WaitOn};
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
            return fail(
                Class::Count,
                format!("count is {count}, but must not be negative"),
            );
        }
        if count > 0 && handles.is_null() {
            return fail(
                Class::Arg,
                format!("array_of_requests is a null pointer, but count is {count}"),
            );
        }
        Ok(List {
            handles,
            n: count as usize,
        })
    }

    /// How many are neither null nor inactive; an error for a handle that names no request.
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

    /// What to wait for until any has ended; empty when anything may end one.
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

    /// Ends those that nothing else can end, because of ranks that have left.
    fn doubt_each(self, state: &mut State) {
        (0..self.n).for_each(|i| doubt(state, self.handles.get(i)));
    }

    /// The same, once none of them can end otherwise.
    fn doubt_all(self, state: &mut State) {
        let ids = self.ids(state);
        if let (false, Some(engine)) = (ids.is_empty(), &mut state.engine) {
            engine.doubt(WaitOn {
                requests: &ids,
                ..WaitOn::default()
            });
        }
    }

    /// Waits until one that is active has ended (there must be one that is active).
    fn wait_any<'a>(self, mpi: &'a Mpi, guard: Guard<'a>) -> (Guard<'a>, usize) {
        if let Some(i) = self.first(&guard) {
            return (guard, i);
        }
        let ids = self.ids(&guard);
        let on = WaitOn {
            requests: &ids,
            from: None,
            ..WaitOn::default()
        };
        let mut found = None;
        let guard = wait_serving(mpi, guard, on, |s| {
            found = self.first(s);
            found.is_some()
        });
        (guard, found.unwrap_or(0))
    }

    /// Takes the result of the request at `i`, which has ended.
    fn conclude(self, guard: Guard<'_>, i: usize, status: StatusOut) -> Res {
        let replace = |null| self.handles.set(i, null);
        conclude(guard, self.handles.get(i), replace, status)
    }
}

/// The results of several requests on their way to the caller: statuses keep their error unless one failed.
struct Harvest {
    statuses: Array<Status>,
    /// Position in `statuses` of the next result.
    at: usize,
    /// Generalized requests to ask, with their positions.
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
        if self.statuses.is_null() {
            return;
        }
        let error = match self.failed {
            Some(_) => ended.status.error,
            None => self.statuses.get(at).error,
        };
        self.statuses.set(
            at,
            Status {
                error,
                ..ended.status
            },
        );
    }

    /// Remembers the first failure; from then on the statuses carry errors, those before it MPI_SUCCESS.
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

    /// Asks the user about generalized requests, with the lane released.
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

/// MPI_Waitall
pub fn waitall(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    array_of_statuses: Array<Status>,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let mut guard = mpi.lock();
    list.active(&guard.above)?;
    for i in 0..list.n {
        guard = wait_until_ended(mpi, guard, list.handles.get(i));
    }
    let mut harvest = Harvest::new(array_of_statuses);
    for i in 0..list.n {
        harvest.take(&mut guard, list, i);
    }
    harvest.done(guard)
}

/// MPI_Testall
pub fn testall(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    flag: Out<i32>,
    array_of_statuses: Array<Status>,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let mut guard = lock_serving(mpi);
    list.active(&guard.above)?;
    let all = guard.poll(|s| list.all(s).then_some(()), |s| list.doubt_each(s));
    flag.set(all.is_some() as i32);
    if all.is_none() {
        return Ok(());
    }
    let mut harvest = Harvest::new(array_of_statuses);
    for i in 0..list.n {
        harvest.take(&mut guard, list, i);
    }
    harvest.done(guard)
}

/// MPI_Waitany
pub fn waitany(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    index: Out<i32>,
    status: StatusOut,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let guard = mpi.lock();
    if list.active(&guard.above)? == 0 {
        index.set(UNDEFINED);
        status.set(EMPTY);
        return Ok(());
    }
    let (guard, i) = list.wait_any(mpi, guard);
    index.set(i as i32);
    list.conclude(guard, i, status)
}

/// MPI_Testany
pub fn testany(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    index: Out<i32>,
    flag: Out<i32>,
    status: StatusOut,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let mut guard = lock_serving(mpi);
    index.set(UNDEFINED);
    if list.active(&guard.above)? == 0 {
        flag.set(1);
        status.set(EMPTY);
        return Ok(());
    }
    let found = guard.poll(|s| list.first(s), |s| list.doubt_all(s));
    flag.set(found.is_some() as i32);
    match found {
        Some(i) => {
            index.set(i as i32);
            list.conclude(guard, i, status)
        }
        None => Ok(()),
    }
}

/// Takes the results of all that have ended, and says how many and which.
fn harvest_some(
    mut guard: Guard<'_>,
    list: List,
    outcount: Out<i32>,
    indices: Ints,
    statuses: Array<Status>,
) -> Res {
    let mut harvest = Harvest::new(statuses);
    for i in 0..list.n {
        if list.ended(&guard, i) {
            indices.set(harvest.at, i as i64);
            harvest.take(&mut guard, list, i);
        }
    }
    outcount.set(harvest.at as i32);
    harvest.done(guard)
}

/// MPI_Waitsome
pub fn waitsome(
    mpi: &Mpi,
    incount: i32,
    array_of_requests: Array<RequestH>,
    outcount: Out<i32>,
    array_of_indices: Ints,
    array_of_statuses: Array<Status>,
) -> Res {
    let list = List::new(incount, array_of_requests)?;
    let guard = mpi.lock();
    if list.active(&guard.above)? == 0 {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    let (guard, _) = list.wait_any(mpi, guard);
    harvest_some(guard, list, outcount, array_of_indices, array_of_statuses)
}

/// MPI_Testsome
pub fn testsome(
    mpi: &Mpi,
    incount: i32,
    array_of_requests: Array<RequestH>,
    outcount: Out<i32>,
    array_of_indices: Ints,
    array_of_statuses: Array<Status>,
) -> Res {
    let list = List::new(incount, array_of_requests)?;
    let mut guard = lock_serving(mpi);
    if list.active(&guard.above)? == 0 {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    guard.poll(|s| list.first(s), |s| list.doubt_all(s));
    harvest_some(guard, list, outcount, array_of_indices, array_of_statuses)
}

/// Looks at the request at `i` and writes its status to `at`.
fn look_at<'a>(
    mpi: &'a Mpi,
    guard: Guard<'a>,
    list: List,
    i: usize,
    status: StatusOut,
) -> Res<Guard<'a>> {
    look(mpi, guard, list.handles.get(i), status)
}

/// MPI_Request_get_status_all
pub fn request_get_status_all(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    flag: Out<i32>,
    array_of_statuses: Array<Status>,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let mut guard = lock_serving(mpi);
    list.active(&guard.above)?;
    let all = guard.poll(|s| list.all(s).then_some(()), |s| list.doubt_each(s));
    flag.set(all.is_some() as i32);
    if all.is_some() {
        for i in 0..list.n {
            guard = look_at(mpi, guard, list, i, array_of_statuses.place(i))?;
        }
    }
    Ok(())
}

/// MPI_Request_get_status_any
pub fn request_get_status_any(
    mpi: &Mpi,
    count: i32,
    array_of_requests: Array<RequestH>,
    index: Out<i32>,
    flag: Out<i32>,
    status: StatusOut,
) -> Res {
    let list = List::new(count, array_of_requests)?;
    let mut guard = lock_serving(mpi);
    index.set(UNDEFINED);
    if list.active(&guard.above)? == 0 {
        flag.set(1);
        status.set(EMPTY);
        return Ok(());
    }
    let found = guard.poll(|s| list.first(s), |s| list.doubt_all(s));
    flag.set(found.is_some() as i32);
    if let Some(i) = found {
        index.set(i as i32);
        drop(look_at(mpi, guard, list, i, status)?);
    }
    Ok(())
}

/// MPI_Request_get_status_some
pub fn request_get_status_some(
    mpi: &Mpi,
    incount: i32,
    array_of_requests: Array<RequestH>,
    outcount: Out<i32>,
    array_of_indices: Ints,
    array_of_statuses: Array<Status>,
) -> Res {
    let list = List::new(incount, array_of_requests)?;
    let mut guard = lock_serving(mpi);
    if list.active(&guard.above)? == 0 {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    guard.poll(|s| list.first(s), |s| list.doubt_all(s));
    let mut found = 0;
    for i in 0..list.n {
        if list.ended(&guard, i) {
            array_of_indices.set(found, i as i64);
            guard = look_at(mpi, guard, list, i, array_of_statuses.place(found))?;
            found += 1;
        }
    }
    outcount.set(found as i32);
    Ok(())
}
