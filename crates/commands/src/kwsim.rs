//! `kwsim`: simulates the start of large jobs, and evaluates the selection of collective algorithms
//! by simulation and fitted models.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use kw_coll::Table;
use kw_coll::cost::Prices;
use kw_launch::listing::{self, Listing};
use kw_sim::machine::forms::Roots;
use kw_sim::machine::{Machine, calls, check, forms, regret};
use kw_sim::model::Measurements;
use kw_sim::{choices, start_table};

/// Simulate large jobs and other machines, and evaluate the selection of collective algorithms.
#[derive(Parser, Debug)]
#[command(name = "kwsim", version, arg_required_else_help = true)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Simulate the start of jobs with the given numbers of ranks, up to the first barrier
    Start(Start),
    /// The algorithm chosen for each collective, by location and size, with its predicted time (honours
    /// KW_COLL)
    Choices(Measured),
    /// Cases in which another algorithm, or two collectives in sequence, would be more than 10 %
    /// faster; exit status 1 if there are any
    Consistency(Measured),
    /// Time of the chosen algorithms relative to the best measured ones (honours KW_COLL)
    Regret(Measured),
    /// Chosen and best algorithms on a described machine, and the regret, by simulation (honours
    /// KW_COLL)
    Machine(Described),
    /// Errors of the simulator relative to measurements of a machine
    Check(Checked),
    /// Errors of the closed-form costs relative to the simulator; exit status 1 if an error exceeds
    /// its limit
    Forms(Formed),
    /// The manual page
    #[command(hide = true)]
    Man,
}

#[derive(Args, Debug)]
struct Start {
    /// Numbers of ranks
    #[arg(required = true, value_delimiter = ',')]
    ranks: Vec<u32>,
    /// Ranks per host
    #[arg(long, value_name = "RANKS", default_value_t = 32)]
    per_host: u32,
    /// Latency between hosts in microseconds
    #[arg(long, value_name = "US", default_value_t = 50)]
    latency: u32,
    /// Bandwidth between hosts in MB/s
    #[arg(long, value_name = "MB", default_value_t = 125)]
    bandwidth: u32,
}

#[derive(Args, Debug)]
struct Measured {
    /// Measurements of this machine, written by `kwlab tune`
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct Described {
    /// Name of the machine [default: all]
    name: Option<String>,
    /// Collectives to evaluate
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ops: Vec<String>,
    /// Message sizes in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// Print the summary only
    #[arg(long)]
    summary: bool,
    /// Choose by the built-in prices of an uncalibrated host
    #[arg(long)]
    unmeasured: bool,
    /// Explain the rows of a machine description
    #[arg(long)]
    prices: bool,
}

#[derive(Args, Debug)]
struct Formed {
    /// Numbers of ranks on one host
    #[arg(value_delimiter = ',', default_value = "2,3,4,5,8,13,16,32")]
    ranks: Vec<u32>,
    /// The machine whose prices are used
    #[arg(long, value_name = "NAME", default_value = "64-cores")]
    machine: String,
    /// Show every call of this algorithm
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Ranks per host [default: all on one host]. With several hosts, only algorithms for several hosts
    /// are evaluated
    #[arg(long, value_name = "RANKS")]
    per_host: Option<u32>,
    /// Use the machine's sockets and caches: evaluate the algorithms for several domains
    #[arg(long)]
    domains: bool,
    /// Message sizes in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "8,256,2048,32768,1048576"
    )]
    sizes: Vec<u64>,
    /// Every number of ranks from 2 to this one
    #[arg(long, value_name = "RANKS", conflicts_with = "ranks")]
    to: Option<u32>,
    /// All roots, not only rank 0
    #[arg(long)]
    roots: bool,
}

#[derive(Args, Debug)]
struct Checked {
    /// All points, not only the means
    #[arg(long)]
    points: bool,
    /// Descriptions of the measured machine, over shared memory and over a network within it, in the
    /// format of crates/sim/machines
    #[arg(long, num_args = 2, value_names = ["SHM", "NET"])]
    described: Vec<PathBuf>,
    #[command(flatten)]
    of: Measured,
}

/// Runs it with these arguments, the first of which is its name.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match tell(Options::parse_from(words).what) {
        Ok((out, status)) => listing::print("kwsim", &out, status),
        Err(what) => {
            let _ = writeln!(std::io::stderr(), "kwsim: {what}");
            ExitCode::from(2)
        }
    }
}

/// Output or error.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Runs a command; returns its output and exit status.
fn tell(what: What) -> Outcome<(String, ExitCode)> {
    let out = match what {
        What::Start(start) => starts(&start)?,
        What::Man => man()?,
        What::Machine(of) => machines(&of)?,
        What::Forms(of) => return formed(&of),
        What::Check(check) => checked(&check)?,
        What::Choices(of) => choice_table(&rows_of_a_host()?, &of.read()?),
        What::Regret(of) => regret_table(&choices::regret(&rows_of_a_host()?, &of.read()?)),
        What::Consistency(of) => {
            let (table, models) = (rows_of_a_host()?, of.read()?);
            let found = choices::inconsistencies(&table, &models);
            let judged = extent(choices::judged(&table, &models));
            let status = ExitCode::from(u8::from(!found.is_empty()));
            return Ok((better_table(&found) + &judged, status));
        }
    };
    Ok((out, ExitCode::SUCCESS))
}

/// Table of simulated starts, with a legend.
fn starts(start: &Start) -> Outcome<String> {
    let place = start_table::Hardware {
        per_host: start.per_host,
        latency_us: start.latency,
        bandwidth_mb: start.bandwidth,
    };
    let table = start_table::listing(&start.ranks, place)?.text();
    Ok(table + "\n" + &start_table::legend(place))
}

/// Choices on described machines.
fn machines(of: &Described) -> Outcome<String> {
    if of.prices {
        return Ok(kw_sim::machine::legend());
    }
    let all = Machine::all();
    let named = |m: &&Machine| of.name.as_ref().is_none_or(|n| *n == m.name);
    let chosen: Vec<&Machine> = all.iter().filter(named).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
        return Err(format!("unknown machine; known machines: {}", names.join(", ")).into());
    }
    let table = rows_in_force()?;
    let sizes = if of.sizes.is_empty() {
        &regret::SIZES[..]
    } else {
        &of.sizes
    };
    let (mut text, mut last) = (String::new(), String::new());
    for machine in chosen {
        let table = match of.unmeasured {
            true => table.clone(),
            false => table.clone().priced(machine.prices),
        };
        let cases = regret::cases(machine, sizes);
        let asked =
            |c: &&calls::Case| of.ops.is_empty() || of.ops.iter().any(|o| o == c.coll.name());
        let mut cells = Vec::new();
        for case in cases.iter().filter(asked) {
            cells.extend(regret::judge(case, &table)?);
        }
        if !of.summary {
            let listing = Listing {
                head: regret::HEAD.to_vec(),
                rows: cells.iter().map(regret::row).collect(),
            };
            text += &format!("{}\n{}\n", machine.name, listing.text());
        }
        last += &(machine.name.clone() + ": " + &regret::sentence(&cells));
    }
    Ok(text + &last)
}

/// Errors of the closed forms.
fn formed(of: &Formed) -> Outcome<(String, ExitCode)> {
    let all = Machine::all();
    let machine = all.iter().find(|m| m.name == of.machine);
    let machine = machine.ok_or("unknown machine")?;
    let machine = match of.domains {
        true => forms::with_domains(machine),
        false => forms::open(machine),
    };
    let ranks = match of.to {
        Some(most) => (2..=most).collect(),
        None => of.ranks.clone(),
    };
    let host = |n| (n, of.per_host.unwrap_or(n));
    // Fewer ranks are on one host, or in one domain.
    let near = of.per_host.or(of.domains.then(|| machine.cache_cores()));
    let apart = ranks
        .into_iter()
        .filter(|n| near.is_none_or(|near| *n > near));
    let ranks: Vec<(u32, u32)> = apart.map(host).collect();
    let roots = if of.roots { Roots::Every } else { Roots::First };
    let points = forms::points(&machine, &ranks, (&of.sizes, roots), &Table::default())?;
    if let Some(name) = &of.algorithm {
        let line = |p: &forms::Point| {
            format!(
                "{} ranks, {} bytes, root {}, /{}: {:.2} us, simulated {:.2}, {:+.0} %\n",
                p.call.0,
                p.call.1,
                p.call.2,
                p.param,
                p.form / 1000.0,
                p.simulated / 1000.0,
                100.0 * p.error()
            )
        };
        let these = points.iter().filter(|p| p.algorithm == *name);
        return Ok((these.map(line).collect(), ExitCode::SUCCESS));
    }
    let listing = Listing {
        head: forms::HEAD.to_vec(),
        rows: forms::rows(&points),
    };
    let wrong = forms::beyond(&points);
    let sentence = match wrong.is_empty() {
        true => format!(
            "All {} calls are within what their algorithm is allowed.\n",
            points.iter().filter(|p| p.held).count()
        ),
        false => format!("Errors above the limit: {}.\n", wrong.join(", ")),
    };
    let status = ExitCode::from(u8::from(!wrong.is_empty()));
    Ok((listing.text() + &sentence, status))
}

/// Errors of the simulator.
fn checked(of: &Checked) -> Outcome<String> {
    let (table, measured) = (Table::default(), of.of.read()?);
    let all = match of.described.as_slice() {
        [] => Machine::all(),
        files => files
            .iter()
            .map(|f| description(f))
            .collect::<Outcome<_>>()?,
    };
    let points = check::points([&all[0], &all[1]], &measured, &table)?;
    let mut text = String::new();
    if of.points {
        for p in &points {
            text += &format!(
                "{} {} {} {} {}: measured {:.2} us, simulated {:.2} us, {:+.0} %\n",
                p.coll.name(),
                if p.place.network { "net" } else { "shm" },
                p.place.procs,
                p.algorithm,
                p.bytes,
                p.measured,
                p.simulated,
                100.0 * p.error()
            );
        }
    }
    let listing = Listing {
        head: check::HEAD.to_vec(),
        rows: check::rows(&points),
    };
    Ok(text + &listing.text() + &check::sentences(&points))
}

/// A machine description from a file.
fn description(file: &Path) -> Outcome<Machine> {
    let text = std::fs::read_to_string(file).map_err(|e| named(file, &e))?;
    let machine = Machine::parse(&file.to_string_lossy(), &text);
    Ok(machine.map_err(|e| named(file, &e))?)
}

/// Error about a file.
fn named(file: &Path, wrong: &dyn std::error::Error) -> String {
    format!("{}: {wrong}", file.display())
}

impl Measured {
    fn read(&self) -> Outcome<Measurements> {
        let Some(file) = self.measured.as_deref() else {
            return Ok(Measurements::default());
        };
        let text = std::fs::read_to_string(file).map_err(|e| named(file, &e))?;
        Ok(Measurements::parse(&text).map_err(|e| named(file, &e))?)
    }
}

fn man() -> Outcome<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Options::command())
        .render(&mut text)
        .map_err(|e| format!("cannot make the manual page: {e}"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Selection table of a program started here.
fn rows_in_force() -> Outcome<Table> {
    let front = kw_sys::environment::variable("KW_COLL").unwrap_or_default();
    let read = |file: &str| std::fs::read_to_string(file);
    Ok(Table::with_files(&front, read).map_err(|e| format!("KW_COLL: {e}"))?)
}

/// Selection table for ranks on one host, as in the measurements.
fn rows_of_a_host() -> Outcome<Table> {
    Ok(rows_in_force()?.priced(Prices::start().on_one_host()))
}

fn regret_table(all: &[choices::Regret]) -> String {
    let row = |r: &choices::Regret| {
        let (worst, ranks, bytes) = r.worst;
        let words = [
            r.coll,
            if r.place.0 { "net" } else { "shm" },
            if r.place.1 { "shared" } else { "free" },
            &r.judged.to_string(),
            &format!("{:.3}", r.mean),
            &format!("{worst:.2} ({ranks} ranks, {bytes} bytes)"),
        ];
        words.map(str::to_string).to_vec()
    };
    let head = vec!["Collective", "Path", "Load", "Judged", "Mean", "Worst"];
    let judged: usize = all.iter().map(|r| r.judged).sum();
    let logs: f64 = all.iter().map(|r| r.judged as f64 * r.mean.ln()).sum();
    let rows = all.iter().map(row).collect();
    let mean = (logs / judged.max(1) as f64).exp();
    Listing { head, rows }.text() + &format!("All {judged}: {mean:.4}\n")
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
        cells.push(predicted(c));
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

/// The predicted time of a choice in microseconds.
fn predicted(choice: &choices::Choice) -> String {
    choice.predicted.map_or("-".into(), |t| format!("{t:.2}"))
}

/// Number of choices that were evaluated.
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
        cells.push(predicted(&b.choice));
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
