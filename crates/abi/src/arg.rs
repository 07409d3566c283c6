//! Converts raw C arguments to the safe values that `kw_mpi` and the chapters beside it take. The
//! type that the called function requires decides.

use kw_objects::handle::*;
use kw_sys::args::{
    Array, Ints, Out, OutInt, OutText, Status, StatusOut, Text, TextLists, Texts, Width,
};
use kw_sys::buf::Addr;
use kw_sys::callback::{
    AttrCopy, DatarepConvert, DatarepConvertCount, DatarepExtent, DeleteAttr, ErrorHandler,
    GrequestCancel, GrequestFree, GrequestQuery, ToolEvent, ToolEventDropped, ToolEventFree,
    UserOp, UserOpCount,
};
use std::ffi::{c_char, c_int, c_void};

/// A value that is made from a C argument of type `C`.
#[diagnostic::on_unimplemented(
    message = "a C parameter of type `{C}` does not become a Rust parameter of type `{Self}`",
    note = "the types of MPI's parameters in kw_mpi::built are explained in docs/ARCHITECTURE.md"
)]
pub trait Arg<C> {
    /// # Safety
    /// `c` was given by a caller of MPI who keeps the promises of the standard for this parameter.
    unsafe fn from_c(c: C) -> Self;
}

/// Converts a C argument to the type that the called function requires.
///
/// # Safety
/// See [`Arg::from_c`].
#[inline(always)]
pub unsafe fn arg<C, T: Arg<C>>(c: C) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::from_c(c) }
}

macro_rules! args {
    ($([$($g:tt)*] $c:ty => $t:ty: |$x:ident| $e:expr;)*) => {$(
        impl<$($g)*> Arg<$c> for $t {
            #[inline(always)]
            unsafe fn from_c($x: $c) -> Self {
                // SAFETY: the caller's promise is the one that the constructor requires.
                #[allow(unused_unsafe)]
                unsafe { $e }
            }
        }
    )*};
}

args! {
    [] c_int => i32: |x| x;
    [] c_int => i64: |x| x as i64;
    [] i64 => i64: |x| x;
    [] usize => usize: |x| x;
    [] usize => Texts: |x| Texts::new(x);
    [] usize => TextLists: |x| TextLists::new(x);
    [] usize => AttrCopy: |x| AttrCopy::new(x);
    [T: Copy] *mut T => Out<T>: |x| Out::new(x);
    [T: Copy] *mut T => Array<T>: |x| Array::new(x);
    [T: Copy] *const T => Array<T>: |x| Array::new(x);
    [] *mut c_int => OutInt: |x| OutInt::new(x.cast(), Width::Int);
    [] *mut i64 => OutInt: |x| OutInt::new(x.cast(), Width::Long);
    [] *mut c_int => Ints: |x| Ints::new(x.cast(), Width::Int);
    [] *const c_int => Ints: |x| Ints::new(x.cast(), Width::Int);
    [] *mut i64 => Ints: |x| Ints::new(x.cast(), Width::Long);
    [] *const i64 => Ints: |x| Ints::new(x.cast(), Width::Long);
    [] *mut c_void => Addr: |x| Addr::new(x);
    [] *const c_void => Addr: |x| Addr::new(x);
    [] *mut c_void => Out<usize>: |x| Out::new(x.cast());
    [] *const c_char => Text: |x| Text::new(x);
    [] *mut c_char => OutText: |x| OutText::new(x);
    [] *mut Status => StatusOut: |x| StatusOut::new(x);
    [] *const Status => StatusOut: |x| StatusOut::new(x.cast_mut());
    [T] *mut T => usize: |x| x as usize;
    [T] *const T => usize: |x| x as usize;
}

macro_rules! functions {
    ($($t:ident)*) => { args! { $([] usize => Option<$t>: |x| $t::new(x);)* } };
}

functions! { UserOp UserOpCount DatarepConvert DatarepConvertCount DatarepExtent DeleteAttr ErrorHandler GrequestQuery GrequestFree GrequestCancel ToolEvent ToolEventFree ToolEventDropped }

macro_rules! tool_handles {
    ($($t:ident)*) => {
        args! {$(
            [] usize => $t: |x| $t(x);
            [] *mut usize => Out<$t>: |x| Out::new(x.cast());
        )*}
    };
}

tool_handles! { EnumH CvarH PvarH PvarSessionH RegistrationH InstanceH }

macro_rules! handles {
    ($($t:ident)*) => { args! { $([] $t => $t: |x| x;)* } };
}

handles! { CommH GroupH TypeH OpH RequestH InfoH ErrhandlerH MessageH SessionH WinH FileH }
