//! `kwtrace`: what a trace of an MPI program says, in words, as a page, and for other programs.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use kw_trace::analysis::{Analysis, analyse};
use kw_trace::example::{self, Stencil};
use kw_trace::export::{self, Form};
use kw_trace::model::Trace;
use kw_trace::{page, read, summary};

/// Shows where the time of an MPI program went: reads the traces that `mpiexec --trace FILE` writes.
#[derive(Parser, Debug)]
#[command(name = "kwtrace", version, arg_required_else_help = true)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// The five largest losses in words: who waits for whom, where, how long, what would help
    Summary {
        /// The trace
        file: PathBuf,
    },
    /// The time line as one page of HTML, which needs no network
    View {
        /// The trace
        file: PathBuf,
        /// Where the page goes; FILE with .html at its end where it is not given
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Calls and messages for other programs, on standard output
    Export(Exported),
    /// A trace that is made up
    #[command(hide = true)]
    Example(Made),
    /// The manual page
    #[command(hide = true)]
    Man,
}

#[derive(Args, Debug)]
struct Exported {
    /// The trace
    file: PathBuf,
    #[command(flatten)]
    form: FormOptions,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct FormOptions {
    /// One object with two lists, calls and messages
    #[arg(long)]
    json: bool,
    /// Two tables, calls and messages, with an empty line between them
    #[arg(long)]
    csv: bool,
}

#[derive(Args, Debug)]
struct Made {
    /// The file
    file: PathBuf,
    /// Ranks beside each other
    #[arg(long, default_value_t = 4)]
    columns: u32,
    /// Ranks below each other
    #[arg(long, default_value_t = 4)]
    rows: u32,
    /// Steps
    #[arg(long, default_value_t = 64)]
    steps: u32,
    /// A ring of so many ranks instead
    #[arg(long)]
    ring: Option<u32>,
}

fn main() -> ExitCode {
    match run(Options::parse().what) {
        // a reader that has had enough is no fault
        Err(Failure::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kwtrace: {failure}");
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Why a command has not done what it was asked for.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}: {1}")]
    Trace(String, read::Fault),
    #[error("{0} cannot be written: {1}")]
    File(String, io::Error),
    #[error("cannot write standard output: {0}")]
    Output(#[from] io::Error),
}

fn run(what: What) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match what {
        What::Summary { file } => {
            let (trace, analysis) = load(&file)?;
            out.write_all(summary::text(&trace, &analysis).as_bytes())?;
        }
        What::View { file, output } => {
            let (trace, analysis) = load(&file)?;
            let output = output.unwrap_or_else(|| beside(&file));
            warn(&file, &trace);
            let title = file
                .file_name()
                .unwrap_or(file.as_os_str())
                .to_string_lossy();
            let text = page::page(&trace, &analysis, &title);
            save(&output, text.as_bytes())?;
            writeln!(out, "{}", output.display())?;
        }
        What::Export(Exported { file, form }) => {
            let (trace, analysis) = load(&file)?;
            warn(&file, &trace);
            let form = if form.json { Form::Json } else { Form::Csv };
            export::write(&trace, &analysis, form, &mut out)?;
        }
        What::Example(made) => save(&made.file, &example(&made))?,
        What::Man => manual(&mut out)?,
    }
    Ok(out.flush()?)
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".html");
    name.into()
}

/// The trace of a file.
fn load(file: &Path) -> Result<(Trace, Analysis), Failure> {
    let fault = |why| Failure::Trace(file.display().to_string(), why);
    let opened = File::open(file).map_err(|e| fault(e.into()))?;
    let trace = read::read(BufReader::with_capacity(1 << 20, opened)).map_err(fault)?;
    let analysis = analyse(&trace);
    Ok((trace, analysis))
}

/// What is to be known of the trace, where the output does not say it to whoever runs this.
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
