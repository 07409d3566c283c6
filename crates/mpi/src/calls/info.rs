//! Info objects (MPI 5.0, chapter 10). All of these may be called before initialisation.

use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::InfoH;
use kw_objects::info::{Info, MAX_KEY, MAX_VALUE, of_start};
use kw_objects::state::Mpi;
use kw_sys::args::{Out, OutText, Text, Texts};

/// MPI_Info_create
pub fn info_create(mpi: &Mpi, info: Out<InfoH>) -> Res {
    info.set(mpi.lock().above.infos.add(Info::default()));
    Ok(())
}

/// MPI_Info_create_env: the object that MPI_Init would create from these arguments, from
/// information available before it, so that the keys are the same before MPI_Init, after it, and
/// after MPI_Finalize. `thread_level` is for a level requested before the program started (MPI 5.0,
/// 11.2.1): there is none. The caller's program arguments override the system's.
pub fn info_create_env(mpi: &Mpi, argc: i32, argv: Texts, info: Out<InfoH>) -> Res {
    let mut guard = mpi.lock();
    let args = argv.to_vec(argc.max(0) as usize);
    let size = kw_boot::expected_size(&|name: &str| std::env::var(name).ok());
    let made = of_start(args, size, None);
    info.set(guard.above.infos.add(made));
    Ok(())
}

/// MPI_Get_hw_resource_info: each key is a kind of hardware that can guide MPI_Comm_split_type, its
/// value whether this process is bound to one of them.
pub fn get_hw_resource_info(mpi: &Mpi, hw_info: Out<InfoH>) -> Res {
    let mut known = Info::default();
    known.set("mpi_shared_memory", "true");
    hw_info.set(mpi.lock().above.infos.add(known));
    Ok(())
}

/// MPI_Info_dup
pub fn info_dup(mpi: &Mpi, info: InfoH, newinfo: Out<InfoH>) -> Res {
    let mut guard = mpi.lock();
    let copy = guard.above.infos.get(info)?.clone();
    newinfo.set(guard.above.infos.add(copy));
    Ok(())
}

/// MPI_Info_free
pub fn info_free(mpi: &Mpi, info: Out<InfoH>) -> Res {
    mpi.lock().above.infos.free(info.get())?;
    info.set(InfoH::NULL);
    Ok(())
}

/// MPI_Info_set
pub fn info_set(mpi: &Mpi, info: InfoH, key: Text, value: Text) -> Res {
    let mut guard = mpi.lock();
    let info = guard.above.infos.get_mut(info)?;
    let key = checked_key(key)?;
    let value = checked_value(value)?;
    info.set(&key, &value);
    Ok(())
}

/// MPI_Info_delete
pub fn info_delete(mpi: &Mpi, info: InfoH, key: Text) -> Res {
    let mut guard = mpi.lock();
    let info = guard.above.infos.get_mut(info)?;
    let key = checked_key(key)?;
    if !info.delete(&key) {
        return fail!(InfoNokey: "key is '{key}', which the info object does not have");
    }
    Ok(())
}

/// MPI_Info_get
pub fn info_get(
    mpi: &Mpi,
    info: InfoH,
    key: Text,
    valuelen: i32,
    value: OutText,
    flag: Out<i32>,
) -> Res {
    let guard = mpi.lock();
    let info = guard.above.infos.get(info)?;
    let key = checked_key(key)?;
    if valuelen < 0 {
        return fail!(Arg: "valuelen is {valuelen}, but must not be negative");
    }
    let found = info.get(&key);
    flag.set(found.is_some() as i32);
    if let Some(text) = found {
        value.set(text.as_bytes(), valuelen as usize + 1);
    }
    Ok(())
}

/// MPI_Info_get_string: `buflen` counts the final zero, in both directions.
pub fn info_get_string(
    mpi: &Mpi,
    info: InfoH,
    key: Text,
    buflen: Out<i32>,
    value: OutText,
    flag: Out<i32>,
) -> Res {
    let guard = mpi.lock();
    let info = guard.above.infos.get(info)?;
    let key = checked_key(key)?;
    let room = buflen.get();
    if room < 0 {
        return fail!(Arg: "buflen is {room}, but must not be negative");
    }
    let found = info.get(&key);
    flag.set(found.is_some() as i32);
    if let Some(text) = found {
        value.set(text.as_bytes(), room as usize);
        buflen.set(text.len() as i32 + 1);
    }
    Ok(())
}

/// MPI_Info_get_valuelen
pub fn info_get_valuelen(
    mpi: &Mpi,
    info: InfoH,
    key: Text,
    valuelen: Out<i32>,
    flag: Out<i32>,
) -> Res {
    let guard = mpi.lock();
    let info = guard.above.infos.get(info)?;
    let key = checked_key(key)?;
    let found = info.get(&key);
    flag.set(found.is_some() as i32);
    if let Some(text) = found {
        valuelen.set(text.len() as i32);
    }
    Ok(())
}

/// MPI_Info_get_nkeys
pub fn info_get_nkeys(mpi: &Mpi, info: InfoH, nkeys: Out<i32>) -> Res {
    nkeys.set(mpi.lock().above.infos.get(info)?.len() as i32);
    Ok(())
}

/// MPI_Info_get_nthkey
pub fn info_get_nthkey(mpi: &Mpi, info: InfoH, n: i32, key: OutText) -> Res {
    let guard = mpi.lock();
    let info = guard.above.infos.get(info)?;
    let found = usize::try_from(n).ok().and_then(|n| info.key(n));
    let Some(found) = found else {
        return fail!(Arg: "n is {n}, but the info object has {} keys", info.len());
    };
    key.set(found.as_bytes(), MAX_KEY);
    Ok(())
}

/// A key argument: not null, not empty, short enough. White space around it counts; only Fortran's
/// bindings strip it (MPI 5.0, chapter 10).
fn checked_key(key: Text) -> Res<String> {
    let Some(key) = key.to_text() else {
        return fail(Class::InfoKey, "key is null");
    };
    if key.is_empty() {
        return fail(Class::InfoKey, "key is empty");
    }
    if key.len() >= MAX_KEY {
        return fail!(InfoKey: "key has {} characters, but at most {} are allowed", key.len(), MAX_KEY - 1);
    }
    Ok(key)
}

/// A value argument.
fn checked_value(value: Text) -> Res<String> {
    let Some(value) = value.to_text() else {
        return fail(Class::InfoValue, "value is null");
    };
    if value.len() >= MAX_VALUE {
        return fail!(InfoValue: "value has {} characters, but at most {} are allowed", value.len(), MAX_VALUE - 1);
    }
    Ok(value)
}
