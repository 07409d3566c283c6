//! Data access (MPI 5.0, 14.4).

use crate::access::{AccessStart, How, Job, User, prepare, refuse};
use crate::open::{Split, find};
use kw_engine::{Failure, ReqId};
use kw_mpi::chapter::running;
use kw_objects::error::{Class, Fault, Res, Scope, fail};
use kw_objects::handle::{FileH, RequestH, TypeH};
use kw_objects::request::{Flight, Kind};
use kw_objects::state::Mpi;
use kw_sys::args::{Out, Status, StatusOut};
use kw_sys::buf::Addr;

/// Makes a rank with wrong arguments take part in a collective access nevertheless.
fn refuse_now(mpi: &'static Mpi, fh: FileH, how: How, fault: Box<Fault>) -> Box<Fault> {
    match find(mpi, fh) {
        Ok(open) if how.collective => {
            open.together.end();
            refuse(mpi, &open, how, fault)
        }
        _ => fault,
    }
}

/// The same for a call that must not wait for other ranks: another thread takes part.
fn refuse_later(mpi: &'static Mpi, fh: FileH, how: How, fault: Box<Fault>) -> Box<Fault> {
    if let (true, Ok(open)) = (how.collective, find(mpi, fh)) {
        let copy = Fault::of_code(fault.code, fault.text.clone());
        let file = open.clone();
        open.together.run(Box::new(move || {
            refuse(mpi, &file, how, copy);
        }));
    }
    fault
}

/// Makes the access now.
fn now(mpi: &'static Mpi, fh: FileH, how: How, user: User, status: StatusOut) -> Res {
    let job = prepare(mpi, fh, how, user).map_err(|fault| refuse_now(mpi, fh, how, fault))?;
    let open = job.open().clone();
    // Collective accesses to one file run one after the other.
    if how.collective && !open.together.is_idle() {
        let id = later(mpi, job)?;
        return settle(mpi, fh, id, status);
    }
    let moved = job.run()?;
    tell(status, moved);
    Ok(())
}

fn tell(status: StatusOut, moved: u64) {
    if !status.is_ignored() {
        status.set_keeping_error(of_bytes(moved));
    }
}

/// The status of an access that moved this many bytes.
fn of_bytes(moved: u64) -> Status {
    kw_objects::status::received(0, 0, moved)
}

/// Makes another thread run the access; returns the operation that ends with it.
fn later(mpi: &'static Mpi, job: Job) -> Res<ReqId> {
    let mut guard = mpi.lock();
    let id = running(&mut guard)?.0.requests().open();
    drop(guard);
    let open = job.open().clone();
    let worker = match job.is_collective() {
        true => &open.together,
        false => &open.alone,
    };
    worker.run(Box::new(move || {
        let (moved, failure) = match job.run() {
            Ok(moved) => (moved, None),
            Err(fault) => (
                0,
                Some(Failure::Disagreement {
                    code: fault.code,
                    text: fault.text,
                }),
            ),
        };
        drop(job);
        let mut guard = mpi.lock();
        if let Some(engine) = &mut guard.engine {
            engine.requests().end(id, moved, failure);
        }
        drop(guard);
        mpi.wake_all();
    }));
    Ok(id)
}

/// Starts an access and returns its request.
fn start(mpi: &'static Mpi, fh: FileH, how: How, user: User) -> Res<RequestH> {
    let job = prepare(mpi, fh, how, user).map_err(|fault| refuse_later(mpi, fh, how, fault))?;
    let comm = job.open().comm;
    let id = later(mpi, job)?;
    let flight = Flight {
        id,
        comm,
        from: None,
        receives: true,
    };
    Ok(mpi
        .lock()
        .above
        .new_request(Kind::Scoped(flight, Scope::File(fh))))
}

/// Waits for an access.
fn settle(mpi: &'static Mpi, fh: FileH, id: ReqId, status: StatusOut) -> Res {
    let flight = Flight {
        id,
        comm: kw_objects::handle::CommH::NULL,
        from: None,
        receives: true,
    };
    let part = kw_objects::request::Part::Flying(flight);
    let (_, found, end) = kw_mpi::chapter::settle(mpi, mpi.lock(), part)?;
    if !status.is_ignored() {
        status.set_keeping_error(found);
    }
    end.map_err(|mut fault| {
        fault.scope = Scope::File(fh);
        fault
    })
}

/// The begin function of a split collective access.
fn split_begin(mpi: &'static Mpi, fh: FileH, how: How, user: User, end: &'static str) -> Res {
    let open = find(mpi, fh)?;
    open.check_not_split()
        .map_err(|fault| refuse_later(mpi, fh, how, fault))?;
    let request = start(mpi, fh, how, user)?;
    open.cursor().split = Some(Split { end, request });
    Ok(())
}

/// The end function.
fn split_end(mpi: &'static Mpi, fh: FileH, end: &'static str, status: StatusOut) -> Res {
    let open = find(mpi, fh)?;
    let mut cursor = open.cursor();
    let split = cursor.split.take_if(|split| split.end == end);
    let Some(split) = split else {
        let text = match &cursor.split {
            None => format!("no split collective operation is active that {end} could complete"),
            Some(other) => format!("the active operation must be completed by {}", other.end),
        };
        return Err(Fault::new(Class::Request, text));
    };
    drop(cursor);
    let mut guard = mpi.lock();
    let kind = guard.above.requests.remove(split.request);
    drop(guard);
    match kind {
        Some(Kind::Scoped(flight, _)) => settle(mpi, fh, flight.id, status),
        _ => fail(Class::Request, "the request of the split operation is gone"),
    }
}

macro_rules! how {
    ($writes:literal, $place:expr, $collective:literal) => {
        How {
            writes: $writes,
            place: $place,
            collective: $collective,
        }
    };
}

/// Functions with an explicit offset.
macro_rules! at_offset {
    ($($name:ident, $later:ident, $doc:literal, $writes:literal, $collective:literal;)*) => {$(
        #[doc = concat!("MPI_File_", $doc)]
        pub fn $name(mpi: &'static Mpi, fh: FileH, offset: i64, buf: Addr, count: i64, datatype: TypeH, status: StatusOut) -> Res {
            now(mpi, fh, how!($writes, AccessStart::At(offset), $collective), User { addr: buf, count, datatype }, status)
        }

        #[doc = concat!("MPI_File_i", $doc)]
        pub fn $later(mpi: &'static Mpi, fh: FileH, offset: i64, buf: Addr, count: i64, datatype: TypeH, request: Out<RequestH>) -> Res {
            request.set(start(mpi, fh, how!($writes, AccessStart::At(offset), $collective), User { addr: buf, count, datatype })?);
            Ok(())
        }
    )*};
}

at_offset! {
    file_read_at, file_iread_at, "read_at", false, false;
    file_write_at, file_iwrite_at, "write_at", true, false;
    file_read_at_all, file_iread_at_all, "read_at_all", false, true;
    file_write_at_all, file_iwrite_at_all, "write_at_all", true, true;
}

/// Functions at a file pointer; those that are not ordered have a nonblocking form.
macro_rules! at_pointer {
    ($($name:ident $($later:ident)?, $doc:literal, $writes:literal, $place:ident, $collective:literal;)*) => {$(
        #[doc = concat!("MPI_File_", $doc)]
        pub fn $name(mpi: &'static Mpi, fh: FileH, buf: Addr, count: i64, datatype: TypeH, status: StatusOut) -> Res {
            now(mpi, fh, how!($writes, AccessStart::$place, $collective), User { addr: buf, count, datatype }, status)
        }

        $(#[doc = concat!("MPI_File_i", $doc)]
        pub fn $later(mpi: &'static Mpi, fh: FileH, buf: Addr, count: i64, datatype: TypeH, request: Out<RequestH>) -> Res {
            request.set(start(mpi, fh, how!($writes, AccessStart::$place, $collective), User { addr: buf, count, datatype })?);
            Ok(())
        })?
    )*};
}

at_pointer! {
    file_read file_iread, "read", false, Pointer, false;
    file_write file_iwrite, "write", true, Pointer, false;
    file_read_all file_iread_all, "read_all", false, Pointer, true;
    file_write_all file_iwrite_all, "write_all", true, Pointer, true;
    file_read_shared file_iread_shared, "read_shared", false, Shared, false;
    file_write_shared file_iwrite_shared, "write_shared", true, Shared, false;
    file_read_ordered, "read_ordered", false, Ordered, true;
    file_write_ordered, "write_ordered", true, Ordered, true;
}

/// Split collective functions, at a file pointer or at an offset.
macro_rules! split {
    ($($begin:ident($($offset:ident)?), $end:ident, $doc:literal, $writes:literal, $place:expr;)*) => {$(
        #[doc = concat!("MPI_File_", $doc, "_begin")]
        pub fn $begin(mpi: &'static Mpi, fh: FileH, $($offset: i64,)? buf: Addr, count: i64, datatype: TypeH) -> Res {
            let user = User { addr: buf, count, datatype };
            split_begin(mpi, fh, how!($writes, $place, true), user, concat!("MPI_File_", $doc, "_end"))
        }

        #[doc = concat!("MPI_File_", $doc, "_end")]
        pub fn $end(mpi: &'static Mpi, fh: FileH, _buf: Addr, status: StatusOut) -> Res {
            split_end(mpi, fh, concat!("MPI_File_", $doc, "_end"), status)
        }
    )*};
}

split! {
    file_read_all_begin(), file_read_all_end, "read_all", false, AccessStart::Pointer;
    file_write_all_begin(), file_write_all_end, "write_all", true, AccessStart::Pointer;
    file_read_ordered_begin(), file_read_ordered_end, "read_ordered", false, AccessStart::Ordered;
    file_write_ordered_begin(), file_write_ordered_end, "write_ordered", true, AccessStart::Ordered;
    file_read_at_all_begin(offset), file_read_at_all_end, "read_at_all", false, AccessStart::At(offset);
    file_write_at_all_begin(offset), file_write_at_all_end, "write_at_all", true, AccessStart::At(offset);
}
