//! Who is on which host, by names, in `O(log n)` questions a rank: up a tree of ranks through the launcher, and one map down.
//!
//! The names of level 0 are the ranks' own. At level `l` a rank that is a multiple of `RADIX^l` reads the lists of up to `RADIX - 1`
//! others of the level before, joins them, and stores the longer list; then all fence. Rank 0 has the names of all in the end, and stores
//! the map of hosts, which is short where ranks of a host are neighbours. A rank asks for at most `RADIX - 1` values a level.
//!
//! A name travels as 16 digits of its hash, and a list as runs (`digits:ranks,...`).

use super::{Ask, Heard, Talk, Turn};
use crate::pmi::{mapping, text};

/// Lists that one rank joins at a level. One level does for 64 ranks, two do for 4096, three for 262,144.
pub const RADIX: u32 = 64;
/// Key of the map.
const MAP: &str = "kw_host_map";

/// Ranks in a row that are on the host of this name.
type Run = (String, u32);

#[derive(Debug)]
enum State {
    /// Reads the lists of a level: the next one is that of this rank.
    Reading(u32),
    /// Has stored a list, or the map.
    Stored,
    /// Waits for all.
    Fencing,
    /// Waits for the map.
    Mapped,
}

/// The machine. Begins when all have stored their names ([`Gather::own`]) and fenced.
#[derive(Debug)]
pub(super) struct Gather {
    rank: u32,
    size: u32,
    /// Ranks whose names a list of the level before has.
    span: u64,
    runs: Vec<Run>,
    state: State,
    /// Rank 0's own copy of the map.
    map: Option<String>,
}

fn list_key(span: u64, rank: u32) -> String {
    format!("kw_hosts_{span}_{rank}")
}

impl Gather {
    pub(super) fn new(rank: u32, size: u32, name: &str) -> Gather {
        let digits = text::hex(&blake3::hash(name.as_bytes()).as_bytes()[..8]);
        Gather {
            rank,
            size,
            span: 1,
            runs: vec![(digits, 1)],
            state: State::Reading(rank.saturating_add(1)),
            map: None,
        }
    }

    /// This rank's name, to be stored before all fence.
    pub(super) fn own(&self) -> Ask {
        self.put_list()
    }

    fn put_list(&self) -> Ask {
        let runs: Vec<String> = self.runs.iter().map(|(w, n)| format!("{w}:{n}")).collect();
        Ask::Put {
            key: list_key(self.span, self.rank),
            value: runs.join(","),
        }
    }

    fn wide(&self) -> u64 {
        self.span * u64::from(RADIX)
    }

    /// The next list of this level that is ours to read.
    fn child(&self, next: u32) -> Option<u32> {
        let (rank, next) = (u64::from(self.rank), u64::from(next));
        let mine =
            rank % self.wide() == 0 && next < rank + self.wide() && next < u64::from(self.size);
        mine.then_some(next as u32)
    }

    /// All lists of this level are read.
    fn joined(&mut self) -> Result<Ask, String> {
        let ranks: u64 = self.runs.iter().map(|(_, n)| u64::from(*n)).sum();
        let due = self.wide().min(u64::from(self.size - self.rank));
        if ranks != due {
            return Err(format!("the lists of hosts have {ranks} ranks, not {due}"));
        }
        self.span = self.wide();
        self.state = State::Stored;
        if self.span < u64::from(self.size) {
            return Ok(self.put_list());
        }
        let names = self.runs.iter();
        let names = names.flat_map(|(w, n)| std::iter::repeat_n(w.as_str(), *n as usize));
        let map = mapping::write(&mapping::number(&names.collect::<Vec<_>>()));
        self.map = Some(map.clone());
        Ok(Ask::Put {
            key: MAP.into(),
            value: map,
        })
    }

    fn read(&mut self, at: u32) -> Result<Turn<Vec<u32>>, String> {
        if let Some(from) = self.child(at) {
            self.state = State::Reading(at.saturating_add(self.span as u32));
            let key = list_key(self.span, from);
            return Ok(Turn::Ask(Ask::Get { from, key }));
        }
        if u64::from(self.rank).is_multiple_of(self.wide()) {
            return Ok(Turn::Ask(self.joined()?));
        }
        self.span = self.wide();
        self.state = State::Fencing;
        Ok(Turn::Ask(Ask::Fence))
    }

    fn fenced(&mut self) -> Result<Turn<Vec<u32>>, String> {
        if self.span < u64::from(self.size) {
            return self.read(self.rank.saturating_add(self.span as u32));
        }
        self.state = State::Mapped;
        match self.map.take() {
            Some(map) => self.next(Heard::Value(map)),
            None => Ok(Turn::Ask(Ask::Get {
                from: 0,
                key: MAP.into(),
            })),
        }
    }

    fn take_list(&mut self, list: &str) -> Result<(), String> {
        for item in list.split(',') {
            let run = item.split_once(':');
            let run = run.and_then(|(w, n)| Some((w, n.parse::<u32>().ok()?)));
            let (word, n) = run.filter(|(_, n)| *n <= self.size).ok_or_else(|| {
                format!(
                    "'{}' is no list of hosts",
                    list.chars().take(40).collect::<String>()
                )
            })?;
            match self.runs.last_mut() {
                Some((last, many)) if last == word => *many = many.saturating_add(n),
                _ => self.runs.push((word.to_string(), n)),
            }
        }
        Ok(())
    }

    fn mapped(&self, map: &str) -> Result<Turn<Vec<u32>>, String> {
        let hosts = mapping::parse(map, self.size);
        let hosts = hosts.ok_or_else(|| format!("'{MAP}' is not what rank 0 stored"))?;
        Ok(Turn::Over(hosts))
    }
}

impl Talk for Gather {
    type Out = Vec<u32>;

    fn next(&mut self, heard: Heard) -> Result<Turn<Vec<u32>>, String> {
        match (&self.state, heard) {
            (State::Reading(at), heard) => {
                let at = *at;
                if let Heard::Value(list) = heard {
                    self.take_list(&list)?;
                }
                self.read(at)
            }
            (State::Stored, _) => {
                self.state = State::Fencing;
                Ok(Turn::Ask(Ask::Fence))
            }
            (State::Fencing, _) => self.fenced(),
            (State::Mapped, Heard::Value(map)) => self.mapped(&map),
            (State::Mapped, Heard::Done) => Err(format!("'{MAP}' has no value")),
        }
    }
}
