//! Forms of sends and receives.

use super::{End, blocking_send, buffered_send, immediate_send};
use super::{incoming, outgoing, post, recv_slow, settle, short};
use kw_engine::SendMode;
use kw_objects::error::Res;
use kw_objects::forms::{Blocking, Mode, Nonblocking, Persistent};
use kw_objects::handle::{CommH, RequestH};
use kw_objects::persistent::Start;
use kw_objects::request::{Flight, Kind, Part};
use kw_objects::state::{Guard, Mpi};
use kw_objects::status::{EMPTY, FROM_PROC_NULL, received};
use kw_sys::args::{Out, StatusOut};

/// A form of MPI_Send.
pub trait Send {
    /// Makes the call.
    fn send(self, mpi: &Mpi, comm: CommH, end: End, mode: Mode) -> Res;
}

/// Mode of the engine's send. A ready send is a standard send (MPI 5.0, 3.4 permits it); a buffered
/// one is a standard send of the copy.
#[inline(always)]
fn engine_mode(mode: Mode) -> SendMode {
    match mode {
        Mode::Standard | Mode::Ready | Mode::Buffered => SendMode::Standard,
        Mode::Synchronous => SendMode::Synchronous,
    }
}

impl Send for Blocking<()> {
    #[inline(always)]
    fn send(self, mpi: &Mpi, comm: CommH, end: End, mode: Mode) -> Res {
        if mode == Mode::Buffered {
            return buffered_send(mpi, comm, &end);
        }
        let mut guard = mpi.lock();
        let mode = engine_mode(mode);
        if mode == SendMode::Standard && short::send(&mut guard, comm, &end) {
            guard.leave();
            return Ok(());
        }
        blocking_send(mpi, guard, comm, &end, mode)
    }
}

impl Send for Nonblocking<(Out<RequestH>,)> {
    #[inline(always)]
    fn send(self, mpi: &Mpi, comm: CommH, end: End, mode: Mode) -> Res {
        let (request,) = self.0;
        if mode == Mode::Buffered {
            buffered_send(mpi, comm, &end)?;
            request.set(mpi.lock().above.ended_request(RequestH::DONE));
            return Ok(());
        }
        let mut guard = mpi.lock();
        let mode = engine_mode(mode);
        if mode == SendMode::Standard && short::send(&mut guard, comm, &end) {
            guard.leave();
            request.set(RequestH::DONE);
            return Ok(());
        }
        immediate_send(guard, comm, &end, mode, request)
    }
}

impl Send for Persistent<(Out<RequestH>,)> {
    fn send(self, mpi: &Mpi, comm: CommH, end: End, mode: Mode) -> Res {
        let (request,) = self.0;
        let mut guard = mpi.lock();
        let start = match (outgoing(&guard.above, comm, &end)?, mode) {
            (None, _) => Start::Nothing(EMPTY),
            (Some(out), Mode::Buffered) => {
                Start::Buffered(out, guard.above.comms.get(comm)?.session)
            }
            (Some(out), mode) => Start::Send(out, engine_mode(mode)),
        };
        request.set(guard.above.new_persistent(comm, start));
        Ok(())
    }
}

/// A form of MPI_Recv.
pub trait Recv {
    /// Makes the call.
    fn recv(self, mpi: &Mpi, comm: CommH, end: End) -> Res;
}

impl Recv for Blocking<(StatusOut,)> {
    #[inline(always)]
    fn recv(self, mpi: &Mpi, comm: CommH, end: End) -> Res {
        let (status,) = self.0;
        let mut guard = mpi.lock();
        if let Some(found) = short::recv(&mut guard, comm, &end) {
            guard.leave();
            status.set_keeping_error(received(found.source, found.tag, found.len));
            return Ok(());
        }
        recv_slow(mpi, guard, comm, &end, status)
    }
}

impl Recv for Nonblocking<(Out<RequestH>,)> {
    #[inline]
    fn recv(self, mpi: &Mpi, comm: CommH, end: End) -> Res {
        let mut guard = mpi.lock();
        let flight = match short::post(&mut guard, comm, &end) {
            Some(flight) => Some(flight),
            None => post(&mut guard, comm, &end)?,
        };
        self.receive(mpi, guard, flight)
    }
}

impl Recv for Persistent<(Out<RequestH>,)> {
    fn recv(self, mpi: &Mpi, comm: CommH, end: End) -> Res {
        let (request,) = self.0;
        let mut guard = mpi.lock();
        let start = match incoming(&guard.above, comm, &end)? {
            Some((want, buf)) => Start::Recv(want, buf),
            None => Start::Nothing(FROM_PROC_NULL),
        };
        request.set(guard.above.new_persistent(comm, start));
        Ok(())
    }
}

/// A form whose receive has been started.
pub trait Started {
    /// A receive; `None` if it is from MPI_PROC_NULL.
    fn receive(self, mpi: &Mpi, guard: Guard<'_>, flight: Option<Flight>) -> Res;

    /// A send and a receive.
    fn both(self, mpi: &Mpi, guard: Guard<'_>, parts: [Part; 2]) -> Res;
}

impl Started for Blocking<(StatusOut,)> {
    #[inline]
    fn receive(self, mpi: &Mpi, guard: Guard<'_>, flight: Option<Flight>) -> Res {
        let part = flight.map_or(Part::Ended(FROM_PROC_NULL), Part::Flying);
        let (_guard, got, end) = settle(mpi, guard, part)?;
        self.0.0.set_keeping_error(got);
        end
    }

    fn both(self, mpi: &Mpi, guard: Guard<'_>, [send, recv]: [Part; 2]) -> Res {
        let (guard, got, received) = settle(mpi, guard, recv)?;
        let (_guard, _, sent) = settle(mpi, guard, send)?;
        self.0.0.set_keeping_error(got);
        received.and(sent)
    }
}

impl Started for Nonblocking<(Out<RequestH>,)> {
    #[inline]
    fn receive(self, _: &Mpi, mut guard: Guard<'_>, flight: Option<Flight>) -> Res {
        let tables = &mut guard.above;
        self.0.0.set(match flight {
            Some(flight) => tables.new_request(Kind::Flight(flight)),
            None => tables.ended_request(RequestH::DONE_PROC_NULL),
        });
        guard.leave();
        Ok(())
    }

    fn both(self, _: &Mpi, mut guard: Guard<'_>, parts: [Part; 2]) -> Res {
        self.0
            .0
            .set(guard.above.new_request(Kind::Pair(Box::new(parts))));
        Ok(())
    }
}
