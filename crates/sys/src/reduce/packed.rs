//! Operations on packed data, whose target may be in pieces: accumulates of one-sided
//! communication.

use super::{Kernel, Op};
use crate::buf::{Addr, Buf};
use crate::region::Region;
use kw_types::layout::{Basic, Layout, basic::NAMED};
use std::sync::Arc;

impl Kernel {
    /// `target[i] = operand[i] op target[i]`, where both are packed elements of `basic`, and the
    /// target is in memory as its buffer says. As many elements as both have.
    pub fn combine_packed(self, basic: Basic, operand: &[u8], target: &Buf) {
        let n = target.len().min(operand.len() as u64);
        let n = n - n % basic.size();
        let operand = &operand[..n as usize];
        let in_a_row = basic.extent() == basic.size();
        if let Some(at) = target.contiguous().filter(|_| in_a_row) {
            // SAFETY: `n` bytes, by the promise of the buffer; the kernels need no alignment.
            let target = unsafe { Region::new(at as *mut u8, n) };
            return self.run(region(operand), target);
        }
        let mut now = vec![0; n as usize];
        target.read(0, &mut now);
        match in_a_row {
            true => self.run(region(operand), region_mut(&mut now)),
            false => self.combine_spread(basic, operand, &mut now),
        }
        target.write(0, &now);
    }

    /// `target[i] = operand[i] op target[i]` for elements without padding, as many as there are.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    #[inline(always)]
    pub fn combine(self, operand: &[u8], target: Region<'_>) {
        self.run(region(operand), target);
    }

    /// Like [`Kernel::combine_packed`] for elements that are padded in memory.
    fn combine_spread(self, basic: Basic, operand: &[u8], target: &mut [u8]) {
        let count = operand.len() as u64 / basic.size();
        let Some(layout) = NAMED.iter().find(|n| n.basic == basic) else {
            return;
        };
        let layout = Arc::new(Layout::named(layout));
        let len = (count * basic.extent()) as usize;
        let (mut a, mut b) = (vec![0u8; len], vec![0u8; len]);
        spread(&mut a, count, &layout).write(0, operand);
        spread(&mut b, count, &layout).write(0, target);
        self.run(region(&a), region_mut(&mut b));
        spread(&mut b, count, &layout).read(0, target);
    }
}

/// Whether [`add_one`] does this operation on this many bytes.
#[inline(always)]
pub fn adds_one(op: Op, basic: Basic, len: u64) -> bool {
    let integer = match basic {
        Basic::I64 | Basic::U64 => len == 8,
        Basic::I32 | Basic::U32 => len == 4,
        _ => false,
    };
    op == Op::Sum && integer
}

/// The commonest operation on a single element, without a call of a kernel: adds an integer of 4 or
/// 8 bytes to the target.
///
/// # Panics
/// If there are more bytes, or fewer (a fault of our own).
#[inline(always)]
pub fn add_one(basic: Basic, operand: &[u8], target: Region<'_>) {
    match basic {
        Basic::I64 | Basic::U64 => add(operand, target, |a, b| {
            u64::from_ne_bytes(a)
                .wrapping_add(u64::from_ne_bytes(b))
                .to_ne_bytes()
        }),
        _ => add(operand, target, |a, b| {
            u32::from_ne_bytes(a)
                .wrapping_add(u32::from_ne_bytes(b))
                .to_ne_bytes()
        }),
    }
}

#[inline(always)]
fn add<const N: usize>(
    operand: &[u8],
    target: Region<'_>,
    sum: impl FnOnce([u8; N], [u8; N]) -> [u8; N],
) {
    let mut both = [[0; N]; 2];
    both[0].copy_from_slice(operand);
    target.part(0, N as u64).read(&mut both[1]);
    target.write(&sum(both[0], both[1]));
}

/// Elements in memory that outlives the buffer.
fn spread(bytes: &mut [u8], count: u64, layout: &Arc<Layout>) -> Buf {
    // SAFETY: there are bytes for `count` elements, and the buffer is used up at once.
    let addr = unsafe { Addr::new(bytes.as_mut_ptr().cast()) };
    Buf::typed(addr, count, layout)
}

fn region(bytes: &[u8]) -> Region<'_> {
    // SAFETY: the bytes exist; a kernel only reads its first operand.
    unsafe { Region::new(bytes.as_ptr().cast_mut(), bytes.len() as u64) }
}

fn region_mut(bytes: &mut [u8]) -> Region<'_> {
    // SAFETY: the bytes exist, and no other code knows of them.
    unsafe { Region::new(bytes.as_mut_ptr(), bytes.len() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_types::layout::basic;

    #[test]
    fn the_sum_of_one_element_is_that_of_the_kernel() {
        for basic in [Basic::I32, Basic::U32, Basic::I64, Basic::U64] {
            let len = basic.size() as usize;
            let (operand, start) = (&[0xfe; 8][..len], &[0x81; 8][..len]);
            let [quick, slow] = [Buf::alloc(len), Buf::alloc(len)];
            let [a, b] = [&quick, &slow].map(|buf| buf.region().expect("a row"));
            a.write(start);
            b.write(start);
            let kernel = Kernel::find(Op::Sum, basic).expect("defined");
            kernel.combine(operand, b);
            add_one(basic, operand, a);
            let mut sums = [[0; 8]; 2];
            a.read(&mut sums[0]);
            b.read(&mut sums[1]);
            assert_eq!(sums[0], sums[1], "{basic:?}");
            assert!(adds_one(Op::Sum, basic, len as u64));
            assert!(!adds_one(Op::Prod, basic, len as u64) && !adds_one(Op::Sum, basic, 16));
        }
        assert!(!adds_one(Op::Sum, Basic::F64, 8));
    }

    #[test]
    fn a_target_in_pieces_and_pairs_with_padding() {
        let sum = Kernel::find(Op::Sum, Basic::I32).expect("defined");
        let int = Layout::named(basic::by_handle(0x209).expect("MPI_INT"));
        let every_second = Arc::new(int.resized(0, 8).expect("a layout"));
        let memory = Buf::alloc(24);
        let three = memory.typed_at(0, 3, &every_second);
        sum.combine_packed(Basic::I32, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0], &three);
        sum.combine_packed(Basic::I32, &[1, 0, 0, 0, 2, 0, 0, 0], &three);
        let mut now = [0; 12];
        three.read(0, &mut now);
        assert_eq!(now, [2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0]);

        let largest = Kernel::find(Op::Maxloc, Basic::DoubleInt).expect("defined");
        let pair = Arc::new(Layout::named(basic::by_handle(0x229).expect("a pair")));
        let memory = Buf::alloc(32);
        let two = memory.typed_at(0, 2, &pair);
        let mut operand = Vec::new();
        for (value, place) in [(1.5f64, 7i32), (-1.0, 8)] {
            operand.extend(value.to_ne_bytes());
            operand.extend(place.to_ne_bytes());
        }
        largest.combine_packed(Basic::DoubleInt, &operand, &two);
        let mut now = vec![0; 24];
        two.read(0, &mut now);
        assert_eq!(now[..12], operand[..12], "the larger one");
        assert_eq!(now[12..], [0; 12], "the older one");
    }
}
