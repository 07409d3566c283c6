//! Functions that the user of MPI gave us as C pointers: calling them, as safe values.
//!
//! The library receives a function pointer as a number (`usize`), through the parameter of an MPI
//! function whose C type defines the pointed-to type. Every wrapper here rests on a promise made by
//! the shell that creates it: **the number is the address of a function of the type which the
//! wrapper names, and it stays callable as long as the object it was registered with lives.** Each
//! wrapper's `new` returns `None` for the null pointer and for the ABI's sentinels
//! (`MPI_COMM_DUP_FN` and its like, below 4096).
//!
//! The caller releases the lock first: a callback may call MPI. It may also throw an exception of
//! another language, which unwinds through the callers here up to the program's own frame
//! ([`sealed`]: where it cannot).

use crate::args::Status;
use crate::buf::{Addr, Buf};
use crate::elements::Elements;
use std::ffi::{c_int, c_void};

/// Addresses below this are constants of the ABI, not functions.
const FIRST_ADDRESS: usize = 4096;

macro_rules! callbacks {
    ($($(#[$doc:meta])* $id:ident: $ty:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $id(usize);

        impl $id {
            /// The function at this address; `None` for null and for the constants of the ABI.
            ///
            /// # Safety
            /// Any other address is that of a function of this type, which stays callable as long
            /// as the object lives that it is registered with.
            pub unsafe fn new(address: usize) -> Option<$id> {
                (address >= FIRST_ADDRESS).then_some($id(address))
            }

            /// The address.
            pub fn bits(self) -> usize {
                self.0
            }

            fn pointer(self) -> $ty {
                // SAFETY: `new` was promised a function of this type, and it is not null.
                unsafe { std::mem::transmute::<usize, $ty>(self.0) }
            }
        }
    )*};
}

type RawCopyAttr =
    unsafe extern "C-unwind" fn(usize, c_int, usize, usize, *mut usize, *mut c_int) -> c_int;
type RawDeleteAttr = unsafe extern "C-unwind" fn(usize, c_int, usize, usize) -> c_int;
type RawHandler = unsafe extern "C-unwind" fn(*mut usize, *mut c_int, ...);
type RawOp = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_int, *mut usize);
type RawOpCount = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut i64, *mut usize);
type RawQuery = unsafe extern "C-unwind" fn(usize, *mut Status) -> c_int;
type RawFree = unsafe extern "C-unwind" fn(usize) -> c_int;
type RawCancel = unsafe extern "C-unwind" fn(usize, c_int) -> c_int;
type RawExtent = unsafe extern "C-unwind" fn(usize, *mut i64, usize) -> c_int;
type RawConvert =
    unsafe extern "C-unwind" fn(*mut c_void, usize, c_int, *mut c_void, i64, usize) -> c_int;
type RawConvertCount =
    unsafe extern "C-unwind" fn(*mut c_void, usize, i64, *mut c_void, i64, usize) -> c_int;
type RawEvent = unsafe extern "C-unwind" fn(usize, usize, c_int, usize);
type RawEventFree = unsafe extern "C-unwind" fn(usize, c_int, usize);
type RawEventDropped = unsafe extern "C-unwind" fn(i64, usize, c_int, c_int, usize);

type RawRequestHook = unsafe extern "C" fn(usize, c_int);
type RawSourceLine = unsafe extern "C" fn() -> u64;
type RawSourceLineName = unsafe extern "C" fn(u64, *mut u8, usize) -> usize;

callbacks! {
    /// Attribute copy function of a communicator, datatype or window (MPI 5.0, 7.7).
    CopyAttr: RawCopyAttr;
    /// Attribute delete function of a communicator, datatype or window (MPI 5.0, 7.7).
    DeleteAttr: RawDeleteAttr;
    /// Error handler of a communicator, window, file or session (MPI 5.0, 9.3).
    ErrorHandler: RawHandler;
    /// User-defined reduction, `int` length (MPI 5.0, 6.9.5).
    UserOp: RawOp;
    /// User-defined reduction, `MPI_Count` length.
    UserOpCount: RawOpCount;
    /// Query function of a generalized request (MPI 5.0, 13.2).
    GrequestQuery: RawQuery;
    /// Free function of a generalized request.
    GrequestFree: RawFree;
    /// Cancel function of a generalized request.
    GrequestCancel: RawCancel;
    /// Extent function of a data representation (MPI 5.0, 14.5.3).
    DatarepExtent: RawExtent;
    /// Conversion function of a data representation, `int` count.
    DatarepConvert: RawConvert;
    /// Conversion function of a data representation, `MPI_Count` count.
    DatarepConvertCount: RawConvertCount;
    /// Function of a tool that is called for an event (MPI 5.0, 15.3.8).
    ToolEvent: RawEvent;
    /// Function of a tool that is called when a registration is gone.
    ToolEventFree: RawEventFree;
    /// Function of a tool that is called when events were dropped.
    ToolEventDropped: RawEventDropped;
    /// Function of a library on top of this one that is called for a request's operations.
    RequestHook: RawRequestHook;
    /// Function that returns where a language's code called MPI ([`crate::source_line`]).
    SourceLine: RawSourceLine;
    /// The name of such a place.
    SourceLineName: RawSourceLineName;
}

/// Effect on an attribute when its object is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrCopy {
    /// The new object does not have it (`MPI_COMM_NULL_COPY_FN` and its like).
    Never,
    /// It has the same (`MPI_COMM_DUP_FN` and its like).
    Same,
    /// This function decides.
    Ask(CopyAttr),
}

impl AttrCopy {
    /// Value of a parameter for a copy function.
    ///
    /// # Safety
    /// As for [`CopyAttr::new`].
    pub unsafe fn new(address: usize) -> AttrCopy {
        // SAFETY: the caller's promise.
        match unsafe { CopyAttr::new(address) } {
            Some(f) => AttrCopy::Ask(f),
            None if address == 0 => AttrCopy::Never,
            None => AttrCopy::Same,
        }
    }
}

/// Event passed to a [`RequestHook`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum RequestEvent {
    /// A persistent request is about to be started.
    Starts = 0,
    /// An operation has ended, with or without success: nothing is read or written any more.
    Ended = 1,
    /// There will be no more operations: the last call.
    Gone = 2,
}

impl RequestHook {
    /// Wraps a function of the library.
    pub fn of(function: extern "C" fn(usize, c_int)) -> RequestHook {
        RequestHook(function as *const () as usize)
    }

    /// Calls it. Unlike other functions, this one is called with the lock taken, by any thread that
    /// has it: it does not call MPI, and no exception leaves it.
    pub fn call(self, data: usize, event: RequestEvent) {
        // SAFETY: the address was promised to be of this function, and its owner that it does so.
        unsafe { self.pointer()(data, event as c_int) }
    }
}

impl SourceLine {
    /// Calls it, in the thread in question; the lock may be taken: it does not call MPI.
    pub fn call(self) -> u64 {
        // SAFETY: the address was promised to be of this function.
        unsafe { self.pointer()() }
    }
}

impl SourceLineName {
    /// Asks for at most this many bytes; returns how many there are.
    pub fn call(self, place: u64, to: &mut [u8]) -> usize {
        // SAFETY: the address was promised to be of this function, which writes no more than that.
        let len = unsafe { self.pointer()(place, to.as_mut_ptr(), to.len()) };
        len.min(to.len())
    }
}

impl ToolEvent {
    /// Wraps a function of the library.
    pub fn of(function: extern "C-unwind" fn(usize, usize, c_int, usize)) -> ToolEvent {
        ToolEvent(function as *const () as usize)
    }
}

/// Calls `f`, which calls a function of the user where an exception must not unwind, because it
/// would leave work half done: an exception ends the process with a sentence. `what` names the
/// function.
pub fn sealed<T>(what: &str, f: impl FnOnce() -> T) -> T {
    struct Seal<'a>(&'a str);
    impl Drop for Seal<'_> {
        fn drop(&mut self) {
            eprintln!(
                "process {} on {}: an exception was thrown out of {}, which is not allowed: catch it there",
                std::process::id(),
                crate::host::name(),
                self.0
            );
            std::process::abort();
        }
    }
    let seal = Seal(what);
    let result = f();
    std::mem::forget(seal);
    result
}

impl CopyAttr {
    /// Copies an attribute: `Ok(None)` if the new object must not have it, `Err(code)` if the
    /// function failed.
    pub fn call(
        self,
        handle: usize,
        keyval: i32,
        extra: usize,
        value: usize,
    ) -> Result<Option<usize>, i32> {
        let (mut copied, mut flag) = (0usize, 0);
        // SAFETY: a function of this type; the two places are ours and live through the call.
        let code = unsafe { self.pointer()(handle, keyval, extra, value, &mut copied, &mut flag) };
        if code != 0 {
            return Err(code);
        }
        Ok((flag != 0).then_some(copied))
    }
}

impl DeleteAttr {
    /// Deletes an attribute; `Err(code)` when the function failed.
    pub fn call(self, handle: usize, keyval: i32, value: usize, extra: usize) -> Result<(), i32> {
        // SAFETY: a function of this type, with plain values.
        answer(unsafe { self.pointer()(handle, keyval, value, extra) })
    }
}

impl ErrorHandler {
    /// Reports an error on the object `handle`.
    pub fn call(self, handle: usize, code: i32) {
        let (mut handle, mut code) = (handle, code);
        // SAFETY: a function of this type; the two places are ours and live through the call.
        unsafe { self.pointer()(&mut handle, &mut code) }
    }
}

impl UserOp {
    /// `inout[i] = input[i] op inout[i]`; both have the same number of elements of `datatype`.
    /// Their number is an `int`: the function is called more than once if need be.
    ///
    /// # Panics
    /// When one has more than the other (a fault of our own).
    pub fn call(self, input: &Elements, inout: &Elements, datatype: usize) {
        assert_eq!(input.count(), inout.count(), "elements to combine");
        let mut done = 0;
        while done < inout.count() {
            let n = (inout.count() - done).min(c_int::MAX as u64);
            let (a, b) = (input.part(done, n), inout.part(done, n));
            let (mut len, mut datatype) = (n as c_int, datatype);
            // SAFETY: a function of this type; both have `len` elements.
            unsafe { self.pointer()(a.pointer(), b.pointer(), &mut len, &mut datatype) }
            done += n;
        }
    }
}

impl UserOpCount {
    /// `inout[i] = input[i] op inout[i]`; both have the same number of elements of `datatype`.
    ///
    /// # Panics
    /// When one has more than the other (a fault of our own).
    pub fn call(self, input: &Elements, inout: &Elements, datatype: usize) {
        assert_eq!(input.count(), inout.count(), "elements to combine");
        let (mut len, mut datatype) = (inout.count() as i64, datatype);
        // SAFETY: a function of this type; both have `len` elements.
        unsafe { self.pointer()(input.pointer(), inout.pointer(), &mut len, &mut datatype) }
    }
}

impl GrequestQuery {
    /// Fills the status of a generalized request; `Err(code)` when the function failed.
    pub fn call(self, extra: usize, status: &mut Status) -> Result<(), i32> {
        // SAFETY: a function of this type; the status is exclusively ours.
        answer(unsafe { self.pointer()(extra, status) })
    }
}

impl GrequestFree {
    /// Frees what belongs to a generalized request; `Err(code)` when the function failed.
    pub fn call(self, extra: usize) -> Result<(), i32> {
        // SAFETY: a function of this type, with a plain value.
        answer(unsafe { self.pointer()(extra) })
    }
}

impl GrequestCancel {
    /// Asks to cancel a generalized request; `Err(code)` when the function failed.
    pub fn call(self, extra: usize, complete: bool) -> Result<(), i32> {
        // SAFETY: a function of this type, with plain values.
        answer(unsafe { self.pointer()(extra, complete as c_int) })
    }
}

impl DatarepExtent {
    /// Extent of `datatype` in the file; `Err(code)` when the function failed.
    pub fn call(self, datatype: usize, extra: usize) -> Result<i64, i32> {
        let mut extent = 0;
        // SAFETY: a function of this type; the place is ours.
        answer(unsafe { self.pointer()(datatype, &mut extent, extra) }).map(|()| extent)
    }
}

impl DatarepConvert {
    /// Converts `count` elements between memory and file form; `Err(code)` when the function
    /// failed.
    pub fn call(
        self,
        user: Addr,
        datatype: usize,
        count: i32,
        file: &Buf,
        position: i64,
        extra: usize,
    ) -> Result<(), i32> {
        let at = file.contiguous().unwrap_or(0);
        let (a, b) = (user.bits() as *mut c_void, at as *mut c_void);
        // SAFETY: a function of this type; the first address carries the promise of `Addr`, the
        // second is that of a buffer which lives during the call.
        answer(unsafe { self.pointer()(a, datatype, count, b, position, extra) })
    }
}

impl DatarepConvertCount {
    /// Converts `count` elements between memory and file form; `Err(code)` when the function
    /// failed.
    pub fn call(
        self,
        user: Addr,
        datatype: usize,
        count: i64,
        file: &Buf,
        position: i64,
        extra: usize,
    ) -> Result<(), i32> {
        let at = file.contiguous().unwrap_or(0);
        let (a, b) = (user.bits() as *mut c_void, at as *mut c_void);
        // SAFETY: a function of this type; the first address carries the promise of `Addr`, the
        // second is that of a buffer which lives during the call.
        answer(unsafe { self.pointer()(a, datatype, count, b, position, extra) })
    }
}

impl ToolEvent {
    /// Reports one event: handles of the instance and of the registration, the requirement of the
    /// place, the tool's own word.
    pub fn call(self, instance: usize, registration: usize, safety: i32, data: usize) {
        sealed("a function that MPI_T_event_register_callback took", || {
            // SAFETY: a function of this type, with plain values.
            unsafe { self.pointer()(instance, registration, safety, data) }
        })
    }
}

impl ToolEventFree {
    /// Reports that a registration is gone and none of its functions will be called again.
    pub fn call(self, registration: usize, safety: i32, data: usize) {
        sealed("a function that MPI_T_event_handle_free took", || {
            // SAFETY: a function of this type, with plain values.
            unsafe { self.pointer()(registration, safety, data) }
        })
    }
}

impl ToolEventDropped {
    /// Reports how many events of a source were dropped.
    pub fn call(self, count: i64, registration: usize, source: i32, safety: i32, data: usize) {
        sealed(
            "a function that MPI_T_event_set_dropped_handler took",
            || {
                // SAFETY: a function of this type, with plain values.
                unsafe { self.pointer()(count, registration, source, safety, data) }
            },
        )
    }
}

fn answer(code: c_int) -> Result<(), i32> {
    if code == 0 { Ok(()) } else { Err(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C-unwind" fn double_it(
        _: usize,
        _: c_int,
        extra: usize,
        v: usize,
        out: *mut usize,
        flag: *mut c_int,
    ) -> c_int {
        // SAFETY: `call` gives two places.
        unsafe {
            *out = v * 2;
            *flag = (extra != 0) as c_int;
        }
        (v == 99) as c_int * 13
    }

    #[test]
    fn constants_of_the_abi_are_no_functions() {
        // SAFETY: neither is an address.
        let both = unsafe { [0, 1].map(|bits| (CopyAttr::new(bits), AttrCopy::new(bits))) };
        assert_eq!(both, [(None, AttrCopy::Never), (None, AttrCopy::Same)]);
    }

    #[test]
    fn a_copy_function_says_value_refusal_or_error() {
        // SAFETY: a function of this type.
        let f = unsafe { CopyAttr::new(double_it as *const () as usize) }.unwrap();
        assert_eq!(f.call(0x101, 1, 1, 21), Ok(Some(42)));
        assert_eq!(f.call(0x101, 1, 0, 21), Ok(None));
        assert_eq!(f.call(0x101, 1, 0, 99), Err(13));
    }
}
