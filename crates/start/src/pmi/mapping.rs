//! `PMI_process_mapping`: `(vector,(first host,hosts,ranks each),...)`, repeated until every rank
//! has a host.

use std::collections::HashMap;
use std::hash::Hash;

/// Host number of each of `size` ranks; `None` if the text does not describe that.
pub fn parse(text: &str, size: u32) -> Option<Vec<u32>> {
    let inner = text.trim().strip_prefix("(vector,")?.strip_suffix(')')?;
    let mut blocks = Vec::new();
    for block in inner.split_inclusive(')') {
        blocks.push(triple(block.trim_start_matches(','))?);
    }
    let once: u64 = blocks.iter().map(|b| b.1 as u64 * b.2 as u64).sum();
    if once == 0 {
        return None;
    }
    let mut hosts = Vec::with_capacity(size as usize);
    while hosts.len() < size as usize {
        for &(first, count, each) in &blocks {
            fill(&mut hosts, first, count, each, size as usize)?;
        }
    }
    Some(hosts)
}

fn triple(block: &str) -> Option<(u32, u32, u32)> {
    let inner = block.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut numbers = inner.split(',').map(|n| n.trim().parse::<u32>().ok());
    let found = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(found)
}

fn fill(hosts: &mut Vec<u32>, first: u32, count: u32, each: u32, size: usize) -> Option<()> {
    let end = first.checked_add(count)?;
    for host in first..if each == 0 { first } else { end } {
        for _ in 0..each {
            if hosts.len() == size {
                return Some(());
            }
            hosts.push(host);
        }
        if hosts.len() == size {
            break;
        }
    }
    Some(())
}

/// The text for these hosts: one block for consecutive hosts that have the same number of
/// consecutive ranks each.
pub fn write(hosts: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &h in hosts {
        match runs.last_mut() {
            Some((host, n)) if *host == h => *n += 1,
            _ => runs.push((h, 1)),
        }
    }
    let mut blocks: Vec<(u32, u32, u32)> = Vec::new();
    for (host, each) in runs {
        match blocks.last_mut() {
            Some((first, count, n)) if *n == each && first.checked_add(*count) == Some(host) => {
                *count += 1;
            }
            _ => blocks.push((host, 1, each)),
        }
    }
    let blocks: Vec<String> = blocks
        .iter()
        .map(|(first, count, each)| format!("({first},{count},{each})"))
        .collect();
    format!("(vector,{})", blocks.join(","))
}

/// Numbers hosts by their identities, in the order of their first rank.
pub fn number<T: Eq + Hash>(hosts: &[T]) -> Vec<u32> {
    let mut known: HashMap<&T, u32> = HashMap::new();
    let number = |host| {
        let next = known.len() as u32;
        *known.entry(host).or_insert(next)
    };
    hosts.iter().map(number).collect()
}
