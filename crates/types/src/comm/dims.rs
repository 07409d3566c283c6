//! MPI_Dims_create (MPI 5.0, 8.5.2): dimensions as close to each other as possible.

/// Why no dimensions fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DimsError {
    /// A dimension is negative.
    #[error("dims[{at}] is {value}, but must not be negative")]
    Negative {
        /// Its index.
        at: usize,
        /// Its value.
        value: i64,
    },
    /// The fixed dimensions do not divide the number of nodes.
    #[error(
        "nnodes is {nodes}, which is not a multiple of {fixed}, the product of the dimensions given"
    )]
    Product {
        /// Number of nodes.
        nodes: i64,
        /// Product of the dimensions that were given.
        fixed: i64,
    },
}

/// Fills the zeros of `dims` so that the product is `nodes`; what is filled in is in non-increasing
/// order.
pub fn dims_create(nodes: i64, dims: &mut [i64]) -> Result<(), DimsError> {
    if let Some(at) = dims.iter().position(|&d| d < 0) {
        return Err(DimsError::Negative {
            at,
            value: dims[at],
        });
    }
    let fixed = dims
        .iter()
        .filter(|&&d| d > 0)
        .fold(1i64, |p, &d| p.saturating_mul(d));
    let free = dims.iter().filter(|&&d| d == 0).count();
    if nodes % fixed != 0 || (free == 0 && nodes != fixed) {
        return Err(DimsError::Product { nodes, fixed });
    }
    let mut best = Vec::new();
    balance(nodes / fixed, free, &mut Vec::new(), &mut best);
    let mut best = best.into_iter();
    for d in dims.iter_mut().filter(|d| **d == 0) {
        *d = best.next().unwrap_or(1);
    }
    Ok(())
}

/// The most even way to write `n` as a product of `parts` non-increasing factors: the smallest
/// distance between the largest and the smallest. Tries divisors only, smallest first, and only
/// those that can still win.
fn balance(n: i64, parts: usize, chosen: &mut Vec<i64>, best: &mut Vec<i64>) {
    if parts == 0 {
        if n == 1 && (best.is_empty() || spread(chosen) < spread(best)) {
            best.clone_from(chosen);
        }
        return;
    }
    let ceiling = chosen.last().copied().unwrap_or(n);
    let least = root(n, parts);
    for d in divisors(n) {
        let first = chosen.first().copied().unwrap_or(d);
        // No factor may be so small that the distance grows beyond the best one's.
        let floor = match best.is_empty() {
            true => 1,
            false => (first - spread(best).0).max(1),
        };
        if d >= least && d <= ceiling && at_most(floor, parts, n) {
            chosen.push(d);
            balance(n / d, parts - 1, chosen, best);
            chosen.pop();
        }
    }
}

/// Order of preference: the distance between the largest and the smallest factor, then the factors
/// themselves.
fn spread(dims: &[i64]) -> (i64, &[i64]) {
    (dims.first().unwrap_or(&1) - dims.last().unwrap_or(&1), dims)
}

/// The smallest whole number whose `parts`-th power is at least `n`. By integers alone: `powf` would
/// be the only function of libm that the library needs, and loading libm takes 0.3 MB of each rank.
fn root(n: i64, parts: usize) -> i64 {
    let (mut low, mut high) = (1, n.max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        match at_most(middle, parts, n - 1) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Whether the `parts`-th power of `d` is at most `n`.
fn at_most(d: i64, parts: usize, n: i64) -> bool {
    let mut power = 1i64;
    for _ in 0..parts {
        match power.checked_mul(d) {
            Some(p) if p <= n => power = p,
            _ => return false,
        }
        if d == 1 {
            break;
        }
    }
    power <= n
}

/// Divisors in increasing order.
fn divisors(n: i64) -> Vec<i64> {
    let mut small = Vec::new();
    let mut large = Vec::new();
    let mut d = 1;
    while d * d <= n {
        if n % d == 0 {
            small.push(d);
            if d * d < n {
                large.push(n / d);
            }
        }
        d += 1;
    }
    large.reverse();
    small.extend(large);
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(nodes: i64, dims: &[i64]) -> Vec<i64> {
        let mut dims = dims.to_vec();
        dims_create(nodes, &mut dims).unwrap();
        dims
    }

    #[test]
    fn the_standard_s_examples() {
        assert_eq!(made(6, &[0, 0]), [3, 2]);
        assert_eq!(made(7, &[0, 0]), [7, 1]);
        assert_eq!(made(6, &[0, 3, 0]), [2, 3, 1]);
        let mut dims = [0, 3, 0];
        assert!(dims_create(7, &mut dims).is_err());
    }

    #[test]
    fn even_where_it_can_be() {
        assert_eq!(made(64, &[0, 0, 0]), [4, 4, 4]);
        assert_eq!(made(12, &[0, 0]), [4, 3]);
        assert_eq!(made(36, &[0, 0, 0]), [4, 3, 3]);
        assert_eq!(made(1, &[0, 0]), [1, 1]);
        assert_eq!(made(1, &[]), []);
    }

    #[test]
    fn many_divisors_and_many_dimensions_take_no_time() {
        for nodes in [2_095_133_040, 1 << 30, i32::MAX as i64, 735_134_400] {
            for parts in [1, 2, 3, 5, 10, 40, 300] {
                let d = made(nodes, &vec![0; parts]);
                assert_eq!(d.iter().product::<i64>(), nodes);
            }
        }
        assert_eq!(made(1 << 30, &[0; 40])[29..31], [2, 1]);
    }

    #[test]
    fn nothing_is_more_even() {
        // every way to write a number as three factors
        for nodes in 1..300i64 {
            let d = made(nodes, &[0; 3]);
            let all = (1..=nodes).flat_map(|a| (1..=a).map(move |b| (a, b)));
            let fits = all.filter(|&(a, b)| nodes % (a * b) == 0 && nodes / (a * b) <= b);
            let least = fits.map(|(a, b)| a - nodes / (a * b)).min();
            assert_eq!(Some(d[0] - d[2]), least, "{nodes}");
        }
    }

    #[test]
    fn every_product_is_right() {
        for nodes in 1..400 {
            for parts in 1..5 {
                let d = made(nodes, &vec![0; parts]);
                assert_eq!(d.iter().product::<i64>(), nodes);
                assert!(d.windows(2).all(|w| w[0] >= w[1]), "{nodes}: {d:?}");
            }
        }
    }
}
