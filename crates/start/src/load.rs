//! Whether the ranks of a host have a CPU each.
//!
//! They do if every rank can be given a CPU of its own among those that it may run on (a matching;
//! by Hall's theorem, no set of ranks may use fewer CPUs than it has members), and if no limit on
//! their time is below their number: the quota of a control group counts for the ranks in it,
//! `KW_CPUS` for all ranks of the host.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// CPUs that one rank may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Numbers of the CPUs it may use, ascending.
    pub set: Vec<u32>,
    /// The value of `KW_CPUS` for the host, if set.
    pub most: Option<u32>,
    /// The lowest quota that applies to it.
    pub quota: Option<Quota>,
}

/// A limit on the CPU time of a group of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Name of the group: the same for all ranks of a host that are in it.
    pub group: u64,
    /// CPU time in processors, rounded up.
    pub cpus: u32,
}

impl fmt::Display for Cpus {
    /// Format `0-3.8/MOST/GROUP.CPUS`, with `-` for missing parts; only the set if both parts are
    /// missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &c in &self.set {
            match ranges.last_mut() {
                Some((_, last)) if c == *last + 1 => *last = c,
                _ => ranges.push((c, c)),
            }
        }
        let range = |(a, b): &(u32, u32)| match a == b {
            true => a.to_string(),
            false => format!("{a}-{b}"),
        };
        let set: Vec<String> = ranges.iter().map(range).collect();
        if self.most.is_none() && self.quota.is_none() {
            return f.write_str(&set.join("."));
        }
        let most = self.most.map_or("-".into(), |n| n.to_string());
        let quota = self
            .quota
            .map_or("-".into(), |q| format!("{:x}.{}", q.group, q.cpus));
        write!(f, "{}/{most}/{quota}", set.join("."))
    }
}

impl Cpus {
    /// The output of [`Cpus::fmt`].
    pub fn parse(text: &str) -> Option<Cpus> {
        let words: Vec<&str> = text.split('/').collect();
        let (set, most, quota) = match *words.as_slice() {
            [set] => (set, "-", "-"),
            [set, most, quota] => (set, most, quota),
            _ => return None,
        };
        let quota = match quota {
            "-" => None,
            text => {
                let (group, cpus) = text.split_once('.')?;
                Some(Quota {
                    group: u64::from_str_radix(group, 16).ok()?,
                    cpus: cpus.parse().ok()?,
                })
            }
        };
        Some(Cpus {
            set: parse_set(set)?,
            most: match most {
                "-" => None,
                text => Some(text.parse().ok()?),
            },
            quota,
        })
    }
}

fn parse_set(text: &str) -> Option<Vec<u32>> {
    let mut set = Vec::new();
    for range in text.split('.').filter(|r| !r.is_empty()) {
        let (a, b) = range.split_once('-').unwrap_or((range, range));
        let (a, b): (u32, u32) = (a.parse().ok()?, b.parse().ok()?);
        // no machine has a million CPUs
        set.extend((b < 1 << 20).then_some(a..=b)?);
    }
    Some(set)
}

/// Whether these ranks of one host (the number of each kind) outnumber their CPUs: then a waiting
/// rank must let others run.
pub fn is_oversubscribed(kinds: &[(&Cpus, u32)]) -> bool {
    let ranks: u64 = kinds.iter().map(|(_, n)| u64::from(*n)).sum();
    let mut groups: HashMap<u64, (u64, u32)> = HashMap::new();
    for (cpus, n) in kinds {
        if let Some(q) = cpus.quota {
            let group = groups.entry(q.group).or_insert((0, q.cpus));
            *group = (group.0 + u64::from(*n), group.1.min(q.cpus));
        }
    }
    let limited = |(members, cpus): &(u64, u32)| *members > u64::from((*cpus).max(1));
    let most = kinds.iter().filter_map(|(c, _)| c.most).min();
    most.is_some_and(|m| ranks > u64::from(m.max(1)))
        || groups.values().any(limited)
        || !Assignment::default().assign_all(kinds)
}

/// Ranks on CPUs, at most one on each.
#[derive(Default)]
struct Assignment<'a> {
    /// Kind of ranks assigned to a CPU.
    on: HashMap<u32, usize>,
    sets: Vec<&'a [u32]>,
}

impl<'a> Assignment<'a> {
    /// Whether every rank gets a CPU. Ranks bound to few CPUs get one first; an empty set means
    /// unknown.
    fn assign_all(mut self, kinds: &[(&'a Cpus, u32)]) -> bool {
        let mut kinds: Vec<_> = kinds.iter().filter(|(c, _)| !c.set.is_empty()).collect();
        kinds.sort_by_key(|(c, _)| c.set.len());
        self.sets = kinds.iter().map(|(c, _)| c.set.as_slice()).collect();
        let fits = |(c, n): &&&(&Cpus, u32)| *n as usize <= c.set.len();
        kinds.iter().all(|k| fits(&k))
            && kinds
                .iter()
                .enumerate()
                .all(|(kind, (_, n))| (0..*n).all(|_| self.assign(kind, &mut HashSet::new())))
    }

    /// Assigns one more rank of this kind: to a free CPU, or to one whose rank gets another (an
    /// augmenting path).
    fn assign(&mut self, kind: usize, tried: &mut HashSet<u32>) -> bool {
        let set = self.sets[kind];
        if let Some(free) = set.iter().find(|c| !self.on.contains_key(c)) {
            self.on.insert(*free, kind);
            return true;
        }
        for &cpu in set {
            let Some(&other) = self.on.get(&cpu) else {
                continue;
            };
            if other == kind || !tried.insert(cpu) {
                continue;
            }
            if self.assign(other, tried) {
                self.on.insert(cpu, kind);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(set: &[u32]) -> Cpus {
        Cpus {
            set: set.to_vec(),
            ..Cpus::default()
        }
    }

    /// Ranks with these sets.
    fn oversubscribed(sets: &[&[u32]]) -> bool {
        let all: Vec<Cpus> = sets.iter().map(|s| on(s)).collect();
        is_oversubscribed(&all.iter().map(|c| (c, 1)).collect::<Vec<_>>())
    }

    #[test]
    fn ranks_with_a_processor_each_are_not_oversubscribed() {
        assert!(!oversubscribed(&[&[0], &[1]]), "bound to one each");
        assert!(!oversubscribed(&[&[0, 1], &[0, 1]]), "free");
        assert!(!oversubscribed(&[&[0, 1], &[1]]), "one of them bound");
        assert!(!oversubscribed(&[&[0, 1], &[1, 2], &[2, 0]]), "a ring");
        assert!(!oversubscribed(&[&[0, 1, 2], &[0, 1], &[0]]), "a staircase");
        assert!(!oversubscribed(&[]));
    }

    #[test]
    fn ranks_that_must_share_are_oversubscribed() {
        assert!(
            oversubscribed(&[&[1], &[1]]),
            "on the same, others are free"
        );
        assert!(oversubscribed(&[&[0, 1], &[0, 1], &[0, 1]]));
        assert!(
            oversubscribed(&[&[0], &[0], &[1, 2, 3, 4]]),
            "only two of them"
        );
        assert!(oversubscribed(&[&[0, 1], &[1, 0], &[1, 0], &[5]]));
    }

    #[test]
    fn equal_ranks_count_as_many() {
        let (all, one) = (on(&[0, 1, 2, 3]), on(&[2]));
        assert!(!is_oversubscribed(&[(&all, 3), (&one, 1)]));
        assert!(is_oversubscribed(&[(&all, 4), (&one, 1)]));
        let wide = on(&(0..256).collect::<Vec<_>>());
        assert!(!is_oversubscribed(&[(&wide, 256)]));
        assert!(is_oversubscribed(&[(&wide, 257)]));
    }

    #[test]
    fn a_quota_counts_for_its_group_and_kw_cpus_for_all() {
        let under = |group, cpus| Cpus {
            quota: Some(Quota { group, cpus }),
            ..on(&[0, 1, 2, 3])
        };
        let (a, b) = (under(1, 1), under(2, 1));
        assert!(
            !is_oversubscribed(&[(&a, 1), (&b, 1)]),
            "each in a container"
        );
        assert!(is_oversubscribed(&[(&a, 2)]), "together in one");
        let most = |n| Cpus {
            most: Some(n),
            ..on(&[0, 1, 2, 3])
        };
        assert!(is_oversubscribed(&[(&most(1), 2)]));
        assert!(!is_oversubscribed(&[(&most(2), 2)]));
        assert!(
            is_oversubscribed(&[(&most(9), 5)]),
            "it is a limit, no more"
        );
    }

    #[test]
    fn the_rule_is_that_of_hall() {
        // all possible CPU sets of four ranks on four CPUs
        for bits in 0..1u32 << 16 {
            let set = |r: u32| (0..4).filter(|c| bits >> (4 * r + c) & 1 == 1).collect();
            let sets: Vec<Vec<u32>> = (0..4).map(set).collect();
            if sets.iter().any(Vec::is_empty) {
                continue;
            }
            let short = (1..16u32).any(|some| {
                let union = (0..4).filter(|r| some >> r & 1 == 1);
                let union = union.fold(0, |u, r| u | (bits >> (4 * r) & 15));
                union.count_ones() < some.count_ones()
            });
            let sets: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
            assert_eq!(oversubscribed(&sets), short, "{sets:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut cpus = on(&[0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(cpus.to_string(), "0-3.8.10-11");
        assert_eq!(Cpus::parse(&cpus.to_string()), Some(cpus.clone()));
        cpus.most = Some(4);
        cpus.quota = Some(Quota {
            group: 255,
            cpus: 2,
        });
        assert_eq!(cpus.to_string(), "0-3.8.10-11/4/ff.2");
        assert_eq!(Cpus::parse(&cpus.to_string()), Some(cpus));
        for text in [
            "0/1",
            "0/-/-/-",
            "x",
            "x/-/-",
            "0-9999999999/-/-",
            "0-2000000/-/-",
        ] {
            assert_eq!(Cpus::parse(text), None, "{text}");
        }
    }
}
