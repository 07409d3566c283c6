//! Finds two ranks that contradict each other.

use super::record::{Amount, Record};
use kw_objects::error::Class;

/// A class and a sentence that names both sides, if not all records match.
pub(super) fn judge(records: &[u8], ranks: usize) -> Option<(i32, String)> {
    let each = records.len() / ranks.max(1);
    let all: Vec<Record> = records
        .chunks_exact(each.max(1))
        .map(Record::from_bytes)
        .collect();
    if let Some(r) = all.iter().find(|r| r.refused != 0) {
        let text = format!("{} calls {}: {}", r.who, r.function(), r.detail);
        return Some((r.refused, text));
    }
    ASPECTS
        .iter()
        .find_map(|aspect| aspect.differs(&all))
        .or_else(|| missing_root(&all))
        .or_else(|| pairs(&all))
}

/// A value that must be the same on all ranks that give it.
struct Aspect {
    class: Class,
    /// Description of the error, if the two calls do not show it.
    hint: &'static str,
    says: fn(&Record) -> Option<Given>,
}

#[derive(PartialEq, Eq)]
enum Given {
    Name(String),
    Number(u64),
}

const ASPECTS: [Aspect; 10] = [
    Aspect {
        class: Class::Other,
        hint: "",
        says: |r| Some(Given::Name(r.function())),
    },
    Aspect {
        class: Class::Root,
        hint: "",
        says: |r| r.root.map(|root| Given::Number(root as u64)),
    },
    Aspect {
        class: Class::Buffer,
        hint: "; all or none must give MPI_IN_PLACE",
        says: |r| r.in_place.map(|p| Given::Number(p as u64)),
    },
    Aspect {
        class: Class::Op,
        hint: "",
        says: |r| (r.op != 0).then_some(Given::Number(r.op)),
    },
    Aspect {
        class: Class::Count,
        hint: "",
        says: |r| r.same.is_known().then_some(Given::Number(r.same.bytes)),
    },
    Aspect {
        class: Class::Type,
        hint: "",
        says: |r| (r.same.hash != 0).then_some(Given::Number(r.same.hash)),
    },
    Aspect {
        class: Class::Count,
        hint: "; the lists of counts differ",
        says: |r| (r.list != 0).then_some(Given::Number(r.list)),
    },
    Aspect {
        class: Class::Arg,
        hint: "",
        says: |r| (r.args[0] != 0).then_some(Given::Number(r.args[0])),
    },
    Aspect {
        class: Class::Arg,
        hint: "",
        says: |r| (r.args[1] != 0).then_some(Given::Number(r.args[1])),
    },
    Aspect {
        class: Class::Arg,
        hint: "",
        says: |r| (r.args[2] != 0).then_some(Given::Number(r.args[2])),
    },
];

impl Aspect {
    fn differs(&self, all: &[Record]) -> Option<(i32, String)> {
        let mut given = all.iter().filter_map(|r| Some((r, (self.says)(r)?)));
        let (first, what) = given.next()?;
        let (other, _) = given.find(|(_, w)| *w != what)?;
        Some((self.class as i32, both(other, first, self.hint)))
    }
}

fn both(a: &Record, b: &Record, hint: &str) -> String {
    format!("{}, {}{hint}", calls(a), calls(b))
}

fn calls(r: &Record) -> String {
    format!("{} calls {}{}", r.who, r.function(), r.detail)
}

/// Intercommunicators: the remote group names a root that does not consider itself the root.
fn missing_root(all: &[Record]) -> Option<(i32, String)> {
    let with = all.iter().find(|r| r.root.is_some())?;
    let root = all.get(with.root? as usize)?;
    (root.root != with.root).then(|| (Class::Root as i32, both(with, root, "")))
}

/// The amount sent must equal the amount received.
fn pairs(all: &[Record]) -> Option<(i32, String)> {
    for (i, giver) in all.iter().enumerate() {
        for (j, taker) in all.iter().enumerate() {
            let (Some(&(give, _)), Some(&(_, take))) = (giver.pairs.get(j), taker.pairs.get(i))
            else {
                continue;
            };
            if let Some((class, what)) = unequal(give, take, giver, taker) {
                return Some((class as i32, both(giver, taker, &what)));
            }
        }
    }
    None
}

fn unequal(give: Amount, take: Amount, from: &Record, to: &Record) -> Option<(Class, String)> {
    if !give.is_known() || !take.is_known() {
        return None;
    }
    if give.bytes != take.bytes && give.hash == Amount::EDGES {
        let what = format!(
            "; {} names {} edges to {}, which names {} from it",
            from.who, give.bytes, to.who, take.bytes
        );
        return Some((Class::Topology, what));
    }
    if give.bytes != take.bytes && give.hash == Amount::TOGETHER {
        let what = "; both must name the same group, or groups that have no process in common";
        return Some((Class::Group, what.into()));
    }
    if give.bytes != take.bytes {
        let class = if give.bytes > take.bytes {
            Class::Truncate
        } else {
            Class::Count
        };
        let what = format!(
            "; {} gives {} bytes where {} takes {}",
            from.who, give.bytes, to.who, take.bytes
        );
        return Some((class, what));
    }
    let same = give.hash == take.hash || give.hash == 0 || take.hash == 0;
    if give.bytes == 0 && !same {
        let what = "; one has an edge to the other, which has none from it";
        return Some((Class::Topology, what.into()));
    }
    (!same).then(|| (Class::Type, "; the datatypes differ".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(all: &[Record]) -> Option<(i32, String)> {
        let bytes: Vec<u8> = all.iter().flat_map(|r| r.to_bytes()).collect();
        judge(&bytes, all.len())
    }

    fn given(rank: u32, name: &str, root: u32) -> Record {
        let mut r = Record::new(name, format!("rank {rank}"), 2);
        r.root = Some(root);
        r.detail = format!(" with root {root}");
        r
    }

    #[test]
    fn both_sides_are_named() {
        assert_eq!(verdict(&[given(0, "bcast", 0), given(1, "bcast", 0)]), None);
        let (class, text) = verdict(&[given(0, "bcast", 0), given(1, "bcast", 1)]).unwrap();
        assert_eq!(class, Class::Root as i32);
        assert_eq!(
            text,
            "rank 1 calls MPI_Bcast with root 1, rank 0 calls MPI_Bcast with root 0"
        );
        let (class, _) = verdict(&[given(0, "bcast", 0), given(1, "reduce", 0)]).unwrap();
        assert_eq!(class, Class::Other as i32);
    }

    #[test]
    fn amounts_are_compared_by_pairs() {
        let (mut a, mut b) = (given(0, "bcast", 0), given(1, "bcast", 0));
        a.pairs[1].0 = Amount { bytes: 8, hash: 3 };
        b.pairs[0].1 = Amount { bytes: 4, hash: 3 };
        let (class, text) = verdict(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(class, Class::Truncate as i32);
        assert!(text.ends_with("; rank 0 gives 8 bytes where rank 1 takes 4"));
        b.pairs[0].1 = Amount { bytes: 8, hash: 4 };
        assert_eq!(
            verdict(&[a.clone(), b.clone()]).unwrap().0,
            Class::Type as i32
        );
        b.pairs[0].1.hash = 0;
        assert_eq!(verdict(&[a, b]), None);
    }
}
