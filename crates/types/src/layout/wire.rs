//! A layout as bytes, for another process (target datatypes of one-sided communication).
//!
//! ```text
//! layout  extent i64, node
//! node    0, at i64, bytes u64                              a block
//!         1, at i64, copies u64, stride i64, node           copies of a node
//!         2, at i64, bytes u64, n u32, n x at i64           blocks of one length
//!         3, at i64, n u32, n x (at i64, bytes u64)         blocks
//!         4, at i64, n u32, n x node                        anything
//! ```
//!
//! All integers are little-endian. The decoder trusts no value that can be computed: sizes and
//! bounds of the data follow from the blocks, with checked arithmetic, so a decoded layout touches
//! no byte outside the bounds it reports. Names of basic elements are not transmitted: a decoded
//! layout consists of bytes.

use super::Layout;
use super::basic::{Basic, NAMED};
use super::bounds::Bounds;
use super::node::{Block, Kind, Node};
use super::signature::Signature;
use kw_base::reader::Reader;
use std::sync::Arc;

/// Deepest nesting that is sent; deeper layouts are sent as the list of their blocks.
const MOST_DEPTH: u32 = 128;

impl Layout {
    /// Appends the layout to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.extent.to_le_bytes());
        match depth(&self.node) <= MOST_DEPTH {
            true => encode(&self.node, out),
            false => encode(&flat(self), out),
        }
    }

    /// Decodes the output of [`Layout::encode`]; `None` if the bytes are not a layout.
    pub fn decode(bytes: &[u8]) -> Option<Layout> {
        let mut reader = Reader::new(bytes);
        let extent = reader.i64()?;
        let mut nodes = Nodes(reader);
        let Decoded { node, low, high } = nodes.node(0)?;
        let byte = NAMED.iter().find(|n| n.basic == Basic::Byte)?;
        let signature = Signature::named(byte).repeat(node.size)?;
        let data = (node.size != 0).then_some((low, high));
        high.checked_sub(low)?;
        let layout = Layout {
            size: node.size,
            lb: low,
            extent,
            bounds: Bounds {
                data,
                span: data,
                ..Bounds::EMPTY
            },
            node,
            signature,
            basic: None,
        };
        nodes.0.rest().is_empty().then_some(layout)
    }

    /// First byte and end of the data of `count` elements whose displacement 0 is at `at`; `None`
    /// when there is no data.
    pub fn reach(&self, at: i64, count: u64) -> Option<(i128, i128)> {
        let (low, high) = self.bounds.data.filter(|_| count != 0 && self.size != 0)?;
        let far = self.extent as i128 * (count as i128 - 1);
        let first = at as i128 + low as i128 + far.min(0);
        let end = at as i128 + high as i128 + far.max(0);
        Some((first, end))
    }
}

fn depth(node: &Node) -> u32 {
    match &node.kind {
        Kind::Loop { body, .. } => 1 + depth(body),
        Kind::List { items, .. } => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// An equivalent layout without nesting.
fn flat(layout: &Layout) -> Node {
    let (mut blocks, mut start) = (Vec::new(), 0);
    layout.for_each_run(1, 0, layout.size, &mut |at, len| {
        blocks.push(Block { at, len, start });
        start += len;
    });
    Node {
        at: 0,
        size: start,
        kind: Kind::Blocks(blocks.into()),
    }
}

fn encode(node: &Node, out: &mut Vec<u8>) {
    let mut head = |kind: u8| {
        out.push(kind);
        out.extend(node.at.to_le_bytes());
    };
    match &node.kind {
        Kind::Block => {
            head(0);
            out.extend(node.size.to_le_bytes());
        }
        Kind::Loop { stride, body } => {
            head(1);
            out.extend((node.size / body.size).to_le_bytes());
            out.extend(stride.to_le_bytes());
            encode(body, out);
        }
        Kind::Even { len, ats } => {
            head(2);
            out.extend(len.to_le_bytes());
            out.extend((ats.len() as u32).to_le_bytes());
            ats.iter().for_each(|at| out.extend(at.to_le_bytes()));
        }
        Kind::Blocks(blocks) => {
            head(3);
            out.extend((blocks.len() as u32).to_le_bytes());
            for block in blocks.iter() {
                out.extend(block.at.to_le_bytes());
                out.extend(block.len.to_le_bytes());
            }
        }
        Kind::List { items, .. } => {
            head(4);
            out.extend((items.len() as u32).to_le_bytes());
            items.iter().for_each(|item| encode(item, out));
        }
    }
}

/// A node with the bounds of its data.
struct Decoded {
    node: Node,
    low: i64,
    high: i64,
}

/// Bounds of a range that is shifted by `at`.
fn shifted(low: i64, high: i64, at: i64) -> Option<(i64, i64)> {
    Some((low.checked_add(at)?, high.checked_add(at)?))
}

/// Sizes are 63-bit numbers.
fn sized(size: u64) -> Option<u64> {
    (size <= i64::MAX as u64).then_some(size)
}

/// Nodes that have not been read yet.
struct Nodes<'a>(Reader<'a>);

impl Nodes<'_> {
    /// A number of items of at least `each` bytes that are all there.
    fn items(&mut self, each: usize) -> Option<usize> {
        let n = self.0.u32()? as usize;
        (n != 0 && n <= self.0.rest().len() / each).then_some(n)
    }

    fn node(&mut self, depth: u32) -> Option<Decoded> {
        let [kind] = self.0.take()?;
        let at = self.0.i64()?;
        let (node, low, high) = match kind {
            0 => self.block()?,
            1 if depth < MOST_DEPTH => self.copies(depth)?,
            2 => self.even()?,
            3 => self.blocks()?,
            4 if depth < MOST_DEPTH => self.list(depth)?,
            _ => return None,
        };
        let (low, high) = shifted(low, high, at)?;
        let node = Node { at, ..node };
        Some(Decoded { node, low, high })
    }

    fn block(&mut self) -> Option<(Node, i64, i64)> {
        let len = sized(self.0.u64()?)?;
        Some((Node::block(0, len), 0, len as i64))
    }

    fn copies(&mut self, depth: u32) -> Option<(Node, i64, i64)> {
        let (copies, stride) = (self.0.u64()?, self.0.i64()?);
        let body = self.node(depth + 1)?;
        let size = sized(body.node.size.checked_mul(copies)?)?;
        if size == 0 {
            return None;
        }
        let last = stride.checked_mul(i64::try_from(copies - 1).ok()?)?;
        let (low, high) = shifted(body.low, body.high, last)?;
        let body_node = Arc::new(body.node);
        let kind = Kind::Loop {
            stride,
            body: body_node,
        };
        let node = Node { at: 0, size, kind };
        Some((node, low.min(body.low), high.max(body.high)))
    }

    fn even(&mut self) -> Option<(Node, i64, i64)> {
        let len = sized(self.0.u64()?)?;
        let n = self.items(8)?;
        let ats: Option<Vec<i64>> = (0..n).map(|_| self.0.i64()).collect();
        let ats = ats?;
        let size = sized(len.checked_mul(n as u64)?)?;
        let (low, last) = (*ats.iter().min()?, *ats.iter().max()?);
        let high = last.checked_add(len as i64)?;
        if size == 0 {
            return None;
        }
        let ats = ats.into();
        let kind = Kind::Even { len, ats };
        Some((Node { at: 0, size, kind }, low, high))
    }

    fn blocks(&mut self) -> Option<(Node, i64, i64)> {
        let n = self.items(16)?;
        let (mut blocks, mut start) = (Vec::with_capacity(n), 0u64);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for _ in 0..n {
            let (at, len) = (self.0.i64()?, sized(self.0.u64()?)?);
            if len == 0 {
                return None;
            }
            blocks.push(Block { at, len, start });
            start = sized(start.checked_add(len)?)?;
            (low, high) = (low.min(at), high.max(at.checked_add(len as i64)?));
        }
        let kind = Kind::Blocks(blocks.into());
        let size = start;
        Some((Node { at: 0, size, kind }, low, high))
    }

    fn list(&mut self, depth: u32) -> Option<(Node, i64, i64)> {
        let n = self.items(9)?;
        let (mut items, mut starts, mut size) = (Vec::new(), Vec::new(), 0u64);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for _ in 0..n {
            let item = self.node(depth + 1)?;
            if item.node.size == 0 {
                return None;
            }
            starts.push(size);
            size = sized(size.checked_add(item.node.size)?)?;
            (low, high) = (low.min(item.low), high.max(item.high));
            items.push(item.node);
        }
        let kind = Kind::List {
            starts: starts.into(),
            items: items.into(),
            depth: depth + 1,
        };
        Some((Node { at: 0, size, kind }, low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double() -> Layout {
        let named = NAMED.iter().find(|n| n.name == "MPI_DOUBLE");
        Layout::named(named.expect("a predefined datatype"))
    }

    fn runs(layout: &Layout, count: u64) -> Vec<(i64, u64)> {
        let mut runs = Vec::new();
        let size = layout.size() * count;
        layout.for_each_run(count, 0, size, &mut |at, len| runs.push((at, len)));
        runs
    }

    fn same(layout: &Layout) {
        let mut bytes = Vec::new();
        layout.encode(&mut bytes);
        let read = Layout::decode(&bytes).expect("what was written can be read");
        assert_eq!(read.size(), layout.size());
        assert_eq!(runs(&read, 3), runs(layout, 3));
        assert_eq!(read.reach(5, 3), layout.reach(5, 3));
        for end in 0..bytes.len() {
            assert!(Layout::decode(&bytes[..end]).is_none(), "{end} bytes");
        }
    }

    /// Any datatype of a few constructors.
    fn any_layout() -> impl Strategy<Value = Layout> {
        let leaf = Just(double());
        leaf.prop_recursive(5, 40, 4, |inner| {
            let vector = (inner.clone(), 1u64..4, 1u64..4, -60i64..60);
            let vector = vector.prop_map(|(of, n, len, stride)| of.hvector(n, len, stride));
            let blocks = prop::collection::vec((-200i64..200, 1u64..4), 1..6);
            let indexed = (inner.clone(), blocks).prop_map(|(of, b)| of.hindexed(&b));
            let members = prop::collection::vec((-99i64..99, 1u64..3, inner), 1..4);
            let structure = members.prop_map(|m| {
                let m: Vec<_> = m.iter().map(|(at, n, of)| (*at, *n, of)).collect();
                Layout::structure(&m)
            });
            prop_oneof![vector, indexed, structure].prop_map(|made| made.expect("small datatypes"))
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(layout in any_layout()) {
            same(&layout);
        }

        #[test]
        fn damaged_bytes_stay_inside_their_bounds(
            layout in any_layout(),
            at in any::<prop::sample::Index>(),
            to in any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            layout.encode(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] = to;
            let Some(read) = Layout::decode(&bytes) else { return Ok(()) };
            if read.size() > 1 << 16 {
                return Ok(());
            }
            let (first, end) = read.reach(0, 1).unwrap_or((0, 0));
            for (at, len) in runs(&read, 1) {
                prop_assert!(at as i128 >= first && at as i128 + len as i128 <= end);
            }
        }
    }

    #[test]
    fn a_deep_chain_of_structures_is_sent_as_its_blocks() {
        let mut layout = double();
        for i in 0..400 {
            let next = Layout::structure(&[(0, 1, &layout), (100_000 + i * i, 1, &double())]);
            layout = next.expect("a chain").hvector(2, 1, 77 + i).expect("twice");
            if layout.size() > 1 << 12 {
                layout = double();
            }
        }
        same(&layout);
        let chain = (0..300).try_fold(double(), |l, i| {
            Layout::structure(&[(3 * i, 1, &l), (9, 1, &l)])?.resized(0, 8 + i)?;
            l.resized(1, 8 + i)?.hvector(1, 1, 3)
        });
        same(&chain.expect("a chain"));
    }

    #[test]
    fn nothing_is_sent_too() {
        let mut bytes = Vec::new();
        Layout::empty().encode(&mut bytes);
        let read = Layout::decode(&bytes).expect("an empty layout");
        assert_eq!((read.size(), read.reach(7, 3)), (0, None));
    }
}
