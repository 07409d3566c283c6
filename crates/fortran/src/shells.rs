//! The generated shells (`kw_apigen::fortran_shells`, run by the build script), and the C
//! functions that they call.
//!
//! # Safety
//! Each is called from Fortran under the promises of its interface in the modules: an argument that
//! is not optional is present, arrays have the number of elements that their count says.
// not every C function is called: attributes under old keys are those under new ones; and not every
// ABI has descriptors
#![allow(
    dead_code,
    missing_docs,
    unused_imports,
    unused_mut,
    unused_variables,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    clippy::unnecessary_cast
)]

use crate::choice::{Address, Choice, Pointer};
use crate::convert::{Status, answer, fail};
use crate::descriptor::Descriptor;
use crate::handle::{
    Comm, Datatype, Errhandler, File, Group, Handles, Info, Message, Op, Request, Session, Win,
    give, handle as read, is_direct,
};
use crate::logical::Logicals;
use crate::sections::{Direction, Sections, Way};
use crate::text::{Length, Lists, Room, Text, Words};
use crate::{callback, convert, logical, pending, sentinels, split, text};
use std::ffi::{c_char, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/shells.rs"));
