//! Reduction operations (MPI 5.0, 6.9.5 to 6.9.7).

use crate::calls::coll::arguments::{Data, refuse_same};
use kw_engine::UserFunction;
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::{OpH, TypeH};
use kw_objects::left::Made;
use kw_objects::op::UserMade;
use kw_objects::state::Mpi;
use kw_sys::args::Out;
use kw_sys::buf::Addr;
use kw_sys::callback::{UserOp, UserOpCount};

fn create(mpi: &Mpi, function: Option<UserFunction>, commute: i32, op: Out<OpH>) -> Res {
    let Some(function) = function else {
        return fail(Class::Arg, "user_fn is a null pointer");
    };
    let made = UserMade {
        function,
        commutes: commute != 0,
    };
    let tables = &mut mpi.lock().above;
    let handle = tables.ops.add(made);
    tables.note_made(Made::Op(handle));
    op.set(handle);
    Ok(())
}

/// MPI_Op_create
pub fn op_create(mpi: &Mpi, user_fn: Option<UserOp>, commute: i32, op: Out<OpH>) -> Res {
    create(mpi, user_fn.map(UserFunction::Int), commute, op)
}

/// MPI_Op_create_c
pub fn op_create_c(mpi: &Mpi, user_fn: Option<UserOpCount>, commute: i32, op: Out<OpH>) -> Res {
    create(mpi, user_fn.map(UserFunction::Count), commute, op)
}

/// MPI_Op_free
pub fn op_free(mpi: &Mpi, op: Out<OpH>) -> Res {
    mpi.lock().above.ops.free(op.get())?;
    op.set(OpH::NULL);
    Ok(())
}

/// MPI_Op_commutative
pub fn op_commutative(mpi: &Mpi, op: OpH, commute: Out<i32>) -> Res {
    commute.set(mpi.lock().above.ops.get(op)?.commutes() as i32);
    Ok(())
}

/// MPI_Reduce_local
pub fn reduce_local(
    mpi: &Mpi,
    inbuf: Addr,
    inoutbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
) -> Res {
    let guard = mpi.lock();
    let tables = &guard.above;
    let a = Data::of(tables, "inbuf", inbuf, count, datatype)?;
    let b = Data::of(tables, "inoutbuf", inoutbuf, count, datatype)?;
    let layout = tables.layout(datatype)?;
    let (combining, _) = tables.ops.combining(op, datatype, layout)?;
    drop(guard);
    refuse_same(inbuf, inoutbuf, a.bytes)?;
    if b.count > 0 {
        combining.combine(&a.memory, &b.memory, b.count);
    }
    Ok(())
}
