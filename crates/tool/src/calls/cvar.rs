//! Control variables (MPI 5.0, 15.3.6): the settings of `kw_base`.

use super::{by_name, give, memory, need, open, say};
use kw_base::settings::{ALL, Id, Settings, When};
use kw_objects::error::{Fault, Res, ToolClass};
use kw_objects::handle::{CvarH, EnumH, TypeH};
use kw_objects::state::{Guard, Mpi};
use kw_objects::tool::{NO_OBJECT, cvar, enum_handle, of_setting, refuse, row, verbosity};
use kw_sys::args::{Out, OutText, Text};
use kw_sys::buf::Addr;
use kw_sys::environment;
use kw_sys::log;
use std::fmt::Display;

/// MPI_T_cvar_get_num
pub fn t_cvar_get_num(mpi: &Mpi, num_cvar: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    need(num_cvar, "num_cvar")?.set(ALL.len() as i32);
    Ok(())
}

/// MPI_T_cvar_get_info
pub fn t_cvar_get_info(
    mpi: &Mpi,
    cvar_index: i32,
    name: OutText,
    name_len: Out<i32>,
    verbosity_: Out<i32>,
    datatype: Out<TypeH>,
    enumtype: Out<EnumH>,
    desc: OutText,
    desc_len: Out<i32>,
    bind: Out<i32>,
    scope: Out<i32>,
) -> Res {
    let _guard = open(mpi)?;
    let setting = &ALL[row(cvar_index, ALL.len())?];
    say(setting.name, name, name_len)?;
    say(setting.help, desc, desc_len)?;
    give(verbosity_, verbosity(setting.audience));
    give(datatype, cvar::shape(setting).0);
    give(enumtype, enum_handle(of_setting(setting)));
    give(bind, NO_OBJECT);
    give(scope, cvar::scope(setting));
    Ok(())
}

/// MPI_T_cvar_get_index
pub fn t_cvar_get_index(mpi: &Mpi, name: Text, cvar_index: Out<i32>) -> Res {
    let _guard = open(mpi)?;
    let place = need(cvar_index, "cvar_index")?;
    place.set(by_name(name, |n| ALL.iter().position(|k| k.name == n))?);
    Ok(())
}

/// MPI_T_cvar_handle_alloc: no setting is bound to an object, so `obj_handle` does not matter.
pub fn t_cvar_handle_alloc(
    mpi: &Mpi,
    cvar_index: i32,
    _obj_handle: usize,
    handle: Out<CvarH>,
    count: Out<i32>,
) -> Res {
    let mut guard = open(mpi)?;
    let position = row(cvar_index, ALL.len())?;
    let place = need(handle, "handle")?;
    place.set(guard.above.tool.cvars.alloc(position));
    give(count, cvar::shape(&ALL[position]).1);
    Ok(())
}

/// MPI_T_cvar_handle_free
pub fn t_cvar_handle_free(mpi: &Mpi, handle: Out<CvarH>) -> Res {
    let mut guard = open(mpi)?;
    let place = need(handle, "handle")?;
    guard.above.tool.cvars.free(place.get())?;
    place.set(CvarH::NULL);
    Ok(())
}

/// MPI_T_cvar_read
pub fn t_cvar_read(mpi: &Mpi, handle: CvarH, buf: Addr) -> Res {
    let guard = open(mpi)?;
    let position = guard.above.tool.cvars.get(handle)?.setting;
    let setting = &ALL[position];
    let value = cvar::to_c(setting, current(&guard).at(position));
    memory(buf, value.len(), "buf")?.write(0, &value);
    Ok(())
}

/// The present settings: of the engine, of the last one, or of the next one.
fn current(guard: &Guard<'_>) -> Settings {
    let cvars = &guard.above.tool.cvars;
    match (&guard.engine, cvars.last()) {
        (Some(engine), _) => engine.settings().clone(),
        (None, Some(last)) => last.clone(),
        (None, None) => cvars.before_start(environment::variable),
    }
}

/// MPI_T_cvar_write
pub fn t_cvar_write(mpi: &Mpi, handle: CvarH, buf: Addr) -> Res {
    let mut guard = open(mpi)?;
    let position = guard.above.tool.cvars.get(handle)?.setting;
    let setting = &ALL[position];
    may_set(&guard, position)?;
    let text = cvar::from_c(setting, &value(buf, cvar::size(setting), setting.kind)?)?;
    let invalid = |why: &dyn Display| Fault::tool(ToolClass::Invalid, why.to_string());
    if guard.engine.is_some() {
        let set = guard.set_setting(position, &text);
        set.map_err(|e| invalid(&e))?;
        if position == Id::Log as usize {
            let engine = guard.engine.as_ref();
            log::set_level(engine.map_or(0, |e| e.settings().choice(Id::Log)));
        }
        return Ok(());
    }
    let mut settings = current(&guard);
    settings.set_at(position, &text).map_err(|e| invalid(&e))?;
    kw_boot::check_settings(&settings).map_err(|e| invalid(&e))?;
    guard.above.tool.cvars.set_early(position, text);
    Ok(())
}

/// Checks whether a setting may be set now.
fn may_set(guard: &Guard<'_>, position: usize) -> Res {
    let setting = &ALL[position];
    let running = guard.engine.is_some();
    match setting.when {
        When::Never => refuse(
            ToolClass::CvarSetNever,
            format!(
                "{} can only be set when the ranks are started",
                setting.name
            ),
        ),
        _ if guard.above.life.left => refuse(
            ToolClass::CvarSetNotNow,
            format!("{} cannot be set: MPI was finalised", setting.name),
        ),
        When::BeforeInit if running => refuse(
            ToolClass::CvarSetNotNow,
            format!("{} is read when MPI starts", setting.name),
        ),
        _ => Ok(()),
    }
}

/// The bytes that the caller gives; a text ends with its zero.
fn value(buf: Addr, size: usize, kind: kw_base::settings::Kind) -> Res<Vec<u8>> {
    let mut bytes = Vec::new();
    let memory = memory(buf, size as u64 as usize, "buf")?;
    if !kind.is_text() {
        bytes.resize(size, 0);
        memory.read(0, &mut bytes);
        return Ok(bytes);
    }
    let mut byte = [0u8];
    while bytes.len() < size {
        memory.read(bytes.len() as u64, &mut byte);
        if byte[0] == 0 {
            return Ok(bytes);
        }
        bytes.push(byte[0]);
    }
    refuse(
        ToolClass::Invalid,
        format!("the text has more than {} characters", size - 1),
    )
}
