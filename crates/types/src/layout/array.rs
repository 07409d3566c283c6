//! Subarrays and distributed arrays (MPI 5.0, 5.1.3 and 5.1.4).

use super::Layout;
use super::construct::Mismatch;

/// Order of an array's dimensions in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Last dimension fastest.
    C,
    /// First dimension fastest.
    Fortran,
}

/// How one dimension is shared out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distribution {
    /// Not at all.
    None,
    /// One block of this many indices per process; `None`: as even as possible.
    Block(Option<i64>),
    /// Blocks of this many indices, round-robin; `None`: 1.
    Cyclic(Option<i64>),
}

impl Order {
    fn dimensions(self, n: usize) -> Box<dyn Iterator<Item = usize>> {
        match self {
            Order::C => Box::new((0..n).rev()),
            Order::Fortran => Box::new(0..n),
        }
    }
}

fn times(a: i64, b: i64) -> Result<i64, Mismatch> {
    a.checked_mul(b).ok_or(Mismatch::TooLarge)
}

impl Layout {
    /// MPI_Type_create_subarray; dimensions are `(size, subsize, start)`. Without dimensions it has
    /// no data.
    pub fn subarray(&self, dims: &[(i64, i64, i64)], order: Order) -> Result<Layout, Mismatch> {
        let mut part = self.clone();
        let mut step = self.extent();
        if dims.is_empty() {
            part = Layout::empty();
        }
        for d in order.dimensions(dims.len()) {
            let (size, subsize, start) = dims[d];
            if size < 1 || subsize < 1 || subsize > size {
                return Err(Mismatch::Argument(
                    "a subarray's sizes must be at least 1, and subsizes lie between 1 and the size",
                ));
            }
            if start < 0 || start > size - subsize {
                return Err(Mismatch::Argument(
                    "a subarray's start must lie between 0 and size - subsize",
                ));
            }
            part = part
                .repeat(subsize as u64, step)?
                .shifted(times(start, step)?)?;
            step = times(step, size)?;
        }
        part.resized(0, step)
    }

    /// MPI_Type_create_darray: the share of process `rank` of `size`; dimensions are
    /// `(global size, distribution, processes)`, the process grid is row-major.
    pub fn darray(
        &self,
        size: i64,
        rank: i64,
        dims: &[(i64, Distribution, i64)],
        order: Order,
    ) -> Result<Layout, Mismatch> {
        let coordinates = coordinates(size, rank, dims)?;
        let mut part = self.clone();
        let mut step = self.extent();
        for d in order.dimensions(dims.len()) {
            let (global, how, processes) = dims[d];
            let block = block_size(global, how, processes)?;
            part = part.dealt(global, block, processes, coordinates[d], step)?;
            step = times(step, global)?;
        }
        part.resized(0, step)
    }

    /// Blocks of `block` of `global` indices, dealt in turn to `processes`, those of process
    /// `mine`.
    fn dealt(
        &self,
        global: i64,
        block: i64,
        processes: i64,
        mine: i64,
        step: i64,
    ) -> Result<Layout, Mismatch> {
        let first = times(mine, block)?;
        if first >= global {
            return Ok(Layout::empty());
        }
        let round = times(block, processes)?;
        let (rounds, rest) = ((global - first) / round, (global - first) % round);
        let full = rounds + (rest >= block) as i64;
        let last = if rest >= block { 0 } else { rest };
        let blocks = self
            .repeat(block as u64, step)?
            .repeat(full as u64, times(round, step)?)?
            .shifted(times(first, step)?)?;
        let at = times(full, round)?
            .checked_add(first)
            .ok_or(Mismatch::TooLarge)?;
        if last == 0 {
            return Ok(blocks);
        }
        let tail = self.repeat(last as u64, step)?.shifted(times(at, step)?)?;
        if full == 0 {
            return Ok(tail);
        }
        Layout::joined(&[blocks, tail])
    }
}

fn coordinates(
    size: i64,
    rank: i64,
    dims: &[(i64, Distribution, i64)],
) -> Result<Vec<i64>, Mismatch> {
    let product = dims
        .iter()
        .try_fold(1i64, |a, d| a.checked_mul(d.2))
        .ok_or(Mismatch::TooLarge)?;
    if dims.iter().any(|d| d.2 < 1 || d.0 < 1) || product != size || rank < 0 || rank >= size {
        return Err(Mismatch::Argument(
            "a distributed array's sizes must be positive, its process grid must have `size` places, and rank must be one of them",
        ));
    }
    let mut left = rank;
    let mut coordinates = vec![0; dims.len()];
    for d in (0..dims.len()).rev() {
        coordinates[d] = left % dims[d].2;
        left /= dims[d].2;
    }
    Ok(coordinates)
}

fn block_size(global: i64, how: Distribution, processes: i64) -> Result<i64, Mismatch> {
    match how {
        Distribution::None if processes != 1 => Err(Mismatch::Argument(
            "a dimension with MPI_DISTRIBUTE_NONE must have 1 process",
        )),
        Distribution::None => Ok(global),
        Distribution::Block(None) => Ok((global - 1) / processes + 1),
        Distribution::Block(Some(n))
            if n < 1 || n.checked_mul(processes).is_some_and(|t| t < global) =>
        {
            Err(Mismatch::Argument(
                "MPI_DISTRIBUTE_BLOCK: the block size times the processes must cover the dimension",
            ))
        }
        Distribution::Block(Some(n)) => Ok(n.min(global)),
        Distribution::Cyclic(None) => Ok(1),
        Distribution::Cyclic(Some(n)) if n < 1 => Err(Mismatch::Argument(
            "MPI_DISTRIBUTE_CYCLIC: the block size must be positive",
        )),
        Distribution::Cyclic(Some(n)) => Ok(n.min(global)),
    }
}
