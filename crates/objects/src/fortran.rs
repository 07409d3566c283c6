//! The `int` form of handles: from the number back to the handle (MPI 5.0, 20.4).
//!
//! The number holds index and four bits of the generation; the table knows the rest.

use crate::handle::*;
use crate::state::{Mpi, Tables};
use kw_base::Key;

/// A kind of handle that can be recovered from its number.
pub trait FromInt: Sized {
    /// The key of the live object at this index of its table.
    fn key_at(tables: &Tables, index: u32) -> Option<Key>;
    /// The handle of a key.
    fn of_key(key: Key) -> Self;
    /// A predefined handle.
    fn predefined(value: usize) -> Self;
    /// The null handle.
    fn null() -> Self;
}

/// The handle of a number; the null handle if no live object has it.
pub fn from_int<H: FromInt>(mpi: &Mpi, value: i32) -> H {
    let (index, low) = match split_int(value) {
        Ok(predefined) => return H::predefined(predefined),
        Err(parts) => parts,
    };
    let guard = mpi.lock();
    let key = H::key_at(&guard.above, index).filter(|k| k.generation & 0xf == low);
    guard.leave();
    key.map_or_else(H::null, H::of_key)
}

macro_rules! from_int {
    ($($id:ident: |$t:ident, $i:ident| $at:expr;)*) => {$(
        impl FromInt for $id {
            fn key_at($t: &Tables, $i: u32) -> Option<Key> {
                $at
            }
            fn of_key(key: Key) -> Self {
                $id::from_key(key)
            }
            fn predefined(value: usize) -> Self {
                $id(value)
            }
            fn null() -> Self {
                $id::NULL
            }
        }
    )*};
}

// A crate that adds a table of objects names it here.
from_int! {
    CommH: |t, i| t.comms.made.key_at(i);
    GroupH: |t, i| t.groups.made.key_at(i);
    TypeH: |t, i| t.types.derived.key_at(i);
    OpH: |t, i| t.ops.made.key_at(i);
    RequestH: |t, i| t.requests.key_at(i);
    InfoH: |t, i| t.infos.made.key_at(i);
    ErrhandlerH: |t, i| t.errhandlers.made.key_at(i);
    MessageH: |t, i| t.messages.key_at(i);
    SessionH: |t, i| t.sessions.open.key_at(i);
    WinH: |t, i| t.windows.key_at(i);
    FileH: |t, i| t.files.key_at(i);
}
