//! The part of the PMIx ABI that a client needs: layouts, types, keys and status codes.
//!
//! Source: the PMIx Standard (versions 4 and 5 agree in all of this) and the public
//! `pmix_common.h`; sizes and offsets are checked below against those of its C declarations on a
//! 64-bit machine.

use std::ffi::{CStr, c_char, c_int, c_void};

/// Longest name of a namespace, NUL excluded.
pub const NAME_MAX: usize = 255;
/// Longest key, NUL excluded.
pub const KEY_MAX: usize = 511;

pub const SUCCESS: c_int = 0;
pub const ERR_NOT_FOUND: c_int = -46;
pub const ERR_LOST_CONNECTION: c_int = -61;

/// The rank that stands for the job as a whole.
pub const RANK_JOB: u32 = u32::MAX - 1;
/// Values that all processes of the job may read.
pub const SCOPE_GLOBAL: u8 = 3;

pub const JOB_SIZE: &CStr = c"pmix.job.size";
pub const UNIVERSE_SIZE: &CStr = c"pmix.univ.size";
pub const LOCAL_SIZE: &CStr = c"pmix.local.size";
pub const APPNUM: &CStr = c"pmix.appnum";
pub const NODE_ID: &CStr = c"pmix.nodeid";
pub const COLLECT: &CStr = c"pmix.collect";
pub const IMMEDIATE: &CStr = c"pmix.immediate";
pub const QUERY_SETS: &CStr = c"pmix.qry.psets";
pub const QUERY_MEMBERS: &CStr = c"pmix.qry.pmems";
pub const SET_NAME: &CStr = c"pmix.pset.nm";

pub const BOOL: u16 = 1;
pub const STRING: u16 = 3;
pub const SIZE: u16 = 4;
pub const INT: u16 = 6;
pub const INT32: u16 = 9;
pub const INT64: u16 = 10;
pub const UINT: u16 = 11;
pub const UINT16: u16 = 13;
pub const UINT32: u16 = 14;
pub const UINT64: u16 = 15;
pub const PROC: u16 = 22;
pub const BYTES: u16 = 27;
pub const ARRAY: u16 = 39;
pub const PROC_RANK: u16 = 40;

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Proc {
    pub space: [c_char; NAME_MAX + 1],
    pub rank: u32,
}

/// `pmix_byte_object_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    pub at: *mut c_char,
    pub size: usize,
}

/// `pmix_data_array_t`
#[repr(C)]
pub struct Array {
    pub kind: u16,
    pub size: usize,
    pub at: *mut c_void,
}

/// The union in `pmix_value_t`: [`Value::kind`] tells which member holds.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    pub flag: bool,
    pub text: *mut c_char,
    pub size: usize,
    pub int: c_int,
    pub int64: i64,
    pub uint16: u16,
    pub uint32: u32,
    pub bytes: Bytes,
    pub array: *mut Array,
    pub room: [u64; 3],
}

/// `pmix_value_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub kind: u16,
    pub data: Data,
}

/// `pmix_info_t`
#[repr(C)]
pub struct Info {
    pub key: [c_char; KEY_MAX + 1],
    pub flags: u32,
    pub value: Value,
}

/// `pmix_query_t`
#[repr(C)]
pub struct Query {
    /// Ends with a null pointer.
    pub keys: *mut *mut c_char,
    pub qualifiers: *mut Info,
    pub count: usize,
}

/// `pmix_app_t`
#[repr(C)]
pub struct App {
    pub program: *mut c_char,
    /// Begins with the program, ends with a null pointer.
    pub args: *mut *mut c_char,
    pub env: *mut *mut c_char,
    pub directory: *mut c_char,
    pub count: c_int,
    pub infos: *mut Info,
    pub info_count: usize,
}

/// Callback for an event.
pub type OnEvent = unsafe extern "C" fn(
    usize,
    c_int,
    *const Proc,
    *mut Info,
    usize,
    *mut Info,
    usize,
    *mut c_void,
    *mut c_void,
);

const _: () = {
    assert!(size_of::<Proc>() == 260 && std::mem::offset_of!(Proc, rank) == 256);
    assert!(size_of::<Value>() == 32 && std::mem::offset_of!(Value, data) == 8);
    assert!(size_of::<Info>() == 552 && std::mem::offset_of!(Info, flags) == 512);
    assert!(std::mem::offset_of!(Info, value) == 520);
    assert!(size_of::<Array>() == 24 && std::mem::offset_of!(Array, at) == 16);
    assert!(size_of::<App>() == 56 && std::mem::offset_of!(App, infos) == 40);
    assert!(size_of::<Query>() == 24 && size_of::<Bytes>() == 16);
};
