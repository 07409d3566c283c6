//! Datatype constructors (MPI 5.0, 5.1.2 to 5.1.4). All displacements are in bytes here; what the
//! standard counts in extents is multiplied by the caller through [`Layout::scaled`].

use super::Layout;
use super::bounds::Bounds;
use super::node::Node;
use super::signature::Signature;

/// Why a datatype cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// A size, bound or displacement passes 63 bits.
    #[error("the datatype is too large: a size, bound or displacement passes 2^63 - 1 bytes")]
    TooLarge,
    /// Arguments that contradict each other, with the reason.
    #[error("{0}")]
    Argument(&'static str),
}

use Mismatch::TooLarge;

impl Layout {
    /// No data at all.
    pub fn empty() -> Layout {
        Layout {
            size: 0,
            lb: 0,
            extent: 0,
            bounds: Bounds::EMPTY,
            node: Node::EMPTY,
            signature: Signature::empty(),
            basic: None,
        }
    }

    /// No data, but a lower bound (MPI_LB of MPI-1, 3.12.3).
    pub fn lower_marker() -> Layout {
        let mut marker = Layout::empty();
        marker.bounds.lb = Some(0);
        marker
    }

    /// No data, but an upper bound (MPI_UB).
    pub fn upper_marker() -> Layout {
        let mut marker = Layout::empty();
        marker.bounds.ub = Some(0);
        marker
    }

    fn assemble(mut bounds: Bounds, node: Node, signature: Signature) -> Result<Layout, Mismatch> {
        let (lb, extent) = bounds.close().ok_or(TooLarge)?;
        // Markers may hide how far apart the data is.
        if let Some((low, high)) = bounds.data {
            high.checked_sub(low).ok_or(TooLarge)?;
        }
        debug_assert_eq!(node.size, signature.bytes);
        Ok(Layout {
            size: signature.bytes,
            lb,
            extent,
            bounds,
            node,
            signature,
            basic: None,
        })
    }

    /// The packed data of `n` elements: contiguous bytes, which still have these basic types.
    pub fn packed(&self, n: u64) -> Result<Layout, Mismatch> {
        let signature = self.signature.repeat(n).ok_or(TooLarge)?;
        let end = i64::try_from(signature.bytes).map_err(|_| TooLarge)?;
        let node = Node::block(0, signature.bytes);
        Layout::assemble(Bounds::of_data(end, end, 1), node, signature)
    }

    /// `n` extents in bytes.
    pub fn scaled(&self, n: i64) -> Result<i64, Mismatch> {
        n.checked_mul(self.extent).ok_or(TooLarge)
    }

    /// `n` copies, `stride` bytes apart.
    pub fn repeat(&self, n: u64, stride: i64) -> Result<Layout, Mismatch> {
        let bounds = self.bounds.repeated(n, stride).ok_or(TooLarge)?;
        let signature = self.signature.repeat(n).ok_or(TooLarge)?;
        Layout::assemble(bounds, self.node.repeat(n, stride), signature)
    }

    /// The layout shifted by `by` bytes.
    pub fn shifted(&self, by: i64) -> Result<Layout, Mismatch> {
        let bounds = self.bounds.shifted(by).ok_or(TooLarge)?;
        Layout::assemble(bounds, self.node.shifted(by), self.signature.clone())
    }

    /// MPI_Type_contiguous.
    pub fn contiguous_of(&self, n: u64) -> Result<Layout, Mismatch> {
        self.repeat(n, self.extent)
    }

    /// MPI_Type_create_hvector: `n` blocks of `len` elements, `stride` bytes apart.
    pub fn hvector(&self, n: u64, len: u64, stride: i64) -> Result<Layout, Mismatch> {
        self.contiguous_of(len)?.repeat(n, stride)
    }

    /// MPI_Type_create_hindexed: blocks of `(displacement in bytes, elements)`.
    pub fn hindexed(&self, blocks: &[(i64, u64)]) -> Result<Layout, Mismatch> {
        let mut bounds = Bounds::EMPTY;
        let mut total = 0u64;
        let used = blocks.iter().filter(|(_, len)| *len > 0);
        for (at, len) in used.clone() {
            total = total.checked_add(*len).ok_or(TooLarge)?;
            let block = self.bounds.repeated(*len, self.extent);
            bounds = bounds.joined(block.and_then(|b| b.shifted(*at)).ok_or(TooLarge)?);
        }
        let signature = self.signature.repeat(total).ok_or(TooLarge)?;
        let nodes = used.map(|(at, len)| self.node.repeat(*len, self.extent).shifted(*at));
        Layout::assemble(bounds, Node::sequence(nodes), signature)
    }

    /// MPI_Type_create_struct: members of `(displacement in bytes, elements, datatype)`.
    pub fn structure(members: &[(i64, u64, &Layout)]) -> Result<Layout, Mismatch> {
        let mut parts = Vec::with_capacity(members.len());
        for (at, len, of) in members.iter().filter(|m| m.1 > 0) {
            parts.push(of.contiguous_of(*len)?.shifted(*at)?);
        }
        Layout::joined(&parts)
    }

    /// The layouts one after the other.
    pub(crate) fn joined(parts: &[Layout]) -> Result<Layout, Mismatch> {
        let total = |of: fn(&Signature) -> u64| {
            let sum = parts
                .iter()
                .try_fold(0u64, |a, p| a.checked_add(of(&p.signature)));
            sum.filter(|&t| t <= i64::MAX as u64).ok_or(TooLarge)
        };
        total(|s| s.bytes)?;
        total(|s| s.external)?;
        let bounds = parts.iter().fold(Bounds::EMPTY, |b, p| b.joined(p.bounds));
        let node = Node::sequence(parts.iter().map(|p| p.node.clone()));
        let signature = Signature::list(parts.iter().map(|p| p.signature.clone()).collect());
        Layout::assemble(bounds, node, signature)
    }

    /// MPI_Type_create_resized: new markers in place of all old ones.
    pub fn resized(&self, lb: i64, extent: i64) -> Result<Layout, Mismatch> {
        let ub = lb.checked_add(extent).ok_or(TooLarge)?;
        let bounds = Bounds {
            lb: Some(lb),
            ub: Some(ub),
            ..self.bounds
        };
        Layout::assemble(bounds, self.node.clone(), self.signature.clone())
    }
}
