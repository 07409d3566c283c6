//! Which processors each rank gets: an equal, contiguous share of those that this process may use.
//! When ranks outnumber processors, they are dealt out to the processors in turn, if each processor
//! gets the same number. Ranks that share cores sleep and wake, and the system's scheduler leaves
//! them where the last wake-ups put them. On request ranks are dealt out to sockets, NUMA nodes or
//! caches first, or each gets a number of cores ([`Binding`]).
//!
//! Nothing is bound if the ranks do not divide evenly, or if the control groups' quota allows fewer
//! processors to run at once. Processors to which ranks of other jobs are bound are left to them;
//! if too few remain, nothing is bound either.

use std::path::Path;

use crate::args::{Binding, Unit};
use crate::libraries::Libraries;
use crate::verdict::Verdict;
use kw_sys::topology::MachinePart;

/// Processors of this machine that we may use, grouped by core, adjacent ones together.
pub type Cores = Vec<Vec<usize>>;

/// Which part of the machine a processor lies in.
pub type PartOf<'a> = &'a dyn Fn(MachinePart, usize) -> String;

/// CPUs of each of `n` ranks of one machine; none: not bound. `usable` is the CPU time available
/// (in CPUs), `taken` are those that other jobs are bound to: a request for cores uses some of them
/// if there are no others. `part`: the part of the machine of a CPU ([`MachinePart::of`]).
pub fn bind(
    how: Binding,
    n: usize,
    usable: usize,
    (cores, part): (impl FnOnce() -> Cores, PartOf<'_>),
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
    match shares(how, n, &free, part) {
        Ok(shares) if shares.iter().all(|s| !s.is_empty()) => Ok(shares),
        _ if how == Binding::Auto => Ok(vec![Vec::new(); n]),
        _ => shares(how, n, &all, part),
    }
}

/// Whether ranks may be bound at all, whatever other jobs do.
pub fn may_bind(how: Binding, n: usize, usable: usize) -> bool {
    match how {
        Binding::None => false,
        Binding::Auto => n >= 2 && (n <= usable || n.is_multiple_of(usable)),
        _ => true,
    }
}

/// The cores without a taken processor.
fn free(cores: &Cores, taken: &[usize]) -> Cores {
    let is_free = |core: &&Vec<usize>| core.iter().all(|cpu| !taken.contains(cpu));
    cores.iter().filter(is_free).cloned().collect()
}

fn shares(how: Binding, n: usize, cores: &Cores, part: PartOf) -> Result<Vec<Vec<usize>>, Verdict> {
    match how {
        Binding::Over(domain, unit) => over(domain, unit, n, &parts(cores, domain, part)),
        Binding::To(domain) => Ok(all_of(n, &parts(cores, domain, part))),
        Binding::Cores(each) => whole_cores(each as usize, n, cores),
        _ => in_order(how, n, cores),
    }
}

/// Consecutive ranks on adjacent cores.
fn in_order(how: Binding, n: usize, cores: &Cores) -> Result<Vec<Vec<usize>>, Verdict> {
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

/// `each` cores for each rank.
fn whole_cores(each: usize, n: usize, cores: &Cores) -> Result<Vec<Vec<usize>>, Verdict> {
    if each * n > cores.len() {
        return Err(Verdict::misuse(format!(
            "PE={each} asks for {each} cores for each of {n} ranks, and there are {}; use fewer ranks or --bind none",
            cores.len()
        )));
    }
    let chunks = cores.chunks(each).take(n);
    Ok(chunks.map(<[Vec<usize>]>::concat).collect())
}

/// The cores of each part of the machine, parts in the order of their first cores.
fn parts(cores: &Cores, domain: MachinePart, part: PartOf) -> Vec<Cores> {
    let mut found: Vec<(String, Cores)> = Vec::new();
    for core in cores {
        let name = part(domain, core.first().copied().unwrap_or(0));
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cores)) => cores.push(core.clone()),
            None => found.push((name, vec![core.clone()])),
        }
    }
    found.into_iter().map(|(_, cores)| cores).collect()
}

/// Consecutive ranks over the cores of all parts; each rank gets the whole part that contains its
/// first core.
fn all_of(n: usize, parts: &[Cores]) -> Vec<Vec<usize>> {
    let of = |at: usize| std::iter::repeat_n(at, parts[at].len());
    let places: Vec<usize> = (0..parts.len()).flat_map(of).collect();
    let part = |i: usize| parts[places[i * places.len() / n]].concat();
    (0..n).map(part).collect()
}

/// Ranks that are dealt out to the parts in turn; each gets the `unit` of its part.
fn over(
    domain: MachinePart,
    unit: Unit,
    n: usize,
    parts: &[Cores],
) -> Result<Vec<Vec<usize>>, Verdict> {
    let mut out = vec![Vec::new(); n];
    for (at, cores) in parts.iter().enumerate() {
        let ranks = (at..n).step_by(parts.len());
        let how = match unit {
            Unit::Core => Binding::Core,
            Unit::Thread => Binding::Thread,
            Unit::Share | Unit::Whole => Binding::Auto,
        };
        let many = ranks.len() > cores.concat().len();
        let given = match unit == Unit::Whole || unit == Unit::Share && many {
            true => vec![cores.concat(); ranks.len()],
            false => in_order(how, ranks.len(), cores)
                .map_err(|v| Verdict::misuse(format!("on a {}: {}", domain.word(), v.sentence)))?,
        };
        for (rank, cpus) in ranks.zip(given) {
            out[rank] = cpus;
        }
    }
    Ok(out)
}

/// A line of the map for people; `ours`: the libraries of other ABIs that the program finds first.
pub fn line(rank: u32, host: &str, cpus: &[usize], program: &Path, ours: &Libraries) -> String {
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let where_ = match cpus.len() {
        0 => "not bound".to_string(),
        _ => format!("CPUs {}", cpus.join(",")),
    };
    let library = match ours.shims.is_empty() {
        true => String::new(),
        false => format!(", with {}", ours.described()),
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

    /// The machine is one part.
    fn whole(_: MachinePart, _: usize) -> String {
        String::new()
    }

    fn shares(how: Binding, n: usize, cores: &Cores) -> Result<Vec<Vec<usize>>, Verdict> {
        super::shares(how, n, cores, &whole)
    }

    #[test]
    fn ranks_are_dealt_out_to_sockets_and_share_each_of_them() {
        // four cores of two threads each, two sockets: processors 0, 1, 4, 5 and 2, 3, 6, 7
        let socket = |_: MachinePart, cpu: usize| (cpu % 4 / 2).to_string();
        let given = |unit, n| {
            let how = Binding::Over(MachinePart::Socket, unit);
            super::shares(how, n, &cores(4, 2), &socket).map_err(|v| v.sentence)
        };
        let (first, second) = (vec![0, 4, 1, 5], vec![2, 6, 3, 7]);
        assert_eq!(given(Unit::Share, 2).unwrap(), [&first[..], &second[..]]);
        let three = [&[0, 4][..], &second, &[1, 5]];
        assert_eq!(given(Unit::Share, 3).unwrap(), three);
        assert_eq!(given(Unit::Core, 3).unwrap(), [[0, 4], [2, 6], [1, 5]]);
        assert_eq!(given(Unit::Thread, 2).unwrap(), [[0], [2]]);
        let whole = [&first[..], &second, &first];
        assert_eq!(given(Unit::Whole, 3).unwrap(), whole);
        assert_eq!(given(Unit::Share, 10).unwrap()[8], first);
        let to = Binding::To(MachinePart::Socket);
        let given_to = |n| super::shares(to, n, &cores(4, 2), &socket).unwrap();
        assert_eq!(given_to(3), [&first[..], &first, &second]);
        assert_eq!(given_to(10)[4..6], [&first[..], &second]);
        let e = given(Unit::Core, 5).unwrap_err();
        assert!(
            e.starts_with("on a socket: --bind asks for one of the 2 cores"),
            "{e}"
        );
    }

    #[test]
    fn each_rank_gets_as_many_cores_as_it_asks_for() {
        let given = |each, n| shares(Binding::Cores(each), n, &cores(4, 2));
        assert_eq!(given(2, 2).unwrap(), [[0, 4, 1, 5], [2, 6, 3, 7]]);
        let e = given(2, 3).unwrap_err().sentence;
        assert!(
            e.starts_with("PE=2 asks for 2 cores for each of 3 ranks, and there are 4"),
            "{e}"
        );
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
        let given =
            |n, usable| bind(Binding::Auto, n, usable, (|| cores(2, 2), &whole), Vec::new).unwrap();
        let twice = [[0], [2], [1], [3], [0], [2], [1], [3]];
        assert_eq!(given(8, 4), twice);
        assert_eq!(given(6, 4), vec![Vec::<usize>::new(); 6]);
        // A quota of two processors' time.
        assert_eq!(given(4, 2), vec![Vec::<usize>::new(); 4]);
    }

    #[test]
    fn processors_of_other_jobs_are_left_to_them() {
        let given = |how, n, taken: &[usize]| {
            bind(how, n, 8, (|| cores(4, 2), &whole), || taken.to_vec()).unwrap()
        };
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
