//! Calls and messages for other programs: JSON (an object with two lists), or CSV (a table of each).

use std::io::{self, Write};

use crate::analysis::Analysis;
use crate::model::{Call, Message, Name, Trace};

/// The forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// One object.
    Json,
    /// Two tables, with an empty line between them.
    Csv,
}

/// A cell of a table.
enum Cell<'a> {
    None,
    Number(i128),
    Text(&'a str),
}

impl From<Option<i32>> for Cell<'_> {
    fn from(n: Option<i32>) -> Self {
        n.map_or(Cell::None, |n| Cell::Number(n.into()))
    }
}

impl From<Option<u64>> for Cell<'_> {
    fn from(n: Option<u64>) -> Self {
        n.map_or(Cell::None, |n| Cell::Number(n.into()))
    }
}

const CALLS: [&str; 19] = [
    "rank",
    "thread",
    "function",
    "begin_ns",
    "end_ns",
    "ended",
    "at",
    "dest",
    "source",
    "tag",
    "root",
    "target",
    "comm",
    "bytes",
    "requests",
    "op",
    "mode",
    "waiting_ns",
    "wait",
];
const MESSAGES: [&str; 8] = [
    "from",
    "to",
    "tag",
    "comm",
    "bytes",
    "sent_ns",
    "posted_ns",
    "received_ns",
];

/// Writes all calls and messages of a trace.
///
/// # Errors
/// Result of the writer.
pub fn write(
    trace: &Trace,
    analysis: &Analysis,
    form: Form,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut waits = analysis.waits.iter().peekable();
    let calls = trace.calls.iter().enumerate().map(|(i, call)| {
        let wait = waits.next_if(|w| w.call as usize == i);
        let (time, class) = wait.map_or((None, ""), |w| (Some(w.time()), w.class.name()));
        let mut row = call_row(trace, call);
        row.push(time.into());
        row.push(Cell::Text(class));
        row
    });
    let messages = trace.messages.iter().map(|m| message_row(trace, m));
    match form {
        Form::Json => {
            write!(out, "{{\"calls\": [")?;
            json(&CALLS, calls, out)?;
            write!(out, "],\n\"messages\": [")?;
            json(&MESSAGES, messages, out)?;
            writeln!(out, "]}}")
        }
        Form::Csv => {
            csv(&CALLS, calls, out)?;
            writeln!(out)?;
            csv(&MESSAGES, messages, out)
        }
    }
}

fn call_row<'a>(trace: &'a Trace, call: &Call) -> Vec<Cell<'a>> {
    let thread = &trace.threads[call.thread as usize];
    let rank = &trace.ranks[thread.rank as usize];
    let index = rank
        .threads
        .iter()
        .position(|t| *t == call.thread)
        .unwrap_or(0);
    let text = |name: Name| Cell::Text(trace.names.text(name));
    let args = &call.args;
    vec![
        Cell::Number(rank.number.into()),
        Cell::Number(index as i128),
        text(call.function),
        Cell::Number(call.begin.into()),
        Cell::Number(call.end.into()),
        Cell::Text(if call.open { "no" } else { "yes" }),
        text(call.at),
        args.dest.into(),
        args.source.into(),
        args.tag.into(),
        args.root.into(),
        args.target.into(),
        text(args.comm),
        args.bytes.into(),
        args.requests.into(),
        text(args.op),
        text(args.mode),
    ]
}

fn message_row<'a>(trace: &'a Trace, m: &Message) -> Vec<Cell<'a>> {
    let number = |rank: u32| Cell::Number(trace.ranks[rank as usize].number.into());
    vec![
        number(m.from),
        number(m.to),
        Cell::Number(m.tag.into()),
        Cell::Text(trace.names.text(m.comm)),
        Cell::Number(m.bytes.into()),
        Cell::Number(m.sent.into()),
        m.posted.into(),
        Cell::Number(m.received.into()),
    ]
}

fn json<'a>(
    head: &[&str],
    rows: impl Iterator<Item = Vec<Cell<'a>>>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (i, row) in rows.enumerate() {
        write!(out, "{}\n{{", if i == 0 { "" } else { "," })?;
        let mut first = true;
        for (name, cell) in head.iter().zip(&row) {
            let value = match cell {
                Cell::None | Cell::Text("") => continue,
                Cell::Number(n) => n.to_string(),
                Cell::Text(text) => quoted(text),
            };
            write!(out, "{}\"{name}\": {value}", if first { "" } else { ", " })?;
            first = false;
        }
        write!(out, "}}")?;
    }
    Ok(())
}

/// A text as JSON spells it; safe inside a page's script, too.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            c if u32::from(c) < 0x20
                || matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}') =>
            {
                out += &format!("\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn csv<'a>(
    head: &[&str],
    rows: impl Iterator<Item = Vec<Cell<'a>>>,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", head.join(","))?;
    for row in rows {
        let cell = |cell: &Cell| match cell {
            Cell::None => String::new(),
            Cell::Number(n) => n.to_string(),
            Cell::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Cell::Text(text) => text.to_string(),
        };
        let cells: Vec<String> = row.iter().map(cell).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::{example, read};

    fn exported(form: Form) -> String {
        let trace = read::read(example::ring(3, 2).as_slice()).unwrap();
        let mut out = Vec::new();
        write(&trace, &analyse(&trace), form, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_have_a_row_for_each() {
        let text = exported(Form::Csv);
        let (calls, messages) = text.split_once("\n\n").unwrap();
        assert_eq!(calls.lines().count(), 1 + 3 * 5);
        assert_eq!(messages.lines().count(), 1 + 6);
        assert!(
            calls.lines().all(|l| l.split(',').count() == CALLS.len()),
            "{calls}"
        );
    }

    #[test]
    fn objects_leave_out_what_is_not_known() {
        let text = exported(Form::Json);
        assert_eq!(text.matches("\"function\"").count(), 15);
        assert!(
            text.contains("\"op\": \"MPI_SUM\"") && !text.contains("null"),
            "{text}"
        );
    }

    #[test]
    fn texts_cannot_end_a_script() {
        assert_eq!(
            quoted("a\"</script>\n"),
            "\"a\\\"\\u003c/script\\u003e\\u000a\""
        );
    }
}
