//! Operations on numbers for the loops: arithmetic, order, bits and truth, and the MPI operations
//! built from them.

/// Addition, subtraction and multiplication; integers wrap.
pub trait Arith: Copy {
    /// Sum.
    fn add(self, o: Self) -> Self;
    /// Difference.
    fn sub(self, o: Self) -> Self;
    /// Product.
    fn mul(self, o: Self) -> Self;
}

/// Order; nothing is less than a NaN.
pub trait Order: Copy {
    /// Whether this is less.
    fn less(self, o: Self) -> bool;
}

/// Bit patterns.
pub trait Bits: Copy {
    /// Bits in both.
    fn and(self, o: Self) -> Self;
    /// Bits in either.
    fn or(self, o: Self) -> Self;
    /// Bits in one.
    fn xor(self, o: Self) -> Self;
}

/// Truth values: zero is false, true is one.
pub trait Truth: Copy {
    /// Whether it is true.
    fn is(self) -> bool;
    /// The truth value.
    fn of(b: bool) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Arith for $t {
            fn add(self, o: Self) -> Self { self.wrapping_add(o) }
            fn sub(self, o: Self) -> Self { self.wrapping_sub(o) }
            fn mul(self, o: Self) -> Self { self.wrapping_mul(o) }
        }
        impl Order for $t {
            fn less(self, o: Self) -> bool { self < o }
        }
        impl Bits for $t {
            fn and(self, o: Self) -> Self { self & o }
            fn or(self, o: Self) -> Self { self | o }
            fn xor(self, o: Self) -> Self { self ^ o }
        }
        impl Truth for $t {
            fn is(self) -> bool { self != 0 }
            fn of(b: bool) -> Self { b as $t }
        }
    )*};
}
integers!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128);

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Arith for $t {
            fn add(self, o: Self) -> Self { self + o }
            fn sub(self, o: Self) -> Self { self - o }
            fn mul(self, o: Self) -> Self { self * o }
        }
        impl Order for $t {
            fn less(self, o: Self) -> bool { self < o }
        }
    )*};
}
floats!(f32 f64 half::f16 half::bf16);

/// A complex number, real part first.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Complex<T>(pub T, pub T);

impl<T: Arith> Arith for Complex<T> {
    fn add(self, o: Self) -> Self {
        Complex(self.0.add(o.0), self.1.add(o.1))
    }
    fn sub(self, o: Self) -> Self {
        Complex(self.0.sub(o.0), self.1.sub(o.1))
    }
    fn mul(self, o: Self) -> Self {
        let re = self.0.mul(o.0).sub(self.1.mul(o.1));
        let im = self.0.mul(o.1).add(self.1.mul(o.0));
        Complex(re, im)
    }
}

/// A value and its index, as a C struct.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Pair<V, I>(pub V, pub I);

/// An operation on two elements.
pub trait Combine<T> {
    /// `a op b`.
    fn combine(a: T, b: T) -> T;
}

macro_rules! operations {
    ($($id:ident: $bound:ident, $a:ident $b:ident => $e:expr;)*) => {$(
        #[doc = concat!("The operation ", stringify!($id), ".")]
        #[derive(Debug)]
        pub enum $id {}
        impl<T: $bound> Combine<T> for $id {
            #[inline(always)]
            fn combine($a: T, $b: T) -> T { $e }
        }
    )*};
}

operations! {
    Sum: Arith, a b => a.add(b);
    Prod: Arith, a b => a.mul(b);
    Min: Order, a b => if a.less(b) { a } else { b };
    Max: Order, a b => if b.less(a) { a } else { b };
    And: Bits, a b => a.and(b);
    Or: Bits, a b => a.or(b);
    Xor: Bits, a b => a.xor(b);
    Both: Truth, a b => T::of(a.is() & b.is());
    Either: Truth, a b => T::of(a.is() | b.is());
    One: Truth, a b => T::of(a.is() ^ b.is());
}

/// MPI_MINLOC: the lesser value, and of equal ones the lesser index.
#[derive(Debug)]
pub enum Minloc {}
/// MPI_MAXLOC: the greater value, and of equal ones the lesser index.
#[derive(Debug)]
pub enum Maxloc {}

impl<V: Order, I: Order> Combine<Pair<V, I>> for Minloc {
    fn combine(a: Pair<V, I>, b: Pair<V, I>) -> Pair<V, I> {
        let first = a.0.less(b.0) || (!b.0.less(a.0) && a.1.less(b.1));
        if first { a } else { b }
    }
}

impl<V: Order, I: Order> Combine<Pair<V, I>> for Maxloc {
    fn combine(a: Pair<V, I>, b: Pair<V, I>) -> Pair<V, I> {
        let first = b.0.less(a.0) || (!a.0.less(b.0) && a.1.less(b.1));
        if first { a } else { b }
    }
}
