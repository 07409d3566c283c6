//! Which processors each rank gets: an equal, contiguous share of what this process may use.
//!
//! Nothing is bound when there are more ranks than processors (or than the control groups' quota allows to run at once):
//! the system's scheduler does that better.

use std::path::Path;

use crate::args::Binding;
use crate::verdict::Verdict;

/// Processors of this machine that we may use, grouped by core, neighbours together.
pub type Cores = Vec<Vec<usize>>;

/// Processors of each of `n` ranks of one machine; none: not bound. `usable` is how many processors' worth of time we may use.
pub fn bind(
    how: Binding,
    n: usize,
    usable: usize,
    cores: impl FnOnce() -> Cores,
) -> Result<Vec<Vec<usize>>, Verdict> {
    match how {
        Binding::None => Ok(vec![Vec::new(); n]),
        Binding::Auto if n > usable || n <= 1 => Ok(vec![Vec::new(); n]),
        wanted => shares(wanted, n, &cores()),
    }
}

fn shares(how: Binding, n: usize, cores: &Cores) -> Result<Vec<Vec<usize>>, Verdict> {
    let threads: Vec<Vec<usize>> = cores.iter().flatten().map(|t| vec![*t]).collect();
    let (units, each) = match how {
        Binding::Core => (cores.clone(), true),
        Binding::Thread => (threads, true),
        _ if n > cores.len() => (threads, false),
        _ => (cores.clone(), false),
    };
    if n > units.len() && how != Binding::Auto {
        let what = if how == Binding::Core {
            "cores"
        } else {
            "threads"
        };
        return Err(Verdict::misuse(format!(
            "--bind asks for one of the {} {what} for each of {n} ranks; use --bind none",
            units.len()
        )));
    }
    let share = |i: usize| {
        let (from, to) = (i * units.len() / n, (i + 1) * units.len() / n);
        let to = if each { from + 1 } else { to };
        units[from..to].concat()
    };
    Ok((0..n).map(share).collect())
}

/// A line of the map, for people.
pub fn line(rank: u32, host: &str, cpus: &[usize], program: &Path) -> String {
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let where_ = match cpus.len() {
        0 => "any processor".to_string(),
        _ => format!("processors {}", cpus.join(",")),
    };
    format!(
        "mpiexec: rank {rank} on {host}, {where_}: {}\n",
        program.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(n: usize, threads: usize) -> Cores {
        (0..n)
            .map(|c| (0..threads).map(|t| c + t * n).collect())
            .collect()
    }

    #[test]
    fn shares_are_equal_disjoint_and_whole() {
        for n in 1..=8 {
            let all = shares(Binding::Auto, n, &cores(8, 2)).unwrap();
            let mut used: Vec<usize> = all.concat();
            used.sort();
            used.dedup();
            assert_eq!(used.len(), all.concat().len());
            assert!(all.iter().all(|s| !s.is_empty()));
        }
        assert_eq!(
            shares(Binding::Auto, 2, &cores(4, 1)).unwrap(),
            [[0, 1], [2, 3]]
        );
        assert_eq!(shares(Binding::Core, 2, &cores(4, 1)).unwrap(), [[0], [2]]);
        assert!(
            shares(Binding::Auto, 4, &cores(2, 2))
                .unwrap()
                .iter()
                .all(|s| s.len() == 1)
        );
        assert!(shares(Binding::Core, 4, &cores(2, 2)).is_err());
    }
}
