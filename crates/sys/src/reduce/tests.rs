//! Every kernel against plain arithmetic, at every alignment; and the table of defined operations.

use super::*;
use crate::buf::Buf;
use proptest::prelude::*;

/// Result of an operation on `a` and `b`: in place of `b` if that is at an even address, else
/// elsewhere.
fn run<T: Copy>(op: Op, basic: Basic, a: &[T], b: &[T], shift: usize) -> Vec<T> {
    let bytes = std::mem::size_of_val(a);
    let place = |shift: usize, data: &[T]| {
        let place = Buf::alloc(bytes + shift).slice(shift as u64, bytes as u64);
        // SAFETY: plain numbers are bytes.
        place.write(0, unsafe {
            std::slice::from_raw_parts(data.as_ptr() as *const u8, bytes)
        });
        place
    };
    let get = |place: &Buf| {
        let mut out = b.to_vec();
        // SAFETY: plain numbers are bytes.
        place.read(0, unsafe {
            std::slice::from_raw_parts_mut(out.as_mut_ptr() as *mut u8, bytes)
        });
        out
    };
    let (x, y, z) = (place(shift, a), place(shift, b), place(1, a));
    let kernel = Kernel::find(op, basic).unwrap();
    let [left, right, into] = [&x, &y, &z].map(|place| place.region().unwrap());
    kernel.run_into(left, right, into);
    kernel.run(left, right);
    get(if shift % 2 == 0 { &y } else { &z })
}

macro_rules! integer_oracle {
    ($($name:ident $t:ty = $basic:ident;)*) => {$(
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(24))]
            #[test]
            fn $name(v in prop::collection::vec(any::<($t, $t)>(), 0..70), shift in 0usize..9, few in any::<bool>()) {
                let few = |x: $t| if few { x & 1 } else { x };
                let (a, b): (Vec<$t>, Vec<$t>) = v.into_iter().map(|(x, y)| (few(x), few(y))).unzip();
                let want = |f: &dyn Fn($t, $t) -> $t| a.iter().zip(&b).map(|(&x, &y)| f(x, y)).collect::<Vec<_>>();
                let got = |op| run(op, Basic::$basic, &a, &b, shift);
                prop_assert_eq!(got(Op::Sum), want(&|x, y| x.wrapping_add(y)));
                prop_assert_eq!(got(Op::Prod), want(&|x, y| x.wrapping_mul(y)));
                prop_assert_eq!(got(Op::Min), want(&|x, y| x.min(y)));
                prop_assert_eq!(got(Op::Max), want(&|x, y| x.max(y)));
                prop_assert_eq!(got(Op::Band), want(&|x, y| x & y));
                prop_assert_eq!(got(Op::Bor), want(&|x, y| x | y));
                prop_assert_eq!(got(Op::Bxor), want(&|x, y| x ^ y));
                prop_assert_eq!(got(Op::Land), want(&|x, y| (x != 0 && y != 0) as $t));
                prop_assert_eq!(got(Op::Lor), want(&|x, y| (x != 0 || y != 0) as $t));
                prop_assert_eq!(got(Op::Lxor), want(&|x, y| ((x != 0) != (y != 0)) as $t));
                prop_assert_eq!(got(Op::Replace), a.clone());
                prop_assert_eq!(got(Op::NoOp), b.clone());
            }
        }
    )*};
}

integer_oracle! {
    i8s i8 = I8;
    i16s i16 = I16;
    i32s i32 = I32;
    i64s i64 = I64;
    i128s i128 = I128;
    u8s u8 = U8;
    u16s u16 = U16;
    u32s u32 = U32;
    u64s u64 = U64;
}

proptest! {
    #[test]
    fn floats(v in prop::collection::vec((-1e3f64..1e3, -1e3f64..1e3), 0..70), shift in 0usize..9) {
        let (a, b): (Vec<f64>, Vec<f64>) = v.iter().copied().unzip();
        let want = |f: &dyn Fn(f64, f64) -> f64| v.iter().map(|&(x, y)| f(x, y)).collect::<Vec<_>>();
        let got = |op| run(op, Basic::F64, &a, &b, shift);
        prop_assert_eq!(got(Op::Sum), want(&|x, y| x + y));
        prop_assert_eq!(got(Op::Prod), want(&|x, y| x * y));
        prop_assert_eq!(got(Op::Min), want(&|x, y| x.min(y)));
        prop_assert_eq!(got(Op::Max), want(&|x, y| x.max(y)));
        let narrow = |s: &[f64]| s.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let (a, b) = (narrow(&a), narrow(&b));
        let sums: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
        prop_assert_eq!(run(Op::Sum, Basic::F32, &a, &b, shift), sums);
        let tiny = |s: &[f32]| s.iter().map(|&x| half::f16::from_f32(x)).collect::<Vec<_>>();
        let (a, b) = (tiny(&a), tiny(&b));
        let sums: Vec<half::f16> = a.iter().zip(&b).map(|(x, y)| half::f16::from_f32(x.to_f32() + y.to_f32())).collect();
        prop_assert_eq!(run(Op::Sum, Basic::F16, &a, &b, shift), sums);
        let short = |s: &[half::f16]| s.iter().map(|x| half::bf16::from_f32(x.to_f32())).collect::<Vec<_>>();
        let (a, b) = (short(&a), short(&b));
        let sums: Vec<half::bf16> = a.iter().zip(&b).map(|(x, y)| half::bf16::from_f32(x.to_f32() + y.to_f32())).collect();
        prop_assert_eq!(run(Op::Sum, Basic::BF16, &a, &b, shift), sums);
        let least: Vec<half::bf16> = a.iter().zip(&b).map(|(&x, &y)| x.min(y)).collect();
        prop_assert_eq!(run(Op::Min, Basic::BF16, &a, &b, shift), least);
    }

    #[test]
    fn complex_numbers(v in prop::collection::vec(any::<[i16; 4]>(), 0..30), shift in 0usize..9) {
        let a: Vec<[f64; 2]> = v.iter().map(|x| [x[0] as f64, x[1] as f64]).collect();
        let b: Vec<[f64; 2]> = v.iter().map(|x| [x[2] as f64, x[3] as f64]).collect();
        let sum: Vec<[f64; 2]> = a.iter().zip(&b).map(|(x, y)| [x[0] + y[0], x[1] + y[1]]).collect();
        let product: Vec<[f64; 2]> =
            a.iter().zip(&b).map(|(x, y)| [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]).collect();
        prop_assert_eq!(run(Op::Sum, Basic::ComplexF64, &a, &b, shift), sum);
        prop_assert_eq!(run(Op::Prod, Basic::ComplexF64, &a, &b, shift), product);
    }

    #[test]
    fn locations(v in prop::collection::vec((0i32..4, 0i32..9, 0i32..4, 0i32..9), 0..40), shift in 0usize..9) {
        let a: Vec<(f64, i32)> = v.iter().map(|x| (x.0 as f64, x.1)).collect();
        let b: Vec<(f64, i32)> = v.iter().map(|x| (x.2 as f64, x.3)).collect();
        let pairs = |s: &[(f64, i32)]| s.iter().map(|x| Pair(x.0, x.1)).collect::<Vec<_>>();
        let least = |sign: f64| {
            let key = move |p: &(f64, i32)| (p.0 * sign, p.1);
            a.iter().zip(&b).map(|(x, y)| if key(x) < key(y) { *x } else { *y }).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(Op::Minloc, Basic::DoubleInt, &pairs(&a), &pairs(&b), shift), pairs(&least(1.0)));
        prop_assert_eq!(run(Op::Maxloc, Basic::DoubleInt, &pairs(&a), &pairs(&b), shift), pairs(&least(-1.0)));
        let short = |s: &[(f64, i32)]| s.iter().map(|x| Pair(x.0 as i16, x.1)).collect::<Vec<_>>();
        prop_assert_eq!(run(Op::Minloc, Basic::ShortInt, &short(&a), &short(&b), shift), short(&least(1.0)));
    }
}

#[test]
fn operations_are_defined_by_class_as_the_standard_says_and_for_char() {
    use Op::*;
    for &basic in Basic::ALL {
        let allowed: &[Op] = match basic.class() {
            Class::Signed | Class::Unsigned => {
                &[Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor]
            }
            Class::Float => &[Sum, Min, Max, Prod],
            Class::Complex => &[Sum, Prod],
            Class::Logical => &[Land, Lor, Lxor],
            Class::Byte => &[Band, Bor, Bxor],
            Class::Char if basic == Basic::Char => {
                &[Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor]
            }
            Class::Char => &[],
            Class::Pair => &[Minloc, Maxloc],
        };
        for &(op, ..) in Op::ALL {
            let expect = allowed.contains(&op) || matches!(op, Replace | NoOp);
            assert_eq!(
                Kernel::find(op, basic).is_some(),
                expect,
                "{op:?} on {basic:?}"
            );
        }
    }
}

#[test]
fn elements_are_as_far_apart_as_the_datatypes_say() {
    assert_eq!(
        size_of::<Pair<f64, i32>>() as u64,
        Basic::DoubleInt.extent()
    );
    assert_eq!(size_of::<Pair<i16, i32>>() as u64, Basic::ShortInt.extent());
    assert_eq!(
        size_of::<Pair<LongDouble, i32>>() as u64,
        Basic::LongDoubleInt.extent()
    );
    assert_eq!(
        size_of::<Complex<LongDouble>>() as u64,
        Basic::ComplexLongDouble.extent()
    );
    assert_eq!(size_of::<quad::Quad>() as u64, Basic::F128.extent());
}
