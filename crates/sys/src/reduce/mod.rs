//! Reduction loops: every predefined operation on every representation it is defined for (MPI 5.0,
//! 6.9.2 and 6.9.4).
//!
//! `b[i] = a[i] op b[i]`, or `c[i] = a[i] op b[i]`, in memory laid out as in C, aligned or not. A
//! [`Kernel`] is found once and run many times; the loops are plain enough for the compiler to
//! vectorise. There are two for each operation because a loop whose result may be in the place of
//! an operand is not vectorised.

#[cfg(target_arch = "x86_64")]
mod extended;
mod number;
mod packed;
mod quad;
#[cfg(test)]
mod tests;

use crate::region::Region;
use kw_types::layout::Basic;
use kw_types::layout::basic::Class;
use number::{Combine, Complex, Pair};
pub use packed::{add_one, adds_one};

#[cfg(target_arch = "x86_64")]
type LongDouble = extended::Extended;
#[cfg(not(target_arch = "x86_64"))]
type LongDouble = quad::Quad;

macro_rules! ops {
    ($($id:ident = $handle:literal, $name:literal;)*) => {
        /// A predefined operation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Op { $($id),* }

        impl Op {
            /// Operation, handle of the ABI and name of each.
            pub const ALL: &'static [(Op, usize, &'static str)] = &[$((Op::$id, $handle, $name)),*];
        }
    };
}

ops! {
    Sum = 0x21, "MPI_SUM";
    Min = 0x22, "MPI_MIN";
    Max = 0x23, "MPI_MAX";
    Prod = 0x24, "MPI_PROD";
    Band = 0x28, "MPI_BAND";
    Bor = 0x29, "MPI_BOR";
    Bxor = 0x2a, "MPI_BXOR";
    Land = 0x30, "MPI_LAND";
    Lor = 0x31, "MPI_LOR";
    Lxor = 0x32, "MPI_LXOR";
    Minloc = 0x38, "MPI_MINLOC";
    Maxloc = 0x39, "MPI_MAXLOC";
    Replace = 0x3c, "MPI_REPLACE";
    NoOp = 0x3d, "MPI_NO_OP";
}

impl Op {
    /// The operation of a handle.
    #[inline]
    pub fn by_handle(handle: usize) -> Option<Op> {
        let place = BY_HANDLE.get(handle.wrapping_sub(FIRST))?;
        Op::ALL.get(*place as usize).map(|o| o.0)
    }

    /// Its handle, which fits into a byte.
    #[inline]
    pub fn handle(self) -> u8 {
        Op::ALL[self as usize].1 as u8
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Op::ALL[self as usize].2
    }
}

/// The least handle of an operation, and how many there may be.
const FIRST: usize = 0x20;
const RANGE: usize = 0x20;

const fn by_handle() -> [u8; RANGE] {
    let mut table = [u8::MAX; RANGE];
    let mut i = 0;
    while i < Op::ALL.len() {
        table[Op::ALL[i].1 - FIRST] = i as u8;
        i += 1;
    }
    table
}

/// Position of each operation in [`Op::ALL`].
static BY_HANDLE: [u8; RANGE] = by_handle();

// the number is one of bytes; elements are whole
type Run = unsafe fn(*const u8, *mut u8, usize);
type Into = unsafe fn(*const u8, *const u8, *mut u8, usize);

/// The loops for one operation on one representation.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    run: Run,
    into: Into,
}

impl Kernel {
    /// The kernel, if the operation is defined for the representation.
    #[inline]
    pub fn find(op: Op, basic: Basic) -> Option<Kernel> {
        match op {
            Op::Replace => Some(Kernel {
                run: replace,
                into: replace_into,
            }),
            Op::NoOp => Some(Kernel {
                run: nothing,
                into: keep,
            }),
            _ => defined(op, basic),
        }
    }

    /// `b[i] = a[i] op b[i]` for all elements. The result is defined if the two do not overlap, or
    /// are the same.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    #[inline(always)]
    pub fn run(self, a: Region<'_>, b: Region<'_>) {
        assert_eq!(a.len(), b.len(), "bytes of the operands");
        // SAFETY: both have this many bytes.
        unsafe { (self.run)(a.bytes(), b.bytes_mut(), a.len() as usize) }
    }

    /// `c[i] = a[i] op b[i]` for all elements. The result is defined if `c` overlaps neither of the
    /// others.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    #[inline(always)]
    pub fn run_into(self, a: Region<'_>, b: Region<'_>, c: Region<'_>) {
        let lengths = (b.len(), c.len());
        assert_eq!((a.len(), a.len()), lengths, "bytes of operands and result");
        // SAFETY: all have this many bytes.
        unsafe { (self.into)(a.bytes(), b.bytes(), c.bytes_mut(), a.len() as usize) }
    }
}

/// The loops, with the widest vectors that the CPU has.
fn wide<T: Copy, C: Combine<T>>() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        let (run, into) = (fold_avx2::<T, C>, fold_into_avx2::<T, C>);
        return Kernel { run, into };
    }
    let (run, into) = (fold::<T, C>, fold_into::<T, C>);
    Kernel { run, into }
}

/// # Safety
/// As [`fold`], on a CPU that has these vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn fold_avx2<T: Copy, C: Combine<T>>(a: *const u8, b: *mut u8, n: usize) {
    // SAFETY: promised by the caller.
    unsafe { fold::<T, C>(a, b, n) }
}

/// # Safety
/// As [`fold_into`], on a CPU that has these vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn fold_into_avx2<T: Copy, C: Combine<T>>(a: *const u8, b: *const u8, c: *mut u8, n: usize) {
    // SAFETY: promised by the caller.
    unsafe { fold_into::<T, C>(a, b, c, n) }
}

/// # Safety
/// `a` and `b` are valid for `n` bytes; `b` for writing too.
#[inline(always)]
unsafe fn fold<T: Copy, C: Combine<T>>(a: *const u8, b: *mut u8, n: usize) {
    let (a, b) = (a as *const T, b as *mut T);
    for i in 0..n / size_of::<T>() {
        // SAFETY: promised by the caller; unaligned on purpose.
        unsafe {
            let both = C::combine(a.add(i).read_unaligned(), b.add(i).read_unaligned());
            b.add(i).write_unaligned(both);
        }
    }
}

/// # Safety
/// `a`, `b` and `c` are valid for `n` bytes, `c` for writing.
#[inline(always)]
unsafe fn fold_into<T: Copy, C: Combine<T>>(a: *const u8, b: *const u8, c: *mut u8, n: usize) {
    let (a, b, c) = (a as *const T, b as *const T, c as *mut T);
    for i in 0..n / size_of::<T>() {
        // SAFETY: promised by the caller; unaligned on purpose.
        unsafe {
            let both = C::combine(a.add(i).read_unaligned(), b.add(i).read_unaligned());
            c.add(i).write_unaligned(both);
        }
    }
}

/// # Safety
/// As [`fold`].
unsafe fn replace(a: *const u8, b: *mut u8, n: usize) {
    // SAFETY: promised by the caller; the two may be the same.
    unsafe { std::ptr::copy(a, b, n) }
}

/// # Safety
/// As [`fold_into`].
unsafe fn replace_into(a: *const u8, _: *const u8, c: *mut u8, n: usize) {
    // SAFETY: promised by the caller.
    unsafe { replace(a, c, n) }
}

unsafe fn nothing(_: *const u8, _: *mut u8, _: usize) {}

/// # Safety
/// As [`fold_into`].
unsafe fn keep(_: *const u8, b: *const u8, c: *mut u8, n: usize) {
    // SAFETY: promised by the caller.
    unsafe { replace(b, c, n) }
}

fn defined(op: Op, basic: Basic) -> Option<Kernel> {
    match basic.class() {
        Class::Signed | Class::Unsigned => integer(op, basic),
        Class::Byte => bits::<u8>(op),
        Class::Float => float(op, basic),
        Class::Complex => complex(op, basic),
        Class::Logical => logical(op, basic),
        Class::Pair => pair(op, basic),
        Class::Char => character(op, basic),
    }
}

/// Operations on characters. MPI 5.0, 6.9.2 has none, but MPICH and Open MPI take MPI_CHAR for the
/// integer that C's `char` is, and programs rely on it.
fn character(op: Op, basic: Basic) -> Option<Kernel> {
    match basic {
        Basic::Char => whole::<std::ffi::c_char>(op),
        _ => None,
    }
}

fn integer(op: Op, basic: Basic) -> Option<Kernel> {
    match basic {
        Basic::I8 => whole::<i8>(op),
        Basic::I16 => whole::<i16>(op),
        Basic::I32 => whole::<i32>(op),
        Basic::I64 => whole::<i64>(op),
        Basic::I128 => whole::<i128>(op),
        Basic::U8 => whole::<u8>(op),
        Basic::U16 => whole::<u16>(op),
        Basic::U32 => whole::<u32>(op),
        Basic::U64 => whole::<u64>(op),
        _ => None,
    }
}

fn float(op: Op, basic: Basic) -> Option<Kernel> {
    match basic {
        Basic::F16 => real::<half::f16>(op),
        Basic::BF16 => real::<half::bf16>(op),
        Basic::F32 => real::<f32>(op),
        Basic::F64 => real::<f64>(op),
        Basic::LongDouble => real::<LongDouble>(op),
        Basic::F128 => real::<quad::Quad>(op),
        _ => None,
    }
}

fn complex(op: Op, basic: Basic) -> Option<Kernel> {
    match basic {
        Basic::ComplexF16 => arith::<Complex<half::f16>>(op),
        Basic::ComplexF32 => arith::<Complex<f32>>(op),
        Basic::ComplexF64 => arith::<Complex<f64>>(op),
        Basic::ComplexLongDouble => arith::<Complex<LongDouble>>(op),
        Basic::ComplexF128 => arith::<Complex<quad::Quad>>(op),
        _ => None,
    }
}

fn logical(op: Op, basic: Basic) -> Option<Kernel> {
    match basic.size() {
        1 => truth::<u8>(op),
        2 => truth::<u16>(op),
        4 => truth::<u32>(op),
        8 => truth::<u64>(op),
        _ => truth::<u128>(op),
    }
}

fn pair(op: Op, basic: Basic) -> Option<Kernel> {
    match basic {
        Basic::FloatInt => location::<f32, i32>(op),
        Basic::DoubleInt => location::<f64, i32>(op),
        Basic::LongInt => location::<i64, i32>(op),
        Basic::TwoInt => location::<i32, i32>(op),
        Basic::ShortInt => location::<i16, i32>(op),
        Basic::LongDoubleInt => location::<LongDouble, i32>(op),
        Basic::TwoF32 => location::<f32, f32>(op),
        Basic::TwoF64 => location::<f64, f64>(op),
        _ => None,
    }
}

fn whole<T: number::Arith + number::Order + number::Bits + number::Truth>(
    op: Op,
) -> Option<Kernel> {
    real::<T>(op)
        .or_else(|| bits::<T>(op))
        .or_else(|| truth::<T>(op))
}

fn real<T: number::Arith + number::Order>(op: Op) -> Option<Kernel> {
    match op {
        Op::Min => Some(wide::<T, number::Min>()),
        Op::Max => Some(wide::<T, number::Max>()),
        _ => arith::<T>(op),
    }
}

fn arith<T: number::Arith>(op: Op) -> Option<Kernel> {
    match op {
        Op::Sum => Some(wide::<T, number::Sum>()),
        Op::Prod => Some(wide::<T, number::Prod>()),
        _ => None,
    }
}

fn bits<T: number::Bits>(op: Op) -> Option<Kernel> {
    match op {
        Op::Band => Some(wide::<T, number::And>()),
        Op::Bor => Some(wide::<T, number::Or>()),
        Op::Bxor => Some(wide::<T, number::Xor>()),
        _ => None,
    }
}

fn truth<T: number::Truth>(op: Op) -> Option<Kernel> {
    match op {
        Op::Land => Some(wide::<T, number::Both>()),
        Op::Lor => Some(wide::<T, number::Either>()),
        Op::Lxor => Some(wide::<T, number::One>()),
        _ => None,
    }
}

fn location<V: number::Order, I: number::Order>(op: Op) -> Option<Kernel> {
    match op {
        Op::Minloc => Some(wide::<Pair<V, I>, number::Minloc>()),
        Op::Maxloc => Some(wide::<Pair<V, I>, number::Maxloc>()),
        _ => None,
    }
}
