//! Attributes of communicators, datatypes and windows (MPI 5.0, 7.7), and the older names of these
//! functions.
//!
//! The user's copy and delete functions are called with the lock released.

use kw_objects::attributes::{KEYVAL_INVALID, Keyval, Kind, Owner};
use kw_objects::error::{Fault, Res, Scope, fail};
use kw_objects::handle::{CommH, TypeH, WinH};
use kw_objects::state::Mpi;
use kw_sys::args::Out;
use kw_sys::callback::{AttrCopy, DeleteAttr};

/// MPI_Comm_create_keyval
pub fn comm_create_keyval(
    mpi: &Mpi,
    comm_copy_attr_fn: AttrCopy,
    comm_delete_attr_fn: Option<DeleteAttr>,
    comm_keyval: Out<i32>,
    extra_state: usize,
) -> Res {
    create(
        mpi,
        Kind::Comm,
        (comm_copy_attr_fn, comm_delete_attr_fn, extra_state),
        comm_keyval,
    )
}

/// MPI_Type_create_keyval
pub fn type_create_keyval(
    mpi: &Mpi,
    type_copy_attr_fn: AttrCopy,
    type_delete_attr_fn: Option<DeleteAttr>,
    type_keyval: Out<i32>,
    extra_state: usize,
) -> Res {
    create(
        mpi,
        Kind::Type,
        (type_copy_attr_fn, type_delete_attr_fn, extra_state),
        type_keyval,
    )
}

/// MPI_Win_create_keyval
pub fn win_create_keyval(
    mpi: &Mpi,
    win_copy_attr_fn: AttrCopy,
    win_delete_attr_fn: Option<DeleteAttr>,
    win_keyval: Out<i32>,
    extra_state: usize,
) -> Res {
    create(
        mpi,
        Kind::Win,
        (win_copy_attr_fn, win_delete_attr_fn, extra_state),
        win_keyval,
    )
}

/// MPI_Keyval_create
pub fn keyval_create(
    mpi: &Mpi,
    copy_fn: AttrCopy,
    delete_fn: Option<DeleteAttr>,
    keyval: Out<i32>,
    extra_state: usize,
) -> Res {
    create(mpi, Kind::Comm, (copy_fn, delete_fn, extra_state), keyval)
}

fn create(
    mpi: &Mpi,
    kind: Kind,
    (copy, delete, extra): (AttrCopy, Option<DeleteAttr>, usize),
    keyval: Out<i32>,
) -> Res {
    let mut guard = mpi.lock();
    keyval.set(guard.above.attributes.create(kind, copy, delete, extra));
    Ok(())
}

/// MPI_Comm_free_keyval
pub fn comm_free_keyval(mpi: &Mpi, comm_keyval: Out<i32>) -> Res {
    free(mpi, Kind::Comm, comm_keyval)
}

/// MPI_Type_free_keyval
pub fn type_free_keyval(mpi: &Mpi, type_keyval: Out<i32>) -> Res {
    free(mpi, Kind::Type, type_keyval)
}

/// MPI_Win_free_keyval
pub fn win_free_keyval(mpi: &Mpi, win_keyval: Out<i32>) -> Res {
    free(mpi, Kind::Win, win_keyval)
}

/// MPI_Keyval_free
pub fn keyval_free(mpi: &Mpi, keyval: Out<i32>) -> Res {
    free(mpi, Kind::Comm, keyval)
}

fn free(mpi: &Mpi, kind: Kind, keyval: Out<i32>) -> Res {
    let mut guard = mpi.lock();
    let strict = guard.above.checking;
    guard.above.attributes.free(keyval.get(), kind, strict)?;
    keyval.set(KEYVAL_INVALID);
    Ok(())
}

/// MPI_Comm_set_attr
pub fn comm_set_attr(mpi: &Mpi, comm: CommH, comm_keyval: i32, attribute_val: usize) -> Res {
    set(mpi, Owner::Comm(comm), comm_keyval, attribute_val)
}

/// MPI_Type_set_attr
pub fn type_set_attr(mpi: &Mpi, datatype: TypeH, type_keyval: i32, attribute_val: usize) -> Res {
    set(mpi, Owner::Type(datatype), type_keyval, attribute_val)
}

/// MPI_Win_set_attr
pub fn win_set_attr(mpi: &Mpi, win: WinH, win_keyval: i32, attribute_val: usize) -> Res {
    set(mpi, Owner::Win(win), win_keyval, attribute_val)
}

/// MPI_Attr_put
pub fn attr_put(mpi: &Mpi, comm: CommH, keyval: i32, attribute_val: usize) -> Res {
    set(mpi, Owner::Comm(comm), keyval, attribute_val)
}

/// An earlier value is deleted first (MPI 5.0, 7.7.2).
fn set(mpi: &Mpi, owner: Owner, keyval: i32, value: usize) -> Res {
    let guard = mpi.lock();
    guard.above.check_owner(owner)?;
    let kind = guard.above.attributes.keyval(keyval, owner.kind())?.clone();
    let old = guard.above.attributes.get(owner, keyval);
    drop(guard);
    if let Some(old) = old {
        ask_delete(owner, keyval, &kind, old)?;
    }
    mpi.lock().above.attributes.set(owner, keyval, value);
    Ok(())
}

/// MPI_Comm_get_attr
pub fn comm_get_attr(
    mpi: &Mpi,
    comm: CommH,
    comm_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<i32>,
) -> Res {
    get(mpi, Owner::Comm(comm), comm_keyval, attribute_val, flag)
}

/// MPI_Type_get_attr
pub fn type_get_attr(
    mpi: &Mpi,
    datatype: TypeH,
    type_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<i32>,
) -> Res {
    get(mpi, Owner::Type(datatype), type_keyval, attribute_val, flag)
}

/// MPI_Win_get_attr
pub fn win_get_attr(
    mpi: &Mpi,
    win: WinH,
    win_keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<i32>,
) -> Res {
    get(mpi, Owner::Win(win), win_keyval, attribute_val, flag)
}

/// MPI_Attr_get
pub fn attr_get(
    mpi: &Mpi,
    comm: CommH,
    keyval: i32,
    attribute_val: Out<usize>,
    flag: Out<i32>,
) -> Res {
    get(mpi, Owner::Comm(comm), keyval, attribute_val, flag)
}

fn get(mpi: &Mpi, owner: Owner, keyval: i32, value: Out<usize>, flag: Out<i32>) -> Res {
    let guard = mpi.lock();
    guard.above.check_owner(owner)?;
    let attributes = &guard.above.attributes;
    let predefined = match owner {
        Owner::Comm(comm) => attributes.predefined(keyval, guard.above.comms.is_of_session(comm)),
        Owner::Win(_) => guard.above.window_attribute(owner, keyval).map(Some),
        Owner::Type(_) => None,
    };
    let found = match predefined {
        Some(found) => found,
        None => {
            attributes.keyval(keyval, owner.kind())?;
            attributes.get(owner, keyval)
        }
    };
    flag.set(found.is_some() as i32);
    if let Some(found) = found {
        value.set(found);
    }
    Ok(())
}

/// MPI_Comm_delete_attr
pub fn comm_delete_attr(mpi: &Mpi, comm: CommH, comm_keyval: i32) -> Res {
    delete(mpi, Owner::Comm(comm), comm_keyval)
}

/// MPI_Type_delete_attr
pub fn type_delete_attr(mpi: &Mpi, datatype: TypeH, type_keyval: i32) -> Res {
    delete(mpi, Owner::Type(datatype), type_keyval)
}

/// MPI_Win_delete_attr
pub fn win_delete_attr(mpi: &Mpi, win: WinH, win_keyval: i32) -> Res {
    delete(mpi, Owner::Win(win), win_keyval)
}

/// MPI_Attr_delete
pub fn attr_delete(mpi: &Mpi, comm: CommH, keyval: i32) -> Res {
    delete(mpi, Owner::Comm(comm), keyval)
}

fn delete(mpi: &Mpi, owner: Owner, keyval: i32) -> Res {
    let guard = mpi.lock();
    guard.above.check_owner(owner)?;
    let kind = guard.above.attributes.keyval(keyval, owner.kind())?.clone();
    let Some(value) = guard.above.attributes.get(owner, keyval) else {
        return fail!(Keyval: "keyval is {keyval}, which is not set on the object");
    };
    drop(guard);
    ask_delete(owner, keyval, &kind, value)?;
    mpi.lock().above.attributes.remove(owner, keyval);
    Ok(())
}

fn ask_delete(owner: Owner, keyval: i32, kind: &Keyval, value: usize) -> Res {
    let Some(function) = kind.delete else {
        return Ok(());
    };
    let done = function.call(owner.bits(), keyval, value, kind.extra);
    done.map_err(|code| refused(owner, code, "delete"))
}

/// Handles an error code of the user's function, which becomes that of the call.
fn refused(owner: Owner, code: i32, what: &str) -> Box<Fault> {
    let text = format!("the {what} function of an attribute answered with the error code {code}");
    let scope = match owner {
        Owner::Comm(c) => Scope::Comm(c),
        Owner::Win(w) => Scope::Win(w),
        Owner::Type(_) => Scope::Call,
    };
    let mut fault = Fault::of_code(code, text);
    fault.scope = scope;
    fault
}

/// Gives `to` the attributes of `from` by calling their copy functions (duplication of
/// communicators and datatypes).
pub(crate) fn copy_all(mpi: &Mpi, from: Owner, to: Owner) -> Res {
    let all = mpi.lock().above.attributes.all(from);
    for (attribute, kind) in all {
        let copied = match kind.copy {
            AttrCopy::Never => None,
            AttrCopy::Same => Some(attribute.value),
            AttrCopy::Ask(f) => f
                .call(from.bits(), attribute.keyval, kind.extra, attribute.value)
                .map_err(|code| refused(from, code, "copy"))?,
        };
        if let Some(value) = copied {
            mpi.lock().above.attributes.set(to, attribute.keyval, value);
        }
    }
    Ok(())
}

/// Deletes all attributes of an object that is being freed, the last one set first.
pub fn delete_all(mpi: &Mpi, owner: Owner) -> Res {
    loop {
        let last = mpi.lock().above.attributes.all(owner).pop();
        let Some((attribute, kind)) = last else {
            return Ok(());
        };
        ask_delete(owner, attribute.keyval, &kind, attribute.value)?;
        mpi.lock().above.attributes.remove(owner, attribute.keyval);
    }
}

/// First step of finalisation: deletes the attributes of MPI_COMM_SELF, the last one set first (MPI
/// 5.0, 11.2.4). Those of MPI_COMM_WORLD follow: the standard does not require it, but programs
/// free memory there.
pub(crate) fn close_world(mpi: &Mpi) -> Res {
    delete_all(mpi, Owner::Comm(CommH::SELF))?;
    delete_all(mpi, Owner::Comm(CommH::WORLD))
}
