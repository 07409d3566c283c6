//! `kwsim`: simulates the start of large jobs, and evaluates the selection of collective algorithms
//! by simulation.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use kw_coll::Table;
use kw_launch::listing::{self, Listing};
use kw_sim::machine::forms::Roots;
use kw_sim::machine::{Machine, calls, check, forms, regret};
use kw_sim::start_table;

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
    /// Measurements of forced algorithms: collective, algorithm, shm or net, free or shared (cores),
    /// ranks, bytes, microseconds. `kwlab check` writes them from the file of a measured machine
    measured: PathBuf,
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
    let file = of.measured.as_path();
    let text = std::fs::read_to_string(file).map_err(|e| named(file, &e))?;
    let measured = check::Measured::parse(&text).map_err(|e| named(file, &e))?;
    let table = Table::default();
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
