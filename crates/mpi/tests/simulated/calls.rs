//! MPI's functions in the form that these tests use: with slices, where the C shells have pointers.
//!
//! All `unsafe` of the tests is here. A slice that is lent to a pending operation lives until its
//! request has ended; each test ensures that as a C program would.

use crate::job::Rank;
use kw_mpi::built;
use kw_objects::Res;
use kw_objects::forms::{Blocking, Mode, Nonblocking, Persistent};
use kw_objects::handle::{CommH, GroupH, InfoH, OpH, RequestH, TypeH};
use kw_sys::args::{Array, Ints, Out, OutInt, Status, StatusOut, Text, Width};
use kw_sys::buf::{Addr, IN_PLACE};
use kw_sys::callback::UserOp;
use std::ffi::{CStr, c_void};

/// MPI_INT
pub const INT: TypeH = TypeH(0x209);
/// MPI_SUM
pub const SUM: OpH = OpH(0x21);
/// MPI_MAX
pub const MAX: OpH = OpH(0x23);
/// MPI_ANY_SOURCE
pub const ANY_SOURCE: i32 = -1;
/// MPI_ANY_TAG
pub const ANY_TAG: i32 = -2;
/// MPI_PROC_NULL
pub const PROC_NULL: i32 = -3;
/// MPI_ROOT
pub const ROOT: i32 = -4;
/// MPI_UNDEFINED
pub const UNDEFINED: i32 = -32766;

/// A place for a result.
pub fn out<T: Copy>(place: &mut T) -> Out<T> {
    // SAFETY: a place that is borrowed for the call (see the introduction of the file).
    unsafe { Out::new(place) }
}

/// A place for a status.
pub fn status(place: &mut Status) -> StatusOut {
    // SAFETY: as above.
    unsafe { StatusOut::new(place) }
}

/// MPI_STATUS_IGNORE
pub fn ignored() -> StatusOut {
    // SAFETY: null is allowed.
    unsafe { StatusOut::new(std::ptr::null_mut()) }
}

/// A place for an MPI_Count.
pub fn long(place: &mut i64) -> OutInt {
    // SAFETY: as above.
    unsafe { OutInt::new(place as *mut i64 as *mut c_void, Width::Long) }
}

/// Integers that a call reads.
pub fn list(numbers: &[i32]) -> Ints {
    // SAFETY: as above; each test gives as many as the call's other arguments require.
    unsafe { Ints::new(numbers.as_ptr() as *const c_void, Width::Int) }
}

/// Integers that a call writes.
pub fn list_mut(numbers: &mut [i32]) -> Ints {
    // SAFETY: as above.
    unsafe { Ints::new(numbers.as_mut_ptr() as *const c_void, Width::Int) }
}

/// A C string.
pub fn text(words: &'static CStr) -> Text {
    // SAFETY: it lives for ever.
    unsafe { Text::new(words.as_ptr()) }
}

/// An array that a call reads or writes.
pub fn array<T: Copy>(values: &mut [T]) -> Array<T> {
    // SAFETY: as above.
    unsafe { Array::new(values.as_mut_ptr()) }
}

/// Data of a message, in elements of a type.
#[derive(Clone, Copy)]
pub struct Data {
    pub addr: Addr,
    pub count: i64,
    pub kind: TypeH,
}

/// Integers that a call reads.
pub fn ints(values: &[i32]) -> Data {
    // SAFETY: as above.
    let addr = unsafe { Addr::new(values.as_ptr() as *const c_void) };
    Data {
        addr,
        count: values.len() as i64,
        kind: INT,
    }
}

/// Integers that a call writes.
pub fn room(values: &mut [i32]) -> Data {
    // SAFETY: as above.
    let addr = unsafe { Addr::new(values.as_mut_ptr() as *const c_void) };
    Data {
        addr,
        count: values.len() as i64,
        kind: INT,
    }
}

/// MPI_IN_PLACE, with the count and type that go with it.
pub fn in_place() -> Data {
    Data {
        // SAFETY: a constant, not an address.
        addr: unsafe { Addr::new(IN_PLACE as *const c_void) },
        count: 0,
        kind: INT,
    }
}

impl Data {
    /// The memory as elements of another type, of which `of` integers make one.
    pub fn of(self, kind: TypeH, of: usize) -> Data {
        Data {
            count: self.count / of as i64,
            kind,
            ..self
        }
    }

    /// The memory with another count.
    pub fn counted(self, count: usize) -> Data {
        Data {
            count: count as i64,
            ..self
        }
    }
}

/// The function that combines affine maps `x -> a x + b`, given as pairs of integers: associative,
/// and not commutative.
pub fn compose(x: [i32; 2], y: [i32; 2]) -> [i32; 2] {
    [
        x[0].wrapping_mul(y[0]),
        x[0].wrapping_mul(y[1]).wrapping_add(x[1]),
    ]
}

extern "C-unwind" fn compose_all(
    left: *mut c_void,
    right: *mut c_void,
    len: *mut i32,
    _: *mut usize,
) {
    // SAFETY: MPI gives that many elements of the type that the reduction has, pairs of integers
    // (MPI 5.0, 6.9.5).
    unsafe {
        let n = *len as usize;
        let left = std::slice::from_raw_parts(left as *const [i32; 2], n);
        let right = std::slice::from_raw_parts_mut(right as *mut [i32; 2], n);
        for (x, y) in left.iter().zip(right) {
            *y = compose(*x, *y);
        }
    }
}

/// Forms in which a collective is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Blocking,
    Nonblocking,
    Persistent,
}

/// All of them.
pub const FORMS: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Persistent];

/// A communicator, as one of its ranks sees it.
#[derive(Clone, Copy)]
pub struct Comm<'a> {
    pub rank: &'a Rank,
    pub handle: CommH,
    pub me: i32,
    pub size: i32,
}

/// One collective in three forms.
macro_rules! formed {
    ($($name:ident, ($($arg:ident: $type:ty),*), ($($value:expr),*);)*) => {
        impl Comm<'_> {$(
            pub fn $name(&self, form: Form, $($arg: $type),*) -> Res {
                let (mpi, comm, mut request) = (&self.rank.mpi, self.handle, RequestH::NULL);
                match form {
                    Form::Blocking => return built::$name(mpi, $($value,)* comm, Blocking(())),
                    Form::Nonblocking => {
                        built::$name(mpi, $($value,)* comm, Nonblocking((out(&mut request),)))?
                    }
                    Form::Persistent => {
                        let form = Persistent((InfoH::NULL, out(&mut request)));
                        built::$name(mpi, $($value,)* comm, form)?;
                        self.rank.start(&mut request)?;
                    }
                }
                self.rank.wait(&mut request)?;
                if form == Form::Persistent {
                    built::request_free(mpi, out(&mut request))?;
                }
                Ok(())
            }
        )*}
    };
}

formed! {
    barrier, (), ();
    bcast, (data: Data, root: i32), (data.addr, data.count, data.kind, root);
    gather, (s: Data, r: Data, root: i32),
        (s.addr, s.count, s.kind, r.addr, r.count, r.kind, root);
    gatherv, (s: Data, r: Data, counts: &[i32], at: &[i32], root: i32),
        (s.addr, s.count, s.kind, r.addr, list(counts), list(at), r.kind, root);
    scatter, (s: Data, r: Data, root: i32),
        (s.addr, s.count, s.kind, r.addr, r.count, r.kind, root);
    scatterv, (s: Data, counts: &[i32], at: &[i32], r: Data, root: i32),
        (s.addr, list(counts), list(at), s.kind, r.addr, r.count, r.kind, root);
    allgather, (s: Data, r: Data),
        (s.addr, s.count, s.kind, r.addr, r.count, r.kind);
    allgatherv, (s: Data, r: Data, counts: &[i32], at: &[i32]),
        (s.addr, s.count, s.kind, r.addr, list(counts), list(at), r.kind);
    alltoall, (s: Data, r: Data),
        (s.addr, s.count, s.kind, r.addr, r.count, r.kind);
    alltoallv,
        (s: Data, counts: &[i32], at: &[i32], r: Data, rcounts: &[i32], rat: &[i32]),
        (s.addr, list(counts), list(at), s.kind, r.addr, list(rcounts), list(rat), r.kind);
    alltoallw,
        (s: Data, counts: &[i32], at: &[i32], kinds: &mut [TypeH], r: Data, rcounts: &[i32], rat: &[i32], rkinds: &mut [TypeH]),
        (s.addr, list(counts), list(at), array(kinds), r.addr, list(rcounts), list(rat), array(rkinds));
    reduce, (s: Addr, r: Data, op: OpH, root: i32),
        (s, r.addr, r.count, r.kind, op, root);
    allreduce, (s: Addr, r: Data, op: OpH),
        (s, r.addr, r.count, r.kind, op);
    reduce_scatter, (s: Addr, r: Data, counts: &[i32], op: OpH),
        (s, r.addr, list(counts), r.kind, op);
    reduce_scatter_block, (s: Addr, r: Data, op: OpH),
        (s, r.addr, r.count, r.kind, op);
    scan, (s: Addr, r: Data, op: OpH), (s, r.addr, r.count, r.kind, op);
    exscan, (s: Addr, r: Data, op: OpH), (s, r.addr, r.count, r.kind, op);
    neighbor_allgather, (s: Data, r: Data),
        (s.addr, s.count, s.kind, r.addr, r.count, r.kind);
    neighbor_allgatherv, (s: Data, r: Data, counts: &[i32], at: &[i32]),
        (s.addr, s.count, s.kind, r.addr, list(counts), list(at), r.kind);
    neighbor_alltoall, (s: Data, r: Data),
        (s.addr, s.count, s.kind, r.addr, r.count, r.kind);
    neighbor_alltoallv,
        (s: Data, counts: &[i32], at: &[i32], r: Data, rcounts: &[i32], rat: &[i32]),
        (s.addr, list(counts), list(at), s.kind, r.addr, list(rcounts), list(rat), r.kind);
}

impl<'a> Comm<'a> {
    /// Relation of this communicator to a rank.
    pub fn of(rank: &'a Rank, handle: CommH) -> Comm<'a> {
        let (mut me, mut size) = (0, 0);
        built::comm_rank(&rank.mpi, handle, out(&mut me)).expect("MPI_Comm_rank");
        built::comm_size(&rank.mpi, handle, out(&mut size)).expect("MPI_Comm_size");
        Comm {
            rank,
            handle,
            me,
            size,
        }
    }

    fn made(&self, make: impl FnOnce(Out<CommH>) -> Res) -> Option<Comm<'a>> {
        let mut new = CommH::NULL;
        make(out(&mut new)).expect("a communicator");
        (!new.is_null()).then(|| Comm::of(self.rank, new))
    }

    pub fn dup(&self) -> Comm<'a> {
        let made = self.made(|new| built::comm_dup(&self.rank.mpi, self.handle, new));
        made.expect("one for all")
    }

    pub fn split(&self, color: i32, key: i32) -> Option<Comm<'a>> {
        self.made(|new| built::comm_split(&self.rank.mpi, self.handle, color, key, new))
    }

    pub fn create(&self, group: GroupH) -> Option<Comm<'a>> {
        self.made(|new| built::comm_create(&self.rank.mpi, self.handle, group, new))
    }

    pub fn create_group(&self, group: GroupH, tag: i32) -> Option<Comm<'a>> {
        self.made(|new| built::comm_create_group(&self.rank.mpi, self.handle, group, tag, new))
    }

    /// Its ranks in a ring, without new places.
    pub fn ring(&self) -> Comm<'a> {
        let (mpi, dims) = (&self.rank.mpi, [self.size]);
        let made = self
            .made(|new| built::cart_create(mpi, self.handle, 1, list(&dims), list(&[1]), 0, new));
        made.expect("one for all")
    }

    /// With the group that `leader` of `peers` leads.
    pub fn intercomm(&self, peers: &Comm<'_>, leader: i32, tag: i32) -> Comm<'a> {
        let (mpi, own) = (&self.rank.mpi, self.handle);
        let made =
            self.made(|new| built::intercomm_create(mpi, own, 0, peers.handle, leader, tag, new));
        made.expect("one for all")
    }

    pub fn merge(&self, high: bool) -> Comm<'a> {
        let made =
            self.made(|new| built::intercomm_merge(&self.rank.mpi, self.handle, high as i32, new));
        made.expect("one for all")
    }

    pub fn iallreduce(&self, s: Addr, r: Data, op: OpH) -> RequestH {
        let (mpi, comm, mut request) = (&self.rank.mpi, self.handle, RequestH::NULL);
        let form = Nonblocking((out(&mut request),));
        built::allreduce(mpi, s, r.addr, r.count, r.kind, op, comm, form).expect("MPI_Iallreduce");
        request
    }

    pub fn allreduce_init(&self, s: Addr, r: Data, op: OpH) -> RequestH {
        let (mpi, comm, mut request) = (&self.rank.mpi, self.handle, RequestH::NULL);
        let form = Persistent((InfoH::NULL, out(&mut request)));
        built::allreduce(mpi, s, r.addr, r.count, r.kind, op, comm, form)
            .expect("MPI_Allreduce_init");
        request
    }

    pub fn remote_size(&self) -> i32 {
        let mut n = 0;
        built::comm_remote_size(&self.rank.mpi, self.handle, out(&mut n)).expect("its size");
        n
    }

    pub fn group(&self) -> GroupH {
        let mut group = GroupH::NULL;
        built::comm_group(&self.rank.mpi, self.handle, out(&mut group)).expect("its group");
        group
    }

    pub fn free(self) {
        let mut handle = self.handle;
        built::comm_free(&self.rank.mpi, out(&mut handle)).expect("MPI_Comm_free");
        assert!(handle.is_null());
    }

    pub fn send(&self, data: Data, to: i32, tag: i32) -> Res {
        self.send_as(Mode::Standard, data, to, tag)
    }

    pub fn send_as(&self, mode: Mode, data: Data, to: i32, tag: i32) -> Res {
        let (mpi, comm) = (&self.rank.mpi, self.handle);
        let form = Blocking(());
        built::send(
            mpi, data.addr, data.count, data.kind, to, tag, comm, mode, form,
        )
    }

    pub fn recv(&self, data: Data, from: i32, tag: i32) -> Res<Status> {
        let (mpi, comm, mut came) = (&self.rank.mpi, self.handle, Status::default());
        let form = Blocking((status(&mut came),));
        built::recv(mpi, data.addr, data.count, data.kind, from, tag, comm, form)?;
        Ok(came)
    }

    pub fn isend_as(&self, mode: Mode, data: Data, to: i32, tag: i32) -> RequestH {
        let (mpi, comm, mut request) = (&self.rank.mpi, self.handle, RequestH::NULL);
        let form = Nonblocking((out(&mut request),));
        built::send(
            mpi, data.addr, data.count, data.kind, to, tag, comm, mode, form,
        )
        .expect("MPI_Isend");
        request
    }

    pub fn irecv(&self, data: Data, from: i32, tag: i32) -> RequestH {
        let (mpi, comm, mut request) = (&self.rank.mpi, self.handle, RequestH::NULL);
        let form = Nonblocking((out(&mut request),));
        built::recv(mpi, data.addr, data.count, data.kind, from, tag, comm, form)
            .expect("MPI_Irecv");
        request
    }

    pub fn send_init(&self, mode: Mode, data: Data, to: i32, tag: i32) -> RequestH {
        let (mpi, comm, mut request) = (&self.rank.mpi, self.handle, RequestH::NULL);
        let form = Persistent((out(&mut request),));
        built::send(
            mpi, data.addr, data.count, data.kind, to, tag, comm, mode, form,
        )
        .expect("MPI_Send_init");
        request
    }

    pub fn recv_init(&self, data: Data, from: i32, tag: i32) -> RequestH {
        let (mpi, comm, mut request) = (&self.rank.mpi, self.handle, RequestH::NULL);
        let form = Persistent((out(&mut request),));
        built::recv(mpi, data.addr, data.count, data.kind, from, tag, comm, form)
            .expect("MPI_Recv_init");
        request
    }
}

impl Rank {
    pub fn start(&self, request: &mut RequestH) -> Res {
        built::start(&self.mpi, out(request))
    }

    pub fn release(&self, request: &mut RequestH) {
        built::request_free(&self.mpi, out(request)).expect("MPI_Request_free");
    }

    pub fn wait(&self, request: &mut RequestH) -> Res<Status> {
        let mut came = Status::default();
        built::wait(&self.mpi, out(request), status(&mut came))?;
        Ok(came)
    }

    pub fn test(&self, request: &mut RequestH) -> Res<Option<Status>> {
        let (mut came, mut flag) = (Status::default(), 0);
        built::test(&self.mpi, out(request), out(&mut flag), status(&mut came))?;
        Ok((flag != 0).then_some(came))
    }

    pub fn waitall(&self, requests: &mut [RequestH]) -> Res<Vec<Status>> {
        let mut came = vec![Status::default(); requests.len()];
        let n = requests.len() as i32;
        let (list, statuses) = (array(requests), array(&mut came));
        built::waitall(&self.mpi, n, list, statuses, Blocking(()))?;
        Ok(came)
    }

    pub fn waitany(&self, requests: &mut [RequestH]) -> Res<(i32, Status)> {
        let (mut came, mut index) = (Status::default(), 0);
        let n = requests.len() as i32;
        let place = status(&mut came);
        built::waitany(
            &self.mpi,
            n,
            array(requests),
            out(&mut index),
            place,
            Blocking(()),
        )?;
        Ok((index, came))
    }

    /// Indices and statuses of the requests that ended; `None` if no request is active.
    pub fn waitsome(&self, requests: &mut [RequestH]) -> Res<Option<Vec<(i32, Status)>>> {
        let mut came = vec![Status::default(); requests.len()];
        let (mut indices, mut some) = (vec![0; requests.len()], 0);
        built::waitsome(
            &self.mpi,
            requests.len() as i32,
            array(requests),
            out(&mut some),
            list_mut(&mut indices),
            array(&mut came),
            Blocking(()),
        )?;
        indices.truncate(some.max(0) as usize);
        Ok((some != UNDEFINED).then(|| indices.into_iter().zip(came).collect()))
    }

    /// The type of pairs of integers.
    pub fn pair(&self) -> TypeH {
        let mut kind = TypeH::NULL;
        built::type_contiguous(&self.mpi, 2, INT, out(&mut kind)).expect("a type");
        built::type_commit(&self.mpi, out(&mut kind)).expect("MPI_Type_commit");
        kind
    }

    /// The operation [`compose`].
    pub fn affine(&self) -> OpH {
        let mut handle = OpH::NULL;
        // SAFETY: a function of this type, of the program.
        let function = unsafe { UserOp::new(compose_all as *const () as usize) };
        built::op_create(&self.mpi, function, 0, out(&mut handle)).expect("MPI_Op_create");
        handle
    }
}
