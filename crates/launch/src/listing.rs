//! Tables on a terminal: columns as wide as their contents, the last one wrapped.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// A table: its head and its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// Names of the columns.
    pub head: Vec<&'static str>,
    /// One entry for each column.
    pub rows: Vec<Vec<String>>,
}

impl Listing {
    /// The table as text, as wide as the terminal.
    pub fn text(&self) -> String {
        table(&self.head, &self.rows)
    }
}

/// Columns of the terminal, or what a table may take elsewhere.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let asked = || {
        let out = std::io::stdout();
        let size = out
            .is_terminal()
            .then(|| rustix::termios::tcgetwinsize(&out).ok());
        size.flatten().map(|s| usize::from(s.ws_col))
    };
    columns
        .or_else(asked)
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

/// Prints the output of a command; returns its exit status, or that of a failed write.
pub fn print(command: &str, out: &str, status: ExitCode) -> ExitCode {
    match std::io::stdout().write_all(out.as_bytes()) {
        // a reader that closes the pipe early is not an error
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(
                std::io::stderr(),
                "{command}: cannot write standard output: {e}"
            );
            ExitCode::FAILURE
        }
        _ => status,
    }
}
