//! Error classes, codes and their texts (MPI 5.0, 9.4 and 9.5).

use kw_objects::error::{Class, Res, fail};
use kw_objects::state::Mpi;
use kw_sys::args::{Out, OutText, Text};

/// MPI_MAX_ERROR_STRING, final zero included.
const MAX_TEXT: usize = 512;

/// MPI_Error_class
pub fn error_class(mpi: &Mpi, errorcode: i32, errorclass: Out<i32>) -> Res {
    let found = mpi.lock().above.codes.class(errorcode);
    match found {
        Some(class) => errorclass.set(class),
        None => return unknown(errorcode),
    }
    Ok(())
}

/// MPI_Error_string
pub fn error_string(mpi: &Mpi, errorcode: i32, string: OutText, resultlen: Out<i32>) -> Res {
    let found = mpi.lock().above.codes.text(errorcode);
    match found {
        Some(text) => resultlen.set(string.set(text.as_bytes(), MAX_TEXT) as i32),
        None => return unknown(errorcode),
    }
    Ok(())
}

/// MPI_Add_error_class
pub fn add_error_class(mpi: &Mpi, errorclass: Out<i32>) -> Res {
    let mut guard = mpi.lock();
    let class = guard.above.codes.add_class();
    guard.above.attributes.set_last_used_code(class);
    errorclass.set(class);
    Ok(())
}

/// MPI_Add_error_code
pub fn add_error_code(mpi: &Mpi, errorclass: i32, errorcode: Out<i32>) -> Res {
    let mut guard = mpi.lock();
    let code = guard.above.codes.add_code(errorclass)?;
    guard.above.attributes.set_last_used_code(code);
    errorcode.set(code);
    Ok(())
}

/// MPI_Add_error_string
pub fn add_error_string(mpi: &Mpi, errorcode: i32, string: Text) -> Res {
    let Some(text) = string.to_text() else {
        return fail(Class::Arg, "string is null");
    };
    if text.len() >= MAX_TEXT {
        return fail!(Arg: "string has {} characters, but at most {} are allowed", text.len(), MAX_TEXT - 1);
    }
    mpi.lock().above.codes.set_text(errorcode, &text)
}

/// MPI_Remove_error_class
pub fn remove_error_class(mpi: &Mpi, errorclass: i32) -> Res {
    mpi.lock().above.codes.remove_class(errorclass)
}

/// MPI_Remove_error_code
pub fn remove_error_code(mpi: &Mpi, errorcode: i32) -> Res {
    mpi.lock().above.codes.remove_code(errorcode)
}

/// MPI_Remove_error_string
pub fn remove_error_string(mpi: &Mpi, errorcode: i32) -> Res {
    mpi.lock().above.codes.remove_text(errorcode)
}

fn unknown(code: i32) -> Res {
    fail!(Arg: "errorcode is {code}, which is not an error code")
}
