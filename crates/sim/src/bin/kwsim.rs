//! `kwsim`: starts of large jobs in virtual time, and the choices of the selection table judged by
//! fitted models.
#![forbid(unsafe_code)]

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
    /// How much longer than the best measured algorithm the chosen ones take (KW_COLL counts)
    Regret(Measured),
    /// What is chosen on a machine that is described, what would be best there, and the regret, all
    /// by simulation (KW_COLL counts)
    Machine(Described),
    /// The simulator against the measurements of a machine: its errors
    Check(Checked),
    /// The closed forms that choices are priced with against the simulator: their errors; the status
    /// is 1 when an algorithm's are larger than they may be
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

#[derive(Args, Debug)]
struct Described {
    /// Which machine; all of them when none is named
    name: Option<String>,
    /// Collectives that are looked at
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ops: Vec<String>,
    /// Bytes that are looked at
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// The last lines alone
    #[arg(long)]
    summary: bool,
    /// Choose by the prices that hold where nothing was measured
    #[arg(long)]
    unmeasured: bool,
    /// What the rows of a description are
    #[arg(long)]
    prices: bool,
}

#[derive(Args, Debug)]
struct Formed {
    /// Numbers of ranks of one host
    #[arg(value_delimiter = ',', default_value = "2,3,4,5,8,13,16,32")]
    ranks: Vec<u32>,
    /// The machine whose prices hold
    #[arg(long, value_name = "NAME", default_value = "64-cores")]
    machine: String,
    /// Every call of this algorithm
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Ranks of each host; all of them where it is not given. On several hosts only the algorithms
    /// for several are held
    #[arg(long, value_name = "RANKS")]
    per_host: Option<u32>,
    /// With the sockets and caches of the machine: the algorithms for several domains are held
    #[arg(long)]
    domains: bool,
    /// Bytes that are looked at
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
    /// Every root, and not rank 0 alone
    #[arg(long)]
    roots: bool,
}

#[derive(Args, Debug)]
struct Checked {
    /// Every point, and not the means alone
    #[arg(long)]
    points: bool,
    /// Descriptions of the machine that was measured, over shared memory and over a network within
    /// it, as those of crates/sim/machines
    #[arg(long, num_args = 2, value_names = ["SHM", "NET"])]
    described: Vec<PathBuf>,
    #[command(flatten)]
    of: Measured,
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

/// What is chosen on machines that are described.
fn machines(of: &Described) -> Said<String> {
    if of.prices {
        return Ok(kw_sim::machine::legend());
    }
    let all = Machine::all();
    let named = |m: &&Machine| of.name.as_ref().is_none_or(|n| *n == m.name);
    let chosen: Vec<&Machine> = all.iter().filter(named).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
        return Err(format!("no machine is called so; there are {}", names.join(", ")).into());
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

/// How well the closed forms do.
fn formed(of: &Formed) -> Said<(String, ExitCode)> {
    let all = Machine::all();
    let machine = all.iter().find(|m| m.name == of.machine);
    let machine = machine.ok_or("no machine is called so")?;
    let machine = match of.domains {
        true => forms::with_domains(machine),
        false => forms::open(machine),
    };
    let ranks = match of.to {
        Some(most) => (2..=most).collect(),
        None => of.ranks.clone(),
    };
    let host = |n| (n, of.per_host.unwrap_or(n));
    // Fewer are on one host, or in one domain.
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
        false => format!("More than is allowed: {}.\n", wrong.join(", ")),
    };
    let status = ExitCode::from(u8::from(!wrong.is_empty()));
    Ok((listing.text() + &sentence, status))
}

/// How well the simulator does where there are measurements.
fn checked(of: &Checked) -> Said<String> {
    let (table, measured) = (Table::default(), of.of.read()?);
    let all = match of.described.as_slice() {
        [] => Machine::all(),
        files => files.iter().map(|f| description(f)).collect::<Said<_>>()?,
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

/// A description that does not come with the simulator.
fn description(file: &Path) -> Said<Machine> {
    let text = std::fs::read_to_string(file).map_err(|e| named(file, &e))?;
    let machine = Machine::parse(&file.to_string_lossy(), &text);
    Ok(machine.map_err(|e| named(file, &e))?)
}

/// What is wrong with a file.
fn named(file: &Path, wrong: &dyn std::error::Error) -> String {
    format!("{}: {wrong}", file.display())
}

impl Measured {
    fn read(&self) -> Said<Measurements> {
        let Some(file) = self.measured.as_deref() else {
            return Ok(Measurements::default());
        };
        let text = std::fs::read_to_string(file).map_err(|e| named(file, &e))?;
        Ok(Measurements::parse(&text).map_err(|e| named(file, &e))?)
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

/// The same where all ranks are on one host, as they were when choices were measured.
fn rows_of_a_host() -> Said<Table> {
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
