//! Queries of the ABI, and values of Fortran that its bindings report (MPI 5.0, 20.2 and 20.5).
//! Callable at any time.

use kw_objects::abi::sizes;
use kw_objects::error::fail;
use kw_objects::handle::InfoH;
use kw_objects::{Mpi, Res};
use kw_sys::args::Out;
use kw_sys::buf::{Addr, Buf};

/// The standard ABI this library has: 1.0.
pub fn abi_get_version(_mpi: &Mpi, major: Out<i32>, minor: Out<i32>) -> Res {
    major.set(1);
    minor.set(0);
    Ok(())
}

/// Sizes of MPI's integer types.
pub fn abi_get_info(mpi: &Mpi, info: Out<InfoH>) -> Res {
    info.set(mpi.lock().above.infos.add(sizes()));
    Ok(())
}

/// Sizes and supported types of Fortran.
pub fn abi_get_fortran_info(mpi: &Mpi, info: Out<InfoH>) -> Res {
    let mut guard = mpi.lock();
    let facts = guard.above.fortran.info();
    info.set(guard.above.infos.add(facts));
    Ok(())
}

/// Takes sizes and supported types from a Fortran binding, once.
pub fn abi_set_fortran_info(mpi: &Mpi, info: InfoH) -> Res {
    let mut guard = mpi.lock();
    let facts = guard.above.infos.get(info)?.clone();
    if guard.above.fortran.info.is_some() {
        return fail!(Abi: "Fortran's sizes were set before; they can be set once");
    }
    guard.above.fortran.info = Some(facts);
    Ok(())
}

/// The bytes of `.TRUE.` and `.FALSE.`, if a Fortran binding has reported them.
pub fn abi_get_fortran_booleans(
    mpi: &Mpi,
    size: i32,
    yes: Addr,
    no: Addr,
    is_set: Out<i32>,
) -> Res {
    check_size(size)?;
    let guard = mpi.lock();
    let Some((t, f)) = &guard.above.fortran.booleans else {
        is_set.set(0);
        return Ok(());
    };
    if t.len() != size as usize {
        return fail!(Arg: "logical_size is {size}, but it was set to {}", t.len());
    }
    Buf::bytes(yes, size as u64).write(0, t);
    Buf::bytes(no, size as u64).write(0, f);
    is_set.set(1);
    Ok(())
}

/// Takes the bytes of `.TRUE.` and `.FALSE.` from a Fortran binding, once.
pub fn abi_set_fortran_booleans(mpi: &Mpi, size: i32, yes: Addr, no: Addr) -> Res {
    check_size(size)?;
    if yes == Addr::NULL || no == Addr::NULL {
        return fail!(Arg: "logical_true or logical_false is a null pointer");
    }
    let mut guard = mpi.lock();
    if guard.above.fortran.booleans.is_some() {
        return fail!(Abi: "Fortran's logical values were set before; they can be set once");
    }
    let bytes = |from: Addr| {
        let mut out = vec![0; size as usize];
        Buf::bytes(from, size as u64).read(0, &mut out);
        out
    };
    guard.above.fortran.booleans = Some((bytes(yes), bytes(no)));
    Ok(())
}

fn check_size(size: i32) -> Res {
    if matches!(size, 1 | 2 | 4 | 8 | 16) {
        return Ok(());
    }
    fail!(Arg: "logical_size is {size}, but it must be 1, 2, 4, 8 or 16")
}
