//! The line of a Java program that called MPI. Java's code is in no file, and all its calls of a
//! function return to the same few addresses in the bindings. So the MPI library is asked at every
//! call; the bindings have registered the functions that answer ([`kw_base::source_line`]).

use kw_base::sync::OnceLock;

use crate::next::{info, module_of, of_library};

type PlaceFn = extern "C" fn() -> u64;
type Name = unsafe extern "C" fn(u64, *mut u8, usize) -> usize;

/// The MPI library's functions, `kw_MPI_Place` and `kw_MPI_Place_name`.
fn asked() -> Option<&'static (PlaceFn, Name)> {
    static ASKED: OnceLock<Option<(PlaceFn, Name)>> = OnceLock::new();
    let find = || {
        let (place, name) = (
            of_library(c"kw_MPI_Place"),
            of_library(c"kw_MPI_Place_name"),
        );
        // SAFETY: the library's own functions of these types.
        (place != 0 && name != 0).then(|| unsafe {
            (
                std::mem::transmute::<usize, PlaceFn>(place),
                std::mem::transmute::<usize, Name>(name),
            )
        })
    };
    ASKED.get_or_init(find).as_ref()
}

/// Whether a language knows more than the return address of the current call.
pub(crate) fn knows(site: usize) -> bool {
    let of_bindings = match info(site) {
        None => true,
        Some(_) => module_of(site).is_some_and(|path| path.contains("/libmpi_java")),
    };
    of_bindings && place() != 0
}

/// The place of the current call, or 0.
pub(crate) fn place() -> usize {
    asked().map_or(0, |(place, _)| place() as usize)
}

/// The name of a place's module.
pub(crate) fn name(place: usize, room: usize) -> Vec<u8> {
    let mut bytes = vec![0; room];
    // SAFETY: the vector has `room` bytes.
    let len = asked().map_or(0, |(_, name)| unsafe {
        name(place as u64, bytes.as_mut_ptr(), room)
    });
    bytes.truncate(len);
    bytes
}
