//! The Slurm allocation that we run in: its nodes are the hosts, and `srun` reaches them.
//!
//! Both are in the environment (`salloc`, `sbatch`): `SLURM_JOB_NODELIST` as `n[1-3,7],m2`, and for
//! each node the number of requested tasks, or of processors, as `2(x3),1`.

use kw_base::spawned::PARENT_PORT;

use crate::hosts::Host;
use crate::verdict::Verdict;

/// Command that starts a helper on a node: one task beside anything that runs there, free to bind
/// ranks itself, with unbuffered output.
pub const SRUN: &str = "srun --quiet --overlap --mpi=none --unbuffered --cpu-bind=none --nodes=1 --ntasks=1 --nodelist";

/// Maximum number of nodes.
const MAX_NODES: usize = 100_000;

/// Reads a variable.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The nodes of the allocation, each with its slots; none outside an allocation. None in a step of
/// several tasks either, because each task runs its command by itself, except in a job that one of
/// them has spawned.
pub fn allocation(env: Env) -> Result<Option<Vec<Host>>, Verdict> {
    let Some(text) = env("SLURM_JOB_NODELIST").filter(|_| env("SLURM_JOB_ID").is_some()) else {
        return Ok(None);
    };
    let tasks = env("SLURM_STEP_NUM_TASKS").and_then(|n| n.parse::<u32>().ok());
    if tasks.is_some_and(|n| n > 1) && env(PARENT_PORT).is_none() {
        return Ok(None);
    }
    let strange = |what: &str, text: &str| {
        Verdict::misuse(format!(
            "Slurm reports that {what} '{text}', which is invalid"
        ))
    };
    let names = nodes(&text).ok_or_else(|| strange("SLURM_JOB_NODELIST is", &text))?;
    let counts = match (env("SLURM_NTASKS"), env("SLURM_TASKS_PER_NODE")) {
        (Some(_), Some(tasks)) => tasks,
        _ => env("SLURM_JOB_CPUS_PER_NODE").unwrap_or_else(|| "1".into()),
    };
    let slots = repeated(&counts).ok_or_else(|| strange("its nodes have", &counts))?;
    // in a list that is too short, the last number holds for the rest
    let last = slots.last().copied().unwrap_or(1);
    let slots = slots.into_iter().chain(std::iter::repeat(last));
    let hosts = names.into_iter().zip(slots);
    Ok(Some(
        hosts.map(|(name, slots)| Host { name, slots }).collect(),
    ))
}

/// The names in `n[1-3,07],m2`.
fn nodes(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in outside(text) {
        let some = expanded(part)?;
        if some.iter().any(|n| n.is_empty() || n.starts_with('-')) {
            return None;
        }
        names.extend(some);
        if names.len() > MAX_NODES {
            return None;
        }
    }
    (!names.is_empty()).then_some(names)
}

/// The words between commas outside brackets.
fn outside(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

/// `a[1-2]b[3,4]` as `a1b3`, `a1b4`, `a2b3`, `a2b4`.
fn expanded(part: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = part.split_once('[') else {
        let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        return part.chars().all(plain).then(|| vec![part.to_string()]);
    };
    let (inside, after) = rest.split_once(']')?;
    let ends = expanded(after)?;
    let mut names = Vec::new();
    for range in inside.split(',') {
        for number in numbers(range)? {
            names.extend(ends.iter().map(|end| format!("{before}{number}{end}")));
            if names.len() > MAX_NODES {
                return None;
            }
        }
    }
    Some(names)
}

/// `08-11` as `08`, `09`, `10`, `11`.
fn numbers(range: &str) -> Option<Vec<String>> {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
    let width = from.len();
    if last < first || last - first > MAX_NODES {
        return None;
    }
    Some((first..=last).map(|n| format!("{n:0width$}")).collect())
}

/// `2(x3),1` as `2, 2, 2, 1`.
fn repeated(text: &str) -> Option<Vec<u32>> {
    let mut out = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        let count: u32 = count.parse().ok().filter(|n| (1..=100_000).contains(n))?;
        if times > MAX_NODES {
            return None;
        }
        out.extend(std::iter::repeat_n(count, times));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Option<Vec<(String, u32)>>, String> {
        let found = allocation(&|name| {
            let hit = pairs.iter().find(|(n, _)| *n == name);
            hit.map(|(_, v)| v.to_string())
        });
        let pairs = |hosts: Vec<Host>| hosts.into_iter().map(|h| (h.name, h.slots)).collect();
        found.map(|h| h.map(pairs)).map_err(|v| v.sentence)
    }

    fn is(list: &[(&str, u32)]) -> Result<Option<Vec<(String, u32)>>, String> {
        Ok(Some(
            list.iter().map(|(n, s)| (n.to_string(), *s)).collect(),
        ))
    }

    const JOB: (&str, &str) = ("SLURM_JOB_ID", "7");

    #[test]
    fn nodes_have_as_many_slots_as_tasks_were_asked_for() {
        let list = ("SLURM_JOB_NODELIST", "n[1-3,08-10],m2");
        let cpus = ("SLURM_JOB_CPUS_PER_NODE", "4(x7)");
        let asked = [("SLURM_NTASKS", "10"), ("SLURM_TASKS_PER_NODE", "2(x3),1")];
        let found = with(&[&[JOB, list, cpus], &asked[..]].concat());
        let want = [
            ("n1", 2),
            ("n2", 2),
            ("n3", 2),
            ("n08", 1),
            ("n09", 1),
            ("n10", 1),
            ("m2", 1),
        ];
        assert_eq!(found, is(&want));
        let found = with(&[
            JOB,
            ("SLURM_JOB_NODELIST", "a"),
            ("SLURM_JOB_CPUS_PER_NODE", "4"),
        ]);
        assert_eq!(found, is(&[("a", 4)]));
        assert_eq!(
            with(&[JOB, ("SLURM_JOB_NODELIST", "r[1-2]n[1,3]")]),
            is(&[("r1n1", 1), ("r1n3", 1), ("r2n1", 1), ("r2n3", 1)])
        );
    }

    #[test]
    fn there_is_none_outside_of_a_job_and_in_a_step_of_several() {
        assert_eq!(with(&[]), Ok(None));
        assert_eq!(with(&[("SLURM_JOB_NODELIST", "a")]), Ok(None));
        assert_eq!(
            with(&[
                JOB,
                ("SLURM_JOB_NODELIST", "a"),
                ("SLURM_STEP_NUM_TASKS", "2")
            ]),
            Ok(None)
        );
    }

    #[test]
    fn what_a_task_of_a_step_spawns_has_the_nodes() {
        let step = ("SLURM_STEP_NUM_TASKS", "2");
        let nodes = ("SLURM_JOB_NODELIST", "n[1-2]");
        let found = with(&[JOB, nodes, step, (PARENT_PORT, "port")]);
        assert_eq!(found, is(&[("n1", 1), ("n2", 1)]));
    }

    #[test]
    fn nonsense_is_reported() {
        for list in [
            "n[1-",
            "n[2-1]",
            "n[x]",
            "a b",
            "n[1-99999999]",
            "-w",
            "n[1-400]x[1-400]x[1-400]",
        ] {
            assert!(
                with(&[JOB, ("SLURM_JOB_NODELIST", list)])
                    .unwrap_err()
                    .contains(list),
                "{list}"
            );
        }
        for counts in ["", "x", "2(x", "0", "1(x999999999)"] {
            let found = with(&[
                JOB,
                ("SLURM_JOB_NODELIST", "a"),
                ("SLURM_JOB_CPUS_PER_NODE", counts),
            ]);
            assert!(found.unwrap_err().contains("its nodes have"), "{counts}");
        }
    }
}
