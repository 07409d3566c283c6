//! The cells of a verification and their protocols or algorithms: the choices by some figures, and
//! the settings that force each alternative.

use std::fmt;
use std::str::FromStr;

use kw_base::Calibration;
use kw_base::calibration::Figure;
use kw_base::settings::{Id, Settings};
use kw_coll::cost::candidates;
use kw_coll::{Coll, Table};
use kw_proto::p2p::prices;
use kw_proto::p2p::table::{Choice, Room};

use crate::wanted::Job;

/// Smallest and largest message, bytes; the sizes between are powers of two.
const MESSAGES: std::ops::RangeInclusive<u32> = 10..=22;
/// Bytes of a collective, counted as in the selection table.
const SIZES: [u64; 4] = [64, 4 << 10, 64 << 10, 512 << 10];
/// The collectives: one from a root, one to a root, two among all.
const COLLECTIVES: [Coll; 4] = [Coll::Bcast, Coll::Reduce, Coll::Allreduce, Coll::Alltoall];
/// Alternatives of each collective that are forced, the cheapest by the prices first.
const ALTERNATIVES: usize = 4;

/// Operation that is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A message, one way.
    Message,
    /// A collective on all ranks.
    Collective(Coll),
}

/// One line of the table: an operation with its number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The operation.
    pub what: What,
    /// Bytes.
    pub bytes: u64,
}

impl Cell {
    /// Name of the operation.
    pub fn name(self) -> &'static str {
        match self.what {
            What::Message => "message",
            What::Collective(coll) => coll.name(),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name(), self.bytes)
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(word: &str) -> Result<Cell, String> {
        let unknown = || format!("'{word}' is nothing that is timed");
        let (name, bytes) = word.split_once(':').ok_or_else(unknown)?;
        let what = match name {
            "message" => What::Message,
            name => {
                let mut all = COLLECTIVES.into_iter();
                What::Collective(all.find(|c| c.name() == name).ok_or_else(unknown)?)
            }
        };
        let bytes = bytes.parse().map_err(|_| unknown())?;
        Ok(Cell { what, bytes })
    }
}

/// The messages that are timed, between two ranks.
pub fn messages() -> Vec<Cell> {
    let cell = |shift| Cell {
        what: What::Message,
        bytes: 1u64 << shift,
    };
    MESSAGES.map(cell).collect()
}

/// The collectives that are timed.
pub fn collectives() -> Vec<Cell> {
    let cells = |coll| {
        SIZES.map(|bytes| Cell {
            what: What::Collective(coll),
            bytes,
        })
    };
    COLLECTIVES.into_iter().flat_map(cells).collect()
}

/// Protocol of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// At once.
    Eager,
    /// After the receiver has answered an RTS.
    Rendezvous,
    /// After the receiver has announced its buffer.
    Announced,
    /// The receiver reads the sender's memory.
    Read,
}

impl Protocol {
    /// All.
    pub const ALL: [Protocol; 4] = [
        Protocol::Eager,
        Protocol::Rendezvous,
        Protocol::Announced,
        Protocol::Read,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Eager => "eager",
            Protocol::Rendezvous => "rendezvous",
            Protocol::Announced => "announced",
            Protocol::Read => "read",
        }
    }

    /// The settings that force this protocol for every message; for reading by the receiver
    /// wherever it is possible, the job must also use the figures of [`always_read`].
    pub fn settings(self) -> [(&'static str, &'static str); 3] {
        let of = |eager, copy, write| {
            [
                ("KW_EAGER_SHM", eager),
                ("KW_SINGLE_COPY", copy),
                ("KW_WRITE", write),
            ]
        };
        match self {
            Protocol::Eager => of("64M", "yes", "yes"),
            Protocol::Rendezvous => of("0", "no", "no"),
            Protocol::Announced => of("0", "no", "yes"),
            Protocol::Read => of("0", "yes", "no"),
        }
    }

    /// The protocol of a message of this many bytes by these crossing points.
    fn of(choice: &Choice, bytes: u64) -> Protocol {
        match bytes {
            n if n <= choice.eager_max => Protocol::Eager,
            n if n >= choice.get_min => Protocol::Read,
            n if n >= choice.announce_min => Protocol::Announced,
            _ => Protocol::Rendezvous,
        }
    }
}

/// Figures by which reading the sender's memory is the cheapest for messages of every size.
pub fn always_read(figures: &Calibration) -> Calibration {
    Calibration::measured(|figure| match figure {
        Figure::FetchCall => *figure.row().range.start(),
        Figure::FetchRate | Figure::FetchBoth => *figure.row().range.start(),
        Figure::StreamCore | Figure::StreamCache | Figure::StreamPackage | Figure::StreamHost => {
            match figures.value(figure) {
                0 => 0,
                _ => *figure.row().range.end(),
            }
        }
        _ => figures.value(figure),
    })
}

/// The protocols of messages between two ranks of this host by these figures.
pub fn protocol(figures: &Calibration, settings: &Settings, bytes: u64) -> Protocol {
    let lines = prices::shared_memory(figures, settings.flag(Id::SingleCopy), true);
    let room = Room {
        mark: settings.number(Id::Unexpected).unwrap_or(0),
        peers: 1,
    };
    let eager = settings.number(Id::EagerShm);
    let choice = Choice::from_lines(&lines, room, eager, settings.flag(Id::Write));
    Protocol::of(&choice, bytes)
}

/// The algorithm of a collective according to these figures, as `name/number`; then its
/// alternatives in ascending order of price, each with the best of its numbers.
pub fn algorithms(figures: &Calibration, job: &Job, coll: Coll, bytes: u64) -> Vec<String> {
    let prices = job.prices(figures);
    let Ok(table) = Table::with("") else {
        return Vec::new();
    };
    let table = table.priced(prices);
    let call = job.call_view(coll, bytes, &table);
    let (chosen, number) = table.choose(coll, bytes, job.site, &call);
    let mut rivals: Vec<_> = candidates(coll, &call, &prices, job.site).collect();
    rivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut seen = vec![chosen.name];
    let mut all = vec![format!("{}/{number}", chosen.name)];
    for (_, rival, number) in rivals {
        if !seen.contains(&rival.name) && all.len() <= ALTERNATIVES {
            seen.push(rival.name);
            all.push(format!("{}/{number}", rival.name));
        }
    }
    all
}

/// Value of `KW_COLL` that forces these algorithms, each for one size of its collective; the cells
/// are in the order of their sizes.
pub fn forced(cells: &[(Cell, String)]) -> String {
    let row = |(cell, algorithm): &(Cell, String)| {
        format!("{} {} - any any any {algorithm}", cell.name(), cell.bytes)
    };
    cells.iter().map(row).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_read_as_it_is_written() {
        for cell in messages().into_iter().chain(collectives()) {
            assert_eq!(cell.to_string().parse(), Ok(cell));
        }
        for word in ["", "message", "message:", "message:x", "nothing:1"] {
            assert!(word.parse::<Cell>().is_err(), "{word}");
        }
    }

    #[test]
    fn each_protocol_is_forced_at_every_size() {
        let start = Calibration::START;
        for forced in Protocol::ALL {
            let mut settings = Settings::defaults();
            for (name, value) in forced.settings() {
                let at = kw_base::settings::ALL.iter().position(|k| k.name == name);
                settings.set_at(at.expect("a setting"), value).unwrap();
            }
            let figures = match forced {
                Protocol::Read => always_read(&start),
                _ => start,
            };
            for cell in messages() {
                assert_eq!(protocol(&figures, &settings, cell.bytes), forced, "{cell}");
            }
        }
    }

    #[test]
    fn an_alternative_differs_from_the_choice_and_can_be_forced() {
        let job = Job::plain(2, 2);
        for cell in collectives() {
            let What::Collective(coll) = cell.what else {
                unreachable!("collectives alone")
            };
            let all = algorithms(&Calibration::START, &job, coll, cell.bytes);
            let name = |text: &String| text.split('/').next().map(str::to_string);
            assert!(all.len() > 1, "{cell}");
            assert!(all[1..].iter().all(|other| name(other) != name(&all[0])));
            for algorithm in all {
                let row = forced(&[(cell, algorithm.clone())]);
                assert!(Table::with(&row).is_ok(), "{row}");
            }
        }
    }
}
