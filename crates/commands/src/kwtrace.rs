//! `kwtrace`: shows a trace of an MPI program as text, as a page or picture, or exports it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use kw_trace::analysis::{Analysis, analyse};
use kw_trace::example::{self, Stencil};
use kw_trace::export::{self, Form};
use kw_trace::model::Trace;
use kw_trace::part::{self, Part};
use kw_trace::{page, picture, read, summary};

/// Show where the time of an MPI program went, from a trace written by `mpiexec --trace FILE`.
#[derive(Parser, Debug)]
#[command(name = "kwtrace", version, arg_required_else_help = true)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// The five largest losses: which ranks wait for which, where, how long, and what would help
    Summary(Which),
    /// The timeline as a self-contained HTML page
    View(Drawn),
    /// The timeline as an SVG picture
    Picture(Drawn),
    /// Calls and messages as JSON or CSV, on standard output
    Export(Exported),
    /// An artificial trace
    #[command(hide = true)]
    Example(Made),
    /// The manual page
    #[command(hide = true)]
    Man,
}

/// A trace, or a part of it.
#[derive(Args, Debug)]
struct Which {
    /// The trace
    file: PathBuf,
    /// Only the phase from MPI_Pcontrol(LEVEL) to the next MPI_Pcontrol
    #[arg(long, value_name = "LEVEL", conflicts_with_all = ["from", "to"])]
    phase: Option<i64>,
    /// Start of the shown interval, in seconds after the first MPI call
    #[arg(long, value_name = "SECONDS")]
    from: Option<f64>,
    /// End of the shown interval, in seconds after the first MPI call
    #[arg(long, value_name = "SECONDS")]
    to: Option<f64>,
}

#[derive(Args, Debug)]
struct Drawn {
    #[command(flatten)]
    which: Which,
    /// Output file [default: the trace's name with .html or .svg]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct Exported {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    form: FormOptions,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct FormOptions {
    /// One object with two lists, calls and messages
    #[arg(long)]
    json: bool,
    /// Two tables, calls and messages, separated by an empty line
    #[arg(long)]
    csv: bool,
}

#[derive(Args, Debug)]
struct Made {
    /// The file
    file: PathBuf,
    /// Ranks per row of the grid
    #[arg(long, default_value_t = 4)]
    columns: u32,
    /// Rows of ranks
    #[arg(long, default_value_t = 4)]
    rows: u32,
    /// Steps
    #[arg(long, default_value_t = 64)]
    steps: u32,
    /// A ring of this many ranks instead of a grid
    #[arg(long)]
    ring: Option<u32>,
}

/// Runs it with these arguments, the first of which is its name.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(Options::parse_from(words).what) {
        // a reader that closes the pipe early is not an error
        Err(Failure::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kwtrace: {failure}");
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}: {1}")]
    Trace(String, read::Fault),
    #[error("{0}: {1}")]
    Part(String, part::Fault),
    #[error("{0} cannot be written: {1}")]
    File(String, io::Error),
    #[error("cannot write standard output: {0}")]
    Output(#[from] io::Error),
}

fn run(what: What) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match what {
        What::Summary(which) => {
            let (trace, analysis) = load(&which)?;
            out.write_all(summary::text(&trace, &analysis).as_bytes())?;
        }
        What::View(drawn) => writeln!(out, "{}", draw(&drawn, "html", page::page)?)?,
        What::Picture(drawn) => writeln!(out, "{}", draw(&drawn, "svg", titled)?)?,
        What::Export(Exported { which, form }) => {
            let (trace, analysis) = load(&which)?;
            warn(&which.file, &trace);
            let form = if form.json { Form::Json } else { Form::Csv };
            export::write(&trace, &analysis, form, &mut out)?;
        }
        What::Example(made) => save(&made.file, &example(&made))?,
        What::Man => manual(&mut out)?,
    }
    Ok(out.flush()?)
}

/// Draws a trace and prints the name of the output file.
fn draw(
    drawn: &Drawn,
    ending: &str,
    form: fn(&Trace, &Analysis, &str) -> String,
) -> Result<String, Failure> {
    let file = &drawn.which.file;
    let (trace, analysis) = load(&drawn.which)?;
    warn(file, &trace);
    let output = drawn.output.clone();
    let output = output.unwrap_or_else(|| beside(file, ending));
    let name = file.file_name().unwrap_or(file.as_os_str());
    let text = form(&trace, &analysis, &name.to_string_lossy());
    save(&output, text.as_bytes())?;
    Ok(output.display().to_string())
}

fn titled(trace: &Trace, analysis: &Analysis, name: &str) -> String {
    picture::svg(trace, analysis, &picture::title(trace, name))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// The trace in a file, or the requested part of it.
fn load(which: &Which) -> Result<(Trace, Analysis), Failure> {
    let file = &which.file;
    let fault = |why| Failure::Trace(file.display().to_string(), why);
    let opened = File::open(file).map_err(|e| fault(e.into()))?;
    let mut trace = read::read(BufReader::with_capacity(1 << 20, opened)).map_err(fault)?;
    if let Some(wanted) = wanted(which) {
        let fault = |why| Failure::Part(file.display().to_string(), why);
        trace = part::part(trace, wanted).map_err(fault)?;
    }
    let analysis = analyse(&trace);
    Ok((trace, analysis))
}

fn wanted(which: &Which) -> Option<Part> {
    // a value below zero or not a number becomes 0, one that is too large the maximum
    let time = |seconds: f64| (seconds * 1e9) as u64;
    match (which.phase, which.from, which.to) {
        (Some(level), _, _) => Some(Part::Phase(level)),
        (None, None, None) => None,
        (None, from, to) => Some(Part::Between(
            from.map_or(0, time),
            to.map_or(u64::MAX, time),
        )),
    }
}

/// Notes about the trace that the output itself does not show.
fn warn(file: &Path, trace: &Trace) {
    for note in &trace.notes {
        eprintln!("kwtrace: {}: {note}", file.display());
    }
}

fn save(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, bytes).map_err(|e| Failure::File(file.display().to_string(), e))
}

fn example(made: &Made) -> Vec<u8> {
    let (width, height) = (made.columns.clamp(1, 64), made.rows.clamp(1, 64));
    match made.ring {
        Some(ranks) => example::ring(ranks.max(2), made.steps),
        None => Stencil {
            grid: (width, height),
            steps: made.steps,
            work: 400_000,
            slow: width * height / 3,
            more: 35,
        }
        .bytes(),
    }
}

fn manual(out: &mut impl Write) -> io::Result<()> {
    let man = clap_mangen::Man::new(Options::command());
    man.render(out)
}
