//! Agreement with other launchers of this machine about processors, without a lock: no launcher
//! waits for another one, so none can be delayed by one that is stopped or by another user.
//!
//! A launcher chooses among the free CPUs, makes its choice visible (its guard marks them), and
//! then looks again. If another launcher took one of them in the meantime, it chooses again. Of two
//! launchers that chose the same CPUs at the same time, at least one sees the other, because each
//! looks after its own choice is visible. The younger one chooses again at once, and never again
//! takes CPUs of an older one; the older one first checks a few times whether the younger one has
//! moved.

use kw_sys::neighbours::{self, Launcher, Taken};
use kw_sys::process::Guard;
use kw_sys::topology::MachinePart;

use crate::args::Binding;
use crate::bind;
use crate::verdict::Verdict;

/// Number of choices after which a launcher gives up dedicated processors if others took some of
/// them.
const CHOICES: u32 = 8;
/// Number of checks by an older launcher before it chooses again because of a younger one.
const PATIENCE: u32 = 3;

/// Processors of each of the `n` ranks that are started here; none: not bound. No other job uses
/// them as far as [`bind::bind`] promises, also when several jobs start at once.
pub fn bind(
    guard: &Guard,
    how: Binding,
    n: usize,
    usable: usize,
) -> Result<Vec<Vec<usize>>, Verdict> {
    if !bind::may_bind(how, n, usable) {
        return Ok(vec![Vec::new(); n]);
    }
    let cores = kw_sys::topology::cores();
    let mut agreement = Agreement::new(neighbours::this_launcher(), neighbours::taken());
    loop {
        let taken = || agreement.taken.clone();
        let machine = (|| cores.clone(), &MachinePart::of as bind::PartOf<'_>);
        let shares = bind::bind(how, n, usable, machine, taken)?;
        agreement.choose(shares.concat());
        guard.claim(&agreement.mine);
        loop {
            match agreement.judge(&neighbours::taken()) {
                Next::Keep => return Ok(shares),
                Next::LookAgain => {}
                Next::ChooseAgain => break,
                Next::GiveUp if how == Binding::Auto => {
                    guard.claim(&[]);
                    return Ok(vec![Vec::new(); n]);
                }
                Next::GiveUp => return Ok(shares),
            }
        }
    }
}

/// Next action after a check of the CPUs of others.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Keep,
    LookAgain,
    ChooseAgain,
    /// Others took the same CPUs every time.
    GiveUp,
}

/// The state of one launcher that looks for processors.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Agreement {
    me: (u64, u32),
    /// Processors of others that were known when the choice was made.
    taken: Vec<usize>,
    /// Choices of older launchers made at the same time.
    avoided: Vec<usize>,
    /// The choice.
    mine: Vec<usize>,
    choices: u32,
    looks: u32,
}

impl Agreement {
    fn new(me: Launcher, others: Vec<Taken>) -> Agreement {
        Agreement {
            me: (me.start, me.pid),
            taken: all(&others),
            avoided: Vec::new(),
            mine: Vec::new(),
            choices: 0,
            looks: 0,
        }
    }

    fn choose(&mut self, mine: Vec<usize>) {
        self.mine = mine;
        self.choices += 1;
        self.looks = 0;
    }

    /// Decides about the choice, which others can see, from the CPUs that they took.
    fn judge(&mut self, others: &[Taken]) -> Next {
        let new = |cpu: &usize| self.mine.contains(cpu) && !self.taken.contains(cpu);
        let rivals = || others.iter().filter(|t| t.cpus.iter().any(new));
        if rivals().next().is_none() {
            return Next::Keep;
        }
        let me = self.me;
        self.looks += 1;
        if self.looks < PATIENCE && rivals().all(|t| will_move(t, me)) {
            return Next::LookAgain;
        }
        if self.choices >= CHOICES {
            return Next::GiveUp;
        }
        let older = rivals().filter(|t| is_older(t, me)).flat_map(|t| &t.cpus);
        self.avoided.extend(older);
        self.taken = all(others);
        self.taken.extend(&self.avoided);
        Next::ChooseAgain
    }
}

/// Whether another launcher must choose again: a younger one that has started no ranks.
fn will_move(other: &Taken, me: (u64, u32)) -> bool {
    other.claimed && !other.stopped && !is_older(other, me)
}

fn is_older(other: &Taken, me: (u64, u32)) -> bool {
    (other.by.start, other.by.pid) < me
}

fn all(taken: &[Taken]) -> Vec<usize> {
    let mut cpus: Vec<usize> = taken.iter().flat_map(|t| t.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// State of a launcher in the model.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    enum At {
        /// It has not checked yet.
        Start,
        /// It will choose and make the choice visible.
        Choosing(Agreement),
        /// Its choice is visible, and it will check.
        Looking(Agreement),
        /// It has started its ranks.
        Bound(Vec<usize>),
    }

    impl At {
        /// CPUs visible to others.
        fn visible(&self, number: usize, stopped: bool) -> Option<Taken> {
            let (cpus, claimed) = match self {
                At::Start => return None,
                At::Choosing(a) | At::Looking(a) => (&a.mine, true),
                At::Bound(cpus) => (cpus, false),
            };
            (!cpus.is_empty()).then(|| Taken {
                cpus: cpus.clone(),
                by: launcher(number),
                claimed,
                stopped,
            })
        }

        /// One atomic step.
        fn step(&self, number: usize, ranks: usize, others: Vec<Taken>) -> At {
            match self.clone() {
                At::Start => At::Choosing(Agreement::new(launcher(number), others)),
                At::Choosing(mut a) => {
                    a.choose(choice(ranks, &a.taken));
                    At::Looking(a)
                }
                At::Looking(mut a) => match a.judge(&others) {
                    Next::Keep => At::Bound(a.mine),
                    Next::LookAgain => At::Looking(a),
                    Next::ChooseAgain => At::Choosing(a),
                    Next::GiveUp => At::Bound(Vec::new()),
                },
                bound => bound,
            }
        }
    }

    fn launcher(number: usize) -> Launcher {
        Launcher {
            start: 7,
            pid: 100 + number as u32,
        }
    }

    /// One of four CPUs for each rank, if that many are free.
    fn choice(ranks: usize, taken: &[usize]) -> Vec<usize> {
        let free: Vec<usize> = (0..4).filter(|c| !taken.contains(c)).collect();
        free.get(..ranks).map_or(Vec::new(), <[usize]>::to_vec)
    }

    /// Results of every order in which launchers with these numbers of ranks can take their steps.
    fn results(ranks: &[usize], stopped: Option<(usize, usize)>) -> HashSet<Vec<Vec<usize>>> {
        let (mut seen, mut ends) = (HashSet::new(), HashSet::new());
        let mut row = vec![(vec![At::Start; ranks.len()], vec![0; ranks.len()])];
        while let Some((world, steps)) = row.pop() {
            let mut over = true;
            for i in 0..world.len() {
                let halts = |k: usize| stopped == Some((k, steps[k]));
                if halts(i) || matches!(world[i], At::Bound(_)) {
                    continue;
                }
                over = false;
                let others = (0..world.len()).filter(|k| *k != i);
                let visible = others
                    .filter_map(|k| world[k].visible(k, halts(k)))
                    .collect();
                let (mut next, mut steps) = (world.clone(), steps.clone());
                next[i] = world[i].step(i, ranks[i], visible);
                steps[i] += 1;
                assert!(steps[i] <= 2 + (CHOICES * (PATIENCE + 1)) as usize);
                if seen.insert((next.clone(), steps.clone())) {
                    row.push((next, steps));
                }
            }
            if over {
                ends.insert(world.iter().map(bound).collect());
            }
        }
        ends
    }

    fn bound(at: &At) -> Vec<usize> {
        match at {
            At::Bound(cpus) => cpus.clone(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn no_order_of_steps_gives_a_processor_to_two_jobs() {
        for ranks in [[2, 2], [4, 4], [3, 2]] {
            for end in results(&ranks, None) {
                let mut all = end.concat();
                all.sort_unstable();
                let given = all.len();
                all.dedup();
                assert_eq!(given, all.len(), "{ranks:?}: {end:?}");
            }
        }
    }

    #[test]
    fn processors_that_suffice_are_given_in_any_order_of_steps() {
        for ranks in [[2, 2], [1, 3]] {
            for end in results(&ranks, None) {
                assert_eq!(end[0].len(), ranks[0], "{ranks:?}: {end:?}");
            }
        }
    }

    #[test]
    fn a_launcher_that_is_stopped_at_any_step_delays_nobody() {
        for step in 0..6 {
            // `results` checks that the other one terminates.
            results(&[2, 2], Some((0, step)));
            for end in results(&[2, 2], Some((1, step))) {
                assert_eq!(end[0].len(), 2, "{end:?}");
            }
        }
    }

    #[test]
    fn both_get_processors_if_one_is_faster() {
        let mut world = [At::Start, At::Start];
        let mut step = |i: usize| {
            let visible = world[1 - i].visible(1 - i, false).into_iter().collect();
            world[i] = world[i].step(i, 2, visible);
            bound(&world[i])
        };
        // Both look, both choose the same ones; the younger one sees it and chooses again.
        for i in [0, 1, 0, 1, 1, 1] {
            assert!(step(i).is_empty());
        }
        assert_eq!([step(0), step(1)], [[0, 1], [2, 3]]);
    }
}
