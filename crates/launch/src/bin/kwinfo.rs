//! `kwinfo`: what this Kittiwake is, has built, and lets itself be told.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use kw_base::{counters, knobs};

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
    /// Where this installation lies: commands, header, library
    #[arg(long)]
    paths: bool,
    /// The manual page
    #[arg(long, hide = true)]
    man: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut out = String::new();
    let mut section = |wanted: bool, text: fn() -> String| {
        if wanted {
            out.push_str(&text());
        }
    };
    section(options.paths, paths);
    section(options.coverage, || COVERAGE.to_string());
    section(options.knobs, knob_table);
    section(options.counters, counter_table);
    section(options.man, man);
    match std::io::stdout().write_all(out.as_bytes()) {
        // a reader that has had enough is no fault
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(
                std::io::stderr(),
                "kwinfo: cannot write standard output: {e}"
            );
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
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

fn knob_table() -> String {
    let row = |k: &knobs::Knob| {
        let here = std::env::var(k.name).unwrap_or_default();
        let memory = match k.memory {
            "none" => String::new(),
            m => format!(" Memory: {m}."),
        };
        vec![
            k.name.to_string(),
            k.default.to_string(),
            here,
            format!("{}{memory}", k.help),
        ]
    };
    let rows: Vec<_> = knobs::ALL.iter().map(row).collect();
    table(&["Variable", "Default", "Set here", "Meaning"], &rows)
}

fn counter_table() -> String {
    let row = |(name, unit, help): &(&str, &str, &str)| {
        vec![name.to_string(), unit.to_string(), help.to_string()]
    };
    let rows: Vec<_> = counters::ALL.iter().map(row).collect();
    table(&["Counter", "Unit", "Meaning"], &rows)
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
