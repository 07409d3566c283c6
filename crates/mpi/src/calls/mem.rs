//! Memory for messages (MPI 5.0, 9.2).

use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::InfoH;
use kw_objects::state::Mpi;
use kw_sys::args::Out;
use kw_sys::buf::Addr;
use kw_sys::mem::Memory;

/// MPI_Alloc_mem
pub fn alloc_mem(mpi: &Mpi, size: i64, info: InfoH, baseptr: Out<usize>) -> Res {
    if size < 0 {
        return fail!(Arg: "size is {size}, but must not be negative");
    }
    mpi.lock().above.infos.get_or_null(info)?;
    let Some(memory) = Memory::new(size as usize, 1) else {
        return fail!(NoMem: "the system has no {size} bytes of memory left");
    };
    let at = memory.bits();
    mpi.lock().above.allocated.insert(at, memory);
    baseptr.set(at);
    Ok(())
}

/// MPI_Free_mem
pub fn free_mem(mpi: &Mpi, base: Addr) -> Res {
    if base == Addr::NULL {
        return Ok(());
    }
    match mpi.lock().above.allocated.remove(&base.bits()) {
        Some(_) => Ok(()),
        None => Err(Fault::new(
            Class::Base,
            format!(
                "base is {:#x}, which MPI_Alloc_mem has not returned or MPI_Free_mem has taken already",
                base.bits()
            ),
        )),
    }
}
