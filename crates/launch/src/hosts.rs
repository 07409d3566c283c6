//! Which hosts a job uses, and which host runs which rank.
//!
//! Hosts come from `--hosts a,b:2` or from a file with one host per line (`a`, `a:2`, `a slots=2`,
//! `#` begins a comment). The number is that of a host's slots, by default 1. Every host gets as
//! many ranks as it has slots, one host after the other (`slot`) or one rank per host in turn
//! (`node`); if ranks remain, this is repeated. In the same way a host's ranks have consecutive
//! numbers, or the numbers go to the hosts in turn.

use std::path::Path;

use crate::verdict::Verdict;

/// A host of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// As the user wrote it: a name, an address, `user@name`.
    pub name: String,
    /// Ranks it gets in one round.
    pub slots: u32,
}

/// Order of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// One host after the other is filled.
    #[default]
    Slot,
    /// Ranks go to hosts in turn.
    Node,
}

/// Reads `a,b:2`.
pub fn list(text: &str) -> Result<Vec<Host>, Verdict> {
    let words = text.split(',').map(str::trim);
    let hosts = words
        .map(|w| host(w, "--hosts"))
        .collect::<Result<_, _>>()?;
    Ok(merged(hosts))
}

/// Reads a file of hosts.
pub fn file(path: &Path) -> Result<Vec<Host>, Verdict> {
    let shown = path.display();
    let text = std::fs::read(path)
        .map_err(|e| Verdict::misuse(format!("the host file '{shown}' cannot be read: {e}")))?;
    let text = String::from_utf8(text)
        .map_err(|_| Verdict::misuse(format!("the host file '{shown}' is not text")))?;
    let mut hosts = Vec::new();
    for (number, whole) in (1..).zip(text.lines()) {
        let words = whole.split('#').next().unwrap_or("");
        let words: Vec<&str> = words.split_whitespace().collect();
        if let [first, rest @ ..] = &words[..] {
            let place = format!("line {number} of the host file '{shown}'");
            hosts.push(line(first, rest, &place)?);
        }
    }
    if hosts.is_empty() {
        return Err(Verdict::misuse(format!(
            "the host file '{shown}' names no host"
        )));
    }
    Ok(merged(hosts))
}

fn line(first: &str, rest: &[&str], place: &str) -> Result<Host, Verdict> {
    let mut found = host(first, place)?;
    for word in rest {
        match word.split_once('=') {
            Some(("slots", n)) => found.slots = slots(n, place)?,
            // other launchers' limit of slots: ours has none
            Some(("max_slots" | "max-slots", n)) => drop(slots(n, place)?),
            _ => {
                return Err(Verdict::misuse(format!(
                    "{place} has '{word}'; a line is a host, optionally followed by slots=N"
                )));
            }
        }
    }
    Ok(found)
}

fn slots(text: &str, place: &str) -> Result<u32, Verdict> {
    match text.parse::<u32>() {
        Ok(n @ 1..=100_000) => Ok(n),
        _ => Err(Verdict::misuse(format!(
            "{place} has '{text}' as the number of slots, which must be 1 or more"
        ))),
    }
}

/// `name`, `name:2`, `[address]:2`; an IPv6 address without brackets has no number.
fn host(word: &str, place: &str) -> Result<Host, Verdict> {
    let (name, number) = match word.strip_prefix('[').and_then(|w| w.split_once(']')) {
        Some((address, rest)) => (address, rest.strip_prefix(':')),
        None if word.matches(':').count() == 1 => {
            let (name, number) = word.split_once(':').unwrap_or((word, ""));
            (name, Some(number))
        }
        None => (word, None),
    };
    let good = |c: char| c.is_alphanumeric() || "-_.:@%".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(good) {
        return Err(Verdict::misuse(format!(
            "{place} has '{word}', which is not a host name"
        )));
    }
    Ok(Host {
        name: name.to_string(),
        slots: number.map_or(Ok(1), |n| slots(n, place))?,
    })
}

/// Merges a host that is named twice; it has the slots of both.
pub fn merged(hosts: Vec<Host>) -> Vec<Host> {
    let mut out: Vec<Host> = Vec::new();
    for host in hosts {
        match out.iter_mut().find(|h| h.name == host.name) {
            Some(known) => known.slots += host.slots,
            None => out.push(host),
        }
    }
    out
}

/// Merges a host that is named twice; it has the slots of the first mention.
pub fn once(hosts: Vec<Host>) -> Vec<Host> {
    let mut out: Vec<Host> = Vec::new();
    for host in hosts {
        if !out.iter().any(|h| h.name == host.name) {
            out.push(host);
        }
    }
    out
}

/// Sum of all slots.
pub fn total(hosts: &[Host]) -> u32 {
    hosts.iter().map(|h| h.slots).sum()
}

/// The host (its place in the list) of each of `n` ranks: `order` decides how many each host gets,
/// `numbers` which ones.
pub fn place(hosts: &[Host], n: u32, order: Order, numbers: Order) -> Vec<usize> {
    let mut left = n;
    let mut counts = vec![0; hosts.len()];
    while left > 0 {
        round(&mut counts, hosts, &mut left, order);
    }
    match numbers {
        Order::Slot => (0..)
            .zip(counts)
            .flat_map(|(h, c)| std::iter::repeat_n(h, c as usize))
            .collect(),
        Order::Node => in_turn(counts),
    }
}

/// Gives each host as many ranks as it has slots, or the remaining ones.
fn round(counts: &mut [u32], hosts: &[Host], left: &mut u32, order: Order) {
    let most = hosts.iter().map(|h| h.slots).max().unwrap_or(0);
    let (times, each) = match order {
        Order::Slot => (1, most),
        Order::Node => (most, 1),
    };
    for time in 0..times {
        for (count, host) in counts.iter_mut().zip(hosts) {
            let some = host.slots.saturating_sub(time).min(each).min(*left);
            *count += some;
            *left -= some;
        }
    }
}

fn in_turn(mut counts: Vec<u32>) -> Vec<usize> {
    let mut out = Vec::new();
    while counts.iter().any(|c| *c > 0) {
        for (host, count) in counts.iter_mut().enumerate().filter(|(_, c)| **c > 0) {
            *count -= 1;
            out.push(host);
        }
    }
    out
}

/// Whether a name is that of this machine, so that ranks there need no helper. Does not ask a
/// resolver.
pub fn is_here(name: &str, own: &str, addresses: &[std::net::IpAddr]) -> bool {
    let short = |n: &str| n.split('.').next().unwrap_or("").to_string();
    name == "localhost"
        || name == own
        || name.parse().is_ok_and(|a| addresses.contains(&a))
        || (!own.is_empty() && name.parse::<std::net::IpAddr>().is_err() && name == short(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<Host> {
        list(text).unwrap()
    }

    #[test]
    fn a_list_has_names_and_slots() {
        let h = hosts("a,b:2,me@c,[fe80::1]:3,fe80::2,a");
        let found: Vec<_> = h.iter().map(|h| (h.name.as_str(), h.slots)).collect();
        let want = [
            ("a", 2),
            ("b", 2),
            ("me@c", 1),
            ("fe80::1", 3),
            ("fe80::2", 1),
        ];
        assert_eq!(found, want);
        for nonsense in [
            "",
            "a,,b",
            "a:0",
            "a:x",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            ":2",
        ] {
            let e = list(nonsense).unwrap_err().sentence;
            assert!(e.starts_with("--hosts has '"), "{nonsense}: {e}");
        }
    }

    #[test]
    fn a_line_of_a_file_takes_the_usual_forms() {
        let read = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            line(words[0], &words[1..], "line 1").map(|h| (h.name, h.slots))
        };
        assert_eq!(read("a").unwrap(), ("a".into(), 1));
        assert_eq!(read("a:3").unwrap(), ("a".into(), 3));
        assert_eq!(read("a slots=4 max_slots=8").unwrap(), ("a".into(), 4));
        for nonsense in ["a b", "a slots=", "a slots=-1", "a 4", "{", "a slots"] {
            let e = read(nonsense).unwrap_err().sentence;
            assert!(e.starts_with("line 1 has '"), "{nonsense}: {e}");
        }
    }

    #[test]
    fn ranks_are_placed_in_rounds_of_slots() {
        let place = |h: &[Host], n, order| super::place(h, n, order, order);
        let h = hosts("a,b:2");
        assert_eq!(place(&h, 2, Order::Slot), [0, 1]);
        assert_eq!(place(&h, 3, Order::Slot), [0, 1, 1]);
        assert_eq!(place(&h, 5, Order::Slot), [0, 0, 1, 1, 1]);
        assert_eq!(place(&h, 5, Order::Node), [0, 1, 0, 1, 1]);
        assert_eq!(place(&hosts("a,b"), 4, Order::Slot), [0, 0, 1, 1]);
        assert_eq!(total(&h), 3);
    }

    #[test]
    fn ranks_go_to_hosts_in_turn_though_the_first_had_slots_for_all() {
        let (h, slot, node) = (hosts("a:4,b:4"), Order::Slot, Order::Node);
        assert_eq!(place(&h, 4, slot, slot), [0, 0, 0, 0]);
        assert_eq!(place(&h, 4, node, node), [0, 1, 0, 1]);
        assert_eq!(place(&h, 4, node, slot), [0, 0, 1, 1]);
        assert_eq!(place(&h, 6, slot, node), [0, 1, 0, 1, 0, 0]);
        assert_eq!(place(&hosts("a,b:3"), 6, node, node), [0, 1, 0, 1, 1, 1]);
    }

    #[test]
    fn this_machine_needs_no_helper() {
        let own = ["10.0.0.5".parse().unwrap()];
        for name in ["localhost", "node-a.site.org", "node-a", "10.0.0.5"] {
            assert!(is_here(name, "node-a.site.org", &own), "{name}");
        }
        for name in ["node-b", "10.0.0.6", "node", "me@node-a"] {
            assert!(!is_here(name, "node-a.site.org", &own), "{name}");
        }
    }
}
