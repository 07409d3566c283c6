//! `kwinfo`: what this Kittiwake is, has built, and lets itself be told.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use kw_base::knobs::{self, Kind};
use kw_core::schedule::Table;
use kw_core::schedule::model::Measurements;
use kw_launch::{collectives, startup, tuning};

/// Which functions of MPI 5.0 are built.
const COVERAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/coverage.txt"));

/// What this Kittiwake is, has built, and lets itself be told.
#[derive(Parser, Debug)]
#[command(name = "kwinfo", version, arg_required_else_help = true)]
struct Options {
    /// Which functions of MPI 5.0 are built
    #[arg(long)]
    coverage: bool,
    /// Every knob: environment variable, default, value in this environment, meaning
    #[arg(long)]
    knobs: bool,
    /// Every counter, with unit and meaning
    #[arg(long)]
    counters: bool,
    /// Every kind of event that a tool may hear of through MPI_T
    #[arg(long)]
    events: bool,
    /// The page docs/tuning.md: knobs, counters and events, and how to use them
    #[arg(long)]
    tuning: bool,
    /// Every collective algorithm, with what it cannot do without
    #[arg(long)]
    algorithms: bool,
    /// Which algorithm runs each collective, by place and size, with its time as the fitted models predict it (KW_COLL counts)
    #[arg(long)]
    collectives: bool,
    /// The cases in which another algorithm, or two collectives in a row, would be quicker by more than a tenth; the status
    /// is 1 when there are any
    #[arg(long)]
    consistency: bool,
    /// With --collectives and --consistency: measurements of this machine, as bench/tune writes them
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
    /// How a job of so many ranks starts, simulated: what ranks say to their launcher, and the first barrier
    #[arg(long, value_name = "RANKS", value_delimiter = ',')]
    start: Vec<u32>,
    /// With --start: ranks of each host
    #[arg(long, value_name = "RANKS", default_value_t = 32, requires = "start")]
    per_host: u32,
    /// With --start: microseconds of a message between hosts
    #[arg(long, value_name = "US", default_value_t = 50, requires = "start")]
    latency: u32,
    /// With --start: million bytes a second between hosts
    #[arg(long, value_name = "MB", default_value_t = 125, requires = "start")]
    bandwidth: u32,
    /// Where this installation lies: commands, header, library
    #[arg(long)]
    paths: bool,
    /// The manual page
    #[arg(long, hide = true)]
    man: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match tell(&options) {
        Ok((out, status)) => print(&out, status),
        Err(what) => {
            let _ = writeln!(std::io::stderr(), "kwinfo: {what}");
            ExitCode::from(2)
        }
    }
}

/// What was asked for, and the status.
fn tell(options: &Options) -> Result<(String, ExitCode), String> {
    let mut out = String::new();
    let mut status = ExitCode::SUCCESS;
    let mut section = |wanted: bool, text: fn() -> String| {
        if wanted {
            out.push_str(&text());
        }
    };
    section(options.paths, paths);
    section(options.coverage, || COVERAGE.to_string());
    section(options.knobs, knob_table);
    section(options.counters, || listing(tuning::counters()));
    section(options.events, || listing(tuning::events()));
    section(options.tuning, tuning::page);
    section(options.algorithms, algorithm_table);
    section(options.man, man);
    if !options.start.is_empty() {
        out += &starts(options)?;
    }
    if options.collectives || options.consistency {
        let (table, models) = (rows_in_force()?, measurements(options.measured.as_deref())?);
        if options.collectives {
            out += &choice_table(&table, &models);
        }
        if options.consistency {
            let found = collectives::inconsistencies(&table, &models);
            status = ExitCode::from(u8::from(!found.is_empty()));
            out += &better_table(&found);
            out += &extent(collectives::judged(&table, &models));
        }
    }
    Ok((out, status))
}

fn print(out: &str, status: ExitCode) -> ExitCode {
    match std::io::stdout().write_all(out.as_bytes()) {
        // a reader that has had enough is no fault
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(
                std::io::stderr(),
                "kwinfo: cannot write standard output: {e}"
            );
            ExitCode::FAILURE
        }
        _ => status,
    }
}

/// Columns of the terminal, or what a table may take elsewhere.
fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let asked = || {
        let out = std::io::stdout();
        let size = out
            .is_terminal()
            .then(|| rustix::termios::tcgetwinsize(&out).ok());
        size.flatten().map(|s| usize::from(s.ws_col))
    };
    told.or_else(asked)
        .filter(|w| *w > 0)
        .unwrap_or(120)
        .clamp(60, 160)
}

/// A table: columns as wide as their contents, the last one wrapped at the width of the terminal.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let last = head.len() - 1;
    let widest = |c: usize| {
        let cells = rows.iter().map(|r| r[c].chars().count());
        cells.chain([head[c].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..last).map(widest).collect();
    let indent: usize = widths.iter().map(|w| w + 2).sum();
    let room = width().saturating_sub(indent).max(24);
    let mut out = String::new();
    let head: Vec<String> = head.iter().map(|h| h.to_string()).collect();
    let rule: Vec<String> = widths
        .iter()
        .chain([&room])
        .map(|w| "-".repeat(*w))
        .collect();
    for row in [&head, &rule].into_iter().chain(rows) {
        for (i, text) in wrap(&row[last], room).iter().enumerate() {
            for (c, w) in widths.iter().enumerate() {
                let cell = if i == 0 { row[c].as_str() } else { "" };
                out += &format!("{cell:<w$}  ");
            }
            out += text;
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
    }
    out
}

fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        // `lines` always has a last line
        let line = lines.last_mut().expect("at least one line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(word.to_string());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn listing(list: tuning::Listing) -> String {
    table(&list.head, &list.rows)
}

/// Simulated starts, and what the columns are.
fn starts(options: &Options) -> Result<String, String> {
    let place = startup::Place {
        per_host: options.per_host,
        latency_us: options.latency,
        bandwidth_mb: options.bandwidth,
    };
    let table = listing(startup::listing(&options.start, place)?);
    Ok(table + "\n" + &startup::legend(place))
}

/// The knobs, with what they are in this environment.
fn knob_table() -> String {
    let mut list = tuning::knobs();
    list.head.insert(2, "Set here");
    for row in &mut list.rows {
        let here = std::env::var(&row[0]).unwrap_or_default();
        let secret = knobs::ALL
            .iter()
            .any(|k| k.name == row[0] && k.kind == Kind::Secret);
        row.insert(
            2,
            if secret && !here.is_empty() {
                "(a secret)".into()
            } else {
                here
            },
        );
    }
    listing(list)
}

fn algorithm_table() -> String {
    table(
        &["Collective", "Algorithm", "Needs"],
        &collectives::algorithms(),
    )
}

/// The selection table that a program started here would use.
fn rows_in_force() -> Result<Table, String> {
    let front = kw_sys::environment::variable("KW_COLL").unwrap_or_default();
    let read = |file: &str| std::fs::read_to_string(file).map_err(|e| e.to_string());
    Table::with_files(&front, read).map_err(|e| format!("KW_COLL: {e}"))
}

fn measurements(file: Option<&std::path::Path>) -> Result<Measurements, String> {
    let Some(file) = file else {
        return Ok(Measurements::default());
    };
    let named = |e: String| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| named(e.to_string()))?;
    Measurements::parse(&text).map_err(named)
}

fn place(c: &collectives::Choice) -> [String; 5] {
    let path = if c.place.network { "net" } else { "shm" };
    let load = if c.place.shared { "shared" } else { "free" };
    let procs = c.place.procs.to_string();
    let words = [c.coll, path, load, &procs, &c.bytes.to_string()];
    words.map(str::to_string)
}

fn choice_table(rows: &Table, models: &Measurements) -> String {
    let row = |c: &collectives::Choice| {
        let mut cells = place(c).to_vec();
        cells.push(c.predicted.map_or("-".into(), |t| format!("{t:.2}")));
        cells.push(c.chosen.clone());
        cells
    };
    let rows: Vec<_> = collectives::choices(rows, models).iter().map(row).collect();
    let head = [
        "Collective",
        "Path",
        "Load",
        "Ranks",
        "Bytes",
        "us",
        "Algorithm",
    ];
    table(&head, &rows)
}

/// How far the judgement goes.
fn extent((judged, left): (usize, Vec<(String, usize)>)) -> String {
    if left.is_empty() {
        return format!("All {judged} choices were judged.\n");
    }
    let listed: Vec<String> = left.iter().map(|(what, n)| format!("{what} {n}")).collect();
    let sum: usize = left.iter().map(|n| n.1).sum();
    format!(
        "{judged} choices were judged; {sum} were not, because the algorithm chosen there was not measured (bench/tune measures): {}.\n",
        listed.join(", ")
    )
}

fn better_table(found: &[collectives::Better]) -> String {
    if found.is_empty() {
        return "No substitute is quicker by more than a tenth.\n".into();
    }
    let row = |b: &collectives::Better| {
        let mut cells = place(&b.choice).to_vec();
        cells.push(b.choice.chosen.clone());
        cells.push(b.choice.predicted.map_or("-".into(), |t| format!("{t:.2}")));
        cells.push(format!("{:.2}", b.predicted));
        cells.push(b.instead.clone());
        cells
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    let head = [
        "Collective",
        "Path",
        "Load",
        "Ranks",
        "Bytes",
        "Chosen",
        "us",
        "us",
        "Quicker",
    ];
    table(&head, &rows)
}

fn paths() -> String {
    let exe = std::env::current_exe()
        .and_then(|p| p.canonicalize())
        .unwrap_or_default();
    let prefix: PathBuf = exe
        .parent()
        .and_then(|bin| bin.parent())
        .map(Into::into)
        .unwrap_or_default();
    let row = |what: &str, path: &str| {
        let path = prefix.join(path);
        let missing = if path.exists() { "" } else { "  (not there)" };
        vec![what.to_string(), format!("{}{missing}", path.display())]
    };
    let rows = [
        row("commands", "bin"),
        row("compiler", "bin/mpicc"),
        row("header", "include/mpi.h"),
        row("library", "lib/libmpi_abi.so.1"),
        row("pkg-config", "lib/pkgconfig/kittiwake.pc"),
        row("manual", "share/man"),
    ];
    table(&["What", "Where"], &rows)
}

fn man() -> String {
    let mut text = Vec::new();
    match clap_mangen::Man::new(Options::command()).render(&mut text) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(e) => format!("kwinfo: cannot make the manual page: {e}\n"),
    }
}
