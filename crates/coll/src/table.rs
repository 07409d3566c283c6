//! The choice of an algorithm, as data: `table.txt` read into rows. A file of the same form can
//! stand in for it.

use super::Ask;
use super::algorithms::{ALL, Algorithm};
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

/// The table that is built in.
const BUILT_IN: &str = include_str!("table.txt");

/// What the ranks of a communicator run on, as all of them know it alike.
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
    param: u32,
    algorithm: &'static Algorithm,
}

impl Row {
    #[inline]
    fn fits(&self, bytes: u64, ask: &Ask) -> bool {
        bytes <= self.max_bytes && ask.size <= self.max_procs && self.algorithm.need.met(ask)
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
}

/// Rows that cannot be read, of a user (`KW_COLL`) or of a communicator's hint.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A row.
    #[error("line {line}: {why}")]
    Row {
        /// Its line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: WrongRow,
    },
    /// A row of a file.
    #[error("{file}: {why}")]
    InFile {
        /// The file.
        file: String,
        /// Which row, and what is wrong with it.
        why: Box<Unreadable>,
    },
    /// A file that the system does not give.
    #[error("{file}: {why}")]
    File {
        /// The file.
        file: String,
        /// What the system said.
        why: io::Error,
    },
}

/// What is wrong with a row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongRow {
    /// The number of its words.
    #[error("has {0} words, wants 7: {1}")]
    Words(usize, String),
    /// The collective.
    #[error("no collective is called {0}")]
    Collective(String),
    /// The algorithm.
    #[error("no algorithm of that collective is called {0}")]
    Algorithm(String),
    /// One of two words, or both.
    #[error("{column} is {word}, wants any, {no} or {yes}")]
    Either {
        /// The column.
        column: &'static str,
        /// What stands there.
        word: String,
        /// The first that may.
        no: &'static str,
        /// The second.
        yes: &'static str,
    },
    /// A limit.
    #[error("{0} is no number")]
    Number(String),
}

/// Rows, one a line; those of a file for `@FILE`.
fn expanded(rows: &str, read: impl Fn(&str) -> io::Result<String>) -> Result<String, Unreadable> {
    let expand = |row: &str| match row.trim().strip_prefix('@') {
        None => Ok(row.to_string()),
        Some(file) => {
            let name = || file.to_string();
            let text = read(file).map_err(|why| Unreadable::File { file: name(), why })?;
            // Read alone first, so that a fault is told by the file's own line.
            match Table::parse(&text) {
                Ok(_) => Ok(text),
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

impl Default for Table {
    fn default() -> Self {
        // The built-in text is read by a test.
        Table::parse(BUILT_IN).expect("the built-in table is well-formed")
    }
}

impl Table {
    /// The built-in table behind `rows`, which are separated by semicolons.
    pub fn with(rows: &str) -> Result<Table, Unreadable> {
        Table::parse(&format!("{}\n{BUILT_IN}", rows.replace(';', "\n")))
    }

    /// The rows that a text stands for, one a line: those of a file for each `@FILE`, whose text
    /// `read` gives. [`Table::with`] can read what comes of it.
    pub fn expand(
        rows: &str,
        read: impl Fn(&str) -> io::Result<String>,
    ) -> Result<String, Unreadable> {
        let rows = expanded(rows, read)?;
        Table::parse(&rows)?;
        Ok(rows)
    }

    /// As [`Table::with`], of what [`Table::expand`] gives.
    pub fn with_files(
        rows: &str,
        read: impl Fn(&str) -> io::Result<String>,
    ) -> Result<Table, Unreadable> {
        let rows = expanded(rows, read)?;
        Table::parse(&format!("{rows}\n{BUILT_IN}"))
    }

    /// Reads a table; says line and fault when it cannot.
    pub fn parse(text: &str) -> Result<Table, Unreadable> {
        let mut rows = vec![Vec::new(); COLLS.len() * PLACES];
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
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
        Ok(Table { rows })
    }

    /// Rows alone, separated by semicolons, with nothing behind them (a communicator's hint).
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
        ask: &Ask,
    ) -> Option<(&'static Algorithm, u32)> {
        let many = ask.nodes.is_some();
        let place = place(many, site.network || many, site.shared);
        let rows = &self.rows[coll as usize * PLACES + place];
        let row = rows.iter().find(|r| r.fits(bytes, ask))?;
        Some((row.algorithm, row.param))
    }

    /// The algorithm and its parameter for a call; `bytes` as `table.txt` explains. When no row
    /// fits, the first algorithm that can.
    #[inline]
    pub fn choose(
        &self,
        coll: Coll,
        bytes: u64,
        site: Site,
        ask: &Ask,
    ) -> (&'static Algorithm, u32) {
        self.find(coll, bytes, site, ask)
            .unwrap_or_else(|| fallback(coll, ask))
    }
}

/// An algorithm that can do the call, and a number for it.
pub(super) fn fallback(coll: Coll, ask: &Ask) -> (&'static Algorithm, u32) {
    let able = ALL.iter().rev().find(|a| a.coll == coll && a.need.met(ask));
    // Every collective has an algorithm without needs, or two whose needs are opposite (a test
    // counts them).
    (able.expect("some algorithm fits every call"), 4)
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
    let (name, param) = name.split_once('/').unwrap_or((name, "4"));
    let algorithm = ALL
        .iter()
        .find(|a| a.coll == coll && a.name == name)
        .ok_or_else(|| WrongRow::Algorithm(name.to_string()))?;
    let row = Row {
        max_bytes: limit(bytes, u64::MAX)?,
        max_procs: limit(procs, u32::MAX as u64)? as u32,
        param: limit(param, 4)?.max(1) as u32,
        algorithm,
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

/// What a word allows: both for `any`, else whether it is the second of the two.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blocks, Board, Nodes, SEND};

    #[test]
    fn the_table_has_an_algorithm_for_every_call() {
        let table = Table::default();
        let listed = [
            (Blocks::Even { buf: SEND, each: 1 }),
            (Blocks::Listed {
                buf: SEND,
                counts: &[],
                at: &[],
            }),
        ];
        let board = Some(Board {
            short: 4088,
            long: 65528,
            unit: 8,
        });
        for &(coll, _) in COLLS {
            for (n, bytes) in
                (1..=33).flat_map(|n| [0u64, 8, 1 << 10, 1 << 20, 1 << 40].map(move |b| (n, b)))
            {
                let nodes = Nodes::of_hosts((0..n).map(|r| r % 3));
                for bits in 0..128 {
                    let (commutative, in_place) = (bits & 1 > 0, bits & 2 > 0);
                    let send = listed[(bits >> 2) & 1];
                    let ask = Ask {
                        commutative,
                        in_place,
                        send,
                        recv: send,
                        nodes: nodes.as_ref().filter(|_| bits & 16 > 0),
                        board: board.filter(|_| bits & 32 > 0),
                        ..Ask::new(0, n)
                    };
                    let site = Site {
                        shared: bits & 8 > 0,
                        network: bits & 64 > 0,
                    };
                    let (a, param) = table.choose(coll, bytes, site, &ask);
                    assert!(a.coll == coll && a.need.met(&ask) && param > 0);
                }
            }
        }
    }

    #[test]
    fn a_file_among_the_rows_is_read_and_blamed_by_name() {
        let read = |file: &str| match file {
            "mine" => Ok("# mine\nbcast - - any any any linear\n".to_string()),
            "bad" => Ok("# bad\nbcast -\n".to_string()),
            _ => Err(io::Error::other("no such file")),
        };
        let first = |rows| {
            let table = Table::with_files(rows, read).map_err(|e| e.to_string())?;
            let ask = Ask::new(0, 9);
            Ok::<_, String>(
                table
                    .choose(Coll::Bcast, 1 << 20, Site::default(), &ask)
                    .0
                    .name,
            )
        };
        assert_eq!(first("@mine"), Ok("linear"));
        assert_eq!(
            first("bcast - - any any any binomial;@mine"),
            Ok("binomial")
        );
        assert_eq!(
            first("@bad"),
            Err("bad: line 2: has 2 words, wants 7: bcast -".into())
        );
        assert_eq!(first("@none"), Err("none: no such file".into()));
    }

    #[test]
    fn a_wrong_table_is_told_by_line() {
        assert!(
            Table::parse("bcast - - any any any nosuch")
                .unwrap_err()
                .to_string()
                .starts_with("line 1: no algorithm")
        );
        assert!(
            Table::parse("# x\nbcast - - any any any")
                .unwrap_err()
                .to_string()
                .starts_with("line 2: has 6 words")
        );
        assert!(
            Table::parse("bcast 1k - any any any linear")
                .unwrap_err()
                .to_string()
                .contains("1k is no number")
        );
    }
}
