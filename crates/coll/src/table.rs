//! The choice of an algorithm, as data: `table.txt` read into rows. A file of the same form can
//! replace it.

use super::CallView;
use super::algorithms::{ALL, Algorithm};
use super::cost::{Memo, Prices};
use std::io;

macro_rules! colls {
    ($($id:ident = $name:literal;)*) => {
        /// The collectives that algorithms perform (the v and w forms are calls of the same ones).
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[allow(missing_docs)]
        pub enum Coll { $($id),* }
        /// Names by position.
        pub const COLLS: &[(Coll, &str)] = &[$((Coll::$id, $name)),*];
    };
}

colls! {
    Barrier = "barrier";
    Bcast = "bcast";
    Gather = "gather";
    Scatter = "scatter";
    Allgather = "allgather";
    Alltoall = "alltoall";
    Reduce = "reduce";
    Allreduce = "allreduce";
    ReduceScatter = "reduce_scatter";
    Scan = "scan";
    Exscan = "exscan";
    NeighborAllgather = "neighbor_allgather";
    NeighborAlltoall = "neighbor_alltoall";
}

impl Coll {
    /// Its name in rows of the table.
    pub fn name(self) -> &'static str {
        COLLS[self as usize].1
    }

    /// Whether it combines elements.
    pub fn combines(self) -> bool {
        use Coll::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        matches!(self, Reduce | Allreduce | ReduceScatter | Scan | Exscan)
    }

    /// Bytes of one rank's buffers in a call of `size` ranks; `bytes` as the table counts them.
    pub fn buffers(self, bytes: u64, size: u32) -> u64 {
        match self {
            Coll::Allgather | Coll::Alltoall => bytes.saturating_mul(2 * u64::from(size)),
            Coll::Bcast => bytes,
            _ => bytes.saturating_mul(2),
        }
    }
}

/// The number of an algorithm whose name has no slash behind it.
pub const DEFAULT_PARAM: u32 = 4;

/// The table that is built in.
const BUILT_IN: &str = include_str!("table.txt");

/// Properties of a communicator's ranks and hosts that all of them know alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Site {
    /// More ranks than cores.
    pub shared: bool,
    /// Messages go over a network path even between ranks of one machine.
    pub network: bool,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    max_bytes: u64,
    max_procs: u32,
    pick: Pick,
}

/// The choice of a row.
#[derive(Clone, Copy, Debug)]
enum Pick {
    /// This algorithm with that number.
    One(&'static Algorithm, u32),
    /// The algorithm that costs least by the closed forms.
    Cheapest(Coll),
}

/// The word of rows that choose the cheapest algorithm.
const CHEAPEST: &str = "cheapest";

impl Row {
    /// Its choice for a call, if it fits.
    #[inline]
    fn pick(
        &self,
        bytes: u64,
        call: &CallView,
        (table, site): (&Table, Site),
    ) -> Option<(&'static Algorithm, u32)> {
        if bytes > self.max_bytes || call.size > self.max_procs {
            return None;
        }
        match self.pick {
            Pick::One(a, param) => a.need.met(call).then_some((a, param)),
            Pick::Cheapest(coll) => table.cheapest(coll, &CallView { bytes, ..*call }, site),
        }
    }
}

/// Kinds of places that rows tell apart: one node or many, shared memory or network, a core each or
/// not.
const PLACES: usize = 8;

/// The number of a place.
fn place(many_nodes: bool, network: bool, shared: bool) -> usize {
    (many_nodes as usize) << 2 | (network as usize) << 1 | shared as usize
}

/// Rows by collective and place, in the order of the file.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<Row>>,
    prices: Prices,
    memo: Memo,
}

/// Rows that cannot be read, of a user (`KW_COLL`) or of a communicator's hint.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A row.
    #[error("line {line}: {why}")]
    Row {
        /// Its line, counted from 1.
        line: usize,
        /// The error.
        why: WrongRow,
    },
    /// A row of a file.
    #[error("{file}: {why}")]
    InFile {
        /// The file.
        file: String,
        /// The row, and what is wrong with it.
        why: Box<Unreadable>,
    },
    /// A file that the system cannot read.
    #[error("{file}: {why}")]
    File {
        /// The file.
        file: String,
        /// The system's message.
        why: io::Error,
    },
}

/// Error in a row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongRow {
    /// The number of its words.
    #[error("has {0} words instead of 7: {1}")]
    Words(usize, String),
    /// The collective.
    #[error("no collective is called {0}")]
    Collective(String),
    /// The algorithm.
    #[error("no algorithm of that collective is called {0}")]
    Algorithm(String),
    /// One of two words, or both.
    #[error("{column} is {word}, but must be any, {no} or {yes}")]
    Either {
        /// The column.
        column: &'static str,
        /// The offending word.
        word: String,
        /// The first valid word.
        no: &'static str,
        /// The second.
        yes: &'static str,
    },
    /// A limit.
    #[error("{0} is not a number")]
    Number(String),
}

/// Rows, one a line; those of a file for `@FILE`.
fn expanded(rows: &str, read: impl Fn(&str) -> io::Result<String>) -> Result<String, Unreadable> {
    let expand = |row: &str| match row.trim().strip_prefix('@') {
        None => Ok(row.to_string()),
        Some(file) => {
            let name = || file.to_string();
            let text = read(file).map_err(|why| Unreadable::File { file: name(), why })?;
            // Read alone first, so that a fault names the file's own line.
            match Table::parse(&text) {
                // A semicolon in a comment separates nothing.
                Ok(_) => Ok(lines(&text).collect::<Vec<_>>().join("\n")),
                Err(why) => Err(Unreadable::InFile {
                    file: name(),
                    why: Box::new(why),
                }),
            }
        }
    };
    let rows: Result<Vec<String>, Unreadable> = rows.split(';').map(expand).collect();
    Ok(rows?.join("\n"))
}

/// The lines of a text without comments: empty ones, too, so that they can be counted.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or("").trim())
}

impl Default for Table {
    fn default() -> Self {
        // The built-in text is read by a test.
        Table::parse(BUILT_IN).expect("the built-in table is well-formed")
    }
}

impl Table {
    /// The built-in table after `rows`, which are separated by semicolons.
    pub fn with(rows: &str) -> Result<Table, Unreadable> {
        Table::parse(&format!("{}\n{BUILT_IN}", rows.replace(';', "\n")))
    }

    /// The rows that a text stands for, one a line: those of a file for each `@FILE`, whose text
    /// `read` gives. [`Table::with`] can read the result.
    pub fn expand(
        rows: &str,
        read: impl Fn(&str) -> io::Result<String>,
    ) -> Result<String, Unreadable> {
        let rows = expanded(rows, read)?;
        Table::only(&rows)?;
        Ok(rows)
    }

    /// Like [`Table::with`], for the result of [`Table::expand`].
    pub fn with_files(
        rows: &str,
        read: impl Fn(&str) -> io::Result<String>,
    ) -> Result<Table, Unreadable> {
        Table::with(&expanded(rows, read)?)
    }

    /// Reads a table; an error names the line and the fault.
    pub fn parse(text: &str) -> Result<Table, Unreadable> {
        let mut rows = vec![Vec::new(); COLLS.len() * PLACES];
        for (number, line) in lines(text).enumerate() {
            if line.is_empty() {
                continue;
            }
            let line = parse_row(line).map_err(|why| Unreadable::Row {
                line: number + 1,
                why,
            });
            let (coll, places, row) = line?;
            for place in places {
                rows[coll as usize * PLACES + place].push(row);
            }
        }
        Ok(Table {
            rows,
            prices: Prices::start(),
            memo: Memo::default(),
        })
    }

    /// This table with other prices.
    pub fn priced(self, prices: Prices) -> Table {
        Table {
            prices,
            memo: Memo::default(),
            ..self
        }
    }

    fn cheapest(
        &self,
        coll: Coll,
        call: &CallView,
        site: Site,
    ) -> Option<(&'static Algorithm, u32)> {
        self.memo.cheapest(coll, call, &self.prices, site)
    }

    /// Rows alone, separated by semicolons, with nothing after them (a communicator's hint).
    pub fn only(rows: &str) -> Result<Table, Unreadable> {
        Table::parse(&rows.replace(';', "\n"))
    }

    /// The first row that fits: algorithm and its parameter.
    #[inline]
    pub fn find(
        &self,
        coll: Coll,
        bytes: u64,
        site: Site,
        call: &CallView,
    ) -> Option<(&'static Algorithm, u32)> {
        let many = call.nodes.is_some();
        let place = place(many, site.network || many, site.shared);
        let rows = &self.rows[coll as usize * PLACES + place];
        rows.iter().find_map(|r| r.pick(bytes, call, (self, site)))
    }

    /// The algorithm and its parameter for a call; `bytes` as `table.txt` explains. If no row fits,
    /// the last algorithm that can do the call.
    #[inline]
    pub fn choose(
        &self,
        coll: Coll,
        bytes: u64,
        site: Site,
        call: &CallView,
    ) -> (&'static Algorithm, u32) {
        self.find(coll, bytes, site, call)
            .unwrap_or_else(|| fallback(coll, call))
    }
}

/// The last algorithm that can do the call, and the first number worth trying.
pub(super) fn fallback(coll: Coll, call: &CallView) -> (&'static Algorithm, u32) {
    let able = ALL
        .iter()
        .rev()
        .find(|a| a.coll == coll && a.need.met(call));
    // Every collective has an algorithm without needs, or two whose needs are opposite (a test
    // counts them).
    let able = able.expect("some algorithm fits every call");
    (able, able.params[0])
}

/// Collective, places and row.
fn parse_row(line: &str) -> Result<(Coll, Vec<usize>, Row), WrongRow> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[coll, bytes, procs, nodes, path, load, name] = words.as_slice() else {
        return Err(WrongRow::Words(words.len(), line.to_string()));
    };
    let &(coll, _) = COLLS
        .iter()
        .find(|c| c.1 == coll)
        .ok_or_else(|| WrongRow::Collective(coll.to_string()))?;
    let row = Row {
        max_bytes: limit(bytes, u64::MAX)?,
        max_procs: at_most(limit(procs, u32::MAX.into())?),
        pick: pick(coll, name)?,
    };
    let many = either("nodes", nodes, "one", "many")?;
    let network = either("path", path, "shm", "net")?;
    let shared = either("load", load, "free", "shared")?;
    let mut places = Vec::new();
    for (&m, &n) in many
        .iter()
        .flat_map(|m| network.iter().map(move |n| (m, n)))
    {
        places.extend(shared.iter().map(|&s| place(m, n, s)));
    }
    Ok((coll, places, row))
}

/// Meaning of a row's last word.
fn pick(coll: Coll, word: &str) -> Result<Pick, WrongRow> {
    if word == CHEAPEST {
        return Ok(Pick::Cheapest(coll));
    }
    let (name, param) = match word.split_once('/') {
        Some((name, param)) => (name, param),
        None => (word, "-"),
    };
    let algorithm = ALL.iter().find(|a| a.coll == coll && a.name == name);
    let algorithm = algorithm.ok_or_else(|| WrongRow::Algorithm(name.to_string()))?;
    let param = limit(param, DEFAULT_PARAM.into())?.max(1);
    Ok(Pick::One(algorithm, at_most(param)))
}

/// Meaning of a word: both for `any`, else whether it is the second of the two.
fn either(
    column: &'static str,
    word: &str,
    no: &'static str,
    yes: &'static str,
) -> Result<&'static [bool], WrongRow> {
    match word {
        "any" => Ok(&[false, true]),
        _ if word == no => Ok(&[false]),
        _ if word == yes => Ok(&[true]),
        _ => Err(WrongRow::Either {
            column,
            word: word.to_string(),
            no,
            yes,
        }),
    }
}

fn limit(word: &str, none: u64) -> Result<u64, WrongRow> {
    if word == "-" {
        Ok(none)
    } else {
        word.parse().map_err(|_| WrongRow::Number(word.to_string()))
    }
}

/// A limit that is never reached replaces one that is too large.
fn at_most(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
