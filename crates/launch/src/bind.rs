//! Which processors each rank gets: an equal, contiguous share of what this process may use; where
//! there are more ranks than processors, ranks are dealt out to them in turns if each processor
//! gets as many. Ranks that share cores sleep and wake, and the system's scheduler leaves them where
//! the last wake-ups put them.
//!
//! Nothing is bound where that does not go out evenly, or where the control groups' quota allows
//! fewer processors to run at once. Processors that ranks of other jobs are bound to are left to
//! them; where too few are left, nothing is bound either.

use std::path::Path;

use crate::args::Binding;
use crate::libraries::Libraries;
use crate::verdict::Verdict;

/// Processors of this machine that we may use, grouped by core, neighbours together.
pub type Cores = Vec<Vec<usize>>;

/// CPUs of each of `n` ranks of one machine; none: not bound. `usable` is the CPU time available
/// (in CPUs), `taken` are those that other jobs are bound to: a request for cores uses some of them
/// if there are no others.
pub fn bind(
    how: Binding,
    n: usize,
    usable: usize,
    cores: impl FnOnce() -> Cores,
    taken: impl FnOnce() -> Vec<usize>,
) -> Result<Vec<Vec<usize>>, Verdict> {
    if !may_bind(how, n, usable) {
        return Ok(vec![Vec::new(); n]);
    }
    let (all, taken) = (cores(), taken());
    let free = free(&all, &taken);
    if how == Binding::Auto && n > usable {
        let threads = all.concat();
        let whole = threads.len() == usable && free.len() == all.len();
        let one = |i: usize| whole.then(|| threads[i % usable]);
        return Ok((0..n).map(|i| one(i).into_iter().collect()).collect());
    }
    match shares(how, n, &free) {
        Ok(shares) if shares.iter().all(|s| !s.is_empty()) => Ok(shares),
        _ if how == Binding::Auto => Ok(vec![Vec::new(); n]),
        _ => shares(how, n, &all),
    }
}

/// Whether ranks may be bound at all, whatever other jobs do.
pub fn may_bind(how: Binding, n: usize, usable: usize) -> bool {
    match how {
        Binding::None => false,
        Binding::Auto => n >= 2 && (n <= usable || n.is_multiple_of(usable)),
        Binding::Core | Binding::Thread => true,
    }
}

/// The cores of which no processor is taken.
fn free(cores: &Cores, taken: &[usize]) -> Cores {
    let is_free = |core: &&Vec<usize>| core.iter().all(|cpu| !taken.contains(cpu));
    cores.iter().filter(is_free).cloned().collect()
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

/// A line of the map, for people; `ours`: the libraries of other ABIs that the program finds first.
pub fn line(rank: u32, host: &str, cpus: &[usize], program: &Path, ours: &Libraries) -> String {
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let where_ = match cpus.len() {
        0 => "any processor".to_string(),
        _ => format!("processors {}", cpus.join(",")),
    };
    let library = match ours.faces.is_empty() {
        true => String::new(),
        false => format!(", with {}", ours.told()),
    };
    format!(
        "mpiexec: rank {rank} on {host}, {where_}: {}{library}\n",
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

    #[test]
    fn more_ranks_than_processors_take_them_in_turns_where_that_goes_out_evenly() {
        let given = |n, usable| bind(Binding::Auto, n, usable, || cores(2, 2), Vec::new).unwrap();
        let twice = [[0], [2], [1], [3], [0], [2], [1], [3]];
        assert_eq!(given(8, 4), twice);
        assert_eq!(given(6, 4), vec![Vec::<usize>::new(); 6]);
        // A quota of two processors' time.
        assert_eq!(given(4, 2), vec![Vec::<usize>::new(); 4]);
    }

    #[test]
    fn processors_of_other_jobs_are_left_to_them() {
        let given =
            |how, n, taken: &[usize]| bind(how, n, 8, || cores(4, 2), || taken.to_vec()).unwrap();
        assert_eq!(given(Binding::Auto, 2, &[0, 5]), [[2, 6], [3, 7]]);
        assert_eq!(given(Binding::Auto, 4, &[0, 5]), [[2], [6], [3], [7]]);
        assert_eq!(
            given(Binding::Auto, 5, &[0, 5]),
            vec![Vec::<usize>::new(); 5]
        );
        assert_eq!(
            given(Binding::Auto, 16, &[0]),
            vec![Vec::<usize>::new(); 16]
        );
        assert_eq!(given(Binding::Core, 2, &[0]), [[1, 5], [2, 6]]);
        assert_eq!(given(Binding::Core, 4, &[0]).len(), 4);
        assert_eq!(
            given(Binding::Auto, 2, &[0, 1, 2, 3]),
            vec![Vec::<usize>::new(); 2]
        );
    }
}
