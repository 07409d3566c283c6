//! Blocks of different lengths, as the v-forms of collectives describe them.

/// Counts and places of blocks, in elements.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Elements of each block.
    pub counts: Vec<u64>,
    /// Displacement of each.
    pub at: Vec<i64>,
    /// Packed bytes of all.
    pub bytes: u64,
}
