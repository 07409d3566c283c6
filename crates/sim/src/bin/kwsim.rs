//! `kwsim`: starts of large jobs in virtual time, and the choices of the selection table judged by
//! fitted models.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use kw_coll::Table;
use kw_launch::listing::{self, Listing};
use kw_sim::model::Measurements;
use kw_sim::{choices, start_table};

/// Simulates what this machine cannot run, and judges choices by fitted models.
#[derive(Parser, Debug)]
#[command(name = "kwsim", version, arg_required_else_help = true)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// How jobs of so many ranks start: what ranks say to their launcher, and the first barrier
    Start(Start),
    /// Which algorithm runs each collective, by place and size, with its time as the models predict
    /// it (KW_COLL counts)
    Choices(Measured),
    /// The cases in which another algorithm, or two collectives in a row, would be quicker by more
    /// than a tenth; the status is 1 when there are any
    Consistency(Measured),
    /// The manual page
    #[command(hide = true)]
    Man,
}

#[derive(Args, Debug)]
struct Start {
    /// Numbers of ranks
    #[arg(required = true, value_delimiter = ',')]
    ranks: Vec<u32>,
    /// Ranks of each host
    #[arg(long, value_name = "RANKS", default_value_t = 32)]
    per_host: u32,
    /// Microseconds of a message between hosts
    #[arg(long, value_name = "US", default_value_t = 50)]
    latency: u32,
    /// Million bytes a second between hosts
    #[arg(long, value_name = "MB", default_value_t = 125)]
    bandwidth: u32,
}

#[derive(Args, Debug)]
struct Measured {
    /// Measurements of this machine, as `kwlab tune` writes them
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
}

fn main() -> ExitCode {
    match tell(Options::parse().what) {
        Ok((out, status)) => listing::print("kwsim", &out, status),
        Err(what) => {
            let _ = writeln!(std::io::stderr(), "kwsim: {what}");
            ExitCode::from(2)
        }
    }
}

/// What is said, or why it cannot be.
type Said<T> = Result<T, Box<dyn std::error::Error>>;

/// What was asked for, and the status.
fn tell(what: What) -> Said<(String, ExitCode)> {
    let out = match what {
        What::Start(start) => starts(&start)?,
        What::Man => man()?,
        What::Choices(of) => choice_table(&rows_in_force()?, &of.read()?),
        What::Consistency(of) => {
            let (table, models) = (rows_in_force()?, of.read()?);
            let found = choices::inconsistencies(&table, &models);
            let judged = extent(choices::judged(&table, &models));
            let status = ExitCode::from(u8::from(!found.is_empty()));
            return Ok((better_table(&found) + &judged, status));
        }
    };
    Ok((out, ExitCode::SUCCESS))
}

/// Simulated starts, and what the columns are.
fn starts(start: &Start) -> Said<String> {
    let place = start_table::Place {
        per_host: start.per_host,
        latency_us: start.latency,
        bandwidth_mb: start.bandwidth,
    };
    let table = start_table::listing(&start.ranks, place)?.text();
    Ok(table + "\n" + &start_table::legend(place))
}

impl Measured {
    fn read(&self) -> Said<Measurements> {
        let Some(file) = self.measured.as_deref() else {
            return Ok(Measurements::default());
        };
        let named = |e: &dyn std::error::Error| format!("{}: {e}", Path::display(file));
        let text = std::fs::read_to_string(file).map_err(|e| named(&e))?;
        Ok(Measurements::parse(&text).map_err(|e| named(&e))?)
    }
}

fn man() -> Said<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Options::command())
        .render(&mut text)
        .map_err(|e| format!("cannot make the manual page: {e}"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The selection table that a program started here would use.
fn rows_in_force() -> Said<Table> {
    let front = kw_sys::environment::variable("KW_COLL").unwrap_or_default();
    let read = |file: &str| std::fs::read_to_string(file);
    Ok(Table::with_files(&front, read).map_err(|e| format!("KW_COLL: {e}"))?)
}

fn place(c: &choices::Choice) -> [String; 5] {
    let path = if c.place.network { "net" } else { "shm" };
    let load = if c.place.shared { "shared" } else { "free" };
    let procs = c.place.procs.to_string();
    let words = [c.coll, path, load, &procs, &c.bytes.to_string()];
    words.map(str::to_string)
}

fn choice_table(rows: &Table, models: &Measurements) -> String {
    let row = |c: &choices::Choice| {
        let mut cells = place(c).to_vec();
        cells.push(c.predicted.map_or("-".into(), |t| format!("{t:.2}")));
        cells.push(c.chosen.clone());
        cells
    };
    let rows: Vec<_> = choices::choices(rows, models).iter().map(row).collect();
    let head = vec![
        "Collective",
        "Path",
        "Load",
        "Ranks",
        "Bytes",
        "us",
        "Algorithm",
    ];
    Listing { head, rows }.text()
}

/// How far the judgement goes.
fn extent((judged, left): (usize, Vec<(String, usize)>)) -> String {
    if left.is_empty() {
        return format!("All {judged} choices were judged.\n");
    }
    let listed: Vec<String> = left.iter().map(|(what, n)| format!("{what} {n}")).collect();
    let sum: usize = left.iter().map(|n| n.1).sum();
    format!(
        "{judged} choices were judged; {sum} were not, because the algorithm chosen there was not measured (kwlab tune measures): {}.\n",
        listed.join(", ")
    )
}

fn better_table(found: &[choices::Better]) -> String {
    if found.is_empty() {
        return "No substitute is quicker by more than a tenth.\n".into();
    }
    let row = |b: &choices::Better| {
        let mut cells = place(&b.choice).to_vec();
        cells.push(b.choice.chosen.clone());
        cells.push(b.choice.predicted.map_or("-".into(), |t| format!("{t:.2}")));
        cells.push(format!("{:.2}", b.predicted));
        cells.push(b.instead.clone());
        cells
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    let head = vec![
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
    Listing { head, rows }.text()
}
