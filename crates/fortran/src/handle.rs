//! Handles: an INTEGER in Fortran, a pointer-sized value in C.

use std::ffi::c_int;
use std::ops::{Deref, DerefMut};

unsafe extern "C-unwind" {
    fn MPI_Comm_toint(h: Comm) -> c_int;
    fn MPI_Comm_fromint(i: c_int) -> Comm;
    fn MPI_Group_toint(h: Group) -> c_int;
    fn MPI_Group_fromint(i: c_int) -> Group;
    fn MPI_Type_toint(h: Datatype) -> c_int;
    fn MPI_Type_fromint(i: c_int) -> Datatype;
    fn MPI_Op_toint(h: Op) -> c_int;
    fn MPI_Op_fromint(i: c_int) -> Op;
    fn MPI_Request_toint(h: Request) -> c_int;
    fn MPI_Request_fromint(i: c_int) -> Request;
    fn MPI_Info_toint(h: Info) -> c_int;
    fn MPI_Info_fromint(i: c_int) -> Info;
    fn MPI_Errhandler_toint(h: Errhandler) -> c_int;
    fn MPI_Errhandler_fromint(i: c_int) -> Errhandler;
    fn MPI_Message_toint(h: Message) -> c_int;
    fn MPI_Message_fromint(i: c_int) -> Message;
    fn MPI_Session_toint(h: Session) -> c_int;
    fn MPI_Session_fromint(i: c_int) -> Session;
    fn MPI_Win_toint(h: Win) -> c_int;
    fn MPI_Win_fromint(i: c_int) -> Win;
    fn MPI_File_toint(h: File) -> c_int;
    fn MPI_File_fromint(i: c_int) -> File;
}

/// Handles below this are the ABI's constants, in C and Fortran the same (MPI 5.0, 20.4).
const CONSTANTS: usize = 4096;

/// A C handle.
pub trait Handle: Copy {
    /// Of the value that C has.
    fn of(value: usize) -> Self;
    /// The value that C has.
    fn value(self) -> usize;
    /// Of an INTEGER that is no constant.
    fn look_up(i: c_int) -> Self;
    /// The INTEGER of a handle that is no constant.
    fn number(self) -> c_int;
}

macro_rules! handles {
    ($($id:ident $toint:ident $fromint:ident;)*) => {$(
        #[doc = concat!("MPI's C handle of this kind: ", stringify!($id), ".")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(transparent)]
        pub struct $id(pub usize);

        impl Handle for $id {
            fn of(value: usize) -> Self {
                $id(value)
            }
            fn value(self) -> usize {
                self.0
            }
            fn look_up(i: c_int) -> Self {
                // SAFETY: takes any number.
                unsafe { $fromint(i) }
            }
            fn number(self) -> c_int {
                // SAFETY: takes any handle that C gave.
                unsafe { $toint(self) }
            }
        }
    )*};
}

handles! {
    Comm MPI_Comm_toint MPI_Comm_fromint;
    Group MPI_Group_toint MPI_Group_fromint;
    Datatype MPI_Type_toint MPI_Type_fromint;
    Op MPI_Op_toint MPI_Op_fromint;
    Request MPI_Request_toint MPI_Request_fromint;
    Info MPI_Info_toint MPI_Info_fromint;
    Errhandler MPI_Errhandler_toint MPI_Errhandler_fromint;
    Message MPI_Message_toint MPI_Message_fromint;
    Session MPI_Session_toint MPI_Session_fromint;
    Win MPI_Win_toint MPI_Win_fromint;
    File MPI_File_toint MPI_File_fromint;
}

/// MPI_REQUEST_NULL
pub const REQUEST_NULL: Request = Request(0x180);

/// The C handle of an INTEGER.
#[inline(always)]
pub fn to_c<H: Handle>(i: c_int) -> H {
    if (0..CONSTANTS as c_int).contains(&i) {
        return H::of(i as usize);
    }
    H::look_up(i)
}

/// The INTEGER of a C handle.
#[inline(always)]
pub fn to_fortran<H: Handle>(h: H) -> c_int {
    if h.value() < CONSTANTS {
        return h.value() as c_int;
    }
    h.number()
}

/// The C handle of an argument.
///
/// # Safety
/// `at` points at an INTEGER.
#[inline(always)]
pub unsafe fn handle<H: Handle>(at: *const c_int) -> H {
    // SAFETY: the caller's promise.
    to_c(unsafe { *at })
}

/// Gives an argument its handle.
///
/// # Safety
/// `at` points at an INTEGER.
#[inline(always)]
pub unsafe fn give<H: Handle>(at: *mut c_int, h: H) {
    // SAFETY: the caller's promise.
    unsafe { *at = to_fortran(h) };
}

/// An array of handles.
pub struct Handles<H: Handle> {
    few: [usize; 8],
    many: Vec<usize>,
    n: usize,
    /// Where they are, once C has them for good.
    left: *mut usize,
    kind: std::marker::PhantomData<H>,
}

impl<H: Handle> Handles<H> {
    /// Of `n` INTEGERs.
    ///
    /// # Safety
    /// `from` has `n` elements, if `n` is positive.
    pub unsafe fn read(from: *const c_int, n: i64) -> Self {
        let mut out = Self::empty(n);
        for i in 0..out.n {
            // SAFETY: the caller's promise.
            let h: H = to_c(unsafe { *from.add(i) });
            out.values()[i] = h.value();
        }
        out
    }

    /// For `n` handles that C will give: none yet.
    ///
    /// # Safety
    /// None; it looks like [`Handles::read`].
    pub unsafe fn room(_: *const c_int, n: i64) -> Self {
        Self::empty(n)
    }

    fn empty(n: i64) -> Self {
        let n = n.max(0) as usize;
        Handles {
            few: [0; 8],
            many: if n > 8 { vec![0; n] } else { Vec::new() },
            n,
            left: std::ptr::null_mut(),
            kind: std::marker::PhantomData,
        }
    }

    fn values(&mut self) -> &mut [usize] {
        match self.n {
            0..=8 => &mut self.few[..self.n],
            _ => &mut self.many,
        }
    }

    /// What C takes.
    pub fn as_c(&mut self) -> *mut H {
        if !self.left.is_null() {
            return self.left.cast();
        }
        self.values().as_mut_ptr().cast()
    }

    /// Writes the handles that there are.
    ///
    /// # Safety
    /// `to` has the elements that were read.
    pub unsafe fn write(&mut self, to: *mut c_int) {
        for (i, &value) in self.values().iter().enumerate().filter(|(_, v)| **v != 0) {
            // SAFETY: the caller's promise.
            unsafe { *to.add(i) = to_fortran(H::of(value)) };
        }
    }

    /// Puts the array where it can stay while C uses it: as long as what is returned lives.
    pub fn leave(&mut self) -> Vec<usize> {
        let mut place = self.values().to_vec();
        self.left = place.as_mut_ptr();
        place
    }
}

impl<H: Handle> Deref for Handles<H> {
    type Target = [H];
    fn deref(&self) -> &[H] {
        let values = if self.n <= 8 {
            &self.few[..self.n]
        } else {
            &self.many[..]
        };
        // SAFETY: H is a transparent usize.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
    }
}

impl<H: Handle> DerefMut for Handles<H> {
    fn deref_mut(&mut self) -> &mut [H] {
        let values = self.values();
        // SAFETY: H is a transparent usize.
        unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
    }
}
