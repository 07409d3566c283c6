//! Definition of an ABI.

use crate::handle::Kind;
use crate::status::Status;
use std::ffi::{CStr, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/conversions.rs"));

/// An ABI, as a type without values.
#[allow(missing_docs)]
pub trait Abi: Constants + Copy + 'static {
    type Comm: Kind;
    type Datatype: Kind;
    type File: Kind;
    type Request: Kind;
    type Session: Kind;
    type Win: Kind;
    type Status: Status;
    /// The library that programs of this ABI ask the dynamic linker for.
    const LIBRARY: &'static CStr;
    /// The first code that a program's own errors have; there is room for 2^20 of them.
    const FIRST_ADDED: c_int;
}
