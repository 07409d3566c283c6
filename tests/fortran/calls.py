"""A Fortran program that calls every function of api/ which Fortran has, with arguments of the
standard's types: that it compiles says that the interface has these types, that it links that the
library has the names, and what it prints how each call ended. Made without the generator of the
modules, by the standard's rules (MPI 5.0, 19.1): so both would have to be wrong in the same way.

Every call is made with handles that are null and counts of 0. Those that would end the program, or
which crash then instead of failing, are compiled and not called. Messages, collectives and
constructors of datatypes are called with fitting arguments, too (`fitting`); of all others the
chapters (*.F90) do so.
"""

import collections
import pathlib
import re

from jobs import apigen

ROOT = pathlib.Path(__file__).resolve().parents[2]
# the chapters that every interface of every ABI has
CHAPTERS = [
    "point",
    "complete",
    "datatypes",
    "numbers",
    "collectives",
    "forms",
    "communicators",
    "attributes",
    "topologies",
    "environment",
    "callbacks",
    "files",
    "windows",
    "processes",
    "plain",
    "rest",
]
HANDLES = (
    "Comm",
    "Datatype",
    "Errhandler",
    "File",
    "Group",
    "Info",
    "Message",
    "Op",
    "Request",
    "Session",
    "Win",
)
# what Fortran does not have, or only as something else
ONLY_C = re.compile(r"MPI_T_|MPI_\w+_(to|from)int$|MPI_Abi_[gs]et_fortran_booleans$")
NOT_IN_F08 = (
    "MPI_Attr_delete",
    "MPI_Attr_get",
    "MPI_Attr_put",
    "MPI_Keyval_create",
    "MPI_Keyval_free",
)
# twins whose callbacks differ, by which no generic name can be resolved
OWN_NAME = ("MPI_Op_create_c", "MPI_Register_datarep_c")
# what is compiled only: it ends MPI or the process, or is given an address of nothing
NOT_CALLED = (
    "MPI_Abort",
    "MPI_Finalize",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Free_mem",
    "MPI_Abi_set_fortran_info",
    "MPI_Remove_error_class",
    "MPI_Remove_error_code",
    "MPI_Remove_error_string",
)
CALLBACKS = {
    "MPI_User_function": "user_op",
    "MPI_User_function_c": "user_op_c",
    "MPI_Copy_function": "copy_1",
    "MPI_Delete_function": "delete_1",
    "MPI_Comm_copy_attr_function": "copy_comm",
    "MPI_Comm_delete_attr_function": "delete_comm",
    "MPI_Type_copy_attr_function": "copy_type",
    "MPI_Type_delete_attr_function": "delete_type",
    "MPI_Win_copy_attr_function": "copy_win",
    "MPI_Win_delete_attr_function": "delete_win",
    "MPI_Comm_errhandler_function": "handle_comm",
    "MPI_File_errhandler_function": "handle_file",
    "MPI_Win_errhandler_function": "handle_win",
    "MPI_Session_errhandler_function": "handle_session",
    "MPI_Grequest_query_function": "query",
    "MPI_Grequest_free_function": "release",
    "MPI_Grequest_cancel_function": "cancel",
    "MPI_Datarep_extent_function": "extent_of",
    "MPI_Datarep_conversion_function": "convert",
    "MPI_Datarep_conversion_function_c": "convert_c",
}

FITS = 10000

Function = collections.namedtuple("Function", "name code chapter twin_of params")
Param = collections.namedtuple("Param", "name c_type kind direction")


def read():
    """The functions of the description, in its order."""
    params = collections.defaultdict(list)
    for line in apigen("parameters").splitlines()[1:]:
        function, name, c_type, kind, direction, *_ = line.split("\t")
        if c_type != "..." and not kind.startswith("ARGUMENT"):
            params[function].append(Param(name, c_type, kind, direction))
    for line in (ROOT / "api/functions.tsv").read_text().splitlines()[1:]:
        name, _, result, chapter, *_ = line.split("\t")
        twin_of = name[:-2] if name.endswith("_c") and name[:-2] in params else None
        if not ONLY_C.match(name):
            yield Function(name, result == "code", chapter, twin_of, params[name])


def fortran_type(p):
    """The type of an argument and what follows the name of a variable of it."""
    base, shape = re.sub(r"^const | ?\*+$|\[.*", "", p.c_type), "(8)" if "[" in p.c_type else ""
    if base in CALLBACKS:
        return "procedure", CALLBACKS[base]
    if p.kind == "BUFFER":
        return "integer", "(8)"
    if p.kind in ("C_BUFFER", "C_BUFFER2"):
        return "POINTER", ""
    if p.kind in ("EXTRA_STATE", "ATTRIBUTE_VAL"):
        return "integer(MPI_ADDRESS_KIND)", ""
    if p.kind in ("EXTRA_STATE2", "ATTRIBUTE_VAL_10"):
        return "integer", ""
    if p.kind.startswith("LOGICAL"):
        return "logical", shape
    if p.kind == "STRING_2DARRAY":
        return "character(20)", "(8, 8)"
    if base == "char" or p.kind == "STRING_ARRAY":
        return "character(20)", "(8)" if p.kind == "STRING_ARRAY" else ""
    if base == "MPI_Status":
        return ("STATUSES", "") if shape or p.name.startswith("array") else ("STATUS", "")
    if base[4:] in HANDLES:
        return f"HANDLE(MPI_{base[4:]})", shape
    if p.c_type.endswith("[][3]"):
        return "integer", "(3, 8)"
    kinds = {
        "MPI_Aint": "(MPI_ADDRESS_KIND)",
        "MPI_Count": "(MPI_COUNT_KIND)",
        "MPI_Offset": "(MPI_OFFSET_KIND)",
    }
    return "integer" + kinds.get(base, ""), shape


def signature(f):
    """By what a generic name is resolved: on all machines that we know, addresses, counts and
    offsets are of one kind."""
    return [re.sub(r"\(MPI_\w+_KIND\)", "(8)", str(fortran_type(p))) for p in f.params]


def linker_names(f, interface):
    """The names that a linker sees of a function in an interface, if it has it."""
    choice = any(p.kind == "BUFFER" for p in f.params)
    if interface == "mpi_f08":
        return [] if f.name in NOT_IN_F08 else [f"{f.name.lower()}_f08{'ts' if choice else ''}_"]
    if f.twin_of:
        return []
    pointer = any(p.kind == "C_BUFFER" for p in f.params)
    return [
        f"{f.name.lower()}_fts_" if choice and interface == "mpi" else f"{f.name.lower()}_",
        *([f"{f.name.lower()}_cptr_"] if pointer and interface == "mpi" else []),
    ]


def fails_without_handles(f):
    """Whether a null handle among its arguments is a fault whatever the others are."""
    if re.fullmatch(r"MPI_\w+_get_name|MPI_File_\w+_errhandler", f.name):
        return False  # null handles have names, and no file has the error handler of files to come
    needed = (
        "COMMUNICATOR",
        "GROUP",
        "DATATYPE",
        "ERRHANDLER",
        "OPERATION",
        "WINDOW",
        "FILE",
        "SESSION",
        "MESSAGE",
    )
    return any(p.kind in needed and p.direction != "out" and "[" not in p.c_type for p in f.params)


def names(f, declared):
    """The arguments of a call. `declared` collects the variables: name by type and number."""
    used, words = collections.Counter(), []
    for p in f.params:
        kind, shape = fortran_type(p)
        if kind == "procedure":
            words.append(shape)
            continue
        used[kind, shape] += 1
        words.append(declared.setdefault((kind, shape, used[kind, shape]), f"v{len(declared) + 1}"))
    return words


def call(f, name, declared):
    """The lines that call a function."""
    words = names(f, declared)
    if f.code and f.name != "MPI_Pcontrol":
        words.append("ierr")
    return (
        f"call {name}( &\n      " + ", &\n      ".join(words) + ")" if words else f"call {name}()"
    )


# Fitting arguments for one process and one integer: by the end of a parameter's kind or its name.
FITTING_CHAPTERS = (
    "collectives",
    "topologies",
    "point-to-point",
    "partitioned",
    "datatypes",
    "external",
)
FITTING = {
    "COMMUNICATOR": "MPI_COMM_SELF",
    "DATATYPE": "MPI_INTEGER",
    "OPERATION": "MPI_SUM",
    "INFO": "MPI_INFO_NULL",
    "TAG": "0",
    "PARTITION": "1",
    "MESSAGE": "MPI_MESSAGE_NO_PROC",
    "root": "0",
    "RANK": "MPI_PROC_NULL",
    "RANK_NNI": "0",
    "ORDER": "MPI_ORDER_FORTRAN",
    "DISTRIB_ENUM": "MPI_DISTRIBUTE_BLOCK",
    "DTYPE_DISTRIBUTION": "MPI_DISTRIBUTE_DFLT_DARG",
    "PROCESS_GRID_SIZE": "1",
    "COMM_SIZE_PI": "1",
    "ARRAY_LENGTH_PI": "1",
    "POLYDTYPE_NUM_ELEM_PI": "1",
    "array_of_starts": "0",
    "POLYDTYPE_STRIDE_BYTES": "4",
    "datarep": "'external32'",
    "XFER_NUM_ELEM": "1",
    "XFER_NUM_ELEM_NNI": "1",
    "DTYPE_NUM_ELEM": "1",
    "DTYPE_NUM_ELEM_NNI": "1",
    "insize": "32",
    "outsize": "32",
    "LOGICAL": ".true.",
    "position": "0",
}


def value(p):
    """What fits a parameter: a constant, "" where its start does, None where nothing is known
    to."""
    if p.kind in ("BUFFER", "POLYFUNCTION") or "DISPLACEMENT" in p.kind or p.direction == "out":
        return ""
    return next(
        (FITTING[key] for key in (p.name, p.kind, p.kind.removeprefix("POLY")) if key in FITTING),
        None,
    )


def fitting(f, variables):
    """The lines before and after a call that give it fitting arguments; None for what the chapters
    must call."""
    buffers = sum(p.kind == "BUFFER" for p in f.params)
    constructs = any(p.name == "newtype" for p in f.params) and re.match(
        "MPI_Type_(con|cre|ind|vec)", f.name
    )
    if (
        f.chapter not in FITTING_CHAPTERS
        or not (buffers or constructs or "Pack" in f.name)
        or "attach" in f.name
        or "address" in f.name
    ):
        return None
    before, after = [], []
    for p, name in zip(f.params, variables):
        text = value(p)
        if text is None:
            return None
        if p.kind == "COMMUNICATOR" and "eighbor" in f.name:
            text = "ring"
        if text:
            before.append(f"  {name} = {text}")
        if p.kind == "REQUEST":
            after += [f"  call MPI_Start({name}, ierr)"] if "_init" in f.name else []
            after += [f"  call MPI_Pready(0, {name}, ierr)"] if "Psend" in f.name else []
            after += [f"  call MPI_Wait({name}, MPI_STATUS_IGNORE, ierr)"]
            after += [f"  call MPI_Request_free({name}, ierr)"] if "_init" in f.name else []
        if p.name == "newtype":
            after += [f"  call MPI_Type_free({name}, ierr)"]
    return before, after


def declaration(key, name):
    kind, shape, _ = key
    if kind == "STATUS":
        return f"  A_STATUS({name})"
    if kind == "STATUSES":
        return f"  STATUSES({name}, 8)"
    return f"  {kind} :: {name}{shape}"


def start(key, name):
    """What makes a variable nothing."""
    kind = key[0]
    if kind.startswith("HANDLE"):
        return f"  {name} = {kind[7:-1].upper()}_NULL"
    if kind.startswith("integer"):
        return f"  {name} = 0"
    return {"logical": f"  {name} = .false.", "character(20)": f"  {name} = 'x'"}.get(kind)


def program():
    """The text of the program, and for each number of a call the function; those from FITS on have
    fitting arguments."""
    functions = {f.name: f for f in read()}
    parts, numbers = [], {}
    for f in functions.values():
        if not f.code:
            continue
        name = f.name
        if f.twin_of and name not in OWN_NAME:
            name = f.twin_of
            if signature(f) == signature(functions[name]):
                continue  # nothing can tell the two apart, and there is no need
        variables = {}
        text = call(f, name, variables)
        number = len(parts) + 1
        lines = [f"subroutine call_{number} ! {f.name}", "  integer :: ierr"]
        lines += [declaration(*item) for item in variables.items()]
        lines += filter(None, (start(*item) for item in variables.items()))
        lines += ["  ierr = -1", f"  {text}"]
        if f.name != "MPI_Pcontrol":
            lines += [f"  call told({number}, ierr)"]
        if fits := fitting(f, names(f, variables)):
            before, after = fits
            lines += [
                *before,
                "  ierr = -1",
                f"  {text}",
                f"  call told({number + FITS}, ierr)",
                *after,
            ]
            numbers[number + FITS] = f
        lines += ["end subroutine"]
        condition = (
            "defined(KW_F08) && !defined(KW_FOREIGN)"
            if f.twin_of
            else "!defined(KW_F08)"
            if f.name in NOT_IN_F08
            else "1"
        )
        parts.append((condition, lines, f.name in NOT_CALLED, number))
        numbers[number] = f
    return "\n".join(
        ["! Made by calls.py.", '#include "forms.h"', HEAD, *body(parts)]
    ) + "\n", numbers


def body(parts):
    # all in one module: it reads that of MPI once
    for condition, lines, _, _ in parts:
        yield from [f"#if {condition}", *lines, "#endif"]
    yield from [
        "end module",
        "program every_call",
        "  use calls",
        "  implicit none",
        "  integer :: ierr",
        "  call MPI_Init(ierr)",
        "  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)",
        "  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)",
        "  call MPI_Cart_create(MPI_COMM_SELF, 1, [1], [.true.], .false., ring, ierr)",
    ]
    for condition, _, never, number in parts:
        yield from [
            f"#if {condition}",
            f"  if (never) call call_{number}" if never else f"  call call_{number}",
            "#endif",
        ]
    yield from ["  call MPI_Finalize(ierr)", "end program"]


HEAD = (
    """
#if defined(KW_F08)
#define POINTER type(c_ptr)
#else
#define POINTER integer(MPI_ADDRESS_KIND)
#endif
module calls
  USE_MPI
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
#if defined(KW_MPIF)
  include 'mpif.h'
#endif
  logical, volatile :: never = .false.
  HANDLE(MPI_Comm) :: ring
contains
  subroutine told(number, code)
    integer, intent(in) :: number, code
    integer :: class, ierr
    class = code
    if (code /= MPI_SUCCESS .and. code /= -1) call MPI_Error_class(code, class, ierr)
    print '(i0, 1x, i0)', number, class
  end subroutine
"""
    + "".join(
        f"""
#if {"defined(KW_F08)" if large else "1"}
#if defined(KW_F08)
  subroutine {name}(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
#else
  subroutine {name}(invec, inoutvec, len, datatype)
    integer :: invec(*), inoutvec(*)
#endif
    integer{"(MPI_COUNT_KIND)" if large else ""} :: len
    HANDLE(MPI_Datatype) :: datatype
  end subroutine
#else
  subroutine {name}
  end subroutine
#endif"""
        for name, large in (("user_op", False), ("user_op_c", True))
    )
    + "".join(
        f"""
  subroutine copy_{name}(object, keyval, extra, value_in, value_out, flag, ierror)
    {handle} :: object
    integer :: keyval, ierror
    {value} :: extra, value_in, value_out
    logical :: flag
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_{name}(object, keyval, value, extra, ierror)
    {handle} :: object
    integer :: keyval, ierror
    {value} :: value, extra
    ierror = MPI_SUCCESS
  end subroutine"""
        for name, handle, value in (
            ("1", "integer", "integer"),
            ("comm", "HANDLE(MPI_Comm)", "integer(MPI_ADDRESS_KIND)"),
            ("type", "HANDLE(MPI_Datatype)", "integer(MPI_ADDRESS_KIND)"),
            ("win", "HANDLE(MPI_Win)", "integer(MPI_ADDRESS_KIND)"),
        )
    )
    + "".join(
        f"""
  subroutine handle_{name.lower()}(object, code)
    HANDLE(MPI_{name}) :: object
    integer :: code
  end subroutine"""
        for name in ("Comm", "File", "Win", "Session")
    )
    + """
  subroutine query(extra, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    A_STATUS(status)
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(extra, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
  subroutine extent_of(datatype, extent, extra, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: extent, extra
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine"""
    + "".join(
        f"""
#if defined(KW_F08)
  subroutine {name}(userbuf, datatype, count, filebuf, position, extra, ierror)
    type(c_ptr), value :: userbuf, filebuf
#else
  subroutine {name}(userbuf, datatype, count, filebuf, position, extra, ierror)
    integer :: userbuf(*), filebuf(*)
#endif
    HANDLE(MPI_Datatype) :: datatype
    integer{kind} :: count
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine"""
        for name, kind in (("convert", ""), ("convert_c", "(MPI_COUNT_KIND)"))
    )
    + "\n"
)
