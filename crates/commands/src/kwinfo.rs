//! `kwinfo` shows version, supported functions, settings and counters.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use kw_base::settings::{self, Kind};
use kw_coll::algorithms;
use kw_launch::COVERAGE;
use kw_launch::ask::{Question, ask};
use kw_launch::calibrate;
use kw_launch::doctor;
use kw_launch::hosts;
use kw_launch::libraries;
use kw_launch::listing::{self, Listing};
use kw_launch::tuning;
use kw_launch::verify::ranks;
use kw_launch::wanted::Wanted;

/// Exit status after a wrong command line.
const MISUSE: u8 = 2;
/// Largest job for which choices are shown.
const MOST_RANKS: i64 = 1 << 20;

/// Show version, supported functions, settings and counters.
#[derive(Parser, Debug)]
#[command(name = "kwinfo", version, arg_required_else_help = true)]
struct Options {
    /// Which functions of MPI 5.0 are supported
    #[arg(long)]
    coverage: bool,
    /// All settings: environment variable, default, value in this environment, meaning
    #[arg(long)]
    settings: bool,
    /// All counters, with unit and meaning
    #[arg(long)]
    counters: bool,
    /// All events for which a tool can register through MPI_T
    #[arg(long)]
    events: bool,
    /// The page docs/tuning.md: settings, counters, events and how to use them
    #[arg(long)]
    tuning: bool,
    /// All collective algorithms and their requirements
    #[arg(long)]
    algorithms: bool,
    /// Calibrate this host (0.2 s), verify the result as --verify does, and save it for jobs that
    /// start here
    #[arg(long)]
    calibrate: bool,
    /// With --calibrate: save the result without verifying it
    #[arg(long, requires = "calibrate")]
    no_verify: bool,
    /// Verify the calibration in use (some seconds): time messages and collectives on this host as
    /// chosen and with each alternative forced. A calibration that is slower than the built-in values
    /// is discarded; the exit status is 1 then, and if a choice takes more than 1.15 times as long as
    /// an alternative
    #[arg(long, conflicts_with = "calibrate")]
    verify: bool,
    /// Protocols and algorithms that a job started here would choose, with the calibration behind them
    #[arg(long)]
    choices: bool,
    /// With --choices: number of ranks of the job
    #[arg(short = 'n', long, value_name = "RANKS", requires = "choices", conflicts_with = "job", value_parser = clap::value_parser!(u32).range(1..=MOST_RANKS))]
    ranks: Option<u32>,
    /// With -n: number of hosts, all like this one, filled one after the other. With --doctor: these
    /// hosts (a,b)
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,
    /// With -n: cores per host [default: as on this one]
    #[arg(long, value_name = "CORES", requires = "ranks")]
    cores: Option<u32>,
    /// With -n: domains of each host's ranks as in KW_DOMAINS (0.0.1.1) [default: those to which
    /// mpiexec would bind ranks here]
    #[arg(long, value_name = "DOMAINS", requires = "ranks")]
    domains: Option<String>,
    /// With --choices: print tab-separated values with exact numbers
    #[arg(long, requires = "choices", conflicts_with = "job")]
    tsv: bool,
    /// Check this machine: what makes programs slow or keeps them from running, and what to do about
    /// it; with --hosts, also whether those hosts reach each other. Paste the output into a bug report
    #[arg(long, conflicts_with = "job")]
    doctor: bool,
    /// Directories of this installation
    #[arg(long)]
    paths: bool,
    /// Make the mpiexec with this process id print where every rank is, what it waits for and, with
    /// --profile, the profile so far; or, with --choices, what its job chooses
    #[arg(long, value_name = "PID")]
    job: Option<u32>,
    /// In a job that verifies a calibration: times these operations
    #[arg(long, hide = true, value_name = "CELLS")]
    measure: Option<String>,
    /// The manual page
    #[arg(long, hide = true)]
    man: bool,
    /// On a host that the doctor looks at: answers it
    #[arg(long, hide = true)]
    doctor_peer: bool,
    /// The doctor's second process: reads a word of another one, PID:ADDRESS
    #[arg(long, hide = true, value_name = "PLACE")]
    doctor_reads: Option<String>,
}

/// Runs it with these arguments, the first of which is its name.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let options = Options::parse_from(words);
    if options.doctor_peer {
        return match doctor::between::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE, // the reader has closed the pipe
        };
    }
    if let Some(cells) = &options.measure {
        return measure(cells);
    }
    let (mut text, mut code) = (String::new(), ExitCode::SUCCESS);
    if options.calibrate || options.verify {
        let (part, good) = match options.calibrate {
            true => calibrate::calibrate(!options.no_verify),
            false => calibrate::verify_known(),
        };
        text += &part;
        code = if good { code } else { ExitCode::FAILURE };
    }
    let question = match options.choices {
        true => Question::Choices,
        false => Question::Ranks,
    };
    match options.job.map(|pid| ask(pid, question)) {
        Some(Ok(more)) => text += &more,
        Some(Err(why)) => {
            eprintln!("kwinfo: {why}");
            code = ExitCode::FAILURE;
        }
        None => {}
    }
    text += &tell(&options);
    if options.doctor {
        match named(&options) {
            Ok(hosts) => {
                let (page, well) = doctor::page(&hosts);
                text += &page;
                code = if well { code } else { ExitCode::FAILURE };
            }
            Err(why) => {
                eprintln!("kwinfo: {why}");
                code = ExitCode::from(MISUSE);
            }
        }
    } else if options.hosts.is_some() && options.ranks.is_none() {
        eprintln!("kwinfo: --hosts says how many hosts -n has, or which ones --doctor looks at");
        code = ExitCode::from(MISUSE);
    }
    if options.choices && options.job.is_none() {
        match choices(&options) {
            Ok(more) => text += &more,
            Err(why) => {
                eprintln!("kwinfo: {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    listing::print("kwinfo", &text, code)
}

/// A rank of a job that verifies a calibration.
fn measure(cells: &str) -> ExitCode {
    let library = libraries::home().unwrap_or_default();
    match ranks::measure(cells, &library.join("lib/libmpi_abi.so.1")) {
        Ok(text) => listing::print("kwinfo", &text, ExitCode::SUCCESS),
        Err(why) => {
            eprintln!("kwinfo: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The hosts that the doctor examines.
fn named(options: &Options) -> Result<Vec<hosts::Host>, String> {
    let list = options.hosts.as_deref().map(hosts::list).transpose();
    list.map(Option::unwrap_or_default)
        .map_err(|bad| bad.sentence)
}

/// Number of hosts of a requested job.
fn how_many(options: &Options) -> Result<u32, String> {
    let text = options.hosts.as_deref().unwrap_or("1");
    text.parse()
        .map_err(|_| format!("--hosts is '{text}', but with -n it takes the number of hosts"))
}

/// Protocols and algorithms that a job would choose.
fn choices(options: &Options) -> Result<String, String> {
    let wanted = match options.ranks {
        None => None,
        Some(ranks) => Some(Wanted {
            ranks,
            hosts: how_many(options)?,
            cores: options.cores,
            domains: options.domains.clone(),
        }),
    };
    match options.tsv {
        true => calibrate::choices_for_programs(wanted.as_ref()),
        false => calibrate::choices(wanted.as_ref()),
    }
}

/// The requested sections.
fn tell(options: &Options) -> String {
    let mut out = String::new();
    let mut section = |wanted: bool, text: fn() -> String| {
        if wanted {
            out.push_str(&text());
        }
    };
    section(options.paths, paths);
    section(options.coverage, || COVERAGE.to_string());
    section(options.settings, setting_table);
    section(options.counters, || tuning::counters().text());
    section(options.events, || tuning::events().text());
    section(options.tuning, tuning::page);
    section(options.algorithms, algorithm_table);
    section(options.man, man);
    out += &options
        .doctor_reads
        .as_deref()
        .map(doctor::facts::read_for_first)
        .unwrap_or_default();
    out
}

/// The settings, with their values in this environment.
fn setting_table() -> String {
    let mut list = tuning::settings();
    list.head.insert(2, "Set here");
    for row in &mut list.rows {
        let here = std::env::var(&row[0]).unwrap_or_default();
        let secret = settings::ALL
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
    list.text()
}

fn algorithm_table() -> String {
    let row = |a: &algorithms::Algorithm| {
        [a.coll.name(), a.name, a.need.text()]
            .map(str::to_string)
            .to_vec()
    };
    Listing {
        head: vec!["Collective", "Algorithm", "Needs"],
        rows: algorithms::ALL.iter().map(row).collect(),
    }
    .text()
}

fn paths() -> String {
    let prefix = libraries::home().unwrap_or_default();
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
        row("library of MPICH's ABI", "lib/mpich/libmpi.so.12"),
        row("library of Open MPI's ABI", "lib/openmpi/libmpi.so.40"),
        row("Fortran compiler", "bin/mpifort"),
        row("Fortran library", "lib/libmpifort_abi.so.1"),
        row("Fortran sources", "share/kittiwake/fortran"),
        row("pkg-config", "lib/pkgconfig/kittiwake.pc"),
        row("manual", "share/man"),
    ];
    Listing {
        head: vec!["What", "Where"],
        rows: rows.to_vec(),
    }
    .text()
}

fn man() -> String {
    let mut text = Vec::new();
    match clap_mangen::Man::new(Options::command()).render(&mut text) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(e) => format!("kwinfo: cannot make the manual page: {e}\n"),
    }
}
