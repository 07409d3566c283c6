//! The tool information interface (MPI 5.0, 15.3). Its functions may be called before
//! initialisation and after finalisation of MPI, by any thread, and call no error handler.

pub mod category;
pub mod cvar;
pub mod enumeration;
pub mod event;
pub mod pvar;

use kw_objects::error::{Res, ToolClass};
use kw_objects::state::{Guard, Mpi};
use kw_objects::tool::{event as events, refuse};
use kw_sys::args::{Out, OutText, Text};
use kw_sys::buf::{Addr, Buf};

/// MPI_THREAD_MULTIPLE
const THREAD_MULTIPLE: i32 = 4096;

/// MPI_T_init_thread
pub fn t_init_thread(mpi: &Mpi, required: i32, provided: Out<i32>) -> Res {
    if !(0..=THREAD_MULTIPLE).contains(&required) {
        return refuse(
            ToolClass::Invalid,
            format!("required is {required}, which is not a thread level"),
        );
    }
    let mut guard = mpi.lock();
    guard.above.tool.users += 1;
    give(provided, required);
    Ok(())
}

/// MPI_T_finalize
pub fn t_finalize(mpi: &Mpi) -> Res {
    let mut guard = open(mpi)?;
    guard.above.tool.users -= 1;
    if guard.above.tool.users == 0 {
        guard.above.tool.forget();
        events::ask(&mut guard);
    }
    Ok(())
}

/// The lock, if the tool interface is initialised.
fn open(mpi: &Mpi) -> Res<Guard<'_>> {
    opened(mpi.lock())
}

fn opened(guard: Guard<'_>) -> Res<Guard<'_>> {
    if guard.above.tool.users == 0 {
        return refuse(
            ToolClass::NotInitialized,
            "MPI_T_init_thread was not called",
        );
    }
    Ok(guard)
}

/// Writes a result that the caller may omit.
fn give<T: Copy>(place: Out<T>, value: T) {
    if !place.is_null() {
        place.set(value);
    }
}

/// A place that the caller must give.
fn need<T: Copy>(place: Out<T>, name: &str) -> Res<Out<T>> {
    match place.is_null() {
        true => refuse(ToolClass::Invalid, format!("{name} is a null pointer")),
        false => Ok(place),
    }
}

/// A buffer of `len` bytes that the caller must give.
fn memory(address: Addr, len: usize, name: &str) -> Res<Buf> {
    match address.bits() {
        0 => refuse(ToolClass::Invalid, format!("{name} is a null pointer")),
        _ => Ok(Buf::bytes(address, len as u64)),
    }
}

/// A string result (MPI 5.0, 15.3.3): at most `len - 1` characters and a zero are written, and
/// `len` becomes the length of the whole string with its zero. Without `len` nothing is written;
/// without a string, or if `len` is zero, only `len`.
fn say(text: &str, place: OutText, len: Out<i32>) -> Res {
    if len.is_null() {
        return Ok(());
    }
    let Ok(room) = usize::try_from(len.get()) else {
        return refuse(
            ToolClass::Invalid,
            format!("a string has room for {} characters", len.get()),
        );
    };
    place.set(text.as_bytes(), room);
    len.set(text.len() as i32 + 1);
    Ok(())
}

/// The position of the row with this name.
fn by_name(name: Text, find: impl Fn(&str) -> Option<usize>) -> Res<i32> {
    let Some(text) = name.to_text() else {
        return refuse(ToolClass::Invalid, "name is a null pointer");
    };
    match find(&text) {
        Some(i) => Ok(i as i32),
        None => refuse(ToolClass::InvalidName, format!("unknown name '{text}'")),
    }
}
