//! `kwinfo`: what this Kittiwake is, has built, and lets itself be told.

use clap::Parser;
use kw_base::{counters, knobs};

/// Which functions of MPI 5.0 are built.
const COVERAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/coverage.txt"));

/// What this Kittiwake is, has built, and lets itself be told.
#[derive(Parser, Debug)]
#[command(name = "kwinfo", version, arg_required_else_help = true)]
struct Options {
    /// Which functions of MPI 5.0 are built.
    #[arg(long)]
    coverage: bool,
    /// Every knob: environment variable, default, value in this environment, meaning.
    #[arg(long)]
    knobs: bool,
    /// Every counter, with unit and meaning.
    #[arg(long)]
    counters: bool,
}

fn main() {
    let options = Options::parse();
    let mut out = String::new();
    if options.coverage {
        out.push_str(COVERAGE);
    }
    if options.knobs {
        out.push_str(&knob_table());
    }
    if options.counters {
        out.push_str(&counter_table());
    }
    print(&out);
}

/// Prints, and does not complain when the reader has had enough.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn knob_table() -> String {
    knobs::ALL
        .iter()
        .map(|k| {
            let here = match std::env::var(k.name) {
                Ok(value) => format!("{value} (set; default {})", k.default),
                Err(_) => k.default.to_string(),
            };
            format!("{}={here}\n    {} Memory: {}.\n", k.name, k.help, k.memory)
        })
        .collect()
}

fn counter_table() -> String {
    counters::ALL
        .iter()
        .map(|(name, unit, help)| format!("{name:<20} {unit:<12} {help}\n"))
        .collect()
}
