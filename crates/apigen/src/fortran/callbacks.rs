//! Procedures that a program passes to MPI: their interfaces, and the predefined ones.

/// Copy and delete functions of attributes: the Fortran names of the handle's type and of the
/// argument.
const CACHED: [(&str, &str, &str); 3] = [
    ("Comm", "MPI_Comm", "comm"),
    ("Type", "MPI_Datatype", "datatype"),
    ("Win", "MPI_Win", "win"),
];

/// Handles with error handlers.
const HANDLERS: [(&str, &str); 4] = [
    ("Comm", "comm"),
    ("File", "file"),
    ("Win", "win"),
    ("Session", "session"),
];

const REST: &str = "\
subroutine MPI_User_function(invec, inoutvec, len, datatype)
import
type(c_ptr), value :: invec, inoutvec
integer :: len
type(MPI_Datatype) :: datatype
end subroutine
subroutine MPI_User_function_c(invec, inoutvec, len, datatype)
import
type(c_ptr), value :: invec, inoutvec
integer(kind=MPI_COUNT_KIND) :: len
type(MPI_Datatype) :: datatype
end subroutine
subroutine MPI_Grequest_query_function(extra_state, status, ierror)
import
integer(kind=MPI_ADDRESS_KIND) :: extra_state
type(MPI_Status) :: status
integer :: ierror
end subroutine
subroutine MPI_Grequest_free_function(extra_state, ierror)
import
integer(kind=MPI_ADDRESS_KIND) :: extra_state
integer :: ierror
end subroutine
subroutine MPI_Grequest_cancel_function(extra_state, complete, ierror)
import
integer(kind=MPI_ADDRESS_KIND) :: extra_state
logical :: complete
integer :: ierror
end subroutine
subroutine MPI_Datarep_extent_function(datatype, extent, extra_state, ierror)
import
type(MPI_Datatype) :: datatype
integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
integer :: ierror
end subroutine
";

/// The abstract interfaces of mpi_f08.
pub fn interfaces() -> String {
    let mut out = String::from("abstract interface\n");
    for (name, ty, handle) in CACHED {
        out += &cached(
            &format!("MPI_{name}_copy_attr_function"),
            &format!("MPI_{name}_delete_attr_function"),
            &format!("type({ty})"),
            handle,
        );
    }
    for (name, handle) in HANDLERS {
        out += &format!(
            "subroutine MPI_{name}_errhandler_function({handle}, error_code)\nimport\ntype(MPI_{name}) :: {handle}\ninteger :: error_code\nend subroutine\n"
        );
    }
    out += REST;
    for (end, count) in [("", "integer"), ("_c", "integer(kind=MPI_COUNT_KIND)")] {
        out += &conversion(
            &format!("MPI_Datarep_conversion_function{end}"),
            "type(c_ptr), value",
            "type(MPI_Datatype)",
            count,
        );
    }
    out + "end interface\n"
}

/// The interfaces of the predefined procedures, for handles that are derived types or integers.
pub fn predefined_interfaces(f08: bool) -> String {
    let handle_type = |ty: &str| {
        if f08 {
            format!("type({ty})")
        } else {
            "integer".to_string()
        }
    };
    let mut out = String::from("interface\n");
    for (name, ty, handle) in CACHED {
        let up = name.to_ascii_uppercase();
        let ty = handle_type(ty);
        let copy = cached(
            &format!("MPI_{up}_NULL_COPY_FN"),
            &format!("MPI_{up}_NULL_DELETE_FN"),
            &ty,
            handle,
        );
        let dup = cached(&format!("MPI_{up}_DUP_FN"), "", &ty, handle);
        out += &copy;
        out += &dup;
    }
    if !f08 {
        out += &old("MPI_NULL_COPY_FN", true);
        out += &old("MPI_DUP_FN", true);
        out += &old("MPI_NULL_DELETE_FN", false);
    }
    let (buffer, datatype) = if f08 {
        ("type(c_ptr), value", "type(MPI_Datatype)")
    } else {
        ("type(*), dimension(*)", "integer")
    };
    out += &conversion("MPI_CONVERSION_FN_NULL", buffer, datatype, "integer");
    if f08 {
        out += &conversion(
            "MPI_CONVERSION_FN_NULL_C",
            buffer,
            datatype,
            "integer(kind=MPI_COUNT_KIND)",
        );
    }
    out + "end interface\n"
}

/// Names of the predefined procedures, and their meaning to the library.
pub fn predefined() -> Vec<(String, &'static str)> {
    let mut out = Vec::new();
    for up in ["COMM_", "TYPE_", "WIN_", ""] {
        out.push((format!("MPI_{up}NULL_COPY_FN"), "copy"));
        out.push((format!("MPI_{up}DUP_FN"), "dup"));
        out.push((format!("MPI_{up}NULL_DELETE_FN"), "delete"));
    }
    for end in ["", "_C"] {
        out.push((format!("MPI_CONVERSION_FN_NULL{end}"), "conversion"));
    }
    out
}

fn cached(copy: &str, delete: &str, ty: &str, handle: &str) -> String {
    let mut out = format!(
        "subroutine {copy}(old{handle}, {handle}_keyval, extra_state, attribute_val_in, &\nattribute_val_out, flag, ierror)\nimport\n{ty} :: old{handle}\ninteger :: {handle}_keyval, ierror\ninteger(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out\nlogical :: flag\nend subroutine\n"
    );
    if !delete.is_empty() {
        out += &format!(
            "subroutine {delete}({handle}, {handle}_keyval, attribute_val, extra_state, ierror)\nimport\n{ty} :: {handle}\ninteger :: {handle}_keyval, ierror\ninteger(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state\nend subroutine\n"
        );
    }
    out
}

/// Functions of attributes that are default integers.
fn old(name: &str, copies: bool) -> String {
    match copies {
        true => format!(
            "subroutine {name}(oldcomm, keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)\ninteger :: oldcomm, keyval, extra_state, attribute_val_in, attribute_val_out, ierror\nlogical :: flag\nend subroutine\n"
        ),
        false => format!(
            "subroutine {name}(comm, keyval, attribute_val, extra_state, ierror)\ninteger :: comm, keyval, attribute_val, extra_state, ierror\nend subroutine\n"
        ),
    }
}

fn conversion(name: &str, buffer: &str, datatype: &str, count: &str) -> String {
    format!(
        "subroutine {name}(userbuf, datatype, count, filebuf, position, extra_state, ierror)\nimport\n{buffer} :: userbuf, filebuf\n{datatype} :: datatype\n{count} :: count\ninteger(kind=MPI_OFFSET_KIND) :: position\ninteger(kind=MPI_ADDRESS_KIND) :: extra_state\ninteger :: ierror\nend subroutine\n"
    )
}
