//! Placement of ranks in the words that users of any launcher know: the values of `--map-by`,
//! `--rank-by` and `--bind`.

use crate::hosts::Order;
use crate::verdict::Verdict;
use kw_sys::topology::MachinePart;
use std::borrow::Cow;

/// Kind of binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Binding {
    /// A share of the processors for each rank, no binding when oversubscribed.
    #[default]
    Auto,
    /// Not at all.
    None,
    /// One core each.
    Core,
    /// One hardware thread each.
    Thread,
    /// N cores each.
    Cores(u32),
    /// A whole part of the machine of this kind: the one that contains the rank's share.
    To(MachinePart),
    /// Ranks go to parts of the machine of this kind in turn, and get this of their part.
    Over(MachinePart, Unit),
}

/// A rank's share of its part of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// An equal share.
    Share,
    /// All of it, shared with the other ranks there.
    Whole,
    /// A core.
    Core,
    /// A hardware thread.
    Thread,
}

const UNITS: [(Unit, &str); 4] = [
    (Unit::Share, "share"),
    (Unit::Whole, "whole"),
    (Unit::Core, "core"),
    (Unit::Thread, "thread"),
];

/// The options for mapping and binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RankMap {
    /// How many ranks each host gets.
    pub order: Order,
    /// How they are numbered, if that was given.
    pub numbers: Option<Order>,
    /// The parts of a host that its ranks go to in turn.
    over: Option<MachinePart>,
    /// Cores of each rank.
    cores: Option<u32>,
    /// The binding that the mapping implies if no other one is given.
    implied: Option<Binding>,
    /// The binding that was given.
    bind: Option<Bind>,
}

/// A value of `--bind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bind {
    To(Binding),
    ToPart(MachinePart),
}

impl RankMap {
    /// Reads a value of `--map-by`: `HOW[:PE=N][:oversubscribe]`, or `ppr:N:node`. Returns the N of
    /// the latter.
    pub fn map_by(&mut self, name: &str, text: &str) -> Result<Option<u32>, Verdict> {
        let lower = text.to_lowercase();
        let mut words = lower.split(':');
        let mut per_host = None;
        match words.next().unwrap_or("") {
            "" => {}
            "slot" => self.order = Order::Slot,
            "node" | "host" => self.order = Order::Node,
            "core" => self.implied = Some(Binding::Core),
            "hwthread" | "pu" => self.implied = Some(Binding::Thread),
            "ppr" => per_host = Some(ppr(name, text, words.next(), words.next())?),
            other => match part(other) {
                Some(part) => self.over = Some(part),
                None => return Err(wrong(name, text)),
            },
        }
        for word in words {
            match word.strip_prefix("pe=").map(str::parse) {
                Some(Ok(n @ 1..=100_000)) => self.cores = Some(n),
                None if matches!(word, "oversubscribe" | "span") => {}
                _ => return Err(wrong(name, text)),
            }
        }
        Ok(per_host)
    }

    /// Reads a value of `--rank-by`.
    pub fn rank_by(&mut self, name: &str, text: &str) -> Result<(), Verdict> {
        self.numbers = Some(match text.to_lowercase().as_str() {
            "slot" | "fill" | "core" | "hwthread" => Order::Slot,
            "node" | "host" | "span" => Order::Node,
            _ => {
                return Err(Verdict::misuse(format!(
                    "{name} must be slot (the ranks of a host are consecutive) or node (ranks are numbered round-robin over the hosts), not '{text}'"
                )));
            }
        });
        Ok(())
    }

    /// Reads a value of `--bind`.
    pub fn bind(&mut self, name: &str, text: &str) -> Result<(), Verdict> {
        self.bind = Some(match part(text) {
            Some(part) => Bind::ToPart(part),
            None => Bind::To(binding(name, text)?),
        });
        Ok(())
    }

    /// The binding that follows from all these options.
    pub fn binding(&self) -> Result<Binding, Verdict> {
        let over = |part, unit| Ok(Binding::Over(part, unit));
        let cores = self.cores.map(Binding::Cores);
        match (self.bind, self.over, cores) {
            (Some(Bind::To(Binding::None)), ..) => Ok(Binding::None),
            (_, Some(part), Some(_)) => Err(Verdict::misuse(format!(
                "PE=N goes with slot, node, core and ppr:N:node, not with {}; without it each rank gets an equal share of its {0}",
                part.word()
            ))),
            (.., Some(cores)) => Ok(cores),
            (Some(Bind::To(Binding::Core)), Some(part), _) => over(part, Unit::Core),
            (Some(Bind::To(Binding::Thread)), Some(part), _) => over(part, Unit::Thread),
            (Some(Bind::ToPart(to)), None, _) => Ok(Binding::To(to)),
            (Some(Bind::ToPart(to)), Some(part), _) if part == to => over(to, Unit::Whole),
            (Some(Bind::ToPart(to)), Some(part), _) => Err(Verdict::misuse(format!(
                "--map-by {} goes with --bind core, thread, none or {0}, not with {}",
                part.word(),
                to.word()
            ))),
            (_, Some(part), _) => over(part, Unit::Share),
            (Some(Bind::To(how)), ..) => Ok(how),
            _ => Ok(self.implied.unwrap_or_default()),
        }
    }
}

fn part(word: &str) -> Option<MachinePart> {
    let word = if word == "package" { "socket" } else { word };
    MachinePart::ALL
        .into_iter()
        .find(|part| part.word() == word)
}

/// `ppr:N:node`.
fn ppr(name: &str, text: &str, n: Option<&str>, of: Option<&str>) -> Result<u32, Verdict> {
    match (n.and_then(|n| n.parse().ok()), of) {
        (Some(n @ 1..=100_000), Some("node" | "host")) => Ok(n),
        (Some(n), Some(of)) if part(of).is_some() || matches!(of, "core" | "hwthread") => {
            Err(Verdict::misuse(format!(
                "{name} {text}: ranks are counted per host; use -ppn N --map-by {of} with N = {n} times the number of {of}s of a host"
            )))
        }
        _ => Err(wrong(name, text)),
    }
}

fn wrong(name: &str, text: &str) -> Verdict {
    Verdict::misuse(format!(
        "{name} must be slot, node, core, hwthread, socket, numa, l3cache, l2cache or ppr:N:node, and :PE=N after it, not '{text}'"
    ))
}

impl Binding {
    /// The word that [`binding`] reads.
    pub fn word(self) -> Cow<'static, str> {
        match self {
            Binding::Auto => "auto".into(),
            Binding::None => "none".into(),
            Binding::Core => "core".into(),
            Binding::Thread => "thread".into(),
            Binding::Cores(n) => format!("core:{n}").into(),
            Binding::To(part) => part.word().into(),
            Binding::Over(part, unit) => {
                let unit = UNITS.iter().find(|(u, _)| *u == unit);
                format!("{}:{}", part.word(), unit.map_or("", |u| u.1)).into()
            }
        }
    }
}

/// Reads a binding: a value of `--bind`, or the word of [`Binding::word`] sent to a helper.
pub fn binding(name: &str, text: &str) -> Result<Binding, Verdict> {
    let found = match text.split_once(':') {
        Some(("core", n)) => n.parse().ok().filter(|n| *n > 0).map(Binding::Cores),
        Some((of, unit)) => part(of).and_then(|part| {
            let (unit, _) = UNITS.iter().find(|u| u.1 == unit)?;
            Some(Binding::Over(part, *unit))
        }),
        None => match text {
            "auto" => Some(Binding::Auto),
            "none" => Some(Binding::None),
            "core" => Some(Binding::Core),
            "thread" | "hwthread" | "pu" => Some(Binding::Thread),
            other => part(other).map(Binding::To),
        },
    };
    found.ok_or_else(|| {
        Verdict::misuse(format!(
            "{name} must be auto, none, core, core:N, thread, socket, numa, l3cache or l2cache, not '{text}'"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(map: &str, bind: &str) -> Result<Binding, String> {
        let mut found = RankMap::default();
        let read = |found: &mut RankMap| {
            found.map_by("--map-by", map)?;
            if !bind.is_empty() {
                found.bind("--bind", bind)?;
            }
            found.binding()
        };
        read(&mut found).map_err(|v| v.sentence)
    }

    #[test]
    fn a_mapping_implies_a_binding_that_bind_overrides() {
        for (map, bind, expected) in [
            ("slot", "", Binding::Auto),
            ("core", "", Binding::Core),
            ("hwthread", "", Binding::Thread),
            (
                "socket",
                "",
                Binding::Over(MachinePart::Socket, Unit::Share),
            ),
            (
                "package:span",
                "core",
                Binding::Over(MachinePart::Socket, Unit::Core),
            ),
            (
                "numa",
                "numa",
                Binding::Over(MachinePart::Numa, Unit::Whole),
            ),
            ("slot", "l3cache", Binding::To(MachinePart::L3)),
            ("l3cache:OVERSUBSCRIBE", "none", Binding::None),
            ("slot:PE=4", "", Binding::Cores(4)),
            ("ppr:2:node:pe=8", "core", Binding::Cores(8)),
            ("core", "auto", Binding::Auto),
            ("slot", "core:2", Binding::Cores(2)),
        ] {
            assert_eq!(read(map, bind), Ok(expected), "{map} {bind}");
        }
    }

    #[test]
    fn what_is_not_clear_is_refused_with_what_to_write() {
        for (map, bind, part) in [
            (
                "ppr:2:socket",
                "",
                "use -ppn N --map-by socket with N = 2 times",
            ),
            ("ppr:2:moon", "", "not 'ppr:2:moon'"),
            ("socket:PE=2", "", "PE=N goes with slot"),
            (
                "socket",
                "numa",
                "goes with --bind core, thread, none or socket",
            ),
            ("board", "", "--map-by must be slot, node, core"),
            ("slot:PE=0", "", "not 'slot:PE=0'"),
            ("slot", "board", "--bind must be auto, none, core"),
        ] {
            let sentence = read(map, bind).unwrap_err();
            assert!(sentence.contains(part), "{map} {bind}: {sentence}");
        }
    }

    #[test]
    fn a_helper_reads_what_it_is_sent() {
        let over = |(unit, _)| Binding::Over(MachinePart::L2, unit);
        let all = [Binding::Auto, Binding::None, Binding::Core, Binding::Thread];
        for how in all
            .into_iter()
            .chain([Binding::Cores(3), Binding::To(MachinePart::Numa)])
            .chain(UNITS.map(over))
        {
            assert_eq!(binding("--bind", &how.word()).unwrap(), how);
        }
    }
}
