//! What an accumulate and MPI_Compare_and_swap do to memory: this rank's, for others and itself, and
//! that of ranks of its host. The caller keeps others from combining with it meanwhile.

use kw_proto::rma::AccessKind;
use kw_sys::buf::Buf;
use kw_sys::reduce::{Kernel, Op};
use kw_types::layout::Basic;

/// The kind of access that an accumulate is for other accesses.
pub(super) fn combines(op: Op, basic: Basic) -> AccessKind {
    AccessKind::Accumulate {
        op: op.handle(),
        writes: op != Op::NoOp,
        basic,
    }
}

/// The operation of an accumulate on elements of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combine {
    pub op: Op,
    basic: Basic,
    kernel: Kernel,
}

impl Combine {
    /// The operation, if it is defined for the elements.
    pub fn find(op: Op, basic: Basic) -> Option<Combine> {
        let kernel = Kernel::find(op, basic)?;
        Some(Combine { op, basic, kernel })
    }

    /// Combines packed elements with those of the target; MPI_NO_OP leaves these as they are.
    pub fn run(self, data: &[u8], target: &Buf) {
        if self.op != Op::NoOp {
            self.kernel.combine_packed(self.basic, data, target);
        }
    }
}

/// Bytes of the longest element.
const LONGEST: usize = 32;

/// Replaces an element that equals `compare`; returns it as it was, followed by zeros.
pub(super) fn compare_and_swap(target: &Buf, (compare, swap): (&[u8], &[u8])) -> [u8; LONGEST] {
    let mut before = [0; LONGEST];
    let now = &mut before[..compare.len()];
    target.read(0, now);
    if now == compare {
        target.write(0, swap);
    }
    before
}
