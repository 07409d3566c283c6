//! Arguments of the C interface as safe values.
//!
//! The generated shells make these from raw pointers, under the promise that MPI's caller gives
//! with each parameter kind (MPI 5.0, 2.3); everything above works with them in safe code. Counts
//! and displacements come as `i64` whatever the C width is, so a function and its large-count twin
//! are one Rust function.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;

/// One place to write a result to. Null only if `api/parameters.tsv` allows it (the shell has
/// checked).
#[derive(Clone, Copy, Debug)]
pub struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// # Safety
    /// `p` is valid for writing a `T` during the call; it may be null if the receiver checks
    /// [`Out::is_null`].
    pub unsafe fn new(p: *mut T) -> Out<T> {
        Out(p)
    }

    /// Whether no place was given.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes the result.
    #[inline]
    pub fn set(self, value: T) {
        // SAFETY: promised in `new`.
        unsafe { self.0.write_unaligned(value) }
    }

    /// Reads the current value (INOUT parameters, such as a handle that is freed).
    #[inline]
    pub fn get(self) -> T {
        // SAFETY: promised in `new`; INOUT parameters are initialised by the caller.
        unsafe { self.0.read_unaligned() }
    }
}

/// The width of an integer argument that differs between a function and its large-count twin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// `int`.
    Int,
    /// `MPI_Count`, `MPI_Aint` or `MPI_Offset`.
    Long,
}

/// One place for an integer result of either width.
#[derive(Clone, Copy, Debug)]
pub struct OutInt {
    p: *mut c_void,
    width: Width,
}

impl OutInt {
    /// # Safety
    /// `p` is valid for writing an integer of that width during the call, and not null.
    pub unsafe fn new(p: *mut c_void, width: Width) -> OutInt {
        OutInt { p, width }
    }

    /// Width of the place.
    pub fn width(self) -> Width {
        self.width
    }

    /// Writes the result; returns `false`, and writes MPI_UNDEFINED, if it does not fit an `int`.
    #[inline]
    pub fn set(self, value: i64) -> bool {
        match self.width {
            Width::Long => {
                // SAFETY: promised in `new`.
                unsafe { (self.p as *mut i64).write_unaligned(value) };
                true
            }
            Width::Int => {
                let fits = c_int::try_from(value);
                // SAFETY: promised in `new`.
                unsafe { (self.p as *mut c_int).write_unaligned(fits.unwrap_or(-32766)) };
                fits.is_ok()
            }
        }
    }

    /// Reads the current value.
    pub fn get(self) -> i64 {
        match self.width {
            // SAFETY: promised in `new`.
            Width::Long => unsafe { (self.p as *const i64).read_unaligned() },
            // SAFETY: promised in `new`.
            Width::Int => unsafe { (self.p as *const c_int).read_unaligned() as i64 },
        }
    }
}

/// An array of integers of either width that the caller reads or writes; its length is another
/// argument.
#[derive(Clone, Copy, Debug)]
pub struct Ints {
    p: *mut c_void,
    width: Width,
}

impl Ints {
    /// # Safety
    /// `p` is null or valid for as many elements as the function's other arguments say, during the
    /// call.
    pub unsafe fn new(p: *const c_void, width: Width) -> Ints {
        Ints {
            p: p as *mut c_void,
            width,
        }
    }

    /// Whether no array was given.
    pub fn is_null(self) -> bool {
        self.p.is_null()
    }

    /// The pointer's value, for MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY and other constants.
    pub fn bits(self) -> usize {
        self.p as usize
    }

    /// Width of the elements.
    pub fn width(self) -> Width {
        self.width
    }

    /// Element `i`.
    #[inline]
    pub fn get(self, i: usize) -> i64 {
        match self.width {
            // SAFETY: promised in `new`; `i` is below the length the caller gave.
            Width::Long => unsafe { (self.p as *const i64).add(i).read_unaligned() },
            // SAFETY: promised in `new`; `i` is below the length the caller gave.
            Width::Int => unsafe { (self.p as *const c_int).add(i).read_unaligned() as i64 },
        }
    }

    /// Whether an array was given, and begins with these numbers; the caller gave at least as many.
    #[inline]
    pub fn are(self, list: &[u64]) -> bool {
        let here = |(i, &n): (usize, &u64)| self.get(i) as u64 == n;
        !self.is_null() && list.iter().enumerate().all(here)
    }

    /// Adds the first `n` elements to a list; negative ones become numbers above `i64::MAX`.
    pub fn add_to(self, list: &mut Vec<u64>, n: usize) {
        match self.width {
            Width::Long => list.extend((0..n).map(|i| {
                // SAFETY: promised in `new`; `n` is not more than the length the caller gave.
                unsafe { (self.p as *const i64).add(i).read_unaligned() as u64 }
            })),
            Width::Int => list.extend((0..n).map(|i| {
                // SAFETY: promised in `new`; `n` is not more than the length the caller gave.
                unsafe { (self.p as *const c_int).add(i).read_unaligned() as i64 as u64 }
            })),
        }
    }

    /// Writes element `i` of an output array; `false` when it does not fit (MPI_UNDEFINED is
    /// written).
    pub fn set(self, i: usize, value: i64) -> bool {
        let size = if self.width == Width::Long { 8 } else { 4 };
        OutInt {
            p: (self.p as usize + i * size) as *mut c_void,
            width: self.width,
        }
        .set(value)
    }

    /// The first `n` elements; empty when no array was given.
    pub fn to_vec(self, n: usize) -> Vec<i64> {
        if self.is_null() {
            Vec::new()
        } else {
            (0..n).map(|i| self.get(i)).collect()
        }
    }
}

/// An array of plain values (handles, statuses, ranges) that the caller reads or writes.
#[derive(Debug)]
pub struct Array<T> {
    p: *mut T,
    of: PhantomData<T>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Array<T> {}

impl<T: Copy> Array<T> {
    /// # Safety
    /// `p` is null or valid for as many elements as the function's other arguments say, during the
    /// call.
    pub unsafe fn new(p: *const T) -> Array<T> {
        Array {
            p: p as *mut T,
            of: PhantomData,
        }
    }

    /// Whether no array was given (MPI_STATUSES_IGNORE and the like).
    pub fn is_null(self) -> bool {
        self.p.is_null()
    }

    /// Element `i`.
    #[inline]
    pub fn get(self, i: usize) -> T {
        // SAFETY: promised in `new`.
        unsafe { self.p.add(i).read_unaligned() }
    }

    /// Writes element `i`.
    #[inline]
    pub fn set(self, i: usize, value: T) {
        // SAFETY: promised in `new`.
        unsafe { self.p.add(i).write_unaligned(value) }
    }

    /// The first `n` elements; empty when no array was given.
    pub fn to_vec(self, n: usize) -> Vec<T> {
        if self.is_null() {
            Vec::new()
        } else {
            (0..n).map(|i| self.get(i)).collect()
        }
    }
}

/// A C string given by the caller; may be null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// # Safety
    /// `p` is null or a C string valid during the call.
    pub unsafe fn new(p: *const c_char) -> Text {
        Text(p)
    }

    /// The bytes without the final zero, or `None` for a null pointer.
    pub fn bytes(&self) -> Option<&[u8]> {
        // SAFETY: promised in `new`; the borrow ends with the call.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// Its text, with invalid bytes replaced.
    pub fn to_text(&self) -> Option<String> {
        self.bytes()
            .map(|b| String::from_utf8_lossy(b).into_owned())
    }
}

/// The arguments of a C program, as `main` has them; may be null.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Texts(*const Text);

impl Texts {
    /// # Safety
    /// `p` is null or an array of C strings, valid during the call, that is as long as the
    /// function's caller says.
    pub unsafe fn new(p: usize) -> Texts {
        Texts(p as *const Text)
    }

    /// Text `i` of an array that is not null.
    pub fn get(self, i: usize) -> Text {
        match self.0.is_null() {
            true => Text(std::ptr::null()),
            // SAFETY: promised in `new`; a `Text` is a pointer.
            false => unsafe { self.0.add(i).read_unaligned() },
        }
    }

    /// The first `n`, or fewer when a null pointer ends them.
    pub fn to_vec(self, n: usize) -> Vec<String> {
        if self.0.is_null() {
            return Vec::new();
        }
        // SAFETY: promised in `new`; a `Text` is a pointer.
        let text = |i| unsafe { *self.0.add(i) };
        (0..n).map_while(|i| text(i).to_text()).collect()
    }
}

/// The arguments of several programs, one after the other; may be null.
#[derive(Clone, Copy, Debug)]
pub struct TextLists(*const Texts);

impl TextLists {
    /// # Safety
    /// `p` is null or an array of as many lists as the function's caller says, each as
    /// [`Texts::new`] wants it.
    pub unsafe fn new(p: usize) -> TextLists {
        TextLists(p as *const Texts)
    }

    /// List `i`.
    pub fn get(self, i: usize) -> Texts {
        match self.0.is_null() {
            true => Texts(std::ptr::null()),
            // SAFETY: promised in `new`; a `Texts` is a pointer.
            false => unsafe { self.0.add(i).read_unaligned() },
        }
    }
}

/// A place for a string result.
#[derive(Clone, Copy, Debug)]
pub struct OutText(*mut c_char);

impl OutText {
    /// # Safety
    /// `p` is null or valid for as many bytes as the standard says for the parameter, during the
    /// call.
    pub unsafe fn new(p: *mut c_char) -> OutText {
        OutText(p)
    }

    /// Whether no place was given.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes at most `capacity - 1` bytes of `text` and a final zero; returns how many bytes of
    /// text were written.
    pub fn set(self, text: &[u8], capacity: usize) -> usize {
        if self.0.is_null() || capacity == 0 {
            return 0;
        }
        let n = text.len().min(capacity - 1);
        // SAFETY: promised in `new`; `capacity` is what the standard guarantees.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.0 as *mut u8, n);
            *self.0.add(n) = 0;
        }
        n
    }
}

/// MPI_Status of the standard ABI (MPI 5.0, 20.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Status {
    /// MPI_SOURCE
    pub source: c_int,
    /// MPI_TAG
    pub tag: c_int,
    /// MPI_ERROR
    pub error: c_int,
    /// Kittiwake's use: `[0..2]` received bytes (low, high), `[2]` bit 0: cancelled; the rest is
    /// zero.
    pub internal: [c_int; 5],
}

impl Array<Status> {
    /// Element `i` as a place of its own; MPI_STATUS_IGNORE when no array was given.
    #[inline]
    pub fn place(self, i: usize) -> StatusOut {
        if self.p.is_null() {
            return StatusOut(self.p);
        }
        // `i` is below the length that the caller gave.
        StatusOut(self.p.wrapping_add(i))
    }
}

/// A place for a status; null is MPI_STATUS_IGNORE.
#[derive(Clone, Copy, Debug)]
pub struct StatusOut(*mut Status);

impl StatusOut {
    /// # Safety
    /// `p` is null or valid for reading and writing during the call.
    pub unsafe fn new(p: *mut Status) -> StatusOut {
        StatusOut(p)
    }

    /// Whether it is MPI_STATUS_IGNORE.
    pub fn is_ignored(self) -> bool {
        self.0.is_null()
    }

    /// Writes all but MPI_ERROR, which single-completion calls leave alone (MPI 5.0, 3.2.5).
    #[inline]
    pub fn set_keeping_error(self, status: Status) {
        if !self.0.is_null() {
            // SAFETY: promised in `new`.
            unsafe {
                self.0.write_unaligned(Status {
                    error: (*self.0).error,
                    ..status
                })
            }
        }
    }

    /// Writes the whole status.
    pub fn set(self, status: Status) {
        if !self.0.is_null() {
            // SAFETY: promised in `new`.
            unsafe { self.0.write_unaligned(status) }
        }
    }

    /// Reads it; a zero status when ignored.
    pub fn get(self) -> Status {
        if self.0.is_null() {
            Status::default()
        } else {
            // SAFETY: promised in `new`.
            unsafe { self.0.read_unaligned() }
        }
    }
}
