//! Performance variables (MPI 5.0, 15.3.7): the counters of `kw_base`.

use super::{by_name, give, memory, need, open, say};
use kw_base::counters::{ALL, Class, Counter};
use kw_objects::error::Res;
use kw_objects::handle::{EnumH, PvarH, PvarSessionH, TypeH};
use kw_objects::state::Mpi;
use kw_objects::tool::pvar::with;
use kw_objects::tool::{NO_OBJECT, enum_handle, of_counter, pvar, row, verbosity};
use kw_sys::args::{Out, OutText, Text};
use kw_sys::buf::Addr;

/// MPI_T_pvar_get_num
pub fn t_pvar_get_num(mpi: &Mpi, num_pvar: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    need(num_pvar, "num_pvar")?.set(ALL.len() as i32);
    Ok(())
}

/// MPI_T_pvar_get_info
pub fn t_pvar_get_info(
    mpi: &Mpi,
    pvar_index: i32,
    name: OutText,
    name_len: Out<i32>,
    verbosity_: Out<i32>,
    var_class: Out<i32>,
    datatype: Out<TypeH>,
    enumtype: Out<EnumH>,
    desc: OutText,
    desc_len: Out<i32>,
    bind: Out<i32>,
    readonly: Out<i32>,
    continuous: Out<i32>,
    atomic: Out<i32>,
) -> Res {
    let _guard = open(mpi)?;
    let found = &ALL[row(pvar_index, ALL.len())?];
    say(found.name, name, name_len)?;
    say(found.help, desc, desc_len)?;
    let is_continuous = pvar::is_continuous(found);
    give(verbosity_, verbosity(found.audience));
    give(var_class, pvar::class(found));
    give(datatype, pvar::datatype(found));
    give(enumtype, enum_handle(of_counter(found)));
    give(bind, NO_OBJECT);
    give(readonly, is_continuous as i32);
    give(continuous, is_continuous as i32);
    give(atomic, !is_continuous as i32);
    Ok(())
}

/// MPI_T_pvar_get_index
pub fn t_pvar_get_index(mpi: &Mpi, name: Text, var_class: i32, pvar_index: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    let place = need(pvar_index, "pvar_index")?;
    let find = |n: &str| {
        let fits = |r: &kw_base::counters::Row| r.name == n && pvar::class(r) == var_class;
        ALL.iter().position(fits)
    };
    place.set(by_name(name, find)?);
    Ok(())
}

/// MPI_T_pvar_session_create
pub fn t_pvar_session_create(mpi: &Mpi, session: Out<PvarSessionH>) -> Res {
    let mut guard = open(mpi)?;
    need(session, "session")?.set(guard.above.tool.pvars.create());
    Ok(())
}

/// MPI_T_pvar_session_free
pub fn t_pvar_session_free(mpi: &Mpi, session: Out<PvarSessionH>) -> Res {
    let mut guard = open(mpi)?;
    let place = need(session, "session")?;
    guard.above.tool.pvars.free_session(place.get())?;
    place.set(PvarSessionH::NULL);
    Ok(())
}

/// MPI_T_pvar_handle_alloc: no counter is bound to an object, so `obj_handle` does not matter.
pub fn t_pvar_handle_alloc(
    mpi: &Mpi,
    session: PvarSessionH,
    pvar_index: i32,
    _obj_handle: usize,
    handle: Out<PvarH>,
    count: Out<i32>,
) -> Res {
    let mut guard = open(mpi)?;
    let position = row(pvar_index, ALL.len())?;
    let place = need(handle, "handle")?;
    // `row` has checked it.
    let Some(counter) = Counter::at(position) else {
        return Ok(());
    };
    let made = with(&mut guard, |p, v| p.alloc(v, session, counter))?;
    place.set(made);
    give(count, 1);
    Ok(())
}

/// MPI_T_pvar_handle_free
pub fn t_pvar_handle_free(mpi: &Mpi, session: PvarSessionH, handle: Out<PvarH>) -> Res {
    let mut guard = open(mpi)?;
    let place = need(handle, "handle")?;
    guard.above.tool.pvars.free(session, place.get())?;
    place.set(PvarH::NULL);
    Ok(())
}

/// MPI_T_pvar_start
pub fn t_pvar_start(mpi: &Mpi, session: PvarSessionH, handle: PvarH) -> Res {
    with(&mut open(mpi)?, |p, v| p.start(v, session, handle))
}

/// MPI_T_pvar_stop
pub fn t_pvar_stop(mpi: &Mpi, session: PvarSessionH, handle: PvarH) -> Res {
    with(&mut open(mpi)?, |p, v| p.stop(v, session, handle))
}

/// MPI_T_pvar_read
pub fn t_pvar_read(mpi: &Mpi, session: PvarSessionH, handle: PvarH, buf: Addr) -> Res {
    let mut guard = open(mpi)?;
    let (counter, value) = with(&mut guard, |p, v| p.read(v, session, handle))?;
    store(counter, value, buf)
}

/// MPI_T_pvar_readreset
pub fn t_pvar_readreset(mpi: &Mpi, session: PvarSessionH, handle: PvarH, buf: Addr) -> Res {
    let mut guard = open(mpi)?;
    memory(buf, 0, "buf")?;
    let (counter, value) = with(&mut guard, |p, v| p.read_reset(v, session, handle))?;
    store(counter, value, buf)
}

/// MPI_T_pvar_reset
pub fn t_pvar_reset(mpi: &Mpi, session: PvarSessionH, handle: PvarH) -> Res {
    with(&mut open(mpi)?, |p, v| p.reset(v, session, handle))
}

/// MPI_T_pvar_write
pub fn t_pvar_write(mpi: &Mpi, session: PvarSessionH, handle: PvarH, buf: Addr) -> Res {
    let mut guard = open(mpi)?;
    guard.above.tool.pvars.check_write(session, handle)?;
    let mut bytes = [0; 8];
    memory(buf, bytes.len(), "buf")?.read(0, &mut bytes);
    let value = u64::from_ne_bytes(bytes);
    with(&mut guard, |p, v| p.write(v, session, handle, value))
}

fn store(counter: Counter, value: u64, buf: Addr) -> Res {
    match counter.row().class {
        Class::State(_) => memory(buf, 4, "buf")?.write(0, &(value as i32).to_ne_bytes()),
        _ => memory(buf, 8, "buf")?.write(0, &value.to_ne_bytes()),
    };
    Ok(())
}
