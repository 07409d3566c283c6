//! A rank's record of its call, as bytes of a length that depends only on the number of ranks.

use kw_types::layout::Layout;

/// Position of the byte with the form of the call.
pub(in crate::calls::coll) const FORM: usize = 0;
/// Non-blocking.
pub(in crate::calls::coll) const LATER: u8 = 1;
/// Persistent.
pub(in crate::calls::coll) const PERSISTENT: u8 = 2;

/// Bytes before the amounts.
const HEAD: usize = 640;
/// Most bytes of the three texts.
const TEXTS: [usize; 3] = [64, 48, 400];
/// Words before the texts.
const WORDS: usize = 11;

/// Amount and type of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Amount {
    /// Packed bytes; [`Amount::UNKNOWN`] has none.
    pub bytes: u64,
    /// Hash of the type signature; 0 matches any.
    pub hash: u64,
}

impl Amount {
    /// The rank gives no amount.
    pub const UNKNOWN: Amount = Amount {
        bytes: u64::MAX,
        hash: 0,
    };

    /// `count` elements of a datatype; `any`: of a type that matches all others (MPI_PACKED).
    pub fn of(layout: &Layout, count: u64, any: bool) -> Amount {
        Amount {
            bytes: layout.size().saturating_mul(count),
            hash: if any {
                0
            } else {
                layout.signature().hash(count)
            },
        }
    }

    pub fn is_known(self) -> bool {
        self != Amount::UNKNOWN
    }

    /// Data along several edges between two ranks, in order. No edge differs from an edge without
    /// data.
    pub fn in_row(edges: impl Iterator<Item = Amount>) -> Amount {
        let none = Amount { bytes: 0, hash: 1 };
        edges.fold(none, |all, one| Amount {
            bytes: all.bytes.saturating_add(one.bytes),
            hash: match all.hash == 0 || one.hash == 0 && one.bytes > 0 {
                true => 0,
                false => mix(&[all.hash as i64, one.hash as i64]),
            },
        })
    }

    /// The number of edges of a graph, rather than data.
    pub fn edges(n: usize) -> Amount {
        Amount {
            bytes: n as u64,
            hash: Amount::EDGES,
        }
    }

    /// The hash of [`Amount::edges`].
    pub const EDGES: u64 = u64::MAX;

    /// Instead of data, the group in which two ranks must be together: `members` is its hash, or 0
    /// for none.
    pub fn together(members: u64) -> Amount {
        Amount {
            bytes: members,
            hash: Amount::TOGETHER,
        }
    }

    /// The hash of [`Amount::together`].
    pub const TOGETHER: u64 = u64::MAX - 1;
}

/// A hash of a list, never 0.
pub(super) fn mix(list: &[i64]) -> u64 {
    let step = |h: u64, &c: &i64| {
        (h ^ c as u64)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(23)
    };
    list.iter().fold(0xcbf2_9ce4_8422_2325, step) | 1
}

/// The record of one rank.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// Blocking (0), [`LATER`] or [`PERSISTENT`].
    pub form: u8,
    /// Class of the error for which this rank refused the arguments; 0 if it accepted them.
    pub refused: i32,
    /// Number of the root among the ranks that compare.
    pub root: Option<u32>,
    /// In calls in which all or none must give MPI_IN_PLACE: whether this rank does.
    pub in_place: Option<bool>,
    /// The operation, if it can be identified; 0: not given.
    pub op: u64,
    /// Data that must be the same on all ranks.
    pub same: Amount,
    /// Hash of a list of counts that must be the same everywhere; 0: not given.
    pub list: u64,
    /// Hashes of other arguments that must be the same everywhere, or in the first group of an
    /// intercommunicator, or in its second; 0: not given.
    pub args: [u64; 3],
    /// The call in lower case, without form and prefix.
    pub name: String,
    /// This rank.
    pub who: String,
    /// Arguments as text for people.
    pub detail: String,
    /// For each rank, the data that this one gives it and takes from it.
    pub pairs: Vec<(Amount, Amount)>,
}

impl Record {
    /// A record of a call among `n` ranks without any values yet.
    pub fn new(name: &str, who: String, n: u32) -> Record {
        Record {
            form: 0,
            refused: 0,
            root: None,
            in_place: None,
            op: 0,
            same: Amount::UNKNOWN,
            list: 0,
            args: [0; 3],
            name: name.into(),
            who,
            detail: String::new(),
            pairs: vec![(Amount::UNKNOWN, Amount::UNKNOWN); n as usize],
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let words = [
            self.form as u64,
            self.refused as u64,
            self.root.map_or(0, |r| r as u64 + 1),
            self.in_place.map_or(0, |p| p as u64 + 1),
            self.op,
            self.same.bytes,
            self.same.hash,
            self.list,
            self.args[0],
            self.args[1],
            self.args[2],
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        for (text, most) in [&self.name, &self.who, &self.detail].into_iter().zip(TEXTS) {
            let text = kw_engine::cut(text, most).as_bytes();
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text);
        }
        bytes.resize(HEAD, 0);
        let amounts = self.pairs.iter().flat_map(|(give, take)| [give, take]);
        bytes.extend(
            amounts
                .flat_map(|a| [a.bytes, a.hash])
                .flat_map(u64::to_le_bytes),
        );
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Record {
        let word = |at: usize| {
            let mut w = [0; 8];
            w.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(w)
        };
        let mut at = 8 * WORDS;
        let [name, who, detail] = TEXTS.map(|most| {
            let len = (word(at) as usize).min(most);
            let text = String::from_utf8_lossy(&bytes[at + 8..at + 8 + len]).into_owned();
            at += 8 + len;
            text
        });
        let amount = |at: usize| Amount {
            bytes: word(at),
            hash: word(at + 8),
        };
        let pairs = (HEAD..bytes.len()).step_by(32);
        Record {
            form: word(0) as u8,
            refused: word(8) as i32,
            root: (word(16) as u32).checked_sub(1),
            in_place: [None, Some(false), Some(true)][word(24) as usize % 3],
            op: word(32),
            same: amount(40),
            list: word(56),
            args: [word(64), word(72), word(80)],
            name,
            who,
            detail,
            pairs: pairs.map(|p| (amount(p), amount(p + 16))).collect(),
        }
    }

    /// The function as the user called it.
    pub fn function(&self) -> String {
        let mut letters = self.name.chars();
        let first = letters.next().unwrap_or(' ');
        let capital = format!("{}{}", first.to_ascii_uppercase(), letters.as_str());
        match self.form {
            LATER => format!("MPI_I{}", self.name),
            PERSISTENT => format!("MPI_{capital}_init"),
            _ => format!("MPI_{capital}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_encoded() {
        let mut r = Record::new("reduce", "rank 3".into(), 2);
        (r.form, r.refused, r.root, r.in_place) = (LATER, 8, Some(0), Some(false));
        (r.op, r.list, r.args) = (7, 9, [1, 2, 3]);
        r.detail = "ä".repeat(400);
        r.pairs[1].0 = Amount { bytes: 5, hash: 6 };
        let back = Record::from_bytes(&r.to_bytes());
        assert_eq!(back.detail, "ä".repeat(200));
        assert_eq!(back.function(), "MPI_Ireduce");
        let same = Record {
            detail: r.detail.clone(),
            ..back
        };
        assert_eq!(format!("{same:?}"), format!("{r:?}"));
    }
}
